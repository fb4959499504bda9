"""Files and sources are read into the tables that they hold."""

from __future__ import annotations

import sqlite3

import numpy as np
import pytest
from databases import fill_sqlite, write_excel, write_query
from hypothesis import given
from hypothesis import strategies as st

import fedcdh
from fedcdh.data.columns import CategoricalColumn, NumericColumn
from fedcdh.data.loaded_tables import concatenate, load_tables
from fedcdh.data.readers import open_query, open_tables
from fedcdh.data.table import Table, split_by_client, to_table
from fedcdh.errors import DataError

labels = st.lists(st.none() | st.sampled_from("abc"), max_size=6)


@given(st.lists(labels, min_size=1, max_size=4))
def test_parts_of_a_column_make_the_whole_column(parts):
    whole = CategoricalColumn.of([label for part in parts for label in part])
    found = concatenate([Table({"g": CategoricalColumn.of(part)}) for part in parts], ["g"]).columns["g"]
    assert (found.levels, found.codes.tolist()) == (whole.levels, whole.codes.tolist())


def test_numbers_and_labels_of_one_column_become_labels():
    parts = [Table({"g": NumericColumn(np.array([1.0, np.nan]))}), Table({"g": CategoricalColumn.of(["x"])})]
    assert concatenate(parts, ["g"]).columns["g"].codes.tolist() == [0, -1, 1]


def test_data_in_memory_stay_as_they_are():
    for data in ({"x": [1.0]}, {"north": {"x": [1.0]}}, np.zeros((2, 2)), to_table({"x": [1.0]})):
        assert load_tables(data) is data


def test_a_study_of_files_equals_that_of_tables(tmp_path):
    tables = fedcdh.demo.hospital_study().tables
    names = list(tables)
    rows = {client: {name: list(cells) for name, cells in table.items()} for client, table in tables.items()}
    write = {name: tmp_path / f"{name}.csv" for name in names}
    for client in names[:2]:
        lines = zip(*rows[client].values(), strict=True)
        text = "\n".join(",".join("" if c is None or c != c else str(c) for c in line) for line in lines)
        write[client].write_text(",".join(rows[client]) + "\n" + text + "\n", encoding="utf-8")
    data = {
        names[0]: str(write[names[0]]),
        names[1]: open_tables(write[names[1]]),
        names[2]: write_excel(tmp_path / "third.xlsx", rows[names[2]]),
        names[3]: write_query(
            tmp_path / "fourth.query.toml", f"sqlite:///{fill_sqlite(tmp_path / 'a.db', rows[names[3]]).name}"
        ),
        names[4]: tables[names[4]],
    }
    found, expected = fedcdh.discover(data, rounds="one"), fedcdh.discover(tables, rounds="one")
    assert found.cohort.summaries == expected.cohort.summaries
    assert found.edges() == expected.edges()


def test_one_source_with_a_column_of_clients():
    connection = sqlite3.connect(":memory:")
    connection.executescript("CREATE TABLE p (x REAL, g INT, site TEXT);")
    draw = np.random.default_rng(0)
    connection.executemany(
        "INSERT INTO p VALUES (?, ?, ?)", [(x, int(x > 0), "ab"[i % 2]) for i, x in enumerate(draw.normal(size=80))]
    )
    rows = open_query(connection, "SELECT * FROM p")
    result = fedcdh.discover(rows, domain="site", variables=["x", "g"], kinds={"g": "categorical"}, rounds="one")
    assert result.graph.nodes == ("x", "g")
    connection.close()


def test_a_column_that_is_not_there_is_refused(tmp_path):
    (tmp_path / "north.csv").write_text("x\n1\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"north\.csv: there is no column 'y'"):
        load_tables({"north": tmp_path / "north.csv"}, variables=["y"])
    with pytest.raises(DataError, match="there is no file"):
        load_tables({"north": "none.csv"})


def test_excluded_columns_are_not_read(tmp_path):
    (tmp_path / "north.csv").write_text('x,note\n1,"1,234"\n', encoding="utf-8")
    with pytest.raises(DataError, match="thousands separators"):
        load_tables({"north": tmp_path / "north.csv"})
    loaded = load_tables({"north": tmp_path / "north.csv"}, exclude=["note"])
    assert split_by_client(loaded, None, exclude=["note"])["north"].names == ("x",)
    with pytest.raises(DataError, match="there is no column 'notes' to exclude"):
        split_by_client(load_tables({"north": tmp_path / "north.csv"}, variables=["x"]), None, exclude=["notes"])
