"""The same rows give the same bytes by every path: tables, frames, batches, threads and files."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from fedcdh.data.readers import open_tables
from fedcdh.messages.profile_file import ProfileMessage, profile_to_json
from fedcdh.messages.summary_file import SummaryMessage, pack_summary
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.bootstrap import bootstrap_summaries
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.profiles import profile

ROWS = 3000


def table() -> dict[str, list]:
    rng = np.random.default_rng(7)
    age = rng.normal(60, 15, ROWS).round(3)
    return {
        "age": [None if k % 17 == 0 else float(value) for k, value in enumerate(age)],
        "dose": rng.exponential(2, ROWS).tolist(),
        "sex": [("f", "m")[k] for k in rng.integers(0, 2, ROWS)],
    }


TABLE = table()
PLAN = StudyPlan.from_profiles([profile(TABLE, "north")])


def batches() -> list[dict[str, list]]:
    edges = [0, 1, 700, 701, 2999, ROWS]
    return [{name: cells[start:end] for name, cells in TABLE.items()} for start, end in pairwise(edges)]


def to_csv(folder):
    path = folder / "rows.csv"
    pd.DataFrame(TABLE).to_csv(path, index=False)
    return open_tables(path)


def to_parquet(folder):
    path = folder / "rows.parquet"
    pq.write_table(pa.table(TABLE), path, row_group_size=400)
    return open_tables(path)


def to_arrow(folder):
    path = folder / "rows.arrow"
    feather.write_feather(pa.table(TABLE), path, compression="uncompressed")
    return open_tables(path)


def to_two_files(folder):
    paths = [folder / "first.csv", folder / "second.csv"]
    frame = pd.DataFrame(TABLE)
    frame[:1234].to_csv(paths[0], index=False)
    frame[1234:].to_csv(paths[1], index=False)
    return open_tables(paths)


PATHS = {
    "columns": lambda folder: TABLE,
    "pandas": lambda folder: pd.DataFrame(TABLE),
    "polars": lambda folder: pl.DataFrame(TABLE),
    "arrow table": lambda folder: pa.table(TABLE),
    "batches": lambda folder: batches(),
    "csv": to_csv,
    "two csv files": to_two_files,
    "parquet": to_parquet,
    "arrow file": to_arrow,
}


@pytest.mark.parametrize("path", PATHS)
def test_summaries_profiles_and_replicates_are_the_same_bytes(path, tmp_path):
    rows = PATHS[path](tmp_path)
    expected = pack_summary(SummaryMessage(summarize(TABLE, PLAN, "north")), PLAN)
    for workers in (1, 3):
        assert pack_summary(SummaryMessage(summarize(rows, PLAN, "north", workers=workers)), PLAN) == expected
    found = profile_to_json(ProfileMessage(profile(rows, "north")))
    assert found == profile_to_json(ProfileMessage(profile(TABLE, "north")))
    replicates = bootstrap_summaries(rows, PLAN, "north", 2, seed=5)
    assert replicates == bootstrap_summaries(TABLE, PLAN, "north", 2, seed=5)
