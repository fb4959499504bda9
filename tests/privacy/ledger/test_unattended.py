"""A client without a person answers a limited number of plans, each with the same content every time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fedcdh.errors import DisclosureError
from fedcdh.privacy.disclosure.policy import Policy
from fedcdh.privacy.ledger.gate import ReleaseGate
from fedcdh.privacy.ledger.ledger_file import ReleaseLedger
from fedcdh.privacy.ledger.record import LedgerEntry, Release
from fedcdh.privacy.ledger.unattended import check_same_content, check_unattended
from fedcdh.privacy.releases import ReleaseContext, release_profile, release_summary
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.variables import Continuous


def summary_of(plan: int, digest: int = 0, kind: str = "summary", control: bool = True) -> Release:
    return Release(kind, "north", f"{plan:064d}", f"{digest:064d}", 500, 0, disclosure_control=control)


def entries(*releases: Release) -> list[LedgerEntry]:
    return [LedgerEntry(number, "2026-01-01", one) for number, one in enumerate(releases, start=1)]


@pytest.mark.parametrize("max_plans", [1, 2, 5])
def test_plans_are_counted_up_to_the_limit(max_plans):
    earlier = entries(*(summary_of(plan) for plan in range(max_plans)))
    check_unattended(summary_of(max_plans - 1), earlier, max_plans)
    check_unattended(summary_of(99), earlier[:-1], max_plans)
    with pytest.raises(DisclosureError, match=f"by at most {max_plans} plans"):
        check_unattended(summary_of(99), earlier, max_plans)


@pytest.mark.parametrize("kind", ["summary", "masked", "noisy"])
def test_a_plan_is_answered_with_the_same_content(kind):
    earlier = entries(summary_of(1, 7, kind))
    check_unattended(summary_of(1, 7, kind), earlier, 1)
    with pytest.raises(DisclosureError, match="other numbers than in release 1"):
        check_unattended(summary_of(1, 8, kind), earlier, 1)


def test_releases_without_disclosure_control_do_not_count():
    earlier = entries(summary_of(1, 7, control=False))
    check_unattended(summary_of(1, 8), earlier, 1)
    check_unattended(summary_of(2, 8), earlier, 1)


def test_answers_and_profiles_are_no_plans():
    earlier = entries(Release("profile", "north", "", "0" * 64, 500, 0))
    check_unattended(summary_of(1), earlier, 1)
    check_unattended(Release("answer", "north", f"{2:064d}", "0" * 64, 500, 0), entries(summary_of(1)), 1)


def test_content_is_compared_with_all_earlier_summaries():
    check_same_content("a" * 64, f"{2:064d}", entries(summary_of(1, 1), summary_of(1, 2)))
    with pytest.raises(DisclosureError, match="release 2"):
        check_same_content("a" * 64, f"{3:064d}", entries(summary_of(1, 1), summary_of(1, 2)))


PLAN = StudyPlan((Continuous("a"), Continuous("b")), ("north", "south"))


def rows(count: int = 900) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {"a": rng.standard_normal(count), "b": rng.standard_normal(count)}


def context(folder: Path, max_plans: int | None = 1, policy: Policy | None = None) -> ReleaseContext:
    gate = ReleaseGate(ReleaseLedger(folder / "releases.jsonl"), max_plans=max_plans)
    return ReleaseContext("north", policy or Policy(), gate=gate)


def test_a_column_is_described_in_the_same_way_every_time(tmp_path):
    release_profile(rows(), context(tmp_path))
    release_profile({"a": rows()["a"]}, context(tmp_path))  # fewer columns, the same descriptions
    changed = {**rows(), "b": rows()["b"] + 1000.0}
    with pytest.raises(DisclosureError, match="column b as continuous"):
        release_profile(changed, context(tmp_path))
    release_profile(changed, context(tmp_path, max_plans=None))  # a person decides


def test_the_same_sums_for_another_plan_count_as_another_plan(tmp_path):
    """A repetition adds nothing to the ledger, but unattended it is another plan all the same."""
    other = StudyPlan(PLAN.variables, PLAN.clients, study="another")
    release_summary(rows(), PLAN, context(tmp_path))
    release_summary(rows(), PLAN, context(tmp_path))
    with pytest.raises(DisclosureError, match="by at most 1 plans"):
        release_summary(rows(), other, context(tmp_path))
    release_summary(rows(), other, context(tmp_path, max_plans=2))
    assert len(context(tmp_path).gate.ledger.entries()) == 2


def test_a_dry_run_refuses_the_same_and_records_nothing(tmp_path):
    release_summary(rows(), PLAN, context(tmp_path))
    gate = ReleaseGate(ReleaseLedger(tmp_path / "releases.jsonl"), dry_run=True, max_plans=1)
    with pytest.raises(DisclosureError, match="by at most 1 plans"):
        release_summary(
            rows(), StudyPlan(PLAN.variables, PLAN.clients, study="another"), ReleaseContext("north", gate=gate)
        )
    assert len(gate.ledger.entries()) == 1


def test_a_summary_is_released_before_its_rows_are_asked_about(tmp_path):
    gate = context(tmp_path).gate
    summary = summarize(rows(), PLAN, "north")
    with pytest.raises(DisclosureError, match="released no summary by this plan"):
        gate.check_summary_released(summary, PLAN)
    release_summary(rows(), PLAN, context(tmp_path))
    gate.check_summary_released(summary, PLAN)
    fewer = {name: column[1:] for name, column in rows().items()}
    with pytest.raises(DisclosureError, match="its rows have changed"):
        gate.check_summary_released(summarize(fewer, PLAN, "north"), PLAN)
