"""Queries of databases: types, errors, and rows that change between two passes."""

from __future__ import annotations

import sqlite3

import pytest
from databases import postgresql
from table_files import values

from fedcdh.data.readers import open_query, open_tables
from fedcdh.errors import DataError

TYPES = """
    SELECT i * 0.1::float8 AS dose, i AS age, (i * 1.25)::numeric(10, 3) AS price, i % 2 = 0 AS treated,
           CASE WHEN i % 3 = 0 THEN 'yes' END AS smoker, now() AS seen
    FROM generate_series(1, 6) AS i ORDER BY i
"""


@pytest.fixture
def patients():
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.executescript(
        "CREATE TABLE p (age REAL, sex TEXT); INSERT INTO p VALUES (61, 'f'), (47, ''), (NULL, 'm');"
    )
    yield connection
    connection.close()


@pytest.fixture(scope="module")
def server():
    with postgresql() as address:
        yield address


def test_postgresql_types_are_numbers_and_labels(server, tmp_path):
    path = tmp_path / "north.query.toml"
    path.write_text(f'url = "{server}"\nquery = """{TYPES}"""\n', encoding="utf-8")
    rows = open_tables(path, batch_rows=4)
    kinds = rows.kinds()
    assert {name for name, kind in kinds.items() if kind == "continuous"} == {"dose", "age", "price"}
    found = values(rows.batches({name: kind for name, kind in kinds.items() if name != "seen"}))
    assert found["price"] == [1.25, 2.5, 3.75, 5.0, 6.25, 7.5]
    assert found["treated"] == ["False", "True"] * 3
    assert found["smoker"] == [None, None, "yes"] * 2
    with pytest.raises(DataError, match=r"column 'seen' holds timestamp.*days since a fixed day"):
        list(rows.batches({"seen": "categorical"}))


def test_postgresql_is_read_in_one_transaction(server, tmp_path):
    from adbc_driver_postgresql import dbapi

    with dbapi.connect(server, autocommit=True) as writer, writer.cursor() as cursor:
        cursor.execute("CREATE TABLE visits AS SELECT 1.0::float8 AS x FROM generate_series(1, 5)")
        path = tmp_path / "north.query.toml"
        path.write_text(f'url = "{server}"\nquery = "SELECT * FROM visits"\n', encoding="utf-8")
        rows = open_tables(path)
        assert len(values(rows.batches({"x": "continuous"}))["x"]) == 5
        cursor.execute("INSERT INTO visits VALUES (2.0)")
        assert len(values(rows.batches({"x": "continuous"}))["x"]) == 5  # the state when it was opened
        assert len(values(open_tables(path).batches({"x": "continuous"}))["x"]) == 6


def test_rows_that_change_between_two_passes_are_refused(patients):
    rows = open_query(patients, "SELECT * FROM p")
    assert rows.kinds() == {"age": "continuous", "sex": "categorical"}
    patients.execute("INSERT INTO p VALUES (70, 'f')")
    with pytest.raises(DataError, match="gave 3 rows at first and 4 rows now"):
        list(rows.batches({"age": "continuous"}))


def test_null_and_empty_texts_are_missing(patients):
    rows = open_query(patients, "SELECT * FROM p", rename={"age": "Alter"})
    assert values(rows.batches({"Alter": "continuous", "sex": "categorical"})) == {
        "Alter": [61.0, 47.0, None],
        "sex": ["f", None, "m"],
    }


@pytest.mark.parametrize(
    ("query", "complaint"),
    [
        ("SELECT agee FROM p", r"the query failed \(no such column: agee\)"),
        ("SELECT age AS a, sex AS a FROM p", "two columns are called 'a'"),
        ("SELECT x'00' AS age FROM p", "holds dates, times or bytes"),
        ("SELECT sex AS age FROM p", "row 1 has no number in column 'age'"),
    ],
)
def test_queries_that_cannot_be_used_are_refused(patients, query, complaint):
    with pytest.raises(DataError, match=complaint):
        list(open_query(patients, query).batches({"age": "continuous"}))
