"""Missing values become variables."""

import pytest

import fedcdh
from fedcdh.data.missing_indicators import add_missing_indicators
from fedcdh.data.table import to_table
from fedcdh.errors import DataError, SettingsError

TABLES = {"north": to_table({"chol": [5.1, None], "age": [50, 61]}), "south": to_table({"chol": [4.0], "age": [44]})}


def test_every_table_gets_the_column():
    found = add_missing_indicators(TABLES, ["chol"])
    assert {client: table.columns["chol missing"].codes.tolist() for client, table in found.items()} == {
        "north": [0, 1],
        "south": [0],
    }
    assert found["south"].columns["chol missing"].levels == ("no", "yes")


def test_what_cannot_have_an_indicator_is_refused():
    with pytest.raises(DataError, match="no column 'hdl'"):
        add_missing_indicators(TABLES, ["hdl"])
    with pytest.raises(DataError, match="no client lacks any"):
        add_missing_indicators(TABLES, ["age"])
    with pytest.raises(DataError, match="already"):
        add_missing_indicators(add_missing_indicators(TABLES, ["chol"]), ["chol"])


@pytest.mark.parametrize("names", ["chol", ["chol"]])
def test_complete_rows_have_no_indicators(names):
    with pytest.raises(SettingsError, match="missing_indicators"):
        fedcdh.discover(TABLES, missing_indicators=names)
