"""d-separation, and a perfect independence test based on it, with which a search is studied apart from statistics."""

from __future__ import annotations

from collections.abc import Sequence

from fedcdh.errors import GraphError
from fedcdh.graphs.partial_graph import PartialGraph
from fedcdh.protocols import Answer, IndependenceTest, Query


def make_d_separation_test(dag: PartialGraph) -> IndependenceTest:
    """Return the perfect independence test of a DAG.

    Parameters
    ----------
    dag : PartialGraph
        The true graph.

    Returns
    -------
    IndependenceTest
        A test with p-value 1 where the variables are d-separated and 0 where they are not.

    Raises
    ------
    GraphError
        If the graph is not a DAG.

    Examples
    --------
    >>> from fedcdh.protocols import Query
    >>> test = make_d_separation_test(PartialGraph.from_dag("xyz", [("x", "y"), ("y", "z")]))
    >>> [answer.p_value for answer in test([Query("x", "z"), Query("x", "z", frozenset("y"))])]
    [0.0, 1.0]
    """
    if not dag.is_dag():
        raise GraphError(
            "the graph has lines or a directed cycle; expected a DAG. extend_to_dag() directs the lines of a graph"
        )

    def test(queries: Sequence[Query], /) -> list[Answer]:
        return [_make_answer(query, is_d_separated(dag, query.x, query.y, query.given)) for query in queries]

    return test


def is_d_separated(dag: PartialGraph, x: str, y: str, given: frozenset[str]) -> bool:
    """Return whether x and y are d-separated by a set of nodes.

    Parameters
    ----------
    dag : PartialGraph
        A DAG.
    x, y : str
        Two nodes.
    given : frozenset of str
        The conditioning set.

    Returns
    -------
    bool
        True if every path between x and y is blocked: by a node of the set, or by a collider without a descendant
        in it.

    Examples
    --------
    >>> collider = PartialGraph.from_dag("xyz", [("x", "z"), ("y", "z")])
    >>> is_d_separated(collider, "x", "y", frozenset()), is_d_separated(collider, "x", "y", frozenset("z"))
    (True, False)
    """
    return y not in find_d_connected(dag, x, given)


def find_d_connected(dag: PartialGraph, x: str, given: frozenset[str]) -> frozenset[str]:
    """Return the nodes that a set of nodes does not d-separate from x, and x itself.

    Parameters
    ----------
    dag : PartialGraph
        A DAG.
    x : str
        A node.
    given : frozenset of str
        The conditioning set.

    Returns
    -------
    frozenset of str
        The nodes; those of the set itself mean nothing.

    Notes
    -----
    The search is Shachter's Bayes ball (1998): a ball passes an ordinary node unless it is given, and a collider only
    if it or a descendant is given.

    Examples
    --------
    >>> chain = PartialGraph.from_dag("xyz", [("x", "y"), ("y", "z")])
    >>> sorted(find_d_connected(chain, "x", frozenset()))
    ['x', 'y', 'z']
    """
    opened = _add_ancestors(dag, given)
    waiting = [(x, False)]  # (node, whether the ball came along an arrow into it)
    seen = set(waiting)
    while waiting:
        node, came_down = waiting.pop()
        moves = []
        if node not in given:
            moves += [(child, True) for child in dag.children(node)]
        if (came_down and node in opened) or (not came_down and node not in given):
            moves += [(parent, False) for parent in dag.parents(node)]
        fresh = [move for move in moves if move not in seen]
        seen.update(fresh)
        waiting.extend(fresh)
    return frozenset(node for node, _ in seen)


def _add_ancestors(dag: PartialGraph, nodes: frozenset[str]) -> frozenset[str]:
    seen, waiting = set(nodes), list(nodes)
    while waiting:
        fresh = dag.parents(waiting.pop()) - seen
        seen |= fresh
        waiting.extend(fresh)
    return frozenset(seen)


def _make_answer(query: Query, apart: bool) -> Answer:
    # There are no rows behind a graph, and the statistic only repeats the verdict.
    return Answer(query, statistic=0.0 if apart else 1.0, p_value=1.0 if apart else 0.0, rows=0)
