"""Checks that all clients mean the same by a variable: one unit, and one spelling and one set of labels.

The check is one for all ways to plan a study: `fedcdh.discover` and the estimator, `StudyPlan.from_tables` and
`StudyPlan.from_profiles`, `fedcdh.federation.plan_study`, and the commands.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from fedcdh._io.text import abbreviate_list, suggest_name
from fedcdh.data.recipes import LabelRecipe, NumberRecipe, Recipe
from fedcdh.errors import PlanError
from fedcdh.summaries.column_profiles import ColumnProfile
from fedcdh.summaries.label_consistency import find_disjoint_labels, find_spelling_variants
from fedcdh.summaries.unit_consistency import find_unit_mismatch

Columns = Mapping[str, Mapping[str, ColumnProfile]]
"""The profile of each column, by variable and client."""


def check_consistency(columns: Columns, accepted: Collection[str] = ()) -> None:
    """Report all variables of which clients seem to have different units or labels, in one error.

    Parameters
    ----------
    columns : mapping from str to mapping from str to ColumnProfile
        By variable and client, the profile of its column.
    accepted : collection of str, default ()
        Variables whose ranges or labels really differ.

    Raises
    ------
    PlanError
        If an accepted variable is not there, or a variable that is not accepted is doubted.

    Examples
    --------
    >>> columns = {"sex": {"north": ColumnProfile("categorical", 9, 0, levels=("F", "f"), counts=(4, 5))}}
    >>> check_consistency(columns, accepted=["sex"])
    >>> check_consistency(columns)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    fedcdh.errors.PlanError: The variable 'sex' has labels that differ only in their spelling ...
    """
    check_accepted(accepted, columns)
    found = [_find_differences(name, by_client) for name, by_client in columns.items() if name not in accepted]
    if problems := [text for texts in found for text in texts]:
        raise PlanError("\n".join(problems))  # the text names the parameter; TOML to copy may be its end


def check_accepted(accepted: Iterable[str], names: Collection[str]) -> None:
    """Refuse accepted differences of variables that a study does not have.

    Parameters
    ----------
    accepted : iterable of str
        Variables whose differences are accepted.
    names : collection of str
        Variables of the study.

    Raises
    ------
    PlanError
        If a name is not that of a variable.

    Examples
    --------
    >>> check_accepted(["age"], ["age", "sex"])
    """
    if isinstance(accepted, str):
        accepted = [accepted]
    if unknown := [name for name in accepted if name not in names]:
        near = suggest_name(unknown[0], names)
        raise PlanError(
            f"Differences of {unknown[0]!r} are accepted, but the study has no such variable{near}. Expected some of "
            f"{abbreviate_list(names)}. Correct the name.",
            parameter="accept_differences",
        )


def has_decided_levels(recipe: Recipe | None) -> bool:
    """Return whether a recipe says which levels a variable has, so that labels cannot differ after it.

    Parameters
    ----------
    recipe : NumberRecipe or LabelRecipe, optional
        Recipe of the variable.

    Returns
    -------
    bool
        True for a threshold and for listed levels.

    Examples
    --------
    >>> has_decided_levels(None)
    False
    """
    if isinstance(recipe, NumberRecipe):
        return recipe.threshold is not None
    return isinstance(recipe, LabelRecipe) and recipe.levels is not None


def _find_differences(name: str, columns: Mapping[str, ColumnProfile]) -> list[str]:
    kinds = {column.kind for column in columns.values() if column.count}
    if kinds == {"categorical"}:
        found = [find_spelling_variants(name, columns), find_disjoint_labels(name, columns)]
    else:
        units = find_unit_mismatch(name, columns)
        found = [None if units is None else str(units)]
    return [text for text in found if text]
