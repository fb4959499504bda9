"""PartialGraph: an immutable graph of arrows (a → b) and lines (a — b).

A line says that a and b are adjacent while the direction is not known. A DAG is a partial graph without lines. The
graph knows nothing of tests, searches or plots.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, TypeAlias

from fedcdh.errors import GraphError, UndirectedEdgeError
from fedcdh.protocols import DOMAIN

if TYPE_CHECKING:
    import networkx  # type: ignore[import-untyped]

Arrow: TypeAlias = tuple[str, str]
"""(tail, head), read tail → head."""

Pair: TypeAlias = frozenset[str]
"""Two nodes, whichever comes first."""


def node_sort_key(node: str) -> tuple[bool, str]:
    """Sorting key of nodes: the domain first, then alphabetically."""
    return node != DOMAIN, node


def sort_pair(pair: Pair) -> tuple[str, str]:
    """The two nodes of a pair in their canonical order: sorted, the domain always first."""
    a, b = pair
    return (b, a) if b == DOMAIN or (a != DOMAIN and b < a) else (a, b)


@dataclass(frozen=True, eq=False)
class PartialGraph:
    """Nodes, arrows and lines; at most one edge between two nodes.

    The order of `nodes` is kept for display and conversions only: two graphs with the same nodes and the same edges
    are equal, whatever the order.
    """

    nodes: tuple[str, ...]
    arrows: frozenset[Arrow] = frozenset()
    lines: frozenset[Pair] = frozenset()

    def __post_init__(self) -> None:
        _check_simple(self)

    @classmethod
    def complete(cls, nodes: Iterable[str]) -> PartialGraph:
        """Every pair joined by a line: where constraint-based search begins."""
        nodes = tuple(nodes)
        return cls(nodes, lines=frozenset(frozenset(pair) for pair in combinations(nodes, 2)))

    @classmethod
    def from_dag(cls, nodes: Iterable[str], arrows: Iterable[Arrow]) -> PartialGraph:
        """A graph of arrows only, refused if they run in a circle."""
        graph = cls(tuple(nodes), arrows=frozenset(arrows))
        if not graph.is_acyclic():
            raise GraphError("the arrows run in a directed cycle, a DAG has none; remove or turn one of them")
        return graph

    # What is there

    def adjacent(self, a: str, b: str) -> bool:
        """Whether an edge of any kind joins the two."""
        return b in self._neighbours[a]

    def has_line(self, a: str, b: str) -> bool:
        """Whether a — b is there."""
        return frozenset((a, b)) in self.lines

    def neighbours(self, node: str) -> frozenset[str]:
        """All nodes joined to this one, by arrow or by line."""
        return self._neighbours[node]

    def parents(self, node: str) -> frozenset[str]:
        return self._parents[node]

    def children(self, node: str) -> frozenset[str]:
        return self._children[node]

    @cached_property
    def skeleton(self) -> frozenset[Pair]:
        """The adjacent pairs, directions forgotten."""
        return self.lines | {frozenset(arrow) for arrow in self.arrows}

    @cached_property
    def unshielded_triples(self) -> frozenset[tuple[Pair, str]]:
        """The triples a, z, b with z adjacent to both and a not adjacent to b, each as ({a, b}, z)."""
        return frozenset(
            (frozenset((a, b)), node)
            for node in self.nodes
            for a, b in combinations(self.neighbours(node), 2)
            if not self.adjacent(a, b)
        )

    @cached_property
    def colliders(self) -> frozenset[tuple[Pair, str]]:
        """The unshielded triples that read a → z ← b, each as ({a, b}, z)."""
        return frozenset((pair, middle) for pair, middle in self.unshielded_triples if pair <= self.parents(middle))

    def has_path(self, start: str, end: str) -> bool:
        """Whether arrows lead from start to end; every node reaches itself."""
        return end in find_reachable(self._children, start)

    def is_acyclic(self) -> bool:
        """Whether the arrows, lines left aside, contain no directed cycle."""
        return not find_cycle_arrows(self.arrows, self.arrows)

    def is_dag(self) -> bool:
        """Whether every edge is an arrow and none of them lies on a directed cycle."""
        return not self.lines and self.is_acyclic()

    # What can be made of it

    def orient(self, tail: str, head: str) -> PartialGraph:
        """The same graph with tail — head turned into tail → head."""
        return self.orient_all([(tail, head)])

    def orient_all(self, arrows: Iterable[Arrow]) -> PartialGraph:
        """The same graph with the line of each of these arrows turned into it."""
        arrows = frozenset(arrows)
        for tail, head in sorted(arrows):
            if not self.has_line(tail, head):
                raise UndirectedEdgeError(f"{tail} — {head} is not an undirected edge of this graph")
        return replace(self, arrows=self.arrows | arrows, lines=self.lines.difference(map(frozenset, arrows)))

    def without(self, *pairs: Pair) -> PartialGraph:
        """The same graph with no edge between these pairs."""
        gone = frozenset(pairs)
        arrows = frozenset(arrow for arrow in self.arrows if frozenset(arrow) not in gone)
        return replace(self, arrows=arrows, lines=self.lines - gone)

    def drop(self, node: str) -> PartialGraph:
        """The same graph without this node and its edges; `drop(DOMAIN)` leaves the variables."""
        if node not in self._neighbours:
            raise GraphError(f"{node!r} is not a node of this graph; its nodes are {', '.join(self.nodes)}")
        return PartialGraph(
            tuple(other for other in self.nodes if other != node),
            frozenset(arrow for arrow in self.arrows if node not in arrow),
            frozenset(line for line in self.lines if node not in line),
        )

    def to_networkx(self) -> networkx.DiGraph:
        """A `networkx.DiGraph`; a line becomes two arcs, and the edge attribute `mark` says "arrow" or "line"."""
        import networkx  # an optional extra: the graph itself needs nothing

        graph = networkx.DiGraph()
        graph.add_nodes_from(self.nodes)
        graph.add_edges_from(sorted(self.arrows), mark="arrow")
        for a, b in sorted(map(sort_pair, self.lines)):
            graph.add_edges_from([(a, b), (b, a)], mark="line")
        return graph

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PartialGraph):
            return NotImplemented
        return self._content == other._content

    def __hash__(self) -> int:
        return hash(self._content)

    def __str__(self) -> str:
        """One edge per line, isolated nodes last."""
        arrows = sorted((node_sort_key(tail), node_sort_key(head)) for tail, head in self.arrows)
        lines = sorted((node_sort_key(a), node_sort_key(b)) for a, b in map(sort_pair, self.lines))
        alone = sorted((node for node in self.nodes if not self.neighbours(node)), key=node_sort_key)
        rows = [f"{_display_name(tail)} → {_display_name(head)}" for (_, tail), (_, head) in arrows]
        rows += [f"{_display_name(a)} — {_display_name(b)}" for (_, a), (_, b) in lines]
        return "\n".join(rows + [_display_name(node) for node in alone])

    # Indices, built when first needed

    @property
    def _content(self) -> tuple[frozenset[str], frozenset[Arrow], frozenset[Pair]]:
        return frozenset(self.nodes), self.arrows, self.lines

    @cached_property
    def _parents(self) -> Mapping[str, frozenset[str]]:
        return _build_index(self.nodes, ((head, tail) for tail, head in self.arrows))

    @cached_property
    def _children(self) -> Mapping[str, frozenset[str]]:
        return _build_index(self.nodes, self.arrows)

    @cached_property
    def _neighbours(self) -> Mapping[str, frozenset[str]]:
        both_ways = [(a, b) for a, b in map(tuple, self.skeleton)]
        return _build_index(self.nodes, both_ways + [(b, a) for a, b in both_ways])


def find_reachable(children: Mapping[str, Iterable[str]], start: str) -> frozenset[str]:
    """The nodes that arrows lead to from start, start itself among them."""
    seen, waiting = {start}, [start]
    while waiting:
        new = set(children.get(waiting.pop(), ())) - seen
        seen |= new
        waiting.extend(new)
    return frozenset(seen)


def find_cycle_arrows(existing: Iterable[Arrow], added: Iterable[Arrow]) -> frozenset[Arrow]:
    """Those added arrows that lie on a directed cycle once all of them stand beside the existing ones."""
    added = frozenset(added)
    children: dict[str, set[str]] = {}
    for tail, head in added.union(existing):
        children.setdefault(tail, set()).add(head)
    reach = {head: find_reachable(children, head) for head in {head for _, head in added}}
    return frozenset((tail, head) for tail, head in added if tail in reach[head])


def _build_index(nodes: Iterable[str], links: Iterable[tuple[str, str]]) -> Mapping[str, frozenset[str]]:
    index: dict[str, set[str]] = {node: set() for node in nodes}
    for key, value in links:
        index[key].add(value)
    return {node: frozenset(linked) for node, linked in index.items()}


def _display_name(node: str) -> str:
    return "℧" if node == DOMAIN else node


def _check_simple(graph: PartialGraph) -> None:
    for complaint in _find_problems(graph):
        raise GraphError(complaint)


def _find_problems(graph: PartialGraph) -> Iterator[str]:
    known = frozenset(graph.nodes)
    if len(known) < len(graph.nodes):
        twice = sorted(node for node in known if graph.nodes.count(node) > 1)
        yield f"nodes are listed more than once: {', '.join(twice)}; list each node once"
    for edge in (*graph.arrows, *graph.lines):
        if len(frozenset(edge)) != 2:
            yield f"an edge joins two different nodes, found {sorted(edge)}"
    strangers = frozenset[str]().union(*graph.arrows, *graph.lines) - known
    if strangers:
        yield f"edges name nodes that are not in the graph: {', '.join(sorted(strangers))}; add them to nodes"
    for tail, head in sorted(graph.arrows):
        if (head, tail) in graph.arrows:
            yield f"both {tail} → {head} and {head} → {tail}; two nodes are joined by one edge at most"
        if frozenset((tail, head)) in graph.lines:
            yield f"both {tail} → {head} and {tail} — {head}; two nodes are joined by one edge at most"
