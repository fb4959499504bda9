"""What pandas notes in a Parquet file about its columns, where the types of Parquet cannot say it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

_UNNAMED_INDEX = re.compile(r"__index_level_[0-9]+__")


@dataclass(frozen=True)
class PandasMetadata:
    """Columns of the dtype category, whatever their values are; and the frame's index, which is no data of a study."""

    categories: frozenset[str] = frozenset()
    index: frozenset[str] = frozenset()


def read_pandas_metadata(schema: Any) -> PandasMetadata:
    """The notes in this schema. An index that somebody has named stays a column like any other."""
    try:
        found = schema.pandas_metadata or {}
        columns, index = found.get("columns", []), found.get("index_columns", [])
        return PandasMetadata(
            frozenset(one.get("field_name", one["name"]) for one in columns if one["pandas_type"] == "categorical"),
            frozenset(name for name in index if isinstance(name, str) and _UNNAMED_INDEX.fullmatch(name)),
        )
    except (AttributeError, KeyError, TypeError, ValueError):  # not as pandas writes them: the types alone count
        return PandasMetadata()
