"""The metadata that pandas writes into a Parquet file about columns whose types Parquet does not have."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

_UNNAMED_INDEX = re.compile(r"__index_level_[0-9]+__")


@dataclass(frozen=True)
class PandasMetadata:
    """The columns of dtype category, and those of the index, which are not data of a study."""

    categories: frozenset[str] = frozenset()
    index: frozenset[str] = frozenset()


def read_pandas_metadata(schema: Any) -> PandasMetadata:
    """Return the metadata in this schema; an index with a name stays a column like any other."""
    try:
        found = schema.pandas_metadata or {}
        columns, index = found.get("columns", []), found.get("index_columns", [])
        return PandasMetadata(
            frozenset(one.get("field_name", one["name"]) for one in columns if one["pandas_type"] == "categorical"),
            frozenset(name for name in index if isinstance(name, str) and _UNNAMED_INDEX.fullmatch(name)),
        )
    except (AttributeError, KeyError, TypeError, ValueError):  # not as pandas writes them: only the types count
        return PandasMetadata()
