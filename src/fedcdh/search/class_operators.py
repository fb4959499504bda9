"""The operators of a search over equivalence classes: each adds, removes or turns one edge of a CPDAG.

Insert and Delete are those of Chickering (2002, "Optimal structure identification with greedy search"), with his tests
of validity. Turn is that of Hauser and Bühlmann (2012), applied to a DAG of the class that has the arrow to be turned.
An operator names the families that it changes, so that its gain is known before its costly tests of validity are made.

Sets of nodes are integers, one bit per node, as in `parent_sets`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeAlias

from fedcdh.errors import NoConsistentExtensionError
from fedcdh.graphs.equivalence import find_consistent_extension, to_cpdag
from fedcdh.graphs.partial_graph import Arrow, PartialGraph
from fedcdh.search.parent_sets import NodeSet, iterate_members


class FamilyChange(NamedTuple):
    """A node, and its parents before and after an operator, in a DAG of the class."""

    node: int
    before: NodeSet
    after: NodeSet


@dataclass(frozen=True)
class ClassState:
    """A CPDAG, with its edges as sets of numbered nodes."""

    nodes: tuple[str, ...]
    cpdag: PartialGraph

    @cached_property
    def parents(self) -> tuple[NodeSet, ...]:
        """Return the tails of all arrows into each node."""
        return tuple(self.members(self.cpdag.parents(node)) for node in self.nodes)

    @cached_property
    def adjacent(self) -> tuple[NodeSet, ...]:
        """Return the neighbours of each node, by arrow or by line."""
        return tuple(self.members(self.cpdag.neighbours(node)) for node in self.nodes)

    @cached_property
    def children(self) -> tuple[NodeSet, ...]:
        """Return the heads of all arrows out of each node."""
        return tuple(self.members(self.cpdag.children(node)) for node in self.nodes)

    @cached_property
    def lines(self) -> tuple[NodeSet, ...]:
        """Return the neighbours of each node by a line."""
        return tuple(
            around & ~(above | below)
            for around, above, below in zip(self.adjacent, self.parents, self.children, strict=True)
        )

    def members(self, names: frozenset[str]) -> NodeSet:
        """Return the set of these nodes."""
        return sum(1 << place for place, name in enumerate(self.nodes) if name in names)

    def names(self, members: NodeSet) -> list[str]:
        """Return the names of a set."""
        return [self.nodes[member.bit_length() - 1] for member in iterate_members(members)]

    def has_open_path(self, start: int, end: int, blocked: NodeSet) -> bool:
        """Return whether a path along arrows and lines leads from one node to another outside a set."""
        seen = waiting = 1 << start
        while waiting:
            node = (waiting & -waiting).bit_length() - 1
            new = (self.children[node] | self.lines[node]) & ~(seen | blocked)
            if new >> end & 1:
                return True
            seen |= new
            waiting = waiting & (waiting - 1) | new
        return False

    def cliques(self, base: NodeSet, candidates: NodeSet) -> Iterator[NodeSet]:
        """Yield each set of candidates that forms a clique together with the base."""
        if all(not base & ~(self.adjacent[_place(member)] | member) for member in iterate_members(base)):
            for member in iterate_members(base):
                candidates &= self.adjacent[_place(member)]
            yield from self._extend_clique(0, candidates)

    def _extend_clique(self, chosen: NodeSet, candidates: NodeSet) -> Iterator[NodeSet]:
        yield chosen
        for member in iterate_members(candidates):
            candidates ^= member
            yield from self._extend_clique(chosen | member, candidates & self.adjacent[_place(member)])


def _place(member: NodeSet) -> int:
    return member.bit_length() - 1


class Insert(NamedTuple):
    """Insert(x, y, T): add x → y to DAGs of the class in which exactly T and the common neighbours precede y."""

    tail: int
    head: int
    chosen: NodeSet
    common: NodeSet  # neighbours of y by a line that are adjacent to x
    changes: tuple[FamilyChange, ...]

    def apply(self, state: ClassState) -> PartialGraph | None:
        """Return the new class, or None if a path from y to x avoids T and the common neighbours."""
        if state.has_open_path(self.head, self.tail, self.chosen | self.common):
            return None
        tail, head = state.nodes[self.tail], state.nodes[self.head]
        graph = state.cpdag.orient_all((name, head) for name in state.names(self.chosen))
        return _complete(PartialGraph(graph.nodes, graph.arrows | {(tail, head)}, graph.lines))


class Delete(NamedTuple):
    """Delete(x, y, H): remove the edge of x and y from DAGs of the class in which H follows both of them."""

    tail: int
    head: int
    chosen: NodeSet
    changes: tuple[FamilyChange, ...]

    def apply(self, state: ClassState) -> PartialGraph | None:
        """Return the new class; the rest of the common neighbours is a clique, so that there always is one."""
        tail, head = state.nodes[self.tail], state.nodes[self.head]
        after = state.names(self.chosen)
        turned = [(head, name) for name in after] + [(tail, name) for name in after if state.cpdag.has_line(tail, name)]
        return _complete(state.cpdag.remove_edges(frozenset((tail, head))).orient_all(turned))


class Turn(NamedTuple):
    """Turn(x, y, C): replace y → x by x → y in DAGs of the class in which exactly C of y's lines points into y."""

    tail: int
    head: int
    chosen: NodeSet
    changes: tuple[FamilyChange, ...]

    def apply(self, state: ClassState) -> PartialGraph | None:
        """Return the new class, or None if there is no such DAG or the new arrow closes a cycle."""
        dag = _find_representative(state, self)
        if dag is None:
            return None
        tail, head = state.nodes[self.tail], state.nodes[self.head]
        turned = PartialGraph(dag.nodes, dag.arrows - {(head, tail)} | {(tail, head)})
        return to_cpdag(turned) if turned.is_acyclic() else None


