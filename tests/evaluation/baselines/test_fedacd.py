"""FedACD and FedECD: layers, withheld answers and redrawn rows."""

from __future__ import annotations

import math

import numpy as np
import pytest
from baseline_studies import NAMES, TRUE, collider

from fedcdh.evaluation.baselines.fedacd import (
    KEEP,
    NO_ANSWER,
    REMOVE,
    _list_sets,
    _vote_masked,
    keep_by_majority,
    run_fedacd,
    run_fedecd,
)
from fedcdh.evaluation.baselines.local_structure import NumberRows
from fedcdh.evaluation.simulation import simulate

COMPLETE = ~np.eye(5, dtype=np.bool_)


@pytest.mark.parametrize("run", [run_fedacd, run_fedecd])
def test_a_collider_is_found(run):
    assert run(collider(), NAMES).graph.arrows == TRUE


def test_at_least_as_many_keep_as_remove():
    votes = np.array(
        [[KEEP, REMOVE, REMOVE, NO_ANSWER], [REMOVE, REMOVE, KEEP, NO_ANSWER], [KEEP, KEEP, NO_ANSWER, NO_ANSWER]]
    )
    assert keep_by_majority(votes.astype(np.int8)).tolist() == [True, False, True, True]


def test_the_least_clear_removals_are_withheld():
    """A client gives no answer on 60 % (rounded up) of the edges it would remove, those with the largest |r|."""
    for seed in range(5):
        table = np.random.default_rng(seed).standard_normal((60, 5))
        rows = NumberRows(table)
        votes = _vote_masked(rows, COMPLETE, 0, 0.01, 0.6)
        open_votes = _vote_masked(rows, COMPLETE, 0, 0.01, 0.0)
        strengths = np.abs(np.corrcoef(table.T)[np.triu_indices(5, 1)])
        removed = np.flatnonzero(open_votes == REMOVE)
        withheld = np.flatnonzero(votes == NO_ANSWER)
        assert len(withheld) == math.ceil(0.6 * len(removed))
        assert set(withheld) <= set(removed)
        assert strengths[votes == REMOVE].max() <= strengths[withheld].min()
        assert (votes[open_votes == KEEP] == KEEP).all()


def test_pairs_without_an_edge_have_no_answer():
    joined = COMPLETE.copy()
    joined[0, 1] = joined[1, 0] = False
    rows = NumberRows(np.random.default_rng(0).standard_normal((60, 5)))
    assert _vote_masked(rows, joined, 0, 0.01, 0.6)[0] == NO_ANSWER
    assert 0 not in {place for place, *_ in _list_sets(joined, 1)}


def test_sets_come_from_the_neighbours_of_either_end():
    joined = np.zeros((4, 4), dtype=np.bool_)
    for a, b in ((0, 1), (0, 2), (1, 3)):
        joined[a, b] = joined[b, a] = True
    found = {(a, b): sets for _, a, b, sets in _list_sets(joined, 1)}
    assert found[0, 1] == [(2,), (3,)]
    assert found[0, 2] == [(1,)]
    assert {(a, b): sets for _, a, b, sets in _list_sets(joined, 0)}[1, 3] == [()]


def test_without_masks_a_single_client_has_the_skeleton_of_its_tests():
    for seed in range(4):
        study = simulate(variables=5, clients=1, rows=200, changing=0, seed=seed)
        table = study.tables["client01"]
        rows = NumberRows(table)
        found = run_fedacd(study.tables, study.names, mask_rate=0.0).graph.skeleton
        for i in range(5):
            for j in range(i):
                if frozenset((study.names[i], study.names[j])) in found:
                    assert rows.test(i, j, ())[1] <= 0.01, f"seed {seed}"


def test_redrawn_rows_depend_on_the_seed_alone():
    study = simulate(variables=4, clients=3, rows=40, seed=2)
    first, second = (run_fedecd(study.tables, study.names, 5, copies=4) for _ in range(2))
    assert first == second


def test_redrawn_rows_save_edges_that_the_vote_would_remove():
    """A dependence that is weak at each client: most copies still show it, or not, by the limit on their weight."""
    study = simulate("linear", variables=6, clients=10, rows=60, seed=7)
    strict = run_fedacd(study.tables, study.names, mask_rate=0.0).graph.skeleton
    saved = [run_fedecd(study.tables, study.names, seed, copies=5).graph.skeleton for seed in range(2)]
    assert all(len(each) >= len(strict) for each in saved)
