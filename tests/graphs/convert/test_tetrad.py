"""Graph texts of Tetrad."""

import pytest
from hypothesis import given, settings
from oracle import same
from strategies import PLAIN, graphs

from fedcdh.errors import GraphError
from fedcdh.graphs import convert
from fedcdh.graphs.partial_graph import PartialGraph

pytestmark = pytest.mark.filterwarnings("ignore:.*:DeprecationWarning", "ignore:.*:FutureWarning")


@given(graphs(names=PLAIN))
@settings(deadline=None)
def test_tetrad(graph):
    assert same(convert.from_tetrad(convert.to_tetrad(graph)), graph)


@given(graph=graphs(names=PLAIN))
@settings(deadline=None)
def test_causal_learn_reads_our_tetrad_text(graph, tmp_path_factory):
    reader = pytest.importorskip("causallearn.utils.TXT2GeneralGraph", reason="causal-learn is not installed")
    path = tmp_path_factory.mktemp("tetrad") / "graph.txt"
    path.write_text(convert.to_tetrad(graph), encoding="utf-8")
    assert same(convert.from_causal_learn(reader.txt2generalgraph(str(path))), graph)


@given(graphs(names=PLAIN))
@settings(deadline=None)
def test_we_read_causal_learns_tetrad_text(graph):
    pytest.importorskip("causallearn", reason="causal-learn is not installed")
    assert same(convert.from_tetrad(str(convert.to_causal_learn(graph))), graph)


def test_tetrad_texts_of_others():
    text = "Graph Nodes:\nX1,X2,X3\n\nGraph Edges:\n1. X1 --> X2 dd nl\n2. X2 <-- X3 [X3 --> X2]:1.0;\n\n"
    graph = convert.from_tetrad(text + "Graph Attributes:\nBIC: -12.5\n")
    assert graph.arrows == {("X1", "X2"), ("X3", "X2")}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no names"),
        ("a --> b", "Graph Nodes"),
        ("Graph Nodes:\na;b\nGraph Edges:\na --> b", "such as"),
        ("Graph Nodes:\na;b\nGraph Edges:\n1. a o-> b", "hidden causes"),
        ("Graph Nodes:\na;b\nGraph Edges:\n1. a --> b c", "such as"),
        ("Graph Nodes:\na;b\nGraph Edges:\n1. a --> z", "not in the graph: z"),
    ],
)
def test_what_is_no_tetrad_graph_is_refused(text, message):
    with pytest.raises(GraphError, match=message):
        convert.from_tetrad(text)


def test_names_that_tetrad_cannot_read_are_refused():
    with pytest.raises(GraphError, match="'blood pressure'"):
        convert.to_tetrad(PartialGraph(("age", "blood pressure")))
