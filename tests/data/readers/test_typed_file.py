"""Files whose columns have types."""

from __future__ import annotations

import datetime

import pytest
from table_files import (
    save,
    values,
)

from fedcdh.data.readers import open_tables
from fedcdh.errors import DataError


@pytest.mark.parametrize(
    "cells", [[datetime.date(2020, 1, 1)], [datetime.datetime(2020, 1, 1)], [[1.0]], [b"a"], [{"a": 1}]], ids=str
)
def test_what_is_neither_number_nor_label_is_listed_but_not_read(tmp_path, cells):
    source = open_tables(save(tmp_path / "a.parquet", {"x": [1.0], "day": cells}))
    assert list(source.kinds()) == ["x", "day"]
    assert values(source.batches({"x": "continuous"})) == {"x": [1.0]}
    for kind in ("continuous", "categorical"):
        with pytest.raises(DataError, match=r"a\.parquet: column 'day' holds .*neither a number nor a text; turn it"):
            source.batches({"day": kind})
