"""Reading files: the cut into files, formats and batches changes no value; what cannot be read is refused by name."""

from __future__ import annotations

import errno
import gzip
import os
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from table_files import (
    KINDS,
    TABLE,
    arrow_bytes,
    arrow_stream,
    as_csv,
    parquet_bytes,
    read,
    save,
    values,
    write,
)

from fedcdh.data.readers import open_tables
from fedcdh.data.readers import table_files as table_module
from fedcdh.data.sources import TableSource
from fedcdh.errors import DataError, SettingsError
from fedcdh.summaries.profiles import profile

# The law: where rows live does not matter


def test_batches_are_no_larger_than_asked_for(tmp_path, monkeypatch):
    path = save(tmp_path / "a.parquet", {"x": np.arange(100.0), "g": ["a"] * 100})
    assert [table.rows for table in open_tables(path, batch_rows=40).batches(KINDS)] == [40, 40, 20]
    monkeypatch.setattr(table_module, "MAX_BATCH_CELLS", 100)
    assert [table.rows for table in open_tables(path).batches(KINDS)] == [50, 50]


def test_it_is_a_table_source_and_can_be_left_early(tmp_path):
    path = write(tmp_path / "a.csv", "x,g\n" + "1,a\n" * 300_000)
    source = open_tables(path, batch_rows=100)
    assert isinstance(source, TableSource)
    for _ in range(3):
        batches = source.batches(KINDS)
        next(batches)
        batches.close()


def test_order_and_choice_of_columns_follow_the_request(tmp_path):
    paths = [write(tmp_path / "a.csv", "x,y,g\n1,2,a\n"), write(tmp_path / "b.csv", "g,x,y\nb,3,4\n")]
    (first, second) = open_tables(paths).batches({"g": "categorical", "x": "continuous"})
    assert first.names == second.names == ("g", "x")
    assert values([first, second]) == {"g": ["a", "b"], "x": [1, 3]}
    assert list(open_tables(paths).batches({})) == []


# CSV as people write it


@pytest.mark.parametrize(
    ("content", "place"), [(",x,g\n0,1,a\n1,2,b\n", 1), ("x,g,\n1,a,\n2,b,\n", 3), ("x,g,,\n1,a,,\n2,b,,\n", 3)]
)
def test_a_column_without_a_heading_may_be_there_but_not_be_asked_for(tmp_path, content, place):
    path = write(tmp_path / "a.csv", content)
    source = open_tables(path)
    assert list(source.kinds()).count("") == 1
    with pytest.raises(DataError, match=rf"column {place} of .*a\.csv has no name in the header; name it"):
        profile(source, "north")
    assert profile(source, "north", variables=["x", "g"]).columns["x"].mean == 1.5
    assert values(source.batches(KINDS)) == {"x": [1, 2], "g": ["a", "b"]}


def test_a_renaming_can_name_the_column_without_a_heading_if_there_is_one(tmp_path):
    one, two = write(tmp_path / "a.csv", ",x\nb,1\n"), write(tmp_path / "b.csv", ",x,\nb,1,c\n")
    assert read(one, rename={"": "g"}) == {"g": ["b"], "x": [1]}
    with pytest.raises(DataError, match=r"column 1 of .*b\.csv has no name in the header"):
        read(two, rename={"": "g"})


@pytest.mark.parametrize("word", ["k.A.", "unknown"])
def test_numbers_taken_for_labels_are_recognised(tmp_path, word):
    cells = [f"{i}.5" for i in range(150)]
    source = open_tables(write(tmp_path / "a.csv", "x\n" + "\n".join([*cells, word]) + "\n"))
    with pytest.raises(DataError, match=r"150 of the 151 found so far look like numbers.*--missing WORD") as refused:
        profile(source, "north")
    assert word not in str(refused.value)
    assert "--kind x=continuous" in str(refused.value)
    with pytest.raises(DataError, match=r"a\.csv: row 151 "):  # as that advice says
        profile(source, "north", kinds={"x": "continuous"})
    commas = open_tables(write(tmp_path / "b.csv", "x\n" + "\n".join(f'"{i},5"' for i in range(150))))
    with pytest.raises(DataError, match=r"150 of the 150 .* with a comma \(decimal=',' or --decimal ,\)"):
        profile(commas, "north")


