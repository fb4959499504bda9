"""Reading files: the cut into files, formats and batches changes no value; what cannot be read is refused by name."""

from __future__ import annotations

import csv
import datetime
import errno
import gzip
import io
import math
import os
import struct
from contextlib import suppress
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import feather

from fedcdh.data.readers import MISSING_VALUES, CsvStyle, open_tables, read_column_map
from fedcdh.data.readers import csv_file as csv_module
from fedcdh.data.readers import table_files as table_module
from fedcdh.data.sources import TableSource
from fedcdh.data.table import NumericColumn, to_table
from fedcdh.errors import DataError, SettingsError
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.profiles import profile

KINDS = {"x": "continuous", "g": "categorical"}


def values(tables) -> dict[str, list[object]]:
    """All cells in order: numbers as they are, labels as text, None where nothing is."""
    found: dict[str, list[object]] = {}
    for table in tables:
        for name, column in table.columns.items():
            if isinstance(column, NumericColumn):
                cells = [None if math.isnan(value) else value for value in column.values.tolist()]
            else:
                assert list(column.levels) == sorted(set(column.levels))
                cells = [None if code < 0 else column.levels[code] for code in column.codes]
            found.setdefault(name, []).extend(cells)
    return found


def read(paths, kinds=None, **options) -> dict[str, list[object]]:
    source = open_tables(paths, **options)
    return values(source.batches(source.kinds() if kinds is None else kinds))


def write(path: Path, content: str | bytes) -> Path:
    data = content if isinstance(content, bytes) else content.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def save(path: Path, cells: dict[str, object] | pa.Table, row_group_size: int | None = None) -> Path:
    table = cells if isinstance(cells, pa.Table) else pa.table(cells)
    if path.suffix in (".arrow", ".feather", ".ipc"):
        feather.write_feather(table, path, chunksize=row_group_size, compression="lz4" if row_group_size else None)
    else:
        pq.write_table(table, path, row_group_size)
    return path


# The law: where rows live does not matter

numbers = st.one_of(st.none(), st.floats(allow_nan=False), st.integers(-9, 9).map(float))
letters = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
labels = st.one_of(
    st.none(),
    st.sampled_from("abc"),
    st.text(letters, min_size=1, max_size=5).filter(lambda t: t.strip() not in MISSING_VALUES),
)
rows = st.lists(st.tuples(numbers, labels), max_size=30)


def as_csv(part) -> str:
    out = io.StringIO()
    writer = csv.writer(out, quoting=csv.QUOTE_MINIMAL)
    writer.writerow(["x", "g"])
    writer.writerows([("" if x is None else repr(x), "" if g is None else g) for x, g in part])
    return out.getvalue()


def as_typed(folder: Path, part, groups: int, encoded: bool) -> Path:
    texts = pa.array([g for _, g in part], pa.string())
    columns = {"x": pa.array([x for x, _ in part], pa.float64()), "g": texts.dictionary_encode() if encoded else texts}
    return save(folder, columns, row_group_size=groups)


@settings(deadline=None, max_examples=150)
@given(st.data(), rows)
def test_files_formats_and_batches_change_nothing(data, content):
    draw = data.draw
    cuts = sorted(draw(st.lists(st.integers(0, len(content)), max_size=3)))
    with TemporaryDirectory() as folder:
        paths = []
        for k, (start, stop) in enumerate(pairwise([0, *cuts, len(content)])):
            ending = draw(st.sampled_from([".csv", ".csv.gz", ".parquet", ".arrow", ".feather"]))
            path, part = Path(folder) / f"{k}{ending}", content[start:stop]
            if not ending.startswith(".csv"):
                as_typed(path, part, draw(st.integers(1, 9)), draw(st.booleans()))
            else:
                write(path, as_csv(part))
            paths.append(path)
        calls: list[tuple[int, float]] = []
        source = open_tables(paths, batch_rows=draw(st.integers(1, 12)), progress=lambda *news: calls.append(news))
        wanted = {"x": [x for x, _ in content], "g": [g for _, g in content]} if content else {}
        assert values(source.batches(KINDS)) == wanted
        assert sum(count for count, _ in calls) == len(content)
        shares = [share for _, share in calls]
        assert shares == sorted(shares)
        assert shares[-1] == 1.0
        assert values(source.batches(KINDS)) == wanted, "a source can be read again"


