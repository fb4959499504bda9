"""Mixtures of clients: signs by the plan, exact sums, and which sums of few clients they open."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
import studies

from fedcdh.errors import SummaryError
from fedcdh.summaries.aggregation import Aggregate
from fedcdh.summaries.domain_mixtures import (
    MAX_MIXTURES,
    DomainMixtures,
    derive_signs,
    find_smallest_row_sum,
    find_smallest_sum,
    select_signs,
)
from fedcdh.summaries.encoder import GRID
from fedcdh.summaries.integer_vectors import decode_aggregate, encode_aggregate, encode_summary, group_clients

SIZES = (20, 31, 25, 22, 28, 24, 30)
NAMES = [f"site{k:02}" for k in range(40)]


def mixed(cohort, mixtures: int) -> Aggregate:
    return Aggregate.from_total(cohort.total, cohort.plan, DomainMixtures.of(cohort.summaries, cohort.plan, mixtures))


def smallest_by_rank(signs: np.ndarray) -> int:
    """The definition: fewest clients without which the rank falls, so that a combination has only them."""
    rows = np.vstack([np.ones(signs.shape[1]), signs])
    return 0 if np.linalg.matrix_rank(rows) < len(rows) else fewest_columns(rows)


def fewest_columns(rows: np.ndarray) -> int:
    """The fewest columns without which the rank falls."""
    rank, clients = np.linalg.matrix_rank(rows), range(rows.shape[1])
    for size in clients:
        for removed in combinations(clients, size + 1):
            rest = np.delete(rows, removed, axis=1)
            if not rest.size or np.linalg.matrix_rank(rest) < rank:
                return size + 1
    raise AssertionError


def test_the_smallest_sum_is_that_of_linear_algebra():
    for seed in range(60):
        rng = np.random.default_rng(seed)
        mixtures = int(rng.integers(1, MAX_MIXTURES + 1))
        signs = rng.choice([-1, 1], (mixtures, int(rng.integers(mixtures + 1, 10))))
        assert find_smallest_sum(signs) == smallest_by_rank(signs), signs


def test_sums_of_rows_are_over_as_many_clients_as_stated():
    """The products of two signs are known of rows, so that more combinations of them are; the figure is a bound."""
    for mixtures, clients in ((1, 6), (1, 9), (2, 7), (2, 12), (3, 8), (3, 10), (4, 10), (5, 10)):
        signs = derive_signs(NAMES[:clients], mixtures)
        products = [one * other for one, other in combinations(signs, 2)]
        exact = fewest_columns(np.vstack([np.ones(clients), signs, *products]))
        assert 1 <= find_smallest_row_sum(signs) <= exact, (mixtures, clients)
    assert find_smallest_row_sum(derive_signs(NAMES[:12], 2)) == 3
    assert find_smallest_row_sum(derive_signs(NAMES, 3)) == 10


@pytest.mark.parametrize("mixtures", range(1, MAX_MIXTURES + 1))
def test_every_client_can_exchange_a_few_rows_without_a_change(mixtures):
    """Where a client cannot be singled out, whole numbers of rows move between clients, at most five, unseen."""
    clients = {1: 6, 2: 7, 3: 7, 4: 8, 5: 9}[mixtures]  # the fewest that the rule of three admits
    signs = derive_signs(NAMES[:clients], mixtures)
    assert find_smallest_sum(signs) >= 3
    rows = np.vstack([np.ones(clients, dtype=np.int64), signs])
    for helper in range(clients):
        free = set()
        for chosen in combinations([k for k in range(clients) if k != helper], mixtures + 2):
            part = rows[:, chosen]
            minors = [round(float(np.linalg.det(np.delete(part, k, axis=1)))) for k in range(len(chosen))]
            moved = np.array([(-1) ** k * minor for k, minor in enumerate(minors)])
            if moved.any():
                moved //= np.gcd.reduce(moved)
                assert not (part @ moved).any()
                assert np.abs(moved).max() <= 5
                free |= {chosen[k] for k in np.flatnonzero(moved)}
        assert free == set(range(clients)) - {helper}


def test_signs_depend_on_the_names_and_on_nothing_else():
    signs = derive_signs(NAMES[:10], 3)
    assert np.array_equal(signs, derive_signs(NAMES[:10][::-1], 3))
    assert not np.array_equal(signs, derive_signs(NAMES[10:20], 3))
    plan = studies.plan_of(studies.numbers(0, SIZES, 2))
    other = replace(plan, study="another plan for the same clients")
    assert np.array_equal(*(select_signs(one, 2, plan.clients) for one in (plan, other)))  # no further mixtures
    assert set(np.unique(signs)) == {-1, 1}
    for number in (0, MAX_MIXTURES + 1):
        with pytest.raises(SummaryError, match=f"{number} mixtures"):
            derive_signs(NAMES, number)


def test_with_many_clients_sums_are_over_nearly_half_of_them():
    for mixtures in range(1, MAX_MIXTURES + 1):
        assert find_smallest_sum(derive_signs(NAMES, mixtures)) >= 16


@pytest.mark.parametrize("mixtures", [1, 3, 5])
def test_vectors_add_up_to_the_mixtures_in_any_order(mixtures):
    cohort = studies.cohort_of(studies.mixed(1, SIZES))
    groups = group_clients({}, cohort.clients)
    expected = mixed(cohort, mixtures)
    rng = np.random.default_rng(mixtures)
    for _ in range(3):
        order = rng.permutation(len(cohort.summaries))
        vectors = [encode_summary(cohort.summaries[k], cohort.plan, groups, mixtures) for k in order]
        words = np.sum(vectors, axis=0, dtype=np.uint64)
        found = decode_aggregate(words, cohort.plan, groups, mixtures)
        assert found.mixtures is not None
        assert found.total == cohort.total
        signs = select_signs(cohort.plan, mixtures, cohort.clients)
        assert np.array_equal(found.mixtures.products, (signs * np.array(SIZES)) @ signs.T)
        assert np.array_equal(found.mixtures.sums, signs @ cohort.first_moments)
        assert np.array_equal(encode_aggregate(found), encode_aggregate(expected))
    assert len(found.clients) == 1  # no means of single clients
    assert found.first_moments.shape[0] == 1


def test_mixtures_that_no_rows_can_have_are_refused():
    cohort = studies.cohort_of(studies.numbers(0, SIZES, 2))
    good = mixed(cohort, 2)
    assert good.mixtures is not None
    sums, products = good.mixtures.sums, good.mixtures.products
    odd, large, counted = sums.copy(), sums.copy(), sums.copy()
    odd[0, 1] += 1
    large[1, 2] += 2 * GRID**2 * sum(SIZES)
    counted[0, 0] += GRID**2  # one row more cannot change Σ ±1 by 1
    for changes in (
        {"sums": odd},
        {"sums": large},
        {"sums": counted},
        {"sums": sums[:1]},
        {"products": products + np.diag([1, 1])},
        {"products": products[:1]},
        {"products": products + 1 - np.eye(2, dtype=np.int64)},  # odd
        {"products": np.full((2, 2), sum(SIZES))},  # no rows where the signs differ
        {"signs": -good.mixtures.signs},
    ):
        with pytest.raises(SummaryError, match="contradicts itself"):
            replace(good, mixtures=replace(good.mixtures, **changes))
    with pytest.raises(SummaryError, match="mixtures"):
        replace(Aggregate.of(cohort), mixtures=good.mixtures)
