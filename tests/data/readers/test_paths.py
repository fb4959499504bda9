"""The files that names, folders and patterns stand for."""

from __future__ import annotations

import pytest
from table_files import (
    read,
    write,
)

from fedcdh.data.readers import open_tables
from fedcdh.errors import DataError


def test_folders_and_patterns(tmp_path):
    (tmp_path / "deep").mkdir()
    for k, name in enumerate(["b.csv", "a.csv", "deep/c.csv", "[x].csv", ".hidden.csv", "_part.csv"]):
        write(tmp_path / name, f"x\n{k}\n")
    write(tmp_path / "notes.md", "")
    assert read(tmp_path) == {"x": [3, 1, 0]}
    assert read(str(tmp_path / "?.csv")) == {"x": [1, 0]}
    assert read(tmp_path / "**" / "[a-c].csv") == {"x": [1, 0, 2]}
    assert read([tmp_path / "[x].csv", tmp_path / "deep", str(tmp_path / "a*")]) == {"x": [3, 2, 1]}
    assert read(tmp_path / "*.csv") == {"x": [3, 5, 1, 0]}  # as in shells, what is hidden is not meant
    assert read(tmp_path / ".h*.csv") == {"x": [4]}


def test_a_pattern_may_be_relative(tmp_path, monkeypatch):
    write(tmp_path / "a.csv", "x\n1\n")
    monkeypatch.chdir(tmp_path)
    assert read("*.csv") == read("a.csv") == read(".") == {"x": [1]}


def test_the_same_file_twice_is_refused(tmp_path, monkeypatch):
    path = write(tmp_path / "a.csv", "x\n1\n")
    (tmp_path / "deep").mkdir()
    (tmp_path / "link.csv").symlink_to(path)
    monkeypatch.chdir(tmp_path)
    for again in ("a.csv", str(tmp_path / "a.*"), "deep/../a.csv", "link.csv"):
        with pytest.raises(DataError, match=r"a\.csv.* is named twice .*; name it once|link.csv is named twice"):
            open_tables([path, again])


@pytest.mark.parametrize("twin", ["a.parquet", "a.csv.gz", "a.TSV"])
def test_the_same_rows_in_two_formats_are_refused(tmp_path, twin):
    for name in ("a.csv", twin):
        write(tmp_path / name, "x\n1\n")
    for both in (tmp_path, tmp_path / "*"):
        with pytest.raises(DataError, match="the same rows in two formats"):
            open_tables(both)


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("none.csv", r"there is no file .*none\.csv; check the name"),
        ("*.parquet", r"\*\.parquet stands for no table file"),
        ("deep", "deep stands for no table file; expected files ending in .csv"),
        ("a.docx", r"a\.docx is not a table file by its name; expected a name that ends in \.csv"),
        ("a.parquet.gz", "not a table file by its name"),
        ("no ending", "not a table file by its name"),
    ],
)
def test_files_that_are_not_there_or_no_tables_are_refused(tmp_path, name, complaint):
    (tmp_path / "deep").mkdir()
    for there in ("a.docx", "a.parquet.gz", "no ending"):
        write(tmp_path / there, "x")
    with pytest.raises(DataError, match=complaint):
        open_tables(tmp_path / name)
