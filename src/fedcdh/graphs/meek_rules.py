"""Meek's four rules (1995): what arrows, acyclicity and known colliders imply about the remaining lines.

Together they are complete: closing a pattern under rules 1 to 3, or a pattern with knowledge under all four, directs
exactly the edges that point the same way in every DAG of the class.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import combinations
from typing import Literal, TypeAlias

from fedcdh.graphs.admissible_arrows import find_obstacles
from fedcdh.graphs.knowledge import NO_KNOWLEDGE, Knowledge
from fedcdh.graphs.partial_graph import Arrow, PartialGraph

MeekRule: TypeAlias = Literal["meek-1", "meek-2", "meek-3", "meek-4"]


def matches_rule_1(graph: PartialGraph, tail: str, head: str) -> bool:
    """c → tail — head, c not adjacent to head  ⟹  tail → head."""
    return any(not graph.adjacent(c, head) for c in graph.parents(tail))


def matches_rule_2(graph: PartialGraph, tail: str, head: str) -> bool:
    """tail → c → head, tail — head  ⟹  tail → head."""
    return not graph.children(tail).isdisjoint(graph.parents(head))


def matches_rule_3(graph: PartialGraph, tail: str, head: str) -> bool:
    """tail — c → head, tail — d → head, c not adjacent to d  ⟹  tail → head."""
    flanks = [c for c in graph.parents(head) if graph.has_line(tail, c)]
    return any(not graph.adjacent(c, d) for c, d in combinations(flanks, 2))


def matches_rule_4(graph: PartialGraph, tail: str, head: str) -> bool:
    """tail — d → c → head, tail adjacent to c, d not adjacent to head  ⟹  tail → head."""
    return any(
        graph.has_line(tail, d) and not graph.adjacent(d, head)
        for c in graph.parents(head) & graph.neighbours(tail)
        for d in graph.parents(c)
    )


MEEK_RULES: Mapping[MeekRule, Callable[[PartialGraph, str, str], bool]] = {
    "meek-1": matches_rule_1,
    "meek-2": matches_rule_2,
    "meek-3": matches_rule_3,
    "meek-4": matches_rule_4,
}


def find_implied_arrows(graph: PartialGraph) -> Mapping[Arrow, MeekRule]:
    """The arrows that the rules demand in this graph as it stands, each with the first rule that does."""
    found: dict[Arrow, MeekRule] = {}
    for line in graph.lines:
        a, b = line
        for tail, head in ((a, b), (b, a)):
            rule = next((name for name, demanded in MEEK_RULES.items() if demanded(graph, tail, head)), None)
            if rule is not None:
                found[tail, head] = rule
    return found


def apply_meek_rules(
    graph: PartialGraph, knowledge: Knowledge = NO_KNOWLEDGE
) -> tuple[PartialGraph, Mapping[Arrow, MeekRule]]:
    """Apply the rules until nothing changes; also the arrows this added, with their rules.

    Each sweep looks at all lines of the same graph and takes all arrows demanded, except those that knowledge forbids
    or that lie on a directed cycle: noisy tests can demand such. A line demanded in both directions stays a line.
    """
    reasons: dict[Arrow, MeekRule] = {}
    while True:
        demanded = find_implied_arrows(graph)
        refused = find_obstacles(graph, ((arrow,) for arrow in demanded), knowledge)
        taken = [arrow for arrow in demanded if (arrow,) not in refused]
        if not taken:
            return graph, reasons
        graph = graph.orient_all(taken)
        reasons |= {arrow: demanded[arrow] for arrow in taken}