@settings(deadline=None, max_examples=100)
@given(st.lists(st.tuples(numbers, labels), max_size=20), st.integers(0, 20))
def test_what_a_column_is_does_not_depend_on_the_cut(content, cut):
    with TemporaryDirectory() as folder:
        whole = write(Path(folder) / "whole.csv", as_csv(content))
        parts = [
            write(Path(folder) / f"{k}.csv", as_csv(part)) for k, part in enumerate((content[:cut], content[cut:]))
        ]
        assert open_tables(whole).kinds() == open_tables(parts).kinds() == open_tables(parts[::-1]).kinds()


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


def test_files_give_the_profile_and_the_summary_of_the_table(tmp_path):
    rng = np.random.default_rng(0)
    x, g = rng.standard_normal(500).tolist(), rng.choice(list("abc"), 500).tolist()
    x[7], g[9] = None, None
    paths = [
        write(tmp_path / "a.csv", as_csv(list(zip(x[:200], g[:200], strict=True)))),
        save(tmp_path / "b.parquet", {"x": x[200:], "g": g[200:]}, row_group_size=70),
    ]
    source, table = open_tables(paths, batch_rows=64), {"x": x, "g": g}
    assert profile(source, "north") == profile(table, "north")
    plan = StudyPlan.from_profiles([profile(source, "north"), profile(table, "south")])
    assert summarize(source, plan, "north") == summarize(table, plan, "north")


def test_blocks_of_bytes_change_nothing(tmp_path, monkeypatch):
    content = [(float(i), f"l\n{i % 7}") for i in range(500)]
    path = write(tmp_path / "a.csv", as_csv(content))
    monkeypatch.setattr(csv_module, "BLOCK_BYTES", 64)
    assert read(path) == {"x": [x for x, _ in content], "g": [g for _, g in content]}
    assert read(path, rename={"x": "y"}, batch_rows=2)["y"] == [x for x, _ in content]


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
        with pytest.raises(DataError, match=r"more than 100 different labels .*; group them, or leave it out"):
            profile(source, "north")


@pytest.mark.parametrize("style", [{"decimal": ","}, {"delimiter": ";"}])
def test_thousands_are_not_guessed(tmp_path, style):
    cell = "1.234" if "decimal" in style else "1,234"
    source = open_tables(write(tmp_path / "a.csv", f"x;g\n1;a\n{cell};b\n"), style=CsvStyle(**style))
    assert source.kinds() == {"x": "categorical", "g": "categorical"}
    with pytest.raises(DataError, match=r"row 2 .* has no number in column 'x'"):
        list(source.batches(KINDS))


@pytest.mark.parametrize(
    "style",
    [
        {"delimiter": ";;"},
        {"delimiter": "\n"},
        {"delimiter": ""},
        {"delimiter": ",", "decimal": ","},
        {"decimal": "·"},
        {"encoding": "klingon"},
        {"missing": "NA"},
        {"missing": (1,)},
    ],
)
def test_a_style_that_cannot_be_is_refused(style):
    with pytest.raises(SettingsError, match=r"expected|change one|there is no encoding"):
        CsvStyle(**style)


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


# Parquet and Arrow


