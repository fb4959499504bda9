"""Releases of rows with imputed values: the rules are about the people who are summed, and about what they said."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fedcdh.errors import DisclosureError
from fedcdh.privacy.ledger.gate import ReleaseGate
from fedcdh.privacy.ledger.ledger_file import ReleaseLedger
from fedcdh.privacy.release_context import ReleaseContext
from fedcdh.privacy.releases import release_answer, release_summary
from fedcdh.summaries import StudyPlan, summarize
from fedcdh.summaries.joint import JointRequest, RoundBudget

Columns = dict[str, list[Any]]


def draw_rows(rows: int, share: float, seed: int = 0) -> Columns:
    rng = np.random.default_rng(seed)
    age = rng.normal(60, 15, rows)
    table = {
        "age": age.tolist(),
        "dose": (age / 2 + rng.normal(0, 8, rows)).tolist(),
        "sex": rng.choice(["f", "m"], rows).tolist(),
    }
    return {name: [None if rng.random() < share else one for one in column] for name, column in table.items()}


def plan_of(table: Columns) -> StudyPlan:
    plan = StudyPlan.from_tables({"north": table, "south": draw_rows(300, 0.1, 9)}, missing="impute")
    return replace(plan, max_rounds=1, max_bytes=10**6)


@pytest.fixture
def context(tmp_path) -> ReleaseContext:
    return ReleaseContext("north", gate=ReleaseGate(ReleaseLedger(tmp_path / "releases.jsonl")))


def test_what_leaves_is_the_summary_by_any_number_of_threads(context: ReleaseContext) -> None:
    table = draw_rows(500, 0.1)
    plan = plan_of(table)
    released, _ = release_summary(table, plan, context)
    assert released == summarize(table, plan, "north")
    assert release_summary(table, plan, replace(context, workers=3))[0] == released
    assert len(context.gate.ledger.entries()) == 1


def test_the_ledger_compares_people_and_not_what_was_drawn_for_them(context: ReleaseContext) -> None:
    table = draw_rows(500, 0.1)
    plan = plan_of(table)
    release_summary(table, plan, context)
    filled = {**table, "dose": [30.0 if one is None and row < 20 else one for row, one in enumerate(table["dose"])]}
    with pytest.raises(DisclosureError, match="more rows changed"):
        release_summary(filled, plan, context)
    with pytest.raises(DisclosureError, match="1 or a few more rows changed"):
        release_summary({name: column[1:] for name, column in table.items()}, plan, context)


@pytest.mark.parametrize("change", [{"missing": "complete"}, {"clip": 29.0}])
def test_no_other_plan_about_rows_with_imputed_values(context: ReleaseContext, change: dict[str, Any]) -> None:
    table = draw_rows(500, 0.1)
    plan = plan_of(table)
    release_summary(table, plan, context)
    with pytest.raises(DisclosureError, match="one of the two plans asks for imputed values"):
        release_summary(table, replace(plan, **change), context)


def test_drawn_values_do_not_count_as_values_of_people() -> None:
    table = draw_rows(160, 0.4)
    plan = plan_of(table)
    with pytest.raises(DisclosureError, match=r"has a value in \d+ rows, expected at least 100"):
        release_summary(table, plan, ReleaseContext("north"))


def test_a_rare_level_is_as_rare_as_it_was() -> None:
    table = draw_rows(500, 0.1)
    table["sex"] = ["x" if row in (3, 5, 8) else one for row, one in enumerate(table["sex"])]
    plan = plan_of(table)
    released, _ = release_summary(table, plan, ReleaseContext("north"))
    assert released.coarsened[("sex",)] == 1


def test_answers_are_about_the_imputed_rows(context: ReleaseContext) -> None:
    table = draw_rows(3000, 0.1)
    plan = plan_of(table)
    released, _ = release_summary(table, plan, context)
    request = JointRequest(plan.fingerprint, 1, (("age", "dose"),))
    (answer,), _ = release_answer(table, plan, context, request, RoundBudget())
    answer.check(plan, released)
