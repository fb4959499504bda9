"""Laws of the methods that talk in rounds of gradients, beliefs or weights: DARLIS, Fed-CD and Fed-Sparse-BNSL."""

from __future__ import annotations

import numpy as np
import pytest

from fedcdh.evaluation.baselines import BASELINES
from fedcdh.evaluation.baselines.interface import CountingChannel
from fedcdh.evaluation.simulation import simulate
from fedcdh.graphs.equivalence import to_cpdag
from fedcdh.graphs.partial_graph import PartialGraph

BY_CONTENT = ("darlis", "fed-cd-naive", "fed-sparse-bnsl")
"""Methods whose result does not depend on the place of a column. Noise is drawn by place."""
ALL = (*BY_CONTENT, "fed-cd-proximity", "fed-sparse-bnsl-dp")
CHAIN = ("a", "b", "c", "d")


def chain_tables(rows, seed=5):
    """a → b → c → d, linear and Gaussian, the same at all clients."""
    tables = {}
    for k, count in enumerate(rows):
        noise = np.random.default_rng([seed, k]).standard_normal((4, count))
        columns = [noise[0]]
        for strength, fresh in zip((1.0, -0.8, 1.2), noise[1:], strict=True):
            columns.append(strength * columns[-1] + fresh)
        tables[f"c{k}"] = np.column_stack(columns)
    return tables


@pytest.mark.parametrize("name", ALL)
def test_neither_the_order_of_clients_nor_a_second_run_makes_a_difference(name):
    study = simulate(variables=4, clients=3, rows=[50, 60, 70], seed=3)
    turned = dict(reversed(study.tables.items()))
    found = BASELINES[name](study.tables, study.names, 11)
    assert BASELINES[name](turned, study.names, 11) == found
    assert BASELINES[name](study.tables, study.names, 11) == found


@pytest.mark.parametrize("name", BY_CONTENT)
def test_variables_may_have_other_names_and_places(name):
    study = simulate(variables=5, clients=3, rows=80, seed=6)
    order = [3, 0, 4, 1, 2]
    other = {old: f"n{place}" for place, old in enumerate(study.names)}
    moved = {client: table[:, order] for client, table in study.tables.items()}
    found = BASELINES[name](study.tables, study.names).graph
    again = BASELINES[name](moved, [other[study.names[i]] for i in order]).graph
    assert again.arrows == {(other[tail], other[head]) for tail, head in found.arrows}
    assert again.lines == {frozenset(other[end] for end in line) for line in found.lines}


@pytest.mark.parametrize("name", ALL)
def test_clients_without_information_do_no_harm(name):
    """Constant columns, one row, and fewer rows than variables: the method ends, and its graph is over all names."""
    tables = chain_tables((100, 100, 100))
    constant = tables["c1"].copy()
    constant[:, 1:3] = 7.0
    for odd in (constant, np.full((30, 4), 2.0), tables["c1"][:3], tables["c1"][:1]):
        found = BASELINES[name]({**tables, "c1": odd}, CHAIN).graph
        assert found.is_acyclic()
        assert set(found.nodes) == set(CHAIN)


@pytest.mark.parametrize("name", ALL)
def test_bytes_are_those_of_the_arrays_handed_over(name, monkeypatch):
    up, down = [], []
    send, share = CountingChannel.to_server, CountingChannel.to_clients
    monkeypatch.setattr(CountingChannel, "to_server", lambda self, m: up.append(m.nbytes) or send(self, m))
    monkeypatch.setattr(CountingChannel, "to_clients", lambda self, m: down.append(m.nbytes) or share(self, m))
    traffic = BASELINES[name](chain_tables((50, 60, 70)), CHAIN).traffic
    assert (traffic.messages_up, traffic.bytes_up) == (len(up), sum(up))
    assert (traffic.messages_down, traffic.bytes_down) == (3 * len(down), 3 * sum(down))


@pytest.mark.parametrize("name", BY_CONTENT)
def test_two_variables_have_one_edge_also_at_one_client(name):
    x, y = np.random.default_rng(1).standard_normal((2, 300))
    assert BASELINES[name]({"c0": np.column_stack([x, x + y])}, "xy").graph.skeleton == {frozenset("xy")}


def test_darlis_finds_the_class_of_a_homogeneous_chain():
    truth = to_cpdag(PartialGraph.from_dag(CHAIN, [("a", "b"), ("b", "c"), ("c", "d")]))
    for seed in (0, 1, 2):
        assert BASELINES["darlis"](chain_tables((2000,) * 5), CHAIN, seed).graph == truth
