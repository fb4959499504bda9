"""Table files, as people and programs write them, and the cells that are read from them."""

from __future__ import annotations

import csv
import gzip
import io
import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st
from pyarrow import feather

from fedcdh.data.columns import NumericColumn
from fedcdh.data.readers import MISSING_VALUES, open_tables

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
