"""Scores of families of labels."""

from __future__ import annotations

from math import factorial, log

import numpy as np
import pytest

from fedcdh.evaluation.baselines.label_counts import LabelClient
from fedcdh.evaluation.baselines.label_scores import BdeuScore, CooperHerskovitsScore, compute_dirichlet_score
from fedcdh.protocols import Family


def make_score(kind, rows, levels, **settings):
    client = LabelClient(list(rows.T.astype(np.int64)), levels)
    return kind(client.count, "abc"[: len(levels)], levels, **settings)


def test_the_score_of_k2_is_the_formula_of_cooper_and_herskovits():
    """∏_j (r − 1)! / (N_j + r − 1)! ∏_k N_jk!"""
    for seed in range(5):
        table = np.random.default_rng(seed).integers(0, 6, (4, 3))
        by_hand = sum(
            log(factorial(2)) - log(factorial(int(row.sum()) + 2)) + sum(log(factorial(int(n))) for n in row)
            for row in table
        )
        assert compute_dirichlet_score(table, 1.0) == pytest.approx(by_hand)


def test_the_evidence_is_that_of_rows_seen_one_after_the_other():
    """The probability of each row given those before it, (a + N_jk) / (a r + N_j)."""
    rows = np.random.default_rng(2).integers(0, 2, (30, 2))
    total, seen = 0.0, np.zeros((2, 2))
    for parent, node in rows:
        total += log((0.25 + seen[parent, node]) / (0.5 + seen[parent].sum()))
        seen[parent, node] += 1
    score = make_score(BdeuScore, rows, (2, 2))
    assert score([Family("b", frozenset("a"))])[0] == pytest.approx(total)


def test_bdeu_is_the_same_for_all_dags_of_a_class_and_the_score_of_k2_is_not():
    rows = np.random.default_rng(1).integers(0, 3, (60, 3)) % [2, 3, 3]
    bdeu, k2 = (make_score(kind, rows, (2, 3, 3)) for kind in (BdeuScore, CooperHerskovitsScore))
    ways = [
        [Family("a"), Family("b", frozenset("a")), Family("c", frozenset("b"))],
        [Family("c"), Family("b", frozenset("c")), Family("a", frozenset("b"))],
        [Family("b"), Family("a", frozenset("b")), Family("c", frozenset("b"))],
    ]
    for way in ways[1:]:
        assert sum(bdeu(way)) == pytest.approx(sum(bdeu(ways[0])), abs=1e-9)
        assert abs(sum(k2(way)) - sum(k2(ways[0]))) > 1e-3


def test_a_family_with_too_many_cells_is_not_available():
    levels = (100, 100, 100)
    score = make_score(BdeuScore, np.zeros((5, 3)), levels)
    assert score([Family("c", frozenset("ab"))]) == [-np.inf]
    assert np.isfinite(score([Family("c", frozenset("a"))])[0])
