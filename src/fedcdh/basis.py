"""One set of coordinates for all regressions: each variable's features, made orthonormal over all rows of the study.

Regressions do not care which basis spans a variable's functions, so we take the one in which linear algebra is safe:
the pooled covariance of every variable's block is the identity. Features that say nothing new (all nonlinear features
of a binary variable, one level of each categorical one, everything of a constant) drop out here, once, and the number
of columns that are left is the honest number of degrees of freedom.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from fedcdh.errors import SettingsError
from fedcdh.partial import fitted, partial, pillai
from fedcdh.plan import Categorical
from fedcdh.summary import CONSTANT, Aggregate, Cohort

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

NEW_VARIANCE = 1e-6
"""A feature is kept if at least this share of its variance is not explained by the features before it. The rounding of
features to the grid leaves less, 5e-7 in the square of a normal variable."""
CURVED = 0.05
"""Level at which a variable counts as having nonlinear effects; `benchmarks.bench_choices` shows what others do."""


@dataclass(frozen=True, eq=False)
class Basis:
    """Second moments per client in orthonormal coordinates."""

    spans: dict[str, Indices]  # the columns of each variable
    targets: dict[str, Indices]  # those whose mean is tested: the linear one, or all of a categorical variable
    predictors: dict[str, Indices]  # those that regressions use: all, or the linear one where it says as much
    squares: dict[str, tuple[float, float]]  # e₁² = const + b e₁ + c e₂ of a continuous variable's first two columns
    rows: Array  # per client
    scatter: Array  # (clients, columns, columns): Σ over the client's rows, about the *client's* mean; or one for all
    means: Array  # (clients, columns): the client's mean; pooled means are zero
    levels: dict[str, Array]  # of a categorical variable, its standardised indicators in terms of its columns
    change: Array  # (columns, columns of the plan): from features, less their pooled means, to these coordinates

    @classmethod
    def of(cls, cohort: Cohort | Aggregate) -> Basis:
        if cohort.total.noise:
            raise SettingsError(
                "these sums have noise, which regressions would take for dependence; use independence.noisy, or "
                "discover_from, which chooses it by itself"
            )
        rows = cohort.total.rows
        centre, total = cohort.total.centred()
        covariance = total / rows
        directions: list[Array] = []
        spans, targets, squares, levels = {}, {}, {}, {}
        for variable in cohort.plan.variables:
            columns = np.arange(len(total))[cohort.plan.spans()[variable.name]]
            found = _orthonormal(covariance[np.ix_(columns, columns)])
            place = np.arange(len(directions), len(directions) + len(found))
            spans[variable.name] = place
            categorical = isinstance(variable, Categorical)
            targets[variable.name] = place if categorical else place[:1]
            squares[variable.name] = (0.0, 0.0) if categorical else _square(found, covariance, centre, columns)
            if categorical:
                levels[variable.name] = _indicators(found, covariance[np.ix_(columns, columns)])
            for direction in found:
                directions.append(np.zeros(len(total)))
                directions[-1][columns] = direction
        change = np.array(directions).reshape(len(directions), len(total))
        sizes = np.array(cohort.client_rows, dtype=np.float64)
        client_means, scatter = cohort.centred()
        within = change @ scatter @ change.T
        predictors = _predictors(within.sum(axis=0), spans, targets, rows - len(sizes))
        means = (client_means - centre) @ change.T
        return cls(spans, targets, predictors, squares, sizes, within, means, levels, change)

    def can_regress(self, conditions: int) -> npt.NDArray[np.bool_]:
        """Which clients have rows enough for a regression of their own on so many columns: two rows each, and a few."""
        return np.asarray(self.rows - 1 >= 2 * conditions + 5)

    @property
    def total_rows(self) -> float:
        return float(self.rows.sum())

    @property
    def knows_clients(self) -> bool:
        """Whether the scatter of every client is known, or only that of all clients together."""
        return len(self.scatter) == len(self.rows)

    @cached_property
    def moments(self) -> Array:
        """Σ of products of [1, coordinates], per client where clients are known apart, else of all in one."""
        between = self.rows[:, None, None] * self.means[:, :, None] * self.means[:, None, :]
        sums = self.rows[:, None] * self.means
        if not self.knows_clients:
            between, sums = between.sum(axis=0, keepdims=True), sums.sum(axis=0, keepdims=True)
        rows = self.rows if self.knows_clients else np.array([self.total_rows])
        found = np.empty((len(rows), 1 + sums.shape[1], 1 + sums.shape[1]))
        found[:, 0, 0], found[:, 0, 1:], found[:, 1:, 0] = rows, sums, sums
        found[:, 1:, 1:] = self.scatter + between
        return found

    @cached_property
    def total(self) -> Array:
        """Scatter of all rows about the pooled mean: within clients plus between their means."""
        return np.asarray(self.within + (self.means.T * self.rows) @ self.means)

    @cached_property
    def within(self) -> Array:
        """Scatter of all rows, each about its client's mean."""
        return np.asarray(self.scatter.sum(axis=0))


