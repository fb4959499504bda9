"""Records of a result (edges, drift, stability) as data frames with a type for every column."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from types import NoneType
from typing import Any, get_args, get_type_hints

from fedcdh._runtime.optional_imports import optional_import
from fedcdh.errors import SettingsError


def to_pandas(records: Iterable[Any], kind: type | None = None) -> Any:
    """Return records as a `pandas.DataFrame` with one row per record.

    Parameters
    ----------
    records : iterable of dataclass instances
        Records of one kind, such as `result.edges()`, `result.drift()` or `result.stability().edges`.
    kind : type, optional
        The kind of record. It is needed only if there may be no records: an empty frame has its columns all the same.

    Returns
    -------
    pandas.DataFrame
        Numbers are float64, with NaN for None; truth values are bool; everything else is object.

    Raises
    ------
    SettingsError
        If there are no records and no kind.
    MissingDependencyError
        If pandas is not installed.

    See Also
    --------
    to_polars : The same with polars.

    Examples
    --------
    >>> import fedcdh
    >>> result = fedcdh.discover(fedcdh.demo.hospital_study().columns(), domain="hospital")
    >>> to_pandas(result.edges())["p_value"].dtype
    dtype('float64')
    """
    with optional_import("pandas", extra="graphs"):
        import pandas
    kinds, columns = _typed_columns(records, kind)
    types = {float: "float64", bool: "bool", str: "object"}
    return pandas.DataFrame(
        {name: pandas.Series(values, dtype=types.get(kinds[name], "object")) for name, values in columns.items()}
    )


def to_polars(records: Iterable[Any], kind: type | None = None) -> Any:
    """Return records as a `polars.DataFrame` with one row per record.

    Parameters
    ----------
    records : iterable of dataclass instances
        Records of one kind, such as `result.edges()`, `result.drift()` or `result.stability().edges`.
    kind : type, optional
        The kind of record. It is needed only if there may be no records: an empty frame has its columns all the same.

    Returns
    -------
    polars.DataFrame
        Tuples of names become lists of strings.

    Raises
    ------
    SettingsError
        If there are no records and no kind, or if a field has a type that no column can have.
    MissingDependencyError
        If polars is not installed.

    See Also
    --------
    to_pandas : The same with pandas.

    Examples
    --------
    >>> import fedcdh
    >>> result = fedcdh.discover(fedcdh.demo.hospital_study().columns(), domain="hospital")
    >>> to_polars(result.edges())["mark"].dtype
    String
    """
    with optional_import("polars", extra="graphs"):
        import polars
    kinds, columns = _typed_columns(records, kind)
    types: dict[type, Any] = {
        float: polars.Float64,
        bool: polars.Boolean,
        str: polars.String,
        tuple: polars.List(polars.String),
    }
    if unsupported := [name for name, found in kinds.items() if found not in types]:
        raise SettingsError(
            f"The fields {', '.join(unsupported)} cannot be columns of polars. Expected records whose fields are "
            "texts, numbers, truth values or tuples of names. Pass result.edges(), result.drift() or "
            "result.stability().edges."
        )
    lists = {name: [list(v) if isinstance(v, tuple) else v for v in values] for name, values in columns.items()}
    return polars.DataFrame(lists, schema={name: types[found] for name, found in kinds.items()})


def _typed_columns(records: Iterable[Any], kind: type | None) -> tuple[dict[str, type], dict[str, list[Any]]]:
    """Return the type and the values of each field."""
    found = list(records)
    if not found and kind is None:
        raise SettingsError(
            "There are no records, so their columns are unknown. Expected at least one record, or the kind of record. "
            "Pass the kind, such as fedcdh.Drift.",
            parameter="kind",
        )
    kind = kind or type(found[0])
    hints, names = get_type_hints(kind), [field.name for field in fields(kind)]
    return (
        {name: _column_type(hints[name]) for name in names},
        {name: [getattr(record, name) for record in found] for name in names},
    )


def _column_type(hint: Any) -> type:
    """Return str, float, bool or tuple; float for `float | None`."""
    options = [option for option in get_args(hint) if option is not NoneType] if NoneType in get_args(hint) else [hint]
    origin: type = getattr(options[0], "__origin__", options[0])
    return origin
