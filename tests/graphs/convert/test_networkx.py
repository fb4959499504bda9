"""Graphs of networkx."""

import pytest
from hypothesis import given, settings
from oracle import same
from strategies import graphs

from fedcdh.errors import GraphError
from fedcdh.graphs import convert

pytestmark = pytest.mark.filterwarnings("ignore:.*:DeprecationWarning", "ignore:.*:FutureWarning")


@given(graphs())
@settings(deadline=None)
def test_networkx(graph):
    pytest.importorskip("networkx")
    assert same(convert.from_networkx(convert.to_networkx(graph)), graph)


def test_networkx_graphs_of_others():
    networkx = pytest.importorskip("networkx")
    assert convert.from_networkx(networkx.Graph([(1, 2)])).lines == {frozenset("12")}
    assert convert.from_networkx(networkx.MultiDiGraph([("a", "b"), ("b", "a")])).lines == {frozenset("ab")}
    with pytest.raises(GraphError, match="several edges"):
        convert.from_networkx(networkx.MultiDiGraph([("a", "b"), ("a", "b")]))
    with pytest.raises(GraphError, match="two different nodes"):
        convert.from_networkx(networkx.DiGraph([("a", "a")]))