def _orthonormal(covariance: Array) -> list[Array]:
    """Gram-Schmidt in the given order, in the geometry of the covariance; twice, which is enough for full accuracy."""
    found: list[Array] = []
    for j, variance in enumerate(np.diag(covariance)):
        if variance <= CONSTANT:
            continue
        direction = np.zeros(len(covariance))
        direction[j] = 1 / np.sqrt(variance)
        for _ in range(2):
            for earlier in found:
                direction = direction - (earlier @ covariance @ direction) * earlier
        if (left := direction @ covariance @ direction) > NEW_VARIANCE:
            found.append(direction / np.sqrt(left))
    return found


def _indicators(found: list[Array], covariance: Array) -> Array:
    """Every level's indicator, standardised, in the basis found: (levels that vary, directions)."""
    deviation = np.sqrt(np.diag(covariance))
    varying = deviation**2 > CONSTANT
    return np.asarray(
        (covariance @ np.array(found).T)[varying] / deviation[varying, None] if found else np.zeros((0, 0))
    )


def _predictors(
    within: Array, spans: dict[str, Indices], targets: dict[str, Indices], freedom: float
) -> dict[str, Indices]:
    """A variable's nonlinear columns stay only if they help to predict the mean of some other variable.

    Where all is linear, they would cost every regression degrees of freedom for nothing. The F tests, one for each
    other variable, are held to a joint level of `CURVED`; curvature too small to be seen here is too small to matter.
    """
    chosen = {}
    for name, columns in spans.items():
        bends = np.setdiff1d(columns, targets[name])
        others = np.array([c for other, place in targets.items() if other != name for c in place], dtype=np.intp)
        if not len(bends) or not len(others):
            chosen[name] = columns
            continue
        ask = np.concatenate([others, bends])[None]
        left = partial(within, ask, targets[name][None])[0]
        explained = fitted(left, len(others)).diagonal()
        _, p_values = pillai(
            explained[:, None, None], left.diagonal()[: len(others), None, None], len(bends), freedom - len(columns)
        )
        chosen[name] = columns if p_values.min() * len(others) < CURVED else targets[name]
    return chosen


def _square(found: list[Array], covariance: Array, centre: Array, columns: Indices) -> tuple[float, float]:
    """The coefficients of e₁² on e₁ and e₂, where e₁ is the standardised linear feature l and s = l² is the second.

    e₁² = (l − l̄)²/σ² = (s − 2 l̄ l)/σ² + const, and s = cov(s, e₁) e₁ + cov(s, e₂) e₂ + const by orthonormality.
    """
    if not found:
        return 0.0, 0.0
    deviation = np.sqrt(covariance[columns[0], columns[0]])
    on_basis = [covariance[columns[1], columns] @ direction for direction in found[:2]]
    second = on_basis[1] if len(found) > 1 and found[1][1] else 0.0
    return float((on_basis[0] - 2 * centre[columns[0]] * deviation) / deviation**2), float(second / deviation**2)