@pytest.mark.parametrize("ending", [".pq", ".arrow"])
@pytest.mark.parametrize(
    ("cells", "kind", "found"),
    [
        (pa.array([1, None, 2**53 + 1]), "continuous", [1, None, 2.0**53]),
        (pa.array([2**64 - 1], pa.uint64()), "continuous", [2.0**64]),
        (pa.array([0.5, None, float("nan"), math.inf]), "continuous", [0.5, None, None, math.inf]),
        (pa.array(np.array([0.5], np.float16)), "continuous", [0.5]),
        (pa.array([0.25, None], pa.float32()), "continuous", [0.25, None]),
        (pa.array([Decimal("0.1"), None, Decimal("123456789.3")]), "continuous", [0.1, None, 123456789.3]),
        (pa.nulls(2), "continuous", [None, None]),
        (pa.array(["b", None, "a", ""]), "categorical", ["b", None, "a", ""]),
        (pa.array(["b", "NA"], pa.large_string()), "categorical", ["b", "NA"]),
        (pa.array(["b", None], pa.string_view()), "categorical", ["b", None]),
        (pa.array([True, None, False]), "categorical", ["True", None, "False"]),
        (pa.array(["b", None, "b"]).dictionary_encode(), "categorical", ["b", None, "b"]),
    ],
)
def test_types_are_believed(tmp_path, ending, cells, kind, found):
    path = save(tmp_path / f"a{ending}", {"v": cells})
    assert open_tables(path).kinds() == {"v": kind}
    assert read(path) == {"v": found}


CODES = [900000000000207008, 900000000000207009, None, -3, 900000000000207008]


@pytest.mark.parametrize("ending", [".pq", ".arrow", ".csv"])
@pytest.mark.parametrize("encoded", [False, True])
def test_whole_numbers_of_many_digits_are_labels_digit_by_digit(tmp_path, ending, encoded):
    """Two codes of SNOMED that are the same float."""
    if ending == ".csv":
        path = write(tmp_path / "a.csv", "v\n" + "".join("\n" if code is None else f"{code}\n" for code in CODES))
    else:
        cells = pa.array(CODES)
        path = save(tmp_path / f"a{ending}", {"v": cells.dictionary_encode() if encoded else cells})
    assert read(path, {"v": "categorical"}) == {"v": [None if code is None else str(code) for code in CODES]}
    found = profile(open_tables(path), "north", kinds={"v": "categorical"}).columns["v"]
    assert dict(zip(found.levels, found.counts, strict=True)) == {"-3": 1, str(CODES[0]): 2, str(CODES[1]): 1}


@pytest.mark.parametrize("ending", [".pq", ".arrow", ".csv"])
def test_an_empty_cell_counts_also_where_it_is_all_of_a_row(tmp_path, ending):
    cells = [1.0, None, 3.0, None, None, 2.0]
    lines = "".join("\n" if cell is None else f"{cell}\n" for cell in cells)
    path = write(tmp_path / "a.csv", "v\n" + lines) if ending == ".csv" else save(tmp_path / f"a{ending}", {"v": cells})
    assert read(path) == {"v": cells}


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(numbers, labels, st.one_of(st.none(), st.booleans())), min_size=1))
def test_a_file_reads_like_the_table_in_memory(content):
    types = {"x": pa.float64(), "g": pa.string(), "b": pa.bool_()}
    table = pa.table({name: pa.array([row[j] for row in content], types[name]) for j, name in enumerate(types)})
    kept = to_table(table)
    with TemporaryDirectory() as folder:
        assert read(save(Path(folder) / "a.parquet", table), dict.fromkeys(types, "categorical")) == values([kept])


def test_numbers_as_labels_come_as_numbers(tmp_path):
    path = save(tmp_path / "a.parquet", {"g": [3.0, None, 2.5]})
    (table,) = open_tables(path).batches({"g": "categorical"})
    assert values([table]) == {"g": [3.0, None, 2.5]}
    assert table.columns["g"].to_categorical().levels == ("2.5", "3")


@pytest.mark.parametrize("values_of", [[3, 1, 3], [1.0, None, 2.0], ["a", "b", None]])
def test_the_dtype_category_of_pandas_means_labels(tmp_path, values_of):
    frame = pd.DataFrame({"g": pd.Series(values_of).astype("category"), "n": [1, 2, 3]})
    frame.to_parquet(tmp_path / "a.parquet")
    source = open_tables(tmp_path / "a.parquet")
    assert source.kinds() == {"g": "categorical", "n": "continuous"}
    assert profile(source, "north") == profile(frame, "north")
    assert open_tables(tmp_path / "a.parquet", rename={"g": "h"}).kinds()["h"] == "categorical"
    frame.astype({"g": object}).to_csv(tmp_path / "b.csv", index=False)
    assert open_tables([tmp_path / "a.parquet", tmp_path / "b.csv"]).kinds()["g"] == "categorical"


