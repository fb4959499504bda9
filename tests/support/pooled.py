"""Every test and measure of the package once more, from the pooled rows and by plain least squares.

Written from the docstrings, without the package's moments and block algebra: rows in, `np.linalg.lstsq` and residuals,
p-values from `scipy.stats`. Only what a feature *is* comes from the package, and how large its jitter is: where a
client's features are nearly collinear, one part in a billion is seen in the fourth digit of a p-value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import stats

from fedcdh.inference.batched_regression import JITTER
from fedcdh.protocols import DOMAIN, Query
from fedcdh.summaries.features import Hermite
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.variables import Categorical

GRID = 2**18
Centring = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True, eq=False)
class Rows:
    """The features of all rows, rounded to the grid, and the client of each row."""

    plan: StudyPlan
    features: Mapping[str, np.ndarray]  # variable → rows × columns
    client: np.ndarray

    @classmethod
    def of(cls, tables: Mapping[str, Mapping[str, np.ndarray]], plan: StudyPlan) -> Rows:
        sizes = [len(next(iter(table.values()))) for table in tables.values()]
        features = {
            variable.name: np.concatenate(
                [_features(variable, plan, table[variable.name]) for table in tables.values()]
            )
            for variable in plan.variables
        }
        return cls(plan, features, np.repeat(list(tables), sizes))

    @property
    def count(self) -> int:
        return len(self.client)

    @cached_property
    def clients(self) -> list[np.ndarray]:
        """The positions of each client's rows, in the order of the clients' names."""
        return [np.flatnonzero(self.client == name) for name in self.plan.clients]

    @cached_property
    def categorical(self) -> set[str]:
        return {variable.name for variable in self.plan.variables if isinstance(variable, Categorical)}

    @cached_property
    def coordinates(self) -> dict[str, np.ndarray]:
        """Each variable's centred features without those that say nothing new, orthonormal over all rows."""
        return {name: _orthonormal(features) for name, features in self.features.items()}

    def means_of(self, name: str) -> np.ndarray:
        """The columns whose mean is tested."""
        return self.coordinates[name] if name in self.categorical else self.coordinates[name][:, :1]

    @cached_property
    def predictors(self) -> dict[str, np.ndarray]:
        """The columns that regressions use: all, or the linear one where the others help to predict nothing."""
        chosen = {}
        for name, columns in self.coordinates.items():
            linear, bends = self.means_of(name), columns[:, self.means_of(name).shape[1] :]
            others = [self.means_of(other) for other in self.coordinates if other != name]
            targets = np.concatenate([np.zeros((self.count, 0)), *others], axis=1)
            if not bends.shape[1] or not targets.shape[1]:
                chosen[name] = columns
                continue
            inside = self.inside_clients
            jitter = self.jitter(np.arange(self.count), inside)
            left = residuals(inside(np.concatenate([targets, bends], axis=1)), inside(linear), jitter)
            small, bends = left[:, : targets.shape[1]], left[:, targets.shape[1] :]
            large = residuals(small, bends, jitter_of(bends))
            freedom = self.count - len(self.clients) - columns.shape[1]
            p_values = [f_test(small[:, j], large[:, j], bends.shape[1], freedom) for j in range(targets.shape[1])]
            chosen[name] = columns if min(p_values) * len(p_values) < 0.05 else linear
        return chosen

    def inside_clients(self, columns: np.ndarray) -> np.ndarray:
        """Each row about its client's mean."""
        out = columns.astype(float)
        for place in self.clients:
            out[place] -= columns[place].mean(axis=0)
        return out

    def about_mean(self, columns: np.ndarray) -> np.ndarray:
        return columns - columns.mean(axis=0)

    def jitter(self, place: np.ndarray, centred: Centring) -> float:
        """The jitter of regressions on these rows: a share of the mean scatter of all coordinates."""
        return jitter_of(centred(self.side_by_side(self.coordinates, self.coordinates))[place])

    def side_by_side(self, names: Iterable[str], of: Mapping[str, np.ndarray] | None = None) -> np.ndarray:
        of = self.predictors if of is None else of
        return np.concatenate([np.zeros((self.count, 0)), *(of[name] for name in sorted(names))], axis=1)

    def kernel_features(self, domain: np.ndarray) -> dict[str, np.ndarray]:
        """Centred features of the kernels, weights included; `domain` has one row per client."""
        weighted = {
            name: columns if name in self.categorical else columns[:, 2:] * self.plan.family.weights
            for name, columns in self.features.items()
        }
        weighted[DOMAIN] = domain[[self.plan.clients.index(name) for name in self.client]]
        return {name: columns - columns.mean(axis=0) for name, columns in weighted.items()}


