"""Independence tests from moments with noise for differential privacy.

In the coordinates of `NoisyMoments` the noise E of a summary is the same in all directions: uᵀEv has the variance
σ²(|u|²|v|² + (u·v)²) for all u and v. All statistics below are such forms in the moments M, with directions u that
stand for a variable less its regression on others. uᵀMv = Σ r_x r_y is zero on average if the two are uncorrelated,
with and without noise, and its variance is n s_x s_y from the rows plus that of uᵀEv. Regressions are computed from the
noisy moments themselves. Their errors enter as a product of two, so they matter only where noise is as large as the
scatter of the conditions; there |u| and the variance are large, and the test does not reject.

Nothing is random, and no moment is projected to be positive definite.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from fedcdh._runtime.array_types import Array, Indices
from fedcdh.inference.batched_regression import combine_p_values, concatenate_columns
from fedcdh.protocols import DOMAIN, Answer, Query
from fedcdh.summaries.aggregation import Aggregate, Cohort
from fedcdh.summaries.dp_parameters import CONSTANT_VARIANCE_RATIO
from fedcdh.summaries.features import bounded
from fedcdh.summaries.noisy_moments import NoisyMoments

TARGET_CORRELATION = 0.3
"""A correlation that a study should find, also given two other variables; if it cannot, the notes say so.
`docs/noise.md` has the figures."""
POWER_90_DISTANCE = 1.96 + 1.28
"""Standard errors from zero at which a test of level 0.05 rejects nine times in ten."""
MAX_MEAN_SQUARED_NORM = 0.8
"""Mean |features|² above which most rows were projected into the ball; it is 0.2 to 0.6 for normal variables."""
MAX_KURTOSIS = 50.0
_RELATIVE_TOLERANCE = 1e-9  # of the largest entry: keeps covariances of statistics invertible


@dataclass(frozen=True, eq=False)
class NoisyMomentsTest:
    """A test from noisy moments, for additive mechanisms up to the third degree.

    Attributes
    ----------
    known : NoisyMoments
        The moments and the size of their noise.

    Examples
    --------
    >>> from fedcdh import Continuous, StudyPlan, add_up, summarize
    >>> from fedcdh.privacy.differential.mechanism import add_noise
    >>> from fedcdh.protocols import Query
    >>> from fedcdh.summaries.dp_parameters import DPParameters
    >>> plan = StudyPlan((Continuous("a"), Continuous("b")), ("north",), clip=6, noise=DPParameters(4, 1e-6))
    >>> values = [(k % 21 - 10) / 6 for k in range(20_000)]
    >>> summary = add_noise(summarize({"a": values, "b": values}, plan, "north"), plan)
    >>> (answer,) = NoisyMomentsTest.of(add_up([summary], plan))([Query("a", "b")])
    >>> answer.p_value < 0.001
    True
    """

    known: NoisyMoments

    @classmethod
    def of(cls, known: Cohort | Aggregate) -> NoisyMomentsTest:
        """Make the test from summaries with noise.

        Parameters
        ----------
        known : Cohort or Aggregate
            The summaries, or their sum.

        Returns
        -------
        NoisyMomentsTest
            The test.
        """
        return cls(NoisyMoments.of(known))

    def __call__(self, queries: Sequence[Query], /) -> list[Answer]:
        """Answer the queries, in their order."""
        rows = int(self.known.rows.sum())
        return [Answer(query, *self._answer(query), rows) for query in queries]

    def _answer(self, query: Query) -> tuple[float, float]:
        if DOMAIN in query.pair:
            return _mechanism_test(self.known, next(iter(query.pair - {DOMAIN})), query.given)
        x, y = sorted(query.pair)
        return _pair_test(self.known, x, y, query.given)


def _pair_test(known: NoisyMoments, x: str, y: str, given: frozenset[str]) -> tuple[float, float]:
    """Test x ⫫ y | Z: the residuals of x's value and y's columns, and the other way round, are uncorrelated."""
    z = concatenate_columns(known.predictors, given - {DOMAIN})
    whole = [
        _cross_residuals(known, group, known.predictors[x], known.predictors[y], z)
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
    """Return the clients with regressions of their own, each by itself, and those with common slopes, in one group.

    If clients are not to be separated, -1 stands for the sum of all, as if it were one client.
    """
    if not within or len(known.moments) == 1:
        return [[-1]]
    alone = [[k] for k in np.flatnonzero(known.has_own_regression).tolist()]
    together = np.flatnonzero(~known.has_own_regression).tolist()
    return [*alone, together] if together else alone


def _cross_residuals(known: NoisyMoments, group: list[int], x: Indices, y: Indices, z: Indices) -> tuple[Array, Array]:
    """Return Σ r_x r_y over the rows of a group, and its covariance (x, y, x, y) if r_x and r_y are independent."""
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
    """Return moments and σ² of the clients of a group."""
    if group == [-1]:
        return known.moments.sum(axis=0, keepdims=True), np.array([known.deviation**2])
    return known.moments[group], known.deviations[group] ** 2


def _mechanism_test(known: NoisyMoments, x: str, given: frozenset[str]) -> tuple[float, float]:
    """Test ℧ ⫫ x | Z: with one regression for all clients, every client's residuals are uncorrelated with 1 and Z.

    Without Z, the means of all columns of x are compared, and thus its spread; with Z, sums of squared residuals.
    """
    if len(known.moments) == 1:
        return 0.0, 1.0
    z = concatenate_columns(known.predictors, given)
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
        if not given and len(known.predictors[x]) > 1:
            every = _client_scores(known, known.predictors[x], base)
            parts.append(_score_test(*every, np.ones(len(known.predictors[x]), dtype=np.bool_))[1])
        elif given:
            parts.append(_variance_test(known, x, base))
    return statistic, _combine(parts)


def _client_scores(known: NoisyMoments, target: Indices, base: Indices) -> tuple[Array, Array]:
    """Return Σ r_x (1, Z) per client with the pooled regression, (clients, columns), and their covariance.

    The scores add up to zero, since the regression is theirs; the covariance accounts for that.
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
    """Return the covariance (clients, n, clients, n) of g_k − H_k Σ_j g_j for independent g_k."""
    clients, width = own.shape[:2]
    whole = own.sum(axis=0)
    cross = own[:, None] @ part[None].transpose(0, 1, 3, 2)  # V_k H_l'
    found = part[:, None] @ whole @ part[None].transpose(0, 1, 3, 2) - cross - cross.transpose(1, 0, 3, 2)
    found[np.arange(clients), np.arange(clients)] += own
    return np.asarray(found.transpose(0, 2, 1, 3).reshape(clients, width, clients, width))


