"""Counts of rows and of missing values: those of any table are possible, and others are not."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fedcdh.summaries import Continuous, StudyPlan
from fedcdh.summaries.row_counts import are_counts_possible

PLAN = StudyPlan((Continuous("a"), Continuous("b"), Continuous("c")), ("north",))
IMPUTED = replace(PLAN, missing="impute")


@given(st.lists(st.lists(st.booleans(), min_size=3, max_size=3), min_size=1, max_size=12))
def test_the_counts_of_a_table_are_possible(gaps):
    lost = np.array(gaps)
    for plan, used in ((PLAN, ~lost.any(axis=1)), (IMPUTED, ~lost.all(axis=1))):
        counted = are_counts_possible(plan, int(used.sum()), len(lost), lost.sum(axis=0).tolist())
        assert counted == bool(used.any())


def test_contradictions_are_found():
    assert not are_counts_possible(PLAN, 10, 10, [1, 0, 0])
    assert are_counts_possible(IMPUTED, 10, 10, [1, 0, 0])
    assert not are_counts_possible(IMPUTED, 9, 10, [1, 0, 1])  # a row without any value lacks all
    assert not are_counts_possible(IMPUTED, 10, 10, [10, 10, 10])  # then no row is used
    assert not are_counts_possible(IMPUTED, 11, 10, [0, 0, 0])
