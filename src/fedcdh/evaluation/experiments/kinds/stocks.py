"""Ten Hong Kong stocks without a true graph: what can be said without one.

The paper prints F1 and SHD for its copy of these data, but no true graph, and none is public. So nothing is scored
against one here. Measured are the number of edges, the share of them within one of the exchange's four sectors (9 of
the 45 pairs are, so a graph at random has 0.2), and which of the two directions are found that have a source outside
this literature (Mooij et al. 2016).

Parameters: clients, rows (per client). Trading days are cut into as many contiguous blocks as there are clients, and
rows are drawn from each.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from fedcdh.evaluation.baselines import Found, method
from fedcdh.evaluation.experiments.definition import Case
from fedcdh.evaluation.experiments.kinds.graph_recovery import SIMULATED
from fedcdh.evaluation.experiments.real_data import columns_of, data_folder
from fedcdh.evaluation.simulation import Array, client_names, generator
from fedcdh.graphs.partial_graph import PartialGraph

SOURCE = "hk_stock"


@dataclass(frozen=True, eq=False)
class Market:
    """Returns at every client, and what is known of the stocks."""

    tables: Mapping[str, Array]
    names: tuple[str, ...]
    within: frozenset[frozenset[str]]  # pairs of stocks in one sector
    known: frozenset[tuple[str, str]]


class Stocks:
    """Edges within sectors, and known directions."""

    measures = ("edges", "within_sector", "known_adjacent", "known_directed", "bytes_up")

    def ready(self, name: str) -> None:
        SIMULATED.ready(name)

    def prepare(self, case: Case, seed: int) -> Market:
        truth = json.loads((data_folder() / SOURCE / "truth.json").read_text(encoding="utf-8"))
        names = tuple(truth["nodes"])
        columns = columns_of(SOURCE, names)
        returns = np.column_stack([columns[name] for name in names])
        blocks = np.array_split(np.arange(len(returns)), case["clients"])
        tables = {}
        for client, block in zip(client_names(case["clients"]), blocks, strict=True):
            rows = generator(seed, "rows", SOURCE, client).permutation(block)[: case["rows"]]
            tables[client] = returns[np.sort(rows)]
        within = {frozenset(pair) for sector in truth["sectors"].values() for pair in combinations(sector, 2)}
        return Market(tables, names, frozenset(within), frozenset((a, b) for a, b in truth["edges"]))

    def measure(self, prepared: Market, case: Case, name: str, seed: int) -> dict[str, Any]:
        return _counted(prepared, method(name)(prepared.tables, prepared.names, seed))

    def failed(self, prepared: Market) -> dict[str, Any]:
        return _counted(prepared, Found(PartialGraph(prepared.names)))


def _counted(market: Market, found: Found) -> dict[str, Any]:
    graph = found.graph
    pairs = {frozenset(arrow) for arrow in graph.arrows} | graph.lines
    return {
        "edges": len(pairs),
        "within_sector": len(pairs & market.within) / len(pairs) if pairs else None,
        "known_adjacent": sum(frozenset(arrow) in pairs for arrow in market.known),
        "known_directed": len(found.directed & market.known),
        "bytes_up": found.traffic.bytes_up,
    }


STOCKS = Stocks()