def test_the_index_of_pandas_is_no_variable_unless_it_has_a_name(tmp_path):
    frame = pd.DataFrame({"x": [1.0, 2.0], "g": ["a", "b"]}, index=[4, 2])
    frame.to_parquet(tmp_path / "a.parquet")
    assert "__index_level_0__" in pq.read_schema(tmp_path / "a.parquet").names
    assert read(tmp_path / "a.parquet") == {"x": [1.0, 2.0], "g": ["a", "b"]}
    frame.rename_axis("age").to_parquet(tmp_path / "b.parquet")
    assert read(tmp_path / "b.parquet")["age"] == [4, 2]
    pd.concat({7: frame}).to_parquet(tmp_path / "c.parquet")
    assert list(read(tmp_path / "c.parquet")) == ["x", "g"]
    by_hand = save(tmp_path / "d.parquet", {"__index_level_0__": [1.0]})
    assert read(by_hand) == {"__index_level_0__": [1.0]}, "no note of pandas says that it is an index"


@pytest.mark.parametrize(
    "notes", [b"", b"{", b"[]", b"7", b'{"columns": 1}', b'{"columns": [1]}', b'{"columns": [{"pandas_type": "x"}]}']
)
def test_notes_that_pandas_did_not_write_change_nothing(tmp_path, notes):
    table = pa.table({"x": [1.0]}).replace_schema_metadata({b"pandas": notes})
    assert read(save(tmp_path / "a.parquet", table)) == {"x": [1.0]}


@settings(deadline=None, max_examples=100)
@given(st.lists(st.one_of(st.none(), st.decimals(places=9, min_value=-(10**25), max_value=10**25)), min_size=1))
def test_decimals_are_rounded_as_python_rounds_them(cells):
    with TemporaryDirectory() as folder:
        path = save(Path(folder) / "a.parquet", {"x": pa.array(cells, pa.decimal128(38, 9))})
        assert read(path) == {"x": [None if cell is None else float(cell) for cell in cells]}


def test_only_labels_that_occur_are_levels(tmp_path):
    cells = pa.DictionaryArray.from_arrays(pa.array([2, None, 1, 2, 3]), pa.array(["unused", "b", "a", "b"]))
    (table,) = open_tables(save(tmp_path / "a.parquet", {"g": cells})).batches({"g": "categorical"})
    assert table.columns["g"].levels == ("a", "b")
    assert values([table]) == {"g": ["a", None, "b", "a", "b"]}


def test_names_with_dots_are_names(tmp_path):
    cells = {"a": [1.0], "a.b": [2.0], "s": [{"t": 3.0}], "s.t": [4.0], "": [5.0]}
    path = save(tmp_path / "a.parquet", cells)
    for name in ("a", "a.b", "s.t"):
        assert read(path, {name: "continuous"}) == {name: cells[name]}
    assert read(path, {"last": "continuous"}, rename={"": "last"}) == {"last": [5.0]}
    assert read(path, {"s.t": "continuous", "a": "continuous"}) == {"s.t": [4.0], "a": [1.0]}


@pytest.mark.parametrize(
    "cells", [[datetime.date(2020, 1, 1)], [datetime.datetime(2020, 1, 1)], [[1.0]], [b"a"], [{"a": 1}]], ids=str
)
def test_what_is_neither_number_nor_label_is_listed_but_not_read(tmp_path, cells):
    source = open_tables(save(tmp_path / "a.parquet", {"x": [1.0], "day": cells}))
    assert list(source.kinds()) == ["x", "day"]
    assert values(source.batches({"x": "continuous"})) == {"x": [1.0]}
    for kind in ("continuous", "categorical"):
        with pytest.raises(DataError, match=r"a\.parquet: column 'day' holds .*neither a number nor a label; turn it"):
            source.batches({"day": kind})


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
        with pytest.raises(
            DataError, match=r"the study expects numbers\. Columns with types are never converted"
        ):
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
        ({"X ": "a"}, r"'X ' is to be renamed, but there is no column 'X ' in .*a\.csv; did you mean 'x'\?"),
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
    with pytest.raises(DataError, match=rf"no column 'blood pressure' in .*a\.csv; did you mean '{name}'\?"):
        source.batches({"blood pressure": "continuous"})


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


