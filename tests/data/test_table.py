"""Tables in memory: whatever library made them, the same columns; what is neither number nor label is refused."""

from __future__ import annotations

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcdh.data.columns import CategoricalColumn, NumericColumn
from fedcdh.data.table import Table, to_table
from fedcdh.errors import DataError

CELLS = {"age": [30.5, None, 50.0], "count": [1, 2, None], "sex": ["f", None, "m"], "well": [True, False, None]}
MAKERS = {
    "pandas": lambda cells: pd.DataFrame(cells),
    "pandas nullable": lambda cells: pd.DataFrame(cells).convert_dtypes(),
    "pandas of objects": lambda cells: pd.DataFrame(cells, dtype=object),
    "polars": lambda cells: pl.DataFrame(cells),
    "polars lazy": lambda cells: pl.LazyFrame(cells),
    "pyarrow": lambda cells: pa.table(cells),
    "lists": lambda cells: dict(cells),
    "numpy of objects": lambda cells: {name: np.array(column, dtype=object) for name, column in cells.items()},
    "numpy scalars": lambda cells: {
        name: [None if cell is None else np.asarray(cell)[()] for cell in column] for name, column in cells.items()
    },
    "pandas series": lambda cells: {name: pd.Series(column) for name, column in cells.items()},
}


def contents(table: Table) -> dict[str, list[object]]:
    """Numbers as they are, labels as text, None where nothing is."""
    found = {}
    for name, column in table.columns.items():
        if isinstance(column, NumericColumn):
            found[name] = [None if np.isnan(value) else value for value in column.values.tolist()]
        else:
            found[name] = [None if code < 0 else column.levels[code] for code in column.codes]
    return found


@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS.keys())
def test_every_library_gives_the_same_table(maker):
    table = to_table(maker(CELLS))
    assert contents(table) == {
        "age": [30.5, None, 50.0],
        "count": [1.0, 2.0, None],
        "sex": ["f", None, "m"],
        "well": ["True", "False", None],
    }
    assert table.rows == 3
    assert {name: int(column.missing.sum()) for name, column in table.columns.items()} == dict.fromkeys(CELLS, 1)


def test_arrays_take_names():
    assert to_table(np.eye(2), ["a", "b"]).names == ("a", "b")
    assert to_table(np.eye(2)).names == ("x1", "x2")
    mixed = to_table(np.array([[1, "p"], [2.5, None]], dtype=object), ["a", "b"])
    assert contents(mixed) == {"a": [1.0, 2.5], "b": ["p", None]}


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2.5, Decimal("3.5")], NumericColumn),
        ([np.int64(1), np.float32(2)], NumericColumn),
        (np.array([1, 2], dtype=np.uint8), NumericColumn),
        (np.ma.array([1.0, 2.0], mask=[False, True]), NumericColumn),
        ([None, None], NumericColumn),
        ([], NumericColumn),
        (range(3), NumericColumn),
        ([True, False], CategoricalColumn),
        ([np.bool_(True), None], CategoricalColumn),
        (["1", "2"], CategoricalColumn),
        ([1, "a"], CategoricalColumn),
    ],
)
def test_numbers_are_numbers_and_all_else_is_a_label(values, kind):
    assert isinstance(to_table({"x": values}).columns["x"], kind)


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"x": pd.Categorical([1, 2, None])}),
        pl.DataFrame({"x": ["1", "2", None]}, schema={"x": pl.Enum(["1", "2"])}),
        pl.DataFrame({"x": ["1", "2", None]}, schema={"x": pl.Categorical}),
        pa.table({"x": pa.array(["1", "2", None]).dictionary_encode()}),
    ],
    ids=["pandas", "polars enum", "polars categorical", "pyarrow"],
)
def test_a_categorical_column_holds_labels_even_if_they_look_like_numbers(frame):
    assert contents(to_table(frame)) == {"x": ["1", "2", None]}


