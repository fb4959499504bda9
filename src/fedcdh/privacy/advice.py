"""Advice for a site: the smallest change of recipes that lets its summary leave.

Recipes are tried against the policy of the site, with its own rows. Steps are to merge the rarest level with a
neighbour, to take a logarithm, to clip the tails, to replace a number by a threshold, and as the last resort to exclude
a variable. Of all steps for the variables that the findings name, the one is taken that removes the most findings for
each bit of information lost; a variable that is changed already is preferred. At the end every variable that can have
its earlier recipe back gets it back, and an excluded one that can stay with a recipe stays.

Nothing is recorded, and nothing leaves. The findings hold counts and are for the site only; the recipes hold none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from fedcdh._runtime.array_types import Array
from fedcdh.data.columns import NumericColumn
from fedcdh.data.prepared_source import prepare_rows, source_kinds
from fedcdh.data.recipe_file import Recipes
from fedcdh.data.recipes import NO, YES, LabelRecipe, NumberRecipe, Recipe
from fedcdh.data.sources import TableSource, to_source
from fedcdh.data.table import Table
from fedcdh.errors import DataError
from fedcdh.privacy._advice_steps import (
    Step,
    count_levels,
    exclude_labels,
    exclude_number,
    hide_rare_labels,
    map_levels,
    merging_steps,
    number_steps,
    plain_number,
)
from fedcdh.privacy.disclosure._findings import group_findings
from fedcdh.privacy.disclosure.rules import describe_small_cell
from fedcdh.privacy.release_context import ReleaseContext
from fedcdh.privacy.releases import try_summary
from fedcdh.summaries.column_profiles import ColumnProfile
from fedcdh.summaries.features import FeatureFamily
from fedcdh.summaries.plan import DEFAULT_FAMILY, StudyPlan
from fedcdh.summaries.profiles import Profile, profile
from fedcdh.summaries.variables import Categorical, Continuous, Variable

MAX_STEPS = 60
"""Steps after which the search ends; each merges two levels, changes a number or excludes a variable."""
MAX_BLAMED = 6
"""Variables, most often named first, for which steps are tried at a time."""
_NEW_VARIABLE_BITS = 0.5  # for touching a variable that was untouched so far
_UNREADABLE = 1e9  # findings that rows count for of which too many would be lost
_LACKING_ROWS = 10.0  # findings that a table of half the rows counts for


@dataclass(frozen=True)
class Advice:
    """Changes after which the summary of a site may leave.

    Attributes
    ----------
    findings : tuple of str
        What the policy finds as things are, one line for each cause. For the site only: it holds counts.
    changes : Recipes
        Recipes to add to the declaration; empty if the summary may leave as it is, and if none were found.
    remaining : tuple of str
        What the policy finds after all that was tried. For the site only. Empty if recipes were found.
    variables : tuple of str
        Variables of the study after these changes.

    Examples
    --------
    >>> Advice((), Recipes(), (), ("age",)).may_leave
    True
    """

    findings: tuple[str, ...]
    changes: Recipes
    remaining: tuple[str, ...]
    variables: tuple[str, ...]

    @property
    def may_leave(self) -> bool:
        """Return whether the summary may leave as it is."""
        return not self.findings


def advise(rows: Any, plan: StudyPlan, context: ReleaseContext) -> Advice:
    """Find the smallest change of recipes that lets the summary of these rows leave.

    Parameters
    ----------
    rows : table or source of rows
        The rows. A source in order is read into memory.
    plan : StudyPlan
        The plan to follow, or one made from the site's own profile (`plan_from_profile`).
    context : ReleaseContext
        The client and its policy; its ledger is not asked.

    Returns
    -------
    Advice
        The findings, and the recipes that remove them.

    Raises
    ------
    DataError
        If the rows cannot be summarised by this plan, for another reason than missing values.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> table = {"crp": rng.lognormal(1, 1.3, 400), "age": rng.normal(60, 15, 400)}
    >>> plan = StudyPlan((Continuous("crp", 6, 12), Continuous("age", 60, 15)), ("north",))
    >>> print(advise(table, plan, ReleaseContext("north")).changes.to_toml(), end="")
    [recipes.crp]
    log = true
    """
    return _Search(rows, plan, context).run()


def advise_from_profile(
    rows: Any,
    found: Profile,
    context: ReleaseContext,
    levels: Mapping[str, Sequence[str]] = MappingProxyType({}),
    *,
    family: FeatureFamily = DEFAULT_FAMILY,
) -> Advice:
    """Find the smallest change of recipes that lets a profile and a summary leave, before there is a plan.

    Labels that few people have may be names. Where nobody has declared them, the recipes do not name them: they list
    the labels that stay, and all others become one level.

    Parameters
    ----------
    rows : table or source of rows
        The rows.
    found : Profile
        Their profile, after the recipes that there are.
    context : ReleaseContext
        The client and its policy.
    levels : mapping from str to sequence of str, optional
        Declared levels of variables, which everybody knows.
    family : FeatureFamily, optional
        Features of numbers. Summaries with fewer columns need fewer rows.

    Returns
    -------
    Advice
        The findings, and the recipes that remove them. The other sites' columns are taken to be like this site's.

    Examples
    --------
    >>> table = {"age": np.random.default_rng(0).normal(60, 15, 300), "chol": [None] * 300}
    >>> sorted(advise_from_profile(table, profile(table, "north"), ReleaseContext("north")).changes.excluded)
    ['chol']
    """
    empty = [name for name, column in found.columns.items() if not column.count]
    fewest = context.policy.differencing_limits().profile_rows
    advice = _Search(rows, plan_from_profile(found, family=family), context, fewest).run()
    recipes = {
        name: hide_rare_labels(one, found.columns[name], levels.get(name, ()), fewest)
        for name, one in advice.changes.by_variable.items()
    }
    lines = [f"variable {name!r} has no values here; leave it out, or this site cannot take part" for name in empty]
    excluded = advice.changes.excluded | set(empty)
    return replace(advice, findings=(*lines, *advice.findings), changes=Recipes(recipes, excluded))


def plan_from_profile(found: Profile, *, family: FeatureFamily = DEFAULT_FAMILY) -> StudyPlan:
    """Return the plan that a study of this site alone would have, to try a summary before there is a plan.

    Parameters
    ----------
    found : Profile
        Profile of the site.
    family : FeatureFamily, optional
        Features of numbers.

    Returns
    -------
    StudyPlan
        Variables that have values, with the location, scale and levels of this site.

    Examples
    --------
    >>> plan_from_profile(profile({"age": [30, 40], "empty": [None, None]}, "north")).names
    ('age',)
    """
    present = {name: column for name, column in found.columns.items() if column.count}
    return StudyPlan.from_profiles(
        [Profile(found.client, found.rows, present)], family=family, accept_differences=present
    )


class _Search:
    """The search for recipes at one site."""

    def __init__(self, rows: Any, plan: StudyPlan, context: ReleaseContext, min_profile_count: int = 0) -> None:
        self._plan, self._context, self._min_profile_count = plan, context, min_profile_count
        self._batches = _load(rows, plan, context)
        self._rows = rows if self._batches is None else self._batches
        self._variables = {variable.name: variable for variable in plan.variables}
        self._profiles: dict[tuple[str, Recipe], ColumnProfile] = {}

    def run(self) -> Advice:
        """Return the advice."""
        start = _State(dict(self._plan.recipes), frozenset())
        state, first = start, self._try(start)
        trial = first
        for _ in range(MAX_STEPS):
            if not trial.findings:
                break
            tried = [(step, self._try(state.after(step))) for step in self._steps(state, trial)]
            gains = [(self._gain(step, state, trial, after), step, after) for step, after in tried]
            # a step that removes nothing is taken only if it excludes something: the next one may remove more
            useful = [one for one in gains if one[0] > 0] or [one for one in gains if one[1].recipe is None]
            if not useful:
                break
            _, step, trial = max(useful, key=lambda one: one[0])
            state = state.after(step)
        state, trial = self._restore(state, start, trial)
        names = tuple(name for name in self._variables if name not in state.excluded)
        found, remaining = tuple(group_findings(first.findings)), tuple(group_findings(trial.findings))
        changes = Recipes() if remaining else state.changes_since(start)
        return Advice(found, changes, remaining, names)

    def _gain(self, step: Step, state: _State, before: _Trial, after: _Trial) -> float:
        """Return the findings that a step removes for each bit of information lost."""
        untouched = state.recipes.get(step.name) == self._plan.recipes.get(step.name)
        return (before.weight - after.weight) / (step.bits + _NEW_VARIABLE_BITS * untouched)

    def _restore(self, state: _State, start: _State, trial: _Trial) -> tuple[_State, _Trial]:
        """Give every variable its earlier recipe back, or an excluded one a recipe, if no more is found then."""
        for name in sorted(state.touched_since(start), key=lambda name: (name not in state.excluded, name)):
            for other in self._lesser_changes(name, state, start):
                if (again := self._try(other)).weight <= trial.weight:
                    state, trial = other, again
                    break
        return state, trial

    def _lesser_changes(self, name: str, state: _State, start: _State) -> Iterator[_State]:
        """Yield states in which less is done to a variable, the least first."""
        if name not in state.excluded:
            yield state.restored(name, start)
            return
        kept = state.restored(name, start)
        yield kept
        variable = self._revise_variable(self._variables[name], kept.recipes.get(name))
        if isinstance(variable, Continuous):
            for step in sorted(self._number_steps(name, variable.recipe), key=lambda step: step.bits):
                yield kept.after(step)
        while isinstance(variable, Categorical) and not isinstance(variable.recipe, NumberRecipe):
            counts = count_levels(self._prepared(name, variable.recipe))
            steps = sorted(merging_steps(name, variable, counts), key=lambda step: step.bits)
            if not steps:
                return
            kept = kept.after(steps[0])
            yield kept
            variable = self._revise_variable(self._variables[name], kept.recipes.get(name))

    def _try(self, state: _State) -> _Trial:
        """Return what the policy finds against the summary with these recipes."""
        plan = self._revise(state)
        rows, lost, worst = self._count_lost_rows(plan)
        if rows and (lost == rows or lost > self._context.max_missing_share * rows):
            finding = (
                f"{lost} of {rows} rows would be left out for missing values, expected at most "
                f"{self._context.max_missing_share:.0%}: most of them lack {worst!r}; leave that variable out, or fill "
                "the values in"
            )
            return _Trial((finding,), _UNREADABLE + lost, missing=True)
        findings = (*self._check_profile(plan), *try_summary(self._rows, plan, self._context))
        required = self._context.policy.differencing_limits(plan).rows
        lacking = max(0.0, required / (rows - lost) - 1) if rows and findings else 0.0
        return _Trial(findings, len(findings) + _LACKING_ROWS * lacking)

    def _check_profile(self, plan: StudyPlan) -> Iterator[str]:
        """Yield the levels that are too rare for a profile, which has to leave before the summary."""
        for variable in plan.variables if self._context.policy.disclosure_control else ():
            if isinstance(variable, Categorical) and self._min_profile_count:
                for level, count in count_levels(self._prepared(variable.name, variable.recipe)).items():
                    if 0 < count < self._min_profile_count:
                        what = f"level {level!r} of {variable.name!r}"
                        yield describe_small_cell(what, count, self._min_profile_count)

    def _revise(self, state: _State) -> StudyPlan:
        kept = [self._revise_variable(v, state.recipes.get(v.name)) for v in self._plan.variables]
        variables = tuple(variable for variable in kept if variable.name not in state.excluded)
        return replace(self._plan, variables=variables, excluded=())

    def _revise_variable(self, variable: Variable, recipe: Recipe | None) -> Variable:
        """Return a variable with another recipe; location and scale are then those of this site."""
        if recipe == variable.recipe or recipe is None:
            return variable
        if isinstance(recipe, LabelRecipe):
            levels = variable.levels if isinstance(variable, Categorical) else ()
            return Categorical(variable.name, map_levels(levels, variable.recipe, recipe), recipe=recipe)
        if recipe.threshold is not None:
            return Categorical(variable.name, (NO, YES), recipe=recipe)
        found = self._profile(variable.name, recipe)
        return Continuous(variable.name, found.location, found.scale, found.centre, found.spread, recipe=recipe)

    def _profile(self, name: str, recipe: Recipe) -> ColumnProfile:
        if (name, recipe) not in self._profiles:
            made = profile(self._rows, self._context.client, variables=[name], recipes=Recipes({name: recipe}))
            self._profiles[name, recipe] = made.columns[name]
        return self._profiles[name, recipe]

    def _count_lost_rows(self, plan: StudyPlan) -> tuple[int, int, str]:
        """Return the number of rows, how many lack a value, and the variable that lacks most."""
        missing, rows, lost = dict.fromkeys(plan.names, 0), 0, 0
        for batch in self._batches or ():
            rows += batch.rows
            gaps = np.stack([batch.columns[name].missing for name in plan.names])
            lost += int(gaps.any(axis=0).sum())
            for name, gap in zip(plan.names, gaps, strict=True):
                missing[name] += int(gap.sum())
        return rows, lost, max(missing, key=lambda name: missing[name])

    def _steps(self, state: _State, trial: _Trial) -> Iterator[Step]:
        """Yield steps for the variables that the findings name most often; one variable is always left."""
        present = [name for name in self._variables if name not in state.excluded]
        return (step for step in self._all_steps(state, trial, present) if step.recipe or len(present) > 1)

    def _all_steps(self, state: _State, trial: _Trial, present: Sequence[str]) -> Iterator[Step]:
        blamed = {name: sum(repr(name) in text for text in trial.findings) for name in present}
        lacks_rows = trial.weight > len(trial.findings)
        named = present if lacks_rows else [name for name in present if blamed[name]] or present
        for name in sorted(named, key=lambda name: -blamed[name])[: None if lacks_rows else MAX_BLAMED]:
            variable = self._revise_variable(self._variables[name], state.recipes.get(name))
            column = self._prepared(name, variable.recipe)
            if isinstance(variable, Categorical):
                counts = count_levels(column)
                yield exclude_labels(name, counts)
                if not trial.missing and not isinstance(variable.recipe, NumberRecipe):
                    yield from merging_steps(name, variable, counts)
            else:
                yield exclude_number(name)
                if not trial.missing:
                    yield from self._number_steps(name, variable.recipe)

    def _number_steps(self, name: str, recipe: Recipe | None) -> Iterator[Step]:
        """Return the steps for a number, found from its values in the study's units."""
        plain = plain_number(recipe)
        values = [_values(table, name) for table in self._prepared(name, plain)]
        fewest = self._context.policy.differencing_limits(self._plan).cell_count
        return number_steps(name, recipe, np.sort(np.concatenate([*values, np.zeros(0)])), fewest)

    def _prepared(self, name: str, recipe: Recipe | None) -> Sequence[Table]:
        batches = self._batches if self._batches is not None else ()
        recipes = {} if recipe is None else {name: recipe}
        return [prepare_rows(Table({name: batch.columns[name]}), recipes, self._context.client) for batch in batches]


