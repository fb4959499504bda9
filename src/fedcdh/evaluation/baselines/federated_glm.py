"""Federated generalised linear models with an intercept of its own at every client: iteratively reweighted sums.

In a round the server sends coefficients β. Each client fits its intercepts to its own rows at this β, keeps them to
itself, and answers with XᵀWX and XᵀWz after these intercepts are profiled out, and with its log-likelihood. Where the
target is a number, the residual sum of squares and the row count stand in place of the log-likelihood, and one
variance serves all clients. The server adds up and solves.

Numbers have Gaussian models, labels multinomial ones. Predictors that are labels become indicators of all levels but
the first. A client that lacks a level gives it the probability 0: the limit of its own intercept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from fedcdh._runtime.array_types import Array, Indices
from fedcdh.evaluation.baselines.interface import CountingChannel
from fedcdh.evaluation.baselines.labelled_rows import Fit, LabelledRows

RIDGE = 1e-4
TOLERANCE = 1e-5
MAX_ROUNDS = 25
_MAX_BATCH_FITS = 1 << 14
_MAX_GROUP_SIZE = 1 << 21  # numbers in the largest array of a group of multinomial fits


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
        self._codes = {v: np.searchsorted(levels, table[:, v]) for v, levels in design.levels.items()}
        self._group: LabelledRows | None = None

    def answer_gaussian(self, targets: Indices, predictors: Indices, coefficients: Array) -> Array:
        """Return XᵀX, Xᵀy, the residual sum of squares and the row count, flat, for each of several fits."""
        inner = self._scatter[predictors[:, :, None], predictors[:, None, :]]
        cross = self._scatter[predictors, targets[:, None]]
        left = self._scatter[targets, targets] - 2 * (coefficients * cross).sum(axis=1)
        left = left + np.einsum("fi,fij,fj->f", coefficients, inner, coefficients)
        count = np.full(len(targets), float(len(self._table)))
        return np.column_stack([inner.reshape(len(targets), predictors.shape[1] ** 2), cross, left, count])

    def answer_multinomial(self, fits: Sequence[Fit], active: Indices, coefficients: Array) -> Array:
        """Return XᵀWX, XᵀWz and the log-likelihood, flat, for each of the active fits of a group.

        `coefficients` has for each active fit a row for every level but the first. The client keeps its rows of a group
        and the intercepts of the last round, from which the next round starts.
        """
        if self._group is None or self._group.fits is not fits:
            self._group = LabelledRows.gather(fits, [self._tabulate(*fit) for fit in fits])
        return self._group.answer(active, coefficients)

    def _tabulate(self, target: int, predictors: tuple[int, ...]) -> tuple[Indices, Array, Array]:
        """Return level, predictors and count of rows; equal rows are put together if all variables are labels."""
        places, outcome = self._design.columns(predictors), self._codes[target]
        if not all(v in self._codes for v in predictors):
            return outcome, self._encoded[:, places], np.ones(len(outcome))
        number = outcome.copy()
        for v in predictors:
            number = number * len(self._design.levels[v]) + self._codes[v]
        _, first, counts = np.unique(number, return_index=True, return_counts=True)
        return outcome[first], self._encoded[np.ix_(first, places)], counts.astype(np.float64)


# The server


@dataclass
class GlmServer:
    """The server: it asks clients in rounds until every fit has converged, and remembers what fits reached."""

    clients: Sequence[GlmClient]
    channel: CountingChannel
    design: Design
    max_rows: int  # of a client
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
        for alike in self._group_labelled([fit for fit in new if fit[0] in self.design.levels]):
            self._fit_multinomial(alike)

    def _group_labelled(self, fits: Sequence[Fit]) -> Iterator[tuple[Fit, ...]]:
        """Yield fits with equal numbers of levels and of columns together, as many as memory is given to."""
        groups: dict[tuple[int, int], list[Fit]] = {}
        for fit in fits:
            shape = len(self.design.levels[fit[0]]), len(self.design.columns(fit[1]))
            groups.setdefault(shape, []).append(fit)
        for (levels, width), group in sorted(groups.items()):
            size = max(1, _MAX_GROUP_SIZE // (self.max_rows * levels * (width + 1)))
            yield from (tuple(group[start : start + size]) for start in range(0, len(group), size))

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

    def _fit_multinomial(self, fits: tuple[Fit, ...]) -> None:
        """Take Newton steps for all fits of one shape; halve a step that lost more than rounding."""
        levels, width = len(self.design.levels[fits[0][0]]), len(self.design.columns(fits[0][1]))
        size = (levels - 1) * width
        asked = np.zeros((len(fits), size))
        accepted, reached = asked.copy(), np.full(len(fits), -np.inf)
        active = np.arange(len(fits))
        for _ in range(MAX_ROUNDS):
            sent = self.channel.to_clients(asked[active])
            answers = [
                self.channel.to_server(
                    client.answer_multinomial(fits, active, sent.reshape(len(sent), levels - 1, width))
                )
                for client in self.clients
            ]
            total = np.sum(answers, axis=0)
            likelihood = total[:, -1]
            better = likelihood >= reached[active] - TOLERANCE
            gained = np.abs(likelihood - reached[active])
            taken = active[better]
            accepted[taken], reached[taken] = asked[taken], likelihood[better]
            inner = total[better, : size**2].reshape(len(taken), size, size) + RIDGE * np.eye(size)
            asked[taken] = np.linalg.solve(inner, total[better, size**2 : size**2 + size, None])[:, :, 0]
            lost = active[~better]
            asked[lost] = (asked[lost] + accepted[lost]) / 2
            active = active[~better | (gained >= TOLERANCE)] if size else active[:0]
            if not len(active):
                break
        self.deviances.update(zip(fits, (-2 * reached).tolist(), strict=True))