@pytest.mark.parametrize("frame", [pl.DataFrame({"x": [None, None]}), pa.table({"x": [None, None]})])
def test_a_column_of_nothing_is_missing_not_refused(frame):
    assert contents(to_table(frame)) == {"x": [None, None]}


def test_pandas_columns_may_be_called_by_numbers():
    assert contents(to_table(pd.DataFrame([[1.0, 2.0]]))) == {"0": [1.0], "1": [2.0]}


DAY = datetime.date(2020, 2, 29)


@pytest.mark.parametrize(
    "data",
    [
        pd.DataFrame({"when": pd.to_datetime(["2020-02-29"])}),
        pd.DataFrame({"when": [DAY]}),
        pl.DataFrame({"when": [DAY]}),
        pa.table({"when": [datetime.timedelta(days=1)]}),
        {"when": [DAY, None]},
        {"when": pd.to_datetime(pd.Series(["2020-02-29"]))},
        {"when": np.array(["2020-02-29"], dtype="datetime64[D]")},
        {"when": [1j]},
        {"when": [b"bytes"]},
        {"when": [[1, 2], [3]]},
        {"when": [np.array([1, 2]), np.array([1, 2, 3])]},
        pl.DataFrame({"when": [[1], [2]]}),
    ],
)
def test_what_is_neither_number_nor_label_is_refused_by_name(data):
    with pytest.raises(DataError, match=r"client 'north'.*'when' holds .*leave it out"):
        to_table(data, owner="client 'north'")


def test_columns_left_out_are_not_looked_at():
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0], "when": pd.to_datetime(["2020-02-29", "2021-01-01"])})
    assert to_table(frame, only=["b", "a"]).names == ("b", "a")
    with pytest.raises(DataError, match=r"client 'north': there is no column 'c' \(there are 'a', 'b', 'when'\)"):
        to_table(frame, only=["a", "c"], owner="client 'north'")


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        ({"a": [1, 2], "b": [1]}, r"different lengths \(\[1, 2\]\)"),
        ({"a": 3}, "0 dimensions"),
        ({1: [1], "1": [2]}, "two columns are called '1'"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "two columns have one name"),
        (np.zeros((2, 2, 2)), "expected two, rows and variables"),
        ("table.csv", "found str, which cannot be read"),
        (None, "found NoneType, which cannot be read"),
        ([[1, 2]], "found list, which cannot be read"),
    ],
)
def test_what_is_no_table_is_refused(data, complaint):
    with pytest.raises(DataError, match=complaint):
        to_table(data)


@pytest.mark.parametrize("names", [["a"], ["a", "a"], ["a", "b", "c"]])
def test_names_must_fit_the_array(names):
    with pytest.raises(DataError, match="2 columns"):
        to_table(np.eye(2), names)


@given(st.lists(st.tuples(st.sampled_from(["n", "s", "w"]), st.integers(0, 99)), min_size=1, max_size=30))
def test_a_split_table_holds_every_row_once(rows):
    parts = to_table({"site": [site for site, _ in rows], "x": [x for _, x in rows]}).split("site")
    assert list(parts) == sorted({site for site, _ in rows})
    for site, part in parts.items():
        assert part.names == ("x",)
        assert part.columns["x"].values.tolist() == [x for other, x in rows if other == site]


def test_a_row_without_a_client_is_refused():
    with pytest.raises(DataError, match=r"'site' is empty in 2 rows.*Fill it in"):
        to_table({"site": ["n", None, None], "x": [1, 2, 3]}).split("site")
    with pytest.raises(DataError, match="no column 'site', which should name the client of each row"):
        to_table({"x": [1, 2, 3]}).split("site")


def test_numbers_are_rounded_once():
    large, exact = 2**53 + 1, Decimal("123456789.3")
    table = to_table(pa.table({"large": [large, 1, None], "exact": pa.array([exact, Decimal(1), None])}))
    assert table.columns["large"].values[:2].tolist() == [float(large), 1.0]
    assert table.columns["exact"].values[:2].tolist() == [123456789.3, 1.0]
    assert all(column.missing[2] for column in table.columns.values())
