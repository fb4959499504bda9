"""Disclosure control of bootstrap replicates."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import studies

from fedcdh.errors import DisclosureError
from fedcdh.privacy.disclosure.group_leverage import GroupLimits
from fedcdh.privacy.disclosure.leverage import ReplicateLeverage, compute_leverages
from fedcdh.privacy.disclosure.policy import Policy
from fedcdh.privacy.disclosure.row_scan import ScanOptions, scan_rows
from fedcdh.privacy.disclosure.thresholds import required_cell_count, required_rows
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.bootstrap import bootstrap_summaries
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.variables import Categorical, Continuous

TABLES = studies.mixed(0, (120, 90, 60))


PLAN = studies.plan_of(TABLES)


@pytest.fixture(autouse=True)
def _nobody_else(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("home")))
    for name in ("FEDCDH_KEY", "FEDCDH_POLICY", "FEDCDH_PASSPHRASE", "FEDCDH_DEBUG"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("people", [23, 24, 35, 36, 200])
@pytest.mark.parametrize("rows", [247, 248, 400])
def test_every_message_needs_its_figures(people, rows):
    """Just as many copies as rows and the rarest label allow, and no more."""
    plan = StudyPlan((*(Continuous(name) for name in "abc"), Categorical("l", ("x", "y"))), ("north", "south"))
    rng = np.random.default_rng(rows)
    table = {name: rng.standard_normal(rows) for name in "abc"}
    table["l"] = np.where(np.arange(rows) < people, "x", "y")
    summary, policy = summarize(table, plan, "north"), Policy()
    least = min(rows // required_rows(plan), min(people, rows - people) // required_cell_count(plan))
    if least == 0:
        with pytest.raises(DisclosureError, match="the summary alone must not leave"):
            policy.check_summary(summary, plan, replicates=1)
        return
    policy.check_summary(summary, plan, replicates=least - 1)
    told = f"with up to {least - 1} bootstrap replicates the" if least > 1 else "without bootstrap replicates the"
    for more in (least, least + 20):
        with pytest.raises(DisclosureError, match=told):
            policy.check_summary(summary, plan, replicates=more)


def test_who_hides_behind_a_neighbour_is_found_in_the_copy_without_them():
    """Two rows far out, side by side: neither stands out in the summary, either does without the other."""
    plan = StudyPlan((Continuous("a"), Continuous("b")), ("north", "south"))
    rng = np.random.default_rng(5)
    table = {"a": np.append(rng.standard_normal(400), [25.0, 25.0]), "b": rng.standard_normal(402)}
    found = scan_rows(table, plan, "north", ScanOptions())
    summary = found.summary(0.5)
    seen = ReplicateLeverage(plan, summary)
    assert compute_leverages(summary, plan, found.extremes.values)["a"] < 0.51
    told = []
    copies = bootstrap_summaries(
        table, plan, "north", 30, 1, observer=lambda *block: (seen(*block), told.append(block))
    )
    times = dict(enumerate(np.hstack([counts for _, counts in told])[:, -2:], start=1))
    policy, refused = Policy(), set()
    for copy in copies:
        try:
            policy.check_replicate(copy, plan, seen.extremes[copy.replicate], seen.weights[copy.replicate])
        except DisclosureError:
            refused.add(copy.replicate)
    assert refused == {number for number, (one, other) in times.items() if (one > 0) != (other > 0)}
    assert 0 < len(refused) < 30
    for copy in copies:
        Policy(disclosure_control=False).check_replicate(
            copy, plan, seen.extremes[copy.replicate], seen.weights[copy.replicate]
        )


def test_the_outermost_values_of_a_copy_are_those_of_its_rows(monkeypatch):
    table = {name: column[:60] for name, column in TABLES["clinic a"].items()}
    seen, told = ReplicateLeverage(PLAN, summarize(table, PLAN, "clinic a")), {}
    monkeypatch.setattr("fedcdh.summaries.bootstrap._BLOCK_ROWS", 7)

    def watch(rows, times):
        seen(rows, times)
        for number, counts in enumerate(times, start=1):
            told.setdefault(number, []).append((rows.columns["age"].values, counts))

    bootstrap_summaries(table, PLAN, "clinic a", 3, 1, observer=watch)
    for number, blocks in told.items():
        ages, times = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
        there = ages[times > 0]
        ends = seen.extremes[number]["age"]
        assert (ends.min(), ends.max()) == (there.min(), there.max())
        assert seen.weights[number]["age"][0] == times[ages == there.min()].max()


def test_odds_grow_with_the_messages():
    """Columns w_b φ beside φ: a row's odds h/(1 − h) are B + 1 times as large, averaged over draws. Seed 1000."""
    rng, copies = np.random.default_rng(1000), 4
    features = np.column_stack([np.ones(4000), rng.standard_normal((4000, 2))])
    features[0] = [1, 9, -9]
    ratios = []
    for _ in range(60):
        times = np.column_stack([np.ones(4000), rng.poisson(1, (4000, copies))])
        both = np.einsum("ni,nj->nij", times, features).reshape(4000, -1)
        odds = []
        for columns in (features, both):
            leverage = columns[0] @ np.linalg.solve(columns.T @ columns, columns[0])
            odds.append(leverage / (1 - leverage))
        assert odds[1] / odds[0] == pytest.approx(1 + ((times[0, 1:] - 1) ** 2).sum(), rel=0.2)
        ratios.append(odds[1] / odds[0])
    assert np.mean(ratios) == pytest.approx(copies + 1, rel=0.25)


