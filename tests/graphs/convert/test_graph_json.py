"""Graphs as JSON."""

import json

import pytest
from hypothesis import given, settings
from oracle import same
from strategies import graphs
from studies import mixed

import fedcdh
from fedcdh.errors import GraphError
from fedcdh.graphs import convert
from fedcdh.reporting import result_files

pytestmark = pytest.mark.filterwarnings("ignore:.*:DeprecationWarning", "ignore:.*:FutureWarning")


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


@pytest.fixture(scope="module")
def result():
    return fedcdh.discover(mixed())


def test_the_graph_of_a_result_file(result):
    assert convert.from_json(result_files.render_result_json(result)) == result.graph
