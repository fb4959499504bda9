"""Recipes of several sites become one, whatever their order."""

from itertools import permutations

import pytest

from fedcdh.data.recipe_file import Recipes
from fedcdh.data.recipe_merging import merge_recipes, name_group
from fedcdh.errors import PlanError

SITES = [
    Recipes.from_toml(text)
    for text in (
        '[recipes.nyha]\ngroups = {"III/IV" = ["III", "IV"]}\n[recipes.crp]\nlog = true\nclip = [0, 90]',
        '[recipes.nyha]\ngroups = {"I/II" = ["I", "II"]}\n[recipes.crp]\nlog = "log1p"\nclip = [1, 99]',
        '[recipes.nyha]\ngroups = {"IV/V" = ["IV", "V"]}\n[recipes.chol]\nexclude = true',
        "[recipes.chol]\nround = 5",
    )
]


def test_the_order_of_sites_makes_no_difference():
    merged = {merge_recipes(order).to_toml() for order in permutations(SITES)}
    assert len(merged) == 1
    found = Recipes.from_toml(merged.pop())
    assert dict(found.by_variable["nyha"].groups) == {"I/II": ("I", "II"), "III/IV/V": ("III", "IV", "V")}
    assert (found.by_variable["crp"].clip, found.by_variable["crp"].logarithm) == ((1.0, 90.0), "log1p")
    assert found.excluded == {"chol"}
    assert "chol" not in found.by_variable


def test_merging_with_itself_changes_nothing():
    for one in SITES:
        assert merge_recipes([one, one]) == one


@pytest.mark.parametrize(
    ("one", "other", "reason"),
    [
        ("binary = {above = 1}", "binary = {above = 2}", "thresholds"),
        ("log = true", 'groups = {"a" = ["b"]}', "labels"),
        ("clip = [0, 1]", "clip = [2, 3]", "no value in common"),
        ("factor = 2", "factor = 3", "conversions"),
        ('keep = ["a"]\nother = "x"', 'keep = ["a"]\nother = "y"', "other labels"),
    ],
)
def test_contradictions_are_named(one, other, reason):
    with pytest.raises(PlanError, match=reason):
        merge_recipes([Recipes.from_toml(f"[recipes.a]\n{text}") for text in (one, other)])


def test_a_group_of_many_labels_has_a_short_name():
    assert len(name_group([f"ward number {i:03d}" for i in range(50)])) < 40
