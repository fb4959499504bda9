"""FedGES: fusion keeps independences honest, and rounds end."""

from __future__ import annotations

import random
from itertools import combinations

import numpy as np
import pytest
from oracle import random_dag

from fedcdh.errors import SettingsError
from fedcdh.evaluation.baselines.family_messages import decode_graph, encode_graph
from fedcdh.evaluation.baselines.fedges import MAX_ROUNDS, fuse_dags, make_sink, run_fedges
from fedcdh.evaluation.simulation import simulate
from fedcdh.graphs.d_separation import is_d_separated


def drawn_dags(seed: int, count: int, size: int = 5) -> tuple[tuple[str, ...], list[np.ndarray]]:
    rng = random.Random(seed)
    dags = [random_dag(rng, size, 2) for _ in range(count)]
    names = tuple(sorted(dags[0].nodes))
    return names, [encode_graph(dag, names).astype(bool) for dag in dags]


def independences(matrix: np.ndarray, names: tuple[str, ...]) -> set:
    dag = decode_graph(matrix, names)
    assert dag.is_dag()
    return {
        (a, b, given)
        for a, b in combinations(names, 2)
        for size in range(len(names) - 1)
        for given in combinations([name for name in names if name not in (a, b)], size)
        if is_d_separated(dag, a, b, frozenset(given))
    }


def test_a_sink_claims_no_new_independence():
    for seed in range(15):
        names, (dag,) = drawn_dags(seed, 1)
        for node in range(5):
            turned = make_sink(dag, node, range(5))
            assert not turned[node].any(), f"seed {seed}"
            assert independences(turned, names) <= independences(dag, names), f"seed {seed}"


def test_the_union_claims_only_what_all_graphs_claim():
    for seed in range(15):
        names, dags = drawn_dags(seed, 3)
        shared = set.intersection(*(independences(dag, names) for dag in dags))
        assert independences(fuse_dags(dags), names) <= shared, f"seed {seed}"


def test_fusion_of_equal_graphs_is_the_graph_and_shares_only_remove_arcs():
    for seed in range(10):
        names, dags = drawn_dags(seed, 4)
        assert (fuse_dags([dags[0]] * 3) == dags[0]).all(), f"seed {seed}"
        assert not (fuse_dags(dags, 0.5) & ~fuse_dags(dags)).any(), f"seed {seed}"
        decode_graph(fuse_dags(dags, 0.5), names)


def test_rounds_end_and_only_structures_pass():
    study = simulate(variables=6, clients=4, rows=80, seed=4)
    for fusion in ("half", "union"):
        traffic = run_fedges(study.tables, study.names, fusion=fusion).traffic
        assert traffic.messages_up == traffic.messages_down <= 4 * MAX_ROUNDS
        assert traffic.bytes_up == traffic.bytes_down == traffic.messages_up * 36


def test_few_insertions_need_more_rounds():
    study = simulate(variables=6, clients=3, rows=500, changing=0, seed=2)
    slow = run_fedges(study.tables, study.names, max_insertions=1)
    fast = run_fedges(study.tables, study.names)
    assert slow.traffic.messages_up > fast.traffic.messages_up
    with pytest.raises(SettingsError, match="half"):
        run_fedges(study.tables, study.names, fusion="most")
