"""From columns of Arrow to numeric and categorical columns."""

from __future__ import annotations

import math
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from table_files import (
    read,
    save,
    values,
    write,
)

from fedcdh.data.readers import open_tables
from fedcdh.summaries.profiles import profile


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


def test_numbers_as_labels_come_as_numbers(tmp_path):
    path = save(tmp_path / "a.parquet", {"g": [3.0, None, 2.5]})
    (table,) = open_tables(path).batches({"g": "categorical"})
    assert values([table]) == {"g": [3.0, None, 2.5]}
    assert table.columns["g"].to_categorical().levels == ("2.5", "3")


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
