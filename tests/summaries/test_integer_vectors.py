"""Vectors of sums are sums of vectors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import studies
from hypothesis import given, settings
from hypothesis import strategies as st
from masked_studies import a_study, same

from fedcdh.errors import SecureAggregationError, SummaryError
from fedcdh.summaries.aggregation import Aggregate
from fedcdh.summaries.integer_vectors import (
    MAX_ROWS_READ,
    decode_aggregate,
    encode_aggregate,
    encode_summary,
    from_triangle,
    group_clients,
    to_triangle,
    vector_length,
)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(0, 4), min_size=6, max_size=6))
def test_numbers_of_sums_are_sums_of_numbers(labels):
    """The row of numbers is additive, and gives the aggregate back, for any grouping."""
    _, _, cohort = a_study(6, 2)
    groups = {client: f"g{label}" for client, label in zip(cohort.clients, labels, strict=True)}
    places = group_clients(groups, cohort.clients)
    rows = sum(encode_summary(summary, cohort.plan, places) for summary in cohort.summaries)
    plain = Aggregate.of(cohort, groups)
    assert same(decode_aggregate(rows, cohort.plan, places), plain)
    assert np.array_equal(encode_aggregate(plain), rows)


COHORT = studies.cohort_of(studies.mixed(0, (60, 50, 40)))


PLAN = COHORT.plan


GROUPS = group_clients({COHORT.clients[0]: "east", COHORT.clients[2]: "east"}, COHORT.clients)


def total() -> np.ndarray:
    return sum((encode_summary(summary, PLAN, GROUPS) for summary in COHORT.summaries), np.uint64(0))


def test_vectors_add_up_to_the_vector_of_the_sum():
    names = {client: name for name, members in GROUPS for client in members}
    aggregate = Aggregate.of(COHORT, names)
    assert np.array_equal(total(), encode_aggregate(aggregate))
    found = decode_aggregate(total(), PLAN, GROUPS)
    assert found.total == aggregate.total
    assert np.array_equal(found.first_moments, aggregate.first_moments)
    assert len(total()) == vector_length(PLAN, len(GROUPS))


def test_a_matrix_is_its_triangle():
    moments = COHORT.total.moments
    assert np.array_equal(from_triangle(to_triangle(moments), len(moments)), moments)


def test_replicates_and_sums_are_not_encoded():
    for wrong in (replace(COHORT.summaries[0], replicate=1), COHORT.total):
        with pytest.raises(SecureAggregationError, match="replicate or a sum"):
            encode_summary(wrong, PLAN, GROUPS)


def test_rows_read_are_admitted_at_the_limit_and_refused_beyond():
    summary = COHORT.summaries[0]
    encode_summary(replace(summary, rows_read=MAX_ROWS_READ), PLAN, GROUPS)
    with pytest.raises(SecureAggregationError, match="rows were read"):
        encode_summary(replace(summary, rows_read=MAX_ROWS_READ + 1), PLAN, GROUPS)


def test_numbers_that_are_no_sum_are_refused():
    with pytest.raises(SummaryError, match="numbers; expected"):
        decode_aggregate(total()[:-1], PLAN, GROUPS)
    other = total()
    other[0] += np.uint64(1)
    with pytest.raises(SummaryError, match="its moments count another number"):
        decode_aggregate(other, PLAN, GROUPS)
    empty = total()
    empty[0] = 0
    with pytest.raises(SummaryError, match="the sum is of 0 rows"):
        decode_aggregate(empty, PLAN, GROUPS)
