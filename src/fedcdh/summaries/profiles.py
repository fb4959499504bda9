"""Profiles: the few numbers per column from which clients agree on a plan before there is one."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np

from fedcdh._runtime.array_types import Array
from fedcdh.data.ordered_source import OrderedSource, with_order_column
from fedcdh.data.prepared_source import prepare_source
from fedcdh.data.recipe_file import NO_RECIPES, Recipes
from fedcdh.data.sources import ColumnKind, TableSource, is_single_table, to_source
from fedcdh.data.table import Table, check_excluded, missing_column_error, to_table
from fedcdh.errors import DataError, PlanError
from fedcdh.summaries.column_profiles import (
    QUANTILES,
    CategoricalProfiler,
    ColumnProfile,
    ContinuousProfiler,
    check_level_count,
)
from fedcdh.summaries.overviews import format_profile, name_profile, render_profile_html
from fedcdh.summaries.row_dependence import ALL_ROWS, RowShares, row_shares
from fedcdh.summaries.unusable_columns import unusable_columns_error

_SHARE_TOLERANCE = 1e-12  # of the rows: rounding must not decide between the ends of a flat stretch
MAX_VALUES_PER_PASS = 4096
"""Values at which the clients' distribution functions are evaluated at once: ten thousand clients have fifty thousand
quantiles."""


@dataclass(frozen=True)
class Profile:
    """The profile of one client's table.

    Attributes
    ----------
    client : str
        Name of the client.
    rows : int
        Number of rows that were read.
    columns : mapping from str to ColumnProfile
        One profile per column, in the order of the table.

    Examples
    --------
    >>> profile({"age": [30, 40]}, "north").rows
    2
    """

    client: str
    rows: int
    columns: Mapping[str, ColumnProfile]

    def __repr__(self) -> str:
        """Return the profile in one line."""
        return f"<{name_profile(self)}>"

    def __str__(self) -> str:
        """Return the profile as a small table."""
        return format_profile(self)

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        return render_profile_html(self)


def profile(
    table: Any,
    client: str,
    *,
    variables: Sequence[str] | None = None,
    kinds: Mapping[str, ColumnKind] | None = None,
    order_by: str | None = None,
    recipes: Recipes = NO_RECIPES,
    exclude: Collection[str] = (),
) -> Profile:
    """Compute the profile of one client's table.

    Parameters
    ----------
    table : table, list of batches, or files opened with `open_tables`
        Rows of the client. They are read two or more times, one batch after the other.
    client : str
        Name of the client.
    variables : sequence of str, optional
        Columns to use. Default: all columns.
    kinds : mapping from str to {"continuous", "categorical"}, optional
        Kinds of columns. By default, numbers are continuous and texts are categorical.
    order_by : str, optional
        Column by which rows are sorted, such as a time: numbers, or texts such as dates like 2024-01-31. It is no
        variable unless `variables` names it. The rows of all columns are then in memory. Default: the order of the
        rows as they are, if the table is not sorted by one of its columns.
    recipes : Recipes, optional
        What is done with columns before they are described. Excluded columns are left out.
    exclude : collection of str, default ()
        Further columns that are left out. They may hold anything.

    Returns
    -------
    Profile
        Counts, means, sums of squares and quantiles of continuous columns; levels and their counts of categorical ones;
        and for every column the shares of rows that count, 1 unless neighbouring rows depend on each other.

    Raises
    ------
    DataError
        If a column is missing, cannot be read as its kind, or has too many levels; if columns are identifiers, dates or
        free text and their kind is not declared; or if `order_by` is missing in some row.

    See Also
    --------
    StudyPlan.from_profiles : The plan from the profiles of all clients.
    fedcdh.privacy.release_profile : The profile under the policy of a site.

    Examples
    --------
    >>> profile({"age": [30, 40], "sex": ["f", "m"]}, "north").columns["age"].mean
    35.0
    """
    recipes = recipes.exclude(exclude)
    variables = None if variables is None else [name for name in variables if name not in recipes.excluded]
    if exclude and not isinstance(table, TableSource) and is_single_table(table):
        table = to_table(table, exclude=exclude, owner=f"client {client!r}")
    elif exclude:
        check_excluded(exclude, to_source(table, f"client {client!r}").kinds())
    source = _order_source(table, f"client {client!r}", variables, order_by)
    source = prepare_source(source, recipes.by_variable, client)
    present = {name: kind for name, kind in source.kinds().items() if name in (variables or ()) or name != order_by}
    present = {name: kind for name, kind in present.items() if name not in recipes.excluded}
    chosen = _select_columns(present, client, variables, _kinds_after(kinds or {}, recipes))
    declared = {*recipes.by_variable, *(kinds or {}), *([order_by] if order_by else [])}
    finished, rows = _read_columns(source, chosen, client, declared)
    shares = row_shares(source, finished, in_time_order=order_by is not None)
    described = {
        name: replace(
            finished[name],
            product_share=shares[name].product,
            mean_share=shares[name].mean,
            recipe=recipes.by_variable.get(name),
        )
        for name in chosen
    }
    return Profile(client, rows, described)


def _read_columns(
    source: TableSource, chosen: Mapping[str, ColumnKind], client: str, declared: Collection[str]
) -> tuple[dict[str, ColumnProfile], int]:
    """Return the profiles of all columns, and the number of rows; refuse all columns that are no variables at once."""
    columns: dict[str, CategoricalProfiler | ContinuousProfiler] = {
        name: (CategoricalProfiler if kind == "categorical" else ContinuousProfiler)(name, client)
        for name, kind in chosen.items()
    }
    finished, problems, rows = dict[str, ColumnProfile](), dict[str, str](), 0
    while unfinished := {name: chosen[name] for name in chosen if name not in finished and name not in problems}:
        rows = 0
        for batch in source.batches(unfinished):
            rows += batch.rows
            for name in unfinished:
                _add_rows(name, columns[name], batch, problems)
        for name in unfinished:
            if name not in problems and (done := columns[name].finish()) is not None:
                finished[name] = done
    for name in chosen:
        reason = None if name in declared or name in problems else columns[name].describe_problem()
        if reason is not None:
            problems[name] = reason
    if problems:
        listed = {name: problems[name] for name in chosen if name in problems}
        raise unusable_columns_error(listed, f"client {client!r}")
    return finished, rows


def _add_rows(
    name: str, profiler: CategoricalProfiler | ContinuousProfiler, batch: Table, problems: dict[str, str]
) -> None:
    """Add a batch to the profile of a column; of a column with too many labels only the reason is kept."""
    if name in problems:
        return
    try:
        profiler.add(batch.columns[name])
    except DataError as problem:
        if not isinstance(profiler, CategoricalProfiler):
            raise
        problems[name] = problem.message


def _kinds_after(kinds: Mapping[str, ColumnKind], recipes: Recipes) -> dict[str, ColumnKind]:
    """Return the declared kinds of columns that are described; the kind of a column with a recipe is the recipe's."""
    return {
        name: recipes.by_variable[name].kind if name in recipes.by_variable else kind
        for name, kind in kinds.items()
        if name not in recipes.excluded
    }


