"""The order of policies agrees with what policies let leave, and every rule has its sentence."""

from __future__ import annotations

import re
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from policy_studies import PLAN, refusal, table

from fedcdh.privacy.disclosure import policy_rules
from fedcdh.privacy.disclosure.policy import Policy
from fedcdh.privacy.disclosure.policy_rules import describe_policy, find_looser_rules, policy_template

KEY = "ed25519:A6EHv/POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg="
OTHER_VALUES: dict[str, tuple[object, object]] = {
    "allowed_variables": (frozenset(), frozenset({"x"})),
    "excluded_variables": (frozenset({"x"}), frozenset({"y"})),
    "plans": (frozenset(), frozenset({"0" * 12})),
    "coordinator_keys": (frozenset({KEY}), frozenset({KEY})),
}


def test_every_setting_has_an_order_and_a_sentence_of_its_own():
    """A new setting without them would pass for looser, and be shown by its bare name."""
    ordered = (
        policy_rules._SMALLER_IS_STRICTER
        | policy_rules._LARGER_IS_STRICTER
        | policy_rules._NARROWER_IS_STRICTER
        | policy_rules._FLOOR_OF_PLANS.keys()
        | {"unsigned_plans", "delta_budget"}
    )
    assert ordered == {field.name for field in fields(Policy)}
    assert not [rule for rule in describe_policy(Policy()) if rule.sentence.startswith("The setting ")]


def test_the_default_differs_in_nothing():
    assert {rule.comparison for rule in describe_policy(Policy())} == {"default"}
    assert find_looser_rules(Policy()) == ()


@pytest.mark.parametrize("name", sorted(policy_rules._SMALLER_IS_STRICTER))
def test_a_smaller_limit_is_stricter(name):
    at = getattr(Policy(), name)
    if name == "waive_counts_below_epsilon":
        assert find_looser_rules(replace(Policy(), waive_counts_below_epsilon=1e-9))
        return
    step = 1 if isinstance(at, int) else 1e-9
    assert not find_looser_rules(replace(Policy(), **{name: at - step}))
    assert [rule.setting for rule in find_looser_rules(replace(Policy(), **{name: at + step}))] == [name]


@pytest.mark.parametrize("name", ["max_discrete_values", "min_threshold_share", "min_sum_sites", "min_group_sites"])
def test_a_larger_minimum_is_stricter(name):
    at = getattr(Policy(), name)
    step = 1 if isinstance(at, int) else 0.01
    assert not find_looser_rules(replace(Policy(), **{name: at + step}))
    if at > 1 or step < 1:
        assert find_looser_rules(replace(Policy(), **{name: at - step}))


def test_lists_are_stricter_than_none_and_unsigned_plans_are_looser_than_signed_ones():
    for name, values in OTHER_VALUES.items():
        for value in values:
            rule = next(one for one in describe_policy(replace(Policy(), **{name: value})) if one.setting == name)
            assert rule.comparison == "stricter"
    assert "Only these variables may leave: none." in describe_policy(Policy(allowed_variables=frozenset()))[2].sentence
    assert find_looser_rules(Policy(coordinator_keys=frozenset({KEY}), unsigned_plans="accept"))
    assert not find_looser_rules(Policy(unsigned_plans="accept"))  # without keys, every plan is accepted anyway


POLICIES = st.builds(
    Policy,
    min_rows=st.none() | st.integers(1, 400),
    min_cell_count=st.none() | st.integers(1, 60),
    max_leverage=st.sampled_from([0.2, 0.9, 0.99, 1.0]),
    max_rms_distance=st.sampled_from([0.5, 10.0, 50.0]),
    disclosure_control=st.booleans(),
    excluded_variables=st.sampled_from([frozenset(), frozenset({"x"})]),
    allowed_variables=st.sampled_from([None, frozenset({"x", "g", "h"}), frozenset({"x"})]),
)


@given(policy=POLICIES, rows=st.integers(60, 320), g=st.integers(1, 40), h=st.integers(1, 40))
def test_what_passes_a_policy_without_looser_rules_passes_the_default(policy, rows, g, h):
    sample = table(rows, g, h, min(g, h) // 2)
    if not find_looser_rules(policy) and not refusal(policy, sample, PLAN):
        assert not refusal(Policy(), sample, PLAN)


def test_the_template_changes_nothing_and_every_line_of_it_can_be_used():
    text = policy_template()
    assert Policy.from_toml(text) == Policy()
    assert re.findall(r"^# (\w+) = ", text, re.MULTILINE) == [field.name for field in fields(Policy)]
    used = re.sub(r"^# (\w+ = )", r"\1", text, flags=re.MULTILINE).replace("ed25519:...", KEY)
    assert {rule.setting for rule in describe_policy(Policy.from_toml(used)) if rule.comparison != "default"} <= {
        "min_rows",
        "min_cell_count",
        "delta_budget",
        *OTHER_VALUES,
    }
