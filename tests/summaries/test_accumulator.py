"""From rows to a summary: what is refused, and what is left out."""

from __future__ import annotations

import numpy as np
import pytest

from fedcdh.errors import DataError, SummaryError
from fedcdh.summaries import summary as summary_module
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.aggregation import add_up
from fedcdh.summaries.features import Hermite
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.summary import GRID, MAX_ROWS, Summary
from fedcdh.summaries.variables import Categorical, Continuous


def plan_for(family=Hermite(), clients=("north", "south")) -> StudyPlan:  # noqa: B008 (a value)
    x, g, y = Continuous("x", 3.0, 7.0, 2.5, 4.0), Categorical("g", ("a", "b", "c")), Continuous("y")
    return StudyPlan((x, g, y), clients, family)


def columns(rows) -> dict[str, list]:
    return {name: [cells[j] for cells in rows] for j, name in enumerate(("x", "g", "y"))}


def part(rows, plan, client="north") -> Summary:
    return summarize(columns(rows), plan, client, max_missing_share=1.0)


def of_rows(plan: StudyPlan, rows: int, client: str = "north") -> Summary:
    """A summary as if every one of that many rows had all features at their largest."""
    return Summary(
        plan.fingerprint,
        (client,),
        np.full((plan.layout.n_columns,) * 2, rows * GRID**2),
        rows,
        dict.fromkeys(plan.names, 0),
    )


def test_too_many_rows_are_refused_not_wrapped_around(monkeypatch):
    plan = plan_for()
    assert (of_rows(plan, MAX_ROWS - 1) + of_rows(plan, 1)).rows == MAX_ROWS
    with pytest.raises(
        SummaryError, match=f"there are {MAX_ROWS + 1} rows; sums are exact for at most {MAX_ROWS}.*random part"
    ):
        of_rows(plan, MAX_ROWS) + of_rows(plan, 1)
    with pytest.raises(SummaryError, match="sums are exact for at most"):
        add_up([of_rows(plan, MAX_ROWS), of_rows(plan, 1, "south")], plan)
    monkeypatch.setattr(summary_module, "MAX_ROWS", 3)
    assert part([(1.0, "a", 1.0)] * 3, plan).rows == 3
    with pytest.raises(SummaryError, match="there are 4 rows; sums are exact for at most 3"):
        part([(1.0, "a", 1.0)] * 4, plan)


@pytest.mark.parametrize("value", [np.inf, -np.inf, 1e200, 10**400])
def test_infinite_values_are_refused_by_name(value):
    with pytest.raises(DataError, match=r"'x' at client 'north' has 1 infinite.*replace them"):
        part([(1.0, "a", 1.0), (value, "a", 1.0)], plan_for())


def test_nan_is_missing_and_never_gets_in():
    found = part([(np.nan, "a", 1.0), (1.0, "a", 1.0), (2.0, None, 1.0)], plan_for())
    assert (found.rows, found.rows_read, dict(found.missing)) == (1, 3, {"x": 1, "g": 1, "y": 0})


def test_too_many_missing_values_are_refused_with_advice():
    rows = [(1.0, "a", None)] * 6 + [(1.0, "a", 1.0)] * 4
    with pytest.raises(DataError, match=r"client 'north' would lose 6 of 10 rows.*'y' \(6 missing\)"):
        summarize(columns(rows), plan_for(), "north")
    assert summarize(columns(rows), plan_for(), "north", max_missing_share=0.6).rows == 4
    with pytest.raises(DataError, match="no complete row is left"):
        summarize(columns([(1.0, "a", None)] * 3), plan_for(), "north", max_missing_share=1.0)
    with pytest.raises(DataError, match="client 'north' has no rows; expected one or more"):
        summarize(columns([]), plan_for(), "north")


@pytest.mark.parametrize(
    ("table", "complaint"),
    [
        (
            {"x": [1.0], "g": ["z"], "y": [1.0]},
            r"'g' at client 'north' holds \['z'\], not among.*'a', 'b', 'c'.*add the level",
        ),
        (
            {"x": ["tall"], "g": ["a"], "y": [1.0]},
            r"'x' at client 'north' holds text, but the plan says continuous; turn the texts into numbers",
        ),
        ({"x": [1.0], "g": ["a"]}, "client 'north': there is no column 'y'"),
    ],
)
def test_a_table_that_does_not_fit_the_plan_is_refused(table, complaint):
    with pytest.raises(DataError, match=complaint):
        summarize(table, plan_for(), "north")


def test_strangers_are_refused():
    with pytest.raises(DataError, match="client 'west' is not in the plan"):
        summarize(columns([(1.0, "a", 1.0)]), plan_for(), "west")