def _features(variable: object, plan: StudyPlan, column: np.ndarray) -> np.ndarray:
    if isinstance(variable, Categorical):
        return np.array([[float(str(value) == level) for level in variable.levels] for value in column.tolist()])
    z = np.clip((column - variable.location) / variable.scale, -plan.clip, plan.clip)
    linear = z / plan.clip
    inside = z
    if isinstance(plan.family, Hermite):
        reach = plan.clip * variable.scale
        clipped = np.clip(column, variable.location - reach, variable.location + reach)
        inside = np.arcsinh((clipped - variable.centre) / variable.spread)
    return np.rint(np.column_stack([linear, linear**2, plan.family(inside)]) * GRID) / GRID


def _orthonormal(features: np.ndarray) -> np.ndarray:
    kept: list[np.ndarray] = []
    for column in (features - features.mean(axis=0)).T:
        if (variance := column.var()) <= 1e-10:
            continue
        scaled = column / np.sqrt(variance)
        left = residuals(scaled[:, None], np.column_stack(kept))[:, 0] if kept else scaled
        if left.var() > 1e-6:
            kept.append(left / left.std())
    return np.column_stack(kept) if kept else np.zeros((len(features), 0))


def residuals(targets: np.ndarray, predictors: np.ndarray, ridge: float = 0.0) -> np.ndarray:
    """Residuals of min ‖Y − ΦB‖² + ridge ‖B‖², as least squares with rows added, which are returned as well.

    Their squares add up to YᵀY − YᵀΦ (ΦᵀΦ + ridge I)⁻¹ ΦᵀY.
    """
    width = predictors.shape[1]
    if not width:
        return targets
    more = np.concatenate([predictors, np.sqrt(ridge) * np.eye(width)]) if ridge else predictors
    wanted = np.concatenate([targets, np.zeros((width, targets.shape[1]))]) if ridge else targets
    return wanted - more @ np.linalg.lstsq(more, wanted, rcond=None)[0]


def jitter_of(columns: np.ndarray) -> float:
    return JITTER * float((columns**2).sum()) / max(columns.shape[1], 1)


def ridge_residuals(targets: np.ndarray, predictors: np.ndarray, ridge: float) -> np.ndarray:
    """Residuals of min ‖Y − ΦB‖²/n + ridge ‖B‖² at the rows themselves."""
    return residuals(targets, predictors, len(targets) * ridge)[: len(targets)]


def ridge_coefficients(targets: np.ndarray, predictors: np.ndarray, ridge: float) -> np.ndarray:
    width = predictors.shape[1]
    more = np.concatenate([predictors, np.sqrt(len(predictors) * ridge) * np.eye(width)])
    return np.linalg.lstsq(more, np.concatenate([targets, np.zeros((width, targets.shape[1]))]), rcond=None)[0]


def f_test(small: np.ndarray, large: np.ndarray, extra: int, freedom: float) -> float:
    """The textbook's F test from the residuals of two nested models of one target."""
    if freedom <= 0:
        return 1.0
    before, after = (small**2).sum(), (large**2).sum()
    return float(stats.f.sf((before - after) / extra / (after / freedom), extra, freedom))


def pillai(small: np.ndarray, large: np.ndarray, extra: int, freedom: float) -> float:
    """Pillai's trace from the residual scatters of two nested models of several targets."""
    width = small.shape[1]
    if width == 1:
        return f_test(small, large, extra, freedom)
    before, after = small.T @ small, large.T @ large
    trace = width - np.trace(np.linalg.solve(before, after))
    rank = min(width, extra)
    above, below = abs(width - extra) + rank, freedom - width + rank
    if below <= 0:
        return 1.0
    return float(stats.f.sf(trace / (rank - trace) * below / above, rank * above, rank * below))


