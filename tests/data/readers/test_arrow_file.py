"""Arrow files, which are mapped into memory."""

from __future__ import annotations

import os

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import feather

from fedcdh.data.readers import open_tables
from fedcdh.errors import DataError


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
