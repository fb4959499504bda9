"""Adjacency matrices, which mean nothing without names and a convention: here they never come without.

Libraries disagree on what `matrix[i, j]` says. With i the row, j the column:

| convention | i → j is written | i — j is written | whose |
|---|---|---|---|
| from-to | `m[i,j] = 1, m[j,i] = 0` | both 1 | networkx, gcastle, pgmpy |
| to-from | `m[i,j] = 0, m[j,i] = 1` | both 1 | lingam (weights: the effect of column on row) |
| causal-learn | `m[i,j] = -1, m[j,i] = 1` | both -1 | causal-learn's `GeneralGraph.graph` |
| pcalg | `m[i,j] = 0, m[j,i] = 1` | both 1 | pcalg's `amat.cpdag` |
| pcalg-pag | `m[i,j] = 2, m[j,i] = 3` | both 3 | pcalg's `amat.pag` |
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from fedcdh._runtime.optional_imports import optional_import
from fedcdh.errors import GraphError, SettingsError
from fedcdh.graphs.partial_graph import PartialGraph, sort_pair


@dataclass(frozen=True)
class AdjacencyMarks:
    """What a convention writes for tail → head: in the tail's row, in the head's row; and for a line, in both."""

    in_row_of_tail: int
    in_row_of_head: int
    in_rows_of_line: int

    @property
    def weights(self) -> bool:
        """Whether all that matters is what is zero, so that effects may stand for ones."""
        return {self.in_row_of_tail, self.in_row_of_head, self.in_rows_of_line} == {0, 1}


CONVENTIONS: Mapping[str, AdjacencyMarks] = {
    "from-to": AdjacencyMarks(1, 0, 1),
    "to-from": AdjacencyMarks(0, 1, 1),
    "causal-learn": AdjacencyMarks(-1, 1, -1),
    "pcalg": AdjacencyMarks(0, 1, 1),
    "pcalg-pag": AdjacencyMarks(2, 3, 3),
}


@dataclass(frozen=True, eq=False)
class Adjacency:
    """A matrix with the names of its rows (the same as of its columns) and the convention it follows.

    >>> lingam = Adjacency(("x", "y"), [[0, 0], [0.7, 0]], "to-from")
    >>> print(lingam.to_graph())
    x → y
    """

    names: tuple[str, ...]
    matrix: npt.NDArray[Any]
    convention: str

    def __post_init__(self) -> None:
        get_marks(self.convention)
        matrix = np.array(self.matrix)
        if matrix.shape != (len(self.names), len(self.names)):
            raise GraphError(
                f"{len(self.names)} names and a matrix of shape {matrix.shape}; expected a row and a column per name"
            )
        if matrix.dtype.kind not in "biuf" or not np.isfinite(matrix).all():
            raise GraphError("an adjacency matrix should hold finite numbers; fill in or remove what is missing")
        if np.diagonal(matrix).any():
            odd = [name for name, value in zip(self.names, np.diagonal(matrix), strict=True) if value]
            raise GraphError(f"the diagonal is not zero at {', '.join(odd)}; nothing causes itself")
        matrix.flags.writeable = False
        object.__setattr__(self, "names", tuple(self.names))
        object.__setattr__(self, "matrix", matrix)

    def to_graph(self) -> PartialGraph:
        """The graph that the matrix stands for; GraphError where two entries together mean nothing."""
        marks = get_marks(self.convention)
        values = (self.matrix != 0).astype(int) if marks.weights else self.matrix
        forward = (marks.in_row_of_tail, marks.in_row_of_head)
        arrows, lines = [], []
        for i, j in combinations(range(len(self.names)), 2):
            a, b, found = self.names[i], self.names[j], (values[i, j], values[j, i])
            if found == forward:
                arrows.append((a, b))
            elif found == forward[::-1]:
                arrows.append((b, a))
            elif found == (marks.in_rows_of_line, marks.in_rows_of_line):
                lines.append(frozenset((a, b)))
            elif found != (0, 0):
                raise GraphError(
                    f"the entries {found[0]} and {found[1]} between {a} and {b} are neither an arrow nor a line in the "
                    f'convention "{self.convention}"; is it another one of {", ".join(CONVENTIONS)}, or a graph with '
                    "hidden causes?"
                )
        return PartialGraph(self.names, frozenset(arrows), frozenset(lines))

    def frame(self) -> Any:
        """A `pandas.DataFrame` with the names on both sides."""
        with optional_import("pandas", extra="graphs"):
            import pandas
        return pandas.DataFrame(self.matrix.copy(), index=list(self.names), columns=list(self.names))

    def __str__(self) -> str:
        width = max(map(len, self.names), default=0)
        rows = zip(self.names, self.matrix.tolist(), strict=True)
        shown = [f"{name:>{width}} " + " ".join(f"{value:>2}" for value in row) for name, row in rows]
        return "\n".join([f'convention "{self.convention}", rows and columns in the same order', *shown])


def to_adjacency(graph: PartialGraph, convention: str, *, order: Iterable[str] | None = None) -> Adjacency:
    """The graph as a matrix in a convention that has to be named; rows in the order given, or that of the nodes.

    >>> print(to_adjacency(PartialGraph(("x", "y"), frozenset({("x", "y")})), "from-to"))
    convention "from-to", rows and columns in the same order
    x  0  1
    y  0  0
    """
    names, marks = tuple(graph.nodes if order is None else order), get_marks(convention)
    if sorted(names) != sorted(graph.nodes):
        raise GraphError(f"order= should name every node once: {', '.join(graph.nodes)}; found {', '.join(names)}")
    place = {name: position for position, name in enumerate(names)}
    matrix = np.zeros((len(names), len(names)), dtype=np.int64)
    for tail, head in graph.arrows:
        matrix[place[tail], place[head]] = marks.in_row_of_tail
        matrix[place[head], place[tail]] = marks.in_row_of_head
    for a, b in map(sort_pair, graph.lines):
        matrix[place[a], place[b]] = matrix[place[b], place[a]] = marks.in_rows_of_line
    return Adjacency(names, matrix, convention)


def get_marks(convention: str) -> AdjacencyMarks:
    """The marks of a convention; SettingsError with the known ones."""
    if convention not in CONVENTIONS:
        raise SettingsError(f"convention is {convention!r}; expected one of {', '.join(CONVENTIONS)}")
    return CONVENTIONS[convention]
