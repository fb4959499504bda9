"""A test that is never wrong: d-separation in a known graph. It serves to study a search apart from any statistics."""

from __future__ import annotations

from collections.abc import Sequence

from fedcdh.errors import GraphError
from fedcdh.graphs.partial_graph import PartialGraph
from fedcdh.protocols import Answer, IndependenceTest, Query


def make_d_separation_test(dag: PartialGraph) -> IndependenceTest:
    """The perfect independence test of a DAG: p-value 1 for what is d-separated, 0 for what is not."""
    if not dag.is_dag():
        raise GraphError("d-separation is read off a DAG, but this graph has lines or a cycle; extend() it first")

    def test(questions: Sequence[Query], /) -> list[Answer]:
        return [
            _make_answer(question, is_d_separated(dag, question.x, question.y, question.given))
            for question in questions
        ]

    return test


def is_d_separated(dag: PartialGraph, x: str, y: str, given: frozenset[str]) -> bool:
    """x ⫫ y | given in the graph: no path from x to y on which a ball would roll.

    The ball passes an ordinary node unless it is given, and a collider only if it or a descendant is given.
    """
    opened = _add_ancestors(dag, given)
    waiting = [(x, False)]  # (node, whether the ball came down an arrow into it)
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
    return (y, True) not in seen and (y, False) not in seen


def _add_ancestors(dag: PartialGraph, nodes: frozenset[str]) -> frozenset[str]:
    seen, waiting = set(nodes), list(nodes)
    while waiting:
        fresh = dag.parents(waiting.pop()) - seen
        seen |= fresh
        waiting.extend(fresh)
    return frozenset(seen)


def _make_answer(question: Query, apart: bool) -> Answer:
    # No rows stand behind a graph, and the statistic only repeats the verdict.
    return Answer(question, statistic=0.0 if apart else 1.0, p_value=1.0 if apart else 0.0, rows=0)