Operator: TypeAlias = Insert | Delete | Turn


def list_insertions(state: ClassState, max_parents: int) -> Iterator[Insert]:
    """Yield the insertions whose new parents form a clique."""
    for y in range(len(state.nodes)):
        for tail in iterate_members(~(state.adjacent[y] | 1 << y) & (1 << len(state.nodes)) - 1):
            x = _place(tail)
            common = state.lines[y] & state.adjacent[x]
            for chosen in state.cliques(common, state.lines[y] & ~state.adjacent[x]):
                before = state.parents[y] | common | chosen
                if before.bit_count() < max_parents:
                    yield Insert(x, y, chosen, common, (FamilyChange(y, before, before | tail),))


def list_deletions(state: ClassState) -> Iterator[Delete]:
    """Yield the deletions that leave a clique of the common neighbours."""
    for y in range(len(state.nodes)):
        for tail in iterate_members(state.parents[y] | state.lines[y]):
            x = _place(tail)
            common = state.lines[y] & state.adjacent[x]
            for kept in state.cliques(0, common):
                after = (state.parents[y] | kept) & ~tail
                yield Delete(x, y, common & ~kept, (FamilyChange(y, after | tail, after),))


def list_turns(state: ClassState, max_parents: int) -> Iterator[Turn]:
    """Yield the turns of arrows y → x and of lines; C of a line has a member apart from x, or the class would stay."""
    for y in range(len(state.nodes)):
        for tail in iterate_members(state.children[y] | state.lines[y]):
            x = _place(tail)
            is_line = bool(state.lines[y] & tail)
            for chosen in state.cliques(0, state.lines[y] & ~tail):
                before = state.parents[y] | chosen
                if before.bit_count() >= max_parents or (is_line and not chosen & ~state.lines[x]):
                    continue
                above = state.parents[x] | (chosen & state.lines[x]) if is_line else state.parents[x] & ~(1 << y)
                changes = (FamilyChange(y, before, before | tail), FamilyChange(x, above | 1 << y, above))
                yield Turn(x, y, chosen, changes)


def _find_representative(state: ClassState, turn: Turn) -> PartialGraph | None:
    """Return a DAG of the class with C, then y, then x first in the order of their lines, or None."""
    x, y = turn.tail, turn.head
    first = [*iterate_members(turn.chosen), 1 << y, 1 << x]
    arrows: set[Arrow] = set()
    done = 0
    for member in first:
        done |= member
        if member == 1 << x and not state.lines[y] & member:
            done = member  # an arrow joins y and x, which stand in different parts of the class
        after = state.lines[_place(member)] & ~done
        if member & turn.chosen:
            after &= turn.chosen | 1 << y | 1 << x
        arrows |= {(state.nodes[_place(member)], name) for name in state.names(after)}
    partial = state.cpdag.orient_all(arrows)
    if not partial.is_acyclic():
        return None
    try:
        dag = find_consistent_extension(partial)
    except NoConsistentExtensionError:
        return None
    return dag if dag.colliders == state.cpdag.colliders else None


def _complete(graph: PartialGraph) -> PartialGraph:
    """Return the class of a partially directed graph that has a consistent extension."""
    return to_cpdag(find_consistent_extension(graph))


def list_requests(operators: Sequence[Operator]) -> Iterator[tuple[int, NodeSet]]:
    """Yield the families whose scores decide between operators."""
    for operator in operators:
        for change in operator.changes:
            yield change.node, change.before
            yield change.node, change.after
