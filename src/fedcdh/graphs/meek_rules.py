"""Meek's four rules (1995): what arrows, acyclicity and known colliders imply about the remaining lines.

Together they are complete: closing a pattern under rules 1 to 3, or a pattern with knowledge under all four, directs
exactly the edges that point the same way in every DAG of the class.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import combinations
from typing import Literal, TypeAlias

from fedcdh.graphs.admissible_arrows import obstacles
from fedcdh.graphs.knowledge import NOTHING_KNOWN, Knowledge
from fedcdh.graphs.partial_graph import Arrow, PartialGraph

MeekRule: TypeAlias = Literal["meek-1", "meek-2", "meek-3", "meek-4"]


def no_new_collider(graph: PartialGraph, tail: str, head: str) -> bool:
    """c → tail — head, c not adjacent to head  ⟹  tail → head."""
    return any(not graph.adjacent(c, head) for c in graph.parents(tail))


def no_cycle(graph: PartialGraph, tail: str, head: str) -> bool:
    """tail → c → head, tail — head  ⟹  tail → head."""
    return not graph.children(tail).isdisjoint(graph.parents(head))


def two_flanks(graph: PartialGraph, tail: str, head: str) -> bool:
    """tail — c → head, tail — d → head, c not adjacent to d  ⟹  tail → head."""
    flanks = [c for c in graph.parents(head) if graph.undirected(tail, c)]
    return any(not graph.adjacent(c, d) for c, d in combinations(flanks, 2))


def chain_behind(graph: PartialGraph, tail: str, head: str) -> bool:
    """tail — d → c → head, tail adjacent to c, d not adjacent to head  ⟹  tail → head."""
    return any(
        graph.undirected(tail, d) and not graph.adjacent(d, head)
        for c in graph.parents(head) & graph.neighbours(tail)
        for d in graph.parents(c)
    )


RULES: Mapping[MeekRule, Callable[[PartialGraph, str, str], bool]] = {
    "meek-1": no_new_collider,
    "meek-2": no_cycle,
    "meek-3": two_flanks,
    "meek-4": chain_behind,
}


def demands(graph: PartialGraph) -> Mapping[Arrow, MeekRule]:
    """The arrows that the rules demand in this graph as it stands, each with the first rule that does."""
    found: dict[Arrow, MeekRule] = {}
    for line in graph.lines:
        a, b = line
        for tail, head in ((a, b), (b, a)):
            rule = next((name for name, demanded in RULES.items() if demanded(graph, tail, head)), None)
            if rule is not None:
                found[tail, head] = rule
    return found


def close(graph: PartialGraph, knowledge: Knowledge = NOTHING_KNOWN) -> tuple[PartialGraph, Mapping[Arrow, MeekRule]]:
    """Apply the rules until nothing changes; also the arrows this added, with their rules.

    Each sweep looks at all lines of the same graph and takes all arrows demanded, except those that knowledge forbids
    or that lie on a directed cycle: noisy tests can demand such. A line demanded in both directions stays a line.
    """
    reasons: dict[Arrow, MeekRule] = {}
    while True:
        demanded = demands(graph)
        refused = obstacles(graph, ((arrow,) for arrow in demanded), knowledge)
        taken = [arrow for arrow in demanded if (arrow,) not in refused]
        if not taken:
            return graph, reasons
        graph = graph.orient_all(taken)
        reasons |= {arrow: demanded[arrow] for arrow in taken}
