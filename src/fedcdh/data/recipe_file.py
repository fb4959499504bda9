"""Recipes as tables of a declaration: read strictly, and written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from fedcdh._io import strict_toml
from fedcdh._io.storage import read_regular_file
from fedcdh._io.strict_json import to_canonical_json
from fedcdh._io.strict_toml import Refuse, abbreviate, expect_number, expect_table
from fedcdh.data.recipes import NO, YES, LabelRecipe, Logarithm, NumberRecipe, Recipe, Threshold, UnitConversion
from fedcdh.errors import PlanError

MAX_BYTES = 1_000_000
OTHER = "other"
"""Level of labels that nobody listed, unless the declaration names another one."""
_CONVERSION_KEYS = ("from_units", "factor", "offset")
_NUMBER_KEYS = ("units", *_CONVERSION_KEYS, "clients", "clip", "round", "log")
_LABEL_KEYS = ("groups", "keep", "other")
RECIPE_KEYS = (*_NUMBER_KEYS, "binary", *_LABEL_KEYS, "exclude")
"""Keys of one recipe in a declaration."""


@dataclass(frozen=True)
class Recipes:
    """The recipes of a study, by variable, and the variables that are excluded.

    Attributes
    ----------
    by_variable : mapping from str to NumberRecipe or LabelRecipe
        Recipes of variables.
    excluded : frozenset of str, default empty
        Columns that are no variables of the study.

    Examples
    --------
    >>> found = Recipes.from_toml('[recipes.crp]\\nlog = true\\n[recipes.postcode]\\nexclude = true')
    >>> found.by_variable["crp"].logarithm, sorted(found.excluded)
    ('log', ['postcode'])
    """

    by_variable: Mapping[str, Recipe] = field(default_factory=dict)
    excluded: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        kept = {name: one for name, one in sorted(self.by_variable.items()) if name not in self.excluded}
        object.__setattr__(self, "by_variable", MappingProxyType(kept))
        object.__setattr__(self, "excluded", frozenset(self.excluded))

    def __bool__(self) -> bool:
        return bool(self.by_variable or self.excluded)

    def exclude(self, names: Iterable[str]) -> Recipes:
        """Return the recipes with further columns excluded.

        Parameters
        ----------
        names : iterable of str
            Columns that are no variables of the study.

        Returns
        -------
        Recipes
            The recipes of the other variables.

        Examples
        --------
        >>> sorted(Recipes().exclude(["postcode"]).excluded)
        ['postcode']
        """
        names = [names] if isinstance(names, str) else names
        return Recipes(self.by_variable, self.excluded.union(names))

    @classmethod
    def from_toml(cls, text: str | bytes) -> Recipes:
        """Read recipes from TOML, such as the lines that `fedcdh advise` writes.

        Parameters
        ----------
        text : str or bytes
            TOML with tables `[recipes.NAME]`.

        Returns
        -------
        Recipes
            The recipes.

        Raises
        ------
        PlanError
            If a key is unknown, or a recipe cannot be used.
        """
        found = strict_toml.parse_toml(text, refuse=_file_error)
        expect_table(found, ("recipes",), "the file", refuse=_file_error)
        return parse_recipes(found.get("recipes", {}), {}, refuse=_file_error)

    @classmethod
    def from_file(cls, path: str | Path) -> Recipes:
        """Read recipes from a TOML file.

        Parameters
        ----------
        path : str or Path
            The file.

        Returns
        -------
        Recipes
            The recipes.

        Raises
        ------
        PlanError
            If the file cannot be read, or does not hold recipes.
        """
        try:
            return cls.from_toml(read_regular_file(Path(path), MAX_BYTES, "a file of recipes", refuse=PlanError))
        except OSError as problem:
            raise PlanError(f"{path} cannot be read ({problem.strerror}); expected a file of recipes") from None

    def to_document(self) -> dict[str, dict[str, Any]]:
        """Return the recipes as the table `[recipes]` of a declaration.

        Returns
        -------
        dict
            One table for each variable, sorted by name.
        """
        documents = {name: recipe_to_document(one) for name, one in self.by_variable.items()}
        return dict(sorted((documents | {name: {"exclude": True} for name in self.excluded}).items()))

    def to_toml(self) -> str:
        """Write the recipes as lines for a declaration.

        Returns
        -------
        str
            TOML. `from_toml` returns the same recipes.
        """
        tables = []
        for name, fields in self.to_document().items():
            lines = [f"[recipes.{_key(name)}]"] + [f"{key} = {_to_toml(value)}" for key, value in fields.items()]
            tables.append("\n".join(lines) + "\n")
        return "\n".join(tables)


NO_RECIPES = Recipes()


def parse_recipes(found: Any, levels: Mapping[str, tuple[str, ...]], *, refuse: Refuse) -> Recipes:
    """Return the recipes of the table `[recipes]`.

    Parameters
    ----------
    found : object
        The table as it was read.
    levels : mapping from str to tuple of str
        Declared levels of variables, which `other = true` keeps.
    refuse : callable
        Makes the error from its reason.

    Returns
    -------
    Recipes
        The recipes.
    """
    tables = expect_table(found, None, "[recipes]", refuse=refuse)
    excluded, recipes = set(), {}
    for name, fields in tables.items():
        where = f"[recipes.{name}]"
        expect_table(fields, RECIPE_KEYS, where, refuse=refuse)
        if "exclude" in fields:
            if fields["exclude"] is not True or len(fields) > 1:
                raise refuse(f"exclude in {where} should be true and the only key, because nothing of {name!r} is used")
            excluded.add(name)
        else:
            recipes[name] = parse_recipe(fields, where, levels.get(name), refuse=refuse)
    return Recipes(recipes, frozenset(excluded))


def parse_recipe(fields: Any, where: str, levels: tuple[str, ...] | None = None, *, refuse: Refuse) -> Recipe:
    """Return the recipe of one table.

    Parameters
    ----------
    fields : object
        The table as it was read.
    where : str
        Its place, for errors.
    levels : tuple of str, optional
        Declared levels of the variable, which `other = true` keeps.
    refuse : callable
        Makes the error from its reason.

    Returns
    -------
    NumberRecipe or LabelRecipe
        The recipe.
    """
    expect_table(fields, RECIPE_KEYS[:-1], where, refuse=refuse)
    if not fields:
        raise refuse(f"{where} is empty; expected one of {', '.join(RECIPE_KEYS)}")
    binary = expect_table(fields.get("binary", {}), ("above", "at_least", "yes"), f"binary in {where}", refuse=refuse)
    if "binary" in fields and len(binary) != 1:
        raise refuse(f"binary in {where} should have one of above, at_least and yes, found {abbreviate(binary)}")
    numbers = [key for key in fields if key in _NUMBER_KEYS] + [key for key in binary if key != "yes"]
    labels = [key for key in fields if key in _LABEL_KEYS] + [key for key in binary if key == "yes"]
    if numbers and labels:
        raise refuse(f"{where} has {numbers[0]}, which is for numbers, and {labels[0]}, which is for labels; keep one")
    try:
        return _parse_labels(fields, where, levels, refuse) if labels else _parse_numbers(fields, where, refuse)
    except PlanError as problem:
        raise refuse(f"{where}: {problem.message}") from None


def _parse_numbers(fields: Mapping[str, Any], where: str, refuse: Refuse) -> NumberRecipe:
    clients = expect_table(fields.get("clients", {}), None, f"clients in {where}", refuse=refuse)
    for client, one in clients.items():
        expect_table(one, _CONVERSION_KEYS, f"clients.{client} in {where}", refuse=refuse)
    thresholds = [Threshold(_number(value, key, where, refuse), key) for key, value in _binary(fields)]
    return NumberRecipe(
        units=_text(fields.get("units", ""), "units", where, refuse),
        conversion=_parse_conversion(fields, where, refuse) if set(fields) & set(_CONVERSION_KEYS) else None,
        client_conversions=tuple((name, _parse_conversion(one, where, refuse)) for name, one in clients.items()),
        clip=_parse_clip(fields["clip"], where, refuse) if "clip" in fields else None,
        step=_number(fields["round"], "round", where, refuse) if "round" in fields else None,
        logarithm=_parse_logarithm(fields.get("log", False), where, refuse),
        threshold=thresholds[0] if thresholds else None,
    )


def _parse_clip(found: Any, where: str, refuse: Refuse) -> tuple[float, float]:
    if not isinstance(found, list) or len(found) != 2:
        raise refuse(f"clip in {where} should be two numbers such as [0, 500], found {abbreviate(found)}")
    return _number(found[0], "clip", where, refuse), _number(found[1], "clip", where, refuse)


def _binary(fields: Mapping[str, Any]) -> list[tuple[Any, Any]]:
    return [(key, value) for key, value in fields.get("binary", {}).items() if key != "yes"]


def _parse_conversion(fields: Mapping[str, Any], where: str, refuse: Refuse) -> UnitConversion:
    if "factor" not in fields and "offset" not in fields:
        raise refuse(f"{where} has from_units without a factor; write the factor by which values are multiplied")
    factor = _number(fields.get("factor", 1.0), "factor", where, refuse)
    offset = _number(fields.get("offset", 0.0), "offset", where, refuse)
    return UnitConversion(factor, offset, _text(fields.get("from_units", ""), "from_units", where, refuse))


def _parse_logarithm(found: Any, where: str, refuse: Refuse) -> Logarithm:
    known: dict[Any, Logarithm] = {"log1p": "log1p"}
    if found is True or found is False:
        return "log" if found else "none"
    if not isinstance(found, str) or found not in known:
        raise refuse(f'log in {where} should be true, or "log1p" for values with zeros, found {abbreviate(found)}')
    return known[found]


def _parse_labels(fields: Mapping[str, Any], where: str, levels: tuple[str, ...] | None, refuse: Refuse) -> LabelRecipe:
    if "binary" in fields:
        if set(fields) != {"binary"}:
            raise refuse(f"binary in {where} should be the only key; put all labels that count as yes in its list")
        return LabelRecipe(((YES, _labels(fields["binary"]["yes"], "binary.yes", where, refuse)),), (), NO)
    groups = expect_table(fields.get("groups", {}), None, f"groups in {where}", refuse=refuse)
    parsed = {str(name): _labels(one, f"groups of {name!r}", where, refuse) for name, one in groups.items()}
    other = fields.get("other", "keep" in fields)
    if not isinstance(other, str | bool) or other == "":
        raise refuse(f"other in {where} should be true or the name of a level, found {abbreviate(other)}")
    if not other:
        return LabelRecipe(tuple(parsed.items()))
    if "keep" in fields:
        keep = _labels(fields["keep"], "keep", where, refuse)
    elif levels is not None:
        keep = levels
    elif parsed:
        keep = ()
    else:
        raise refuse(
            f'{where} has other = true, but no levels are known; list those that stay, such as keep = ["a", "b"], or '
            "declare the levels of the variable"
        )
    grouped, name = {label for one in parsed.values() for label in one}, OTHER if other is True else other
    kept = tuple(level for level in keep if level not in grouped and level not in parsed and level != name)
    return LabelRecipe(tuple(parsed.items()), kept, name)


def _labels(found: Any, key: str, where: str, refuse: Refuse) -> tuple[str, ...]:
    listed = found if isinstance(found, list) else [None]
    if not all(isinstance(one, str | int) and not isinstance(one, bool) for one in listed):
        raise refuse(f'{key} in {where} should be a list of labels such as ["III", "IV"], found {abbreviate(found)}')
    return tuple(map(str, found))


def _number(found: Any, key: str, where: str, refuse: Refuse) -> float:
    return expect_number(found, f"{key} in {where}", refuse=refuse)


def _text(found: Any, key: str, where: str, refuse: Refuse) -> str:
    if not isinstance(found, str):
        raise refuse(f"{key} in {where} should be a text, found {abbreviate(found)}")
    return found


def recipe_to_document(recipe: Recipe) -> dict[str, Any]:
    """Return a recipe as the table of a declaration, or of a plan.

    Parameters
    ----------
    recipe : NumberRecipe or LabelRecipe
        The recipe.

    Returns
    -------
    dict
        `parse_recipe` returns the same recipe.

    Examples
    --------
    >>> recipe_to_document(NumberRecipe(logarithm="log", clip=(1, 90)))
    {'clip': [1.0, 90.0], 'log': True}
    """
    if isinstance(recipe, LabelRecipe):
        groups = {name: list(labels) for name, labels in recipe.groups}
        rest = {"keep": list(recipe.keep), "other": recipe.other} if recipe.other else {}
        return {**({"groups": groups} if groups else {}), **rest}
    threshold = recipe.threshold
    found: dict[str, Any] = {
        "units": recipe.units or None,
        **(_conversion_to_document(recipe.conversion) if recipe.conversion else {}),
        "clip": list(recipe.clip) if recipe.clip is not None else None,
        "round": recipe.step,
        "log": {"none": None, "log": True, "log1p": "log1p"}[recipe.logarithm],
        "binary": {threshold.side: threshold.value} if threshold is not None else None,
        "clients": {name: _conversion_to_document(one) for name, one in recipe.client_conversions} or None,
    }
    return {key: value for key, value in found.items() if value is not None} or {"log": False}


def _conversion_to_document(conversion: UnitConversion) -> dict[str, Any]:
    named = {"from_units": conversion.from_units} if conversion.from_units else {}
    return {**named, "factor": conversion.factor, **({"offset": conversion.offset} if conversion.offset else {})}


def _to_toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(str(key))} = {_to_toml(one)}" for key, one in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_to_toml, value)) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return _quote(value) if isinstance(value, str) else repr(value)


def _quote(text: str) -> str:
    return to_canonical_json(text)  # a basic string of TOML has the escapes of JSON


def _key(name: str) -> str:
    plain = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if plain else _quote(name)


def _file_error(reason: str) -> PlanError:
    return PlanError(f"The recipes cannot be used: {reason.rstrip('.')}. Correct them there.")
