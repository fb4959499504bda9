"""Vectors of sums are sums of vectors."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from masked_studies import a_study, same

from fedcdh.summaries.aggregation import Aggregate
from fedcdh.summaries.integer_vectors import (
    decode_aggregate,
    encode_aggregate,
    encode_summary,
    group_clients,
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
