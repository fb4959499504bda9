"""Files that hold a query are read strictly, and never show an address, which may hold a password."""

from __future__ import annotations

import pytest
from databases import fill_sqlite, write_query
from table_files import values

from fedcdh.data.readers import open_tables
from fedcdh.errors import DataError

ROWS = {"age": [61.0, None], "sex": ["f", "m"]}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('query = "SELECT 1"', "either url or url_variable"),
        ('url = "sqlite:///a.db"\nurl_variable = "A"\nquery = "SELECT 1"', "either url or url_variable"),
        ('url = "sqlite:///a.db"', "it has no query"),
        ('url = "sqlite:///a.db"\nquery = 3', "query should be a text, found 3"),
        ('url = "sqlite:///a.db"\nqueri = "SELECT 1"', "did you mean 'query'"),
        ('url_variable = "FEDCDH_NO_SUCH_VARIABLE"\nquery = "SELECT 1"', "FEDCDH_NO_SUCH_VARIABLE is not set"),
        ("url = ", "it is not TOML"),
    ],
)
def test_a_file_that_names_no_query_is_refused(tmp_path, text, complaint):
    path = tmp_path / "north.query.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=complaint):
        open_tables(path)


def test_a_database_that_cannot_be_opened_is_named_without_its_address(tmp_path):
    path = write_query(tmp_path / "north.query.toml", "sqlite:///secret/none.db")
    with pytest.raises(DataError, match="the database cannot be opened") as caught:
        open_tables(path)
    assert "secret" not in str(caught.value)


def test_the_address_may_stand_in_the_environment(tmp_path, monkeypatch):
    fill_sqlite(tmp_path / "rows.db", ROWS)
    monkeypatch.setenv("NORTH_DATABASE", "sqlite:///rows.db")
    path = tmp_path / "north.query.toml"
    path.write_text('url_variable = "NORTH_DATABASE"\nquery = "SELECT * FROM patients"\n', encoding="utf-8")
    assert values(open_tables(path).batches({"age": "continuous", "sex": "categorical"})) == ROWS


def test_the_database_is_opened_for_reading_only(tmp_path):
    fill_sqlite(tmp_path / "rows.db", ROWS)
    path = write_query(tmp_path / "north.query.toml", "sqlite:///rows.db", "DELETE FROM patients")
    with pytest.raises(DataError, match="the query failed"):
        open_tables(path).kinds()
