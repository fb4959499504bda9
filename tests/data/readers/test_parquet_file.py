"""Parquet files."""

from __future__ import annotations

from table_files import (
    read,
    save,
)


def test_names_with_dots_are_names(tmp_path):
    cells = {"a": [1.0], "a.b": [2.0], "s": [{"t": 3.0}], "s.t": [4.0], "": [5.0]}
    path = save(tmp_path / "a.parquet", cells)
    for name in ("a", "a.b", "s.t"):
        assert read(path, {name: "continuous"}) == {name: cells[name]}
    assert read(path, {"last": "continuous"}, rename={"": "last"}) == {"last": [5.0]}
    assert read(path, {"s.t": "continuous", "a": "continuous"}) == {"s.t": [4.0], "a": [1.0]}
