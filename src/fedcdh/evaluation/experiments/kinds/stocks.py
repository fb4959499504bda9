"""Ten Hong Kong stocks without a true graph: what can be measured without one.

The paper prints F1 and SHD for its copy of these data, but no true graph, and none is public. Nothing is scored against
one here. Measured are the number of edges, the share of them within one of the exchange's four sectors (9 of the 45
pairs are, so a random graph has 0.2), and which of the two directions are found that have a source outside this
literature (Mooij et al. 2016).

Parameters: clients, rows (per client). Trading days are cut into one contiguous block per client, and rows are drawn
from each.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from fedcdh._runtime.array_types import Array
from fedcdh.evaluation.baselines import BaselineResult, find_baseline
from fedcdh.evaluation.baselines.fitted_weights import FittedWeights
from fedcdh.evaluation.experiments.definition import ExperimentCase
from fedcdh.evaluation.experiments.kinds.graph_recovery import SIMULATED_GRAPHS
from fedcdh.evaluation.experiments.real_data import data_folder, read_columns
from fedcdh.evaluation.simulation import keyed_generator, name_clients
from fedcdh.graphs.partial_graph import PartialGraph

STOCK_DATA_SET = "hk_stock"


@dataclass(frozen=True, eq=False)
class StockInstance:
    """The returns at every client, and what is known of the stocks."""

    tables: Mapping[str, Array]
    names: tuple[str, ...]
    within: frozenset[frozenset[str]]  # pairs of stocks in one sector
    known: frozenset[tuple[str, str]]


class StockGraphs:
    """The number of edges within sectors, and of known directions."""

    measures = ("edges", "within_sector", "known_adjacent", "known_directed", "bytes_up")

    def prepare_method(self, name: str) -> None:
        SIMULATED_GRAPHS.prepare_method(name)

    def prepare_instance(self, case: ExperimentCase, seed: int) -> StockInstance:
        truth = json.loads((data_folder() / STOCK_DATA_SET / "truth.json").read_text(encoding="utf-8"))
        names = tuple(truth["nodes"])
        columns = read_columns(STOCK_DATA_SET, names)
        returns = np.column_stack([columns[name] for name in names])
        blocks = np.array_split(np.arange(len(returns)), case["clients"])
        tables = {}
        for client, block in zip(name_clients(case["clients"]), blocks, strict=True):
            rows = keyed_generator(seed, "rows", STOCK_DATA_SET, client).permutation(block)[: case["rows"]]
            tables[client] = returns[np.sort(rows)]
        within = {frozenset(pair) for sector in truth["sectors"].values() for pair in combinations(sector, 2)}
        return StockInstance(tables, names, frozenset(within), frozenset((a, b) for a, b in truth["edges"]))

    def fit_name(self, name: str) -> str:
        return find_baseline(name).fit_name

    def fit(self, prepared: StockInstance, name: str, seed: int) -> FittedWeights:
        return find_baseline(name).fit(prepared.tables, prepared.names, seed)

    def measure(
        self, prepared: StockInstance, case: ExperimentCase, name: str, seed: int, fitted: FittedWeights | None = None
    ) -> dict[str, Any]:
        if fitted is not None:
            return _count_edges(prepared, find_baseline(name).apply_threshold(fitted, prepared.names))
        return _count_edges(prepared, find_baseline(name)(prepared.tables, prepared.names, seed))

    def failure_measures(self, prepared: StockInstance) -> dict[str, Any]:
        return _count_edges(prepared, BaselineResult(PartialGraph(prepared.names)))


def _count_edges(market: StockInstance, found: BaselineResult) -> dict[str, Any]:
    graph = found.graph
    pairs = {frozenset(arrow) for arrow in graph.arrows} | graph.lines
    return {
        "edges": len(pairs),
        "within_sector": len(pairs & market.within) / len(pairs) if pairs else None,
        "known_adjacent": sum(frozenset(arrow) in pairs for arrow in market.known),
        "known_directed": len(found.directed & market.known),
        "bytes_up": found.traffic.bytes_up,
    }


STOCK_GRAPHS = StockGraphs()
