"""Log weights of families: what counts in part, what is never turned into a direction, and what stays whole."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from weighted_dags import NAMES, all_families

from fedcdh.inference.evidence.tempered_scores import (
    CAUTIOUS_POWERS,
    CHANGE_COST,
    RESIDUAL_POWERS,
    SUMMARY_POWERS,
    Power,
    ScoredFamilies,
    add_changed_families,
    complete_scores,
    parameter_costs,
    undirected_gains,
)
from fedcdh.protocols import DOMAIN, Family

NODES = (DOMAIN, *NAMES[:3])
FAMILIES = tuple(all_families(NODES))
WHOLE = Power(1.0, 1.0, "all")
seeds = st.integers(0, 9999)


def scored(seed, scale=50.0, rows=1000):
    """Return scores at random; the prior and the costs are those of a study."""
    rng = np.random.default_rng(seed)
    prior = np.array([-1.5 * len(one.parents) for one in FAMILIES])
    linear = prior + scale * rng.standard_normal(len(FAMILIES))
    full = linear + scale * rng.exponential(size=len(FAMILIES))
    return ScoredFamilies(FAMILIES, prior, linear, full, parameter_costs(FAMILIES, rows, {}))


def all_pairs():
    return [frozenset(pair) for pair in product(NODES, NODES) if len(set(pair)) == 2]


@pytest.mark.parametrize("powers", [RESIDUAL_POWERS, SUMMARY_POWERS, CAUTIOUS_POWERS])
def test_the_shares_of_a_mean_sum_to_one_and_no_evidence_counts_twice(powers):
    assert sum(one.share for one in powers) == pytest.approx(1.0)
    for one in powers:
        assert 0 < one.power <= 1
        assert 0 <= one.cost <= 1
        assert one.directed in {"all", "clear", "none"}
        assert one.direction is None or 0 <= one.direction <= one.power


@given(seeds)
def test_all_evidence_without_doubts_is_the_score_itself(seed):
    families = scored(seed)
    assert families.weigh(WHOLE, {}, {}).tolist() == pytest.approx(families.full.tolist())
    neutral = families.weigh(Power(1.0, 1.0, "none"), {}, {})
    assert neutral.tolist() == pytest.approx(families.linear.tolist())


@given(seeds, st.floats(0.01, 1), st.sets(st.sampled_from(NAMES[:3])), st.sets(st.sampled_from(NAMES[:3])))
def test_doubts_take_noise_and_curvature_from_their_nodes_only(seed, power, undirected, doubtful):
    families = scored(seed)
    for directed, left_out in (("all", undirected), ("clear", undirected | doubtful), ("none", set(NAMES))):
        part = Power(1.0, power, directed)
        found = families.weigh(part, {}, {}, frozenset(undirected), frozenset(doubtful))
        for one, weight, linear, full, prior, cost in zip(
            FAMILIES, found, families.linear, families.full, families.prior, families.cost, strict=True
        ):
            evidence = (linear if one.node in left_out else full) - prior
            assert weight == pytest.approx(prior + power * evidence + (1 - power) * cost)


@given(st.integers(2, 10**6), st.sampled_from([*RESIDUAL_POWERS, *SUMMARY_POWERS]), st.floats(0, 3))
def test_parents_that_explain_nothing_stay_unlikely_at_every_power(rows, part, luck):
    """A parent without effect costs half the log of the rows; what counts of that and the cost are as much together.

    Without the cost, a small power would make every edge nearly as likely as not.
    """
    cost = parameter_costs(FAMILIES, rows, {})
    none = np.zeros(len(FAMILIES))
    families = ScoredFamilies(FAMILIES, none, cost + luck, cost + luck, cost)
    weights = dict(zip(FAMILIES, families.weigh(part, {}, {}).tolist(), strict=True))
    kept = part.power + (1 - part.power) * part.cost
    for one in FAMILIES:
        lost = weights[one] - weights[Family(one.node)]
        assert lost == pytest.approx(kept * cost[FAMILIES.index(one)], abs=1e-6)
    assert kept >= 0.5


@given(seeds, st.sampled_from(["all", "none"]), st.floats(0.05, 1))
def test_where_directions_do_not_count_an_edge_is_as_likely_either_way(seed, directed, power):
    rng = np.random.default_rng(seed)
    factors = {pair: float(value) for pair, value in zip(all_pairs(), 30 * rng.standard_normal(99), strict=False)}
    weights = dict(zip(FAMILIES, scored(seed).weigh(Power(1, power, directed, 0.5, 0.0), {}, factors), strict=True))
    for one, other in (("a", "b"), ("a", "c"), ("b", "c")):
        gains = [
            weights[Family(head, frozenset({tail}))] - weights[Family(head)]
            for tail, head in ((one, other), (other, one))
        ]
        assert gains[0] == pytest.approx(gains[1], abs=1e-9)
        prior, cost = -1.5, parameter_costs([Family("a", frozenset("b"))], 1000, {})[0]
        wanted = prior + power * (factors[frozenset((one, other))] - prior) + (1 - power) * 0.5 * cost
        assert gains[0] == pytest.approx(wanted, abs=1e-9)


def test_pairs_without_a_factor_count_by_their_evidence():
    families = scored(1)
    part = Power(1.0, 0.5, "all", 0.5, direction=0.5)
    assert families.weigh(part, {}, {}).tolist() == pytest.approx(
        families.weigh(Power(1.0, 0.5, "all", 0.5), {}, {}).tolist()
    )


@given(
    seeds, st.lists(st.sampled_from([("a", "b"), ("b", "c"), ("a", "c"), (DOMAIN, "b"), (DOMAIN, "a")]), unique=True)
)
def test_undirected_gains_are_the_larger_of_both_directions_and_never_a_loss(seed, arrows):
    families = scored(seed)
    gains = undirected_gains(families, arrows)
    assert gains.keys() == {frozenset(arrow) for arrow in arrows if arrow[0] != DOMAIN}
    assert all(gain >= 0 for gain in gains.values())
    beyond = dict(zip(FAMILIES, families.full - families.linear, strict=True))
    for tail, head in (arrow for arrow in arrows if arrow[0] != DOMAIN):
        others = frozenset(one for one, other in arrows if other == head) - {tail}
        forward = beyond[Family(head, others | {tail})] - beyond[Family(head, others)]
        assert gains[frozenset((tail, head))] >= forward - 1e-9
    weights = dict(zip(FAMILIES, families.weigh(Power(1.0, 1.0, "none"), gains, {}), strict=True))
    linear = dict(zip(FAMILIES, families.linear, strict=True))
    for pair, gain in gains.items():
        one, other = sorted(pair)
        for tail, head in ((one, other), (other, one)):  # the same in either direction
            family = Family(head, frozenset({tail}))
            assert weights[family] - linear[family] == pytest.approx(gain, abs=1e-9)


@given(seeds, st.sets(st.sampled_from(NODES[:1] + NODES[2:])))
def test_a_change_gains_as_much_with_any_parents_where_changes_direct_nothing(seed, best):
    families = scored(seed)
    parents = {"a": frozenset(best), "b": frozenset(), "c": frozenset({DOMAIN})}
    before = dict(zip(FAMILIES, families.full.tolist(), strict=True))
    after = dict(zip(FAMILIES, families.neutralize_changes(families.full, parents).tolist(), strict=True))
    for node, several in parents.items():
        same, differs = Family(node, several - {DOMAIN}), Family(node, several | {DOMAIN})
        gain = before[differs] - before[same]
        assert after[same] == pytest.approx(before[same])  # the best graph keeps its weight
        for one in (one for one in FAMILIES if one.node == node):
            if DOMAIN in one.parents:
                assert after[one] == before[one]
            else:
                assert after[Family(node, one.parents | {DOMAIN})] - after[one] == pytest.approx(gain)


def test_the_order_of_parents_changes_no_digit():
    """Sets are read in an order that differs between processes: only an exact sum is the same in all of them."""
    family, zero = Family("a", frozenset("bcd")), np.zeros(1)
    gains = {frozenset("ab"): 1e16, frozenset("ac"): 1.0, frozenset("ad"): -1e16}
    one = ScoredFamilies((family,), zero, zero, zero, zero)
    assert one.weigh(Power(1.0, 1.0, "none"), gains, {}).tolist() == [1.0]
    assert one.weigh(Power(1.0, 1.0, "none", direction=0.0), {}, gains).tolist() == [1.0]


def test_nodes_whose_families_are_missing_keep_their_weights():
    few = [Family("a"), Family("a", frozenset("b")), Family("b"), Family("b", frozenset({DOMAIN}))]
    zeros, weights = np.zeros(4), np.array([1.0, 2.0, 3.0, 5.0])
    kept = ScoredFamilies(tuple(few), zeros, zeros, zeros, zeros)
    found = kept.neutralize_changes(weights, {"a": frozenset("b"), "b": frozenset({"a"})})
    assert found.tolist() == weights.tolist()


@given(seeds, st.floats(0, 1))
def test_families_that_nobody_was_asked_about_are_given_no_benefit(seed, share):
    rng = np.random.default_rng(seed)
    linear, curved = 50 * rng.standard_normal((2, len(FAMILIES)))
    gain = rng.standard_normal(len(FAMILIES)) * 30
    asked = rng.random(len(FAMILIES)) < share
    known = {one: float(curved[n] + gain[n]) for n, one in enumerate(FAMILIES) if asked[n]}
    found = complete_scores(FAMILIES, known, linear, curved)
    for n, one in enumerate(FAMILIES):
        gains = [gain[other] for other in range(len(FAMILIES)) if asked[other] and FAMILIES[other].node == one.node]
        if asked[n]:
            assert found[n] == known[one]
        else:
            assert found[n] == pytest.approx(min(linear[n], curved[n]) + min(gains, default=0.0))
            assert found[n] <= curved[n] + min(gains, default=0.0) + 1e-9


@given(seeds, st.floats(0, 1))
def test_a_family_gains_by_noise_as_much_as_that_with_or_without_the_domain(seed, share):
    """Otherwise a change that nobody was asked about would seem to cost all that the noise says about directions."""
    rng = np.random.default_rng(seed)
    curved, gain = 50 * rng.standard_normal((2, len(FAMILIES)))
    asked = rng.random(len(FAMILIES)) < share
    known = {one: float(curved[n] + gain[n]) for n, one in enumerate(FAMILIES) if asked[n]}
    found = add_changed_families(FAMILIES, known, curved)
    assert {one: found[one] for one in known} == known
    assert found.keys() == known.keys() | {Family(one.node, one.parents ^ {DOMAIN}) for one in known}
    for one in found.keys() - known.keys():
        other = Family(one.node, one.parents ^ {DOMAIN})
        difference = curved[FAMILIES.index(one)] - curved[FAMILIES.index(other)]
        assert found[one] - known[other] == pytest.approx(difference, abs=1e-9)


def test_the_gain_of_a_change_is_that_of_gaussian_scores_where_one_side_was_asked():
    curved = np.arange(len(FAMILIES), dtype=float)
    plain = {one: 100.0 + number for number, one in enumerate(FAMILIES) if DOMAIN not in one.parents}
    full = complete_scores(FAMILIES, add_changed_families(FAMILIES, plain, curved), curved, curved)
    known = dict(zip(FAMILIES, full - curved, strict=True))
    for one in plain:
        assert known[one] == pytest.approx(known[Family(one.node, one.parents | {DOMAIN})])


@settings(max_examples=40)
@given(st.floats(1, 1e6), st.integers(2, 6), st.integers(2, 6))
def test_parameters_cost_half_the_log_of_the_rows_for_each(rows, of_node, of_parent):
    levels = {"a": of_node, "b": of_parent}
    families = [Family("a", frozenset("b")), Family("a", frozenset({"b", DOMAIN})), Family("c", frozenset("d"))]
    costs = parameter_costs(families, rows, levels)
    each = np.log(rows) / 2
    assert costs[0] == pytest.approx(-each * (of_node - 1) * (of_parent - 1))
    assert costs[1] == pytest.approx(costs[0] - CHANGE_COST)
    assert costs[2] == pytest.approx(-each)
    assert parameter_costs([Family("a")], 0.0, {}).tolist() == [0.0]