def _score_test(scores: Array, covariance: Array, chosen: npt.NDArray[np.bool_]) -> tuple[float, float]:
    """Return χ² and p-value of the chosen scores of all clients but the last, which the others determine."""
    values = scores[:-1, chosen].ravel()
    block = covariance[:-1, chosen][:, :, :-1][..., chosen].reshape(len(values), len(values))
    return _chi_square_test(values, block)


def _variance_test(known: NoisyMoments, x: str, base: Indices) -> float:
    """Test whether Σ r² is the same multiple of the rows at all clients; r² has variance (κ − 1) s² for kurtosis κ."""
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
    """Return κ of the noise r in x = m(Z) + r, one standard error above its estimate; at least 3, as for a Gaussian.

    Var(x² | Z) = 4 m² s + Var(r²) on average, for centred x and symmetric r; x² is a column if the plan's degree is 2
    or more. Otherwise the noise is taken for Gaussian.
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


def describe_noise(known: NoisyMoments) -> Iterator[str]:
    """Yield notes on what the noise leaves to be found in this study."""
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
            f"the noise hides correlations of {TARGET_CORRELATION:g} in this study: an absent edge says little; have "
            "more rows, fewer variables, a larger epsilon, or noise that clients add together"
        )
    if (seen := known.count_resolved(rows, known.deviation)) < noise.degree:
        lost = ("all of the values", "squares and cubes", "cubes")[seen]
        yield (
            f"{lost} of the conditions are smaller than the noise: nonlinear effects of theirs may be taken for a link "
            "between two variables that have none"
        )
    if float(np.trace(known.moments.sum(axis=0)[1:, 1:])) > MAX_MEAN_SQUARED_NORM * rows:
        yield (
            "most rows lie far from the plan's locations, and their features were shortened: declare larger scales, or "
            "check the units"
        )


def detectable_correlation(known: NoisyMoments, conditions: int) -> float:
    """Return the partial correlation that is found nine times in ten: the median over neighbouring variables."""
    names = list(known.spans)
    errors = []
    for start in range(min(len(names), 20)):
        x, y, *others = (names[(start + step) % len(names)] for step in range(2 + conditions))
        z = concatenate_columns(known.predictors, others)
        spread, sizes = 0.0, np.zeros(2)
        for group in _regression_groups(known, len(known.moments) > 1):
            first, second = known.targets(x)[:1], known.targets(y)[:1]
            if len(first) and len(second):
                spread += float(_cross_residuals(known, group, first, second, z)[1].ravel()[0])
                sizes += [float(_cross_residuals(known, group, one, one, z)[0][0, 0]) for one in (first, second)]
        errors.append(np.sqrt(spread / sizes.prod()) if sizes.min() > 0 else np.inf)
    return POWER_90_DISTANCE * float(np.median(errors))


def _solve(inner: Array, cross: Array) -> Array:
    """Return inner⁻¹ cross for a noisy matrix that may be indefinite, but is not singular with probability one."""
    if not len(inner):
        return np.zeros_like(cross)
    return np.asarray(np.linalg.lstsq(inner, cross, rcond=_RELATIVE_TOLERANCE)[0])


def _positive_part(matrix: Array) -> Array:
    """Return the matrix without its negative directions, which are due to noise."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)


def _select_chi_square(cross: Array, covariance: Array, chosen: npt.NDArray[np.bool_]) -> tuple[float, float]:
    """Return statistic and p-value of the chosen entries."""
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