def profiled_kinds(found: Profile) -> dict[str, ColumnKind]:
    """Return how the columns of a profile were read, before their recipes.

    Parameters
    ----------
    found : Profile
        A profile.

    Returns
    -------
    dict from str to {"continuous", "categorical"}
        Kinds of the site's columns.

    Examples
    --------
    >>> profiled_kinds(profile({"age": [30, 40]}, "north"))
    {'age': 'continuous'}
    """
    return {
        name: column.kind if column.recipe is None else column.recipe.source_kind
        for name, column in found.columns.items()
    }


def _order_source(table: Any, owner: str, variables: Sequence[str] | None, order_by: str | None) -> TableSource:
    """Return the rows in their order, or in that of a column."""
    if order_by is None:
        return to_source(table, owner, only=variables)
    source = to_source(table, owner, only=with_order_column(variables, order_by))
    return OrderedSource(source, order_by, owner)


def _select_columns(
    found: Mapping[str, ColumnKind], client: str, variables: Sequence[str] | None, kinds: Mapping[str, ColumnKind]
) -> dict[str, ColumnKind]:
    """Return the columns of the study with their kinds."""
    if lacking := [name for name in variables or () if name not in found]:
        raise missing_column_error(lacking, list(found), f"client {client!r}")
    for name, kind in kinds.items():
        if kind not in get_args(ColumnKind):
            raise DataError(
                f"column {name!r} is declared {kind!r}; choose one of {', '.join(get_args(ColumnKind))}",
                parameter="kinds",
            )
        if name not in found or (variables is not None and name not in variables):
            raise DataError(
                f"a kind is declared for {name!r}, but client {client!r} has no such column; it has {list(found)}",
                parameter="kinds",
            )
    return {name: kinds.get(name, found[name]) for name in (found if variables is None else variables)}


