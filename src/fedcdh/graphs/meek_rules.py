"""Meek's four rules (1995): directions that follow from arrows, acyclicity and known colliders.

The rules are complete. A pattern closed under rules 1 to 3, or a pattern with knowledge closed under all four, directs
exactly the edges that have the same direction in every DAG of the class.
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
    """Return whether rule 1 applies: c → tail — head, c not adjacent to head  ⟹  tail → head."""
    return any(not graph.is_adjacent(c, head) for c in graph.parents(tail))


def matches_rule_2(graph: PartialGraph, tail: str, head: str) -> bool:
    """Return whether rule 2 applies: tail → c → head, tail — head  ⟹  tail → head."""
    return not graph.children(tail).isdisjoint(graph.parents(head))


def matches_rule_3(graph: PartialGraph, tail: str, head: str) -> bool:
    """Return whether rule 3 applies: tail — c → head, tail — d → head, c not adjacent to d  ⟹  tail → head."""
    flanks = [c for c in graph.parents(head) if graph.has_line(tail, c)]
    return any(not graph.is_adjacent(c, d) for c, d in combinations(flanks, 2))


def matches_rule_4(graph: PartialGraph, tail: str, head: str) -> bool:
    """Return whether rule 4 applies: tail — d → c → head, tail adjacent to c, d not to head  ⟹  tail → head."""
    return any(
        graph.has_line(tail, d) and not graph.is_adjacent(d, head)
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
    """Return the arrows that follow in this graph, each with the first rule that implies it."""
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
    """Apply Meek's rules until nothing changes.

    Each pass looks at all lines of the same graph and takes all implied arrows, except those that knowledge forbids or
    that lie on a directed cycle: errors of tests can imply such arrows. A line implied in both directions stays a line.

    Parameters
    ----------
    graph : PartialGraph
        A partially directed graph.
    knowledge : Knowledge, optional
        Background knowledge.

    Returns
    -------
    graph : PartialGraph
        The closed graph.
    rules : mapping from (str, str) to str
        The arrows that were added, each with its rule, "meek-1" to "meek-4".

    Examples
    --------
    >>> graph = PartialGraph(("x", "y", "z"), frozenset({("x", "y")}), frozenset({frozenset("yz")}))
    >>> closed, rules = apply_meek_rules(graph)
    >>> rules
    {('y', 'z'): 'meek-1'}
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
