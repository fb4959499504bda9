"""The layout of the moment matrix: the columns of each variable of a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from fedcdh.summaries.dp_parameters import DPParameters
from fedcdh.summaries.features import FeatureFamily, bounded
from fedcdh.summaries.variables import Categorical, Variable

POWER_COLUMNS = 2
"""Columns of a continuous variable before those of its family: the clipped value, which is the response in all
regressions, and its square, from which heavy tails are seen."""


@dataclass(frozen=True)
class FeatureLayout:
    """The columns of the moment matrix: which variable has which, and the unit of the values.

    A plan computes its layout once, as ``plan.layout``.

    Attributes
    ----------
    spans : mapping from str to slice
        Columns of each variable, in the order of the plan. Column 0 is the constant.
    unit : float
        Divisor of a continuous variable's first column, in scales: the clip, or the radius of the ball in a plan with
        noise.

    Examples
    --------
    >>> from fedcdh.summaries import Categorical, Continuous, StudyPlan
    >>> plan = StudyPlan((Continuous("age", 60, 15), Categorical("smoker", ("no", "yes"))), ("north", "south"))
    >>> plan.layout.spans["smoker"], plan.layout.n_columns
    (slice(7, 9, None), 9)
    """

    spans: Mapping[str, slice]
    unit: float

    @classmethod
    def of(
        cls, variables: Sequence[Variable], family: FeatureFamily, clip: float, noise: DPParameters | None
    ) -> FeatureLayout:
        """Compute the layout of some variables.

        Parameters
        ----------
        variables : sequence of Continuous or Categorical
            Variables in the order of the plan.
        family : Fourier or Hermite
            Feature family of continuous variables; unused with noise.
        clip : float
            Number of scales at which values are clipped; unused with noise.
        noise : DPParameters or None
            Differential privacy of the plan, which brings features of its own.

        Returns
        -------
        FeatureLayout
            The layout.
        """
        spans: dict[str, slice] = {}
        start = 1
        for variable in variables:
            if isinstance(variable, Categorical):
                width = len(variable.levels)
            else:
                width = POWER_COLUMNS + family.width if noise is None else noise.degree
            spans[variable.name] = slice(start, start := start + width)
        if noise is None:
            return cls(spans, float(clip))
        n_categorical = sum(isinstance(variable, Categorical) for variable in variables)
        n_continuous = len(variables) - n_categorical
        return cls(spans, bounded.compute_radius(n_continuous, n_categorical, noise.degree, noise.expected_rows))

    @cached_property
    def n_columns(self) -> int:
        """Return the number of columns, the constant included."""
        return int(max((span.stop for span in self.spans.values()), default=1))

    def width(self, name: str) -> int:
        """Return the number of columns of a variable.

        Parameters
        ----------
        name : str
            Name of the variable.

        Returns
        -------
        int
            One column per level of a categorical variable; two and those of the family for a continuous one.
        """
        return int(self.spans[name].stop - self.spans[name].start)
