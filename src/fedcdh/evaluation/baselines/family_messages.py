"""Families and graphs as messages between clients and server: one byte for each variable or pair of variables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fedcdh.graphs.partial_graph import PartialGraph
from fedcdh.protocols import Family

Bytes = npt.NDArray[np.uint8]
_PARENT, _NODE = 1, 2


def encode_families(families: Sequence[Family], names: Sequence[str]) -> Bytes:
    """Return one row per family: 2 at the node, 1 at its parents, 0 elsewhere.

    >>> encode_families([Family("y", frozenset("x"))], "xyz").tolist()
    [[1, 2, 0]]
    """
    place = {name: position for position, name in enumerate(names)}
    message = np.zeros((len(families), len(names)), dtype=np.uint8)
    for row, family in zip(message, families, strict=True):
        row[[place[parent] for parent in family.parents]] = _PARENT
        row[place[family.node]] = _NODE
    return message


def decode_families(message: npt.NDArray[np.generic], names: Sequence[str]) -> list[Family]:
    """Return the families of a message.

    >>> decode_families(np.array([[1, 2, 0]]), "xyz")
    [Family(node='y', parents=frozenset({'x'}))]
    """
    found = []
    for row in message:
        parents = frozenset(names[place] for place in np.flatnonzero(row == _PARENT).tolist())
        found.append(Family(names[int(np.flatnonzero(row == _NODE)[0])], parents))
    return found


def encode_graph(graph: PartialGraph, names: Sequence[str]) -> Bytes:
    """Return a matrix with 1 at (i, j) for i → j, and at both (i, j) and (j, i) for a line.

    >>> encode_graph(PartialGraph(("x", "y"), frozenset({("x", "y")})), ("x", "y")).tolist()
    [[0, 1], [0, 0]]
    """
    place = {name: position for position, name in enumerate(names)}
    message = np.zeros((len(names), len(names)), dtype=np.uint8)
    for tail, head in graph.arrows:
        message[place[tail], place[head]] = 1
    for line in graph.lines:
        a, b = (place[name] for name in line)
        message[a, b] = message[b, a] = 1
    return message


def decode_graph(message: npt.NDArray[np.generic], names: Sequence[str]) -> PartialGraph:
    """Return the graph of a matrix.

    >>> print(decode_graph(np.array([[0, 1], [1, 0]]), ("x", "y")))
    x — y
    """
    marked = {(names[i], names[j]) for i, j in np.argwhere(message).tolist()}
    lines = frozenset(frozenset(arrow) for arrow in marked if arrow[::-1] in marked)
    return PartialGraph(tuple(names), frozenset(arrow for arrow in marked if frozenset(arrow) not in lines), lines)
