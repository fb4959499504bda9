"""Imputed values depend on the rows of the site, and on nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedcdh.data.table import Table, to_table
from fedcdh.errors import DataError, PlanError, SettingsError
from fedcdh.messages.summary_file import SummaryMessage, pack_summary, unpack_summary
from fedcdh.summaries import StudyPlan, add_up, bootstrap_summaries, summarize, validate_summary
from fedcdh.summaries.dp_parameters import DPParameters
from fedcdh.summaries.imputation.imputed_source import ImputedSource, impute_rows

KINDS = {"age": "continuous", "dose": "continuous", "visits": "continuous", "sex": "categorical"}


def draw_table(seed: int, rows: int = 60, share: float = 0.15) -> dict[str, list[Any]]:
    """Return rows with gaps: two numbers, a number with few values that repeats, and a label."""
    rng = np.random.default_rng(seed)
    age = rng.normal(60, 15, rows)
    table = {
        "age": age.tolist(),
        "dose": (np.sin(age / 10) + 0.3 * rng.exponential(size=rows)).tolist(),
        "visits": rng.integers(0, 3, rows).astype(float).tolist(),
        "sex": rng.choice(["f", "m"], rows).tolist(),
    }
    return {name: [None if rng.random() < share else one for one in column] for name, column in table.items()}


def plan_of(*tables: dict[str, list[Any]]) -> StudyPlan:
    names = ["north", "south", "east"]
    return StudyPlan.from_tables(dict(zip(names, tables, strict=False)), missing="impute")


def rearrange(table: dict[str, list[Any]], order: np.ndarray) -> dict[str, list[Any]]:
    return {name: [column[place] for place in order] for name, column in table.items()}


@given(st.integers(0, 10_000), st.integers(1, 3), st.data())
@settings(max_examples=15, deadline=None)
def test_order_batches_and_threads_make_no_difference(seed: int, workers: int, data: st.DataObject) -> None:
    table = draw_table(seed)
    plan = plan_of(table)
    expected = summarize(table, plan, "north")
    order = np.array(data.draw(st.permutations(range(60))))
    moved = rearrange(table, order)
    cuts = sorted(data.draw(st.sets(st.integers(1, 59), max_size=4)))
    whole = to_table(moved)
    batches = [whole.slice_rows(start, stop - start) for start, stop in zip([0, *cuts], [*cuts, 60], strict=True)]
    assert summarize(batches, plan, "north", workers=workers) == expected


@given(st.integers(0, 10_000))
@settings(max_examples=10, deadline=None)
def test_without_gaps_the_summary_is_that_of_complete_rows(seed: int) -> None:
    table = draw_table(seed, share=0.0)
    plan = plan_of(table)
    imputed, complete = summarize(table, plan, "north"), summarize(table, replace(plan, missing="complete"), "north")
    assert np.array_equal(imputed.moments, complete.moments)
    assert imputed.missing == complete.missing


@given(st.integers(0, 10_000))
@settings(max_examples=10, deadline=None)
def test_summaries_of_sites_add_up_and_are_valid(seed: int) -> None:
    one, other = draw_table(seed), draw_table(seed + 1)
    plan = plan_of(one, other)
    first, second = summarize(one, plan, "north"), summarize(other, plan, "south")
    total = first + second
    assert np.array_equal(total.moments, first.moments + second.moments)
    assert total.rows == total.rows_read - sum(
        all(table[name][row] is None for name in table) for table in (one, other) for row in range(60)
    )
    for summary in (first, second, *bootstrap_summaries(one, plan, "north", 2, 1)):
        validate_summary(summary, plan)
    assert add_up([first, second], plan).total == total
    message = SummaryMessage(first)
    assert unpack_summary(pack_summary(message, plan), plan) == message


def test_values_that_are_there_stay_and_gaps_get_values_of_the_site() -> None:
    table = draw_table(3, rows=300)
    plan = plan_of(table)
    source = impute_rows(table, plan, "north")
    assert isinstance(source, ImputedSource)
    (rows,) = source.batches(plan.kinds)
    for name, column in to_table(table).columns.items():
        filled = rows.columns[name].to_categorical()
        there = ~column.missing
        texts = column.to_categorical()
        assert [filled.levels[code] for code in filled.codes[there]] == [
            texts.levels[code] for code in texts.codes[there]
        ]
        if name in ("visits", "sex"):
            assert set(filled.levels) == set(texts.levels)


def test_rare_levels_are_never_drawn() -> None:
    rng = np.random.default_rng(0)
    levels = ["rare"] * 4 + [None] * 150 + rng.choice(["a", "b"], 146).tolist()
    table = {"stage": levels, "age": rng.normal(60, 15, 300).tolist()}
    plan = plan_of(table)
    (rows,) = impute_rows(table, plan, "north").batches(plan.kinds)
    column = rows.columns["stage"].to_categorical()
    assert sum(column.levels[code] == "rare" for code in column.codes) == 4


def test_equal_rows_get_different_values() -> None:
    table = {"a": ["x", "y"] * 100, "b": [None] * 50 + ["p", "q", "q", "p", "p"] * 30}
    plan = plan_of(table)
    (rows,) = impute_rows(table, plan, "north").batches(plan.kinds)
    filled = rows.columns["b"].to_categorical()
    assert len(set(filled.codes[:50].tolist())) == 2


def test_curved_dependence_survives() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=1000)
    y = np.cos(2 * x) + 0.2 * rng.normal(size=1000)
    table = {"x": x.tolist(), "y": [None if rng.random() < 0.3 else one for one in y]}
    plan = plan_of(table)
    (rows,) = impute_rows(table, plan, "north").batches(plan.kinds)
    gaps = np.array([one is None for one in table["y"]])
    filled = np.asarray(rows.columns["y"].values)[gaps]  # type: ignore[union-attr]
    assert np.corrcoef(filled, np.cos(2 * x[gaps]))[0, 1] > 0.9


@pytest.mark.parametrize("share", [0.0, 0.15])
def test_the_share_of_missing_values_is_limited(share: float) -> None:
    table = draw_table(2, share=share)
    table["dose"] = [None] * 40 + table["dose"][40:]
    plan = plan_of(table)
    with pytest.raises(DataError, match=r"no value of 'dose' in .* of 60 rows"):
        summarize(table, plan, "north")
    assert summarize(table, plan, "north", max_missing_share=0.9).rows >= 59


def test_a_variable_without_values_is_refused() -> None:
    one, other = draw_table(2), draw_table(3)
    plan = plan_of(one, other)
    with pytest.raises(DataError, match="'south' has no value of 'age'"):
        summarize({**other, "age": [None] * 60}, plan, "south", max_missing_share=1.0)


class _Cluster:
    def map_reduce(self, work: Any, add: Any) -> Any:
        raise AssertionError


def test_what_cannot_be_imputed_is_refused() -> None:
    table = draw_table(2)
    plan = plan_of(table)
    with pytest.raises(SettingsError, match="_Cluster"):
        summarize(_Cluster(), plan, "north")
    with pytest.raises(DataError, match="iterator"):
        summarize(iter([Table({})]), plan, "north")
    with pytest.raises(PlanError, match="noise"):
        replace(plan, clip=10.0, noise=DPParameters(epsilon=1.0, delta=1e-6))
    with pytest.raises(PlanError, match="expected 'complete'"):
        replace(plan, missing="drop")  # type: ignore[arg-type]
