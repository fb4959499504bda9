from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from benchmarks import peers
from benchmarks.peers import Client, Found, fedpc, from_marks
from fedcdh.graph import PartialGraph
from fedcdh.questions import DOMAIN


def collider(clients: int = 3, rows: int = 400) -> dict[str, np.ndarray]:
    """a → z ← b, z → w; the mean of w differs between clients."""
    tables = {}
    for k in range(clients):
        a, b, e, f = np.random.default_rng([7, k]).standard_normal((4, rows))
        z = a + b + 0.5 * e
        tables[f"c{k}"] = np.column_stack([a, b, z, z + 2 * k + f])
    return tables


NAMES = ("a", "b", "z", "w")
TRUE = frozenset({("a", "z"), ("b", "z"), ("z", "w")})


def test_the_marks_of_causal_learn():
    marks = np.zeros((5, 5))
    marks[0, 1], marks[1, 0] = -1, 1  # a → b
    marks[1, 2], marks[2, 1] = -1, -1  # b — z
    marks[2, 3], marks[3, 2] = 1, 1  # z ↔ w
    marks[4, 3], marks[3, 4] = -1, 1  # ℧ → w
    marks[4, 0], marks[0, 4] = 1, -1  # a → ℧ cannot be
    found = Found(from_marks(marks, ("a", "b", "z", "w", DOMAIN)))
    assert found.graph.arrows == {("a", "b")}
    assert found.graph.lines == {frozenset("bz"), frozenset("zw")}
    assert found.changing == {"a", "w"}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("test", ["fisherz", "rcit"])
def test_cdnod_finds_a_collider_and_what_changes(test):
    pytest.importorskip("causallearn")
    found = peers.PEERS[test](collider(2), NAMES, 0)
    assert found.graph.skeleton >= {frozenset(arrow) for arrow in TRUE}
    assert {("a", "z"), ("b", "z")} <= found.directed
    assert found.changing >= {"w"}


@pytest.mark.parametrize("peer", ["fedpc", "fedpc_veto"])
def test_fedpc_finds_a_collider(peer):
    found = peers.PEERS[peer](collider(), NAMES, 0)
    assert found.graph.arrows == TRUE
    assert found.changing is None


def test_fedpc_separates_as_fishers_z_does():
    table = collider(1, 60)["c0"]
    client = Client.of(table)
    design = np.column_stack([np.ones(60), table[:, 2]])
    residuals = table - design @ np.linalg.lstsq(design, table, rcond=None)[0]
    for a, b in ((0, 1), (0, 3), (1, 3)):
        r = np.corrcoef(residuals[:, a], residuals[:, b])[0, 1]
        assert client.correlation(a, b, (2,)) == pytest.approx(r)
        p_value = 2 * stats.norm.sf(np.sqrt(60 - 4) * abs(np.arctanh(r)))
        assert client.separates(a, b, (2,)) == (p_value > 0.05)


def test_too_few_rows_and_constants_separate_nothing_or_all():
    assert not Client.of(np.random.default_rng(0).standard_normal((4, 3))).separates(0, 1, (2,))
    assert Client.of(np.column_stack([np.ones(50), np.arange(50.0)])).separates(0, 1, ())
    assert fedpc({"c": np.random.default_rng(0).standard_normal((3, 3))}, ("x", "y", "z"), 0).graph.skeleton


def test_the_two_readings_of_thirty_percent():
    assert [votes for votes in range(11) if peers.unless_kept(votes, 10)] == [8, 9, 10]
    assert [votes for votes in range(11) if peers.when_vetoed(votes, 10)] == [3, 4, 5, 6, 7, 8, 9, 10]
    assert [votes for votes in range(3) if peers.unless_kept(votes, 2)] == [2]
    assert [votes for votes in range(3) if peers.when_vetoed(votes, 2)] == [1, 2]


def test_arrows_in_a_circle_stay_as_they_are():
    circle = frozenset({("a", "b"), ("b", "c"), ("c", "a")})
    assert Found(PartialGraph(("a", "b", "c"), circle)).directed == circle
    chain = Found(PartialGraph(("a", "b", "c"), frozenset({("a", "b")}), frozenset({frozenset("bc")})))
    assert chain.directed == {("a", "b"), ("b", "c")}
