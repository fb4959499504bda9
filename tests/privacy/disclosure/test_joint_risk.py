"""The joint risk of an answer: the leverage of every row, and the smallest cell of three levels."""

from __future__ import annotations

import numpy as np
import pytest

from fedcdh.data.table import to_table
from fedcdh.privacy.disclosure.joint_risk import assess_joint_risk
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.encoder import Encoder
from fedcdh.summaries.joint import JointRequest, RoundBudget, answer_request
from fedcdh.summaries.joint.encoder import JointEncoder
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.variables import Categorical, Continuous

BUDGET = {"max_rounds": 1, "max_bytes": 10**8}


def assess(table: dict, plan: StudyPlan, names: tuple[str, ...]):
    summary = summarize(table, plan, "north")
    request = JointRequest(plan.fingerprint, 1, (names,))
    answers, _ = answer_request(table, plan, "north", request, RoundBudget(), summary.rows)
    return assess_joint_risk(table, plan, summary, answers)[names]


@pytest.mark.parametrize("far", [0.0, 6.0])
def test_the_leverage_is_that_of_the_row_with_the_largest(far):
    rng = np.random.default_rng(0)
    table = {"a": rng.standard_normal(500), "b": rng.standard_normal(500)}
    table["a"][0], table["b"][0] = far, -far
    plan = StudyPlan((Continuous("a"), Continuous("b")), ("north",), **BUDGET)
    rows = to_table(table)
    (_, joint), *_ = JointEncoder(plan, "north", [("a", "b")])(rows)
    columns = np.concatenate([Encoder(plan, "north")(rows), joint]).T
    left, sizes, _ = np.linalg.svd(columns / np.linalg.norm(columns, axis=0), full_matrices=False)
    expected = (left[:, sizes**2 > 1e-12 * sizes[0] ** 2] ** 2).sum(axis=1).max()
    assert assess(table, plan, ("a", "b")).leverage == pytest.approx(expected, rel=1e-3)


def test_the_smallest_cell_of_three_levels_is_found():
    levels = [(a, b, c) for a in "xy" for b in "uv" for c in "st" for _ in range(20)]
    levels += [("x", "u", "s")] * 5
    levels.remove(("y", "v", "t"))
    table = dict(zip("abc", map(list, zip(*levels, strict=True)), strict=True))
    plan = StudyPlan(
        (Categorical("a", ("x", "y")), Categorical("b", ("u", "v")), Categorical("c", ("s", "t"))), ("north",), **BUDGET
    )
    risk = assess(table, plan, ("a", "b"))
    assert (risk.people, risk.cell) == (19, "'y' of 'a' with 'v' of 'b' with 't' of 'c'")