@dataclass(frozen=True)
class _Trial:
    """The findings against a summary, and a weight for them and for lacking rows."""

    findings: tuple[str, ...]
    weight: float
    missing: bool = False  # too many rows lack values


@dataclass(frozen=True)
class _State:
    """Recipes of all variables that have one, and the variables that are excluded."""

    recipes: Mapping[str, Recipe]
    excluded: frozenset[str]

    def after(self, step: Step) -> _State:
        """Return the state after a step."""
        if step.recipe is None:
            return _State(self.recipes, self.excluded | {step.name})
        return _State({**self.recipes, step.name: step.recipe}, self.excluded)

    def touched_since(self, start: _State) -> set[str]:
        """Return the variables that were changed."""
        names = self.recipes.keys() | start.recipes.keys()
        changed = {name for name in names if self.recipes.get(name) != start.recipes.get(name)}
        return changed | set(self.excluded)

    def restored(self, name: str, start: _State) -> _State:
        """Return the state in which a variable has its earlier recipe, or is no longer excluded."""
        if name in self.excluded:
            return _State(self.recipes, self.excluded - {name})
        others = {other: recipe for other, recipe in self.recipes.items() if other != name}
        earlier = {name: start.recipes[name]} if name in start.recipes else {}
        return _State({**others, **earlier}, self.excluded)

    def changes_since(self, start: _State) -> Recipes:
        """Return the changes as recipes."""
        touched = self.touched_since(start)
        return Recipes({name: self.recipes[name] for name in touched if name in self.recipes}, self.excluded)


def _load(rows: Any, plan: StudyPlan, context: ReleaseContext) -> list[Table] | None:
    """Return the site's columns of the plan in memory; None for rows that lie on a cluster."""
    source = to_source(rows, context.label, names=plan.names, only=plan.names)
    if not isinstance(source, TableSource):
        return None
    return list(source.batches(source_kinds(plan.kinds, plan.recipes)))


def _values(table: Table, name: str) -> Array:
    column = table.columns[name]
    if not isinstance(column, NumericColumn):
        raise DataError(f"column {name!r} holds text, but the plan says continuous; turn the texts into numbers")
    return column.values[~column.missing]
