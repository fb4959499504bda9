"""Leverage in the columns of several plans together: what all summaries of the same rows determine about one row.

Two summaries of the same rows, by two plans, give the sums of any variable g times the columns of either plan. So
weights may be combined from the columns of both, and the leverage of a row in all columns side by side is what counts
(`leverage` has the formulas). It may be 1 although it is small in each plan: where one plan singles out three people,
and another plan two of them, the difference singles out the third.

Columns are integers, and sums are exact. Two plans whose locations differ by 1e-7 of the scale round a few values
differently; the difference of their columns is then zero in all but a few rows. The eigenvalue of such a direction is
some 1e-13 of the largest, below what a matrix of moments in float64 can resolve. So columns are not multiplied here.
The triangular factor of their QR decomposition is computed block by block, and its singular values are the square roots
of these eigenvalues.

Where two plans encode two or three people differently, the sums over these people are disclosed, so small groups are
examined as well (`separated_groups`).

A row that lacks a value of a plan, or has a level that the plan does not have, was not in a summary by that plan. Its
features of that plan are zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import and_
from typing import Any

import numpy as np
import numpy.typing as npt

from fedcdh._runtime.array_types import Array
from fedcdh.data.columns import CategoricalColumn, Column, NumericColumn
from fedcdh.data.labels import strip_zero_decimals
from fedcdh.data.prepared_source import source_kinds
from fedcdh.data.sources import ColumnKind, TableSource, is_partitioned, to_source
from fedcdh.data.table import Table
from fedcdh.privacy.disclosure.separated_groups import UnionLimits, find_separated_group
from fedcdh.summaries.encoder import Encoder
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.variables import Categorical, Variable

_RANK_TOLERANCE = 1e-12  # share of the largest singular value of the scaled columns; below it is rounding error
_MIN_BLOCK_ROWS = 1024
_MAX_KEPT_ROWS = 8192  # rows with the highest leverage, among which groups are looked for


@dataclass(frozen=True)
class PlanColumns:
    """A plan, and the columns of a table that its variables are read from.

    Parameters
    ----------
    plan : StudyPlan
        The plan.
    columns : mapping from str to str
        From the variables of the plan to the names of the table's columns.
    hash_level : callable, optional
        How the levels of the plan were hashed. Default: they are texts.

    Examples
    --------
    >>> from fedcdh.summaries import Continuous
    >>> PlanColumns(StudyPlan((Continuous("age"),), ("north",)), {"age": "Alter"}).kinds
    {'Alter': 'continuous'}
    """

    plan: StudyPlan
    columns: Mapping[str, str]
    hash_level: Callable[[str], str] = str

    @property
    def kinds(self) -> dict[str, ColumnKind]:
        """How the plan reads each column of the table, before its recipes."""
        read = source_kinds(self.plan.kinds, self.plan.recipes)
        return {self.columns[name]: kind for name, kind in read.items()}

    def encode(self, table: Table, client: str) -> Array:
        """Return the features of every row, columns × rows; zero for a row that the plan leaves out.

        Parameters
        ----------
        table : Table
            Rows, which may have missing values.
        client : str
            Name of the client, for errors.

        Returns
        -------
        array
            Features in steps of the grid.
        """
        own = Table({variable.name: self._read_column(variable, table, client) for variable in self.plan.variables})
        used = self._find_used_rows(own)
        features = np.zeros((self.plan.layout.n_columns, table.rows))
        features[:, used] = Encoder(self.plan, client)(own.select_rows(used))
        return features

    def _read_column(self, variable: Variable, table: Table, client: str) -> Column:
        """Return a column after its recipe, with the levels that the plan has for it."""
        column = table.columns[self.columns[variable.name]]
        if variable.recipe is not None:
            column = variable.recipe.apply(column, f"column {variable.name!r} at client {client!r}", client)
        if not isinstance(variable, Categorical):
            return column
        texts = column.to_categorical(f"column {variable.name!r}")
        exact, whole = map(self.hash_level, texts.levels), map(self.hash_level, map(strip_zero_decimals, texts.levels))
        levels = (one if one in variable.levels else other for one, other in zip(exact, whole, strict=True))
        return CategoricalColumn(tuple(levels), texts.codes)

    def _find_used_rows(self, own: Table) -> npt.NDArray[np.bool_]:
        used = np.ones(own.rows, dtype=np.bool_)
        for variable in self.plan.variables:
            column = own.columns[variable.name]
            used &= ~column.missing
            if isinstance(variable, Categorical) and isinstance(column, CategoricalColumn):
                has_level = [level in variable.levels for level in column.levels]
                used &= np.array([*has_level, False], dtype=np.bool_)[column.codes]  # the last is for missing values
            elif isinstance(column, NumericColumn):
                used &= np.isfinite(column.values)
        return used


@dataclass(frozen=True)
class UnionMeasure:
    """Leverage in the columns of several plans among all rows of a table.

    Parameters
    ----------
    root : array
        W with WᵀW = M⁻¹, where M are the moments of all columns.
    """

    root: Array

    @classmethod
    def of(cls, triangle: Array) -> UnionMeasure:
        """Return the measure, given the triangular factor of the features of all rows."""
        scales = _column_lengths(triangle)
        _, singular, directions = np.linalg.svd(triangle / scales)
        kept = singular > _RANK_TOLERANCE * singular[0]
        return cls(np.asarray(directions[: len(singular)][kept] / singular[kept, None] / scales))

    def whiten(self, features: Array) -> Array:
        """Return coordinates in which a row's squared length is its leverage, directions × rows.

        Parameters
        ----------
        features : array
            Features of all plans, columns × rows.

        Returns
        -------
        array
            The sum of zzᵀ over all rows is the identity. So for any unit vector u, the squares of uᵀz are the shares
            of the rows in that direction; a group of rows is singled out where the shares of the group are nearly 1.
        """
        return np.asarray(self.root @ features)

    def each(self, features: Array) -> Array:
        """Return the leverage of every row."""
        return np.asarray((self.whiten(features) ** 2).sum(axis=0))


@dataclass(frozen=True)
class UnionLeverage:
    """Leverages in the columns of several plans.

    Parameters
    ----------
    row : float
        Largest leverage of a row; 0 if it is far below the limit.
    people : int
        Number of people in the smallest group that exceeds its limit; 0 if there is none.

    Examples
    --------
    >>> UnionLeverage(0.4, 0).people
    0
    """

    row: float
    people: int


def measure_union(
    rows: Any, new: PlanColumns, earlier: Sequence[PlanColumns], client: str, limits: UnionLimits
) -> UnionLeverage:
    """Return the leverages of rows and small groups in the columns of all plans together. The rows are read twice.

    Parameters
    ----------
    rows : table or source of rows
        The rows, with the columns of all plans.
    new : PlanColumns
        The plan of the summary that is to leave.
    earlier : sequence of PlanColumns
        The plans of the summaries that have left.
    client : str
        Name of the client, for errors.
    limits : UnionLimits
        The limits.

    Returns
    -------
    UnionLeverage
        The leverages; 0 if every column of the new plan is a combination of earlier columns, and so adds nothing.

    Examples
    --------
    >>> from fedcdh.summaries import Continuous
    >>> rows = {"age": [*np.random.default_rng(0).normal(60, 15, 200), 999, 999, 999]}
    >>> plan = PlanColumns(StudyPlan((Continuous("age", 60, 15),), ("north",)), {"age": "age"})
    >>> measure_union(rows, plan, [], "north", UnionLimits(max_people=11)).people
    3
    >>> measure_union(rows, plan, [plan], "north", UnionLimits(max_people=11)).people
    0
    """
    plans = [*earlier, new]
    triangle = _triangle_of(rows, plans, client)
    known = sum(plan.plan.layout.n_columns for plan in earlier)
    if triangle is None or _count_directions(triangle[:, :known]) == _count_directions(triangle):
        return UnionLeverage(0.0, 0)
    least = min(limits.of_rows, *(limits.of_groups() / np.arange(2, limits.max_people + 1)), 1.0)
    measure = UnionMeasure.of(triangle)
    work = partial(_find_high_rows, plans=plans, client=client, measure=measure, least=least)
    kept = _map_reduce(rows, plans, client, work, _keep_highest)
    return UnionLeverage(min(float((kept**2).sum(axis=0).max(initial=0.0)), 1.0), find_separated_group(kept, limits))


def largest_union_leverage(rows: Any, plans: Sequence[PlanColumns], client: str) -> float:
    """Return the largest leverage of a row in the columns of all plans together. The rows are read twice.

    Parameters
    ----------
    rows : table or source of rows
        The rows, with the columns of all plans.
    plans : sequence of PlanColumns
        The plans.
    client : str
        Name of the client, for errors.

    Returns
    -------
    float
        A leverage from 0 to 1; 0 without rows.

    Examples
    --------
    >>> from fedcdh.summaries import Continuous
    >>> rows = {"age": np.random.default_rng(0).normal(60, 15, 400)}
    >>> plans = [PlanColumns(StudyPlan((Continuous("age", 60, sd),), ("north",)), {"age": "age"}) for sd in (15, 16)]
    >>> 0 < largest_union_leverage(rows, plans[:1], "north") < largest_union_leverage(rows, plans, "north") < 0.95
    True
    """
    triangle = _triangle_of(rows, plans, client)
    if triangle is None:
        return 0.0
    measure = UnionMeasure.of(triangle)
    work = partial(_largest_in_source, plans=plans, client=client, measure=measure)
    return float(min(_map_reduce(rows, plans, client, work, max), 1.0))


def column_names(rows: Any, client: str, names: Sequence[str]) -> frozenset[str]:
    """Return the names of the columns of a table or a source of rows.

    Parameters
    ----------
    rows : table or source of rows
        The rows.
    client : str
        Name of the client, for errors.
    names : sequence of str
        Names of the columns of a plain array.

    Returns
    -------
    frozenset of str
        The names.
    """
    if is_partitioned(rows) and not isinstance(rows, TableSource):
        return rows.map_reduce(lambda part: frozenset(part.kinds()), and_)
    return frozenset(to_source(rows, f"client {client!r}", names=names).kinds())


def _map_reduce(rows: Any, plans: Sequence[PlanColumns], client: str, work: Any, add: Any) -> Any:
    if is_partitioned(rows) and not isinstance(rows, TableSource):
        return rows.map_reduce(work, add)
    names = {column for plan in plans for column in plan.kinds}
    return work(to_source(rows, f"client {client!r}", names=plans[0].plan.names, only=names))


def _column_lengths(triangle: Array) -> Array:
    lengths = np.linalg.norm(triangle, axis=0)
    lengths[lengths == 0] = 1.0
    return np.asarray(lengths)


def _count_directions(columns: Array) -> int:
    """Return the rank of the columns."""
    if not columns.size:
        return 0
    singular = np.linalg.svd(columns / _column_lengths(columns), compute_uv=False)
    return int((singular > _RANK_TOLERANCE * singular[0]).sum())


def _triangle_of(rows: Any, plans: Sequence[PlanColumns], client: str) -> Array | None:
    """Return the triangular factor of the features of all rows; None without rows."""
    work = partial(_triangle_of_source, plans=plans, client=client)
    found: Array | None = _map_reduce(rows, plans, client, work, _merge)
    return found


def _triangle_of_source(source: TableSource, *, plans: Sequence[PlanColumns], client: str) -> Array | None:
    triangle = None
    for features in _iterate_features(source, plans, client):
        triangle = _merge(triangle, features.T)
    return triangle


def _merge(one: Array | None, other: Array | None) -> Array | None:
    """Return the triangular factor of the rows of both."""
    parts = [part for part in (one, other) if part is not None]
    return np.asarray(np.linalg.qr(np.concatenate(parts), mode="r")) if parts else None


def _largest_in_source(
    source: TableSource, *, plans: Sequence[PlanColumns], client: str, measure: UnionMeasure
) -> float:
    blocks = _iterate_features(source, plans, client)
    return max((float(measure.each(features).max(initial=0.0)) for features in blocks), default=0.0)


def _find_high_rows(
    source: TableSource, *, plans: Sequence[PlanColumns], client: str, measure: UnionMeasure, least: float
) -> Array:
    """Return the whitened rows with at least this leverage."""
    kept = np.zeros((len(measure.root), 0))
    for features in _iterate_features(source, plans, client):
        white = measure.whiten(features)
        kept = _keep_highest(kept, white[:, (white**2).sum(axis=0) >= least])
    return kept


def _keep_highest(one: Array, other: Array) -> Array:
    both = np.concatenate([one, other], axis=1)
    if both.shape[1] <= _MAX_KEPT_ROWS:
        return both
    return both[:, np.argsort(-(both**2).sum(axis=0), kind="stable")[:_MAX_KEPT_ROWS]]


def _iterate_features(source: TableSource, plans: Sequence[PlanColumns], client: str) -> Iterator[Array]:
    """Yield the features of all plans, columns × rows, block by block.

    A column that one plan reads as continuous and another one as categorical is read twice.
    """
    groups = _group_by_kinds(plans)
    size = max(_MIN_BLOCK_ROWS, 2 * sum(plan.plan.layout.n_columns for plan in plans))
    streams = [_cut_blocks(_encode_batches(source, kinds, group, client), size) for kinds, group in groups]
    for blocks in zip(*streams, strict=True):
        yield np.concatenate(blocks)


def _encode_batches(
    source: TableSource, kinds: Mapping[str, ColumnKind], plans: Sequence[PlanColumns], client: str
) -> Iterator[Array]:
    for table in source.batches(kinds):
        yield np.concatenate([plan.encode(table, client) for plan in plans])


def _group_by_kinds(plans: Sequence[PlanColumns]) -> list[tuple[dict[str, ColumnKind], list[PlanColumns]]]:
    """Group plans that read no column in different ways, with all columns that each group reads."""
    groups: list[tuple[dict[str, ColumnKind], list[PlanColumns]]] = []
    for plan in plans:
        for kinds, group in groups:
            if all(kinds.get(column, kind) == kind for column, kind in plan.kinds.items()):
                kinds.update(plan.kinds)
                group.append(plan)
                break
        else:
            groups.append((plan.kinds, [plan]))
    return groups


def _cut_blocks(pieces: Iterator[Array], size: int) -> Iterator[Array]:
    """Yield the same rows in blocks of this many, whatever the sizes of the pieces are; the last may have fewer."""
    pending: list[Array] = []
    count = 0
    for piece in pieces:
        pending.append(piece)
        count += piece.shape[1]
        if count >= size:
            whole = np.concatenate(pending, axis=1)
            for start in range(0, count - size + 1, size):
                yield whole[:, start : start + size]
            pending, count = [whole[:, count - count % size :]], count % size
    if count:
        yield np.concatenate(pending, axis=1)
