"""Questions as arrays: names become numbers once, and columns are looked up for many questions at a time."""

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
"""What questions have to have in common to be answered together, as numbers."""

_NO_COLUMNS = np.zeros(0, dtype=np.intp)
_VARIABLES_PER_TILE = 64  # variables: questions about so many and so many others stand together


@dataclass(frozen=True, eq=False)
class QueryBatch:
    """A batch of questions, variables by their numbers; the number after the last stands for the domain, or nothing."""

    x: Indices
    y: Indices
    sets: Indices  # (sets, members): what is given in some question, each set once, all filled up with nothing
    within: Chosen  # per set: whether the domain is in it
    which: Indices  # per question: its set

    @classmethod
    def of(cls, questions: Sequence[Query], names: Iterable[str]) -> QueryBatch:
        number = {name: position for position, name in enumerate(names)}
        number[DOMAIN] = nothing = len(number)
        sets: dict[frozenset[str], int] = {}
        which = [sets.setdefault(question.given, len(sets)) for question in questions]
        members = np.full((len(sets), max(map(len, sets), default=0)), nothing, dtype=np.intp)
        for given, row in zip(sets, members, strict=True):
            row[: len(given)] = [number[name] for name in sorted(given)]
        return cls(
            np.array([number[question.x] for question in questions], dtype=np.intp),
            np.array([number[question.y] for question in questions], dtype=np.intp),
            members,
            np.array([DOMAIN in given for given in sets], dtype=np.bool_),
            np.array(which, dtype=np.intp),
        )

    def __len__(self) -> int:
        return len(self.x)

    def part(self, positions: Indices) -> QueryBatch:
        """Some of the questions; of many sets only those that they need, since a part may have to travel."""
        x, y, which = self.x[positions], self.y[positions], self.which[positions]
        if len(self.sets) <= len(positions):
            return QueryBatch(x, y, self.sets, self.within, which)
        needed, which = np.unique(which, return_inverse=True)
        return QueryBatch(x, y, self.sets[needed], self.within[needed], which)

    def swap(self, over: Chosen) -> QueryBatch:
        """The same questions with x and y exchanged in some of them."""
        x, y = np.where(over, self.y, self.x), np.where(over, self.x, self.y)
        return QueryBatch(x, y, self.sets, self.within, self.which)

    @property
    def locality_order(self) -> Indices:
        """Their positions, those with the same set together, then those about the same few variables: what they share
        is then computed, and read, once."""
        return np.lexsort((self.y // _VARIABLES_PER_TILE, self.x // _VARIABLES_PER_TILE, self.which))

    @property
    def given(self) -> Indices:
        """(questions, members)."""
        return self.sets[self.which]


class ColumnTable:
    """The columns of every variable as a table."""

    def __init__(self, columns: Iterable[Indices]) -> None:
        listed = [*columns, _NO_COLUMNS]  # nothing has no columns
        self.widths = np.array([len(one) for one in listed], dtype=np.intp)
        self._table = np.full((len(listed), self.widths.max()), -1, dtype=np.intp)
        for row, one in zip(self._table, listed, strict=True):
            row[: len(one)] = one

    def of(self, variables: Indices) -> Indices:
        """Those of the variables in a row side by side: (B, m) → (B, columns), where every row has as many."""
        found = self._table[variables].reshape(len(variables), -1)
        return found[found >= 0].reshape(len(variables), -1)

    def counts(self, asked: QueryBatch) -> Indices:
        """How many columns the conditioning variables of each question have."""
        return np.asarray(self.widths[asked.sets].sum(axis=1)[asked.which], dtype=np.intp)


@dataclass(frozen=True, eq=False)
class JointColumns:
    """Columns of the basis that say how the conditioning variables act together, besides each on its own."""

    own: Indices = field(default_factory=lambda: _NO_COLUMNS)  # clients may differ in their weights
    common: Indices = field(default_factory=lambda: _NO_COLUMNS)  # they may not: there are too many
    with_squares: bool = False  # the squares of x and y are asked about too, whether or not curvature was seen before

    def side(self, basis: Basis, name: str) -> Indices:
        """The columns with which a variable predicts another."""
        columns = basis.predictors[name]
        value_alone = len(columns) == len(basis.targets[name]) == 1
        return basis.spans[name][:2] if self.with_squares and value_alone else columns


NO_JOINT_COLUMNS = JointColumns()


class ColumnIndex:
    """The columns of a basis, for looking up."""

    def __init__(self, basis: Basis, together: JointColumns) -> None:
        self.spans, self.targets, self.predictors = (
            ColumnTable(_list_columns(basis, columns)) for columns in (basis.spans, basis.targets, basis.predictors)
        )
        self.sides = ColumnTable(together.side(basis, name) for name in basis.spans)
        self.bends = ColumnTable(np.setdiff1d(basis.predictors[name], basis.targets[name]) for name in basis.spans)
        self.leading = ColumnTable(columns[:2] for columns in basis.spans.values())
        self.squares = np.array([basis.squares[name] for name in basis.spans])
        self._own = len(together.own)

    def count_conditions(self, asked: QueryBatch) -> Indices:
        """How many columns each question has given, on which clients regress with weights of their own."""
        return self.predictors.counts(asked) + self._own

    def is_about_domain(self, asked: QueryBatch) -> Chosen:
        """Which questions are about the domain, whose number is the one after the last variable's."""
        domain = len(self.squares)
        return np.asarray((asked.x == domain) | (asked.y == domain))


def _list_columns(basis: Basis, columns: Mapping[str, Indices]) -> list[Indices]:
    return [columns[name] for name in basis.spans]


def repeat_columns(columns: Indices, times: int) -> Indices:
    """The same columns for every question."""
    return np.broadcast_to(columns, (times, len(columns)))
