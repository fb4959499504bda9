"""Another recipe of a column that has left before: whether the two together disclose few people.

A coordinator who may choose recipes can ask for "above 40" in one plan and "above 41" in the next. Each has many
people on both sides, and the difference of the two messages is about those in between. So the people who are in one
class by all recipes of a column, earlier ones and the new one, have to be none, or as many as a cell needs. Classes are
the levels that a recipe makes, the two sides of a threshold, and the values below, within and beyond a clip. Where
two recipes round in different ways, they are the rounded values. Units and logarithms make no classes: they are other
features of the same values, which the ledger counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from fedcdh._runtime.array_types import Array
from fedcdh.data.columns import Column, NumericColumn
from fedcdh.data.prepared_source import prepare_rows, source_kinds
from fedcdh.data.recipe_file import parse_recipe
from fedcdh.data.recipes import LabelRecipe, NumberRecipe, Recipe
from fedcdh.data.sources import ColumnKind, TableSource, to_source
from fedcdh.data.table import Table
from fedcdh.data.threaded_source import partition
from fedcdh.errors import DisclosureError, LedgerError
from fedcdh.privacy.ledger.ledger_file import find_active_entries
from fedcdh.privacy.ledger.record import RECIPES_KEY, LedgerEntry
from fedcdh.privacy.release_context import ReleaseContext
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.profiles import Profile, profiled_kinds

Cells = Counter[tuple[object, ...]]


def check_profile_recipes(rows: Any, found: Profile, context: ReleaseContext) -> None:
    """Refuse a profile whose recipes, beside those of earlier releases, single out few people.

    Parameters
    ----------
    rows : table or source of rows
        The rows that were profiled.
    found : Profile
        The profile that is to leave.
    context : ReleaseContext
        The client and its rules.

    Raises
    ------
    DisclosureError
        If few people are in one class by all recipes of a column.
    """
    recipes = {name: column.recipe for name, column in found.columns.items()}
    for name, earlier in _changed_recipes(recipes, context).items():
        kinds: dict[str, ColumnKind] = {name: profiled_kinds(found)[name]}
        source = to_source(rows, context.label, only=[name])
        cells = _count_cells(source, kinds, {}, context.client, name, [recipes[name], *earlier])
        _check_cells(name, cells, context.policy.differencing_limits().profile_rows, "profile")


def check_plan_recipes(rows: Any, plan: StudyPlan, context: ReleaseContext) -> None:
    """Refuse a summary whose recipes, beside those of earlier releases, single out few people.

    Parameters
    ----------
    rows : table or source of rows
        The rows of the summary.
    plan : StudyPlan
        The plan that it follows.
    context : ReleaseContext
        The client and its rules.

    Raises
    ------
    DisclosureError
        If few people are in one class by all recipes of a column, or in one class and one level of another variable.

    Examples
    --------
    >>> from fedcdh.summaries import Continuous
    >>> plan = StudyPlan((Continuous("age", 60, 15),), ("north",))
    >>> check_plan_recipes({"age": [50, 61]}, plan, ReleaseContext("north"))  # no ledger, so nothing left before
    """
    recipes = {variable.name: variable.recipe for variable in plan.variables}
    limits = context.policy.differencing_limits(plan)
    kinds = source_kinds(plan.kinds, plan.recipes)
    for profiles, limit in ((True, limits.profile_rows), (False, limits.cell_count)):
        for name, earlier in _changed_recipes(recipes, context, profiles=profiles).items():
            others = {} if profiles else {one: plan.recipes.get(one) for one in _categorical_others(plan, name)}
            parts = partition(rows, context.label, workers=context.workers, names=plan.names, only=plan.names)
            work = _CellCounting(kinds, others, context.client, name, [recipes[name], *earlier])
            cells = parts.map_reduce(work, _add_cells)
            _check_cells(name, cells, limit, "summary")


def _categorical_others(plan: StudyPlan, name: str) -> list[str]:
    return [other for other, kind in plan.kinds.items() if kind == "categorical" and other != name]


def _changed_recipes(
    recipes: Mapping[str, Recipe | None], context: ReleaseContext, *, profiles: bool = True
) -> dict[str, list[Recipe | None]]:
    """Return, by variable, the other recipes with which its column has left, if any of them makes classes."""
    if context.gate is None or not context.policy.disclosure_control:
        return {}
    found: dict[str, list[Recipe | None]] = {}
    active = [one for one in find_active_entries(context.gate.ledger.entries()) if one.release.disclosure_control]
    for name, recipe in recipes.items():
        own = context.local_names.get(name, name)
        for entry in active:
            if own in entry.release.columns and (profiles or entry.release.kind != "profile"):
                earlier = _recorded_recipe(entry, own)
                if earlier != recipe and earlier not in found.get(name, []):
                    found.setdefault(name, []).append(earlier)
    return {name: others for name, others in found.items() if any(map(_makes_classes, [recipes[name], *others]))}


def _recorded_recipe(entry: LedgerEntry, own: str) -> Recipe | None:
    document = entry.release.details.get(RECIPES_KEY, {}).get(own)
    return None if document is None else parse_recipe(document, f"release {entry.number}", refuse=LedgerError)


def _makes_classes(recipe: Recipe | None) -> bool:
    if isinstance(recipe, NumberRecipe):
        return recipe.clip is not None or recipe.step is not None or recipe.threshold is not None
    return recipe is not None


class _CellCounting:
    """Counts people by classes on one part of the rows; a value of its own, so that it can be sent to workers."""

    def __init__(
        self,
        kinds: Mapping[str, ColumnKind],
        others: Mapping[str, Recipe | None],
        client: str,
        name: str,
        recipes: Sequence[Recipe | None],
    ) -> None:
        self._arguments = (kinds, others, client, name, recipes)

    def __call__(self, source: TableSource) -> Cells:
        return _count_cells(source, *self._arguments)


def _count_cells(
    source: TableSource,
    kinds: Mapping[str, ColumnKind],
    others: Mapping[str, Recipe | None],
    client: str,
    name: str,
    recipes: Sequence[Recipe | None],
) -> Cells:
    """Count the complete rows in every class, alone and with every level of other variables."""
    cells: Cells = Counter()
    for batch in source.batches(kinds):
        rows = batch.select_rows(~np.logical_or.reduce([column.missing for column in batch.columns.values()]))
        if not rows.rows:
            continue
        keys = list(_class_keys(rows.columns[name], recipes, client))
        cells.update(_count_tuples("", keys))
        levels = prepare_rows(
            Table({other: rows.columns[other] for other in others}),
            {other: recipe for other, recipe in others.items() if recipe is not None},
            client,
        )
        for other, column in levels.columns.items():
            cells.update(_count_tuples(other, [*keys, _level_keys(column)]))
    return cells


def _class_keys(column: Column, recipes: Sequence[Recipe | None], client: str) -> Iterator[Array]:
    """Yield the class of every row by each recipe: a number that stands for a level, a side or a rounded value."""
    roundings = {(one.conversion_of(client), one.clip, one.step) for one in _numbers(recipes) if one.step is not None}
    yield np.zeros(len(column))
    for recipe in recipes:
        if recipe is None:
            if not isinstance(column, NumericColumn):
                yield _level_keys(column)
        elif isinstance(recipe, LabelRecipe):
            yield _level_keys(recipe.apply(column, "a column", client))
        elif isinstance(column, NumericColumn):
            values = NumberRecipe(conversion=recipe.conversion, client_conversions=recipe.client_conversions).transform(
                column.values, client
            )
            if recipe.clip is not None:
                yield np.asarray(np.sign(values - np.clip(values, *recipe.clip)))
            if recipe.threshold is not None:
                yield _level_keys(recipe.apply(column, "a column", client))
            if recipe.step is not None and len(roundings) > 1:
                rounded = NumberRecipe(
                    conversion=recipe.conversion_of(client), clip=recipe.clip, step=recipe.step
                ).transform(column.values, client)
                yield rounded


def _numbers(recipes: Sequence[Recipe | None]) -> list[NumberRecipe]:
    return [one for one in recipes if isinstance(one, NumberRecipe)]


def _level_keys(column: Column) -> Array:
    """Return a number for the level of every row that is the same in every batch."""
    texts = column.to_categorical()
    numbers = [int.from_bytes(level.encode(), "big") % _PRIME for level in texts.levels]
    return np.array([*numbers, -1], dtype=np.float64)[texts.codes]


_PRIME = 9_007_199_254_740_881  # the largest prime below 2⁵³: levels with equal remainders would count as one


def _add_cells(one: Cells, other: Cells) -> Cells:
    return one + other


def _count_tuples(kind: str, keys: Sequence[Array]) -> Cells:
    found, counts = np.unique(np.stack(keys), axis=1, return_counts=True)
    return Counter({(kind, *cell): count for cell, count in zip(found.T.tolist(), counts.tolist(), strict=True)})


def _check_cells(name: str, cells: Cells, limit: int, what: str) -> None:
    few = [(count, cell) for cell, count in cells.items() if count < limit]
    if not few:
        return
    beside = f" and one level of {few[0][1][0]!r}" if all(cell[0] for _, cell in few) else ""
    raise DisclosureError(
        f"This {what} must not leave after the releases in this site's ledger:\n- the recipe of {name!r} is another "
        f"one than before, and {min(count for count, _ in few)} people are in one class by both{beside}, expected "
        f"none or at least {limit}: the difference of the releases would be about these people. Ask for the earlier "
        f"recipe, or leave {name!r} out of the plan; if the earlier release was never sent, withdraw it: fedcdh "
        "ledger withdraw NUMBER --reason ..."
    )
