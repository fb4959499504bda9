"""The declaration of a study: what the coordinator decides beforehand, written by hand as TOML.

A declaration that names the clients and describes every variable is enough for a plan. Together with profiles it may
describe only a part, and the profiles supply the rest.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast, get_args

import numpy as np

from fedcdh._io import strict_toml
from fedcdh._io.strict_toml import abbreviate, expect_integer, expect_number, expect_strings, expect_table
from fedcdh.data.recipe_file import NO_RECIPES, Recipes, parse_recipes
from fedcdh.data.recipes import NO, YES, LabelRecipe, NumberRecipe, Recipe
from fedcdh.data.sources import ColumnKind
from fedcdh.errors import PlanError
from fedcdh.graphs.convert.knowledge import parse_knowledge
from fedcdh.graphs.knowledge import NO_KNOWLEDGE, Knowledge
from fedcdh.summaries.features import FeatureFamily, Fourier, Hermite
from fedcdh.summaries.plan import MissingValues
from fedcdh.summaries.variables import Categorical, Continuous, Variable

_KEYS = ("clients", "variables", "recipes", "knowledge", "features", "missing")
_FAMILIES: dict[str, type[Hermite] | type[Fourier]] = {"hermite": Hermite, "fourier": Fourier}


@dataclass(frozen=True)
class VariableDeclaration:
    """The declaration of one variable; None is left to the profiles.

    Parameters
    ----------
    name : str
        Name of the variable.
    kind : str, optional
        "continuous" or "categorical".
    levels : tuple of str, optional
        The levels of a categorical variable.
    location, scale : float, optional
        Location and scale of a continuous variable.
    range : tuple of float, optional
        The range that location and scale were computed from, if one was declared.

    Examples
    --------
    >>> VariableDeclaration("age", location=60.0, scale=15.0).variable.scale
    15.0
    """

    name: str
    kind: ColumnKind | None = None
    levels: tuple[str, ...] | None = None
    location: float | None = None
    scale: float | None = None
    range: tuple[float, float] | None = None

    @property
    def variable(self) -> Variable | None:
        """Return the variable; None if its declaration is incomplete."""
        return self.prepare(None)

    def prepare(self, recipe: Recipe | None) -> Variable | None:
        """Return the variable after a recipe.

        Parameters
        ----------
        recipe : NumberRecipe or LabelRecipe, optional
            The recipe of the variable. Declared levels may be those before or after it; a range is that of the
            numbers in the study's units, before a clip and a logarithm.

        Returns
        -------
        Continuous, Categorical or None
            None if the declaration is incomplete.

        Raises
        ------
        PlanError
            If declaration and recipe contradict each other.
        """
        if isinstance(recipe, NumberRecipe) and recipe.threshold is not None:
            return Categorical(self.name, (NO, YES), recipe=recipe)
        if isinstance(recipe, LabelRecipe) and recipe.levels is not None:
            return Categorical(self.name, recipe.levels, recipe=recipe)
        if self.levels is not None:
            levels = map(recipe.level_of, self.levels) if isinstance(recipe, LabelRecipe) else self.levels
            return Categorical(self.name, tuple(dict.fromkeys(levels)), recipe=recipe)
        if self.location is None or self.scale is None:
            return None
        location, scale = self.location, self.scale
        if isinstance(recipe, NumberRecipe) and (recipe.clip is not None or recipe.logarithm != "none"):
            location, scale = self._prepare_range(recipe)
        return Continuous(self.name, location, scale, recipe=recipe)

    def _prepare_range(self, recipe: NumberRecipe) -> tuple[float, float]:
        """Return location and scale of a uniform distribution over the declared range, after clip and logarithm."""
        if self.range is None:
            raise PlanError(
                f"The variable {self.name!r} is declared with mean and sd, and its recipe changes both. Declare its "
                "range instead, in the study's units."
            )
        plain = replace(recipe, conversion=None, client_conversions=(), step=None)
        ends = plain.transform(np.array(self.range), "")
        if np.isnan(ends).any() or not ends[0] < ends[1]:
            raise PlanError(
                f"The variable {self.name!r} has the declared range {self.range[0]:g} to {self.range[1]:g}, which its "
                "recipe cannot be carried out on. Expected a range within the clip, and above 0 for a logarithm. "
                "Correct the range or the recipe."
            )
        return _uniform_moments(*ends.tolist())


@dataclass(frozen=True)
class Declaration:
    """The declaration of a study.

    Parameters
    ----------
    clients : tuple of str
        Names of the clients. By default those of the profiles.
    variables : tuple of VariableDeclaration
        The variables in their order. By default those of the profiles.
    knowledge : Knowledge
        Background knowledge.
    family : FeatureFamily, optional
        The family of features.
    recipes : Recipes, optional
        What every site does with its columns first, and the columns that are excluded.
    missing : {"complete", "impute"}, default "complete"
        What every site does with rows in which a value is missing.

    Examples
    --------
    >>> Declaration(clients=("north", "south")).clients
    ('north', 'south')
    """

    clients: tuple[str, ...] = ()
    variables: tuple[VariableDeclaration, ...] = ()
    knowledge: Knowledge = NO_KNOWLEDGE
    family: FeatureFamily | None = None
    recipes: Recipes = NO_RECIPES
    missing: MissingValues = "complete"

    @classmethod
    def from_toml(cls, text: str | bytes) -> Declaration:
        """Parse a declaration.

        Parameters
        ----------
        text : str or bytes
            TOML with the keys clients, variables, recipes, knowledge, features and missing.

        Returns
        -------
        Declaration
            The declaration.

        Raises
        ------
        PlanError
            If the text is not a declaration. The message names the place and what is expected there.

        Examples
        --------
        >>> made = Declaration.from_toml('[variables.smoker]\\nlevels = ["no", "yes"]')
        >>> made.variables[0].kind
        'categorical'
        """
        found = strict_toml.parse_toml(text, refuse=_declaration_error)
        expect_table(found, _KEYS, "the declaration", refuse=_declaration_error)
        tables = expect_table(found.get("variables", {}), None, "[variables]", refuse=_declaration_error)
        variables = tuple(_parse_variable(name, fields) for name, fields in tables.items())
        levels = {one.name: one.levels for one in variables if one.levels is not None}
        return cls(
            clients=_parse_names(found.get("clients", []), "clients"),
            variables=variables,
            recipes=parse_recipes(found.get("recipes", {}), levels, refuse=_declaration_error),
            knowledge=parse_knowledge(found.get("knowledge", {}), refuse=_declaration_error),
            family=_parse_family(found["features"]) if "features" in found else None,
            missing=_parse_missing(found.get("missing", "complete")),
        )


def _declaration_error(reason: str) -> PlanError:
    return PlanError(f"The declaration cannot be used: {reason.rstrip('.')}. Correct it there.")


def _parse_missing(found: Any) -> MissingValues:
    for choice in get_args(MissingValues):
        if found == choice:
            return cast(MissingValues, choice)
    raise _declaration_error(
        f'missing should be "complete" (rows with a missing value are left out) or "impute" (a value is drawn for it), '
        f"found {abbreviate(found)}"
    )


def _parse_names(found: Any, where: str) -> tuple[str, ...]:
    names = expect_strings(found, where, refuse=_declaration_error)
    if len(set(names)) != len(names) or "" in names:
        raise _declaration_error(
            f"{where} should be different names that are not empty, found {abbreviate(list(names))}"
        )
    return names


def _parse_variable(name: str, fields: Any) -> VariableDeclaration:
    where = f"[variables.{name}]"
    expect_table(fields, ("kind", "levels", "range", "mean", "sd"), where, refuse=_declaration_error)
    numeric = [key for key in ("range", "mean", "sd") if key in fields]
    kind = fields.get("kind", "categorical" if "levels" in fields else "continuous" if numeric else None)
    if kind not in ("continuous", "categorical", None):
        raise _declaration_error(f'kind in {where} should be "continuous" or "categorical", found {abbreviate(kind)}')
    if (kind == "continuous" and "levels" in fields) or (kind == "categorical" and numeric):
        raise _declaration_error(
            f"{where} is {kind}: levels are for categorical, range, mean and sd for continuous variables"
        )
    if "levels" in fields:
        return VariableDeclaration(name, kind, levels=_parse_levels(fields["levels"], where))
    if not numeric:
        return VariableDeclaration(name, kind)
    location, scale = _parse_location_scale(fields, where)
    ends = (float(fields["range"][0]), float(fields["range"][1])) if "range" in fields else None
    return VariableDeclaration(name, kind, location=location, scale=scale, range=ends)


def _parse_levels(found: Any, where: str) -> tuple[str, ...]:
    """Return levels as texts; the whole number 0 is the level "0"."""
    listed = found if isinstance(found, list) else [None]
    if not all(isinstance(level, str | int) and not isinstance(level, bool) for level in listed):
        raise _declaration_error(
            f'levels in {where} should be a list such as ["no", "yes"] or [0, 1], found {abbreviate(found)}'
        )
    levels = tuple(map(str, listed))
    if not levels or len(set(levels)) != len(levels):
        raise _declaration_error(f"levels in {where} should be one or more different labels, found {abbreviate(found)}")
    return levels


def _parse_location_scale(fields: Mapping[str, Any], where: str) -> tuple[float, float]:
    """Return location and scale: mean and standard deviation, or those of a uniform distribution over the range.

    The uniform distribution is a cautious assumption. Real values concentrate in the middle, so this scale is up to
    twice their standard deviation, which features of all allowed widths still resolve. A smaller scale would cut off
    the tails.
    """
    if set(fields) - {"kind"} == {"mean", "sd"}:
        mean, sd = (
            expect_number(fields[key], f"{key} in {where}", refuse=_declaration_error) for key in ("mean", "sd")
        )
        if sd <= 0:
            raise _declaration_error(f"sd in {where} should be positive, found {sd:g}")
        return mean, sd
    if set(fields) - {"kind"} != {"range"}:
        raise _declaration_error(f"{where} needs either a range, or a mean and an sd")
    found = fields["range"]
    if not isinstance(found, list) or len(found) != 2:
        raise _declaration_error(f"range in {where} should be two numbers such as [18, 100], found {abbreviate(found)}")
    low, high = (expect_number(end, f"range in {where}", refuse=_declaration_error) for end in found)
    location, scale = _uniform_moments(low, high)
    if not low < high or not 0 < scale < math.inf:
        raise _declaration_error(
            f"range in {where} should go from a smaller to a larger number, found {abbreviate(found)}"
        )
    return location, scale


def _uniform_moments(low: float, high: float) -> tuple[float, float]:
    return low / 2 + high / 2, (high / 2 - low / 2) / math.sqrt(3)


def _parse_family(found: Any) -> FeatureFamily:
    expect_table(found, ("family", "width", "bandwidth", "seed"), "[features]", refuse=_declaration_error)
    name = found.get("family", "hermite")
    if not isinstance(name, str) or name not in _FAMILIES:
        raise _declaration_error(
            f"family in [features] should be one of {', '.join(_FAMILIES)}, found {abbreviate(name)}"
        )
    if "seed" in found and name != "fourier":
        raise _declaration_error("seed in [features] is for the family fourier; the family hermite is not random")
    fields: dict[str, Any] = {
        key: expect_integer(found[key], f"{key} in [features]", refuse=_declaration_error)
        for key in ("width", "seed")
        if key in found
    }
    if "bandwidth" in found:
        fields["bandwidth"] = expect_number(found["bandwidth"], "bandwidth in [features]", refuse=_declaration_error)
    return _FAMILIES[name](**fields)
