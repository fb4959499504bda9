"""Rows after the recipes of a plan, batch by batch."""

import numpy as np

from fedcdh.data import NumberRecipe, Threshold, prepare_source, to_source
from fedcdh.data.prepared_source import source_kinds

ROWS = [{"ef": [30.0, 45.0], "age": [50.0, 61.0]}, {"ef": [np.nan], "age": [70.0]}]
RECIPES = {"ef": NumberRecipe(threshold=Threshold(40))}


def test_kinds_are_those_after_the_recipes_and_columns_are_read_as_before_them():
    prepared = prepare_source(to_source(ROWS, "client 'north'"), RECIPES, "north")
    assert prepared.kinds() == {"ef": "categorical", "age": "continuous"}
    assert source_kinds(prepared.kinds(), RECIPES) == {"ef": "continuous", "age": "continuous"}


def test_every_batch_is_prepared_and_other_columns_are_left_alone():
    prepared = prepare_source(to_source(ROWS, "client 'north'"), RECIPES, "north")
    tables = list(prepared.batches({"ef": "categorical", "age": "continuous"}))
    assert [table.columns["ef"].codes.tolist() for table in tables] == [[0, 1], [-1]]
    assert [table.columns["age"].values.tolist() for table in tables] == [[50.0, 61.0], [70.0]]