def test_names_and_dates_are_not_taken_for_numbers(tmp_path):
    for text in ("P{}", "2020-01-{}", "1.{}.2020"):
        source = open_tables(write(tmp_path / "a.csv", "x\n" + "\n".join(text.format(i) for i in range(150))))
        with pytest.raises(DataError, match=r"a text of its own|it holds dates") as refused:
            profile(source, "north")
        assert "look like numbers" not in str(refused.value)


# Parquet and Arrow


@pytest.mark.parametrize("ending", [".pq", ".arrow", ".csv"])
def test_an_empty_cell_counts_also_where_it_is_all_of_a_row(tmp_path, ending):
    cells = [1.0, None, 3.0, None, None, 2.0]
    lines = "".join("\n" if cell is None else f"{cell}\n" for cell in cells)
    path = write(tmp_path / "a.csv", "v\n" + lines) if ending == ".csv" else save(tmp_path / f"a{ending}", {"v": cells})
    assert read(path) == {"v": cells}


def test_types_have_to_agree_between_files(tmp_path):
    whole, texts = save(tmp_path / "a.parquet", {"x": [1]}), save(tmp_path / "b.parquet", {"x": ["1"]})
    source = open_tables([whole, texts])
    assert source.kinds() == {"x": "categorical"}
    for kind in ("continuous", "categorical"):
        with pytest.raises(
            DataError, match=r"'x' is int64 in .*a\.parquet and string in .*b\.parquet; expected one type"
        ):
            source.batches({"x": kind})
    for path in (texts, save(tmp_path / "c.parquet", {"x": [True]})):
        with pytest.raises(DataError, match=r"the study expects numbers\. Columns with types are never converted"):
            open_tables(path).batches({"x": "continuous"})
    floats, nothing = save(tmp_path / "d.parquet", {"x": [0.5]}), save(tmp_path / "e.parquet", {"x": pa.nulls(1)})
    assert read([whole, nothing, floats]) == {"x": [1, None, 0.5]}
    assert read([texts, nothing]) == {"x": ["1", None]}
    assert read([texts, write(tmp_path / "f.csv", "x\n2\n")]) == {"x": ["1", "2"]}


# Names


def test_columns_are_renamed(tmp_path):
    paths = [
        write(tmp_path / "a.csv", "x,g,h\n1,a,b\n"),
        save(tmp_path / "b.parquet", {"h": ["d"], "g": ["c"], "x": [2]}),
    ]
    source = open_tables(paths, rename={"g": "h", "h": "g", "x": "age"})
    assert source.kinds() == {"age": "continuous", "h": "categorical", "g": "categorical"}
    assert values(source.batches(source.kinds())) == {"age": [1, 2], "h": ["a", "c"], "g": ["b", "d"]}


@pytest.mark.parametrize(
    ("rename", "complaint"),
    [
        ({"x": "g"}, "both 'x' and 'g' would be called 'g'"),
        ({"x": "a", "g": "a"}, "both 'x' and 'g' would be called 'a'"),
        ({"X ": "a"}, r"'X ' is to be renamed, but there is no column 'X ' in .*a\.csv, did you mean 'x'\?"),
        ({"zzz": "a"}, "which has 'x', 'g'; correct the mapping of columns"),
    ],
)
def test_a_renaming_that_does_not_work_is_refused(tmp_path, rename, complaint):
    source = open_tables(write(tmp_path / "a.csv", "x,g\n1,a\n"), rename=rename)
    with pytest.raises(DataError, match=complaint):
        source.kinds()


@pytest.mark.parametrize("name", ["Blood pressure", "blood_pressure", " blood pressure "])
def test_near_names_are_suggested(tmp_path, name):
    source = open_tables(write(tmp_path / "a.csv", f"{name},other\n1,2\n"))
    with pytest.raises(DataError, match=rf"no column 'blood pressure' in .*a\.csv, did you mean '{name}'\?"):
        source.batches({"blood pressure": "continuous"})


# Which files


def test_something_has_to_be_asked_for(tmp_path):
    with pytest.raises(DataError, match="no file was named"):
        open_tables([])
    with pytest.raises(SettingsError, match="rows in a batch is 0"):
        open_tables(write(tmp_path / "a.csv", "x"), batch_rows=0)


