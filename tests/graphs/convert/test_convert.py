"""Every conversion, there and back through the library itself: nothing is lost, and nothing comes without a name.

What is not installed is skipped, with its name; `pip install 'fedcdh[graphs]'` brings all of it.
"""

import json
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import PLAIN, graphs
from studies import mixed

import fedcdh
from fedcdh.errors import GraphError, MissingDependencyError, SettingsError
from fedcdh.graphs import convert
from fedcdh.graphs.convert import CONVENTIONS, Adjacency, to_adjacency
from fedcdh.graphs.equivalence import to_cpdag
from fedcdh.graphs.partial_graph import PartialGraph
from fedcdh.protocols import DOMAIN
from fedcdh.reporting import result_files

pytestmark = pytest.mark.filterwarnings("ignore:.*:DeprecationWarning", "ignore:.*:FutureWarning")

CHAIN = PartialGraph((DOMAIN, "a", "b", "c"), frozenset({(DOMAIN, "a"), ("a", "b")}), frozenset({frozenset("bc")}))


def same(one: PartialGraph, other: PartialGraph) -> bool:
    return one == other and one.nodes == other.nodes


# Adjacency matrices


@given(graphs(), st.sampled_from(list(CONVENTIONS)))
@settings(deadline=None)
def test_every_convention_can_be_read_back(graph, convention):
    assert same(to_adjacency(graph, convention).to_graph(), graph)


@given(graphs())
@settings(deadline=None)
def test_conventions_differ_as_their_libraries_do(graph):
    matrices = {name: to_adjacency(graph, name).matrix for name in CONVENTIONS}
    assert (matrices["from-to"] == matrices["to-from"].T).all()
    assert (matrices["pcalg"] == matrices["to-from"]).all()
    for tail, head in graph.arrows:
        i, j = graph.nodes.index(tail), graph.nodes.index(head)
        assert (matrices["from-to"][i, j], matrices["from-to"][j, i]) == (1, 0)
        assert (matrices["causal-learn"][i, j], matrices["causal-learn"][j, i]) == (-1, 1)
        assert (matrices["pcalg-pag"][i, j], matrices["pcalg-pag"][j, i]) == (2, 3)


def test_an_adjacency_has_names_and_cannot_be_changed():
    made = to_adjacency(CHAIN, "from-to", order=["c", "b", "a", DOMAIN])
    assert made.names == ("c", "b", "a", DOMAIN)
    assert made.to_graph() == CHAIN
    assert "c" in str(made)
    with pytest.raises(ValueError, match="read-only"):
        made.matrix[0, 0] = 1
    frame = made.to_pandas()
    assert frame.loc["a", "b"] == 1
    assert frame.loc["b", "a"] == 0


def test_effects_are_read_as_arrows():
    effects = np.array([[0, 0, 0], [0.7, 0, 0], [0, -0.2, 0]])  # lingam: the effect of the column on the row
    assert Adjacency(("x", "y", "z"), effects, "to-from").to_graph().arrows == {("x", "y"), ("y", "z")}


@pytest.mark.parametrize(
    ("names", "matrix", "convention", "message"),
    [
        (("x", "y"), [[0, 1]], "from-to", "shape"),
        (("x", "y"), [[1, 0], [0, 0]], "from-to", "diagonal is not zero at x"),
        (("x", "y"), [[0, np.nan], [0, 0]], "from-to", "finite"),
        (("x", "y"), [["", "a"], ["", ""]], "from-to", "finite numbers"),
        (("x", "y"), [[0, 1], [1, 0]], "causal-learn", "hidden causes"),
        (("x", "y"), [[0, 2], [1, 0]], "causal-learn", "hidden causes"),
        (("x", "x"), [[0, 0], [0, 0]], "from-to", "more than once"),
    ],
)
def test_what_is_no_graph_is_refused(names, matrix, convention, message):
    with pytest.raises(GraphError, match=message):
        Adjacency(names, np.array(matrix), convention).to_graph()


def test_an_unknown_convention_or_order_is_refused():
    with pytest.raises(SettingsError, match="expected one of from-to"):
        to_adjacency(CHAIN, "lingam")
    with pytest.raises(GraphError, match="every node once"):
        to_adjacency(CHAIN, "from-to", order=["a"])


# networkx


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


# causal-learn


@given(graphs())
@settings(deadline=None)
def test_causal_learn(graph):
    pytest.importorskip("causallearn", reason="causal-learn is not installed")
    made = convert.to_causal_learn(graph)
    assert same(convert.from_causal_learn(made), graph)
    assert (made.graph == to_adjacency(graph, "causal-learn").matrix).all()
    nodes = {node.get_name(): node for node in made.get_nodes()}
    for tail, head in graph.arrows:
        assert made.is_parent_of(nodes[tail], nodes[head])
    for a, b in map(tuple, graph.lines):
        assert made.is_undirected_from_to(nodes[a], nodes[b])