# Which files


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
        ("a.xlsx", r"a\.xlsx is not a table file by its name; expected a name that ends in \.csv"),
        ("a.parquet.gz", "not a table file by its name"),
        ("no ending", "not a table file by its name"),
    ],
)
def test_files_that_are_not_there_or_no_tables_are_refused(tmp_path, name, complaint):
    (tmp_path / "deep").mkdir()
    for there in ("a.xlsx", "a.parquet.gz", "no ending"):
        write(tmp_path / there, "x")
    with pytest.raises(DataError, match=complaint):
        open_tables(tmp_path / name)


def test_something_has_to_be_asked_for(tmp_path):
    with pytest.raises(DataError, match="no file was named"):
        open_tables([])
    with pytest.raises(SettingsError, match="rows in a batch is 0"):
        open_tables(write(tmp_path / "a.csv", "x"), batch_rows=0)


# Damage

TABLE = gzip.compress(("x,g\n" + "".join(f"{i},{i * i}\n" for i in range(50_000))).encode())


def parquet_bytes() -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table({"x": np.arange(1000.0), "g": ["a"] * 1000}), out)
    return out.getvalue()


def arrow_bytes() -> bytes:
    out = io.BytesIO()
    feather.write_feather(pa.table({"x": np.arange(1000.0), "g": ["a"] * 1000}), out)
    return out.getvalue()


def arrow_stream() -> bytes:
    out, table = io.BytesIO(), pa.table({"x": [1.0], "g": ["a"]})
    with pa.ipc.new_stream(out, table.schema) as stream:
        stream.write_table(table)
    return out.getvalue()


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


def test_undecodable_text_is_refused_in_any_encoding(tmp_path):
    source = open_tables(write(tmp_path / "a.csv", b"x,g\n1,\xe4\n"), style=CsvStyle(encoding="ascii"))
    with pytest.raises(DataError, match="not written in the encoding ascii"):
        source.kinds()


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


def test_an_arrow_file_that_becomes_shorter_does_not_end_the_process(tmp_path):
    """It is mapped into memory: to look beyond its end would be answered with a signal."""
    path = tmp_path / "a.arrow"
    table = pa.table({"x": np.arange(300_000.0)})
    feather.write_feather(table, path, compression="uncompressed", chunksize=1000)
    batches = open_tables(path, batch_rows=500).batches({"x": "continuous"})
    next(batches)
    os.truncate(path, path.stat().st_size // 3)
    with pytest.raises(DataError, match=r"a\.arrow became shorter while it was read; wait until it is complete"):
        list(batches)


@pytest.mark.parametrize("compression", ["uncompressed", "zstd"])
def test_of_an_arrow_file_that_is_not_packed_no_batch_is_copied_as_a_whole(tmp_path, compression):
    rows = 400_000
    table = pa.table({"x": np.arange(float(rows)), "y": np.arange(rows) % 3, "unused": ["long enough"] * rows})
    feather.write_feather(table, tmp_path / "a.arrow", compression=compression, chunksize=rows)
    source, held = open_tables(tmp_path / "a.arrow", batch_rows=1000), []
    before = pa.total_allocated_bytes()
    for number, batch in enumerate(source.batches({"x": "continuous", "y": "categorical"})):
        assert batch.columns["x"].values[0] == 1000 * number
        held.append(pa.total_allocated_bytes() - before)
    assert len(held) == rows // 1000
    assert (max(held) > 8 * rows) == (compression == "zstd")


def test_rows_of_an_arrow_file_stay_when_the_file_goes(tmp_path):
    path = tmp_path / "a.arrow"
    feather.write_feather(pa.table({"x": np.arange(300_000.0)}), path, compression="uncompressed", chunksize=300_000)
    first = next(open_tables(path).batches({"x": "continuous"}))
    os.truncate(path, 0)
    assert first.columns["x"].values[-1] == first.rows - 1
