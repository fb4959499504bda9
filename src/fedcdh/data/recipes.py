"""Recipes: how every site turns a column of its own into a variable of the study.

A recipe is a value of the plan and does the same at every site, row by row. It never removes a row, and a missing value
stays missing. Numbers are converted to the study's units, clipped, rounded, and last of all turned into logarithms or
compared with a threshold; so the limits of a clip, the step of a rounding and a threshold are in the study's units.
Labels are grouped, and labels that nobody listed become one level.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fedcdh._io.text import cut_repr, describe_text_problem
from fedcdh._runtime.array_types import Array
from fedcdh.data.columns import CategoricalColumn, Column, NumericColumn
from fedcdh.data.labels import strip_zero_decimals
from fedcdh.data.sources import ColumnKind
from fedcdh.errors import DataError, PlanError

Logarithm = Literal["none", "log", "log1p"]
ThresholdSide = Literal["above", "at_least"]
NO, YES = "no", "yes"
"""Levels of a variable that says whether a number passes a threshold."""
_MAX_NUMBER = 1e150


@dataclass(frozen=True)
class UnitConversion:
    """A conversion of units: `factor` times the number plus `offset`.

    Attributes
    ----------
    factor : float, default 1.0
        Number by which values are multiplied; not 0.
    offset : float, default 0.0
        Number that is added afterwards.
    from_units : str, default ""
        The site's own units, for people who read the plan.

    Examples
    --------
    >>> UnitConversion(0.0555, from_units="mg/dl").factor
    0.0555
    """

    factor: float = 1.0
    offset: float = 0.0
    from_units: str = ""

    def __post_init__(self) -> None:
        _set_numbers(self, "factor", "offset")
        _check_text(self.from_units, "from_units")
        if not self.factor:
            raise _recipe_error("factor is 0, which makes all values equal; expected another number")


@dataclass(frozen=True)
class Threshold:
    """A threshold that turns numbers into the levels "no" and "yes".

    Attributes
    ----------
    value : float
        The threshold, in the study's units.
    side : {"above", "at_least"}, default "above"
        Whether the threshold itself counts as "no" or as "yes".

    Examples
    --------
    >>> Threshold(40, "at_least").value
    40.0
    """

    value: float
    side: ThresholdSide = "above"

    def __post_init__(self) -> None:
        _set_numbers(self, "value")
        if self.side not in ("above", "at_least"):
            raise _recipe_error(f"a threshold has the side {cut_repr(self.side)}; expected above or at_least")


@dataclass(frozen=True)
class NumberRecipe:
    """A recipe for a column of numbers, carried out in the order of the attributes.

    Attributes
    ----------
    units : str, default ""
        Units of the study, for people who read the plan.
    conversion : UnitConversion, optional
        Conversion to these units at clients without a conversion of their own.
    client_conversions : tuple of tuple of str and UnitConversion, default ()
        Conversions of single clients.
    clip : tuple of float, optional
        Smallest and largest value; values beyond are set to the nearer of them.
    step : float, optional
        Values are rounded to multiples of this number.
    logarithm : {"none", "log", "log1p"}, default "none"
        Natural logarithm of the value, or of 1 plus the value.
    threshold : Threshold, optional
        The variable then has the levels "no" and "yes".

    Raises
    ------
    PlanError
        If the parts of the recipe cannot be used together.

    Examples
    --------
    >>> recipe = NumberRecipe(clip=(1, 100), logarithm="log")
    >>> recipe.apply(NumericColumn(np.array([0.0, 1.0, np.nan])), "column 'crp'", "north").values
    array([ 0.,  0., nan])
    """

    units: str = ""
    conversion: UnitConversion | None = None
    client_conversions: tuple[tuple[str, UnitConversion], ...] = ()
    clip: tuple[float, float] | None = None
    step: float | None = None
    logarithm: Logarithm = "none"
    threshold: Threshold | None = None

    def __post_init__(self) -> None:
        _check_text(self.units, "units")
        object.__setattr__(self, "client_conversions", tuple(sorted(dict(self.client_conversions).items(), key=_first)))
        if self.clip is not None:
            low, high = (_to_number(end, "clip") for end in self.clip)
            object.__setattr__(self, "clip", (low, high))
            if not low < high:
                raise _recipe_error(f"clip goes from {low:g} to {high:g}; expected a smaller and a larger number")
        if self.step is not None:
            _set_numbers(self, "step")
            if self.step <= 0:
                raise _recipe_error(f"values are rounded to multiples of {self.step:g}; expected a positive number")
        if self.logarithm not in ("none", "log", "log1p"):
            raise _recipe_error(f"the logarithm is {cut_repr(self.logarithm)}; expected log or log1p")
        if self.threshold is not None and self.logarithm != "none":
            raise _recipe_error(
                "it has a threshold and a logarithm; expected one of them, since the threshold comes last"
            )

    @property
    def source_kind(self) -> ColumnKind:
        """Return how the column is read."""
        return "continuous"

    @property
    def kind(self) -> ColumnKind:
        """Return the kind of the variable that it becomes."""
        return "continuous" if self.threshold is None else "categorical"

    def conversion_of(self, client: str) -> UnitConversion | None:
        """Return the conversion of units at a client.

        Parameters
        ----------
        client : str
            Name of the client.

        Returns
        -------
        UnitConversion or None
            None where values stay in their units.
        """
        return dict(self.client_conversions).get(client, self.conversion)

    def transform(self, values: Array, client: str) -> Array:
        """Return the numbers before a threshold; NaN where a logarithm is not defined.

        Parameters
        ----------
        values : array
            Numbers of the column.
        client : str
            Name of the client, for its units.

        Returns
        -------
        array
            As many numbers.
        """
        found = np.array(values, dtype=np.float64)  # contiguous: numpy may round differently elsewhere
        if (conversion := self.conversion_of(client)) is not None:
            found *= conversion.factor
            found += conversion.offset
        if self.clip is not None:
            np.clip(found, *self.clip, out=found)
        if self.step is not None:
            found /= self.step
            np.rint(found, out=found)
            found *= self.step
        if self.logarithm != "none":
            shift = 0.0 if self.logarithm == "log" else 1.0
            found[found <= -shift] = np.nan
            np.log(found, out=found) if self.logarithm == "log" else np.log1p(found, out=found)
        found += 0.0  # turns -0.0 into 0.0
        return found

    def apply(self, column: Column, where: str, client: str) -> Column:
        """Return the column of the variable.

        Parameters
        ----------
        column : NumericColumn or CategoricalColumn
            The site's column.
        where : str
            Name of the column for error messages.
        client : str
            Name of the client, for its units.

        Returns
        -------
        NumericColumn or CategoricalColumn
            As many rows; missing values stay missing.

        Raises
        ------
        DataError
            If the column holds text, or a logarithm of numbers that have none is asked for.
        """
        if isinstance(column, CategoricalColumn):
            if column.levels:
                raise DataError(
                    f"{where} holds text, but the recipe of the plan is for numbers; turn the texts into numbers"
                )
            column = NumericColumn(np.full(len(column), np.nan))
        values = self.transform(column.values, client)
        if undefined := int((np.isnan(values) & ~column.missing).sum()):
            raise _logarithm_error(self, where, undefined)
        if self.threshold is None:
            return NumericColumn(values)
        limit = self.threshold.value
        passed = values > limit if self.threshold.side == "above" else values >= limit
        codes = np.where(np.isnan(values), -1, passed.astype(np.int64))
        return CategoricalColumn((NO, YES), codes)


@dataclass(frozen=True)
class LabelRecipe:
    """A recipe for a column of labels.

    Attributes
    ----------
    groups : tuple of tuple of str and tuple of str, default ()
        Each group is a level of the study, with the labels that it joins.
    keep : tuple of str, default ()
        Labels that stay levels of their own, where all further labels become one level.
    other : str, default ""
        Level for all labels that are neither in a group nor kept. Empty: these stay as they are.

    Raises
    ------
    PlanError
        If a label is in two groups, or a name cannot be used.

    Examples
    --------
    >>> recipe = LabelRecipe(groups=(("III/IV", ("III", "IV")),))
    >>> recipe.apply(CategoricalColumn.of(["II", "IV", None]), "column 'nyha'", "north").levels
    ('II', 'III/IV')
    """

    groups: tuple[tuple[str, tuple[str, ...]], ...] = ()
    keep: tuple[str, ...] = ()
    other: str = ""

    def __post_init__(self) -> None:
        sorted_groups = tuple((name, tuple(sorted(labels))) for name, labels in sorted(dict(self.groups).items()))
        object.__setattr__(self, "groups", sorted_groups)
        object.__setattr__(self, "keep", tuple(sorted(self.keep)))
        listed = [label for _, labels in self.groups for label in labels] + list(self.keep)
        for text in (*dict(self.groups), *listed):
            if not text or describe_text_problem(text):
                raise _recipe_error(f"a group or label is {cut_repr(text)}; expected a text that can be printed")
        _check_text(self.other, "other")
        if twins := sorted({label for label in listed if listed.count(label) > 1}):
            raise _recipe_error(f"the label {cut_repr(twins[0])} is listed twice; expected each label in one group")
        if empty := [name for name, labels in self.groups if not labels]:
            raise _recipe_error(f"the group {cut_repr(empty[0])} has no labels; expected one or more")
        for name, labels in self.groups:
            if name in listed and name not in labels:
                raise _recipe_error(
                    f"{cut_repr(name)} is the name of a group and a label outside it; choose another name"
                )
        if self.keep and not self.other:
            raise _recipe_error("labels are kept, but there is no level for the others; name it, or leave keep out")
        if not self.groups and not self.other:
            raise _recipe_error("it changes nothing; expected groups, or a level for other labels")

    @property
    def source_kind(self) -> ColumnKind:
        """Return how the column is read."""
        return "categorical"

    @property
    def kind(self) -> ColumnKind:
        """Return the kind of the variable that it becomes."""
        return "categorical"

    def level_of(self, label: str) -> str:
        """Return the level of a label; 3.0 is the label 3.

        Parameters
        ----------
        label : str
            A label of the site's column, or a level that this recipe gives.

        Returns
        -------
        str
            Its level.
        """
        known = {one: name for name, labels in self.groups for one in labels} | {one: one for one in self.keep}
        for spelt in (label, strip_zero_decimals(label)):
            if spelt in known:
                return known[spelt]
        return label if not self.other or label in dict(self.groups) else self.other

    @property
    def levels(self) -> tuple[str, ...] | None:
        """Return the levels of the variable; None where further labels stay as they are."""
        if not self.other:
            return None
        return tuple(dict.fromkeys([*sorted({*dict(self.groups), *self.keep} - {self.other}), self.other]))

    def apply(self, column: Column, where: str, client: str) -> Column:
        """Return the column of the variable.

        Parameters
        ----------
        column : NumericColumn or CategoricalColumn
            The site's column.
        where : str
            Name of the column for error messages.
        client : str
            Not used; `NumberRecipe.apply` has it too.

        Returns
        -------
        CategoricalColumn
            As many rows; missing values stay missing.

        Raises
        ------
        DataError
            If a label of the site has the name of a group that does not list it.
        """
        texts = column.to_categorical(where)
        for name, labels in self.groups:
            if name in texts.levels and name not in labels:
                raise DataError(
                    f"{where} holds the label {name!r}, which is also the name of a group that does not list it; "
                    "rename the group, or add the label to it, for all clients"
                )
        mapped = [self.level_of(level) for level in texts.levels]
        levels = tuple(sorted(set(mapped)))
        places = np.array([*map(levels.index, mapped), -1], dtype=np.int64)
        return CategoricalColumn(levels, places[texts.codes])


Recipe = NumberRecipe | LabelRecipe


def describe_recipe(recipe: Recipe) -> str:
    """Describe a recipe in words, in the order in which it is carried out.

    Parameters
    ----------
    recipe : NumberRecipe or LabelRecipe
        The recipe.

    Returns
    -------
    str
        Words without a full stop.

    Examples
    --------
    >>> describe_recipe(NumberRecipe(clip=(0, 500), logarithm="log1p"))
    'clipped to 0 to 500, natural logarithm of 1 plus the value'
    >>> describe_recipe(LabelRecipe(groups=(("III/IV", ("III", "IV")),), other="other"))
    "III and IV grouped as 'III/IV', all others as 'other'"
    """
    if isinstance(recipe, LabelRecipe):
        parts = [f"{_join(labels)} grouped as {name!r}" for name, labels in recipe.groups]
        kept = f"{_join(recipe.keep)} kept, " if recipe.keep else ""
        return ", ".join(parts + ([f"{kept}all others as {recipe.other!r}"] if recipe.other else []))
    return ", ".join(_describe_numbers(recipe)) or "as it is"


def _describe_numbers(recipe: NumberRecipe) -> list[str]:
    parts = [f"in {recipe.units}"] if recipe.units else []
    conversions = [("", recipe.conversion)] if recipe.conversion else []
    for client, one in [*conversions, *((f" at {name}", found) for name, found in recipe.client_conversions)]:
        origin = f" from {one.from_units}" if one.from_units else ""
        offset = f" plus {one.offset:g}" if one.offset else ""
        parts.append(f"converted{origin}{client} (times {one.factor:g}{offset})")
    if recipe.clip is not None:
        parts.append(f"clipped to {recipe.clip[0]:g} to {recipe.clip[1]:g}")
    if recipe.step is not None:
        parts.append(f"rounded to multiples of {recipe.step:g}")
    if recipe.logarithm != "none":
        parts.append("natural logarithm" + (" of 1 plus the value" if recipe.logarithm == "log1p" else ""))
    if recipe.threshold is not None:
        side = "above" if recipe.threshold.side == "above" else "at least"
        parts.append(f"'yes' if {side} {recipe.threshold.value:g}, else 'no'")
    return parts


def _join(texts: tuple[str, ...]) -> str:
    return " and ".join(filter(None, [", ".join(texts[:-1]), texts[-1]]))


def _first(item: tuple[str, object]) -> str:
    return item[0]


def _logarithm_error(recipe: NumberRecipe, where: str, count: int) -> DataError:
    plain = recipe.logarithm == "log"
    least, other = ("0", 'log = "log1p", which takes log(1 + x)') if plain else ("-1", "no logarithm")
    return DataError(
        f"{where} has {count} values of {least} or less in the rows read so far, which have no logarithm; expected "
        f"larger values only; ask the coordinator for {other}, or for a clip = [low, high] with a low above {least} in "
        "the recipe, or correct the values"
    )


def _recipe_error(reason: str) -> PlanError:
    return PlanError(f"a recipe cannot be used: {reason}; correct it")


def _check_text(found: object, what: str) -> None:
    if not isinstance(found, str) or (found and describe_text_problem(found)):
        raise _recipe_error(f"{what} is {cut_repr(found)}; expected a text that can be printed")


def _to_number(found: object, what: str) -> float:
    if isinstance(found, bool) or not isinstance(found, (int, float)) or not abs(found) < _MAX_NUMBER:
        raise _recipe_error(f"{what} is {cut_repr(found)}; expected a finite number")
    if not math.isfinite(found):  # NaN
        raise _recipe_error(f"{what} is {cut_repr(found)}; expected a finite number")
    return float(found) + 0.0


def _set_numbers(value: object, *names: str) -> None:
    for name in names:
        object.__setattr__(value, name, _to_number(getattr(value, name), name))
