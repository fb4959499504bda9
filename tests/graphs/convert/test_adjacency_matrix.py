"""Adjacency matrices: every convention can be read back, and none goes without names."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import CHAIN, same
from strategies import graphs

from fedcdh.errors import GraphError, SettingsError
from fedcdh.graphs.convert import CONVENTIONS, Adjacency, to_adjacency
from fedcdh.protocols import DOMAIN

pytestmark = pytest.mark.filterwarnings("ignore:.*:DeprecationWarning", "ignore:.*:FutureWarning")


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
