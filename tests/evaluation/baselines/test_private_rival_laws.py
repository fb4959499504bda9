"""Laws of the private form of Fed-Sparse-BNSL, whose noise is drawn by the place of a column."""

from __future__ import annotations

import numpy as np
from baseline_studies import CHAIN, chain_tables

from fedcdh.evaluation.baselines import BASELINES
from fedcdh.evaluation.baselines.interface import CountingChannel
from fedcdh.evaluation.simulation import simulate

NAME = "fed-sparse-bnsl-dp"


def test_neither_the_order_of_clients_nor_a_second_run_makes_a_difference():
    study = simulate(variables=4, clients=3, rows=[50, 60, 70], seed=3)
    turned = dict(reversed(study.tables.items()))
    found = BASELINES[NAME](study.tables, study.names, 11)
    assert BASELINES[NAME](turned, study.names, 11) == found
    assert BASELINES[NAME](study.tables, study.names, 11) == found


def test_clients_without_information_do_no_harm():
    """Constant columns, one row, and fewer rows than variables: the method ends, and its graph is over all names."""
    tables = chain_tables((100, 100, 100))
    constant = tables["c1"].copy()
    constant[:, 1:3] = 7.0
    for odd in (constant, np.full((30, 4), 2.0), tables["c1"][:3], tables["c1"][:1]):
        found = BASELINES[NAME]({**tables, "c1": odd}, CHAIN).graph
        assert found.is_acyclic()
        assert set(found.nodes) == set(CHAIN)


def test_bytes_are_those_of_the_arrays_handed_over(monkeypatch):
    up, down = [], []
    send, share = CountingChannel.to_server, CountingChannel.to_clients
    monkeypatch.setattr(CountingChannel, "to_server", lambda self, m: up.append(m.nbytes) or send(self, m))
    monkeypatch.setattr(CountingChannel, "to_clients", lambda self, m: down.append(m.nbytes) or share(self, m))
    traffic = BASELINES[NAME](chain_tables((50, 60, 70)), CHAIN).traffic
    assert (traffic.messages_up, traffic.bytes_up) == (len(up), sum(up))
    assert (traffic.messages_down, traffic.bytes_down) == (3 * len(down), 3 * sum(down))
