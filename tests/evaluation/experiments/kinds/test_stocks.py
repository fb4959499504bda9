"""Stocks without a true graph: blocks of days as clients, and counts that need no truth."""

from __future__ import annotations

import json

import numpy as np
import pytest

from fedcdh.evaluation.baselines import BaselineResult
from fedcdh.evaluation.experiments.kinds.stocks import STOCK_DATA_SET, STOCK_GRAPHS, StockInstance, _count_edges
from fedcdh.graphs.partial_graph import PartialGraph

NAMES = ("a", "b", "c")


@pytest.fixture
def days(tmp_path, monkeypatch):
    """Twelve days of three stocks; the first stock counts the days."""
    folder = tmp_path / "data" / STOCK_DATA_SET
    folder.mkdir(parents=True)
    truth = {"nodes": NAMES, "edges": [["a", "b"]], "sectors": {"banks": ["a", "b"], "shops": ["c"]}}
    (folder / "truth.json").write_text(json.dumps(truth))
    rows = "".join(f"{day},{day * day},{-day},1\n" for day in range(12))
    (folder / "data.csv").write_text("a,b,c,domain\n" + rows)
    monkeypatch.setenv("FEDCDH_SHARED", str(tmp_path))


def test_clients_are_blocks_of_days(days):
    found = STOCK_GRAPHS.prepare_instance({"clients": 3, "rows": 3}, 1)
    assert found.names == NAMES
    blocks = [table[:, 0] for table in found.tables.values()]
    assert [len(block) for block in blocks] == [3, 3, 3]
    for number, block in enumerate(blocks):
        assert np.all(np.diff(block) > 0)
        assert {*block // 4} == {number}


def test_edges_are_counted_without_a_truth():
    instance = StockInstance({}, NAMES, frozenset({frozenset("ab")}), frozenset({("a", "b")}))
    found = BaselineResult(PartialGraph(NAMES, frozenset({("a", "b")}), frozenset({frozenset("bc")})))
    counted = _count_edges(instance, found)
    assert (counted["edges"], counted["within_sector"]) == (2, 0.5)
    assert (counted["known_adjacent"], counted["known_directed"]) == (1, 1)
    assert STOCK_GRAPHS.failure_measures(instance)["edges"] == 0
    assert STOCK_GRAPHS.failure_measures(instance)["within_sector"] is None
