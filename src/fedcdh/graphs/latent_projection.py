"""From a DAG with hidden nodes to the maximal ancestral graph of the others."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import combinations

from fedcdh.graphs.ancestral_graph import AncestralGraph, Mark
from fedcdh.graphs.d_separation import is_d_separated
from fedcdh.graphs.partial_graph import PartialGraph, find_reachable


def project_to_mag(dag: PartialGraph, hidden: Iterable[str], selected: Iterable[str] = ()) -> AncestralGraph:
    """Return the maximal ancestral graph over the observed nodes of a DAG.

    Parameters
    ----------
    dag : PartialGraph
        A DAG.
    hidden : iterable of str
        Nodes that nobody measured.
    selected : iterable of str, default none
        Nodes on which rows are selected.

    Returns
    -------
    AncestralGraph
        Two nodes are adjacent if no set of observed nodes separates them. The mark at a of the edge between a and b is
        a tail if a is an ancestor of b or of a selected node.

    References
    ----------
    Richardson and Spirtes, "Ancestral graph Markov models", 2002, section 4.2.

    Examples
    --------
    >>> dag = PartialGraph.from_dag("hxy", [("h", "x"), ("h", "y")])
    >>> print(project_to_mag(dag, hidden="h"))
    x ↔ y
    """
    chosen = frozenset(selected)
    gone = frozenset(hidden) | chosen
    observed = tuple(node for node in dag.nodes if node not in gone)
    ancestors = {node: _find_ancestors(dag, [node]) for node in (*observed, *chosen)}
    of_selected = frozenset[str]().union(*(ancestors[node] for node in chosen))
    marks: dict[tuple[str, str], Mark] = {}
    for a, b in combinations(observed, 2):
        # if any set of observed nodes separates them, their observed ancestors do
        given = (ancestors[a] | ancestors[b] | of_selected) & {*observed} - {a, b}
        if not is_d_separated(dag, a, b, given | chosen):
            marks[b, a] = "tail" if a in ancestors[b] | of_selected else "arrow"
            marks[a, b] = "tail" if b in ancestors[a] | of_selected else "arrow"
    return AncestralGraph(observed, marks)


def _find_ancestors(dag: PartialGraph, nodes: Collection[str]) -> frozenset[str]:
    parents = {node: dag.parents(node) for node in dag.nodes}
    return frozenset[str]().union(*(find_reachable(parents, node) for node in nodes))
