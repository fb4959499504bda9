"""Moments with noise for differential privacy, in coordinates in which the noise is the same in all directions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from fedcdh._runtime.array_types import Array, Indices
from fedcdh.errors import SettingsError
from fedcdh.summaries.aggregation import Aggregate, Cohort
from fedcdh.summaries.dp_parameters import CONSTANT_VARIANCE_RATIO, PRODUCT_STEPS
from fedcdh.summaries.features import bounded
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.variables import Categorical

MIN_SIGNAL_TO_NOISE = 4.0
"""A column is used if n times its variance under N(0, 1) is at least this multiple of σ; chosen on seeds below 1000."""


@dataclass(frozen=True, eq=False)
class NoisyMoments:
    """Moments per client in coordinates in which the noise is the same in all directions.

    The constant is divided by √3, as its noise is larger by that factor. The indicators of a categorical variable
    always add up to one; only directions orthogonal to their sum are kept.

    Attributes
    ----------
    plan : StudyPlan
        The plan, with its parameters of differential privacy.
    moments : array
        (clients, columns, columns); one matrix if only the sum of all clients is known.
    deviations : array
        The standard deviation σ of the noise per client.
    spans : dict from str to array
        The columns of each variable.

    Examples
    --------
    >>> import fedcdh
    >>> plan = fedcdh.StudyPlan((fedcdh.Continuous("age", 60, 15),), ("north",))
    >>> try:
    ...     NoisyMoments.of(fedcdh.add_up([fedcdh.summarize({"age": [50, 61]}, plan, "north")], plan))
    ... except fedcdh.FedCDHError as error:
    ...     print(str(error).split(";")[0])
    these summaries have no noise
    """

    plan: StudyPlan
    moments: Array
    deviations: Array
    spans: dict[str, Indices]

    @classmethod
    def of(cls, known: Cohort | Aggregate) -> NoisyMoments:
        """Make the moments of summaries with noise.

        Parameters
        ----------
        known : Cohort or Aggregate
            The summaries, or their sum.

        Returns
        -------
        NoisyMoments
            Their moments in the new coordinates.

        Raises
        ------
        SettingsError
            If the summaries have no noise.
        """
        plan = known.plan
        if plan.noise is None or not all(summary.noise for summary in known.summaries):
            raise SettingsError(
                "these summaries have no noise; expected summaries of a plan with differential privacy; use a test for "
                "exact sums, such as RegressionTest"
            )
        transform, spans = _isotropic_transform(plan)
        moments = transform @ known.moments @ transform.T
        deviations = np.sqrt([float(summary.noise) for summary in known.summaries]) / PRODUCT_STEPS
        return cls(plan, moments, deviations, spans)

    @cached_property
    def rows(self) -> Array:
        """Return the number of rows per client, as far as the noise allows."""
        return np.maximum(CONSTANT_VARIANCE_RATIO * self.moments[:, 0, 0], 1.0)

    @cached_property
    def deviation(self) -> float:
        """Return σ of the sum over clients."""
        return float(np.sqrt((self.deviations**2).sum()))

    def count_resolved(self, rows: float, deviation: float) -> int:
        """Return how many columns of a continuous variable are larger than the noise.

        Parameters
        ----------
        rows : float
            The number of rows.
        deviation : float
            The standard deviation of the noise.

        Returns
        -------
        int
            The number of columns, by degree.
        """
        degree = self.plan.noise.degree if self.plan.noise else 1
        sizes = rows * np.square(bounded.WEIGHTS[:degree]) / self.plan.layout.unit**2
        return int((sizes >= MIN_SIGNAL_TO_NOISE * deviation).sum())

    @cached_property
    def degree(self) -> int:
        """Return how many columns of a continuous variable are used: those larger than the noise, at least one."""
        return max(self.count_resolved(float(self.rows.sum()), self.deviation), 1)

    @cached_property
    def predictors(self) -> dict[str, Indices]:
        """Return the columns of each variable with which others are predicted."""
        return {name: span if self.is_categorical(name) else span[: self.degree] for name, span in self.spans.items()}

    def is_categorical(self, name: str) -> bool:
        """Return whether a variable is categorical.

        Parameters
        ----------
        name : str
            The variable.

        Returns
        -------
        bool
            True for a categorical variable.
        """
        return self.plan.kinds[name] == "categorical"

    def targets(self, name: str) -> Indices:
        """Return the columns whose mean is tested: the value, or all columns of a categorical variable.

        Parameters
        ----------
        name : str
            The variable.

        Returns
        -------
        array of int
            Positions of columns.
        """
        return self.spans[name] if self.is_categorical(name) else self.spans[name][:1]

    @cached_property
    def has_own_regression(self) -> npt.NDArray[np.bool_]:
        """Return which clients can have regressions of their own: all columns in use are larger than their noise."""
        pairs = zip(self.rows, self.deviations, strict=True)
        return np.array([self.count_resolved(rows, deviation) >= self.degree for rows, deviation in pairs])


def _isotropic_transform(plan: StudyPlan) -> tuple[Array, dict[str, Indices]]:
    """Return the transformation to coordinates with isotropic noise, and each variable's columns there."""
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
    """Return orthonormal directions whose entries add up to zero."""
    whole = np.linalg.qr(np.column_stack([np.ones(levels), np.eye(levels)[:, 1:]]))[0]
    return np.asarray(whole[:, 1:].T)
