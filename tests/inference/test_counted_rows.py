"""Rows that depend on each other count as fewer rows."""

from __future__ import annotations

import pytest
from time_series import unrelated

from fedcdh.discovery.api import discover
from fedcdh.inference.counted_rows import common_shares, describe_dependence, query_shares, variable_shares
from fedcdh.protocols import DOMAIN, Query
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.row_dependence import ALL_ROWS, RowShares
from fedcdh.summaries.variables import Categorical, Continuous

PLAN = StudyPlan(
    (
        Continuous("a", product_share=0.4, mean_share=0.2),
        Categorical("b", ("x", "y"), product_share=0.5, mean_share=0.1),
        Continuous("c"),
    ),
    ("north", "south"),
)


def test_the_smallest_shares_hold_for_all_variables():
    assert common_shares(PLAN) == RowShares(0.4, 0.1)
    assert common_shares(StudyPlan((Continuous("a"),), ("north",))) == ALL_ROWS


def test_means_never_count_more_than_products():
    plan = StudyPlan((Continuous("a", product_share=0.2), Continuous("b")), ("north",))
    assert common_shares(plan) == RowShares(0.2, 0.2)
    assert variable_shares(plan) == {"a": RowShares(0.2, 0.2)}


def test_a_test_counts_the_rows_of_its_two_variables():
    shares = variable_shares(PLAN)
    assert shares.keys() == {"a", "b"}
    assert query_shares(Query("a", "b"), shares) == RowShares(0.5, 0.1)
    assert query_shares(Query("a", "c"), shares) == RowShares(1.0, 0.2)
    assert query_shares(Query(DOMAIN, "a"), shares) == RowShares(0.4, 0.2)
    assert query_shares(Query("a", "c"), shares) == query_shares(Query("c", "a"), shares)


def test_the_note_names_variables_and_shares():
    (note,) = describe_dependence(PLAN)
    assert note == "rows depend on each other: a, b; 40 % of all rows count for links, 10 % for levels of clients"
    (note,) = describe_dependence(StudyPlan((Continuous("a", mean_share=0.854),), ("north",)))
    assert note.endswith("a; 100 % of all rows count for links, 85.4 % for levels of clients")
    assert not list(describe_dependence(StudyPlan((Continuous("a"),), ("north",))))


@pytest.mark.parametrize(("method", "most"), [("evidence", 1), ("constraint", 3)])
def test_series_that_are_unrelated_get_hardly_any_edges_and_changes(method, most):
    """Five studies of four series each; as independent rows they have many edges and changes that are not there."""
    edges, changes, naive_edges, naive_changes = 0, 0, 0, 0
    for seed in range(5):
        tables = unrelated(seed)
        found = discover(tables, method=method)
        assert any(note.startswith("rows depend on each other: v0, v1, v2, v3") for note in found.notes)
        edges, changes = edges + len(found.graph.skeleton), changes + len(found.changing)
        sorted_by = {client: {"order": range(200), **table} for client, table in tables.items()}  # no time: all count
        naive = discover(sorted_by, method=method, kinds={"order": "continuous"})  # as if it were no row number
        naive_edges += len([pair for pair in naive.graph.skeleton if "order" not in pair])
        naive_changes += len(naive.changing - {"order"})
    assert edges <= most
    assert changes <= most
    assert naive_edges > 6
    assert naive_changes > 6
