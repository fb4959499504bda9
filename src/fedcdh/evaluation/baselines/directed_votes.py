"""Graphs of clients, merged by votes about the direction of each edge.

A client sends a matrix of marks: 1 at (i, j) for i → j, and at (j, i) as well for i — j. A line counts half for each
direction. The direction with more votes wins, and an edge without a majority is a line. Arrows are taken in the order
of their votes. One that closes a circle with those before it, or with others of as many votes, is a line as well.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from fedcdh._runtime.array_types import Array
from fedcdh.graphs.partial_graph import Arrow, PartialGraph, find_cycle_arrows

Marks: TypeAlias = npt.NDArray[np.int8]

_DIGITS = 9  # differences of votes beyond are those of rounding


def graph_to_marks(graph: PartialGraph, names: Sequence[str]) -> Marks:
    """Return the matrix that a client sends about its graph."""
    place = {name: i for i, name in enumerate(names)}
    marks = np.zeros((len(names), len(names)), dtype=np.int8)
    for tail, head in graph.arrows:
        marks[place[tail], place[head]] = 1
    for a, b in graph.lines:
        marks[place[a], place[b]] = marks[place[b], place[a]] = 1
    return marks


def votes_of_marks(marks: Marks) -> Array:
    """Return the votes for i → j in one client's matrix: 1 for an arrow, a half each way for a line."""
    return np.asarray(np.where(marks == marks.T, marks / 2, marks), dtype=np.float64)


def merge_votes(votes: Array, names: Sequence[str]) -> PartialGraph:
    """Return the graph of the majority.

    >>> votes = np.array([[0, 2.0, 0], [1.0, 0, 1.0], [0, 1.0, 0]])
    >>> print(merge_votes(votes, ("a", "b", "c")))
    a → b
    b — c
    """
    rounded = votes.round(_DIGITS)
    won = np.argwhere(rounded > rounded.T).tolist()
    strengths: dict[float, list[Arrow]] = defaultdict(list)
    for i, j in won:
        strengths[float(rounded[i, j])].append((names[i], names[j]))
    arrows = frozenset[Arrow]()
    for strength in sorted(strengths, reverse=True):
        arrows |= frozenset(strengths[strength]) - find_cycle_arrows(arrows, strengths[strength])
    joined = {frozenset((names[i], names[j])) for i, j in np.argwhere(rounded > 0).tolist()}
    return PartialGraph(tuple(names), arrows, frozenset(joined - {frozenset(arrow) for arrow in arrows}))
