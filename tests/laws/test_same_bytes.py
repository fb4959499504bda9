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
from databases import fill_duckdb, fill_sqlite, write_excel, write_query, write_statistics

from fedcdh.data.readers import open_query, open_tables
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
        "dose": rng.exponential(2, ROWS).round(12).tolist(),
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


def to_sqlite(folder):
    fill_sqlite(folder / "rows.db", TABLE)
    return open_tables(write_query(folder / "rows.query.toml", "sqlite:///rows.db"))


def to_duckdb(folder):
    fill_duckdb(folder / "rows.duckdb", TABLE)
    return open_tables(write_query(folder / "rows.query.toml", "duckdb:///rows.duckdb"))


def to_duckdb_connection(folder):
    duckdb = pytest.importorskip("duckdb", reason="the extra `sql` is not installed")
    return open_query(
        duckdb.connect(fill_duckdb(folder / "rows.duckdb", TABLE)), "SELECT * FROM patients", batch_rows=700
    )


def to_sqlalchemy(folder):
    sqlalchemy = pytest.importorskip("sqlalchemy", reason="the extra `sql` is not installed")
    engine = sqlalchemy.create_engine(f"sqlite:///{fill_sqlite(folder / 'rows.db', TABLE)}")
    return open_query(engine, "SELECT * FROM patients", batch_rows=999)


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
    "excel": lambda folder: open_tables(write_excel(folder / "rows.xlsx", TABLE)),
    "spss": lambda folder: open_tables(write_statistics(folder / "rows.sav", TABLE)),
    "stata": lambda folder: open_tables(write_statistics(folder / "rows.dta", TABLE)),
    "sas transport": lambda folder: open_tables(write_statistics(folder / "rows.xpt", TABLE)),
    "sqlite": to_sqlite,
    "duckdb": to_duckdb,
    "duckdb connection": to_duckdb_connection,
    "sqlalchemy": to_sqlalchemy,
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
