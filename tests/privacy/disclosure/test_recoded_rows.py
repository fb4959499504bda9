"""Recoded rows are the same rows with rare levels replaced, after the recipes of the plan."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from fedcdh.data.prepared_source import PreparedSource, prepare_source
from fedcdh.data.recipes import LabelRecipe
from fedcdh.data.sources import to_source
from fedcdh.data.table import to_table
from fedcdh.privacy.disclosure.rare_cells import RareLevel
from fedcdh.privacy.disclosure.recoded_rows import recode_rows
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.complete_rows import complete_blocks
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.variables import Categorical, Continuous

PLAN = StudyPlan((Continuous("x"), Categorical("g", ("1", "2", "3"))), ("north",))


@pytest.mark.parametrize("spelt", [["1", "2", "3"], [1.0, 2.0, 3.0], ["1.0", "2.0", "3.0"]])
def test_levels_are_replaced_however_they_are_spelt(spelt):
    rows = to_table({"x": np.arange(6.0), "g": np.array(spelt * 2)})
    expected = {"x": np.arange(6.0), "g": ["1", "2", "1"] * 2}
    recoded = recode_rows(rows, [RareLevel("g", "3", "1")])
    assert summarize(recoded, PLAN, "north") == summarize(expected, PLAN, "north")


def test_missing_values_stay_missing_and_levels_may_be_merged_in_turn():
    rows = to_table({"x": [1.0, 2.0, 3.0], "g": ["3", None, "2"]})
    table = recode_rows(rows, [RareLevel("g", "3", "2"), RareLevel("g", "2", "1")])
    assert table.columns["g"].levels == ("1",)
    assert table.columns["g"].codes.tolist() == [0, -1, 0]


def test_without_rare_levels_rows_are_passed_on():
    rows = to_table({"x": [1.0], "g": ["3"]})
    assert recode_rows(rows, ()) is rows


def test_levels_of_a_recipe_are_replaced_after_it_and_recipes_are_carried_out_once():
    recipe = LabelRecipe(groups=(("2", ("b", "c")),))
    plan = replace(PLAN, variables=(PLAN.variables[0], replace(PLAN.variables[1], recipe=recipe)))
    rows = {"x": np.arange(6.0), "g": ["1", "b", "3", "c", "1", "3"]}
    merged = partial(recode_rows, merged=[RareLevel("g", "3", "2")])
    recoded = PreparedSource(to_source(rows, "client 'north'"), plan.recipes, "north", merged)
    assert prepare_source(recoded, plan.recipes, "north") is recoded
    (block,) = complete_blocks(recoded, plan, "north")
    column = block.columns["g"]
    assert [column.levels[code] for code in column.codes] == ["1", "2", "2", "2", "1", "2"]
