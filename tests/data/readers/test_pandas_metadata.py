"""What pandas records about its columns."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from table_files import (
    read,
    save,
)

from fedcdh.data.readers import open_tables
from fedcdh.summaries.profiles import profile


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
