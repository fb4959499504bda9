"""FedPC: votes, separating sets, and its tests on one client's rows."""

from __future__ import annotations

import numpy as np
import pytest
from baseline_studies import NAMES, TRUE, collider
from scipy import stats

from fedcdh.evaluation.baselines import BASELINES
from fedcdh.evaluation.baselines.fedpc import (
    LOCAL_TESTS,
    FisherZTest,
    _find_colliders,
    remove_unless_kept,
    remove_when_vetoed,
    run_fedpc,
)
from fedcdh.evaluation.baselines.interface import CountingChannel, Traffic
from fedcdh.evaluation.baselines.pooled_references import (
    run_pc,
)
from fedcdh.evaluation.simulation import simulate


@pytest.mark.parametrize("name", ["fedpc", "fedpc-veto", "fedpc-regression"])
def test_fedpc_finds_a_collider(name):
    found = BASELINES[name](collider(), NAMES)
    assert found.graph.arrows == TRUE
    assert found.changing is None


def test_fedpc_tells_votes_and_sets_only():
    """Levels 0 to 2 (z keeps three neighbours), then three pairs without an edge: ab, aw and bw."""
    clients, pairs, levels, unshielded, variables = 3, 6, 3, 3, 4
    assert run_fedpc(collider(), NAMES).traffic == Traffic(
        messages_up=clients * (levels + 2),
        bytes_up=clients * (levels * pairs + unshielded * (8 + variables)),
        messages_down=clients * (levels + 1),
        bytes_down=clients * (levels + 1) * pairs,
    )
    apart = {"c": np.random.default_rng(0).standard_normal((500, 2))}
    assert run_fedpc(apart, ("x", "y")).traffic == Traffic(1, 1, 1, 1)


def test_with_one_client_fedpc_has_the_skeleton_of_pc():
    """With five variables no set is larger than the three that FedPC allows; beyond that, PC may remove more."""
    pytest.importorskip("causallearn")
    for seed in range(12):
        study = simulate(variables=5, clients=1, rows=150, edges=6, changing=0, seed=seed)
        expected = run_pc(study.tables, study.names).graph.skeleton
        assert run_fedpc(study.tables, study.names).graph.skeleton == expected, f"seed {seed}"


def test_fishers_z_is_that_of_residuals():
    table = collider(1, 60)["c0"]
    design = np.column_stack([np.ones(60), table[:, 2]])
    residuals = table - design @ np.linalg.lstsq(design, table, rcond=None)[0]
    asked = [(0, 1, (2,)), (0, 3, (2,)), (1, 3, (2,))]
    for (a, b, _), (strength, p_value) in zip(asked, FisherZTest(table)(asked), strict=True):
        r = np.corrcoef(residuals[:, a], residuals[:, b])[0, 1]
        assert strength == pytest.approx(abs(r))
        assert p_value == pytest.approx(2 * stats.norm.sf(np.sqrt(60 - 4) * abs(np.arctanh(r))))


def test_too_few_rows_and_constants_separate_nothing_or_all():
    few = np.random.default_rng(0).standard_normal((4, 3))
    assert FisherZTest(few)([(0, 1, (2,))])[0][1] == 0.0
    assert FisherZTest(np.column_stack([np.ones(50), np.arange(50.0)]))([(0, 1, ())]) == [(0.0, 1.0)]
    assert len(run_fedpc({"c": few[:3]}, ("x", "y", "z")).graph.skeleton) == 3


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ([(np.inf, ()), (np.inf, ())], []),  # nobody knows what separates 0 and 1
        ([(np.inf, ()), (0.3, ())], [(0, 2, 1), (0, 3, 1)]),
        ([(np.inf, ()), (0.3, (2,))], [(0, 3, 1)]),
        ([(0.2, (2, 3)), (0.3, ())], []),
    ],
)
def test_a_pair_that_nobody_can_separate_tells_no_direction(told, expected):
    """0 and 1 are not joined, 2 and 3 are joined to all others."""

    class Teller:
        def __init__(self, strength, chosen):
            self.told = np.array([strength]), np.isin(np.arange(4), chosen)[None]

        def best_sets(self, joined):
            return self.told

    joined = ~np.eye(4, dtype=np.bool_)
    joined[0, 1] = joined[1, 0] = False
    assert list(_find_colliders([Teller(*each) for each in told], CountingChannel(2), joined)) == expected


def test_the_two_readings_of_thirty_percent():
    ten, two = np.arange(11), np.arange(3)
    assert np.flatnonzero(remove_unless_kept(ten, 10)).tolist() == [8, 9, 10]
    assert np.flatnonzero(remove_when_vetoed(ten, 10)).tolist() == [3, 4, 5, 6, 7, 8, 9, 10]
    assert np.flatnonzero(remove_unless_kept(two, 2)).tolist() == [2]
    assert np.flatnonzero(remove_when_vetoed(two, 2)).tolist() == [1, 2]


def test_a_client_that_dissents_alone_does_not_decide():
    """Three clients in ten keep an edge; two do not."""
    apart = np.random.default_rng(0).standard_normal((200, 2))
    joined = apart + np.arange(200.0)[:, None]
    assert LOCAL_TESTS["fisherz"](apart, 0)([(0, 1, ())])[0][1] > 0.05
    for keeping, edges in ((2, 0), (3, 1)):
        tables = {f"c{k}": joined if k < keeping else apart for k in range(10)}
        assert len(run_fedpc(tables, ("x", "y")).graph.skeleton) == edges


@pytest.mark.parametrize("test", ["kernel", "regression"])
def test_a_square_is_seen_by_tests_that_see_more_than_lines(test):
    """Rows come in mirrored pairs (x, y) and (−x, y), so that x and y = x² + e are exactly uncorrelated."""
    tables = {}
    for k in range(3):
        x, e = np.random.default_rng(k).standard_normal((2, 80))
        y = x**2 + 0.5 * e
        tables[f"c{k}"] = np.column_stack([np.concatenate([x, -x]), np.concatenate([y, y])])
    assert not run_fedpc(tables, ("x", "y")).graph.skeleton
    assert run_fedpc(tables, ("x", "y"), test=test).graph.skeleton


def test_kci_at_the_clients():
    pytest.importorskip("causallearn")
    tables = {client: table[:60, :3] for client, table in collider(2).items()}
    assert BASELINES["fedpc-kci"](tables, NAMES[:3]).graph.arrows == {("a", "z"), ("b", "z")}
