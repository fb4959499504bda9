"""Records of a result (edges, drift, stability) as data frames with a type for every column, however many are empty."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from types import NoneType
from typing import Any, get_args, get_type_hints

from fedcdh._runtime.optional_imports import optional_import
from fedcdh.errors import SettingsError


def to_pandas(records: Iterable[Any], kind: type | None = None) -> Any:
    """A `pandas.DataFrame`, one row for each record; None is NaN in columns of numbers.

    `to_pandas(result.edges())`, `to_pandas(result.drift(), Drift)`, `to_pandas(result.stability().edges)`. The kind of
    record is asked for only where there may be none: a frame without rows has its columns all the same.
    """
    with optional_import("pandas", extra="graphs"):
        import pandas
    kinds, columns = _typed_columns(records, kind)
    types = {float: "float64", bool: "bool", str: "object"}
    return pandas.DataFrame(
        {name: pandas.Series(values, dtype=types.get(kinds[name], "object")) for name, values in columns.items()}
    )


def to_polars(records: Iterable[Any], kind: type | None = None) -> Any:
    """A `polars.DataFrame`, one row for each record; tuples of names are lists of strings."""
    with optional_import("polars", extra="graphs"):
        import polars
    kinds, columns = _typed_columns(records, kind)
    types: dict[type, Any] = {
        float: polars.Float64,
        bool: polars.Boolean,
        str: polars.String,
        tuple: polars.List(polars.String),
    }
    if strange := [name for name, kind in kinds.items() if kind not in types]:
        raise SettingsError(
            f"{', '.join(strange)} cannot be a column of polars: expected records whose fields are texts, numbers, "
            "truth values or tuples of names, as those of result.edges(), result.drift() and result.stability().edges"
        )
    listed = {name: [list(v) if isinstance(v, tuple) else v for v in values] for name, values in columns.items()}
    return polars.DataFrame(listed, schema={name: types[kind] for name, kind in kinds.items()})


def _typed_columns(records: Iterable[Any], kind: type | None) -> tuple[dict[str, type], dict[str, list[Any]]]:
    """What kind of values each field has, and the values."""
    found = list(records)
    if not found and kind is None:
        raise SettingsError(
            "there are no records, so nobody knows their columns; name the kind of record, such as fedcdh.Drift"
        )
    kind = kind or type(found[0])
    hints, names = get_type_hints(kind), [field.name for field in fields(kind)]
    return (
        {name: _column_type(hints[name]) for name in names},
        {name: [getattr(record, name) for record in found] for name in names},
    )


def _column_type(hint: Any) -> type:
    """str, float, bool or tuple; of `float | None`, float."""
    options = [option for option in get_args(hint) if option is not NoneType] if NoneType in get_args(hint) else [hint]
    origin: type = getattr(options[0], "__origin__", options[0])
    return origin