def combine(p_values: list[float]) -> float:
    held = [max(p, 1e-300) if p <= 0.5 else 0.1 + 0.8 * p for p in p_values]
    return float(stats.cauchy.sf(np.mean(stats.cauchy.isf(held))))


# The regression test


def regression_p(rows: Rows, question: Query) -> float:
    if DOMAIN in question.pair:
        (name,) = question.pair - {DOMAIN}
        return mechanism_p(rows, name, question.given)
    return pair_p(rows, question)


def pair_p(rows: Rows, question: Query) -> float:
    given = rows.side_by_side(question.given - {DOMAIN})
    x, y = rows.predictors[question.x], rows.predictors[question.y]
    if not x.shape[1] or not y.shape[1]:
        return 1.0
    mean_x, mean_y = rows.means_of(question.x).shape[1], rows.means_of(question.y).shape[1]
    strata = _strata(rows, given.shape[1]) if DOMAIN in question.given else [(np.arange(rows.count), rows.count - 1)]
    centred = rows.inside_clients if DOMAIN in question.given else rows.about_mean
    x, y, given = centred(x), centred(y), centred(given)
    left = []
    for place, freedom in strata:
        jitter = rows.jitter(place, centred)
        left_x, left_y = (residuals(side[place], given[place], jitter) for side in (x, y))
        left.append((left_x, left_y, freedom - given.shape[1]))
    parts = [
        _predict([(x[:, :mean_x], y, freedom) for x, y, freedom in left]),
        _predict([(y[:, :mean_y], x, freedom) for x, y, freedom in left]),
        combine(
            [
                _predict([(x[:, :mean_x], y[:, :mean_y], freedom) for x, y, freedom in left]),
                _predict([(y[:, :mean_y], x[:, :mean_x], freedom) for x, y, freedom in left]),
            ]
        ),
    ]
    if DOMAIN in question.given and len(left) > 1 and mean_x == mean_y == 1:
        parts.append(_slopes([(x[:, 0], y[:, 0], freedom) for x, y, freedom in left]))
    return combine(parts)


def _strata(rows: Rows, conditions: int) -> list[tuple[np.ndarray, int]]:
    large = [place for place in rows.clients if len(place) - 1 >= 2 * conditions + 5]
    small = [place for place in rows.clients if len(place) - 1 < 2 * conditions + 5]
    strata = [(place, len(place) - 1) for place in large]
    freedom = sum(len(place) - 1 for place in small)
    return [*strata, (np.concatenate(small), freedom)] if small and freedom > conditions else strata


def _predict(strata: list[tuple[np.ndarray, np.ndarray, int]]) -> float:
    targets, predictors, freedoms = [], [], 0
    for target, predictor, freedom in strata:
        size, width = (target**2).sum(), target.shape[1]
        if size <= 1e-7 * width * (freedom + 1) or freedom <= 0:
            continue
        weight = np.sqrt(freedom / size) if width == 1 else 1.0
        targets.append(weight * target)
        predictors.append(weight * predictor)
        freedoms += freedom
    if not targets:
        return 1.0
    target, predictor = np.concatenate(targets), np.concatenate(predictors)
    extra = predictor.shape[1]
    return pillai(target, residuals(target, predictor, jitter_of(predictor)), extra, freedoms - extra)


def _slopes(strata: list[tuple[np.ndarray, np.ndarray, int]]) -> float:
    usable = [
        (np.clip(x @ y / np.sqrt(x @ x * (y @ y)), 1e-12 - 1, 1 - 1e-12), freedom)
        for x, y, freedom in strata
        if freedom > 3 and min(x @ x, y @ y) > 1e-7 * (freedom + 1)
    ]
    total = sum(np.arctanh(correlation) ** 2 * (freedom - 2) for correlation, freedom in usable)
    return float(stats.chi2.sf(total, max(len(usable), 1)))


