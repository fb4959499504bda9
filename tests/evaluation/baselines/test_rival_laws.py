"""Laws that every rival has to pass. A new method joins by its name in `RIVALS`, and in the sets below that fit it."""

from __future__ import annotations

import numpy as np
import pytest
from baseline_studies import CHAIN, chain_tables

from fedcdh.evaluation.baselines import BASELINES
from fedcdh.evaluation.baselines.interface import CountingChannel
from fedcdh.evaluation.simulation import simulate
from fedcdh.graphs.equivalence import to_cpdag
from fedcdh.graphs.partial_graph import PartialGraph
from fedcdh.protocols import DOMAIN

RIVALS = (
    "fedpc",
    "fedpc-veto",
    "bic-pooled",
    "bic-sum",
    "bic-context",
    "peri",
    "peri-whole",
    "rfcd",
    "i-peri",
    "na-yang",
    "gou",
    "fedges",
    "fedges-union",
    "ges-bic",
    "ges-bic-centred",
    "fedc2sl-binned",
    "fedc2sl-exact-binned",
    "fedcsl",
    "fedacd",
    "fedecd",
    "fedcdh-program",
    "fedcdh-program-pc",
    "fedci-pc",
    "lingam-cumulants",
    "lingam-cumulants-3",
    "boss",
    "grasp",
    "darlis",
    "fed-cd-naive",
    "fed-cd-proximity",
    "fed-sparse-bnsl",
)
"""Every method that these laws are about."""

IDENTIFYING: frozenset[str] = frozenset(
    {"lingam-cumulants", "lingam-cumulants-3", "fed-cd-naive", "fed-cd-proximity", "fed-sparse-bnsl"}
)
"""Methods that assume an identifiable model, so that the class of a Gaussian chain is not theirs to find."""

USES_NAMES = frozenset({"fedges", "fedges-union"})
"""Methods whose clients send one DAG of a class, chosen by name, so that the result may depend on names."""

ORDERED = frozenset({"fedcdh-program", "fedcdh-program-pc", "boss", "grasp"})
"""Methods in which the order of the columns counts by definition."""

TESTING_CHANGES = frozenset({"fedcdh-program", "fedcdh-program-pc"})
"""Methods that test every variable for a change at 5 %, so that chance gives every sixth homogeneous chain an arrow;
test_fedcdh_program has the law of the chain on another one."""

BINNING = frozenset({"fedc2sl-binned", "fedc2sl-exact-binned"})
"""Methods that bin numbers: thirds of b do not separate a and c, however many rows there are."""

CHAIN_CLASS = to_cpdag(PartialGraph.from_dag(CHAIN, [("a", "b"), ("b", "c"), ("c", "d")]))


@pytest.mark.parametrize("name", RIVALS)
def test_the_order_of_clients_makes_no_difference(name):
    for seed in (3, 4):
        study = simulate(variables=5, clients=4, rows=[60, 70, 80, 90], seed=seed)
        turned = dict(reversed(study.tables.items()))
        assert BASELINES[name](turned, study.names) == BASELINES[name](study.tables, study.names), f"seed {seed}"


@pytest.mark.parametrize("name", [name for name in RIVALS if name not in USES_NAMES | ORDERED])
def test_variables_may_have_other_names_and_places(name):
    for seed in (6, 7, 8, 9):
        study = simulate(variables=5, clients=3, rows=80, seed=seed)
        order = np.random.default_rng(seed).permutation(5).tolist()
        other = {old: f"n{place}" for place, old in enumerate(study.names)} | {DOMAIN: DOMAIN}
        moved = {client: table[:, order] for client, table in study.tables.items()}
        found = BASELINES[name](study.tables, study.names).augmented
        again = BASELINES[name](moved, [other[study.names[i]] for i in order]).augmented
        assert again.arrows == {(other[tail], other[head]) for tail, head in found.arrows}, f"seed {seed}"
        assert again.lines == {frozenset(other[end] for end in line) for line in found.lines}, f"seed {seed}"


@pytest.mark.parametrize("name", RIVALS)
def test_the_same_seed_gives_the_same_result(name):
    study = simulate("general", variables=5, clients=3, rows=60, seed=8)
    first, second = (BASELINES[name](study.tables, study.names, 11) for _ in range(2))
    assert first == second
    assert str(first.augmented) == str(second.augmented)


@pytest.mark.parametrize("name", RIVALS)
def test_clients_without_information_do_no_harm(name):
    """Constant columns, one row, and fewer rows than variables: the method ends, and its graph is over all names."""
    tables = chain_tables((200, 200, 200, 200))
    constant = tables["c1"].copy()
    constant[:, 1:3] = 7.0
    for odd in (constant, np.full((30, 4), 2.0), tables["c1"][:3], tables["c1"][:1]):
        found = BASELINES[name]({**tables, "c1": odd}, CHAIN)
        assert found.graph.is_acyclic()
        assert set(found.graph.nodes) == set(CHAIN)


@pytest.mark.parametrize("name", RIVALS)
def test_two_variables_have_one_edge_or_none(name):
    """An edge where one causes the other; none where every client's columns are exactly uncorrelated."""
    for seed in (1, 2, 3):
        joined, apart = {}, {}
        for k in range(3):
            x, e = np.random.default_rng([seed, k]).standard_normal((2, 100))
            x -= x.mean()
            e -= e.mean()
            joined[f"c{k}"] = np.column_stack([x, x + e])
            apart[f"c{k}"] = np.column_stack([x, e - (e @ x) / (x @ x) * x])
        found = BASELINES[name](joined, ("x", "y")).graph
        assert found.skeleton == {frozenset("xy")}, f"seed {seed}"
        assert name in IDENTIFYING or not found.arrows, f"seed {seed}"
        assert not BASELINES[name](apart, ("x", "y")).graph.skeleton, f"seed {seed}"


@pytest.mark.parametrize("name", RIVALS)
def test_one_client_is_enough(name):
    found = BASELINES[name](chain_tables((600,)), CHAIN)
    assert {frozenset("ab"), frozenset("bc"), frozenset("cd")} <= found.graph.skeleton


@pytest.mark.parametrize("name", RIVALS)
def test_bytes_are_those_of_the_arrays_handed_over(name, monkeypatch):
    """Only arrays of numbers pass, and the result counts each of them."""
    up, down = [], []
    send, share = CountingChannel.to_server, CountingChannel.to_clients

    def record_up(self, message):
        assert message.dtype != object
        up.append(message.nbytes)
        return send(self, message)

    def record_down(self, message):
        assert message.dtype != object
        down.append(message.nbytes)
        return share(self, message)

    monkeypatch.setattr(CountingChannel, "to_server", record_up)
    monkeypatch.setattr(CountingChannel, "to_clients", record_down)
    traffic = BASELINES[name](chain_tables((50, 60, 70)), CHAIN).traffic
    assert up
    assert (traffic.messages_up, traffic.bytes_up) == (len(up), sum(up))
    assert (traffic.messages_down, traffic.bytes_down) == (3 * len(down), 3 * sum(down))


@pytest.mark.parametrize("name", [name for name in RIVALS if name not in IDENTIFYING | TESTING_CHANGES | BINNING])
def test_the_class_of_a_homogeneous_chain_is_found(name):
    found = BASELINES[name](chain_tables((2000,) * 5), CHAIN)
    assert found.graph == CHAIN_CLASS
    assert not found.changing
