"""Random DAGs with hidden and selected nodes, and the partial ancestral graph that a perfect search must find."""

from __future__ import annotations

import random
from functools import cache, partial
from itertools import combinations, product
from operator import eq

from oracle import random_dag

from fedcdh.graphs.ancestral_graph import AncestralGraph, find_unshielded_triples
from fedcdh.graphs.d_separation import find_d_connected
from fedcdh.graphs.partial_graph import PartialGraph
from fedcdh.protocols import DOMAIN, Answer
from fedcdh.search.ancestral_rules import apply_ancestral_rules


def random_hidden(rng: random.Random, observed: int, hidden: int, degree: float, changing: float = 0.0):
    """A DAG and the names of its hidden nodes; the domain is never among them, and changes observed nodes only."""
    dag = random_dag(rng, observed + hidden, degree, changing)
    gone = frozenset(rng.sample([node for node in dag.nodes if node != DOMAIN], hidden))
    return dag, gone


def observed_test(dag: PartialGraph, selected: frozenset[str] = frozenset()):
    """The perfect test of the observed nodes, among rows that were selected by `selected`."""

    connected = cache(partial(find_d_connected, dag))  # one walk for all pairs of a node and a set

    def test(queries, /):
        apart = [query.y not in connected(query.x, query.given | selected) for query in queries]
        return [Answer(query, 1.0 - found, float(found), 0) for query, found in zip(queries, apart, strict=True)]

    return test


def circles_of(mag: AncestralGraph) -> AncestralGraph:
    """The skeleton of a MAG with its unshielded colliders, and the tails of the domain."""
    marks = dict.fromkeys(mag.end_marks, "circle")
    for a, z, b in find_unshielded_triples(mag):
        if mag.end_marks[a, z] == mag.end_marks[b, z] == "arrow":
            marks |= {(a, z): "arrow", (b, z): "arrow"}
    for child in mag.neighbours(DOMAIN) if DOMAIN in mag.nodes else ():
        marks |= {(child, DOMAIN): "tail", (DOMAIN, child): "arrow"}
    return AncestralGraph(mag.nodes, marks)


def pag_of_mag(mag: AncestralGraph, selection: bool = False) -> AncestralGraph:
    """Zhang's rules on the colliders of the MAG itself, without any test or separating set."""

    def is_collider(d, a, b, c, /):
        return mag.end_marks[a, b] == mag.end_marks[c, b] == "arrow"

    return apply_ancestral_rules(circles_of(mag), is_collider, selection=selection)


def pag_by_enumeration(mag: AncestralGraph) -> AncestralGraph:
    """List all MAGs without selection that are equivalent, and keep the marks on which they agree."""
    pairs = sorted(sorted(pair) for pair in mag.skeleton)
    model = list(independences(mag))
    colliders = [
        ((a, z, b), mag.end_marks[a, z] == mag.end_marks[b, z] == "arrow") for a, z, b in find_unshielded_triples(mag)
    ]
    members = []
    for kinds in product(("→", "←", "↔"), repeat=len(pairs)):
        marks = {}
        for (a, b), kind in zip(pairs, kinds, strict=True):
            marks |= {(a, b): "tail" if kind == "←" else "arrow", (b, a): "tail" if kind == "→" else "arrow"}
        if any((marks[a, z] == marks[b, z] == "arrow") != found for (a, z, b), found in colliders):
            continue  # equivalent graphs have the same unshielded colliders
        if DOMAIN in mag.nodes and any(marks[child, DOMAIN] != "tail" for child in mag.neighbours(DOMAIN)):
            continue
        other = AncestralGraph(mag.nodes, marks)
        if is_ancestral(other) and all(map(eq, independences(other), model)):
            members.append(marks)
    agreed = {ends: members[0][ends] if len({m[ends] for m in members}) == 1 else "circle" for ends in mag.end_marks}
    return AncestralGraph(mag.nodes, agreed)


def is_ancestral(graph: AncestralGraph) -> bool:
    """No directed cycle, and no a ↔ b where one causes the other."""
    below = {node: graph.descendants(node) - {node} for node in graph.nodes}
    acyclic = not any(node in below[child] for node in graph.nodes for child in graph.children(node))
    return acyclic and not any(other in below[node] for node in graph.nodes for other in graph.spouses(node))


def independences(mag: AncestralGraph):
    """Yield all connections of a MAG without undirected edges, in the DAG with a hidden cause for every ↔.

    Small conditioning sets come first: two graphs that differ do so early.
    """
    arrows = [(tail, child) for tail in mag.nodes for child in mag.children(tail)]
    hidden = []
    for a, b in map(sorted, mag.skeleton):
        if mag.marks(a, b) == ("arrow", "arrow"):
            hidden.append(f"hidden {a} {b}")
            arrows += [(hidden[-1], a), (hidden[-1], b)]
    dag = PartialGraph((*mag.nodes, *hidden), frozenset(arrows))
    for size in range(len(mag.nodes) - 1):
        for given in map(frozenset, combinations(sorted(mag.nodes), size)):
            for node in sorted(set(mag.nodes) - given):
                yield node, given, find_d_connected(dag, node, given) & {*mag.nodes} - given
