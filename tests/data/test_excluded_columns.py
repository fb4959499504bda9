"""Columns that are no variables are left out of what is described and of what leaves."""

from __future__ import annotations

import numpy as np
import pytest

from fedcdh.data.excluded_columns import exclude_columns
from fedcdh.data.recipe_file import Recipes
from fedcdh.errors import DataError
from fedcdh.privacy.releases import ReleaseContext, release_profile

ROWS = {
    "patient": np.random.default_rng(0).permutation(400) + 10_000,
    "age": np.random.default_rng(1).normal(50, 12, 400),
    "bmi": np.random.default_rng(2).normal(25, 4, 400),
}


def test_a_profile_that_leaves_has_no_excluded_column():
    found = release_profile(ROWS, ReleaseContext("north"), exclude=["patient"]).profile
    assert list(found.columns) == ["age", "bmi"]


def test_the_same_profile_leaves_as_from_a_table_without_the_column():
    rest = {name: values for name, values in ROWS.items() if name != "patient"}
    context = ReleaseContext("north")
    assert release_profile(ROWS, context, exclude=["patient"]) == release_profile(rest, context)


def test_a_misspelt_name_is_refused():
    with pytest.raises(DataError, match="'patiens'"):
        release_profile(ROWS, ReleaseContext("north"), exclude=["patiens"])


def test_one_name_may_be_given_by_itself():
    kinds, recipes = exclude_columns(ROWS, "age", {"age": "continuous", "bmi": "continuous"}, Recipes())
    assert (kinds, recipes.excluded) == ({"bmi": "continuous"}, {"age"})
