"""Partially directed graphs: immutable, with arrows (a → b) and lines (a — b).

A line says that a and b are adjacent and that the direction is not known. A DAG is a graph without lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, TypeAlias

from fedcdh._io.text import abbreviate_list
from fedcdh._io.text_tables import render_table_html
from fedcdh._runtime.optional_imports import optional_import
from fedcdh.errors import GraphError, MissingDependencyError, UndirectedEdgeError
from fedcdh.protocols import DOMAIN

if TYPE_CHECKING:
    import networkx  # type: ignore[import-untyped]

MAX_EDGES_IN_REPR = 8
"""Number of edges and isolated nodes that a graph shows on one line."""

Arrow: TypeAlias = tuple[str, str]
"""(tail, head), read tail → head."""

Pair: TypeAlias = frozenset[str]
"""Two nodes, in no order."""


def node_sort_key(node: str) -> tuple[bool, str]:
    """Return the sorting key of a node: the domain first, then alphabetically."""
    return node != DOMAIN, node


def sort_pair(pair: Pair) -> tuple[str, str]:
    """Return the two nodes of a pair in canonical order: sorted, the domain first."""
    a, b = pair
    return (b, a) if b == DOMAIN or (a != DOMAIN and b < a) else (a, b)


@dataclass(frozen=True, eq=False)
class PartialGraph:
    """A graph of arrows and lines, with at most one edge between two nodes.

    The order of the nodes is kept for display and conversions only. Two graphs with the same nodes and the same edges
    are equal.

    Parameters
    ----------
    nodes : tuple of str
        The nodes.
    arrows : frozenset of (str, str)
        The directed edges, as (tail, head).
    lines : frozenset of frozenset of str
        The undirected edges.

    Raises
    ------
    GraphError
        If a node is listed twice, an edge names an unknown node, or two edges join the same nodes.

    Examples
    --------
    >>> graph = PartialGraph(("x", "y", "z"), frozenset({("x", "y")}), frozenset({frozenset({"y", "z"})}))
    >>> print(graph)
    x → y
    y — z
    >>> graph.parents("y")
    frozenset({'x'})
    """

    nodes: tuple[str, ...]
    arrows: frozenset[Arrow] = frozenset()
    lines: frozenset[Pair] = frozenset()

    def __post_init__(self) -> None:
        _check_simple(self)

    @classmethod
    def complete(cls, nodes: Iterable[str]) -> PartialGraph:
        """Return the graph in which a line joins every pair of nodes.

        Parameters
        ----------
        nodes : iterable of str
            The nodes.

        Returns
        -------
        PartialGraph
            The complete graph, with which a constraint-based search begins.
        """
        nodes = tuple(nodes)
        return cls(nodes, lines=frozenset(frozenset(pair) for pair in combinations(nodes, 2)))

    @classmethod
    def from_dag(cls, nodes: Iterable[str], arrows: Iterable[Arrow]) -> PartialGraph:
        """Return the DAG with these arrows.

        Parameters
        ----------
        nodes : iterable of str
            The nodes.
        arrows : iterable of (str, str)
            The arrows, as (tail, head).

        Returns
        -------
        PartialGraph
            The DAG.

        Raises
        ------
        GraphError
            If the arrows contain a directed cycle.
        """
        graph = cls(tuple(nodes), arrows=frozenset(arrows))
        if not graph.is_acyclic():
            raise GraphError("the arrows contain a directed cycle; expected a DAG. Remove or reverse one of them")
        return graph

    # Questions about the graph

    def is_adjacent(self, a: str, b: str) -> bool:
        """Return whether an arrow or a line joins two nodes.

        Parameters
        ----------
        a, b : str
            The nodes.

        Returns
        -------
        bool
            True if they are adjacent.
        """
        return b in self._neighbours[a]

    def has_line(self, a: str, b: str) -> bool:
        """Return whether the line a — b is in the graph.

        Parameters
        ----------
        a, b : str
            The nodes.

        Returns
        -------
        bool
            True if a line joins them.
        """
        return frozenset((a, b)) in self.lines

    def neighbours(self, node: str) -> frozenset[str]:
        """Return all nodes joined to a node, by arrow or by line.

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

    def parents(self, node: str) -> frozenset[str]:
        """Return the tails of all arrows into a node.

        Parameters
        ----------
        node : str
            The node.

        Returns
        -------
        frozenset of str
            Its parents.
        """
        return self._parents[node]

    def children(self, node: str) -> frozenset[str]:
        """Return the heads of all arrows out of a node.

        Parameters
        ----------
        node : str
            The node.

        Returns
        -------
        frozenset of str
            Its children.
        """
        return self._children[node]

    @cached_property
    def skeleton(self) -> frozenset[Pair]:
        """Return the adjacent pairs."""
        return self.lines | {frozenset(arrow) for arrow in self.arrows}

    @cached_property
    def unshielded_triples(self) -> frozenset[tuple[Pair, str]]:
        """Return the triples a, z, b with z adjacent to both and a not adjacent to b, each as ({a, b}, z)."""
        return frozenset(
            (frozenset((a, b)), node)
            for node in self.nodes
            for a, b in combinations(self.neighbours(node), 2)
            if not self.is_adjacent(a, b)
        )

    @cached_property
    def colliders(self) -> frozenset[tuple[Pair, str]]:
        """Return the unshielded colliders a → z ← b, each as ({a, b}, z)."""
        return frozenset((pair, middle) for pair, middle in self.unshielded_triples if pair <= self.parents(middle))

    def has_path(self, start: str, end: str) -> bool:
        """Return whether arrows lead from one node to another; every node reaches itself.

        Parameters
        ----------
        start, end : str
            The nodes.

        Returns
        -------
        bool
            True if there is a directed path.
        """
        return end in find_reachable(self._children, start)

    def descendants(self, node: str) -> frozenset[str]:
        """Return the nodes that arrows lead to from a node, and the node itself.

        Parameters
        ----------
        node : str
            The node.

        Returns
        -------
        frozenset of str
            Its descendants.
        """
        return find_reachable(self._children, node)

    def ancestors(self, node: str) -> frozenset[str]:
        """Return the nodes from which arrows lead to a node, and the node itself.

        Parameters
        ----------
        node : str
            The node.

        Returns
        -------
        frozenset of str
            Its ancestors.
        """
        return find_reachable(self._parents, node)

    def is_acyclic(self) -> bool:
        """Return whether the arrows contain no directed cycle; lines do not matter."""
        return not find_cycle_arrows(self.arrows, self.arrows)

    def is_dag(self) -> bool:
        """Return whether all edges are arrows and there is no directed cycle."""
        return not self.lines and self.is_acyclic()

    # Changed graphs

    def orient(self, tail: str, head: str) -> PartialGraph:
        """Return the graph with the line tail — head directed as tail → head.

        Parameters
        ----------
        tail, head : str
            The nodes.

        Returns
        -------
        PartialGraph
            The changed graph.
        """
        return self.orient_all([(tail, head)])

    def orient_all(self, arrows: Iterable[Arrow]) -> PartialGraph:
        """Return the graph with the lines of these arrows directed.

        Parameters
        ----------
        arrows : iterable of (str, str)
            The arrows, as (tail, head).

        Returns
        -------
        PartialGraph
            The changed graph.

        Raises
        ------
        UndirectedEdgeError
            If there is no line between the nodes of an arrow.
        """
        arrows = frozenset(arrows)
        for tail, head in sorted(arrows):
            if not self.has_line(tail, head):
                raise UndirectedEdgeError(
                    f"{tail} — {head} is not an undirected edge of this graph; only these can be directed. See "
                    "graph.lines"
                )
        return replace(self, arrows=self.arrows | arrows, lines=self.lines.difference(map(frozenset, arrows)))

    def remove_edges(self, *pairs: Pair) -> PartialGraph:
        """Return the graph without the edges between these pairs.

        Parameters
        ----------
        *pairs : frozenset of str
            The pairs of nodes.

        Returns
        -------
        PartialGraph
            The changed graph.
        """
        gone = frozenset(pairs)
        arrows = frozenset(arrow for arrow in self.arrows if frozenset(arrow) not in gone)
        return replace(self, arrows=arrows, lines=self.lines - gone)

    def drop(self, node: str) -> PartialGraph:
        """Return the graph without a node and its edges; `drop(DOMAIN)` leaves the variables.

        Parameters
        ----------
        node : str
            The node.

        Returns
        -------
        PartialGraph
            The changed graph.

        Raises
        ------
        GraphError
            If there is no such node.
        """
        if node not in self._neighbours:
            raise GraphError(f"{node!r} is not a node of this graph; its nodes are {', '.join(self.nodes)}")
        return PartialGraph(
            tuple(other for other in self.nodes if other != node),
            frozenset(arrow for arrow in self.arrows if node not in arrow),
            frozenset(line for line in self.lines if node not in line),
        )

    def to_networkx(self) -> networkx.DiGraph:
        """Return a `networkx.DiGraph`; a line becomes two arcs, and the edge attribute `mark` is "arrow" or "line".

        Returns
        -------
        networkx.DiGraph
            The graph.

        Raises
        ------
        MissingDependencyError
            If networkx is not installed.
        """
        with optional_import("networkx", extra="graphs"):
            import networkx

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

    def __repr__(self) -> str:
        """Return the edges and isolated nodes on one line; of many, the first ones."""
        return f"<PartialGraph: {abbreviate_list(str(self).splitlines(), MAX_EDGES_IN_REPR) or 'no nodes'}>"

    def _repr_html_(self) -> str:
        """Return the picture that a notebook shows; the edges as text where no layout can be computed."""
        from fedcdh.reporting.graph_drawing.svg import render_svg  # a layer above this one: graphs show themselves

        try:
            return render_svg(self)
        except MissingDependencyError:
            return render_table_html(["graph"], [[row] for row in str(self).splitlines()], "no nodes")

    def __str__(self) -> str:
        """Return a text with one edge per row, isolated nodes last."""
        arrows = sorted((node_sort_key(tail), node_sort_key(head)) for tail, head in self.arrows)
        lines = sorted((node_sort_key(a), node_sort_key(b)) for a, b in map(sort_pair, self.lines))
        alone = sorted((node for node in self.nodes if not self.neighbours(node)), key=node_sort_key)
        rows = [f"{_display_name(tail)} → {_display_name(head)}" for (_, tail), (_, head) in arrows]
        rows += [f"{_display_name(a)} — {_display_name(b)}" for (_, a), (_, b) in lines]
        return "\n".join(rows + [_display_name(node) for node in alone])

    # Indices, built when they are first needed

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
    """Return the nodes that arrows lead to from start, and start itself."""
    seen, waiting = {start}, [start]
    while waiting:
        new = set(children.get(waiting.pop(), ())) - seen
        seen |= new
        waiting.extend(new)
    return frozenset(seen)


