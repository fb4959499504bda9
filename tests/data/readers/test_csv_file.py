"""CSV files as people write them."""

from __future__ import annotations

import struct
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from table_files import (
    KINDS,
    as_csv,
    read,
    write,
)

from fedcdh.data.readers import CsvStyle, open_tables
from fedcdh.data.readers import csv_file as csv_module
from fedcdh.errors import DataError

spelled = st.one_of(
    st.floats(allow_nan=False).map(repr),
    st.floats(allow_nan=False).map(lambda value: f"{value:.25e}"),
    st.decimals(allow_nan=False, allow_infinity=False).map(str),
    st.from_regex(r"\A[+-]?([0-9]{1,25}(\.[0-9]{0,25})?|\.[0-9]{1,25})([eE][+-]?[0-9]{1,3})?\Z"),
    st.sampled_from(["inf", "-inf", "Infinity", "1e400", "-0", "5.", ".5", "4.9e-324", "9007199254740993"]),
)


@settings(deadline=None, max_examples=150)
@given(st.lists(spelled, min_size=1, max_size=8), st.sampled_from(["", " ", "\t"]), st.sampled_from(".,"))
def test_numbers_are_rounded_as_python_rounds_them(texts, space, decimal):
    with TemporaryDirectory() as folder:
        cells = [f"{space}{text.replace('.', decimal)}{space}" for text in texts]
        path = write(Path(folder) / "a.csv", "\n".join(["x;g", *(f"{cell};1" for cell in cells)]))
        source = open_tables(path, style=CsvStyle(delimiter=";", decimal=decimal))
        assert source.kinds()["x"] == "continuous"
        (table,) = source.batches({"x": "continuous"})
    assert struct.pack(f"{len(texts)}d", *table.columns["x"].values) == struct.pack(
        f"{len(texts)}d", *map(float, texts)
    )


def test_blocks_of_bytes_change_nothing(tmp_path, monkeypatch):
    content = [(float(i), f"l\n{i % 7}") for i in range(500)]
    path = write(tmp_path / "a.csv", as_csv(content))
    monkeypatch.setattr(csv_module, "BLOCK_BYTES", 64)
    assert read(path) == {"x": [x for x, _ in content], "g": [g for _, g in content]}
    assert read(path, rename={"x": "y"}, batch_rows=2)["y"] == [x for x, _ in content]


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"\xef\xbb\xbfx,g\n1,a\n", {"x": [1], "g": ["a"]}),
        (b"x,g\r\n1,a\r\n\r\n2,b", {"x": [1, 2], "g": ["a", "b"]}),
        (b"\n\nx,g\n1,a\n\n", {"x": [1], "g": ["a"]}),
        (b'"x","g"\n"1","a,\n""b"""\n', {"x": [1], "g": ['a,\n"b"']}),
        (b"x,g\n NA , a\n ,NA\n-1e3 , NA \n", {"x": [None, None, -1000], "g": [" a", None, None]}),
        (b'x,g\n"NA",NaN\n"",null\n', {"x": [None, None], "g": [None, None]}),
        (b'x,g\n1,None\n2,5" x\n', {"x": [1, 2], "g": ["None", '5" x']}),
        ("größe ☃,a.b\n1,ä\n".encode(), {"größe ☃": [1], "a.b": ["ä"]}),
        (b"x,g\n1,1\n2,01\n", {"x": [1, 2], "g": [1, 1]}),
        (b"x,g", {}),
        (b"x,g\n", {}),
        (b"x,g\n\n\n", {}),
    ],
)
@pytest.mark.parametrize("name", ["a.csv", "b.CSV", "c.csv.gz"])
def test_csv_as_people_write_it(tmp_path, content, found, name):
    assert read(write(tmp_path / name, content)) == found


def test_labels_are_taken_as_written(tmp_path):
    path = write(tmp_path / "a.csv", "x,g\n1,01\n2,1.0\n3,NA\n")
    assert read(path, KINDS)["g"] == ["01", "1.0", None]
    assert read(path, KINDS, style=CsvStyle(missing=("",)))["g"] == ["01", "1.0", "NA"]
    assert read(path, {"x": "categorical"})["x"] == ["1", "2", "3"]


def test_styles(tmp_path):
    german = write(tmp_path / "a.csv", "x;g\n3,5;ä\n-1e-2;ö\n".encode("cp1252"))
    assert read(german, style=CsvStyle(decimal=",", encoding="cp1252")) == {"x": [3.5, -0.01], "g": ["ä", "ö"]}
    spaced = write(tmp_path / "f.csv", "x;g\n 3,5 ;a\n N.A. ;b\n")
    assert read(spaced, style=CsvStyle(decimal=",", missing=("N.A.",)))["x"] == [3.5, None]
    assert read(write(tmp_path / "b.tsv", "x\tg\n1\ta,b\n")) == {"x": [1], "g": ["a,b"]}
    assert read(write(tmp_path / "c.txt.gz", "x|g\n1|a\n"), style=CsvStyle(delimiter="|")) == {"x": [1], "g": ["a"]}
    assert read(write(tmp_path / "d.csv", "x,g\n1,ü\n".encode("utf-16")), style=CsvStyle(encoding="utf-16"))["g"] == [
        "ü"
    ]
    assert read(write(tmp_path / "e.csv", "x,g\n.,a\n1,b\n"), style=CsvStyle(missing=(".",)))["x"] == [None, 1]


@pytest.mark.parametrize("style", [{"decimal": ","}, {"delimiter": ";"}])
def test_thousands_are_not_guessed(tmp_path, style):
    cell = "1.234" if "decimal" in style else "1,234"
    source = open_tables(write(tmp_path / "a.csv", f"x;g\n1;a\n{cell};b\n"), style=CsvStyle(**style))
    assert source.kinds() == {"x": "categorical", "g": "categorical"}
    with pytest.raises(DataError, match=r"column 'x' holds numbers with thousands separators, .* Save the column"):
        list(source.batches(KINDS))


@pytest.mark.parametrize("cell", ["1,234", "1.234.567", "12 345,6", "1'234.5"])
def test_thousands_are_named_where_a_column_is_read_as_labels(tmp_path, cell):
    source = open_tables(write(tmp_path / "a.csv", f"x;g\n{cell};a\n;b\n"), style=CsvStyle(delimiter=";"))
    with pytest.raises(DataError, match="column 'x' holds numbers with thousands separators"):
        list(source.batches({"x": "categorical"}))
    assert read(write(tmp_path / "b.csv", "x,g\n1.234,a\n"), {"x": "categorical"})["x"] == ["1.234"]


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 400), st.integers(1, 50), st.sampled_from(["oops", "1 2", "0x10", "1_000", "1,5"]))
def test_a_cell_that_is_no_number_is_found_but_not_told(row, batch, cell):
    cells = ["1"] * 401
    cells[row] = f'"{cell}"'
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_module, "BLOCK_BYTES", 256)
        path = write(Path(folder) / "a.csv", "g,x\n" + "".join(f'"a\n",{one}\n\n' for one in cells))
        source = open_tables(path, batch_rows=batch)
        assert source.kinds()["x"] == "categorical"
        with pytest.raises(DataError, match=rf"a.csv: row {row + 1} .*column 'x'") as refusal:
            list(source.batches({"x": "continuous"}))
    assert cell not in str(refusal.value)


def test_undecodable_text_is_refused_in_any_encoding(tmp_path):
    source = open_tables(write(tmp_path / "a.csv", b"x,g\n1,\xe4\n"), style=CsvStyle(encoding="ascii"))
    with pytest.raises(DataError, match="not written in the encoding ascii"):
        source.kinds()