# Damage


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("a.csv", b"", "is empty; expected a header"),
        ("a.csv", b"\n\n", "is empty; expected a header"),
        ("a.csv.gz", b"", "is empty; expected a header"),
        ("a.csv", b"x,g\n1,a\n\n2\n", "row 2 .* has 1 cells; expected 2. Correct it, or check that ',' is the delim"),
        ("a.csv", b"x,g\n1,a,b\n", "row 1 .* has 3 cells; expected 2"),
        ("a.csv", b'x,g\n1,a\n"2,b\n3,c\n', "row 2 .* quotation marks are closed"),
        ("a.csv", b'x,g\n"1,a\n' + b"3,c\n" * 1_000_000, "a row longer than 1 MB; most likely a quotation mark"),
        ("a.csv", b'"x,g\n' + b"3,c\n" * 100_000, "a row longer than 1 MB; most likely a quotation mark"),
        ("a.csv", b"x,g\n1,\xe4\n", "not written in the encoding utf-8; .*often 'latin-1'"),
        ("a.csv", b"x,g\n" + b"1,a\n" * 9999 + b"1,\xe4\n", "not written in the encoding utf-8 in row 10000 "),
        ("a.csv", b"x,\xe4\n1,2\n", "not written in the encoding utf-8"),
        ("a.csv", "x,g\n1,a\n".encode("utf-16"), "not written in the encoding utf-8"),
        ("a.csv", "x,g\n1,a\n".encode("utf-16-le"), "not written in the encoding utf-8"),
        ("a.csv", b"x,g,x\n1,2,3\n", "two columns are called 'x'"),
        ("a.csv", b"x;g\n1;2\n", "a single column 'x;g' .*; try ';' as the delimiter"),
        ("a.csv.gz", b"x,g\n1,2\n", "not compressed with gzip, or damaged"),
        ("a.csv.gz", TABLE[: len(TABLE) // 2], "not compressed with gzip, or damaged"),
        ("a.csv.gz", TABLE[:5000] + b"\xff" * 500 + TABLE[5500:], "not compressed with gzip, or damaged"),
        ("a.parquet", b"", "is empty"),
        ("a.parquet", b"x,g\n1,2\n", "cannot be read as Parquet"),
        ("a.parquet", parquet_bytes()[:-20], "cannot be read as Parquet"),
        ("a.parquet", b"PAR1" + b"\xff" * 600 + parquet_bytes()[604:], "cannot be read as Parquet"),
        ("a.arrow", b"", "is empty"),
        ("a.feather", b"x,g\n1,2\n", "cannot be read as Arrow"),
        ("a.arrow", arrow_bytes()[:-20], "cannot be read as Arrow"),
        ("a.arrow", arrow_bytes()[:8] + b"\xff" * 600 + arrow_bytes()[608:], "cannot be read as Arrow"),
        ("a.ipc", arrow_stream(), "is an Arrow stream, .* Save it with .* as Feather or as Parquet"),
        ("a.feather", b"FEA1" + bytes(100), "Feather file of version 1; .* Save it again as Arrow or Parquet"),
    ],
    ids=lambda found: None if isinstance(found, bytes) else found[:30],
)
def test_damage_is_refused(tmp_path, name, content, complaint):
    (tmp_path / name).write_bytes(content)
    source = open_tables(tmp_path / name)
    with pytest.raises(DataError, match=rf"{name}.*{complaint}"):
        list(source.batches({**source.kinds(), **KINDS}))


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from(["a.csv", "a.csv.gz", "a.parquet", "a.arrow"]),
    st.integers(0, 10**6),
    st.binary(max_size=4),
    st.integers(0, 4),
)
def test_damaged_bytes_are_read_or_refused(name, place, new, lost):
    data = as_csv([(float(i), f"l\n{i}") for i in range(50)]).encode()
    data = {"z": gzip.compress(data), "t": parquet_bytes(), "w": arrow_bytes()}.get(name[-1], data)
    place %= len(data)
    with TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(data[:place] + new + data[place + lost :])
        with suppress(DataError):
            read(path)


