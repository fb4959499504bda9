"""Sheets of workbooks: which one is read, and what their cells mean."""

from __future__ import annotations

import datetime

import pytest
from table_files import values

from fedcdh.data.readers import CsvStyle, open_tables
from fedcdh.errors import DataError

openpyxl = pytest.importorskip("openpyxl", reason="openpyxl, which writes the workbooks, is not installed")
pytest.importorskip("python_calamine", reason="the extra `files` is not installed")


def workbook(path, **sheets):
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


def test_cells_are_numbers_labels_or_missing(tmp_path):
    rows = [["age", "code", "sex"], [61.5, 3, "f"], [], ["NA", 7, True], [None, None, "NA"], [47, "x", "m"]]
    found = open_tables(workbook(tmp_path / "north.xlsx", Patients=rows, Notes=[]))
    assert found.kinds() == {"age": "continuous", "code": "categorical", "sex": "categorical"}
    assert values(found.batches(found.kinds())) == {
        "age": [61.5, None, None, 47.0],
        "code": ["3", "7", None, "x"],
        "sex": ["f", "True", None, "m"],
    }


def test_one_of_several_sheets_has_to_be_named(tmp_path):
    path = workbook(tmp_path / "north.xlsx", First=[["x"], [1]], Second=[["x"], [2]])
    with pytest.raises(DataError, match=r"has the sheets 'First', 'Second'; expected.*north\.xlsx#First"):
        open_tables(path).kinds()
    assert values(open_tables(f"{path}#Second").batches({"x": "continuous"})) == {"x": [2.0]}
    both = open_tables([f"{path}#First", f"{path}#Second"])
    assert values(both.batches({"x": "continuous"})) == {"x": [1.0, 2.0]}
    with pytest.raises(DataError, match="has no sheet 'Third'; expected one of 'First', 'Second'"):
        open_tables(f"{path}#Third").kinds()
    with pytest.raises(DataError, match="named twice"):
        open_tables([f"{path}#First", f"{path}#First"])


@pytest.mark.parametrize(
    ("cell", "complaint"),
    [
        ("12.5", "row 2 .* has a number that is stored as text in column 'x'; .* Convert the column"),
        ("high", "row 2 .* has no number in column 'x'"),
        (datetime.date(2024, 1, 31), "column 'x' holds dates or times"),
    ],
)
def test_cells_that_are_no_numbers_are_refused_where_numbers_are_expected(tmp_path, cell, complaint):
    path = workbook(tmp_path / "north.xlsx", Patients=[["x"], [1.5], [cell]])
    with pytest.raises(DataError, match=complaint):
        list(open_tables(path).batches({"x": "continuous"}))


def test_named_missing_values_count(tmp_path):
    path = workbook(tmp_path / "north.xlsx", Patients=[["x"], [1.5], [-9], ["unknown"]])
    rows = open_tables(path, style=CsvStyle(missing=("-9", "unknown")))
    assert values(rows.batches({"x": "continuous"})) == {"x": [1.5, None, None]}


@pytest.mark.parametrize("rows", [[], [[]]])
def test_a_workbook_without_cells_is_refused(tmp_path, rows):
    with pytest.raises(DataError, match="is empty; expected the names of the columns"):
        open_tables(workbook(tmp_path / "north.xlsx", Patients=rows)).kinds()


def test_what_is_no_workbook_is_refused(tmp_path):
    (tmp_path / "north.xlsx").write_bytes(b"age,sex\n61,f\n")
    with pytest.raises(DataError, match="it is not a workbook, or it is damaged"):
        open_tables(tmp_path / "north.xlsx").kinds()
