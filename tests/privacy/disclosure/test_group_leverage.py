"""Leverage of small groups of people."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedcdh.data.table import to_table
from fedcdh.errors import DisclosureError
from fedcdh.privacy.disclosure.group_leverage import (
    ALL_VARIABLES,
    GroupLeverage,
    GroupLimits,
    ReplicateGroups,
    check_groups,
    measure_groups,
)
from fedcdh.privacy.disclosure.policy import Policy
from fedcdh.privacy.disclosure.row_scan import RowScan, ScanOptions, scan_rows
from fedcdh.privacy.releases import ReleaseContext, release_summary
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.bootstrap import bootstrap_summaries
from fedcdh.summaries.encoder import Encoder
from fedcdh.summaries.features import Hermite
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.variables import Continuous

PLAN = StudyPlan((Continuous("a"), Continuous("b")), ("north", "south"))
OPTIONS = ScanOptions(max_leverage=0.99, max_group_people=11)


def table(n: int = 300, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {"a": rng.standard_normal(n), "b": rng.standard_normal(n)}


def with_group(people: int, value: float, n: int = 300) -> dict[str, np.ndarray]:
    rows = table(n)
    rows["a"][:people] = value
    return rows


def groups_in(scan: RowScan, plan: StudyPlan = PLAN, people: int = 11) -> dict[str, GroupLeverage]:
    summary = scan.summary(0.5)
    assert scan.high_leverage is not None
    return measure_groups(scan.high_leverage.rows(summary), summary, plan, people)


def groups_of(rows: dict[str, np.ndarray], plan: StudyPlan = PLAN, people: int = 11) -> dict[str, GroupLeverage]:
    return groups_in(scan_rows(rows, plan, "north", replace(OPTIONS, max_group_people=people)), plan, people)


def refusal(rows: dict[str, np.ndarray], plan: StudyPlan = PLAN, policy: Policy = Policy(), **more) -> str:  # noqa: B008
    try:
        release_summary(rows, plan, ReleaseContext("north", policy), **more)
    except DisclosureError as refused:
        return str(refused)
    return ""


@pytest.mark.parametrize("people", [2, 3, 8, 11])
@pytest.mark.parametrize("n", [300, 5000])
def test_people_who_share_an_extreme_value_are_refused_whatever_their_number(people, n):
    message = refusal(with_group(people, 999.0, n))
    assert f"by their values of 'a' ({people} people)" in message
    assert message.count("\n- ") == 1, "one cause, one sentence"


def test_as_many_as_the_minimum_cell_count_may_share_a_value():
    assert not refusal(with_group(12, 20.0))
    assert refusal(with_group(12, 20.0), policy=Policy(min_cell_count=13))


def test_the_limit_is_the_limit():
    """At the limit a summary leaves, and just above it does not."""
    rows = with_group(3, 6.0)
    found = float(max(group.whole.max() for group in groups_of(rows).values()))
    assert 0.98 < found < 1
    lenient = Policy(max_leverage=1.0, max_group_leverage=found)
    assert not refusal(rows, policy=lenient)
    assert refusal(rows, policy=replace(lenient, max_group_leverage=float(np.nextafter(found, 0))))
    assert not refusal(rows, policy=replace(lenient, max_group_leverage=1.0))


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10**6), st.sampled_from([2, 3]))
def test_no_group_has_a_higher_leverage_than_the_one_that_is_found(seed, people):
    """By trying all groups of the rows with a high leverage; equal weights, and the largest eigenvalue."""
    rng = np.random.default_rng(seed)
    rows = {"a": rng.standard_t(3, 120)}
    plan = replace(PLAN, variables=(Continuous("a"),))
    summary = summarize(rows, plan, "north")
    features = Encoder(plan, "north")(to_table(rows))
    leverage = np.einsum("ip,pq,iq->i", features.T, np.linalg.pinv(summary.moments.astype(float)), features.T)
    few = features[:, np.argsort(-leverage)[:14]]
    found = measure_groups(few, summary, plan, people)["a"]
    matrix = few.T @ np.linalg.pinv(summary.moments.astype(float)) @ few
    every = [matrix[np.ix_(group, group)] for group in combinations(range(14), people)]
    assert found.whole[-1] <= max(one.sum() / people for one in every) + 1e-6
    assert found.whole[-1] >= 0.97 * max(one.sum() / people for one in every)
    assert found.weighted[-1] == pytest.approx(max(np.linalg.eigvalsh(one)[-1] for one in every), abs=0.02)


@settings(deadline=None, max_examples=15)
@given(st.integers(0, 10**6), st.integers(1, 5), st.integers(1, 3))
def test_groups_depend_on_the_rows_alone(seed, parts, workers):
    """Neither on their order, nor on batches or threads."""
    rows, rng = with_group(3, 4.5, 260), np.random.default_rng(seed)
    order = rng.permutation(260)
    batches = [{name: column[part] for name, column in rows.items()} for part in np.array_split(order, parts)]
    whole = groups_of(rows)
    split = groups_in(scan_rows(batches, PLAN, "north", OPTIONS, workers=workers))
    for name in whole:
        assert np.array_equal(whole[name].whole, split[name].whole)
        assert np.array_equal(whole[name].weighted, split[name].weighted)


def test_sums_of_scans_find_a_group_whose_people_are_in_different_parts():
    rows = with_group(4, 999.0)
    scans = []
    for start in range(4):  # one of the four in each part
        scan, encode = RowScan(PLAN, "north", OPTIONS), Encoder(PLAN, "north")
        scan.add(to_table({name: column[start::4] for name, column in rows.items()}), encode)
        scans.append(scan)
    total = scans[3] + scans[1] + scans[0] + scans[2]
    assert groups_in(total)["a"].whole[2] == pytest.approx(1.0)


def test_a_group_between_others_is_found():
    """Three people in the middle between the bulk and twenty people far out: at neither end of the column."""
    rows = with_group(23, 25.0)
    rows["a"][:3] = 12.0
    assert groups_of(rows)["a"].whole[1] > 0.98


def test_people_who_stand_out_by_two_variables_together_are_found():
    """On the diagonal nobody is far out in either variable, but the columns of both together separate the three."""
    rng = np.random.default_rng(2)
    rows = {"a": rng.standard_normal(400)}
    rows["b"] = rows["a"] + 1e-4 * rng.standard_normal(400)
    rows["a"][:3], rows["b"][:3] = 1.0, -1.0
    found = groups_of(rows)
    assert max(found["a"].whole.max(), found["b"].whole.max()) < 0.9
    assert found[ALL_VARIABLES].whole[1] > 0.98
    assert "3 people can be separated from all others by their values of all variables together" in refusal(
        rows, policy=Policy(max_leverage=1.0)
    )


@pytest.mark.parametrize(
    ("variable", "family"),
    [
        (Continuous("a", 0.0, 70.0), Hermite()),  # its square is a label
        (Continuous("a", 0.0, 1.0, 0.0, 1e3), Hermite()),  # a flat feature is a label, beside a precise value
        (Continuous("a"), Hermite(bandwidth=500.0)),
    ],
)
def test_a_column_that_rounding_turns_into_a_label_is_found(variable, family):
    """However large the mean of the column is beside its one step."""
    plan = replace(PLAN, variables=(variable, Continuous("b")), family=family)
    rows = table(1000)
    columns = Encoder(plan, "north")(to_table(rows))[plan.layout.spans["a"]]
    labels = [column for column in columns if len(np.unique(column)) == 2]
    assert labels, "the plan is not hostile enough"
    fewest = min(min(np.unique(column, return_counts=True)[1]) for column in labels)
    assert 2 <= fewest <= 11, "choose another plan"
    assert groups_of(rows, plan)["a"].whole[fewest - 2] == pytest.approx(1.0)


def test_every_beginning_of_a_label_is_no_group():
    """Twenty people with one value: any eleven of them have a leverage of 11/20."""
    assert groups_of(with_group(20, 25.0))["a"].whole[-1] < 0.6


def test_limits_by_people_and_replicates():
    limits = GroupLimits()
    assert limits.of_wholes(10).tolist() == [0.99, *[0.98] * 9]
    assert GroupLimits(max_leverage=0.9).of_wholes(2) == pytest.approx([1.8 / 1.9, 2.7 / 2.8])
    assert limits.with_any_weights(3) == pytest.approx([0.999, 0.9999, 0.99999])
    more = replace(limits, replicates=20)
    assert (np.diff(more.of_wholes(30)) >= 0).all()
    assert more.of_wholes(30)[-1] == 0.98
    assert (more.with_any_weights(3) < limits.with_any_weights(3)).all()
    assert (GroupLimits(1.0, 1.0).of_wholes(3) == 1).all()


def test_one_sentence_for_all_variables_and_none_for_known_ones():
    high = GroupLeverage(np.array([0.5, 0.99]), np.array([0.5, 0.99]))
    low = GroupLeverage(np.array([0.5, 0.98]), np.array([0.5, 0.99]))
    (sentence,) = check_groups({"a": high, "b": high, "c": low, ALL_VARIABLES: high}, GroupLimits())
    assert "'a' (3 people), 'b' (3 people), expected" in sentence
    pair = GroupLeverage(np.array([0.99]), np.array([0.99]))
    assert not list(check_groups({"a": pair}, GroupLimits()))
    assert list(check_groups({"a": replace(pair, whole=np.nextafter(pair.whole, 1))}, GroupLimits()))
    assert "'c'" not in sentence
    assert not list(check_groups({"c": low, ALL_VARIABLES: low}, GroupLimits()))
    assert not list(check_groups({"a": high, ALL_VARIABLES: high}, GroupLimits(), {"a"}))
    assert not list(check_groups({"a": high}, GroupLimits(max_people=2)))
    uneven = GroupLeverage(np.array([0.5]), np.array([0.9991]))
    assert len(list(check_groups({"a": uneven}, GroupLimits()))) == 1


def test_replicates_demand_more_of_groups():
    """Thirteen people with one value may leave in a summary, and not with a replicate."""
    rows = with_group(13, 25.0, 400)
    assert not refusal(rows)
    message = refusal(rows, replicates=1)
    assert "without bootstrap replicates the summary may leave" in message
    assert "'a' (13 people)" in message


def test_a_replicate_that_leaves_a_neighbour_out_is_refused():
    """Twelve people with one value leave in a summary; in a replicate some of them are missing."""
    rows = with_group(12, 25.0, 400)
    summary = summarize(rows, PLAN, "north")
    groups, policy, refused = ReplicateGroups(PLAN, summary, Policy().group_limits(PLAN)), Policy(max_leverage=1.0), 0
    seen = []

    def observe(block, times):
        groups(block, times)
        seen.append(times[:, (block.columns["a"].values == 25.0)])

    drawn = bootstrap_summaries(rows, PLAN, "north", 5, 1, observer=observe)
    present = (np.concatenate(seen, axis=1) > 0).sum(axis=1)
    for one in drawn:
        assert groups.measure(one)["a"].whole[present[one.replicate - 1] - 2] == pytest.approx(1.0, abs=2e-3)
        with pytest.raises(DisclosureError, match="can be separated"):
            policy.check_replicate(one, PLAN, {}, {}, groups.measure(one))
        refused += 1
    assert refused == 5
    assert present.max() < 12


def test_a_wide_table_keeps_few_rows():
    """The kept rows take bounded memory, whatever the limit for groups is."""
    plan = StudyPlan(tuple(Continuous(f"v{j}") for j in range(40)), ("north",))
    rng = np.random.default_rng(0)
    rows = {f"v{j}": rng.standard_normal(3000) for j in range(40)}
    scan = scan_rows(rows, plan, "north", ScanOptions(max_leverage=0.99, max_group_people=10**6))
    assert scan.high_leverage is not None
    assert scan.high_leverage.rows(scan.summary(1.0)).size <= 1 << 23
