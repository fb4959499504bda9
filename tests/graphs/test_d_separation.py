"""d-separation, against networkx."""

from itertools import combinations

import networkx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import dags

from fedcdh.errors import GraphError
from fedcdh.graphs.d_separation import is_d_separated, make_d_separation_test
from fedcdh.graphs.partial_graph import PartialGraph
from fedcdh.protocols import Query

SQUARE = PartialGraph(
    ("a", "b", "c", "d"), lines=frozenset(map(frozenset, [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")]))
)


@given(dags(most=6), st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_separation_agrees_with_networkx(dag, rng):
    reference = dag.to_networkx()
    for x, y in combinations(dag.nodes, 2):
        others = [node for node in dag.nodes if node not in (x, y)]
        condition = frozenset(rng.sample(others, rng.randint(0, len(others))))
        expected = networkx.is_d_separator(reference, {x}, {y}, set(condition))
        assert is_d_separated(dag, x, y, condition) == is_d_separated(dag, y, x, condition) == expected
        (answer,) = make_d_separation_test(dag)([Query(x, y, condition)])
        assert answer.p_value == float(expected)
        assert answer.query == Query(x, y, condition)


def test_separation_needs_a_dag():
    with pytest.raises(GraphError, match="expected a DAG"):
        make_d_separation_test(SQUARE)
