"""Variables that say whether a value is missing, for studies in which that may be informative."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from fedcdh.data.columns import CategoricalColumn
from fedcdh.data.table import Table, missing_column_error
from fedcdh.errors import DataError

LEVELS = ("no", "yes")


def indicator_name(name: str) -> str:
    """Return the name of the variable that says whether a value is missing.

    Examples
    --------
    >>> indicator_name("chol")
    'chol missing'
    """
    return f"{name} missing"


def add_missing_indicators(tables: Mapping[str, Table], names: Sequence[str]) -> dict[str, Table]:
    """Return the tables with a two-level column for each of these columns: whether its value is missing.

    Parameters
    ----------
    tables : mapping from str to Table
        Table of each client.
    names : sequence of str
        Columns with missing values.

    Returns
    -------
    dict from str to Table
        The tables; "chol missing" is "yes" where chol has no value.

    Raises
    ------
    DataError
        If there is no such column, it has no gaps, or the name of the new one is taken.

    Examples
    --------
    >>> from fedcdh.data.table import to_table
    >>> tables = add_missing_indicators({"north": to_table({"chol": [5.1, None]})}, ["chol"])
    >>> tables["north"].columns["chol missing"].codes.tolist()
    [0, 1]
    """
    for name in names:
        _check(tables, name)
    return {client: _add(table, names) for client, table in tables.items()}


def _check(tables: Mapping[str, Table], name: str) -> None:
    for client, table in tables.items():
        if name not in table.columns:
            raise missing_column_error([name], table.names, f"client {client!r}")
        if indicator_name(name) in table.columns:
            raise DataError(
                f"client {client!r} has a column {indicator_name(name)!r} already, which is the name of the indicator "
                f"of {name!r}; rename it, or leave {name!r} out of missing_indicators",
                parameter="missing_indicators",
            )
    if not any(table.columns[name].missing.any() for table in tables.values()):
        raise DataError(
            f"an indicator of missing values of {name!r} was asked for, and no client lacks any; expected some gaps; "
            "leave it out of missing_indicators",
            parameter="missing_indicators",
        )


def _add(table: Table, names: Sequence[str]) -> Table:
    columns = {
        indicator_name(name): CategoricalColumn(LEVELS, np.asarray(table.columns[name].missing, dtype=np.int64))
        for name in names
    }
    return replace(table, columns={**table.columns, **columns})
