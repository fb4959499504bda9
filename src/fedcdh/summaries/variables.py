"""The variables of a study plan: continuous ones with location and scale, categorical ones with their levels."""

from __future__ import annotations

from dataclasses import dataclass

from fedcdh._io.text import cut_repr, describe_text_problem
from fedcdh.data.recipes import Recipe
from fedcdh.errors import PlanError
from fedcdh.summaries.column_profiles import MAX_LEVELS

MAX_MAGNITUDE = 1e300
"""Locations and scales have to be smaller than this: beyond, arithmetic overflows."""


@dataclass(frozen=True)
class Continuous:
    """A continuous variable.

    All clients subtract the same location and divide by the same scale: local standardisation would erase the
    differences between clients that the method is about.

    Attributes
    ----------
    name : str
        Name of the column.
    location : float, default 0.0
        Value that is subtracted, usually the pooled mean.
    scale : float, default 1.0
        Positive number to divide by, usually the pooled standard deviation.
    centre : float, optional
        Centre of the bulk of the values, usually the median. Default: `location`.
    spread : float, optional
        Spread of the bulk of the values, usually from the quartiles. Default: `scale`. Nonlinear features resolve
        values within a few spreads of the centre.
    product_share : float, default 1.0
        Share of the rows that counts for correlations with other variables, where rows depend on each other.
    mean_share : float, default 1.0
        The same for means.
    recipe : NumberRecipe, optional
        What every site does with its column first. Location and scale are those of the result.

    Examples
    --------
    >>> Continuous("age", 60, 15).centre_and_spread
    (60.0, 15.0)
    """

    name: str
    location: float = 0.0
    scale: float = 1.0
    centre: float | None = None
    spread: float | None = None
    product_share: float = 1.0
    mean_share: float = 1.0
    recipe: Recipe | None = None

    def __post_init__(self) -> None:
        check_name(self.name, "the name of a variable")
        _check_shares(self)
        _check_recipe(self)
        numbers = (self.location, self.scale, *self.centre_and_spread)
        if not (all(abs(number) < MAX_MAGNITUDE for number in numbers) and min(numbers[1], numbers[3]) > 0):
            raise PlanError(
                f"variable {self.name!r} has location {numbers[0]}, scale {numbers[1]}, centre {numbers[2]} and spread "
                f"{numbers[3]}; expected finite numbers, with a positive scale and spread; correct the plan"
            )
        centre, spread = self.centre_and_spread
        # 60, 60.0 and numpy's 60.0 are one number and must give one fingerprint; so must 0.0 and -0.0
        object.__setattr__(self, "location", float(self.location) + 0.0)
        object.__setattr__(self, "scale", float(self.scale))
        object.__setattr__(self, "centre", float(centre) + 0.0)
        object.__setattr__(self, "spread", float(spread))

    @property
    def centre_and_spread(self) -> tuple[float, float]:
        """Return the centre and the spread of the bulk of the values."""
        return (
            self.location if self.centre is None else self.centre,
            self.scale if self.spread is None else self.spread,
        )


@dataclass(frozen=True)
class Categorical:
    """A categorical variable.

    Attributes
    ----------
    name : str
        Name of the column.
    levels : tuple of str
        All levels of the variable, each once. Their order is part of the plan.
    product_share, mean_share : float, default 1.0
        As those of a continuous variable.
    recipe : LabelRecipe or NumberRecipe, optional
        What every site does with its column first. The levels are those of the result.

    Examples
    --------
    >>> Categorical("smoker", ("no", "yes")).levels
    ('no', 'yes')
    """

    name: str
    levels: tuple[str, ...]
    product_share: float = 1.0
    mean_share: float = 1.0
    recipe: Recipe | None = None

    def __post_init__(self) -> None:
        check_name(self.name, "the name of a variable")
        _check_shares(self)
        _check_recipe(self)
        object.__setattr__(self, "levels", tuple(self.levels))
        if len(self.levels) > MAX_LEVELS:
            raise PlanError(
                f"variable {self.name!r} has {len(self.levels)} levels; expected at most {MAX_LEVELS}; group the levels"
            )
        if not self.levels or len(set(self.levels)) != len(self.levels):
            raise PlanError(
                f"variable {self.name!r} has the levels {cut_repr(self.levels)}; expected at least one level, and none "
                "twice; correct the plan"
            )
        for level in self.levels:
            check_name(level, f"a level of variable {self.name!r}")


Variable = Continuous | Categorical


def _check_shares(variable: Variable) -> None:
    """Raise a PlanError if a share of rows is no number above 0 and at most 1; 1 and 1.0 give one fingerprint."""
    for name in ("product_share", "mean_share"):
        found = getattr(variable, name)
        if isinstance(found, bool) or not isinstance(found, (int, float)) or not 0 < found <= 1:
            raise PlanError(
                f"variable {variable.name!r} has the {name} {cut_repr(found)}; expected a number above 0 and at most "
                "1; correct the plan",
                parameter=name,
            )
        object.__setattr__(variable, name, float(found))


def _check_recipe(variable: Variable) -> None:
    """Raise a PlanError if the recipe gives another kind of variable."""
    kind = "categorical" if isinstance(variable, Categorical) else "continuous"
    if variable.recipe is not None and variable.recipe.kind != kind:
        raise PlanError(
            f"variable {variable.name!r} is {kind}, but its recipe gives a {variable.recipe.kind} variable; correct "
            "the recipe, or the kind",
            parameter="recipes",
        )


def check_name(text: object, whose: str) -> None:
    """Raise a PlanError if a name or a level cannot be read in one line."""
    if problem := describe_text_problem(text):
        raise PlanError(f"{whose} cannot be used: {problem}; rename it")
