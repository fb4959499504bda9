"""Queries as arrays: names become numbers once, and columns are looked up for many queries at a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from fedcdh._runtime.array_types import Indices
from fedcdh.inference.orthonormal_basis import Basis
from fedcdh.protocols import DOMAIN, Query

Chosen = npt.NDArray[np.bool_]
Shape: TypeAlias = list[int]
"""The numbers that queries must have in common to be answered together."""

_NO_COLUMNS = np.zeros(0, dtype=np.intp)
_VARIABLES_PER_TILE = 64  # queries about the same tile of variables are answered together


@dataclass(frozen=True, eq=False)
class QueryBatch:
    """A batch of queries with variables as numbers.

    The number after that of the last variable stands for the domain, and fills up shorter conditioning sets.
    """

    x: Indices
    y: Indices
    sets: Indices  # (sets, members): every conditioning set once, filled up to equal length
    has_domain: Chosen  # per set: whether the domain is in it
    set_index: Indices  # per query: its set

    @classmethod
    def of(cls, queries: Sequence[Query], names: Iterable[str]) -> QueryBatch:
        """Translate queries about these variables."""
        number = {name: position for position, name in enumerate(names)}
        number[DOMAIN] = nothing = len(number)
        sets: dict[frozenset[str], int] = {}
        which = [sets.setdefault(query.given, len(sets)) for query in queries]
        members = np.full((len(sets), max(map(len, sets), default=0)), nothing, dtype=np.intp)
        for given, row in zip(sets, members, strict=True):
            row[: len(given)] = [number[name] for name in sorted(given)]
        return cls(
            np.array([number[query.x] for query in queries], dtype=np.intp),
            np.array([number[query.y] for query in queries], dtype=np.intp),
            members,
            np.array([DOMAIN in given for given in sets], dtype=np.bool_),
            np.array(which, dtype=np.intp),
        )

    def __len__(self) -> int:
        return len(self.x)

    def subset(self, positions: Indices) -> QueryBatch:
        """Return some of the queries, with only the conditioning sets that they need: a part may go to a worker."""
        x, y, which = self.x[positions], self.y[positions], self.set_index[positions]
        if len(self.sets) <= len(positions):
            return QueryBatch(x, y, self.sets, self.has_domain, which)
        needed, which = np.unique(which, return_inverse=True)
        return QueryBatch(x, y, self.sets[needed], self.has_domain[needed], which)

    def swap(self, over: Chosen) -> QueryBatch:
        """Return the same queries with x and y exchanged where `over` is true."""
        x, y = np.where(over, self.y, self.x), np.where(over, self.x, self.y)
        return QueryBatch(x, y, self.sets, self.has_domain, self.set_index)

    @property
    def locality_order(self) -> Indices:
        """Return the positions of the queries, those with the same set together, then those about nearby variables.

        What queries have in common is then computed, and read from memory, once.
        """
        return np.lexsort((self.y // _VARIABLES_PER_TILE, self.x // _VARIABLES_PER_TILE, self.set_index))

    @property
    def given(self) -> Indices:
        """Return the conditioning variables of each query: (queries, members)."""
        return self.sets[self.set_index]


class ColumnTable:
    """The columns of every variable as a table."""

    def __init__(self, columns: Iterable[Indices]) -> None:
        listed = [*columns, _NO_COLUMNS]  # the number that fills up sets has no columns
        self.widths = np.array([len(one) for one in listed], dtype=np.intp)
        self._table = np.full((len(listed), self.widths.max()), -1, dtype=np.intp)
        for row, one in zip(self._table, listed, strict=True):
            row[: len(one)] = one

    def of(self, variables: Indices) -> Indices:
        """Return the columns of each row's variables side by side: (B, m) → (B, columns), equally many in each row."""
        found = self._table[variables].reshape(len(variables), -1)
        return found[found >= 0].reshape(len(variables), -1)

    def counts(self, batch: QueryBatch) -> Indices:
        """Return how many columns the conditioning variables of each query have."""
        return np.asarray(self.widths[batch.sets].sum(axis=1)[batch.set_index], dtype=np.intp)


@dataclass(frozen=True, eq=False)
class JointColumns:
    """Columns of the basis that describe how the conditioning variables act jointly, besides each on its own."""

    own: Indices = field(default_factory=lambda: _NO_COLUMNS)  # each client has weights of its own
    common: Indices = field(
        default_factory=lambda: _NO_COLUMNS
    )  # all clients share the weights: there are too many columns
    with_squares: bool = False  # also test the squares of x and y, even where no curvature was found

    def side(self, basis: Basis, name: str) -> Indices:
        """Return the columns with which a variable predicts another."""
        columns = basis.predictors[name]
        value_alone = len(columns) == len(basis.targets[name]) == 1
        return basis.spans[name][:2] if self.with_squares and value_alone else columns


NO_JOINT_COLUMNS = JointColumns()


class ColumnIndex:
    """The columns of a basis, for lookup by the numbers of variables."""

    def __init__(self, basis: Basis, joint: JointColumns) -> None:
        self.spans, self.targets, self.predictors = (
            ColumnTable(_list_columns(basis, columns)) for columns in (basis.spans, basis.targets, basis.predictors)
        )
        self.side_columns = ColumnTable(joint.side(basis, name) for name in basis.spans)
        self.nonlinear = ColumnTable(np.setdiff1d(basis.predictors[name], basis.targets[name]) for name in basis.spans)
        self.leading = ColumnTable(columns[:2] for columns in basis.spans.values())
        self.squares = np.array([basis.squares[name] for name in basis.spans])
        self._own = len(joint.own)

    def count_conditions(self, batch: QueryBatch) -> Indices:
        """Return on how many columns clients regress with weights of their own, for each query."""
        return self.predictors.counts(batch) + self._own

    def is_about_domain(self, batch: QueryBatch) -> Chosen:
        """Return which queries are about the domain, whose number follows the last variable's."""
        domain = len(self.squares)
        return np.asarray((batch.x == domain) | (batch.y == domain))


def _list_columns(basis: Basis, columns: Mapping[str, Indices]) -> list[Indices]:
    return [columns[name] for name in basis.spans]


def repeat_columns(columns: Indices, times: int) -> Indices:
    """Return the same columns for every query."""
    return np.broadcast_to(columns, (times, len(columns)))
