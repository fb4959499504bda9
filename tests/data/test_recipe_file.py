"""Recipes as TOML: read strictly, written so that they come back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcdh.data.recipe_file import Recipes, parse_recipe, recipe_to_document
from fedcdh.data.recipes import LabelRecipe, NumberRecipe, Threshold, UnitConversion
from fedcdh.errors import PlanError

NUMBER = st.floats(-1e6, 1e6)
TEXT = st.text("abcdefghij I/é\"'", min_size=1, max_size=6).filter(lambda text: text.strip() == text)
CONVERSION = st.builds(UnitConversion, NUMBER.filter(bool), NUMBER, st.just("") | TEXT)
NUMBER_RECIPE = st.builds(
    NumberRecipe,
    units=st.just("") | TEXT,
    conversion=st.none() | CONVERSION,
    client_conversions=st.dictionaries(TEXT, CONVERSION, max_size=2).map(lambda found: tuple(found.items())),
    clip=st.none() | st.tuples(st.floats(-9, -1), st.floats(1, 9)),
    step=st.none() | st.floats(0.1, 9),
    logarithm=st.sampled_from(["none", "log", "log1p"]),
) | st.builds(NumberRecipe, threshold=st.builds(Threshold, NUMBER, st.sampled_from(["above", "at_least"])))
LABEL_RECIPE = st.builds(
    lambda labels, other: LabelRecipe((("a group", tuple(labels[1:])),), (labels[0],) if other else (), other),
    st.lists(TEXT.filter(lambda text: text != "a group"), min_size=2, max_size=5, unique=True),
    st.sampled_from(["", "other ward"]),
)


@given(st.dictionaries(TEXT, NUMBER_RECIPE | LABEL_RECIPE, max_size=3), st.sets(TEXT, max_size=2))
def test_recipes_come_back_as_they_were_written(by_variable, excluded):
    recipes = Recipes(by_variable, frozenset(excluded))
    assert Recipes.from_toml(recipes.to_toml()) == recipes


@given(NUMBER_RECIPE | LABEL_RECIPE)
def test_a_recipe_of_a_plan_comes_back_as_it_was_written(recipe):
    assert parse_recipe(recipe_to_document(recipe), "the recipe", refuse=PlanError) == recipe


def test_a_data_manager_can_write_every_recipe():
    found = Recipes.from_toml(
        """
        [recipes.crp]
        log = true
        clip = [0.1, 500]

        [recipes.age]
        round = 5

        [recipes.glucose]
        units = "mmol/l"

        [recipes.glucose.clients.south]
        from_units = "mg/dl"
        factor = 0.0555

        [recipes.nyha]
        groups = { "III/IV" = ["III", "IV"] }

        [recipes.ward]
        keep = ["surgery", "medicine"]
        other = true

        [recipes.ef]
        binary = { at_least = 40 }

        [recipes.num]
        binary = { yes = [1, 2, 3, 4] }

        [recipes.postcode]
        exclude = true
        """
    )
    assert found.by_variable["crp"] == NumberRecipe(clip=(0.1, 500), logarithm="log")
    assert found.by_variable["glucose"].conversion_of("south") == UnitConversion(0.0555, 0.0, "mg/dl")
    assert found.by_variable["ward"] == LabelRecipe((), ("medicine", "surgery"), "other")
    assert found.by_variable["ef"].threshold == Threshold(40, "at_least")
    assert found.by_variable["num"].level_of("3") == "yes"
    assert found.by_variable["num"].level_of("0") == "no"
    assert found.excluded == {"postcode"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[recipes.a]\nlogg = true", "did you mean 'log'"),
        ("[recipes.a]\nlog = 10", "log1p"),
        ("[recipes.a]\nclip = 5", "two numbers"),
        ("[recipes.a]\nclip = [5, 1]", "smaller and a larger"),
        ("[recipes.a]\nlog = true\ngroups = {x = ['y']}", "for numbers"),
        ("[recipes.a]\nbinary = {above = 1, at_least = 2}", "one of"),
        ("[recipes.a]\nbinary = {over = 1}", "unknown key"),
        ("[recipes.a]\nother = true", "no levels are known"),
        ("[recipes.a]\nexclude = false", "exclude"),
        ("[recipes.a]\nexclude = true\nlog = true", "only key"),
        ("[recipes.a]\nfrom_units = 'mg'", "without a factor"),
        ("[recipes.a]", "empty"),
        ("[recipe.a]\nlog = true", "did you mean 'recipes'"),
        ("[recipes.a.clients.north]\nfactr = 2", "did you mean 'factor'"),
    ],
)
def test_mistakes_are_named(text, reason):
    with pytest.raises(PlanError, match=reason):
        Recipes.from_toml(text)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(PlanError, match="there is no file"):
        Recipes.from_file(tmp_path / "north.toml")
