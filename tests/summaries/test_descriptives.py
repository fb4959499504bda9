"""Descriptive statistics of a summary are those of the rows."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest
import studies

from fedcdh._io.csv_cells import unescape_cell
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.descriptives import descriptive_statistics, level_counts, summary_to_csv
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.variables import Categorical, Continuous

TABLES = studies.mixed(0, (120, 90))
PLAN = studies.plan_of(TABLES)
CLIENT, TABLE = next(iter(TABLES.items()))
SUMMARY = summarize(TABLE, PLAN, CLIENT)


def test_means_and_deviations_are_those_of_the_rows():
    found = descriptive_statistics(SUMMARY, PLAN)
    continuous = [v.name for v in PLAN.variables if not isinstance(v, Categorical)]
    assert list(found) == continuous
    for name, (mean, deviation) in found.items():
        values = np.asarray(TABLE[name], dtype=float)
        assert mean == pytest.approx(values.mean(), abs=1e-3 * values.std())
        assert deviation == pytest.approx(values.std(), rel=1e-3)


def test_counts_of_levels_are_those_of_the_rows():
    found = level_counts(SUMMARY, PLAN)
    categorical = [v for v in PLAN.variables if isinstance(v, Categorical)]
    assert list(found) == [v.name for v in categorical]
    for variable in categorical:
        texts = [str(value) for value in TABLE[variable.name]]
        assert found[variable.name] == {level: texts.count(level) for level in variable.levels}


def test_the_csv_has_every_sum_once():
    rows = list(csv.DictReader(io.StringIO(summary_to_csv(SUMMARY, PLAN))))
    columns = PLAN.layout.n_columns
    assert len(rows) == columns * (columns + 1) // 2
    assert len({(row["feature"], row["times"]) for row in rows}) == len(rows)
    assert (rows[0]["feature"], rows[0]["times"], float(rows[0]["sum"])) == ("1", "1", SUMMARY.rows)
    assert [int(row["sum_as_sent"]) for row in rows[:columns]] == SUMMARY.moments[0].tolist()


def test_no_name_in_the_csv_is_a_formula():
    plan = StudyPlan((Categorical("=1+1", ("-a", "+b")), Continuous("@x")), ("north",))
    summary = summarize({"=1+1": ["-a", "+b"], "@x": [0.5, 1.0]}, plan, "north")
    names = {row["feature"] for row in csv.DictReader(io.StringIO(summary_to_csv(summary, plan)))}
    assert not [name for name in names if name.startswith(("=", "+", "-", "@"))]
    assert any(unescape_cell(name).startswith("=1+1") and name.startswith("'") for name in names)
