"""Ancestral graphs: graphs whose edges have a mark at either end, for studies with hidden common causes.

A mark at b on the edge between a and b says how b relates to a: a *tail* that b is a cause (an ancestor) of a, an
*arrow* that it is not, a *circle* that the data do not decide. `a → b` says that a causes b, `a ↔ b` that neither
causes the other, so that something unmeasured is behind both.

A maximal ancestral graph (MAG) has no circles. A partial ancestral graph (PAG) stands for all MAGs that the same
independences allow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from types import MappingProxyType
from typing import Literal, TypeAlias

from fedcdh.errors import GraphError
from fedcdh.graphs.partial_graph import Pair, PartialGraph, find_reachable, node_sort_key, sort_pair
from fedcdh.protocols import DOMAIN

Mark: TypeAlias = Literal["tail", "arrow", "circle"]
"""One end of an edge."""

EndMarks: TypeAlias = Mapping[tuple[str, str], Mark]
"""The mark at b of the edge between a and b, by (a, b)."""

_SYMBOLS: Mapping[tuple[Mark, Mark], str] = {
    ("tail", "arrow"): "→",
    ("arrow", "tail"): "←",
    ("arrow", "arrow"): "↔",
    ("circle", "arrow"): "○→",
    ("arrow", "circle"): "←○",
    ("circle", "circle"): "○–○",
    ("tail", "circle"): "–○",
    ("circle", "tail"): "○–",
    ("tail", "tail"): "–",
}


def show_marks(at_left: Mark, at_right: Mark) -> str:
    """Return an edge as it is printed.

    Parameters
    ----------
    at_left, at_right : {"tail", "arrow", "circle"}
        The marks at the node on the left and at that on the right.

    Returns
    -------
    str
        The edge between them.

    Examples
    --------
    >>> show_marks("circle", "arrow")
    '○→'
    """
    return _SYMBOLS[at_left, at_right]


@dataclass(frozen=True, eq=False)
class AncestralGraph:
    """A graph with a tail, an arrowhead or a circle at either end of every edge.

    The order of the nodes is kept for display only. Two graphs with the same nodes and the same marks are equal.

    Parameters
    ----------
    nodes : tuple of str
        The nodes.
    end_marks : mapping from (str, str) to {"tail", "arrow", "circle"}
        For every edge between a and b, the mark at b by (a, b) and the mark at a by (b, a).

    Raises
    ------
    GraphError
        If a node is listed twice, an edge has one mark only, or a mark is unknown.

    Examples
    --------
    >>> graph = AncestralGraph(("x", "y"), {("x", "y"): "arrow", ("y", "x"): "circle"})
    >>> print(graph)
    x ○→ y
    >>> graph.marks("x", "y")
    ('circle', 'arrow')
    """

    nodes: tuple[str, ...]
    end_marks: EndMarks

    def __post_init__(self) -> None:
        object.__setattr__(self, "nodes", tuple(self.nodes))
        object.__setattr__(self, "end_marks", MappingProxyType(dict(self.end_marks)))
        for problem in _find_problems(self):
            raise GraphError(problem)

    @classmethod
    def from_pairs(cls, nodes: Iterable[str], pairs: Iterable[Pair], mark: Mark = "circle") -> AncestralGraph:
        """Return the graph with these edges and one mark at all ends.

        Parameters
        ----------
        nodes : iterable of str
            The nodes.
        pairs : iterable of frozenset of str
            The adjacent pairs.
        mark : {"tail", "arrow", "circle"}, default "circle"
            The mark at all ends.

        Returns
        -------
        AncestralGraph
            The graph.
        """
        ends = [(a, b) for a, b in map(tuple, pairs)]
        return cls(tuple(nodes), dict.fromkeys([*ends, *((b, a) for a, b in ends)], mark))

    @classmethod
    def from_partial_graph(cls, graph: PartialGraph) -> AncestralGraph:
        """Return the same arrows, with circles at both ends of every line.

        Parameters
        ----------
        graph : PartialGraph
            A graph of arrows and lines.

        Returns
        -------
        AncestralGraph
            The graph.
        """
        marks: dict[tuple[str, str], Mark] = {}
        for tail, head in graph.arrows:
            marks |= {(tail, head): "arrow", (head, tail): "tail"}
        for a, b in map(tuple, graph.lines):
            marks |= {(a, b): "circle", (b, a): "circle"}
        return cls(graph.nodes, marks)

    # Questions about the graph

    def marks(self, a: str, b: str) -> tuple[Mark, Mark] | None:
        """Return the two end marks of an edge.

        Parameters
        ----------
        a, b : str
            The nodes.

        Returns
        -------
        (str, str) or None
            The mark at a and the mark at b; None if the nodes are not adjacent.
        """
        found = self.end_marks.get((b, a)), self.end_marks.get((a, b))
        return None if found[0] is None or found[1] is None else (found[0], found[1])

    def is_adjacent(self, a: str, b: str) -> bool:
        """Return whether an edge joins two nodes.

        Parameters
        ----------
        a, b : str
            The nodes.

        Returns
        -------
        bool
            True if they are adjacent.
        """
        return (a, b) in self.end_marks

    def neighbours(self, node: str) -> frozenset[str]:
        """Return all nodes joined to a node.

        Parameters
        ----------
        node : str
            The node.

        Returns
        -------
        frozenset of str
            Its neighbours.
        """
        return self._neighbours[node]

    @cached_property
    def skeleton(self) -> frozenset[Pair]:
        """Return the adjacent pairs."""
        return frozenset(map(frozenset, self.end_marks))

    def parents(self, node: str) -> frozenset[str]:
        """Return the tails of all arrows → into a node.

        Parameters
        ----------
        node : str
            The node.

        Returns
        -------
        frozenset of str
            Its parents.
        """
        return frozenset(other for other in self.neighbours(node) if self.marks(other, node) == ("tail", "arrow"))

    def children(self, node: str) -> frozenset[str]:
        """Return the heads of all arrows → out of a node.

        Parameters
        ----------
        node : str
            The node.

        Returns
        -------
        frozenset of str
            Its children.
        """
        return frozenset(other for other in self.neighbours(node) if self.marks(node, other) == ("tail", "arrow"))

    def spouses(self, node: str) -> frozenset[str]:
        """Return the nodes that ↔ joins to a node: something unmeasured is behind both.

        Parameters
        ----------
        node : str
            The node.

        Returns
        -------
        frozenset of str
            Its spouses.
        """
        return frozenset(other for other in self.neighbours(node) if self.marks(node, other) == ("arrow", "arrow"))

    def descendants(self, node: str) -> frozenset[str]:
        """Return the nodes that directed paths lead to, and the node itself.

        Parameters
        ----------
        node : str
            The node.

        Returns
        -------
        frozenset of str
            Its definite descendants.
        """
        return find_reachable(self._children, node)

    def possible_descendants(self, node: str) -> frozenset[str]:
        """Return the nodes that a path without arrowheads towards the start leads to, and the node itself.

        Parameters
        ----------
        node : str
            The node.

        Returns
        -------
        frozenset of str
            The nodes that it may cause.
        """
        onward = {
            one: [
                two
                for two in self.neighbours(one)
                if self.end_marks[two, one] != "arrow" and self.end_marks[one, two] != "tail"
            ]
            for one in self.nodes
        }
        return find_reachable(onward, node)

    def is_visible(self, tail: str, head: str) -> bool:
        """Return whether tail → head cannot hide a common cause of the two.

        Parameters
        ----------
        tail, head : str
            The nodes of an arrow →.

        Returns
        -------
        bool
            True if a node not adjacent to the head has an edge into the tail, or a collider path into the tail along
            parents of the head.

        References
        ----------
        Zhang, "Causal reasoning with ancestral graphs", 2008, Definition 8.
        """
        if self.marks(tail, head) != ("tail", "arrow"):
            return False
        seen, waiting = {tail}, [tail]
        while waiting:
            node = waiting.pop()
            for other in self.neighbours(node) - seen:
                if self.end_marks[other, node] != "arrow" or other == head:
                    continue
                if not self.is_adjacent(other, head):
                    return True
                if self.end_marks[node, other] == "arrow" and other in self.parents(head):
                    seen.add(other)
                    waiting.append(other)
        return False

    def drop(self, node: str) -> AncestralGraph:
        """Return the graph without a node and its edges; `drop(DOMAIN)` leaves the variables.

        Parameters
        ----------
        node : str
            The node.

        Returns
        -------
        AncestralGraph
            The changed graph.

        Raises
        ------
        GraphError
            If there is no such node.
        """
        if node not in self.nodes:
            raise GraphError(f"{node!r} is not a node of this graph; its nodes are {', '.join(self.nodes)}")
        marks = {ends: mark for ends, mark in self.end_marks.items() if node not in ends}
        return AncestralGraph(tuple(other for other in self.nodes if other != node), marks)

    @property
    def edges(self) -> tuple[tuple[str, str, Mark, Mark], ...]:
        """Return every edge once as (a, b, mark at a, mark at b), in a fixed order; arrows → run from a to b."""
        found = []
        for a, b in sorted(map(sort_pair, self.skeleton), key=lambda pair: tuple(map(node_sort_key, pair))):
            at_a, at_b = self.end_marks[b, a], self.end_marks[a, b]
            turn = at_a == "arrow" and at_b != "arrow"
            found.append((b, a, at_b, at_a) if turn else (a, b, at_a, at_b))
        return tuple(found)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AncestralGraph):
            return NotImplemented
        return self._content == other._content

    def __hash__(self) -> int:
        return hash(self._content)

    def __str__(self) -> str:
        """Return a text with one edge per row, isolated nodes last."""
        rows = [f"{_display_name(a)} {_SYMBOLS[at_a, at_b]} {_display_name(b)}" for a, b, at_a, at_b in self.edges]
        alone = sorted((node for node in self.nodes if not self.neighbours(node)), key=node_sort_key)
        return "\n".join([*rows, *map(_display_name, alone)])

    @property
    def _content(self) -> tuple[frozenset[str], frozenset[tuple[tuple[str, str], Mark]]]:
        return frozenset(self.nodes), frozenset(self.end_marks.items())

    @cached_property
    def _neighbours(self) -> Mapping[str, frozenset[str]]:
        index: dict[str, set[str]] = {node: set() for node in self.nodes}
        for a, b in self.end_marks:
            index[a].add(b)
        return {node: frozenset(others) for node, others in index.items()}

    @cached_property
    def _children(self) -> Mapping[str, frozenset[str]]:
        return {node: self.children(node) for node in self.nodes}


def _display_name(node: str) -> str:
    return "℧" if node == DOMAIN else node


def _find_problems(graph: AncestralGraph) -> Iterator[str]:
    known = frozenset(graph.nodes)
    if len(known) < len(graph.nodes):
        twice = sorted(node for node in known if graph.nodes.count(node) > 1)
        yield f"nodes are listed more than once: {', '.join(twice)}; list each node once"
    for (a, b), mark in graph.end_marks.items():
        if a == b or not {a, b} <= known:
            yield f"found an edge between {a!r} and {b!r}; expected two different nodes of the graph. Correct it"
        if (b, a) not in graph.end_marks:
            yield f"the edge between {a!r} and {b!r} has one mark only; expected one at either end. Add that at {a!r}"
        if mark not in ("tail", "arrow", "circle"):
            yield f"the mark of {a!r} and {b!r} is {mark!r}; expected 'tail', 'arrow' or 'circle'. Correct it"


def find_unshielded_triples(graph: AncestralGraph) -> Iterator[tuple[str, str, str]]:
    """Yield the triples a, z, b with z adjacent to both and a not adjacent to b, in a fixed order.

    Parameters
    ----------
    graph : AncestralGraph
        The graph.

    Yields
    ------
    (str, str, str)
        The triple, with a before b.
    """
    for middle in sorted(graph.nodes):
        for a, b in combinations(sorted(graph.neighbours(middle)), 2):
            if not graph.is_adjacent(a, b):
                yield a, middle, b
