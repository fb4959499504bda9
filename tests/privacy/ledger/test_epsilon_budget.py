"""Noisy summaries spend a privacy budget, and are held to the policy."""

from __future__ import annotations

import pytest
from noisy_studies import a_plan, chain

from fedcdh.errors import (
    DataError,
    DisclosureError,
    SettingsError,
)
from fedcdh.privacy.disclosure.policy import Policy
from fedcdh.privacy.ledger import ReleaseLedger
from fedcdh.privacy.ledger.gate import ReleaseGate
from fedcdh.privacy.releases import ReleaseContext, release_summary
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.dp_parameters import (
    DPParameters,
)


def test_the_gate_counts_epsilon_and_refuses_beyond_the_budget(tmp_path):
    plan, gate = a_plan(DPParameters(1, 1e-6)), ReleaseGate(ReleaseLedger(tmp_path / "releases.jsonl"))
    policy, rows = Policy(epsilon_budget=2.5), chain(400)
    first, second = (release_summary(rows, plan, ReleaseContext("north", policy, gate=gate))[0] for _ in range(2))
    assert first != second
    with pytest.raises(DisclosureError, match=r"have spent 2\. Expected at most 2\.5"):
        release_summary(rows, plan, ReleaseContext("north", policy, gate=gate))
    release_summary(
        chain(400, seed=9), plan, ReleaseContext("north", policy, gate=gate)
    )  # other rows have a budget of their own


def test_the_policy_keeps_its_rules_unless_it_says_that_noise_is_enough():
    plan, few = a_plan(DPParameters(1, 1e-6)), chain(30)
    with pytest.raises(DisclosureError, match="there are 30 rows"):
        release_summary(few, plan, ReleaseContext("north"))
    release_summary(few, plan, ReleaseContext("north", Policy(waive_counts_below_epsilon=1.0)))
    with pytest.raises(DisclosureError, match="there are 30 rows"):
        release_summary(
            few, a_plan(DPParameters(1.5, 1e-6)), ReleaseContext("north", Policy(waive_counts_below_epsilon=1.0))
        )
    with pytest.raises(SettingsError, match="waive_counts_below_epsilon"):
        Policy(waive_counts_below_epsilon=5.0)


def test_rows_that_come_once_are_refused_before_they_are_gone_where_they_are_read_twice():
    batches = iter([chain(400)])
    with pytest.raises(DataError, match="found an iterator, which gives its rows once, but a summary with noise"):
        release_summary(batches, a_plan(), ReleaseContext("north"))
    with pytest.raises(DataError, match="bootstrap replicates reads the rows more than once"):
        release_summary(batches, a_plan(None), ReleaseContext("north"), replicates=2)
    summary, _ = release_summary(batches, a_plan(None), ReleaseContext("north"))  # nothing was taken from it
    assert summary == summarize(chain(400), a_plan(None), "north")


@pytest.mark.parametrize(("budget", "refused"), [(1.0, False), (0.9999, True)])
def test_the_budget_may_be_spent_to_the_last(tmp_path, budget, refused):
    gate = ReleaseGate(ReleaseLedger(tmp_path / "releases.jsonl"))
    context = ReleaseContext("north", Policy(epsilon_budget=budget), gate=gate)
    plan = a_plan(DPParameters(0.5, 1e-6))
    release_summary(chain(400), plan, context)
    if refused:
        with pytest.raises(DisclosureError, match=r"have spent 0\.5"):
            release_summary(chain(400), plan, context)
    else:
        release_summary(chain(400), plan, context)