@pytest.mark.parametrize(
    ("name", "opening"), [("a.csv", "pyarrow.OSFile"), ("a.arrow", "pyarrow.memory_map"), ("a.pq", "pq.ParquetFile")]
)
@pytest.mark.parametrize(
    ("number", "said"),
    [
        (errno.EACCES, r": you have no right to; ask its owner for permission, or read a copy of your own$"),
        (errno.EIO, rf"( as \w+)?: {os.strerror(errno.EIO)}; save or copy it again$"),
    ],
)
def test_what_the_system_refuses_to_read_is_told_in_its_own_words(tmp_path, monkeypatch, name, opening, number, said):
    def refused(*args, **options):
        raise OSError(number, f"Failed to open local file {str(tmp_path)!r}. Detail: [errno {number}] as Arrow says it")

    path = write(tmp_path / name, "x\n1\n")
    monkeypatch.setattr(opening.replace("pq.", "pyarrow.parquet."), refused)
    with pytest.raises(DataError, match=rf"{name} cannot be read{said}"):
        open_tables(path).kinds()


@pytest.mark.parametrize("change", [b"", b"x,g\n1,a\n", b"x,g\n" + b"1,a\n" * 300_000])
def test_a_file_that_is_still_being_written_is_refused(tmp_path, change):
    """An export that goes on, or begins anew: whatever was read of it, these are not the rows of any table."""
    path = write(tmp_path / "a.csv", b"x,g\n" + b"1,a\n" * 299_999)
    batches = open_tables(path, batch_rows=1000).batches(KINDS)
    next(batches)
    path.write_bytes(change)
    with pytest.raises(DataError, match=r"a\.csv changed while it was read; wait until it is complete"):
        list(batches)


@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "a.arrow"])
def test_a_file_that_is_replaced_between_two_passes_is_refused(tmp_path, name):
    """The profile of numbers takes several; were they of different rows, they would contradict each other."""

    def saved(rows: int) -> Path:
        values = np.random.default_rng(rows).standard_normal(rows)
        if name == "a.csv":
            return write(tmp_path / name, "x\n" + "".join(f"{value}\n" for value in values))
        return save(tmp_path / name, {"x": values})

    path = saved(300)
    other = save(tmp_path / "b.parquet", {"x": np.arange(100.0)})
    source = open_tables([path, other], progress=lambda rows, share: saved(200) if share == 1 else None)
    with pytest.raises(DataError, match=rf"{name} changed while it was read; wait until it is complete"):
        profile(source, "north")


def test_a_file_that_went_away_is_refused(tmp_path):
    for path in (
        write(tmp_path / "a.csv", "x\n1\n"),
        save(tmp_path / "b.parquet", {"x": [1]}),
        save(tmp_path / "a.arrow", {"x": [1]}),
    ):
        source = open_tables(path)
        path.unlink()
        with pytest.raises(DataError, match=r"[ab]\.\w+ cannot be read"):
            source.kinds()


@pytest.mark.parametrize("begun", [False, True])
@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "a.arrow"])
def test_a_file_that_went_away_before_its_last_row_was_read_is_refused(tmp_path, name, begun):
    path = write(tmp_path / name, "x\n1\n2\n") if name == "a.csv" else save(tmp_path / name, {"x": [1, 2]})
    batches = open_tables(path, batch_rows=1).batches({"x": "continuous"})
    if begun:
        next(batches)
    path.unlink()
    with pytest.raises(DataError, match=rf"{name} cannot be read.*: No such file"):
        list(batches)


@pytest.mark.parametrize(
    ("second", "complaint"),
    [
        ("x\n1\n", "b.csv has no column 'g', but .*a.csv has"),
        ("x,g,h\n1,2,3\n", "a.csv has no column 'h', but .*b.csv has"),
    ],
)
def test_files_of_one_site_have_the_same_columns(tmp_path, second, complaint):
    paths = [write(tmp_path / "a.csv", "x,g\n1,a\n"), write(tmp_path / "b.csv", second)]
    with pytest.raises(DataError, match=complaint):
        open_tables(paths).batches({"x": "continuous"})


def test_wide_tables(tmp_path):
    names = [f"x{i}" for i in range(150_000)]
    path = write(tmp_path / "a.csv", ",".join(names) + "\n" + ",".join(["0.1234567890123456"] * len(names)) + "\n")
    assert read(path, {"x77777": "continuous"}) == {"x77777": [0.1234567890123456]}
