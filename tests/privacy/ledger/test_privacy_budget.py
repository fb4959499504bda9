"""Noisy summaries spend a privacy budget of epsilon and of delta, and are held to the policy."""

from __future__ import annotations

import math
from contextlib import suppress
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from noisy_studies import a_plan, chain

from fedcdh.data.table import to_table
from fedcdh.errors import (
    DataError,
    DisclosureError,
    SettingsError,
)
from fedcdh.privacy.disclosure.policy import Policy
from fedcdh.privacy.ledger import (
    LedgerEntry,
    Release,
    ReleasedColumn,
    ReleaseLedger,
    RowSketcher,
    ValueSketch,
    check_privacy_budget,
)
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
    for again in (rows, chain(400, seed=9)):  # other values may be those of the same people
        with pytest.raises(DisclosureError, match=r"have spent 2\. Expected at most 2\.5"):
            release_summary(again, plan, ReleaseContext("north", policy, gate=gate))
    own = ReleaseGate(ReleaseLedger(tmp_path / "other-people.jsonl"))
    release_summary(chain(400, seed=9), plan, ReleaseContext("north", policy, gate=own))


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


def test_plans_about_disjoint_columns_of_the_same_people_share_one_budget(tmp_path):
    gate = ReleaseGate(ReleaseLedger(tmp_path / "releases.jsonl"))
    columns = np.random.default_rng(0).standard_normal((12, 400))
    rows = dict(zip("abcdefghijkl", columns, strict=True))
    left = 0.0
    for start in range(0, 12, 2):  # six plans, each about two further columns
        plan = a_plan(DPParameters(3, 1e-6), "abcdefghijkl"[start : start + 2])
        with suppress(DisclosureError):
            release_summary(rows, plan, ReleaseContext("north", gate=gate))
            left += 3
    assert left == 6


@pytest.mark.parametrize(
    ("delta", "rows", "refused"), [(0.01, 2000, True), (1e-5, 2000, False), (1.0001e-5, 400, True)]
)
def test_delta_has_a_limit_before_and_after_rows_are_read(delta, rows, refused):
    plan = a_plan(DPParameters(1, delta))
    for check in (
        lambda: Policy().check_plan(plan),
        lambda: release_summary(chain(rows), plan, ReleaseContext("north")),
    ):
        if refused:
            with pytest.raises(DisclosureError, match="expected at most 1e-05"):
                check()
        else:
            check()


@pytest.mark.parametrize(("delta", "refused"), [(1 / 100_000, False), (np.nextafter(1 / 100_000, 1), True)])
def test_delta_is_at_most_a_tenth_of_one_over_the_rows(delta, refused):
    policy = Policy(max_delta=0.01)
    if refused:
        with pytest.raises(DisclosureError, match="for 10000 rows"):
            policy.check_noise(DPParameters(1, delta), 10_000)
    else:
        policy.check_noise(DPParameters(1, delta), 10_000)


@pytest.mark.parametrize(("epsilon", "refused"), [(8.0, False), (8.0001, True)])
def test_one_release_alone_may_spend_the_whole_epsilon_and_no_more(epsilon, refused):
    if refused:
        with pytest.raises(DisclosureError, match="an epsilon of 8"):
            Policy().check_noise(DPParameters(epsilon, 1e-6), 400)
    else:
        Policy().check_noise(DPParameters(epsilon, 1e-6), 400)


def test_a_policy_without_disclosure_control_enforces_no_budget():
    release = Release("noisy", "north", "", "0" * 64, 400, 0, epsilon=9.0, delta=0.01)
    check_privacy_budget(release, [], Policy(disclosure_control=False))
    Policy(disclosure_control=False).check_noise(DPParameters(9, 0.01), 400)


def test_deltas_add_up_over_releases(tmp_path):
    gate = ReleaseGate(ReleaseLedger(tmp_path / "releases.jsonl"))
    context = ReleaseContext("north", Policy(delta_budget=2e-6), gate=gate)
    for names in ("ab", "bc"):
        release_summary(chain(400), a_plan(DPParameters(0.5, 1e-6), names), context)
    with pytest.raises(DisclosureError, match="a delta of 1e-06, and the 2 noisy releases in this site's ledger"):
        release_summary(chain(400), a_plan(DPParameters(0.5, 1e-6), "ac"), context)


_NOISY = st.tuples(
    st.floats(0.01, 10),
    st.floats(1e-10, 0.01),
    st.integers(1, 100_000),
    st.frozensets(st.integers(0, 5), min_size=1),  # columns
    st.frozensets(st.integers(0, 8), min_size=1),  # people
)


@given(st.lists(_NOISY, max_size=30), st.floats(0.1, 20), st.none() | st.floats(1e-9, 0.1))
def test_no_person_ever_spends_more_than_the_budget(sequence, epsilon_budget, delta_budget):
    """Whatever columns and people a sequence of releases has: for each person, both sums stay within the limits."""
    policy, entries = Policy(epsilon_budget=epsilon_budget, delta_budget=delta_budget), list[LedgerEntry]()
    spent: dict[int, list[tuple[float, float]]] = {}
    for epsilon, delta, rows, columns, people in sequence:
        values = {f"c{c}": ReleasedColumn(_sketch([1000 * c + person for person in people])) for c in columns}
        new = Release("noisy", "north", "", "0" * 64, rows, 0, values, epsilon=epsilon, delta=delta)
        try:
            check_privacy_budget(new, entries, policy)
        except DisclosureError:
            continue
        entries.append(LedgerEntry(len(entries) + 1, "", new))
        for person in people:
            spent.setdefault(person, []).append((epsilon, delta))
    largest = max((entry.release.rows for entry in entries), default=1)
    for releases in spent.values():
        epsilons, deltas = zip(*releases, strict=True)
        assert math.fsum(epsilons) <= epsilon_budget * (1 + 1e-9)
        assert math.fsum(deltas) <= policy.delta_limit(largest) * (1 + 1e-9)


@given(st.lists(st.sampled_from([0.1, 0.2, 0.3]), min_size=1, max_size=9))
def test_a_budget_may_be_spent_to_the_last_whatever_the_roundings(epsilons):
    entries = list[LedgerEntry]()
    for number, epsilon in enumerate(epsilons, start=1):
        new = Release("noisy", "north", "", "0" * 64, 400, 0, epsilon=epsilon)
        check_privacy_budget(new, entries, Policy(epsilon_budget=[*accumulate(epsilons)][-1]))
        entries.append(LedgerEntry(number, "", new))


def _sketch(values: list[int]) -> ValueSketch:
    sketcher = RowSketcher(b"secret")
    sketcher.add_values(to_table({"a": np.array(values, dtype=np.float64)}))
    return sketcher.columns["a"]
