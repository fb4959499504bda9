"""Files that map columns to variables."""

from __future__ import annotations

import os

import pytest
from table_files import (
    write,
)

from fedcdh.data.readers import read_column_map
from fedcdh.errors import DataError


def test_renames_are_read(tmp_path):
    wanted = {"their name": "age", "a.b": "größe"}
    toml = write(tmp_path / "a.toml", '"their name" = "age"\n"a.b" = "größe"\n')
    table = write(tmp_path / "a.csv", '\ufeffcolumn,variable\r\n"their name",age\r\n\r\na.b,größe\r\n')
    assert read_column_map(toml) == read_column_map(str(table)) == wanted


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("a.toml", "a = ", "is not TOML"),
        ("a.toml", 'a = "b"\na = "c"', "is not TOML"),
        ("a.toml", 'a.b = "c"', "a name with a dot in it needs them"),
        ("a.toml", b"\xff", "not written in UTF-8"),
        ("a.csv", "", "no header column,variable"),
        ("a.csv", "a,b\n", "no header column,variable"),
        ("a.csv", "column,variable\na\n", "row 1 has 1 cells; expected two"),
        ("a.csv", "column,variable\na,b\na,c\n", "'a' has two rows"),
        ("a.csv", 'column,variable\n"a,b\n', "is not CSV"),
    ],
)
def test_renames_that_cannot_be_read_are_refused(tmp_path, name, content, complaint):
    with pytest.raises(DataError, match=complaint):
        read_column_map(write(tmp_path / name, content))


def test_a_file_of_renames_has_to_exist(tmp_path):
    with pytest.raises(DataError, match=r"there is no file .*none\.toml'; expected a file of names"):
        read_column_map(tmp_path / "none.toml")


def test_a_file_of_renames_is_an_ordinary_small_file(tmp_path):
    os.mkfifo(tmp_path / "pipe.toml")
    with pytest.raises(DataError, match="is a pipe, socket or device; expected a file of names"):
        read_column_map(tmp_path / "pipe.toml")
    with pytest.raises(DataError, match="1000001 bytes, a file of names has at most 1000000"):
        read_column_map(write(tmp_path / "large.toml", "#" * 1_000_001))
