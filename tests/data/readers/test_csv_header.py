"""The first lines of a CSV file."""

from __future__ import annotations

import pytest
from table_files import (
    KINDS,
    read,
    write,
)

from fedcdh.data.readers import CsvStyle, open_tables
from fedcdh.errors import DataError


@pytest.mark.parametrize("line", ["sep=;\n", "SEP=;\r\n", '"sep=;"\n'])
@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_the_first_line_of_excel_names_the_delimiter(tmp_path, line, encoding):
    style = CsvStyle(decimal=",", encoding=encoding.removesuffix("-sig"))
    for name in ("a.csv", "b.tsv"):
        path = write(tmp_path / name, f"{line}x;g\n1,5;a,b\n\n2;c\n".encode(encoding))
        assert read(path, style=style) == {"x": [1.5, 2], "g": ["a,b", "c"]}


def test_rows_below_the_first_line_of_excel_are_counted_as_always(tmp_path):
    short = open_tables(write(tmp_path / "a.csv", "sep=;\nx;g\n1;a\n2\n"))
    with pytest.raises(DataError, match=r"row 2 \(the header not counted\) has 1 cells"):
        list(short.batches(KINDS))
    wrong = open_tables(write(tmp_path / "b.csv", "sep=;\nx;g\n1;a\n?;b\n"))
    with pytest.raises(DataError, match=r"row 2 \(the header not counted\) has no number"):
        list(wrong.batches(KINDS))
    letters = open_tables(write(tmp_path / "c.csv", b"sep=;\nx;g\n" + b"1;a\n" * 9999 + b"1;\xe4\n"))
    with pytest.raises(DataError, match=r"in row 10000 \(the header not counted\)"):
        list(letters.batches(KINDS))


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("sep=;\n", "is empty; expected a header"),
        ("sep=,\nx,g\n1,a\n", "makes ',' the delimiter, which is the decimal mark as well"),
    ],
)
def test_a_first_line_of_excel_that_does_not_fit_is_refused(tmp_path, content, complaint):
    with pytest.raises(DataError, match=complaint):
        open_tables(write(tmp_path / "a.csv", content), style=CsvStyle(decimal=",")).kinds()