def find_cycle_arrows(existing: Iterable[Arrow], added: Iterable[Arrow]) -> frozenset[Arrow]:
    """Return the added arrows that would lie on a directed cycle of existing and added ones."""
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
    for problem in _find_problems(graph):
        raise GraphError(problem)


def _find_problems(graph: PartialGraph) -> Iterator[str]:
    known = frozenset(graph.nodes)
    if len(known) < len(graph.nodes):
        twice = sorted(node for node in known if graph.nodes.count(node) > 1)
        yield f"nodes are listed more than once: {', '.join(twice)}; list each node once"
    for edge in (*graph.arrows, *graph.lines):
        if len(frozenset(edge)) != 2:
            yield f"found an edge between {sorted(edge)}; an edge joins two different nodes. Remove or correct it"
    strangers = frozenset[str]().union(*graph.arrows, *graph.lines) - known
    if strangers:
        yield f"edges name nodes that are not in the graph: {', '.join(sorted(strangers))}; add them to nodes"
    for tail, head in sorted(graph.arrows):
        if (head, tail) in graph.arrows:
            yield f"found both {tail} → {head} and {head} → {tail}; at most one edge may join two nodes. Remove one"
        if frozenset((tail, head)) in graph.lines:
            yield f"found both {tail} → {head} and {tail} — {head}; at most one edge may join two nodes. Remove one"
