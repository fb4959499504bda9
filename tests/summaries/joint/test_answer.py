"""Answers of clients: they add up, and belong to the rows of the summary."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import studies
from hypothesis import given, settings
from hypothesis import strategies as st
from round_studies import answered, plan_for

from fedcdh.errors import (
    DataError,
    PlanMismatchError,
    SummaryError,
)
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.encoder import GRID


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 59))
def test_answers_add_up_and_rows_have_no_order(seed, cut):
    tables = studies.mixed()
    plan, sets = plan_for(tables), (("age", "dose", "group"), ("dose", "sex"))
    order = np.random.default_rng(seed).permutation(60)
    whole = answered(tables["clinic a"], plan, "clinic a", *sets, rows=60)
    mixed = {name: column[order] for name, column in tables["clinic a"].items()}
    first = answered({n: c[:cut] for n, c in mixed.items()}, plan, "clinic a", *sets, rows=cut)
    second = answered({n: c[cut:] for n, c in mixed.items()}, plan, "clinic a", *sets, rows=60 - cut)
    assert all(a + b == c for a, b, c in zip(first, second, whole, strict=True))


def test_a_table_that_has_changed_is_refused():
    tables = studies.numbers()
    plan = plan_for(tables)
    with pytest.raises(DataError, match="has changed"):
        answered(tables["site0"], plan, "site0", ("v1", "v2"), rows=59)


def test_answers_are_checked_against_the_summary():
    tables = studies.numbers()
    plan = plan_for(tables)
    summary = summarize(tables["site0"], plan, "site0")
    (answer,) = answered(tables["site0"], plan, "site0", ("v1", "v2"), rows=60)
    answer.check(plan, summary)
    (other,) = answered(tables["site1"], plan, "site0", ("v1", "v2"), rows=50)
    with pytest.raises(SummaryError, match="the table has changed"):
        other.check(plan, summary)
    with pytest.raises(SummaryError, match="negative"):
        replace(answer, own=answer.own - 3 * np.diag(answer.own.diagonal())).check(plan, summary)
    with pytest.raises(SummaryError, match="same rows"):
        replace(answer, own=answer.own // 10**4).check(plan, summary)
    with pytest.raises(SummaryError, match="larger than"):
        replace(answer, cross=answer.cross + 61 * GRID**2)
    with pytest.raises(PlanMismatchError):
        answer.check(replace(plan, study="another"), summary)
