"""From a DAG to its class and back: which arrows data and knowledge can tell, and one DAG to stand for them."""

from __future__ import annotations

from itertools import product

from fedcdh.errors import GraphError, KnowledgeError, NoConsistentExtensionError
from fedcdh.graphs import meek_rules
from fedcdh.graphs.knowledge import NO_KNOWLEDGE, Knowledge
from fedcdh.graphs.partial_graph import PartialGraph, node_sort_key, sort_pair


def to_cpdag(dag: PartialGraph, knowledge: Knowledge = NO_KNOWLEDGE) -> PartialGraph:
    """The class of a DAG: an arrow where all its DAGs agree, a line where they differ.

    The class is every DAG with the same skeleton and the same unshielded colliders that obeys the knowledge. The
    domain, if it is a node, has arrows only: knowledge always says that it has no causes.
    """
    _check_knowledge_holds(dag, knowledge)
    known = {
        (tail, head)
        for tail, head in dag.arrows
        if knowledge.directs(tail, head) or any(middle == head and tail in pair for pair, middle in dag.colliders)
    }
    pattern = PartialGraph(dag.nodes, frozenset(known), dag.skeleton - {frozenset(arrow) for arrow in known})
    return meek_rules.apply_meek_rules(pattern, knowledge)[0]


def find_consistent_extension(graph: PartialGraph) -> PartialGraph:
    """A DAG with all arrows, the skeleton and exactly the unshielded colliders of the graph (Dor & Tarsi 1992).

    Raises `NoConsistentExtensionError` if there is none.
    """
    dag = extend_to_dag(graph)
    created = dag.colliders - graph.colliders
    if created:
        shown = ", ".join(f"{a} → {middle} ← {b}" for (a, b), middle in sorted((sort_pair(p), m) for p, m in created))
        raise NoConsistentExtensionError(
            f"the lines cannot be directed without a new collider ({shown}); extend() gives a DAG that has a few"
        )
    return dag


def extend_to_dag(graph: PartialGraph) -> PartialGraph:
    """A DAG with all arrows and the skeleton of the graph, and with few new colliders.

    Takes away one node after the other: a node without children left, whose lines, all directed into it, make the
    fewest new colliders; among equals the first by name. When a choice without any new collider exists, it never
    spoils a consistent extension (Dor & Tarsi 1992), so one is found whenever there is one. Otherwise this is a greedy
    rule: it always ends, and does not promise the fewest colliders possible.
    """
    if not graph.is_acyclic():
        raise NoConsistentExtensionError(
            "the arrows run in a directed cycle, so no DAG has them all; remove or turn one of them"
        )
    dag, left = graph, set(graph.nodes)
    while left:
        sinks = [node for node in left if graph.children(node).isdisjoint(left)]
        sink = min(sinks, key=lambda node: (_count_new_colliders(graph, node, left), node_sort_key(node)))
        for neighbour in sorted(graph.neighbours(sink) & left):
            if graph.has_line(neighbour, sink):
                dag = dag.orient(neighbour, sink)
        left.remove(sink)
    return dag


def _count_new_colliders(graph: PartialGraph, sink: str, left: set[str]) -> int:
    """How many unshielded colliders arise when all lines of the sink that are left point into it."""
    around = graph.neighbours(sink) & left
    turned = {node for node in around if graph.has_line(node, sink)}
    return len({frozenset((a, b)) for a, b in product(turned, around) if a != b and not graph.adjacent(a, b)})


def _check_knowledge_holds(dag: PartialGraph, knowledge: Knowledge) -> None:
    if not dag.is_dag():
        raise GraphError("the graph is not a DAG (it has lines or a directed cycle); extend() makes one of its lines")
    knowledge.check(dag.nodes)
    false = {arrow for arrow in dag.arrows if knowledge.forbids(*arrow)}
    false |= {arrow for arrow in knowledge.required if arrow not in dag.arrows and set(arrow) <= set(dag.nodes)}
    if false:
        shown = ", ".join(f"{tail} → {head}" for tail, head in sorted(false))
        raise KnowledgeError(f"the knowledge is not true of this DAG: {shown}; give knowledge that the DAG obeys")
