"""DOT text."""

import pytest
from hypothesis import given, settings
from oracle import same
from strategies import graphs

from fedcdh.errors import GraphError
from fedcdh.graphs import convert

pytestmark = pytest.mark.filterwarnings("ignore:.*:DeprecationWarning", "ignore:.*:FutureWarning")


@given(graphs())
@settings(deadline=None, max_examples=50)
def test_dot(graph):
    pytest.importorskip("pydot")
    assert same(convert.from_dot(convert.to_dot(graph, changing=graph.nodes[:1])), graph)


def test_dot_of_others():
    pytest.importorskip("pydot")
    graph = convert.from_dot('digraph { node [shape=box]; a -> b [dir=back]; b -> c -> d; "e f"; }')
    assert graph.arrows == {("b", "a"), ("b", "c"), ("c", "d")}
    assert set(graph.nodes) == {"a", "b", "c", "d", "e f"}
    assert convert.from_dot("graph { a -- b }").lines == {frozenset("ab")}
    with pytest.raises(GraphError, match="dir=both"):
        convert.from_dot("digraph { a -> b [dir=both] }")
    with pytest.raises(GraphError, match=r"not DOT .*Expected"):
        convert.from_dot("digraph { a -> ")
    with pytest.raises(GraphError, match="without subgraphs"):
        convert.from_dot("digraph { subgraph s { a -> b } }")