def test_causal_learn_reads_our_ancestors():
    pytest.importorskip("causallearn", reason="causal-learn is not installed")
    made = convert.to_causal_learn(PartialGraph.from_dag("abc", [("a", "b"), ("b", "c")]))
    a, _, c = made.get_nodes()
    assert made.is_ancestor_of(a, c)


def test_causal_learn_search_comes_back_with_names():
    pytest.importorskip("causallearn", reason="causal-learn is not installed")
    from causallearn.search.ConstraintBased.PC import pc

    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 500))
    found = pc(np.column_stack([a, b, a + b]), node_names=["a", "b", "c"], show_progress=False)
    assert convert.from_causal_learn(found).arrows == {("a", "c"), ("b", "c")}


def test_causal_learn_graphs_with_hidden_causes_are_refused():
    pytest.importorskip("causallearn", reason="causal-learn is not installed")
    from causallearn.graph.Edges import Edges
    from causallearn.graph.GeneralGraph import GeneralGraph
    from causallearn.graph.GraphNode import GraphNode

    a, b = GraphNode("a"), GraphNode("b")
    for edge in (Edges().bidirected_edge(a, b), Edges().partially_oriented_edge(a, b)):
        graph = GeneralGraph([a, b])
        graph.add_edge(edge)
        with pytest.raises(GraphError, match="between a and b"):
            convert.from_causal_learn(graph)


# pgmpy and DoWhy


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


@given(graphs(directed_only=True))
@settings(deadline=None)
def test_gml(graph):
    pytest.importorskip("networkx")
    assert same(convert.from_gml(convert.to_gml(graph)), graph)


def test_what_is_not_gml_is_refused():
    pytest.importorskip("networkx")
    with pytest.raises(GraphError, match="not GML"):
        convert.from_gml("graph [ node [ id 0 ] ]")


@pytest.mark.filterwarnings("ignore")
def test_dowhy_takes_our_gml():
    dowhy = pytest.importorskip("dowhy", reason="dowhy is not installed")
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(1)
    age = rng.standard_normal(2000)
    dose = age + rng.standard_normal(2000)
    data = pandas.DataFrame({"age": age, "dose": dose, "score": 2 * dose - age + rng.standard_normal(2000)})
    graph = PartialGraph.from_dag(data.columns, [("age", "dose"), ("age", "score"), ("dose", "score")])
    model = dowhy.CausalModel(data, treatment="dose", outcome="score", graph=convert.to_gml(graph))
    estimand = model.identify_effect(proceed_when_unidentifiable=True)
    assert estimand.get_backdoor_variables() == ["age"]
    effect = model.estimate_effect(estimand, method_name="backdoor.linear_regression").value
    assert effect == pytest.approx(2, abs=0.1)
    assert set(model._graph._graph.nodes) == set(data.columns)
    assert dowhy.gcm.StructuralCausalModel(convert.to_networkx(graph)).graph.number_of_edges() == 3


# Texts


@given(graphs())
@settings(deadline=None)
def test_json(graph):
    assert same(convert.from_json(convert.to_json(graph)), graph)
    assert set(json.loads(convert.to_json(graph))) == {"format", "nodes", "arrows", "lines"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"format": "fedcdh-graph-1"}',
        '{"format": "fedcdh-graph-1", "nodes": ["a"], "arrows": [["a"]], "lines": []}',
        '{"format": "fedcdh-graph-1", "nodes": ["a", 1], "arrows": [], "lines": []}',
        '{"format": "fedcdh-graph-1", "nodes": ["a", "b"], "arrows": "ab", "lines": []}',
        '{"format": "fedcdh-graph-1", "nodes": ["a", "b"], "arrows": [], "lines": [["a", "a"]]}',
        '{"format": "fedcdh-result-1", "variables": null, "graph": {}}',
    ],
)
def test_what_is_no_graph_in_json_is_refused(text):
    with pytest.raises(GraphError):
        convert.from_json(text)


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


# Results


@pytest.fixture(scope="module")
def result():
    return fedcdh.discover(mixed())


def test_the_graph_of_a_result_file(result):
    assert convert.from_json(result_files.render_result_json(result)) == result.graph


@pytest.mark.parametrize(
    ("module", "call", "extra"),
    [
        ("networkx", lambda: convert.to_networkx(CHAIN), "graphs"),
        ("networkx", lambda: convert.to_gml(CHAIN), "graphs"),
        ("causallearn", lambda: convert.to_causal_learn(CHAIN), "graphs"),
        ("pgmpy", lambda: convert.to_pgmpy(CHAIN), "graphs"),
        ("pydot", lambda: convert.from_dot("digraph {}"), "graphs"),
        ("pandas", lambda: to_adjacency(CHAIN, "from-to").to_pandas(), "graphs"),
    ],
)
def test_what_is_not_installed_is_named_with_its_extra(module, call, extra, monkeypatch):
    for loaded in [name for name in sys.modules if name.split(".")[0] == module]:
        monkeypatch.delitem(sys.modules, loaded)
    monkeypatch.setitem(sys.modules, module, None)  # as if it were not there
    with pytest.raises(MissingDependencyError, match=rf"pip install 'fedcdh\[{extra}\]'"):
        call()
