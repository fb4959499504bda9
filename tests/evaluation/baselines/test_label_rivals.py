"""Laws of the methods for labels, those of `test_rival_laws` on tables of codes."""

from __future__ import annotations

import numpy as np
import pytest
from label_studies import CHAIN, label_chain, random_labels

from fedcdh.errors import DataError
from fedcdh.evaluation.baselines import BASELINES
from fedcdh.evaluation.baselines.interface import CountingChannel
from fedcdh.graphs.equivalence import to_cpdag
from fedcdh.graphs.partial_graph import PartialGraph

LABEL_METHODS = tuple(name for name, entry in BASELINES.items() if entry.data == "labels" and not entry.truth)
VOTING_METHODS = ("fedcsl", "fedacd", "fedecd")
METHODS = (*LABEL_METHODS, *VOTING_METHODS)
CHAIN_CLASS = to_cpdag(PartialGraph.from_dag(CHAIN, [("a", "b"), ("b", "c"), ("c", "d")]))


def run(name, tables, names, seed=0):
    return BASELINES[name](tables, names, seed, kinds=dict.fromkeys(names, "categorical"))


def test_all_methods_for_labels_are_here():
    assert {"fedc2sl", "fedc2sl-exact", "chi-square-votes", "chi-square-graph-votes", "k2-counts", "bdeu-counts"} == {
        *LABEL_METHODS
    }


@pytest.mark.parametrize("name", METHODS)
def test_the_order_of_clients_makes_no_difference(name):
    for seed in range(3):
        tables = random_labels(seed)
        assert run(name, dict(reversed(tables.items())), "vwxyz") == run(name, tables, "vwxyz"), f"seed {seed}"


@pytest.mark.parametrize("name", METHODS)
def test_variables_may_have_other_names_and_places(name):
    for seed in range(3):
        tables = random_labels(seed)
        order = np.random.default_rng(seed).permutation(5).tolist()
        other = dict(zip("vwxyz", "qponm", strict=True))
        found = run(name, tables, "vwxyz").augmented
        moved = {client: table[:, order] for client, table in tables.items()}
        again = run(name, moved, [other["vwxyz"[place]] for place in order]).augmented
        assert again.arrows == {(other[tail], other[head]) for tail, head in found.arrows}, f"seed {seed}"
        assert again.lines == {frozenset(other[end] for end in line) for line in found.lines}, f"seed {seed}"


@pytest.mark.parametrize("name", METHODS)
def test_codes_may_be_any_whole_numbers_in_the_same_order(name):
    tables = random_labels(4)
    moved = {client: (table**2 - 50) for client, table in tables.items()}
    assert run(name, moved, "vwxyz").augmented == run(name, tables, "vwxyz").augmented


@pytest.mark.parametrize("name", METHODS)
def test_the_class_of_a_homogeneous_chain_is_found(name):
    """At the level 0.05, one false edge of PC in three is nothing unusual; this seed has none for any method."""
    found = run(name, label_chain((2000,) * 5, seed=1), CHAIN)
    assert found.graph == CHAIN_CLASS


@pytest.mark.parametrize("name", METHODS)
def test_clients_without_information_do_no_harm(name):
    tables = label_chain((200, 200, 200))
    for odd in (np.full((30, 4), 2.0), tables["c1"][:2], tables["c1"][:1]):
        found = run(name, {**tables, "c1": odd}, CHAIN).graph
        assert found.is_acyclic()
        assert set(found.nodes) == set(CHAIN)


@pytest.mark.parametrize("name", METHODS)
def test_one_client_and_two_variables(name):
    table = label_chain((500,))["c0"]
    found = run(name, {"c": table[:, :2]}, ("a", "b")).graph
    assert found.skeleton == {frozenset("ab")}
    assert not found.arrows
    shuffled = np.column_stack([table[:, 0], np.random.default_rng(1).permutation(table[:, 1])])
    assert not run(name, {"c": shuffled}, ("a", "b")).graph.skeleton


@pytest.mark.parametrize("name", METHODS)
def test_bytes_are_those_of_the_arrays_handed_over(name, monkeypatch):
    up, down = [], []
    send, share = CountingChannel.to_server, CountingChannel.to_clients
    monkeypatch.setattr(CountingChannel, "to_server", lambda self, m: (up.append(m.nbytes), send(self, m))[1])
    monkeypatch.setattr(CountingChannel, "to_clients", lambda self, m: (down.append(m.nbytes), share(self, m))[1])
    traffic = run(name, label_chain((50, 60, 70)), CHAIN).traffic
    assert (traffic.messages_up, traffic.bytes_up) == (len(up), sum(up))
    assert (traffic.messages_down, traffic.bytes_down) == (3 * len(down), 3 * sum(down))
    assert up


@pytest.mark.parametrize("name", LABEL_METHODS)
def test_numbers_are_refused(name):
    numbers = {"c": np.random.default_rng(0).standard_normal((50, 2))}
    with pytest.raises(DataError, match="whole numbers"):
        BASELINES[name](numbers, ("x", "y"))
    with pytest.raises(DataError, match=r"0 of 2 variables .* labels only"):
        BASELINES[name](numbers, ("x", "y"), kinds={"x": "continuous"})


def test_mixed_tables_are_refused_by_methods_that_cannot_use_them():
    x = np.random.default_rng(0).integers(0, 2, (60, 2)).astype(float)
    mixed = {"c": x + [0.0, 0.5] * np.arange(60)[:, None], "e": x}
    for entry in BASELINES.values():
        if entry.data != "mixed":
            with pytest.raises(DataError, match="1 of 2 variables"):
                entry(mixed, ("x", "y"), kinds={"x": "categorical"})
    assert all(
        BASELINES[name].data == "mixed" for name in BASELINES if BASELINES[name].import_path.endswith(":run_fedcdh")
    )
    assert BASELINES["fedcdh-constraint"](mixed, ("x", "y"), kinds={"x": "categorical"}).graph.nodes


def test_codes_are_numbers_to_methods_for_numbers():
    tables = random_labels(0)
    declared = BASELINES["fedpc"](tables, "vwxyz", kinds=dict.fromkeys("vwxyz", "categorical"))
    assert declared == BASELINES["fedpc"](tables, "vwxyz")
