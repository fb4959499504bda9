"""Tables at the limits of a policy."""

from __future__ import annotations

import numpy as np

from fedcdh.errors import DisclosureError
from fedcdh.privacy.disclosure.policy import Policy
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.variables import Categorical, Continuous

PLAN = StudyPlan((Continuous("x"), Categorical("g", ("a", "b")), Categorical("h", ("c", "d"))), ("north", "south"))


def table(rows: int, g: int, h: int, both: int, missing: int = 0) -> dict[str, np.ndarray]:
    """g people have "b", h have "d", some have both; some more rows with all of these lack their number."""
    x = np.random.default_rng(0).standard_normal(rows + missing)
    x[rows:] = np.nan
    one, two = np.zeros(rows + missing, bool), np.zeros(rows + missing, bool)
    one[:g] = one[rows:] = True
    two[g - both : g - both + h] = two[rows:] = True
    return {"x": x, "g": np.where(one, "b", "a"), "h": np.where(two, "d", "c")}


def refusal(policy: Policy, rows: dict[str, np.ndarray], plan: StudyPlan = PLAN) -> str:
    try:
        policy.check_summary(summarize(rows, plan, "north", max_missing_share=1.0), plan)
    except DisclosureError as refused:
        return str(refused)
    return ""