def merge_profiles(profiles: Iterable[Profile]) -> dict[str, ColumnProfile]:
    """Pool the profiles of all clients, column by column, in the first client's order of columns.

    Parameters
    ----------
    profiles : iterable of Profile
        One profile per client.

    Returns
    -------
    dict from str to ColumnProfile
        Pooled counts, means, sums of squares, quantiles and levels.

    Raises
    ------
    PlanError
        If there is no profile, or clients have different columns or kinds.

    Notes
    -----
    Σ(x−m)² = Σ_k [Σ(x−m_k)² + n_k (m_k−m)²], with exactly rounded sums: the order of the clients does not matter.

    Examples
    --------
    >>> parts = [profile({"age": [30, 40]}, "north"), profile({"age": [50]}, "south")]
    >>> merge_profiles(parts)["age"].mean
    40.0
    """
    profiles = sorted(profiles, key=lambda one: one.client)
    if not profiles:
        raise PlanError("there is no profile; expected that of at least one client; pass the clients' profiles")
    names = profiles[0].columns
    for one in profiles:
        if lacking := [name for name in names if name not in one.columns]:
            raise PlanError(
                f"client {one.client!r} has no column {lacking[0]!r}, which client {profiles[0].client!r} has; "
                "add or rename it there, or leave it out of the study",
                parameter="variables",
            )
        if extra := [name for name in one.columns if name not in names]:
            raise PlanError(
                f"client {profiles[0].client!r} has no column {extra[0]!r}, which client {one.client!r} has; "
                "add or rename it there, or leave it out of the study",
                parameter="variables",
            )
    return {name: _merge_column(name, profiles) for name in names}


def _merge_column(name: str, profiles: Sequence[Profile]) -> ColumnProfile:
    columns = [one.columns[name] for one in profiles]
    by_kind = {one.columns[name].kind: one.client for one in profiles if one.columns[name].count}
    if len(by_kind) > 1:
        raise PlanError(
            f"variable {name!r} is continuous at client {by_kind['continuous']!r} and categorical at client "
            f"{by_kind['categorical']!r}; agree on one, for example categorical",
            parameter="kinds",
        )
    count, missing = sum(column.count for column in columns), sum(column.missing for column in columns)
    if not count:
        raise PlanError(f"variable {name!r} has no value at any client; leave it out", parameter="variables")
    if any(column.recipe != columns[0].recipe for column in columns):
        raise PlanError(
            f"variable {name!r} was prepared with different recipes before it was described; expected one recipe at "
            "all clients; make the profiles again with the same declaration",
            parameter="recipes",
        )
    shares, recipe = pool_shares(columns), columns[0].recipe
    if "categorical" in by_kind:
        levels = tuple(sorted({level for column in columns for level in column.levels}))
        check_level_count(name, "all clients together", levels)
        totals = dict.fromkeys(levels, 0)
        for column in columns:
            for level, number in zip(column.levels, column.counts, strict=True):
                totals[level] += number
        return ColumnProfile(
            "categorical",
            count,
            missing,
            levels=levels,
            counts=tuple(totals.values()),
            product_share=shares.product,
            mean_share=shares.mean,
            recipe=recipe,
        )
    mean = math.fsum(column.count * column.mean for column in columns) / count
    squares = math.fsum(column.squares + column.count * (column.mean - mean) ** 2 for column in columns)
    quantiles = _pool_quantiles(columns)
    return ColumnProfile(
        "continuous", count, missing, mean, squares, quantiles, (), (), shares.product, shares.mean, recipe
    )