def mechanism_p(rows: Rows, name: str, given: frozenset[str]) -> float:
    target = rows.means_of(name)
    if not target.shape[1]:
        return 1.0
    linear = rows.side_by_side(given, {other: rows.means_of(other) for other in given})
    bends = rows.side_by_side(
        given, {other: rows.predictors[other][:, rows.means_of(other).shape[1] :] for other in given}
    )
    both = np.concatenate([linear, bends], axis=1)
    everyone, conditions, clients = np.arange(rows.count), both.shape[1], len(rows.clients)
    common, shifted = (
        residuals(centred(target), centred(both), rows.jitter(everyone, centred))
        for centred in (rows.about_mean, rows.inside_clients)
    )
    if (common**2).sum() <= 1e-7 * target.shape[1] * rows.count:
        return 1.0
    parts = [pillai(common, shifted, clients - 1, rows.count - clients - conditions)]
    own = [place for place in rows.clients if len(place) - 1 >= 2 * conditions + 5]
    if conditions and len(own) > 1:
        parts += _chow(rows, own, target, linear, bends)
    if rows.coordinates[name].shape[1] > 1 and target.shape[1] == 1 and len(own) > 1:
        everything = rows.side_by_side(given, rows.coordinates)
        parts.append(_bartlett(rows, own, name, target, both, everything))
    return combine(parts)


def _chow(rows: Rows, own: list[np.ndarray], target: np.ndarray, linear: np.ndarray, bends: np.ndarray) -> list[float]:
    inside = rows.inside_clients
    target, linear, bends = inside(target), inside(linear), inside(bends)
    both = np.concatenate([linear, bends], axis=1)
    places, clients = np.concatenate(own), len(own)
    freedom = len(places) - clients - both.shape[1]
    means = residuals(target[places], both[places], rows.jitter(places, inside))

    def at_each(targets: np.ndarray, predictors: np.ndarray) -> np.ndarray:
        """Residuals of one regression per client."""
        return np.concatenate(
            [residuals(targets[place], predictors[place], rows.jitter(place, inside)) for place in own]
        )

    left = at_each(np.concatenate([target, bends], axis=1), linear)  # Frisch, Waugh and Lovell: bends are common
    left_target, left_bends = left[:, : target.shape[1]], left[:, target.shape[1] :]
    with_slopes = residuals(left_target, left_bends, jitter_of(left_bends))
    more = (clients - 1) * linear.shape[1]
    found = [pillai(means, with_slopes, more, freedom - more)]
    if bends.shape[1]:
        most = (clients - 1) * both.shape[1]
        found.append(pillai(means, at_each(target, both), most, freedom - most))
    return found


def _bartlett(
    rows: Rows, own: list[np.ndarray], name: str, target: np.ndarray, given: np.ndarray, everything: np.ndarray
) -> float:
    target, given = rows.inside_clients(target), rows.inside_clients(given)
    variances, freedoms = [], []
    for place in own:
        left = residuals(target[place], given[place], rows.jitter(place, rows.inside_clients))
        freedom, size = len(place) - 1 - given.shape[1], float((left**2).sum())
        if freedom > 2 and size > 1e-7 * (freedom + 1):
            variances.append(size / freedom)
            freedoms.append(freedom)
    if len(variances) < 2:
        return 1.0
    v, f = np.array(variances), np.array(freedoms)
    spread = f.sum() * np.log(f @ v / f.sum()) - f @ np.log(v)
    correction = 1 + ((1 / f).sum() - 1 / f.sum()) / (3 * (len(f) - 1))
    return float(stats.chi2.sf(spread / (correction * _heaviness(rows, name, everything)), len(f) - 1))


def _squared(rows: Rows, name: str) -> np.ndarray:
    """((l − mean)/σ)² up to a constant, for the linear feature l."""
    linear, square = rows.features[name][:, 0], rows.features[name][:, 1]
    return (square - 2 * linear.mean() * linear) / linear.var()


def _heaviness(rows: Rows, name: str, given: np.ndarray) -> float:
    squared = _squared(rows, name)
    freedom = max(rows.count - 1 - given.shape[1], 1)
    jitter = rows.jitter(np.arange(rows.count), rows.about_mean)
    values = rows.about_mean(np.column_stack([rows.coordinates[name][:, 0], squared]))
    noise, about = (residuals(values, rows.about_mean(given), jitter) ** 2).sum(axis=0) / freedom
    noise = max(noise, 1e-7)
    about_high = about * (1 + np.sqrt(10 / rows.count))
    return max((about_high - 4 * noise * max(1 - noise, 0.0)) / (2 * noise**2), 1.0)


