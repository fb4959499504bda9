"""Adjacency matrices, always together with names and a convention, without which they have no meaning.

Libraries disagree on the meaning of `matrix[i, j]`. With i the row and j the column:

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
    """The entries of a convention: for tail → head in the tail's row and in the head's, for a line in both."""

    in_row_of_tail: int
    in_row_of_head: int
    in_rows_of_line: int

    @property
    def is_weighted(self) -> bool:
        """Return whether only zero and nonzero matter, so that effects may replace ones."""
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
    """An adjacency matrix with the names of its rows and columns, and its convention.

    Parameters
    ----------
    names : tuple of str
        The names of the rows, which are those of the columns.
    matrix : array
        One row and one column per name.
    convention : str
        One of `CONVENTIONS`: "from-to", "to-from", "causal-learn", "pcalg" or "pcalg-pag".

    Raises
    ------
    GraphError
        If the matrix does not fit the names, is not finite, or has an entry on its diagonal.
    SettingsError
        If there is no such convention.

    Examples
    --------
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
                f"there are {len(self.names)} names and a matrix of shape {matrix.shape}; expected a row and a column "
                "per name. Correct the one or the other"
            )
        if matrix.dtype.kind not in "biuf" or not np.isfinite(matrix).all():
            raise GraphError(
                "the adjacency matrix has entries that are not finite numbers; fill in or remove missing values"
            )
        if np.diagonal(matrix).any():
            odd = [name for name, value in zip(self.names, np.diagonal(matrix), strict=True) if value]
            raise GraphError(
                f"the diagonal is not zero at {', '.join(odd)}; no variable causes itself. Set these entries to 0"
            )
        matrix.flags.writeable = False
        object.__setattr__(self, "names", tuple(self.names))
        object.__setattr__(self, "matrix", matrix)

    def to_graph(self) -> PartialGraph:
        """Return the graph of the matrix.

        Returns
        -------
        PartialGraph
            The graph.

        Raises
        ------
        GraphError
            If two entries together have no meaning in the convention.
        """
        marks = get_marks(self.convention)
        values = (self.matrix != 0).astype(int) if marks.is_weighted else self.matrix
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

    def to_pandas(self) -> Any:
        """Return a `pandas.DataFrame` with the names on both sides."""
        with optional_import("pandas", extra="graphs"):
            import pandas
        return pandas.DataFrame(self.matrix.copy(), index=list(self.names), columns=list(self.names))

    def __str__(self) -> str:
        width = max(map(len, self.names), default=0)
        rows = zip(self.names, self.matrix.tolist(), strict=True)
        shown = [f"{name:>{width}} " + " ".join(f"{value:>2}" for value in row) for name, row in rows]
        return "\n".join([f'convention "{self.convention}", rows and columns in the same order', *shown])


def to_adjacency(graph: PartialGraph, convention: str, *, order: Iterable[str] | None = None) -> Adjacency:
    """Return a graph as an adjacency matrix.

    Parameters
    ----------
    graph : PartialGraph
        The graph.
    convention : str
        One of `CONVENTIONS`: "from-to", "to-from", "causal-learn", "pcalg" or "pcalg-pag".
    order : iterable of str, optional
        The order of the rows; the default is that of the nodes.

    Returns
    -------
    Adjacency
        The matrix with its names and its convention.

    Raises
    ------
    GraphError
        If the order does not name every node once.
    SettingsError
        If there is no such convention.

    Examples
    --------
    >>> print(to_adjacency(PartialGraph(("x", "y"), frozenset({("x", "y")})), "from-to"))
    convention "from-to", rows and columns in the same order
    x  0  1
    y  0  0
    """
    names, marks = tuple(graph.nodes if order is None else order), get_marks(convention)
    if sorted(names) != sorted(graph.nodes):
        raise GraphError(
            f"the order is {', '.join(names)}; expected every node once: {', '.join(graph.nodes)}", parameter="order"
        )
    place = {name: position for position, name in enumerate(names)}
    matrix = np.zeros((len(names), len(names)), dtype=np.int64)
    for tail, head in graph.arrows:
        matrix[place[tail], place[head]] = marks.in_row_of_tail
        matrix[place[head], place[tail]] = marks.in_row_of_head
    for a, b in map(sort_pair, graph.lines):
        matrix[place[a], place[b]] = matrix[place[b], place[a]] = marks.in_rows_of_line
    return Adjacency(names, matrix, convention)


def get_marks(convention: str) -> AdjacencyMarks:
    """Return the entries of a convention; refuse an unknown one."""
    if convention not in CONVENTIONS:
        raise SettingsError(
            f"the convention is {convention!r}; expected one of {', '.join(CONVENTIONS)}", parameter="convention"
        )
    return CONVENTIONS[convention]
