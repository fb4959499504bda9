"""GML text."""

import numpy as np
import pytest
from hypothesis import given, settings
from oracle import same
from strategies import graphs

from fedcdh.errors import GraphError
from fedcdh.graphs import convert
from fedcdh.graphs.partial_graph import PartialGraph

pytestmark = pytest.mark.filterwarnings("ignore:.*:DeprecationWarning", "ignore:.*:FutureWarning")


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