def test_the_weights_that_were_drawn_count_and_not_their_average():
    """One row far out: B + 1 times its odds pass, and so do most draws; those in which it counts often do not."""
    plan, copies = StudyPlan((Continuous("a"), Continuous("b")), ("north", "south")), 4
    rng = np.random.default_rng(5)
    table = {"a": np.append(rng.standard_normal(500), 6.0), "b": rng.standard_normal(501)}
    found = scan_rows(table, plan, "north", ScanOptions())
    summary = found.summary(0.5)
    alone = compute_leverages(summary, plan, found.extremes.values)["a"]
    odds, limit = alone / (1 - alone), 7.5
    policy = Policy(max_leverage=limit * odds / (1 + limit * odds))
    policy.check_summary(summary, plan, found.extremes.values, replicates=copies)
    refused, expected = set(), set()
    for seed in range(60):
        seen, told = ReplicateLeverage(plan, summary), []

        def watch(*block, seen=seen, told=told):
            seen(*block)
            told.append(block)

        bootstrap_summaries(table, plan, "north", copies, seed, observer=watch)
        grown = 1 + ((told[-1][1][:, -1] - 1) ** 2).sum()
        assert seen.joint["a"] == pytest.approx(odds * grown / (1 + odds * grown), abs=1e-9)
        if grown > limit:
            expected.add(seed)
        try:
            policy.check_replicates(seen.joint)
        except DisclosureError:
            refused.add(seed)
        replace(policy, disclosure_control=False).check_replicates(seen.joint)
    assert refused == expected
    assert 0 < len(refused) < 60


@pytest.mark.parametrize(("people", "copies"), [(2, 20), (5, 20), (2, 5)])
def test_replicates_separate_the_people_of_a_group_from_each_other(people, copies):
    """Each of k people has the odds of the group, times (B + 1)/k, averaged over draws. Seeds 1000 to 1009."""
    limit, found = GroupLimits(1.0, 0.99, replicates=copies).of_wholes(people - 1)[-1], []
    for seed in range(1000, 1010):
        rng = np.random.default_rng(seed)
        values, low, high = rng.standard_normal(2000), 1.0, 1000.0
        for _ in range(40):
            values[:people] = middle = np.sqrt(low * high)
            features = np.column_stack([np.ones(2000), values, values**2])
            shared = features[:people] @ np.linalg.solve(features.T @ features, features[:people].T)
            low, high = (middle, high) if shared.sum() / people < limit else (low, middle)
        times = np.column_stack([np.ones(2000), rng.poisson(1, (2000, copies))])
        both = np.einsum("ni,nj->nij", times, features).reshape(2000, -1)
        inverse = np.linalg.pinv(both.T @ both, rcond=1e-13)
        found.extend(np.einsum("ip,pq,iq->i", both[:people], inverse, both[:people]))
    assert 0.98 < np.median(found) < 0.995
