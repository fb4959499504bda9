"""The release gate records releases, or refuses them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from ledger_studies import CLIENTS, NEEDED, PLAN, ROWS, Columns, at, count, gate_in, sent, table, told_by
from time_series import series

from fedcdh.data.sources import to_source
from fedcdh.data.table import Table, to_table
from fedcdh.errors import DisclosureError
from fedcdh.privacy.disclosure.policy import Policy
from fedcdh.privacy.disclosure.thresholds import required_rows
from fedcdh.privacy.ledger import (
    Release,
    ReleasedColumn,
    spent_privacy,
)
from fedcdh.privacy.ledger.gate import ReleaseGate
from fedcdh.privacy.releases import ReleaseContext, release_answer, release_profile
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.joint import JointRequest, RoundBudget
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.variables import Continuous


def test_the_same_message_is_free(tmp_path):
    gate = gate_in(tmp_path)
    for order in (slice(None), slice(None, None, -1), np.random.default_rng(3).permutation(ROWS)):
        assert not sent(at(table(), order), gate)
    assert count(gate) == 1


def test_the_same_sums_for_another_study_are_free_and_noted(tmp_path):
    """As when a site joins later and scales are declared: the new plan asks nothing new of the others."""
    gate = gate_in(tmp_path)
    for number in range(10):
        assert not sent(table(), gate, replace(PLAN, study=f"study {number}", clients=(*CLIENTS, f"site {number}")))
    assert count(gate) == 10
    assert sum(bool(entry.release.columns["a"].load) for entry in gate.ledger.entries()) == 1


def test_bootstrap_copies_count_and_are_never_the_same_again(tmp_path):
    gate, rows = gate_in(tmp_path), table(5 * NEEDED)
    assert not sent(rows, gate, replicates=2)
    assert not sent(rows, gate)  # the summary itself was told
    assert count(gate) == 1
    assert "shared rows with this one" in sent(rows, gate, replicates=2)
    assert not sent(rows, gate, replicates=1)


def test_answers_in_further_rounds_count_on_top_of_copies(tmp_path):
    plan = StudyPlan((Continuous("a"), Continuous("b")), CLIENTS, max_rounds=1, max_bytes=10**6)
    request = JointRequest(plan.fingerprint, 1, (("a", "b"),))
    needed = required_rows(plan, request.sets)
    rows = {name: table(needed + 50)[name] for name in "ab"}
    copies = needed // required_rows(plan) - 1
    for number, refused in ((0, False), (copies, True)):
        gate = gate_in(tmp_path / str(number))
        assert not sent(rows, gate, plan, replicates=number)
        if refused:
            with pytest.raises(DisclosureError, match="shared rows with this one"):
                release_answer(rows, plan, ReleaseContext("north", gate=gate), request, RoundBudget())
        else:
            release_answer(rows, plan, ReleaseContext("north", gate=gate), request, RoundBudget())
            release_answer(rows, plan, ReleaseContext("north", gate=gate), request, told_by(gate, plan))
            assert count(gate) == 2


def test_a_dry_run_refuses_the_same_and_records_nothing(tmp_path):
    gate = gate_in(tmp_path)
    asking = ReleaseGate(gate.ledger, dry_run=True)
    assert not sent(table(), asking)
    assert not count(gate)
    assert not sent(table(), gate)
    assert sent(at(table(), slice(1, None)), asking) == sent(at(table(), slice(1, None)), gate) != ""
    assert not sent(table(), asking)
    assert count(gate) == 1


def test_a_second_profile_of_nearly_the_same_rows_is_refused(tmp_path):
    gate = gate_in(tmp_path)
    release_profile(table(), ReleaseContext("north", gate=gate))
    release_profile(at(table(), slice(None, None, -1)), ReleaseContext("north", gate=gate))
    assert count(gate) == 1
    with pytest.raises(DisclosureError, match="since release 1"):
        release_profile(at(table(), slice(3, None)), ReleaseContext("north", gate=gate))
    release_profile({"b": table()["b"]}, ReleaseContext("north", gate=gate))  # fewer columns, the same values


def test_releases_without_disclosure_control_are_recorded_and_not_refused(tmp_path):
    gate, research = gate_in(tmp_path), Policy(disclosure_control=False)
    for rows in (table(), at(table(), slice(1, None))):
        assert not sent(rows, gate, policy=research)
    assert [entry.release.disclosure_control for entry in gate.ledger.entries()] == [False, False]
    assert "since release 1" in sent(at(table(), slice(2, None)), gate)


def test_noise_is_not_held_to_changed_rows_and_its_budget_adds_up(tmp_path):
    gate = gate_in(tmp_path)

    def noisy(rows: Columns, epsilon: float) -> Release:
        seen = gate.new_sketcher()
        seen(to_table(rows))
        told = Release(
            "noisy", "north", "", f"{epsilon:064.2f}", len(rows["a"]), 0, complete_rows=seen.rows, epsilon=epsilon
        )
        return replace(told, columns={name: ReleasedColumn(one) for name, one in seen.columns.items()})

    for rows, epsilon in ((table(), 0.5), (at(table(), slice(1, None)), 0.25), (table(seed=4), 4.0)):
        gate.record(noisy(rows, epsilon), Policy().differencing_limits(PLAN))
    assert spent_privacy(gate.ledger.entries()).epsilon == 4.75, "other values may be those of the same people"
    assert not sent(at(table(), slice(2, None)), gate)


def test_a_table_in_batches_makes_the_same_entry(tmp_path):
    gate = gate_in(tmp_path)
    assert not sent(table(), gate)
    batches: list[Table] = [to_table(at(table(), part)) for part in np.array_split(np.arange(ROWS), 5)]
    assert not sent(to_source(batches, "north"), gate)
    assert not sent(iter(batches), gate)
    assert count(gate) == 1
    assert summarize(batches, PLAN, "north").rows == ROWS


def test_shares_of_rows_are_counted_and_another_order_is_another_profile(tmp_path):
    gate, rng = gate_in(tmp_path), np.random.default_rng(3)
    rows = {"t": np.arange(ROWS), "a": series(rng, ROWS, 0.8), "b": series(rng, ROWS, 0.8)}
    context = ReleaseContext("north", gate=gate)
    plain = release_profile(rows, context, variables=["a", "b"], order_by="t").profile
    assert all(len(column.shares_below_one) == 2 for column in plain.columns.values())
    mixed = release_profile(at(rows, rng.permutation(ROWS)), context, variables=["a", "b"]).profile
    assert not any(column.shares_below_one for column in mixed.columns.values())
    first, second = (entry.release for entry in gate.ledger.entries())
    assert first.numbers == second.numbers + 4
    assert release_profile(rows, context, variables=["a", "b"], order_by="t", complete=True).profile == plain
