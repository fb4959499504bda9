"""Releases of rows with rare levels and pairs: what leaves, what the ledger keeps, and what stays refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from ledger_studies import gate_in

from benchmarks.attacks import rare_pairs
from fedcdh.discovery.api import discover_from
from fedcdh.errors import DisclosureError, SummaryFormatError
from fedcdh.federation import simulate_federation
from fedcdh.federation.in_process import SecureSumOptions
from fedcdh.messages.summary_file import SummaryMessage, max_summary_bytes, pack_summary, unpack_summary
from fedcdh.privacy.disclosure.policy import Policy
from fedcdh.privacy.disclosure.rare_cells import count_pairs
from fedcdh.privacy.ledger.record import CELLS_KEY, COARSENED_KEY
from fedcdh.privacy.releases import ReleaseContext, release_answer, release_summary
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.joint import JointRequest, RoundBudget
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.variables import Categorical, Continuous

PLAN = StudyPlan(
    (
        Continuous("x"),
        Continuous("y"),
        Categorical("g", ("a", "b", "c")),
        Categorical("h", ("d", "e")),
        Categorical("k", ("l", "m")),
    ),
    ("north", "south"),
    max_rounds=3,
    max_bytes=10**7,
)


def draw_rows(n: int = 600, *, third: int = 5, pair: int = 3, seed: int = 0) -> dict[str, np.ndarray]:
    """Return rows of which `third` have level c of g, and `pair` have b of g and e of h."""
    rng = np.random.default_rng(seed)
    g = np.repeat(["b", "c", "a"], [40, third, n - 40 - third])
    h = np.where(np.arange(n) < pair, "e", "d")
    h[n - 200 :] = "e"
    rows = {
        "x": rng.uniform(-2, 2, n),
        "y": rng.uniform(-2, 2, n),
        "g": g,
        "h": h,
        "k": rng.permutation(np.tile(["l", "m"], n // 2)),
    }
    order = rng.permutation(n)
    return {name: column[order] for name, column in rows.items()}


def test_rare_levels_and_pairs_cost_their_own_precision_only():
    rows = draw_rows()
    sent, replicates = release_summary(rows, PLAN, ReleaseContext("north"))
    assert not replicates
    assert dict(sent.coarsened) == {("g",): 1, ("g", "h"): 1}
    assert count_pairs(sent, PLAN, "g", "h")[1, 1] in (0, 4)
    assert not sent.moments[PLAN.layout.spans["g"].start + 2].any()
    exact = summarize(rows, PLAN, "north")
    numbers = slice(0, PLAN.layout.spans["g"].start)
    np.testing.assert_array_equal(sent.moments[numbers, numbers], exact.moments[numbers, numbers])


@pytest.mark.parametrize("workers", [1, 3])
def test_the_same_rows_in_any_order_give_the_same_bytes(workers):
    rows = draw_rows()
    sent, _ = release_summary(rows, PLAN, ReleaseContext("north"))
    order = np.random.default_rng(1).permutation(600)
    parts = [{name: column[part] for name, column in rows.items()} for part in np.array_split(order, 4)]
    again, _ = release_summary(parts, PLAN, ReleaseContext("north", workers=workers))
    assert pack_summary(SummaryMessage(sent), PLAN) == pack_summary(SummaryMessage(again), PLAN)


def test_without_disclosure_control_nothing_is_coarser():
    sent, _ = release_summary(draw_rows(), PLAN, ReleaseContext("north", Policy(disclosure_control=False)))
    assert sent == summarize(draw_rows(), PLAN, "north")


def test_with_replicates_rare_pairs_are_refused():
    """The mean of many replicates of a count is near the exact one, so rounding would hide nothing."""
    with pytest.raises(DisclosureError, match=r"'b' of 'g' with 'e' of 'h' has 3 people"):
        release_summary(draw_rows(third=0), PLAN, ReleaseContext("north"), replicates=1)


def test_the_ledger_keeps_exact_counts_and_names_what_was_coarser(tmp_path):
    gate = gate_in(tmp_path)
    context = ReleaseContext("north", gate=gate)
    sent, _ = release_summary(draw_rows(), PLAN, context)
    (entry,) = gate.ledger.entries()
    assert sorted(entry.release.details[COARSENED_KEY]) == sorted([[["g"], 1], [["g", "h"], 1]])
    assert 3 in entry.release.details[CELLS_KEY]["'g' and 'h'"].values()
    assert release_summary(draw_rows(), PLAN, context)[0] == sent
    assert len(gate.ledger.entries()) == 1  # a repetition adds nothing


def test_few_people_more_in_a_rare_pair_are_not_seen_by_differencing(tmp_path):
    """Two releases with different rounding, of which the second has one person more with the rare pair."""
    context = ReleaseContext("north", gate=gate_in(tmp_path))
    release_summary(draw_rows(pair=3), PLAN, context)
    with pytest.raises(DisclosureError, match="since release 1"):
        release_summary(draw_rows(pair=4), PLAN, context)


def test_answers_hold_no_sums_over_rare_levels_and_pairs(tmp_path):
    """A joint answer about a label has sums over its pairs with every other label, which a summary has not."""
    context = ReleaseContext("north", gate=gate_in(tmp_path))
    rows = draw_rows(4000)
    sent, _ = release_summary(rows, PLAN, context)
    with pytest.raises(DisclosureError, match=r"'b' of 'g' with 'e' of 'h' has 3 people"):
        release_answer(rows, PLAN, context, JointRequest(PLAN.fingerprint, 1, (("g", "x"),)), RoundBudget())
    request = JointRequest(PLAN.fingerprint, 1, (("x", "y"),))
    (answer,), _ = release_answer(rows, PLAN, context, request, RoundBudget(), require_summary=True)
    assert not answer.cross[:, PLAN.layout.spans["g"].start + 2].any()
    answer.check(PLAN, sent)


def test_notes_name_site_variables_and_how_many_cells_but_no_counts():
    sent = [
        release_summary(draw_rows(seed=i), PLAN, ReleaseContext(site))[0] for i, site in enumerate(("north", "south"))
    ]
    notes = [note for note in discover_from(sent, PLAN, rounds="one").notes if "rounded" in note]
    assert notes == [
        f"client {site}: 1 rare level of g was merged with the most common one, 1 small count of g with h was rounded"
        for site in ("north", "south")
    ]


def test_marks_add_up_and_are_read_back():
    sent, _ = release_summary(draw_rows(), PLAN, ReleaseContext("north"))
    other, _ = release_summary(draw_rows(seed=1), PLAN, ReleaseContext("south"))
    assert dict((sent + other).coarsened) == {("g",): 2, ("g", "h"): 2}
    blob = pack_summary(SummaryMessage(sent), PLAN)
    assert unpack_summary(blob, PLAN).summary == sent
    assert len(blob) <= max_summary_bytes(PLAN)


@pytest.mark.parametrize("names", [("x",), ("h", "g"), ("g", "g"), ("g", "h", "x"), ("nobody",)])
def test_marks_about_other_variables_are_refused(names):
    sent, _ = release_summary(draw_rows(), PLAN, ReleaseContext("north"))
    with pytest.raises(SummaryFormatError):
        unpack_summary(pack_summary(SummaryMessage(replace(sent, coarsened={names: 1})), PLAN), PLAN)


def test_what_leaves_says_no_more_about_people_with_a_rare_pair_than_is_guessed():
    total = rare_pairs.attack_sites(300, range(2), certain=False)
    assert total["counts", "exact"][0] == total["counts", "exact"][1] > 0
    assert rare_pairs.succeeded(total) == []


def test_a_study_with_rare_cells_runs_to_its_end_in_the_open_and_under_masks(tmp_path):
    """Answers about residuals are computed from the recoded rows, and checked against the coarser summary."""
    tables = {site: draw_rows(third=9, seed=i) for i, site in enumerate(("north", "south", "west"))}
    outcome = simulate_federation(tables, policy=Policy(), folder=tmp_path / "open")
    assert sum("rounded" in note for note in outcome.result.notes) == 3
    masked = simulate_federation(tables, policy=Policy(), folder=tmp_path / "sum", secure_sum=SecureSumOptions())
    assert not any("rounded" in note for note in masked.result.notes)