# The kernel tests


def gamma_p(cross: np.ndarray, of_x: np.ndarray, of_y: np.ndarray, count: int) -> float:
    mean = np.trace(of_x) * np.trace(of_y)
    variance = 2 * (of_x**2).sum() * (of_y**2).sum()
    return float(stats.gamma.sf(count * (cross**2).sum(), mean**2 / variance, scale=variance / mean))


def kernel_p(x: np.ndarray, y: np.ndarray, z: np.ndarray, ridge: float) -> float:
    """Theorems 4 and 5 for given feature rows of Ẍ, Y and Z: residual features, then their covariances."""
    count = len(x)
    left_x, left_y = ridge_residuals(x, z, ridge), ridge_residuals(y, z, ridge)
    return gamma_p(x.T @ left_y / count, x.T @ left_x / count, y.T @ left_y / count, count)


def paper_p(rows: Rows, question: Query, domain: np.ndarray, ridge: float = 1e-10) -> float:
    """FCIT and FUIT as printed: the features of several variables are added up (Eqs. 40-43)."""
    features = rows.kernel_features(domain)
    width = max(columns.shape[1] for columns in features.values())
    padded = {name: np.pad(columns, ((0, 0), (0, width - columns.shape[1]))) for name, columns in features.items()}
    z = sum((padded[name] for name in question.given), np.zeros((rows.count, width)))
    return kernel_p(padded[question.x] + z, padded[question.y], z, ridge)


def concatenated_p(rows: Rows, question: Query) -> float:
    features = rows.kernel_features(np.eye(len(rows.clients)))
    z = rows.side_by_side(question.given, features)
    return kernel_p(np.concatenate([features[question.x], z], axis=1), features[question.y], z, 0.1 / rows.count)


def printed_change(rows: Rows, cause: str, effect: str, domain: np.ndarray, ridge: float = 1e-10) -> float:
    """Theorem 6 as printed, with the fitted features E[φ | ℧] written out row by row."""
    features = rows.kernel_features(domain)
    index = features[DOMAIN]

    def fitted(columns: np.ndarray) -> np.ndarray:
        return columns - ridge_residuals(columns, index, ridge)

    alone, other = fitted(features[cause]), fitted(features[effect])
    width = max(alone.shape[1], other.shape[1])
    joint = sum(np.pad(block, ((0, 0), (0, width - block.shape[1]))) for block in (alone, other))
    # every factor 1/n of C* = fittedᵀ fitted / n cancels
    return float(((alone.T @ joint) ** 2).sum() / ((alone**2).sum() * (joint**2).sum()))


def operator_change(rows: Rows, cause: str, effect: str, ridge: float = 0.1) -> float:
    """HSIC over clients of the means of φ(cause) and of the ridge regressions of φ(effect) on it."""
    x, y = (_leading(rows, name) for name in (cause, effect))
    means, mechanisms = [], []
    for place in rows.clients:
        inside_x, inside_y = x[place] - x[place].mean(axis=0), y[place] - y[place].mean(axis=0)
        slopes = ridge_coefficients(inside_y, inside_x, ridge)
        means.append(x[place].mean(axis=0))
        mechanisms.append(np.concatenate([y[place].mean(axis=0) - x[place].mean(axis=0) @ slopes, slopes.ravel()]))
    first, second = _gram(np.array(means)), _gram(np.array(mechanisms))
    return float(np.trace(first @ second) / np.sqrt(np.trace(first @ first) * np.trace(second @ second)))


def _leading(rows: Rows, name: str) -> np.ndarray:
    return rows.coordinates[name][:, : max(3, rows.means_of(name).shape[1])]


def _gram(points: np.ndarray) -> np.ndarray:
    count = len(points)
    distances = np.array([[((a - b) ** 2).sum() for b in points] for a in points])
    kernel = np.exp(-distances / np.median([distances[i, j] for i in range(count) for j in range(i)]))
    centre = np.eye(count) - 1 / count
    return centre @ kernel @ centre
