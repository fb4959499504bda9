"""Content of a release: digests that do not depend on names, and cells that do not show levels."""

from __future__ import annotations

import numpy as np

from fedcdh.data.table import to_table
from fedcdh.privacy.ledger._release_content import (
    categorical_names,
    count_level_pairs,
    hash_document,
    hash_summary,
    released_columns,
)
from fedcdh.privacy.ledger.row_sketches import RowSketcher
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.variables import Categorical, Continuous

VARIABLES = (Continuous("x"), Categorical("g", ("a", "b")), Categorical("h", ("c", "d")))
TABLE = {"x": np.arange(40.0) / 40, "g": ["a", "b"] * 20, "h": ["c"] * 10 + ["d"] * 30}


def test_the_digest_is_the_same_whoever_takes_part_and_whatever_the_study_is_called():
    plans = [
        StudyPlan(VARIABLES, ("north", "south")),
        StudyPlan(VARIABLES, ("north", "west"), study="another"),
        StudyPlan(VARIABLES, ("north",), max_rounds=2, max_bytes=1000),
    ]
    assert len({hash_summary(summarize(TABLE, plan, "north"), plan) for plan in plans}) == 1
    finer = StudyPlan((Continuous("x", scale=0.5), *VARIABLES[1:]), ("north", "south"))
    assert hash_summary(summarize(TABLE, finer, "north"), finer) != hash_summary(
        summarize(TABLE, plans[0], "north"), plans[0]
    )


def test_pairs_of_levels_are_counted_under_names_that_do_not_show_them():
    plan, sketcher = StudyPlan(VARIABLES, ("north",)), RowSketcher(b"secret")
    found = count_level_pairs(summarize(TABLE, plan, "north"), plan, sketcher, {"g": "sex"})
    assert list(found) == ["'h' and 'sex'"]
    assert sorted(found["'h' and 'sex'"].values()) == [5, 5, 15, 15]
    assert not any(level in cell for cell in found["'h' and 'sex'"] for level in ("['", 'a"', 'c"'))
    assert categorical_names(plan) == {"g", "h"}


def test_columns_go_by_the_names_of_the_site():
    sketcher = RowSketcher(b"secret")
    sketcher(to_table(TABLE))
    columns = released_columns(sketcher.columns, {"g": "sex"}, {"x": 0.5}, {"g", "h"})
    assert {name: (one.load, one.categorical) for name, one in columns.items()} == {
        "x": (0.5, False),
        "sex": (0.0, True),
        "h": (0.0, True),
    }
    assert hash_document({"b": 1, "a": 2}) == hash_document({"a": 2, "b": 1})
