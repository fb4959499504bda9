"""Recipes of a hostile coordinator: in one plan, and in two plans about the same people."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.attacks import hostile_recipes
from fedcdh.data.recipe_file import Recipes
from fedcdh.data.recipes import LabelRecipe, NumberRecipe, Threshold, UnitConversion
from fedcdh.errors import DisclosureError
from fedcdh.privacy.disclosure.policy import Policy
from fedcdh.privacy.ledger.gate import ReleaseGate
from fedcdh.privacy.ledger.ledger_file import ReleaseLedger
from fedcdh.privacy.releases import ReleaseContext, release_profile, release_summary
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.variables import Categorical, Continuous

LIMIT = 12


@pytest.mark.parametrize("name", hostile_recipes.ATTACKS)
def test_hostile_recipes_read_people_off_and_are_refused(name):
    error, left, reason = hostile_recipes.run(hostile_recipes.ATTACKS[name], hostile_recipes.hospital(2000, 7))
    assert error < 1e-3
    assert reason
    assert left < len(hostile_recipes.ATTACKS[name].recipes) or "merged" in reason


def context(folder, **changes):
    return ReleaseContext("north", Policy(**changes), gate=ReleaseGate(ReleaseLedger(folder / "releases.jsonl")))


def plan(variable, name=""):
    return StudyPlan((variable, Continuous("y")), ("north",), study=name)


def rows(between, n=1000):
    """As many people between 1 and 2 as are asked for, and hundreds on both sides."""
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(-1, 0.9, n // 2), rng.uniform(1.1, 1.9, between), rng.uniform(2.1, 3, n // 2)])
    return {"x": x, "y": rng.standard_normal(len(x))}


@pytest.mark.parametrize(("between", "leaves"), [(0, True), (1, False), (LIMIT - 1, False), (LIMIT, True)])
def test_people_between_two_thresholds_are_counted(tmp_path, between, leaves):
    here = context(tmp_path)
    for limit in (1.0, 2.0):
        variable = Categorical("x", ("no", "yes"), recipe=NumberRecipe(threshold=Threshold(limit)))
        if limit == 2.0 and not leaves:
            with pytest.raises(DisclosureError, match=f"{between} people are in one class by both"):
                release_summary(rows(between), plan(variable, "two"), here)
        else:
            release_summary(rows(between), plan(variable, str(limit)), here)


@pytest.mark.parametrize(("beyond", "leaves"), [(0, True), (1, False), (7, False), (8, True)])
def test_people_beyond_a_clip_are_counted_after_a_profile_without_one(tmp_path, beyond, leaves):
    here, rng = context(tmp_path), np.random.default_rng(0)
    x = np.concatenate([rng.uniform(0, 2, 500), np.linspace(2.5, 2.6, beyond)])
    table = {"x": x, "y": rng.standard_normal(len(x))}
    release_profile(table, here)
    clipped = plan(Continuous("x", 1, 1, recipe=NumberRecipe(clip=(-1, 2.2))))
    if leaves:
        release_summary(table, clipped, here)
    else:
        with pytest.raises(DisclosureError, match="the recipe of 'x' is another one than before"):
            release_summary(table, clipped, here)


def test_coarser_groups_may_follow_finer_ones(tmp_path):
    rng = np.random.default_rng(0)
    table = {"ward": rng.choice(["a", "b", "c"], 900).tolist(), "y": rng.standard_normal(900)}
    here = context(tmp_path)
    release_summary(table, plan(Categorical("ward", ("a", "b", "c"))), here)
    release_summary(table, plan(Categorical("ward", ("a", "bc"), recipe=LabelRecipe((("bc", ("b", "c")),)))), here)


def test_logarithms_and_units_make_no_classes(tmp_path):
    rng = np.random.default_rng(0)
    table = {"x": rng.lognormal(0, 0.5, 3000), "y": rng.standard_normal(3000)}
    here = context(tmp_path)
    release_summary(table, plan(Continuous("x", 1, 1)), here)
    release_summary(table, plan(Continuous("x", 0, 1, recipe=NumberRecipe(logarithm="log"))), here)


def test_rows_that_changed_are_found_behind_another_recipe(tmp_path):
    rng = np.random.default_rng(0)
    table = {"x": rng.lognormal(0, 0.5, 3000), "y": rng.standard_normal(3000)}
    here = context(tmp_path)
    release_summary(table, plan(Continuous("x", 1, 1)), here)
    fewer = {name: column[1:] for name, column in table.items()}
    for recipe in (NumberRecipe(logarithm="log"), NumberRecipe(conversion=UnitConversion(2.0))):
        with pytest.raises(DisclosureError, match="1 or a few more rows changed"):
            release_summary(fewer, plan(Continuous("x", 0, 1, recipe=recipe)), here)


@pytest.mark.parametrize(("added", "leaves"), [(LIMIT - 1, False), (LIMIT, True)])
def test_few_new_people_with_a_level_that_a_recipe_makes_are_found(tmp_path, added, leaves):
    rng = np.random.default_rng(0)
    first = {"x": rng.uniform(-1, 1, 2000), "y": rng.standard_normal(2000)}
    more = np.concatenate([rng.uniform(0.1, 1, added), rng.uniform(-1, -0.1, 500)])
    second = {"x": np.concatenate([first["x"], more]), "y": np.concatenate([first["y"], rng.normal(size=len(more))])}
    recipe = NumberRecipe(threshold=Threshold(0.0))
    here, both = context(tmp_path), plan(Categorical("x", ("no", "yes"), recipe=recipe))
    release_summary(first, both, here)
    if leaves:
        release_summary(second, both, here)
    else:
        with pytest.raises(DisclosureError, match=f"'x' changed by {added}, expected none or at least {LIMIT}"):
            release_summary(second, both, here)


def test_profiles_with_other_recipes_are_compared_as_well(tmp_path):
    here = context(tmp_path)
    labels = ["a"] * 300 + ["rare"] * 2 + ["b"] * 300
    release_profile({"ward": labels}, here, recipes=Recipes({"ward": LabelRecipe((("p", ("a", "rare")),))}))
    with pytest.raises(DisclosureError, match="2 people are in one class"):
        release_profile({"ward": labels}, here, recipes=Recipes({"ward": LabelRecipe((("q", ("b", "rare")),))}))


def test_without_disclosure_control_nothing_is_refused(tmp_path):
    here = context(tmp_path, disclosure_control=False)
    for limit in (1.0, 2.0):
        variable = Categorical("x", ("no", "yes"), recipe=NumberRecipe(threshold=Threshold(limit)))
        release_summary(rows(1), plan(variable, str(limit)), here)
