"""One recipe for every variable, from the recipes that several sites ask for."""

from __future__ import annotations

from collections.abc import Iterable

from fedcdh.data.recipe_file import Recipes
from fedcdh.data.recipes import LabelRecipe, Logarithm, NumberRecipe, Recipe
from fedcdh.errors import PlanError


def merge_recipes(parts: Iterable[Recipes]) -> Recipes:
    """Merge the recipes that several sites ask for into recipes that all sites carry out.

    A variable that one site cannot send is excluded. Groups that share a label or a name become one group, the
    narrowest clip and the coarsest rounding hold, log1p replaces log where one site has zeros, and a threshold
    replaces a logarithm.

    Parameters
    ----------
    parts : iterable of Recipes
        Recipes of sites, in any order.

    Returns
    -------
    Recipes
        One recipe for each variable.

    Raises
    ------
    PlanError
        If two recipes of a variable contradict each other.

    Examples
    --------
    >>> north = Recipes.from_toml('[recipes.nyha]\\ngroups = {"III/IV" = ["III", "IV"]}')
    >>> south = Recipes.from_toml('[recipes.nyha]\\ngroups = {"II/III" = ["II", "III"]}')
    >>> merge_recipes([north, south]).by_variable["nyha"].groups
    (('II/III/IV', ('II', 'III', 'IV')),)
    """
    listed = list(parts)
    merged: dict[str, Recipe] = {}
    for part in listed:
        for name, recipe in part.by_variable.items():
            merged[name] = _merge(name, merged[name], recipe) if name in merged else recipe
    return Recipes(merged, frozenset().union(*(part.excluded for part in listed)))


def _merge(name: str, one: Recipe, other: Recipe) -> Recipe:
    if one == other:
        return one
    if isinstance(one, LabelRecipe) and isinstance(other, LabelRecipe):
        return _merge_labels(name, one, other)
    if isinstance(one, NumberRecipe) and isinstance(other, NumberRecipe):
        return _merge_numbers(name, one, other)
    raise _contradiction(name, "one is for numbers and one for labels")


def _merge_numbers(name: str, one: NumberRecipe, other: NumberRecipe) -> NumberRecipe:
    for what, first, second in (
        ("units", one.units, other.units),
        ("conversions of units", one.conversion, other.conversion),
        ("thresholds", one.threshold, other.threshold),
        *(
            (f"conversions of units for {client}", dict(one.client_conversions)[client], theirs)
            for client, theirs in other.client_conversions
            if client in dict(one.client_conversions)
        ),
    ):
        if first and second and first != second:
            raise _contradiction(name, f"they have different {what}")
    clips = [recipe.clip for recipe in (one, other) if recipe.clip is not None]
    low, high = max((clip[0] for clip in clips), default=0.0), min((clip[1] for clip in clips), default=0.0)
    if clips and not low < high:
        raise _contradiction(name, "their clips have no value in common")
    threshold = one.threshold or other.threshold
    logs: list[Logarithm] = [one.logarithm, other.logarithm]
    return NumberRecipe(
        one.units or other.units,
        one.conversion or other.conversion,
        tuple({**dict(one.client_conversions), **dict(other.client_conversions)}.items()),
        (low, high) if clips else None,
        max((step for step in (one.step, other.step) if step is not None), default=None),
        "none" if threshold else "log1p" if "log1p" in logs else "log" if "log" in logs else "none",
        threshold,
    )


def _merge_labels(name: str, one: LabelRecipe, other: LabelRecipe) -> LabelRecipe:
    if one.other and other.other and one.other != other.other:
        raise _contradiction(name, f"other labels become {one.other!r} in one and {other.other!r} in the other")
    sets: list[tuple[set[str], set[str]]] = []  # names and labels of each group
    for group, labels in (*one.groups, *other.groups):
        names, joined = {group}, set(labels)
        for known in [known for known in sets if known[0] & names or known[1] & joined]:
            sets.remove(known)
            names, joined = names | known[0], joined | known[1]
        sets.append((names, joined))
    groups = [(_group_name(names, labels), tuple(sorted(labels))) for names, labels in sets]
    grouped = {label for _, labels in groups for label in labels}
    kept = [set(recipe.keep) for recipe in (one, other) if recipe.other]
    keep = set.intersection(*kept) - grouped if kept else set()
    return LabelRecipe(tuple(groups), tuple(keep), one.other or other.other)


def _group_name(names: set[str], labels: set[str]) -> str:
    """Return the only name of a group, or its labels."""
    return next(iter(names)) if len(names) == 1 else name_group(labels)


def name_group(labels: Iterable[str]) -> str:
    """Return a name for a group of labels.

    Parameters
    ----------
    labels : iterable of str
        The labels.

    Returns
    -------
    str
        The labels, with a stroke between them; of many labels the first and the last.

    Examples
    --------
    >>> name_group(["III", "IV"])
    'III/IV'
    """
    listed = sorted(labels)
    joined = "/".join(listed)
    return joined if len(joined) <= 40 else f"{listed[0][:16]}/.../{listed[-1][:16]}"


def _contradiction(name: str, reason: str) -> PlanError:
    return PlanError(
        f"The recipes of {name!r} contradict each other: {reason}. Expected recipes that can hold together at every "
        "site. Keep one of them, or exclude the variable."
    )
