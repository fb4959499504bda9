"""FedGES: Torrijos, Gámez, Puerta (2024), a federated GES in which clients send structures only.

In each round the server sends its DAG. Every client starts GES from the
class of this DAG, may insert a limited number of edges, deletes what it can do without, and sends a DAG of its class.
The server fuses all DAGs (Puerta et al. 2021, "Efficient and accurate structural fusion of Bayesian networks"):

1. A common order: repeatedly, the node goes last whose becoming a sink adds the fewest arcs over all graphs, and
   among equals the one that turns the fewest.
2. Every DAG is brought to this order. To turn an arc, each of its ends gains the parents of the other, so that no
   independence is claimed that the graph does not have.
3. The union of all arcs, or the arcs that at least half of the clients have.

Rounds end when the server's DAG no longer changes, or after ten. The original has discrete data and BDeu; here it is
the Gaussian BIC. The limit of insertions in a round is 10, and "half" is the rule of `fedges`; both are our choice.
Which DAG of its class a client sends depends on the names of variables, and so may the fused graph.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from fedcdh._runtime.array_types import Array
from fedcdh.errors import SettingsError
from fedcdh.evaluation.baselines.family_messages import decode_graph, encode_graph
from fedcdh.evaluation.baselines.gaussian_bic import GaussianBic
from fedcdh.evaluation.baselines.interface import BaselineResult, CountingChannel
from fedcdh.graphs.equivalence import extend_to_dag, to_cpdag
from fedcdh.graphs.partial_graph import PartialGraph
from fedcdh.search.greedy_equivalence_search import find_equivalence_class

MAX_ROUNDS = 10
MAX_INSERTIONS = 10
"""Edges that a client may insert in one round."""
Fusion = Literal["union", "half"]
Bools = npt.NDArray[np.bool_]


def run_fedges(
    tables: Mapping[str, Array],
    names: Sequence[str],
    seed: int = 0,
    *,
    fusion: Fusion = "half",
    max_insertions: int = MAX_INSERTIONS,
) -> BaselineResult:
    """Run rounds of local GES and fusion; nothing is random.

    >>> x, y, e = np.random.default_rng(1).standard_normal((3, 200))
    >>> table = np.column_stack([x, y, x + y + e])
    >>> print(run_fedges({"north": table[:90], "south": table[90:]}, ("x", "y", "z")).graph)
    x → z
    y → z
    """
    if fusion not in ("union", "half"):
        raise SettingsError(f"found fusion {fusion!r}; expected union or half; choose one of these", parameter="fusion")
    channel = CountingChannel(len(tables))
    scores = [GaussianBic.of_table(table, names) for table in tables.values()]
    share = 0.5 if fusion == "half" else 0.0
    dag = PartialGraph(tuple(names))
    for _ in range(MAX_ROUNDS):
        common = decode_graph(channel.to_clients(encode_graph(dag, names)), names)
        local = [channel.to_server(_learn_from(common, score, names, max_insertions)) for score in scores]
        after = decode_graph(fuse_dags([np.asarray(one, dtype=np.bool_) for one in local], share), names)
        if after == dag:
            break
        dag = after
    return BaselineResult(to_cpdag(dag), channel.traffic)


def _learn_from(
    common: PartialGraph, score: GaussianBic, names: Sequence[str], max_insertions: int
) -> npt.NDArray[np.uint8]:
    """Return the DAG of a client after a round of GES from the common graph."""
    found = find_equivalence_class(names, score, start=to_cpdag(common), max_insertions=max_insertions)
    return encode_graph(extend_to_dag(found.cpdag), names)


# Fusion


def fuse_dags(dags: Sequence[Bools], min_share: float = 0.0) -> Bools:
    """Return the arcs of all DAGs in a common order; a matrix has True at (i, j) for i → j.

    Parameters
    ----------
    dags : sequence of array
        The DAGs, variables × variables.
    min_share : float, default 0
        The share of DAGs that must have an arc; 0 is the union.

    Returns
    -------
    array
        The fused DAG.

    Examples
    --------
    >>> chain, other = np.zeros((2, 2), bool), np.zeros((2, 2), bool)
    >>> chain[0, 1] = other[1, 0] = True
    >>> int(fuse_dags([chain, other]).sum())
    1
    """
    graphs = [np.array(dag, dtype=np.bool_) for dag in dags]
    left = list(range(len(graphs[0])))
    while left:
        options = {node: [make_sink(graph, node, left) for graph in graphs] for node in left}
        turned = {node: sum(int(graph[node, left].sum()) for graph in graphs) for node in left}
        last = min(left, key=lambda node: (_count_arcs(options[node]), turned[node], node))
        graphs = options[last]
        left.remove(last)
    votes = np.sum(graphs, axis=0)
    return np.asarray((votes > 0) & (votes >= min_share * len(graphs)))


def make_sink(dag: Bools, node: int, left: Sequence[int]) -> Bools:
    """Return a DAG in which a node has no children among the nodes left, and that claims no new independence."""
    graph = dag.copy()
    while True:
        children = [other for other in left if graph[node, other]]
        if not children:
            return graph
        # A child that no other child leads to can be turned without a cycle.
        first = next(child for child in children if not _descends_from(graph, child, children))
        above, around = graph[:, node].copy(), graph[:, first].copy()
        around[node] = False
        graph[:, first] |= above
        graph[:, node] |= around
        graph[node, first], graph[first, node] = False, True


def _descends_from(graph: Bools, node: int, others: Sequence[int]) -> bool:
    """Return whether arcs lead to a node from one of the others."""
    seen, waiting = {node}, [node]
    while waiting:
        new = set(np.flatnonzero(graph[:, waiting.pop()]).tolist()) - seen
        seen |= new
        waiting.extend(new)
    return not seen.isdisjoint(set(others) - {node})


def _count_arcs(graphs: Sequence[Bools]) -> int:
    return int(sum(graph.sum() for graph in graphs))
