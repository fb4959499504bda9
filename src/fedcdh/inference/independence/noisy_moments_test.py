"""Tests that know the noise: independence from moments to which noise was added for differential privacy.

In the coordinates used here (`NoisyMoments`) the noise E of a summary is the same in all directions: uᵀEv has the
variance σ²(|u|²|v|² + (u·v)²), whatever u and v are. All statistics below are such forms in the moments M, of
directions u that stand for a variable less its regression on others: uᵀMv = Σ r_x r_y is zero on average where they are
uncorrelated, with and without noise, and its variance is n s_x s_y from the rows plus that of uᵀEv. Regressions come
from the noisy moments themselves. Their errors enter as a product of two, so they matter only where noise is as large
as the scatter of the conditions; there |u| is large, the variance with it, and the test does not reject.

Nothing is drawn at random, and no moment is made definite by force.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import special

from fedcdh._runtime.array_types import Array, Indices
from fedcdh.errors import SettingsError
from fedcdh.inference.batched_regression import combine_p_values, concatenate_columns
from fedcdh.protocols import DOMAIN, Answer, Query
from fedcdh.summaries.aggregation import Aggregate, Cohort
from fedcdh.summaries.dp_parameters import CONSTANT_VARIANCE_RATIO, PRODUCT_STEPS
from fedcdh.summaries.features import bounded
from fedcdh.summaries.plan import Categorical, StudyPlan

MIN_SIGNAL_TO_NOISE = 4.0
"""A column is used where n times its variance under N(0, 1) is so many times σ; chosen on seeds below 1000."""
TARGET_CORRELATION = 0.3
"""A correlation, also given two other variables, that a study should find; else its result says that it may not.
`docs/noise.md` has the figures."""
POWER_90_DISTANCE = 1.96 + 1.28
"""Standard errors from zero at which a test of level 0.05 rejects nine times in ten."""
MAX_MEAN_SQUARED_NORM = 0.8
"""Mean |features|² from which on most rows were drawn onto the ball; it is 0.2 to 0.6 for normal variables."""
MAX_KURTOSIS = 50.0
_RELATIVE_TOLERANCE = 1e-9  # of the largest entry: keeps covariances of statistics invertible


@dataclass(frozen=True, eq=False)
class NoisyMoments:
    """Moments per client in coordinates in which noise is alike in all directions.

    The constant is divided by √3, as its noise is that much larger; of a label's indicators, whose sum says nothing,
    those directions are left that are orthogonal to it.
    """

    plan: StudyPlan
    moments: Array  # (clients, columns, columns); one where only the sum of all is known
    deviations: Array  # σ per client
    spans: dict[str, Indices]

    @classmethod
    def of(cls, known: Cohort | Aggregate) -> NoisyMoments:
        """From the summaries of a plan with noise."""
        plan = known.plan
        if plan.noise is None or not all(summary.noise for summary in known.summaries):
            raise SettingsError(
                "tests that know the noise are for summaries that have some; leave them to 'constraint'"
            )
        turn, spans = _isotropic_transform(plan)
        moments = turn @ known.moments @ turn.T
        deviations = np.sqrt([float(summary.noise) for summary in known.summaries]) / PRODUCT_STEPS
        return cls(plan, moments, deviations, spans)

    @cached_property
    def rows(self) -> Array:
        """Per client, as far as the noise lets them be known."""
        return np.maximum(CONSTANT_VARIANCE_RATIO * self.moments[:, 0, 0], 1.0)

    @cached_property
    def deviation(self) -> float:
        """σ of the sum over clients."""
        return float(np.sqrt((self.deviations**2).sum()))

    def resolved(self, rows: float, deviation: float) -> int:
        """How many columns of a continuous variable stand out of the noise in so many rows."""
        degree = self.plan.noise.degree if self.plan.noise else 1
        sizes = rows * np.square(bounded.WEIGHTS[:degree]) / self.plan.layout.unit**2
        return int((sizes >= MIN_SIGNAL_TO_NOISE * deviation).sum())

    @cached_property
    def degree(self) -> int:
        """How many columns of a continuous variable are used: those that stand out, the value at least."""
        return max(self.resolved(float(self.rows.sum()), self.deviation), 1)

    @cached_property
    def used(self) -> dict[str, Indices]:
        """The columns of each variable with which others are predicted."""
        return {name: span if self.is_categorical(name) else span[: self.degree] for name, span in self.spans.items()}

    def is_categorical(self, name: str) -> bool:
        return self.plan.kinds[name] == "categorical"

    def targets(self, name: str) -> Indices:
        """The columns whose mean is tested: the value, or all of a label."""
        return self.spans[name] if self.is_categorical(name) else self.spans[name][:1]

    @cached_property
    def has_own_regression(self) -> npt.NDArray[np.bool_]:
        """Which clients can have regressions of their own: all columns that are used stand out of their noise."""
        pairs = zip(self.rows, self.deviations, strict=True)
        return np.array([self.resolved(rows, deviation) >= self.degree for rows, deviation in pairs])


def _isotropic_transform(plan: StudyPlan) -> tuple[Array, dict[str, Indices]]:
    rows, spans = [np.eye(plan.layout.n_columns)[0] / np.sqrt(CONSTANT_VARIANCE_RATIO)], {}
    for variable in plan.variables:
        own = plan.layout.spans[variable.name]
        width = plan.layout.width(variable.name)
        inner = _orthonormal_contrasts(width) if isinstance(variable, Categorical) else np.eye(width)
        spans[variable.name] = np.arange(len(rows), len(rows) + len(inner))
        for direction in inner:
            rows.append(np.zeros(plan.layout.n_columns))
            rows[-1][own] = direction
    return np.array(rows), spans


def _orthonormal_contrasts(levels: int) -> Array:
    """Orthonormal directions that add up to zero."""
    whole = np.linalg.qr(np.column_stack([np.ones(levels), np.eye(levels)[:, 1:]]))[0]
    return np.asarray(whole[:, 1:].T)


@dataclass(frozen=True, eq=False)
class NoisyMomentsTest:
    """Answers from noisy moments, for additive mechanisms of squares and cubes at most."""

    known: NoisyMoments

    @classmethod
    def of(cls, known: Cohort | Aggregate) -> NoisyMomentsTest:
        return cls(NoisyMoments.of(known))

    def __call__(self, questions: Sequence[Query], /) -> list[Answer]:
        """Answers in the order of the questions."""
        rows = int(self.known.rows.sum())
        return [Answer(question, *self._answer(question), rows) for question in questions]

    def _answer(self, question: Query) -> tuple[float, float]:
        if DOMAIN in question.pair:
            return _mechanism_test(self.known, next(iter(question.pair - {DOMAIN})), question.given)
        x, y = sorted(question.pair)
        return _pair_test(self.known, x, y, question.given)


# Two variables


def _pair_test(known: NoisyMoments, x: str, y: str, given: frozenset[str]) -> tuple[float, float]:
    """x ⫫ y | Z: the residuals of x's value and y's columns, and the other way round, are uncorrelated."""
    z = concatenate_columns(known.used, given - {DOMAIN})
    whole = [
        _cross_residuals(known, group, known.used[x], known.used[y], z)
        for group in _regression_groups(known, DOMAIN in given)
    ]
    total = np.sum([cross for cross, _ in whole], axis=0)
    covariance = np.sum([spread for _, spread in whole], axis=0)
    means = np.zeros(total.shape, dtype=np.bool_)
    means[: len(known.targets(x)), : len(known.targets(y))] = True
    either = np.zeros_like(means)
    either[: len(known.targets(x))] = either[:, : len(known.targets(y))] = True
    statistic, p_value = _select_chi_square(total, covariance, means)
    parts = [p_value]
    if (curved := either & ~means).any():
        parts.append(_select_chi_square(total, covariance, curved)[1])
    if len(whole) > 1 and means.sum() == 1:
        squares = sum(cross[0, 0] ** 2 / spread[0, 0, 0, 0] for cross, spread in whole)
        parts.append(float(special.chdtrc(len(whole), squares)))
    return statistic, _combine(parts)


def _regression_groups(known: NoisyMoments, within: bool) -> list[list[int]]:
    """Clients with regressions of their own, each by itself; and those with the same slopes, in one group.

    Not within clients: -1 stands for the sum of all, as if it were one client.
    """
    if not within or len(known.moments) == 1:
        return [[-1]]
    alone = [[k] for k in np.flatnonzero(known.has_own_regression).tolist()]
    together = np.flatnonzero(~known.has_own_regression).tolist()
    return [*alone, together] if together else alone


def _cross_residuals(known: NoisyMoments, group: list[int], x: Indices, y: Indices, z: Indices) -> tuple[Array, Array]:
    """Σ r_x r_y over the rows of a group, and its covariance (x, y, x, y) where r_x and r_y are independent."""
    columns = np.concatenate([x, y, z])
    moments, noise = _group_moments(known, group)
    means = moments[:, 0, :] / moments[:, 0, :1]
    scatter = (moments - moments[:, :1, :] * means[:, :, None])[:, columns[:, None], columns].sum(axis=0)
    wide = len(x) + len(y)
    weights = _solve(scatter[wide:, wide:], scatter[wide:, :wide])
    left = scatter[:wide, :wide] - scatter[:wide, wide:] @ weights
    slopes = np.zeros((len(known.moments[0]), wide))  # each column: a variable's column less its regression on Z
    slopes[columns[:wide], np.arange(wide)] = 1.0
    slopes[z] -= weights
    covariance = np.zeros((len(x), len(y), len(x), len(y)))
    rows = float(CONSTANT_VARIANCE_RATIO * moments[:, 0, 0].sum())
    sizes = _positive_part(left[: len(x), : len(x)]), _positive_part(left[len(x) :, len(x) :])
    covariance += np.einsum("ik,jl->ijkl", sizes[0], sizes[1]) / max(rows, 1.0)
    for mean, variance in zip(means, noise, strict=True):
        directions = slopes.copy()
        directions[0] = -mean @ slopes
        u, v = directions[:, : len(x)], directions[:, len(x) :]
        across = u.T @ v
        covariance += variance * (np.einsum("ik,jl->ijkl", u.T @ u, v.T @ v) + np.einsum("il,kj->ijkl", across, across))
    return left[: len(x), len(x) :], covariance


def _group_moments(known: NoisyMoments, group: list[int]) -> tuple[Array, Array]:
    """Moments and σ² of the clients of a group."""
    if group == [-1]:
        return known.moments.sum(axis=0, keepdims=True), np.array([known.deviation**2])
    return known.moments[group], known.deviations[group] ** 2


# The domain


def _mechanism_test(known: NoisyMoments, x: str, given: frozenset[str]) -> tuple[float, float]:
    """℧ ⫫ x | Z: with one regression for all clients, every client's residuals are uncorrelated with 1 and Z.

    Without Z, the means of all columns of x are compared, and so its spread; with Z, sums of squared residuals.
    """
    if len(known.moments) == 1:
        return 0.0, 1.0
    z = concatenate_columns(known.used, given)
    straight = concatenate_columns({name: known.targets(name) for name in known.spans}, given)
    base = np.concatenate([[0], z]).astype(np.intp)
    target = known.targets(x)
    scores, covariance = _client_scores(known, target, base)
    width = len(target)
    intercepts, values = np.isin(base, [0]), np.isin(base, np.append(straight, 0))
    statistic, p_value = _score_test(scores, covariance, np.tile(intercepts, width))
    parts = [p_value]
    if len(straight):
        parts.append(_score_test(scores, covariance, np.tile(values, width))[1])
    if len(z) > len(straight):
        parts.append(_score_test(scores, covariance, np.ones(width * len(base), dtype=np.bool_))[1])
    if not known.is_categorical(x):
        if not given and len(known.used[x]) > 1:
            every = _client_scores(known, known.used[x], base)
            parts.append(_score_test(*every, np.ones(len(known.used[x]), dtype=np.bool_))[1])
        elif given:
            parts.append(_variance_test(known, x, base))
    return statistic, _combine(parts)


def _client_scores(known: NoisyMoments, target: Indices, base: Indices) -> tuple[Array, Array]:
    """Per client, Σ r_x (1, Z) with the pooled regression, (clients, columns); and their covariance.

    The scores add up to zero, since the regression is theirs; that is in the covariance.
    """
    total = known.moments.sum(axis=0)
    weights = _solve(total[np.ix_(base, base)], total[np.ix_(base, target)])
    directions = np.zeros((len(total), len(target)))
    directions[target, np.arange(len(target))] = 1.0
    directions[base] -= weights
    rows = float(known.rows.sum())
    size = _positive_part(directions.T @ total @ directions) / rows
    inner = known.moments[:, base[:, None], base]
    scores = (known.moments[:, base] @ directions).transpose(0, 2, 1).reshape(len(inner), -1)  # target by target
    own = []
    for block, variance in zip(inner, known.deviations**2, strict=True):
        noise = np.einsum("cd,ij->cidj", directions.T @ directions, np.eye(len(base)))
        noise = noise + np.einsum("jc,id->cidj", directions[base], directions[base])
        noise = noise.reshape(scores.shape[1], -1)
        own.append(np.kron(size, _positive_part(block)) + variance * noise)
    part = np.array([np.kron(np.eye(len(target)), _solve(inner.sum(axis=0), block.T).T) for block in inner])
    return scores, _project_covariance(np.array(own), part)


def _project_covariance(own: Array, part: Array) -> Array:
    """Covariance of g_k − H_k Σ_j g_j, of independent g_k with covariances `own`, as (clients, n, clients, n)."""
    clients, width = own.shape[:2]
    whole = own.sum(axis=0)
    cross = own[:, None] @ part[None].transpose(0, 1, 3, 2)  # V_k H_l'
    found = part[:, None] @ whole @ part[None].transpose(0, 1, 3, 2) - cross - cross.transpose(1, 0, 3, 2)
    found[np.arange(clients), np.arange(clients)] += own
    return np.asarray(found.transpose(0, 2, 1, 3).reshape(clients, width, clients, width))


def _score_test(scores: Array, covariance: Array, chosen: npt.NDArray[np.bool_]) -> tuple[float, float]:
    """χ² of some of the scores of all clients but the last, which the others determine."""
    values = scores[:-1, chosen].ravel()
    block = covariance[:-1, chosen][:, :, :-1][..., chosen].reshape(len(values), len(values))
    return _chi_square_test(values, block)


def _variance_test(known: NoisyMoments, x: str, base: Indices) -> float:
    """Whether Σ r² is the same multiple of the rows at all clients; r² varies by (κ − 1) s² for noise of kurtosis κ."""
    total, target = known.moments.sum(axis=0), known.targets(x)
    u = np.zeros(len(total))
    u[target] = 1.0
    u[base] -= _solve(total[np.ix_(base, base)], total[np.ix_(base, target)])[:, 0]
    rows = known.rows
    variance = max(float(u @ total @ u) / rows.sum(), _RELATIVE_TOLERANCE / known.plan.layout.unit**2)
    form = np.outer(u, u)
    form[0, 0] -= CONSTANT_VARIANCE_RATIO * variance
    left = np.einsum("ij,kij->k", form, known.moments)
    tails = _kurtosis(known, x, base) - 1
    own = rows * variance**2 * tails + 2 * known.deviations**2 * (form**2).sum()
    share = rows / rows.sum()
    scores, covariance = (
        (left - share * left.sum())[:, None],
        _project_covariance(own[:, None, None], share[:, None, None]),
    )
    return _score_test(scores, covariance, np.ones(1, dtype=np.bool_))[1]


def _kurtosis(known: NoisyMoments, x: str, base: Indices) -> float:
    """κ of the noise r in x = m(Z) + r, above its estimate by its standard error; at least 3, as of a Gaussian.

    Var(x² | Z) = 4 m² s + Var(r²) on average, for centred x and symmetric r; x² is a column if the plan's degree is
    2 or more. Else noise is taken for Gaussian.
    """
    span, unit, rows = known.spans[x], known.plan.layout.unit, float(known.rows.sum())
    if len(span) < 2:
        return 3.0
    total = known.moments.sum(axis=0)
    mean = unit * total[0, span[0]] * np.sqrt(CONSTANT_VARIANCE_RATIO) / rows
    u = np.zeros((len(total), 2))  # (z − mean)² less its regression on Z, up to a constant; and z less its own
    u[span[:2], 0] = -2 * mean * unit, np.sqrt(2) * unit / bounded.WEIGHTS[1]
    u[span[0], 1] = unit
    spread = unit**2 * float(total[span[0], span[0]] / rows) - mean**2
    u[base] -= _solve(total[np.ix_(base, base)], total[base] @ u)
    about, noise = (float(direction @ total @ direction) / rows for direction in u.T)
    error = max(about, 0.0) * np.sqrt(10 / rows) + np.sqrt(2) * known.deviation * float(u[:, 0] @ u[:, 0]) / rows
    noise = max(noise, 0.01)
    found = 1 + (about + error - 4 * noise * max(spread - noise, 0.0)) / noise**2
    return float(np.clip(found, 3.0, MAX_KURTOSIS))


# What a reader should know


def describe_noise(known: NoisyMoments) -> Iterator[str]:
    """What the noise leaves to be found in this study, for the notes of a result."""
    noise, rows = known.plan.noise, float(known.rows.sum())
    if noise is None:
        return
    who = "every client" if not noise.distributed else "all clients together"
    found = [detectable_correlation(known, conditions) for conditions in range(min(len(known.spans) - 1, 3))]
    shown = ", ".join(f"{min(least, 1.0):.2g} given {number}" for number, least in enumerate(found))
    yield (
        f"all numbers are from sums with noise (epsilon {noise.epsilon:g}, delta {noise.delta:g}, added by {who}); "
        f"correlations that are found nine times in ten: {shown} other variables"
    )
    if max(found, default=0.0) > TARGET_CORRELATION:
        yield (
            f"this study is outside of the region where noise leaves enough to be found (correlations of {TARGET_CORRELATION:g}): "
            "an absent edge says little; have more rows, fewer variables, a larger epsilon, or noise that clients add "
            "together"
        )
    if (seen := known.resolved(rows, known.deviation)) < noise.degree:
        lost = ("all of the values", "squares and cubes", "cubes")[seen]
        yield (
            f"{lost} of the conditions drown in noise: what bends in their effects may be taken for a link between two "
            "variables that have none"
        )
    if float(np.trace(known.moments.sum(axis=0)[1:, 1:])) > MAX_MEAN_SQUARED_NORM * rows:
        yield (
            "most rows lie so far from the plan's locations that they were drawn in: declare larger scales, or look "
            "for other units"
        )


def detectable_correlation(known: NoisyMoments, conditions: int) -> float:
    """The partial correlation that is found nine times in ten: the median of variables that stand side by side."""
    names = list(known.spans)
    errors = []
    for start in range(min(len(names), 20)):
        x, y, *others = (names[(start + step) % len(names)] for step in range(2 + conditions))
        z = concatenate_columns(known.used, others)
        spread, sizes = 0.0, np.zeros(2)
        for group in _regression_groups(known, len(known.moments) > 1):
            first, second = known.targets(x)[:1], known.targets(y)[:1]
            if len(first) and len(second):
                spread += float(_cross_residuals(known, group, first, second, z)[1].ravel()[0])
                sizes += [float(_cross_residuals(known, group, one, one, z)[0][0, 0]) for one in (first, second)]
        errors.append(np.sqrt(spread / sizes.prod()) if sizes.min() > 0 else np.inf)
    return POWER_90_DISTANCE * float(np.median(errors))


# Small things


def _solve(inner: Array, cross: Array) -> Array:
    """inner⁻¹ cross, of a noisy matrix that may be indefinite but is not singular, with probability one."""
    if not len(inner):
        return np.zeros_like(cross)
    return np.asarray(np.linalg.lstsq(inner, cross, rcond=_RELATIVE_TOLERANCE)[0])


def _positive_part(matrix: Array) -> Array:
    """Without its negative directions, which only noise has."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)


def _select_chi_square(cross: Array, covariance: Array, chosen: npt.NDArray[np.bool_]) -> tuple[float, float]:
    """Statistic and p-value of some of the entries."""
    return _chi_square_test(cross[chosen], covariance[chosen][:, chosen])


def _chi_square_test(values: Array, covariance: Array) -> tuple[float, float]:
    size = np.trace(covariance) / max(len(values), 1)
    if not len(values) or not size > 0:
        return 0.0, 1.0
    safe = covariance + _RELATIVE_TOLERANCE * size * np.eye(len(values))
    statistic = max(float(values @ np.linalg.solve(safe, values)), 0.0)
    return statistic, float(special.chdtrc(len(values), statistic))


def _combine(parts: Iterable[float]) -> float:
    return float(combine_p_values(np.array([part]) for part in parts)[0])
