"""Federated generalised linear models with an intercept of its own at every client: iteratively reweighted sums.

In a round the server sends coefficients β. Each client fits its intercepts to its own rows at this β, keeps them to
itself, and answers with XᵀWX and XᵀWz after these intercepts are profiled out, and with its log-likelihood. Where the
target is a number, the residual sum of squares and the row count stand in place of the log-likelihood, and one
variance serves all clients. The server adds up and solves.

Numbers have Gaussian models, labels multinomial ones. Predictors that are labels become indicators of all levels but
the first. A client that lacks a level gives it the probability 0: the limit of its own intercept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from fedcdh._runtime.array_types import Array, Indices
from fedcdh.evaluation.baselines.interface import CountingChannel

Fit = tuple[int, tuple[int, ...]]
"""A target and its predictors, sorted, by place of the variable."""

RIDGE = 1e-4
TOLERANCE = 1e-5
MAX_ROUNDS = 25
_MAX_INTERCEPT_STEPS = 50
_MAX_LOGIT = 500.0  # logits beyond this would overflow without changing a probability
_MAX_BATCH_FITS = 1 << 14


@dataclass(frozen=True, eq=False)
class Design:
    """The columns of each variable among the predictors, and the levels of those that are labels."""

    levels: Mapping[int, Array]
    spans: tuple[Indices, ...]

    @classmethod
    def of(cls, variables: int, levels: Mapping[int, Array]) -> Design:
        """Lay out one column for a number, and one for every level but the first for labels."""
        widths = [max(len(levels[v]) - 1, 1) if v in levels else 1 for v in range(variables)]
        ends = np.cumsum(widths)
        return cls(levels, tuple(np.arange(end - width, end) for end, width in zip(ends, widths, strict=True)))

    def columns(self, predictors: Sequence[int]) -> Indices:
        """Return the columns of these predictors."""
        return np.concatenate([np.zeros(0, dtype=np.intp), *(self.spans[v] for v in predictors)])

    def encode(self, table: Array) -> Array:
        """Return the rows as columns of predictors."""
        parts = []
        for v in range(table.shape[1]):
            if v in self.levels:
                codes = np.searchsorted(self.levels[v], table[:, v])
                parts.append((codes[:, None] == np.arange(1, 1 + len(self.spans[v]))).astype(np.float64))
            else:
                parts.append(table[:, [v]])
        return np.concatenate(parts, axis=1)


class GlmClient:
    """The rows of one client, and its answers in a round."""

    def __init__(self, table: Array, design: Design) -> None:
        self._design = design
        self._table, self._encoded = table, design.encode(table)
        centred = self._encoded - self._encoded.mean(axis=0)
        self._scatter = centred.T @ centred

    def answer_gaussian(self, targets: Indices, predictors: Indices, coefficients: Array) -> Array:
        """Return XᵀX, Xᵀy, the residual sum of squares and the row count, flat, for each of several fits."""
        inner = self._scatter[predictors[:, :, None], predictors[:, None, :]]
        cross = self._scatter[predictors, targets[:, None]]
        left = self._scatter[targets, targets] - 2 * (coefficients * cross).sum(axis=1)
        left = left + np.einsum("fi,fij,fj->f", coefficients, inner, coefficients)
        count = np.full(len(targets), float(len(self._table)))
        return np.column_stack([inner.reshape(len(targets), predictors.shape[1] ** 2), cross, left, count])

    def answer_multinomial(self, fit: Fit, coefficients: Array) -> Array:
        """Return XᵀWX, XᵀWz and the log-likelihood, flat; `coefficients` has a row for every level but the first."""
        target, predictors = fit
        outcome, columns, counts = self._tabulate(target, predictors)
        size = coefficients.size
        present, place = np.unique(outcome, return_inverse=True)
        if len(present) < 2:
            return np.zeros(size**2 + size + 1)
        full = np.vstack([np.zeros(coefficients.shape[1]), coefficients])
        chances = _fit_intercepts(columns @ full[present].T, place, counts)
        likelihood = _log_likelihood(chances, place, counts)
        curvature, slope = _profile(columns, place, counts, chances)
        places = _flat_places(present, coefficients.shape[1])
        inner, gradient = np.zeros((size, size)), np.zeros(size)
        kept = places >= 0
        inner[np.ix_(places[kept], places[kept])] = curvature[np.ix_(kept, kept)]
        gradient[places[kept]] = slope[kept]
        return np.concatenate([inner.ravel(), inner @ coefficients.ravel() + gradient, [likelihood]])

    def _tabulate(self, target: int, predictors: tuple[int, ...]) -> tuple[Indices, Array, Array]:
        """Return level, predictors and count of rows; equal rows are put together if all variables are labels."""
        outcome = np.searchsorted(self._design.levels[target], self._table[:, target])
        columns = self._encoded[:, self._design.columns(predictors)]
        if not all(v in self._design.levels for v in predictors):
            return outcome, columns, np.ones(len(outcome))
        kinds, counts = np.unique(np.column_stack([outcome, columns]), axis=0, return_counts=True)
        return kinds[:, 0].astype(np.intp), kinds[:, 1:], counts.astype(np.float64)


def _flat_places(present: Indices, width: int) -> Indices:
    """Return where the coefficients of the present levels are among all; −1 for the first level, which has none."""
    places = (present[:, None] - 1) * width + np.arange(width)
    return np.where(present[:, None] > 0, places, -1).ravel()


def _softmax(logits: Array) -> Array:
    raised = np.exp(np.maximum(logits - logits.max(axis=1, keepdims=True), -_MAX_LOGIT))
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))


def _fit_intercepts(offsets: Array, outcome: Indices, counts: Array) -> Array:
    """Return the probabilities of all levels at the best intercepts for these offsets, by damped Newton steps."""
    observed = np.bincount(outcome, counts, minlength=offsets.shape[1])
    intercepts = np.log(observed / observed.sum())
    chances = _softmax(offsets + intercepts)
    best = _log_likelihood(chances, outcome, counts)
    for _ in range(_MAX_INTERCEPT_STEPS):
        expected = counts @ chances
        if np.abs(observed - expected).max() < 1e-8 * observed.sum():
            break
        curvature = np.diag(expected) - (chances * counts[:, None]).T @ chances
        step = np.linalg.lstsq(curvature, observed - expected, rcond=None)[0]
        for _ in range(30):
            tried = _softmax(offsets + intercepts + step)
            reached = _log_likelihood(tried, outcome, counts)
            if reached >= best - 1e-12 * abs(best):  # rounding
                break
            step = step / 2
        else:
            break
        intercepts, chances, best = intercepts + step, tried, reached
    return chances


def _log_likelihood(chances: Array, outcome: Indices, counts: Array) -> float:
    return float(counts @ np.log(np.maximum(chances[np.arange(len(outcome)), outcome], 1e-300)))


def _profile(columns: Array, outcome: Indices, counts: Array, chances: Array) -> tuple[Array, Array]:
    """Return minus the Hessian and the gradient of the log-likelihood in β, with the intercepts profiled out."""
    levels, width = chances.shape[1], columns.shape[1]
    extended = np.column_stack([np.ones(len(columns)), columns])
    weighted = counts[:, None] * chances
    spread = (weighted[:, :, None] * extended[:, None, :]).reshape(len(columns), -1)
    plain = (chances[:, :, None] * extended[:, None, :]).reshape(len(columns), -1)
    whole = -(spread.T @ plain).reshape(levels, width + 1, levels, width + 1)
    for level in range(levels):
        whole[level, :, level] += (extended * weighted[:, [level]]).T @ extended
    difference = -weighted
    difference[np.arange(len(outcome)), outcome] += counts
    slopes = (difference.T @ columns).ravel()
    own = whole[:, 0, :, 0]
    cross = whole[:, 1:, :, 0].reshape(levels * width, levels)
    inner = whole[:, 1:, :, 1:].reshape(levels * width, levels * width)
    return inner - cross @ np.linalg.pinv(own, hermitian=True) @ cross.T, slopes


# The server


@dataclass
class GlmServer:
    """The server: it asks clients in rounds until every fit has converged, and remembers what fits reached."""

    clients: Sequence[GlmClient]
    channel: CountingChannel
    design: Design
    deviances: dict[Fit, float] = field(default_factory=dict)  # −2 log-likelihood; n log RSS for numbers

    def fit(self, fits: Sequence[Fit]) -> None:
        """Fit all models that are not known yet; fits of a batch share their rounds and messages."""
        new = sorted({fit for fit in fits if fit not in self.deviances})
        gaussian: dict[int, list[Fit]] = {}
        for fit in new:
            if fit[0] not in self.design.levels:
                gaussian.setdefault(len(self.design.columns(fit[1])), []).append(fit)
        for width, group in sorted(gaussian.items()):
            for start in range(0, len(group), _MAX_BATCH_FITS):
                self._fit_gaussian(group[start : start + _MAX_BATCH_FITS], width)
        self._fit_multinomial([fit for fit in new if fit[0] in self.design.levels])

    def _fit_gaussian(self, fits: list[Fit], width: int) -> None:
        targets = np.array([self.design.spans[target][0] for target, _ in fits])
        predictors = np.array([self.design.columns(given) for _, given in fits], dtype=np.intp).reshape(
            len(fits), width
        )
        coefficients, before = np.zeros(predictors.shape), np.full(len(fits), np.inf)
        for _ in range(MAX_ROUNDS):
            sent = self.channel.to_clients(coefficients)
            answers = [
                self.channel.to_server(client.answer_gaussian(targets, predictors, sent)) for client in self.clients
            ]
            total = np.sum(answers, axis=0)
            rows = total[:, -1]
            after = rows * np.log(np.maximum(total[:, -2], 1e-300) / rows)
            if not width or np.abs(before - after).max() < 2 * TOLERANCE:
                break
            inner = total[:, : width**2].reshape(len(fits), width, width) + RIDGE * np.eye(width)
            cross = total[:, width**2 : width**2 + width]
            coefficients, before = np.linalg.solve(inner, cross[:, :, None])[:, :, 0], after
        self.deviances.update(zip(fits, after.tolist(), strict=True))

    def _fit_multinomial(self, fits: list[Fit]) -> None:
        running = {fit: self._start(fit) for fit in fits}
        for _ in range(MAX_ROUNDS):
            active = {fit: state for fit, state in running.items() if not state.done}
            if not active:
                break
            self.channel.to_clients(np.concatenate([state.coefficients.ravel() for state in active.values()]))
            answers = []
            for client in self.clients:
                parts = [client.answer_multinomial(fit, state.coefficients) for fit, state in active.items()]
                answers.append(self.channel.to_server(np.concatenate(parts)))
            total, start = np.sum(answers, axis=0), 0
            for state in active.values():
                end = start + state.answer_size
                state.learn(total[start:end])
                start = end
        self.deviances.update({fit: -2 * state.reached for fit, state in running.items()})

    def _start(self, fit: Fit) -> _NewtonState:
        shape = (max(len(self.design.levels[fit[0]]) - 1, 0), len(self.design.columns(fit[1])))
        return _NewtonState(np.zeros(shape))


@dataclass
class _NewtonState:
    """One multinomial fit at the server: where it is, and the step that it tries next."""

    coefficients: Array  # what is asked next
    accepted: Array | None = None
    reached: float = -np.inf
    done: bool = False

    @property
    def answer_size(self) -> int:
        """Return the length of an answer."""
        return self.coefficients.size**2 + self.coefficients.size + 1

    def learn(self, total: Array) -> None:
        """Take a full step, or halve the last one if it lost more than rounding."""
        size, likelihood = self.coefficients.size, float(total[-1])
        if self.accepted is not None and likelihood < self.reached - TOLERANCE:
            self.coefficients = (self.coefficients + self.accepted) / 2
            return
        self.done = not size or (self.accepted is not None and abs(likelihood - self.reached) < TOLERANCE)
        self.reached, self.accepted = likelihood, self.coefficients
        if not self.done:
            inner = total[: size**2].reshape(size, size) + RIDGE * np.eye(size)
            solved = np.linalg.solve(inner, total[size**2 : size**2 + size, None])
            self.coefficients = np.asarray(solved, dtype=np.float64).reshape(self.coefficients.shape)
