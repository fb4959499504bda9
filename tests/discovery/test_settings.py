"""Settings: defaults of the significance level, and values out of range at their limits."""

from __future__ import annotations

from math import comb

import pytest

from fedcdh.discovery.settings import DEFAULT_ALPHA, MAX_VARIABLES_AT_DEFAULT_ALPHA, Settings, default_alpha
from fedcdh.errors import SettingsError

PROBABILITIES = ("min_probability", "min_arrow_probability")


def test_the_default_level_expects_as_many_false_pairs_among_many_variables_as_among_thirty():
    most = MAX_VARIABLES_AT_DEFAULT_ALPHA
    assert default_alpha("constraint", most) == DEFAULT_ALPHA
    assert default_alpha("constraint", most + 1) < DEFAULT_ALPHA
    for variables in (31, 100, 1000):
        expected = default_alpha("constraint", variables) * comb(variables, 2)
        assert expected == pytest.approx(DEFAULT_ALPHA * comb(most, 2))
    assert default_alpha("paper", 1000) == default_alpha("evidence", 1000) == DEFAULT_ALPHA


@pytest.mark.parametrize(
    "values",
    [{"alpha": 0}, {"alpha": 0.999}, {"max_conditioning_size": 0}, {"seed": 0}, {"workers": 1}, {"workers": -1}]
    + [{name: value} for name in PROBABILITIES for value in (0.5, 0.999)]
    + [{"min_effect": 0}, {"min_effect": 0.999}],
    ids=str,
)
def test_values_at_the_limit_are_accepted(values):
    assert Settings("constraint", **values)


@pytest.mark.parametrize(
    "values",
    [
        {"alpha": -1e-9},
        {"alpha": 1},
        {"alpha": "0.05"},
        {"max_conditioning_size": -1},
        {"max_conditioning_size": 1.5},
        {"seed": -1},
        {"rounds": "two"},
        {"min_probability": 0.499},
        {"min_probability": "0.5"},
        {"min_arrow_probability": 1},
        {"min_arrow_probability": 0.3},
        {"min_effect": -0.001},
        {"min_effect": 1},
        {"workers": 0},
        {"workers": -2},
        {"knowledge": {"required": []}},
        {"min_effect": -1e-9},
        {"min_effect": "0.1"},
        {"min_effect": float("nan")},
        *({name: value} for name in PROBABILITIES for value in (0.499, 1, 1.5, "0.8", None, float("nan"))),
    ],
    ids=str,
)
def test_values_beyond_the_limit_are_refused_with_the_name_of_the_parameter(values):
    (name,) = values
    with pytest.raises(SettingsError, match=f"{name} is") as refusal:
        Settings("constraint", **values)
    assert refusal.value.parameter == name


def test_workers_do_not_count_in_comparisons():
    assert Settings("constraint", workers=3) == Settings("constraint")
    assert Settings("constraint", seed=3) != Settings("constraint")
