"""A profile after a recipe: what a column would look like, computed from its profile alone.

A coordinator who adds a recipe after the profiles arrived does not have to ask for them again. Counts of grouped levels
and conversions of units are exact. Logarithms, clips and roundings keep the order of the values, so quantiles follow;
mean and standard deviation are then those of the distribution that is linear between the quantiles.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fedcdh.data.recipes import LabelRecipe, NumberRecipe, Recipe
from fedcdh.errors import PlanError
from fedcdh.summaries.column_profiles import QUANTILES, ColumnProfile

_GRID_SHARES = np.linspace(0.0, 1.0, 201)  # the tails beyond the outer quantiles count as these


def prepare_profile(column: ColumnProfile, recipe: Recipe | None, name: str, client: str) -> ColumnProfile:
    """Return the profile of a column after a recipe.

    Parameters
    ----------
    column : ColumnProfile
        The profile of the column, as the client sent it.
    recipe : NumberRecipe or LabelRecipe, optional
        The recipe of the plan.
    name : str
        Name of the variable, for errors.
    client : str
        Name of the client, for its units.

    Returns
    -------
    ColumnProfile
        The profile that the column has after the recipe.

    Raises
    ------
    PlanError
        If it does not follow from the profile.

    Examples
    --------
    >>> column = ColumnProfile("categorical", 60, 0, levels=("II", "III", "IV"), counts=(40, 15, 5))
    >>> prepare_profile(column, LabelRecipe((("III/IV", ("III", "IV")),)), "nyha", "north").counts
    (40, 20)
    """
    if column.recipe == recipe:
        return column
    if not column.count and recipe is not None:
        return replace(column, kind=recipe.kind, recipe=recipe)
    found: ColumnProfile | None = None
    if isinstance(recipe, LabelRecipe) and column.kind == "categorical":
        found = _prepare_labels(column, recipe)
    elif isinstance(recipe, NumberRecipe) and column.recipe is None and column.kind == "continuous":
        found = _prepare_numbers(column, recipe, name, client)
    if found is None:
        raise PlanError(
            f"The profile of {name!r} at client {client!r} does not show what the column is after its recipe. Expected "
            "a profile that was made with the recipes of the declaration. Ask the client for it again: fedcdh profile "
            "... --declare FILE.",
            parameter="recipes",
        )
    return found


def _prepare_labels(column: ColumnProfile, recipe: LabelRecipe) -> ColumnProfile | None:
    """Return the counts of the new levels; None if an old level has labels of several new ones."""
    earlier = column.recipe
    if earlier is not None and (not isinstance(earlier, LabelRecipe) or earlier.other):
        return None
    members = dict(earlier.groups) if isinstance(earlier, LabelRecipe) else {}
    counts: dict[str, int] = {}
    for level, count in zip(column.levels, column.counts, strict=True):
        became = {recipe.level_of(label) for label in members.get(level, (level,))}
        if len(became) > 1:
            return None
        counts[became.pop()] = counts.get(recipe.level_of(members.get(level, (level,))[0]), 0) + count
    levels = tuple(sorted(counts))
    return replace(column, levels=levels, counts=tuple(counts[level] for level in levels), recipe=recipe)


def _prepare_numbers(column: ColumnProfile, recipe: NumberRecipe, name: str, client: str) -> ColumnProfile | None:
    if recipe.threshold is not None:
        return None
    conversion = recipe.conversion_of(client)
    if conversion is not None and conversion.factor < 0:
        return None
    quantiles = recipe.transform(np.array(column.quantiles), client)
    if np.isnan(quantiles).any():
        raise PlanError(
            f"The recipe of {name!r} takes a logarithm, but client {client!r} has values of 0 or less. Expected larger "
            'values only. Write log = "log1p" or a clip with a positive lower end in the recipe.',
            parameter="recipes",
        )
    changed = replace(column, quantiles=tuple(quantiles.tolist()), recipe=recipe)
    if recipe.clip is None and recipe.step is None and recipe.logarithm == "none":
        factor = conversion.factor if conversion else 1.0
        mean = float(recipe.transform(np.array([column.mean]), client)[0])
        return replace(changed, mean=mean, squares=column.squares * factor**2)
    values = recipe.transform(np.interp(_GRID_SHARES, QUANTILES, column.quantiles), client)
    return replace(changed, mean=float(values.mean()), squares=float(values.var() * column.count))
