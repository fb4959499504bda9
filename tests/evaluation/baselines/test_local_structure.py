"""Laws of what a client of a voting method learns from its own rows."""

from __future__ import annotations

import numpy as np
import pytest
from label_studies import label_chain
from scipy import stats

from fedcdh.evaluation.baselines.interface import CountingChannel
from fedcdh.evaluation.baselines.label_counts import agree_on_levels
from fedcdh.evaluation.baselines.local_structure import (
    LabelRows,
    NumberRows,
    compute_g_square,
    draw_copies,
    find_candidates,
    measure_certainty,
    orient_locally,
    prepare_clients,
)


def collider_rows(rows=800):
    """0 → 2 ← 1, 2 → 3."""
    a, b, e, f = np.random.default_rng(4).standard_normal((4, rows))
    z = a + b + 0.7 * e
    return NumberRows(np.column_stack([a, b, z, z + f]))


def joined(variables, *pairs):
    matrix = np.zeros((variables, variables), dtype=np.bool_)
    for a, b in pairs:
        matrix[a, b] = matrix[b, a] = True
    return matrix


def test_g_square_is_scipys():
    for seed in range(6):
        table = np.random.default_rng(seed).integers(0, 9, (2, 3, 4))
        table[1, :, 2] = 0  # a column without a count
        found = [stats.chi2_contingency(table[0], lambda_="log-likelihood", correction=False)]
        found += [stats.chi2_contingency(table[1][:, [0, 1, 3]], lambda_="log-likelihood", correction=False)]
        statistic, freedom = sum(each.statistic for each in found), sum(each.dof for each in found)
        assert compute_g_square(table) == pytest.approx((statistic, stats.chi2.sf(statistic, freedom)))
    assert compute_g_square(np.array([[[5, 5]]])) == (0.0, 1.0)


def test_candidates_are_the_neighbours():
    rows = collider_rows()
    assert [find_candidates(rows, 4, target) for target in range(4)] == [{2}, {2}, {0, 1, 3}, {2}]
    study = agree_on_levels(label_chain((3000,)), CountingChannel(1))
    labels = LabelRows(study.clients[0], study.levels)
    assert [find_candidates(labels, 4, target) for target in range(4)] == [{1}, {0, 2}, {1, 3}, {2}]


def test_sets_of_four_are_not_tried():
    """Five causes of x: each set of up to three leaves y dependent on x, all five would not."""
    draw = np.random.default_rng(3)
    causes = draw.standard_normal((5, 4000))
    x, y = causes.sum(axis=0) + draw.standard_normal(4000), causes.sum(axis=0) + draw.standard_normal(4000)
    rows = NumberRows(np.column_stack([*causes, x, y]))
    assert rows.test(5, 6, (0, 1, 2, 3, 4))[1] > 0.01
    assert 6 in find_candidates(rows, 7, 5)


def test_certainty_is_zero_at_the_level_and_one_at_both_ends():
    found = measure_certainty(np.array([0.0, 0.005, 0.01, 0.505, 1.0]), 0.01)
    np.testing.assert_allclose(found, [1.0, 0.5, 0.0, 0.5, 1.0])


def test_directions_within_a_skeleton_are_those_the_score_can_tell():
    rows, names = collider_rows(), ("a", "b", "z", "w")
    found = orient_locally(rows, joined(4, (0, 2), (1, 2), (2, 3)), names, 0)
    assert found.arrows == {("a", "z"), ("b", "z"), ("z", "w")}
    assert orient_locally(rows, joined(4, (2, 3)), names, 0).lines == {frozenset("zw")}
    assert not orient_locally(rows, joined(4), names, 0).skeleton
    assert not orient_locally(rows, joined(4, (0, 1)), names, 0).skeleton  # the score wants no edge there


def test_copies_are_keyed_by_client_seed_and_number():
    rows = collider_rows(60)
    first, again, other = (draw_copies(client, rows, 2, seed) for client, seed in (("k", 1), ("k", 1), ("l", 1)))
    answers = [[copy.test(0, 2, ()) for copy in copies] for copies in (first, again, other)]
    assert answers[0] == answers[1]
    assert answers[0][0] != answers[0][1]
    assert answers[0] != answers[2]


def test_labels_need_to_be_declared():
    tables = label_chain((20, 20))
    kinds = dict.fromkeys("abcd", "categorical")
    assert all(
        isinstance(rows, LabelRows) for rows in prepare_clients(tables, "abcd", kinds, CountingChannel(2)).values()
    )
    assert all(
        isinstance(rows, NumberRows) for rows in prepare_clients(tables, "abcd", {}, CountingChannel(2)).values()
    )
