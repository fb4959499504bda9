"""Advice: it is true, no part of it is needless, and what is to be forwarded holds no counts."""

from __future__ import annotations

import numpy as np
import pytest

from fedcdh.data.recipe_file import Recipes
from fedcdh.data.recipe_merging import merge_recipes
from fedcdh.data.recipes import LabelRecipe
from fedcdh.errors import DataError
from fedcdh.privacy.advice import advise, advise_from_profile, plan_from_profile
from fedcdh.privacy.disclosure.policy import Policy
from fedcdh.privacy.releases import ReleaseContext, try_summary
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.profiles import profile
from fedcdh.summaries.variables import Categorical

NORTH = ReleaseContext("north")


def hospital(seed, rows=400):
    """Rare levels, a rare pair, an outlier and a variable that is mostly missing."""
    rng = np.random.default_rng(seed)
    table = {
        "age": rng.normal(60, 12, rows),
        "crp": rng.lognormal(1, 1.3, rows),
        "nyha": rng.choice(["I", "II", "III", "IV"], rows, p=[0.5, 0.35, 0.13, 0.02]).tolist(),
        "sex": rng.choice(["f", "m"], rows).tolist(),
        "empty": [None] * rows,
    }
    table["crp"][0] = 700.0
    return table


def apply_advice(table, advice, recipes=Recipes({})):  # noqa: B008 (a value)
    return plan_from_profile(profile(table, "north", recipes=merge_recipes([recipes, advice.changes])))


def test_with_the_advice_the_summary_may_leave():
    for seed in range(8):
        table = hospital(seed)
        advice = advise_from_profile(table, profile(table, "north"), NORTH)
        assert not advice.may_leave
        assert not advice.remaining
        assert try_summary(table, apply_advice(table, advice), NORTH) == ()
        assert "empty" in advice.changes.excluded


def test_no_variable_is_changed_without_need():
    for seed in range(8):
        table = hospital(seed)
        del table["empty"]
        plan = plan_from_profile(profile(table, "north"))
        advice = advise(table, plan, NORTH)
        for name in [*advice.changes.by_variable, *advice.changes.excluded]:
            others = {one: recipe for one, recipe in advice.changes.by_variable.items() if one != name}
            without = Recipes(others, advice.changes.excluded - {name})
            assert try_summary(table, plan_from_profile(profile(table, "north", recipes=without)), NORTH)


def test_what_may_leave_needs_no_advice():
    rng = np.random.default_rng(0)
    table = {"age": rng.normal(60, 12, 400), "sex": rng.choice(["f", "m"], 400).tolist()}
    advice = advise_from_profile(table, profile(table, "north"), NORTH)
    assert advice.may_leave
    assert not advice.changes


def test_neighbouring_grades_are_merged_and_the_lines_hold_no_counts():
    nyha = ["I"] * 250 + ["II"] * 120 + ["III"] * 23 + ["IV"] * 7
    table = {"nyha": nyha, "age": np.random.default_rng(0).normal(60, 12, 400)}
    advice = advise_from_profile(table, profile(table, "north"), NORTH, {"nyha": ["I", "II", "III", "IV"]})
    assert advice.changes.to_toml() == '[recipes.nyha]\ngroups = { "III/IV" = ["III", "IV"] }\n'
    assert any("7 people" in line for line in advice.findings)


def test_a_level_that_a_summary_merges_needs_no_advice():
    nyha = ["I"] * 250 + ["II"] * 120 + ["III"] * 22 + ["IV"] * 8
    table = {"nyha": nyha, "age": np.random.default_rng(0).normal(60, 12, 400)}
    assert advise_from_profile(table, profile(table, "north"), NORTH).may_leave


def test_labels_of_few_people_are_not_named_unless_everybody_knows_them():
    names = ["a"] * 250 + ["b"] * 120 + ["c"] * 23 + ["Smith"] * 6 + ["Jones"]
    table = {"ward": names, "age": np.random.default_rng(0).normal(60, 12, 400)}
    found = profile(table, "north")
    advice = advise_from_profile(table, found, NORTH)
    assert "Smith" not in advice.changes.to_toml()
    assert "Jones" not in advice.changes.to_toml()
    assert try_summary(table, apply_advice(table, advice), NORTH) == ()
    declared = advise_from_profile(table, found, NORTH, {"ward": ["a", "b", "c", "Smith", "Jones"]})
    assert "Smith" in declared.changes.to_toml()


def test_an_outlier_is_answered_with_a_logarithm_and_nobodys_value():
    table = {"crp": hospital(0)["crp"], "age": hospital(0)["age"]}
    advice = advise_from_profile(table, profile(table, "north"), NORTH)
    assert advice.changes.by_variable["crp"].logarithm == "log"
    table = {"x": np.concatenate([np.random.default_rng(0).normal(0, 1, 400), [400.0]])}
    table["y"] = np.random.default_rng(1).normal(0, 1, 401)
    advice = advise_from_profile(table, profile(table, "north"), NORTH)
    low, high = advice.changes.by_variable["x"].clip
    assert {low, high}.isdisjoint(table["x"].tolist())
    assert (table["x"] > high).sum() >= 12
    assert (table["x"] < low).sum() >= 12


def test_a_variable_that_most_people_lack_is_excluded_alone():
    rng = np.random.default_rng(0)
    table = {"age": rng.normal(60, 12, 400), "bmi": rng.normal(25, 4, 400), "chol": rng.normal(5, 1, 400)}
    table["chol"][:300] = np.nan
    advice = advise_from_profile(table, profile(table, "north"), NORTH)
    assert advice.changes == Recipes({}, frozenset({"chol"}))


def test_too_few_rows_are_said_even_where_no_recipe_helps():
    table = {"age": np.random.default_rng(0).normal(60, 12, 50), "bmi": np.random.default_rng(1).normal(size=50)}
    advice = advise_from_profile(table, profile(table, "north"), NORTH)
    assert advice.remaining
    assert "50 rows" in advice.findings[0]


def test_the_recipes_of_the_plan_are_kept_and_extended():
    labels = ["a"] * 200 + ["b"] * 150 + ["c"] * 20 + ["d"] * 8 + ["e"] * 8
    recipe = LabelRecipe((("d/e", ("d", "e")),))
    found = profile({"ward": labels}, "north", recipes=Recipes({"ward": recipe}))
    stricter = ReleaseContext("north", Policy(min_cell_count=30))
    advice = advise_from_profile({"ward": labels}, found, stricter, {"ward": "abcde"})
    assert advice.changes.by_variable["ward"].groups == (("c/d/e", ("c", "d", "e")),)
    assert advise_from_profile({"ward": labels}, found, NORTH).may_leave


def test_the_advice_of_several_sites_can_be_merged():
    for seeds in ((0, 1, 2), (3, 4, 5)):
        parts = []
        for seed in seeds:
            table = hospital(seed)
            parts.append(advise_from_profile(table, profile(table, "north"), NORTH).changes)
        merged = merge_recipes(parts)
        for seed in seeds:
            table = hospital(seed)
            assert try_summary(table, plan_from_profile(profile(table, "north", recipes=merged)), NORTH) == ()


def test_a_table_that_does_not_fit_the_plan_is_an_error():
    with pytest.raises(DataError, match="not among the plan's levels"):
        advise({"ward": ["x"] * 200}, StudyPlan((Categorical("ward", ("a", "b")),), ("north",)), NORTH)
