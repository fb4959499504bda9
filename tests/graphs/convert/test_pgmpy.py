"""Graphs of pgmpy."""

import pytest
from hypothesis import given, settings
from oracle import CHAIN, same
from strategies import graphs

from fedcdh.errors import GraphError
from fedcdh.graphs import convert
from fedcdh.graphs.equivalence import to_cpdag
from fedcdh.graphs.partial_graph import PartialGraph

pytestmark = pytest.mark.filterwarnings("ignore:.*:DeprecationWarning", "ignore:.*:FutureWarning")


@given(graphs())
@settings(deadline=None, max_examples=50)
def test_pgmpy(graph):
    pytest.importorskip("pgmpy.base", reason="pgmpy is not installed")
    assert convert.from_pgmpy(convert.to_pgmpy(graph)) == graph


@given(graphs(directed_only=True))
@settings(deadline=None, max_examples=50)
def test_pgmpy_dags(graph):
    pytest.importorskip("pgmpy.base", reason="pgmpy is not installed")
    made = convert.to_pgmpy_dag(graph)
    assert same(convert.from_pgmpy(made), graph)
    assert convert.from_pgmpy(convert.to_pgmpy(graph).to_dag()) == graph


def test_pgmpy_completes_our_pattern_to_a_dag():
    pytest.importorskip("pgmpy.base", reason="pgmpy is not installed")
    pattern = to_cpdag(PartialGraph.from_dag("abcd", [("a", "b"), ("b", "c"), ("d", "c")]))
    dag = convert.from_pgmpy(convert.to_pgmpy(pattern).to_dag())
    assert to_cpdag(dag) == pattern


def test_dags_only_where_dags_are_needed():
    pytest.importorskip("networkx")
    with pytest.raises(GraphError, match=r"b — c; expected a DAG. Take result.to_dag\(\)"):
        convert.to_gml(CHAIN)
