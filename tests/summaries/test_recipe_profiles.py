"""Profiles after a recipe: exact where they can be, near where quantiles decide, else an error."""

import numpy as np
import pytest

from fedcdh.data.recipe_file import Recipes
from fedcdh.data.recipes import LabelRecipe, NumberRecipe, Threshold, UnitConversion
from fedcdh.errors import PlanError
from fedcdh.summaries.profiles import profile
from fedcdh.summaries.recipe_profiles import prepare_profile

ROWS = {
    "x": np.random.default_rng(0).lognormal(1, 0.7, 500),
    "ward": np.random.default_rng(1).choice(["a", "b", "c"], 500).tolist(),
}
RAW = profile(ROWS, "north").columns


def described(name, recipe):
    return profile(ROWS, "north", recipes=Recipes({name: recipe})).columns[name]


@pytest.mark.parametrize(
    "recipe",
    [LabelRecipe((("bc", ("b", "c")),)), LabelRecipe((), ("a",), "other"), LabelRecipe((("yes", ("a",)),), (), "no")],
)
def test_counts_of_groups_are_exact(recipe):
    assert prepare_profile(RAW["ward"], recipe, "ward", "north") == described("ward", recipe)


def test_conversions_of_units_are_exact_up_to_rounding():
    recipe = NumberRecipe(conversion=UnitConversion(18.02, 3.0))
    found, expected = prepare_profile(RAW["x"], recipe, "x", "north"), described("x", recipe)
    assert found.mean == pytest.approx(expected.mean)
    assert found.squares == pytest.approx(expected.squares)
    assert found.quantiles == pytest.approx(expected.quantiles)


@pytest.mark.parametrize("recipe", [NumberRecipe(logarithm="log"), NumberRecipe(clip=(1, 6)), NumberRecipe(step=0.25)])
def test_quantiles_follow_and_location_and_scale_are_near(recipe):
    found, expected = prepare_profile(RAW["x"], recipe, "x", "north"), described("x", recipe)
    assert found.quantiles == pytest.approx(expected.quantiles, abs=0.13)
    assert found.location == pytest.approx(expected.location, abs=0.2 * expected.scale)
    assert found.scale == pytest.approx(expected.scale, rel=0.25)


def test_a_profile_that_was_made_with_the_recipe_stays_as_it_is():
    recipe = LabelRecipe((("bc", ("b", "c")),))
    assert prepare_profile(described("ward", recipe), recipe, "ward", "north") == described("ward", recipe)


def test_coarser_groups_follow_from_finer_ones_and_not_the_reverse():
    fine, coarse = LabelRecipe((("bc", ("b", "c")),)), LabelRecipe((("abc", ("a", "b", "c")),))
    assert prepare_profile(described("ward", fine), coarse, "ward", "north").counts == (500,)
    with pytest.raises(PlanError, match="made with the recipes of the declaration"):
        prepare_profile(described("ward", coarse), fine, "ward", "north")


@pytest.mark.parametrize(
    ("name", "recipe"),
    [("x", NumberRecipe(threshold=Threshold(2))), ("x", LabelRecipe((("a", ("b",)),))), ("ward", NumberRecipe(step=1))],
)
def test_what_does_not_follow_is_asked_for_again(name, recipe):
    with pytest.raises(PlanError, match="Ask the client for it again"):
        prepare_profile(RAW[name], recipe, name, "north")


def test_a_logarithm_of_zeros_is_refused_with_a_way_out():
    zeros = profile({"x": [0.0] * 40 + [1.0] * 60}, "north").columns["x"]
    with pytest.raises(PlanError, match="log1p"):
        prepare_profile(zeros, NumberRecipe(logarithm="log"), "x", "north")
