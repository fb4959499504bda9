"""Markov equivalence: from a DAG to its class (CPDAG), and from a class to one of its DAGs."""

from __future__ import annotations

from itertools import product

from fedcdh.errors import GraphError, KnowledgeError, NoConsistentExtensionError
from fedcdh.graphs import meek_rules
from fedcdh.graphs.knowledge import NO_KNOWLEDGE, Knowledge
from fedcdh.graphs.partial_graph import Arrow, PartialGraph, node_sort_key, sort_pair


def to_cpdag(dag: PartialGraph, knowledge: Knowledge = NO_KNOWLEDGE) -> PartialGraph:
    """Return the equivalence class of a DAG: an arrow where all its DAGs agree, a line where they differ.

    The class consists of all DAGs with the same skeleton and the same unshielded colliders that obey the knowledge.
    Edges of the domain are arrows, because the domain has no causes.

    Parameters
    ----------
    dag : PartialGraph
        A DAG.
    knowledge : Knowledge, optional
        Background knowledge that the DAG obeys.

    Returns
    -------
    PartialGraph
        The completed partially directed graph (CPDAG).

    Raises
    ------
    GraphError
        If the graph is not a DAG.
    KnowledgeError
        If the DAG does not obey the knowledge.

    Examples
    --------
    >>> print(to_cpdag(PartialGraph.from_dag("xyz", [("x", "y"), ("y", "z")])))
    x — y
    y — z
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
    """Return a DAG with the arrows, the skeleton and exactly the unshielded colliders of a graph.

    Parameters
    ----------
    graph : PartialGraph
        A partially directed graph.

    Returns
    -------
    PartialGraph
        A consistent extension.

    Raises
    ------
    NoConsistentExtensionError
        If there is none.

    References
    ----------
    D. Dor, M. Tarsi (1992): A simple algorithm to construct a consistent extension of a partially oriented graph.

    Examples
    --------
    >>> chain = PartialGraph(("x", "y"), lines=frozenset({frozenset("xy")}))
    >>> print(find_consistent_extension(chain))
    y → x
    """
    dag = extend_to_dag(graph)
    created = dag.colliders - graph.colliders
    if created:
        shown = ", ".join(f"{a} → {middle} ← {b}" for (a, b), middle in sorted((sort_pair(p), m) for p, m in created))
        raise NoConsistentExtensionError(
            f"the lines cannot be directed without a new collider ({shown}); expected a graph with a consistent "
            "extension. extend_to_dag() returns a DAG with few new colliders"
        )
    return dag


def extend_to_dag(graph: PartialGraph) -> PartialGraph:
    """Return a DAG with the arrows and the skeleton of a graph, and with few new colliders.

    Parameters
    ----------
    graph : PartialGraph
        A partially directed graph.

    Returns
    -------
    PartialGraph
        A consistent extension if there is one.

    Raises
    ------
    NoConsistentExtensionError
        If the arrows contain a directed cycle.

    Notes
    -----
    One node after the other is removed: a node without children left, whose lines, all directed into it, make the
    fewest new colliders; among equals the first by name. A choice without a new collider never prevents a consistent
    extension (Dor and Tarsi 1992), so one is found whenever there is one. Otherwise the rule is greedy and does not
    promise the fewest colliders.

    Examples
    --------
    >>> square = PartialGraph(tuple("abcd"), lines=frozenset(map(frozenset, ["ab", "bc", "cd", "da"])))
    >>> len(extend_to_dag(square).colliders)
    1
    """
    if not graph.is_acyclic():
        raise NoConsistentExtensionError(
            "the arrows contain a directed cycle; expected a graph that a DAG can extend. Remove or reverse one of them"
        )
    if not graph.lines:
        return graph
    directed, left = list[Arrow](), set(graph.nodes)
    with_lines = {node for line in graph.lines for node in line}
    while left & with_lines:  # all other arrows are given
        sinks = [node for node in left if graph.children(node).isdisjoint(left)]
        if ready := [node for node in sinks if node not in with_lines]:
            left.difference_update(ready)  # they direct nothing, so their order makes no difference
            continue
        sink = min(sinks, key=lambda node: (_count_new_colliders(graph, node, left), node_sort_key(node)))
        directed += [(node, sink) for node in sorted(graph.neighbours(sink) & left) if graph.has_line(node, sink)]
        left.remove(sink)
    return graph.orient_all(directed)


def _count_new_colliders(graph: PartialGraph, sink: str, left: set[str]) -> int:
    """Return the number of unshielded colliders that arise if all remaining lines of the sink point into it."""
    around = graph.neighbours(sink) & left
    turned = {node for node in around if graph.has_line(node, sink)}
    return len({frozenset((a, b)) for a, b in product(turned, around) if a != b and not graph.is_adjacent(a, b)})


def _check_knowledge_holds(dag: PartialGraph, knowledge: Knowledge) -> None:
    if not dag.is_dag():
        raise GraphError(
            "the graph has lines or a directed cycle; expected a DAG. extend_to_dag() directs the lines of a graph"
        )
    knowledge.check(dag.nodes)
    false = {arrow for arrow in dag.arrows if knowledge.forbids(*arrow)}
    false |= {arrow for arrow in knowledge.required if arrow not in dag.arrows and set(arrow) <= set(dag.nodes)}
    if false:
        shown = ", ".join(f"{tail} → {head}" for tail, head in sorted(false))
        raise KnowledgeError(f"the DAG contradicts the knowledge: {shown}; correct the one or the other")
