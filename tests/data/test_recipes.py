"""Recipes: what they do to columns, in which order, and what they refuse."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcdh.data.columns import CategoricalColumn, NumericColumn
from fedcdh.data.recipes import LabelRecipe, NumberRecipe, Threshold, UnitConversion, describe_recipe
from fedcdh.errors import DataError, PlanError

NUMBERS = st.lists(st.floats(-1e6, 1e6) | st.just(float("nan")), min_size=1, max_size=30)


def apply(recipe, values, client="north"):
    return recipe.apply(NumericColumn(np.array(values, dtype=float)), "column 'x'", client)


def test_units_come_first_then_clip_rounding_and_logarithm():
    recipe = NumberRecipe(conversion=UnitConversion(2.0, 1.0), clip=(4, 20), step=5, logarithm="log")
    found = apply(recipe, [0.0, 3.0, 100.0])  # 1, 7, 201; 4, 7, 20; 5, 5, 20
    assert found.values.tolist() == np.log([5.0, 5.0, 20.0]).tolist()


def test_a_client_with_its_own_units_does_not_get_those_of_the_others():
    recipe = NumberRecipe(conversion=UnitConversion(2.0), client_conversions=(("south", UnitConversion(3.0)),))
    assert apply(recipe, [1.0]).values.tolist() == [2.0]
    assert apply(recipe, [1.0], "south").values.tolist() == [3.0]


@given(
    NUMBERS, st.sampled_from([NumberRecipe(step=0.5), NumberRecipe(clip=(-3, 7)), NumberRecipe(threshold=Threshold(2))])
)
def test_missing_values_stay_missing_and_nothing_else_becomes_missing(values, recipe):
    column = NumericColumn(np.array(values))
    assert (recipe.apply(column, "column 'x'", "north").missing == column.missing).all()


@pytest.mark.parametrize(("side", "expected"), [("above", [0, 0, 1, -1]), ("at_least", [0, 1, 1, -1])])
def test_a_threshold_is_tested_at_the_limit(side, expected):
    found = apply(NumberRecipe(threshold=Threshold(40, side)), [39.9, 40.0, 40.1, np.nan])
    assert found.levels == ("no", "yes")
    assert found.codes.tolist() == expected


@pytest.mark.parametrize(
    ("logarithm", "values", "count", "advice"),
    [("log", [0.0, -1.0, 2.0], 2, "log1p"), ("log1p", [-1.0, -0.5, np.nan], 1, "clip")],
)
def test_values_without_a_logarithm_are_counted_and_never_quoted(logarithm, values, count, advice):
    with pytest.raises(DataError, match=f"has {count} values of") as refusal:
        apply(NumberRecipe(logarithm=logarithm), values)
    assert advice in str(refusal.value)


@given(st.lists(st.sampled_from(["I", "II", "III", "IV", None]), min_size=1, max_size=30))
def test_groups_do_what_replacing_the_labels_does(labels):
    recipe = LabelRecipe((("III/IV", ("III", "IV")),))
    by_hand = CategoricalColumn.of(["III/IV" if label in ("III", "IV") else label for label in labels])
    found = recipe.apply(CategoricalColumn.of(labels), "column 'nyha'", "north")
    assert (found.levels, found.codes.tolist()) == (by_hand.levels, by_hand.codes.tolist())


def test_numbers_that_are_codes_are_grouped_as_labels():
    recipe = LabelRecipe((("2-4", ("2", "3", "4")),))
    found = recipe.apply(NumericColumn(np.array([1.0, 3.0, np.nan])), "column 'x'", "north")
    assert [found.levels[code] if code >= 0 else None for code in found.codes] == ["1", "2-4", None]
    assert recipe.level_of("3.0") == "2-4"


def test_labels_that_nobody_listed_become_one_level():
    recipe = LabelRecipe((("ab", ("a", "b")),), ("c",), "other")
    found = recipe.apply(CategoricalColumn.of(["a", "c", "x", "other"]), "column 'x'", "north")
    assert [found.levels[code] for code in found.codes] == ["ab", "c", "other", "other"]
    assert recipe.levels == ("ab", "c", "other")


def test_a_label_with_the_name_of_a_group_that_does_not_list_it_is_refused():
    with pytest.raises(DataError, match="name of a group"):
        LabelRecipe((("I", ("III", "IV")),)).apply(CategoricalColumn.of(["I", "III"]), "column 'nyha'", "north")


@pytest.mark.parametrize(
    "make",
    [
        lambda: UnitConversion(0.0),
        lambda: UnitConversion(float("nan")),
        lambda: NumberRecipe(clip=(3, 3)),
        lambda: NumberRecipe(step=0),
        lambda: NumberRecipe(step=True),
        lambda: NumberRecipe(logarithm="log2"),
        lambda: NumberRecipe(logarithm="log", threshold=Threshold(1)),
        lambda: LabelRecipe(),
        lambda: LabelRecipe((("a", ()),)),
        lambda: LabelRecipe((("a", ("x",)), ("b", ("x",)))),
        lambda: LabelRecipe((("a", ("x",)), ("x", ("y",)))),
        lambda: LabelRecipe(keep=("x",)),
        lambda: LabelRecipe((("a", ("",)),)),
    ],
)
def test_recipes_that_cannot_be_used_are_refused(make):
    with pytest.raises(PlanError, match="a recipe cannot be used"):
        make()


def test_text_in_a_column_of_numbers_is_refused():
    with pytest.raises(DataError, match="holds text"):
        NumberRecipe(step=1).apply(CategoricalColumn.of(["high"]), "column 'x'", "north")


def test_a_recipe_is_described_in_the_order_in_which_it_is_carried_out():
    recipe = NumberRecipe("mmol/l", None, (("south", UnitConversion(0.05, 1, "mg/dl")),), (0, 9), 0.5, "log1p")
    assert describe_recipe(recipe) == (
        "in mmol/l, converted from mg/dl at south (times 0.05 plus 1), clipped to 0 to 9, rounded to multiples of 0.5, "
        "natural logarithm of 1 plus the value"
    )
