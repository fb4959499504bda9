"""Joint features: their sums are those of the features written down."""

from __future__ import annotations

import numpy as np
import pytest
import studies
from round_studies import answered, plan_for

from fedcdh.summaries.encoder import GRID
from fedcdh.summaries.joint import (
    joint_terms,
)
from fedcdh.summaries.variables import Categorical


@pytest.mark.parametrize("names", [("age", "dose"), ("age", "dose", "score"), ("age", "group"), ("group", "sex")])
def test_joint_sums_are_those_of_the_features_written_down(names):
    """The first joint feature is the product of the members' first functions: values cut at 8 scales, indicators."""
    tables = studies.mixed()
    plan, table = plan_for(tables), tables["clinic a"]
    (summary,) = answered(table, plan, "clinic a", names, rows=60)
    term = joint_terms(plan, names)[0]
    assert term.plain
    assert [which for _, which in term.factors] == [0] * len(term.factors)
    known = {variable.name: variable for variable in plan.variables}

    def first(name: str) -> np.ndarray:
        variable = known[name]
        if isinstance(variable, Categorical):
            return (np.asarray(table[name]) == variable.levels[1]).astype(float)
        return np.clip((table[name] - variable.location) / (8 * variable.scale), -1, 1)

    expected = np.rint(np.prod([first(name) for name, _ in term.factors], axis=0) * GRID)
    assert summary.own[0, 0] == int((expected**2).sum())
    assert summary.cross[0, 0] == int(expected.sum()) * GRID
