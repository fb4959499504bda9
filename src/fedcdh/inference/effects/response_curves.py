"""Additive curved responses: how the outcome changes along the values of a cause, with all else equal.

The outcome is regressed on all features of the cause and of the adjustment set (value, square and the functions of the
feature family), with an intercept for every client. The response from a to b is (φ(b) − φ(a))ᵀβ, a contrast of
coefficients, so that it has the same estimates and intervals as a slope.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import stats

from fedcdh._runtime.array_types import Array
from fedcdh.data.table import to_table
from fedcdh.inference.effects.client_slopes import ClientScatters, Design, Slopes
from fedcdh.inference.effects.pooling import PooledEffect
from fedcdh.summaries.aggregation import Aggregate, Cohort
from fedcdh.summaries.encoder import GRID, Encoder
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.variables import Categorical

CURVE_POINTS = 41
"""Values of the cause at which a curve is given."""
CURVE_REACH = 2.0
"""Standard deviations around the mean that a curve covers; summaries do not say where rows end."""
MAX_LINEAR_P_VALUE = 0.01
"""Below this p-value a straight line is not enough, and a note says so."""


@dataclass(frozen=True)
class Curve:
    """A response with pointwise intervals; `ResponseCurve` in a result.

    Attributes
    ----------
    cause_values, differences, low, high : array
        The points.
    reference : float
        Value of the cause where the difference is 0.
    p_value : float or None
        P-value of curvature.

    Examples
    --------
    >>> Curve(np.zeros(1), np.zeros(1), np.zeros(1), np.zeros(1), 0.0, None).reference
    0.0
    """

    cause_values: Array
    differences: Array
    low: Array
    high: Array
    reference: float
    p_value: float | None


@dataclass(frozen=True, eq=False)
class FeatureScatters:
    """The scatter of all features of some variables, and of an outcome.

    Attributes
    ----------
    plan : StudyPlan
        The plan of the study.
    scatters : ClientScatters
        The scatter of their columns.
    predictors : tuple of str
        The cause, and the adjustment set.
    outcome : str
        The outcome.
    centre, spread : float
        Mean and standard deviation of the cause over all rows.

    Examples
    --------
    >>> import fedcdh
    >>> cohort = fedcdh.discover(fedcdh.demo.hospital_study().columns(), domain="hospital").cohort
    >>> FeatureScatters.of(cohort, ("age",), "bmi").curve("age", None).differences.shape
    (41,)
    """

    plan: StudyPlan
    scatters: ClientScatters
    predictors: tuple[str, ...]
    outcome: str
    centre: float
    spread: float

    @classmethod
    def of(cls, cohort: Cohort | Aggregate, predictors: Sequence[str], outcome: str) -> FeatureScatters:
        """Collect the scatter matrices.

        Parameters
        ----------
        cohort : Cohort or Aggregate
            The summaries.
        predictors : sequence of str
            The cause, and the adjustment set.
        outcome : str
            The outcome.

        Returns
        -------
        FeatureScatters
            The scatter matrices.
        """
        scatters = ClientScatters.of(cohort, (*predictors, outcome), all_features=True)
        start, total = cohort.plan.layout.spans[predictors[0]].start, cohort.total
        column, variable = slice(start, start + 1), scatters.variables[predictors[0]]
        unit, location = scatters.units[predictors[0]], getattr(variable, "location", 0.0)
        spread = float(np.sqrt(max(total.scatter(column, column)[0, 0], 0.0) / total.rows))
        return cls(
            cohort.plan,
            scatters,
            tuple(predictors),
            outcome,
            location + unit * float(total.means[start]),
            unit * spread,
        )

    def contrast(self, cause: str, before: float, after: float) -> Array:
        """Return the difference of the cause's features between two values.

        Parameters
        ----------
        cause : str
            The cause.
        before, after : float
            Two values.

        Returns
        -------
        array
            The difference, for each feature.
        """
        low, high = self._features(cause, np.array([before, after], dtype=np.float64)).T
        return np.asarray(high - low)

    def slopes(self, contrast: Array, outcome_level: str | None) -> Slopes:
        """Return the response at every client, and the common one.

        Parameters
        ----------
        contrast : array
            Difference of the cause's features.
        outcome_level : str or None
            Level of a categorical outcome.

        Returns
        -------
        Slopes
            In the units of the outcome.
        """
        return self.scatters.slopes(self._design(contrast, outcome_level))

    def curve(self, cause: str, outcome_level: str | None) -> Curve | None:
        """Return the common response around the mean of the cause.

        Parameters
        ----------
        cause : str
            The cause.
        outcome_level : str or None
            Level of a categorical outcome.

        Returns
        -------
        Curve or None
            None if no rows determine it.
        """
        values = self.centre + self.spread * np.linspace(-CURVE_REACH, CURVE_REACH, CURVE_POINTS)
        if not self.spread > 0:
            return None
        features = self._features(cause, values)
        middle = CURVE_POINTS // 2
        contrasts = (features - features[:, [middle]]).T
        design = self._design(contrasts[0], outcome_level)
        rest = len(design.columns) - contrasts.shape[1]
        padded = np.hstack([contrasts, np.zeros((len(contrasts), rest))])
        found = self.scatters.common_contrasts(design, padded)
        if found is None:
            return None
        points = [PooledEffect.of(value, variance, freedom) for value, variance, freedom in zip(*found, strict=True)]
        low, high = (np.array([one.interval[end] for one in points]) for end in (0, 1))
        differences = np.array([one.value for one in points])
        return Curve(values, differences, low, high, float(values[middle]), self._curvature(design, contrasts.shape[1]))

    def _design(self, contrast: Array, outcome_level: str | None) -> Design:
        design = self.scatters.design(self.predictors[0], self.outcome, self.predictors[1:], None, outcome_level)
        own = self.scatters.places[self.predictors[0]]
        columns = (*own, *design.columns[1:])
        weights = (*contrast.tolist(), *([0.0] * (len(columns) - len(own))))
        return replace(design, columns=columns, contrast=weights, unit=self.scatters.units[self.outcome])

    def _curvature(self, design: Design, own: int) -> float | None:
        """Return the p-value of all features of the cause but its value."""
        straight = replace(design, columns=(design.columns[0], *design.columns[own:]))
        (left, free), (more, fewer) = (self.scatters.residual_squares(one) for one in (design, straight))
        extra = free - fewer
        if extra >= 0 or free < 1 or left <= 0:
            return None
        ratio = (more - left) / -extra / (left / free) * design.rows_share
        return float(stats.f.sf(ratio, -extra, free * design.rows_share))

    def _features(self, cause: str, values: Array) -> Array:
        """Return the features of some values of the cause, (features, values)."""
        variable = next(one for one in self.plan.variables if one.name == cause)
        if isinstance(variable, Categorical):
            return np.zeros((0, len(values)))
        alone = StudyPlan((replace(variable, recipe=None),), self.plan.clients, self.plan.family, self.plan.clip)
        return np.asarray(Encoder(alone, self.plan.clients[0])(to_table({cause: values}))[1:] / GRID)
