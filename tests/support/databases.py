"""The same rows in databases and in files of other programs, and a PostgreSQL server of the test's own."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
import pytest

from benchmarks.postgresql_server import run_server, why_no_server


def write_excel(path: Path, rows: Mapping[str, list]) -> Path:
    pytest.importorskip("python_calamine", reason="the extra `files` is not installed")
    pytest.importorskip("openpyxl", reason="openpyxl, which writes the workbook, is not installed")
    pd.DataFrame(rows).to_excel(path, index=False)
    return path


def encode_labels(rows: Mapping[str, list]) -> tuple[pd.DataFrame, dict[str, dict[int, str]]]:
    """Return the table with whole numbers in the place of texts, and the labels of these numbers."""
    frame, labels = pd.DataFrame(rows), {}
    for name in frame.columns:
        if not pd.api.types.is_numeric_dtype(frame[name]):
            levels = sorted(set(frame[name].dropna()))
            labels[name] = dict(enumerate(levels, start=1))
            frame[name] = frame[name].map({level: float(code) for code, level in labels[name].items()})
    return frame, labels


def write_statistics(path: Path, rows: Mapping[str, list]) -> Path:
    """Write a file of SPSS, Stata or SAS; the first two have labels of values, SAS has texts."""
    pyreadstat = pytest.importorskip("pyreadstat", reason="the extra `files` is not installed")
    if path.suffix == ".xpt":
        pyreadstat.write_xport(pd.DataFrame(rows), str(path), file_format_version=8)
        return path
    frame, labels = encode_labels(rows)
    write = pyreadstat.write_sav if path.suffix == ".sav" else pyreadstat.write_dta
    options = {name: {float(code): label for code, label in found.items()} for name, found in labels.items()}
    if path.suffix == ".dta":  # Stata labels whole numbers only
        frame = frame.astype(dict.fromkeys(labels, "Int32"))
        options = labels
    write(frame, str(path), variable_value_labels=options)
    return path


def fill_sqlite(path: Path, rows: Mapping[str, list]) -> Path:
    with sqlite3.connect(path) as connection:
        pd.DataFrame(rows).to_sql("patients", connection, index=False)
    connection.close()
    return path


def fill_duckdb(path: Path, rows: Mapping[str, list]) -> Path:
    duckdb = pytest.importorskip("duckdb", reason="the extra `sql` is not installed")
    with duckdb.connect(str(path)) as connection:
        connection.register("rows", pd.DataFrame(rows))
        connection.execute("CREATE TABLE patients AS SELECT * FROM rows")
    return path


def write_query(path: Path, url: str, query: str = "SELECT * FROM patients") -> Path:
    path.write_text(f'url = "{url}"\nquery = "{query}"\n', encoding="utf-8")
    return path


@contextmanager
def postgresql() -> Iterator[str]:
    """Start a PostgreSQL server and yield its address; skip the test where there is none."""
    pytest.importorskip("adbc_driver_postgresql", reason="the extra `sql` is not installed")
    if reason := why_no_server():
        pytest.skip(reason)
    with run_server() as address:
        yield address
