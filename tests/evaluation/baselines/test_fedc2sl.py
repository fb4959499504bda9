"""FedC2SL: its chi-square is that of all rows in one place, its sketch is unbiased, and clients may vote instead."""

from __future__ import annotations

import numpy as np
import pytest
from label_studies import label_chain, random_labels
from scipy import stats

from fedcdh.evaluation.baselines.fedc2sl import (
    ExactLength,
    FederatedChiSquare,
    LocalChiSquare,
    SketchedLength,
    VotedChiSquare,
    compute_chi_square,
    run_chi_square_votes,
    run_fedc2sl,
)
from fedcdh.evaluation.baselines.interface import CountingChannel
from fedcdh.evaluation.baselines.label_counts import agree_on_levels
from fedcdh.protocols import Query

NAMES = tuple("vwxyz")
QUERIES = [
    Query("v", "w"),
    Query("z", "x"),
    Query("w", "y", frozenset("v")),
    Query("z", "v", frozenset("wx")),
    Query("x", "y", frozenset("vwz")),
]


def pooled_chi_square(tables, query):
    """Sum scipy's chi-square over combinations of the given variables' levels; empty rows and columns are left out."""
    rows = np.concatenate(list(tables.values()))
    x, y = (rows[:, NAMES.index(name)] for name in (query.x, query.y))
    given = rows[:, [NAMES.index(name) for name in sorted(query.given)]]
    statistic, freedom = 0.0, 0
    for part in np.unique(given, axis=0):
        chosen = (given == part).all(axis=1)
        table = stats.contingency.crosstab(x[chosen], y[chosen]).count
        if min(table.shape) > 1:
            found = stats.chi2_contingency(table, correction=False)
            statistic, freedom = statistic + found.statistic, freedom + found.dof
    return statistic, stats.chi2.sf(statistic, freedom) if freedom else 1.0


def make_test(tables, length):
    channel = CountingChannel(len(tables))
    return FederatedChiSquare(agree_on_levels(tables, channel), NAMES, channel, length)


def test_the_exact_test_is_scipys_on_all_rows():
    for seed in range(6):
        tables = random_labels(seed, clients=1 + seed, rows=30 + 40 * seed)
        for query, answer in zip(QUERIES, make_test(tables, ExactLength())(QUERIES), strict=True):
            statistic, p_value = pooled_chi_square(tables, query)
            assert answer.statistic == pytest.approx(statistic, abs=1e-9), f"seed {seed}, {query}"
            assert answer.p_value == pytest.approx(p_value, rel=1e-9, abs=1e-12), f"seed {seed}, {query}"
            assert answer.rows == sum(map(len, tables.values()))


def test_a_client_alone_has_the_test_of_its_rows():
    tables = random_labels(1, clients=1)
    study = agree_on_levels(tables, CountingChannel(1))
    local = LocalChiSquare(study.clients[0], study, NAMES)(QUERIES)
    for one, other in zip(local, make_test(tables, ExactLength())(QUERIES), strict=True):
        assert (one.statistic, one.p_value) == pytest.approx((other.statistic, other.p_value))


def test_a_table_without_freedom_says_nothing():
    assert compute_chi_square(np.array([[[3, 4]], [[0, 0]]])) == (0.0, 1.0)
    assert compute_chi_square(np.zeros((2, 2, 2), dtype=np.int64)) == (0.0, 1.0)
    constant = {"c": np.column_stack([np.ones(20), np.arange(20) % 2])}
    channel = CountingChannel(1)
    test = FederatedChiSquare(agree_on_levels(constant, channel), ("x", "y"), channel, ExactLength())
    assert test([Query("x", "y")])[0].p_value == 1.0


def test_the_sketch_estimates_a_squared_length_without_bias():
    """The mean of 4000 estimates of 25, each with relative standard error π / √(2 l), is within four of its own."""
    deviations = np.array([[3.0, 0.0, -4.0]])
    estimates = np.array(
        [
            float(length.squares(length.message(deviations, "key"))[0])
            for length in (SketchedLength(50, seed) for seed in range(4000))
        ]
    )
    spread = np.pi / np.sqrt(2 * 50)
    assert estimates.mean() == pytest.approx(25, rel=4 * spread / np.sqrt(4000))
    assert estimates.std() / 25 == pytest.approx(spread, rel=0.1)


def test_a_sketch_is_linear_so_that_messages_may_be_added():
    draw = np.random.default_rng(3)
    one, other = draw.standard_normal((2, 4, 6))
    length = SketchedLength(50, 1)
    total = length.message(one, "q") + length.message(other, "q")
    np.testing.assert_allclose(total, length.message(one + other, "q"), atol=1e-12)
    assert not np.allclose(length.message(one, "q"), length.message(one, "another question"))


def test_a_large_sketch_comes_near_the_exact_statistic():
    tables = random_labels(2)
    exact, close = make_test(tables, ExactLength())(QUERIES), make_test(tables, SketchedLength(20_000, 1))(QUERIES)
    for one, other in zip(exact, close, strict=True):
        assert other.statistic == pytest.approx(one.statistic, rel=0.1)


def test_what_a_question_costs():
    """Levels 3 × (values and counts); then x, y up, two margins up and down, and l numbers up."""
    tables = {client: table[:, :2] for client, table in label_chain((40, 50, 60)).items()}
    exact, sketched = (run_fedc2sl(tables, ("a", "b"), sketch_size=size).traffic for size in (None, 50))
    levels, margins, clients = 2 * (3 + 2) * 8, (3 + 2) * 8, 3
    assert exact.bytes_up == clients * (levels + margins + 3 * 2 * 8)
    assert sketched.bytes_up == clients * (levels + margins + 50 * 8)
    assert exact.bytes_down == sketched.bytes_down == clients * ((3 + 2) * 8 + 2 * 8 + margins)


def test_a_majority_accepts_with_the_largest_p_value():
    together = np.repeat([[0.0, 0.0], [1.0, 1.0]], 40, axis=0)
    apart = np.tile([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], (20, 1))
    for joined, p_value in ((1, 1.0), (2, pytest.approx(0.0, abs=1e-9)), (3, pytest.approx(0.0, abs=1e-9))):
        tables = {f"c{k}": together if k < joined else apart for k in range(3)}
        channel = CountingChannel(3)
        test = VotedChiSquare(agree_on_levels(tables, channel), ("x", "y"), channel, 0.05)
        assert test([Query("x", "y")])[0].p_value == p_value


def test_votes_on_graphs_keep_what_more_than_half_have():
    together = np.repeat([[0.0, 0.0], [1.0, 1.0]], 40, axis=0)
    apart = np.tile([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], (20, 1))
    for joined, edges in ((1, 0), (2, 0), (3, 1)):
        tables = {f"c{k}": together if k < joined else apart for k in range(4)}
        assert len(run_chi_square_votes(tables, ("x", "y"), voting="graphs").graph.skeleton) == edges


def test_colliders_are_found_on_summed_counts():
    x, y, noise = np.random.default_rng(8).integers(0, 2, (3, 900))
    table = np.column_stack([x, y, np.where(noise, x | y, x & y)]).astype(float)
    tables = {f"c{k}": part for k, part in enumerate(np.split(table, 3))}
    for size in (None, 50):
        assert run_fedc2sl(tables, "xyz", sketch_size=size).graph.arrows == {("x", "z"), ("y", "z")}