def pool_shares(columns: Sequence[ColumnProfile]) -> RowShares:
    """Return the shares of rows that count over all clients: means weighted by rows, with three digits.

    Parameters
    ----------
    columns : sequence of ColumnProfile
        The profiles of one column, one per client.

    Returns
    -------
    RowShares
        The shares; 1 without values.

    Examples
    --------
    >>> pool_shares([ColumnProfile("continuous", 300, 0, mean_share=0.2), ColumnProfile("continuous", 100, 0)])
    RowShares(product=1.0, mean=0.4)
    """
    count = sum(column.count for column in columns)
    if not count:
        return ALL_ROWS
    product = math.fsum(column.count * column.product_share for column in columns) / count
    return RowShares(round(product, 3), round(math.fsum(one.count * one.mean_share for one in columns) / count, 3))


def _pool_quantiles(columns: Sequence[ColumnProfile]) -> tuple[float, ...]:
    """Compute quantiles of the mixture of the clients' distribution functions, each linear between its quantiles.

    Where several quantiles of a client are one value, its function jumps, and so does the mixture: both sides of each
    value count. Of very many values only those around the wanted quantiles are used.
    """
    present = [column for column in columns if column.count]
    values = np.unique([value for column in present for value in column.quantiles])
    levels = np.array(QUANTILES)
    while len(values) > MAX_VALUES_PER_PASS:
        some = np.unique(np.linspace(0, len(values) - 1, MAX_VALUES_PER_PASS // 4).astype(np.intp))
        sides = _evaluate_mixture(present, values[some])
        below = (sides[:, 1, None] < levels - _SHARE_TOLERANCE).sum(axis=0) - 1
        above = len(some) - (sides[:, 0, None] > levels + _SHARE_TOLERANCE).sum(axis=0)
        spans = zip(some[np.maximum(below, 0)], some[np.minimum(above, len(some) - 1)], strict=True)
        near = np.unique(np.concatenate([np.arange(low, high + 1) for low, high in spans]))
        if len(near) == len(values):
            break
        values = values[near]
    sides = np.maximum.accumulate(_evaluate_mixture(present, values).ravel())
    return tuple(_invert_distribution(level, sides, np.repeat(values, 2)) for level in QUANTILES)


def _invert_distribution(level: float, shares: Array, values: Array) -> float:
    """Find where a distribution function with these shares reaches a level; on a flat stretch, the middle of it."""
    if len(there := values[np.abs(shares - level) <= _SHARE_TOLERANCE]):
        return float(there[0] + (there[-1] - there[0]) / 2)
    return float(np.interp(level, shares, values))


def _evaluate_mixture(columns: Sequence[ColumnProfile], values: Array) -> Array:
    """Evaluate the mixture just below and at each value, (values, 2).

    A client's function jumps from 0 to its first quantile, and from its last one to 1: the tails are not known.
    `np.interp` gives the upper side of a jump, and from the other end (levels are symmetric) the lower one.
    """
    below, above, levels = np.zeros(len(values)), np.zeros(len(values)), (0.0, *QUANTILES, 1.0)
    for column in columns:
        at = np.array([column.quantiles[0], *column.quantiles, column.quantiles[-1]])
        above += column.count * np.interp(values, at, levels, 0.0, 1.0)
        below += column.count * np.interp(-values, -at[::-1], levels, 0.0, 1.0)
    count = sum(column.count for column in columns)
    return np.stack([1 - below / count, above / count], axis=-1)
