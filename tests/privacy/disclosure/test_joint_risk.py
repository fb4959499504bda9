"""Disclosure control of joint moments: enough rows, no person alone, no small cell."""

from __future__ import annotations

import numpy as np
import pytest
import studies
from round_studies import answered, plan_for

from fedcdh.errors import (
    DisclosureError,
)
from fedcdh.privacy.disclosure.joint_risk import assess_joint_risk
from fedcdh.privacy.disclosure.policy import Policy
from fedcdh.privacy.disclosure.thresholds import count_released_numbers, required_rows
from fedcdh.privacy.releases import ReleaseContext, release_answer
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.joint import (
    JointRequest,
    RoundBudget,
    answer_request,
)


def test_rows_have_to_be_many_beside_all_that_was_told():
    tables = studies.numbers(sizes=(3000, 300, 300))
    plan = plan_for(tables)
    request = JointRequest(plan.fingerprint, 1, (("v1", "v2"), ("v1", "v3")))
    needed = required_rows(plan, request.sets)
    assert 300 < needed < 3000
    assert required_rows(plan) < 300
    assert needed >= 2 * count_released_numbers(plan, request.sets) / 4
    answers, ledger = release_answer(tables["site0"], plan, ReleaseContext("site0"), request, RoundBudget())
    assert len(answers) == 2
    assert ledger.sets == set(request.sets)
    with pytest.raises(DisclosureError, match=f"at least {needed} rows"):
        release_answer(tables["site1"], plan, ReleaseContext("site1"), request, RoundBudget())
    release_answer(
        tables["site1"], plan, ReleaseContext("site1", Policy(disclosure_control=False)), request, RoundBudget()
    )


def test_who_stands_out_by_two_variables_together_is_not_told():
    """Unremarkable in each variable, alone in the product of the two: v2 follows v1, but for one row."""
    rng = np.random.default_rng(0)
    v1 = rng.standard_normal(3000)
    v2 = v1 + 0.001 * rng.standard_normal(3000)
    v1[0], v2[0] = 2.0, -2.0
    table = {"v1": v1, "v2": v2, "v3": rng.standard_normal(3000)}
    plan = plan_for({"a": table, "b": table})
    summary = summarize(table, plan, "a")
    close = assess_joint_risk(table, plan, summary, answered(table, plan, "a", ("v1", "v2"), ("v1", "v3"), rows=3000))
    assert close["v1", "v2"].leverage > 0.99 > 0.9 > close["v1", "v3"].leverage
    request = JointRequest(plan.fingerprint, 1, (("v1", "v2"),))
    with pytest.raises(DisclosureError, match="high leverage"):
        release_answer(table, plan, ReleaseContext("a"), request, RoundBudget())


def test_a_cell_of_three_labels_with_few_people_is_not_told():
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 2, (3, 4000)).astype(bool)
    codes[2] |= codes[0] & codes[1]
    codes[2, np.flatnonzero(codes[0] & codes[1])[:3]] = False
    table = {**{n: np.where(c, "y", "n") for n, c in zip("abc", codes, strict=True)}, "x": rng.standard_normal(4000)}
    plan = plan_for({"one": table, "two": table})
    summary = summarize(table, plan, "one")
    Policy().check_summary(summary, plan)  # no pair of labels is rare
    request = JointRequest(plan.fingerprint, 1, (("a", "b"),))
    close = assess_joint_risk(table, plan, summary, answer_request(table, plan, "one", request, RoundBudget(), 4000)[0])
    assert close["a", "b"].people == 3
    with pytest.raises(DisclosureError, match="3 people"):
        release_answer(table, plan, ReleaseContext("one"), request, RoundBudget())
