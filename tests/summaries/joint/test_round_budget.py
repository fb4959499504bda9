"""The budget of rounds and bytes: a client keeps to the limits of the plan."""

from __future__ import annotations

from dataclasses import replace

import pytest
import studies
from round_studies import plan_for

from fedcdh.errors import (
    DisclosureError,
)
from fedcdh.summaries.joint import (
    JointRequest,
    RoundBudget,
    answer_request,
)


def test_a_site_holds_to_the_budget_of_the_plan():
    tables = studies.numbers()
    plan = plan_for(tables, max_rounds=1, max_bytes=4000)
    first, second = (JointRequest(plan.fingerprint, 1, ((a, b),)) for a, b in (("v1", "v2"), ("v1", "v3")))
    _, ledger = answer_request(tables["site0"], plan, "site0", first, RoundBudget(), 60)
    assert answer_request(tables["site0"], plan, "site0", first, ledger, 60)[1] == ledger  # told before: no new round
    with pytest.raises(DisclosureError, match="round 2"):
        answer_request(tables["site0"], plan, "site0", second, ledger, 60)
    poor = replace(plan, max_bytes=3000)
    with pytest.raises(DisclosureError, match="bytes"):
        answer_request(tables["site0"], poor, "site0", replace(first, plan=poor.fingerprint), RoundBudget(), 60)
    none = replace(plan, max_rounds=0)
    with pytest.raises(DisclosureError, match="allows a client to answer 0"):
        answer_request(tables["site0"], none, "site0", replace(first, plan=none.fingerprint), RoundBudget(), 60)
