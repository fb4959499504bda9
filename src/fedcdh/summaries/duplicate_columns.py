"""Columns that hold the same values in every row: seen at the site, before anything leaves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fedcdh.data.columns import CategoricalColumn, Column, NumericColumn
from fedcdh.data.sources import to_source
from fedcdh.summaries.column_profiles import ColumnProfile
from fedcdh.summaries.profiles import Profile, profiled_kinds


def find_duplicate_columns(rows: Any, found: Profile) -> tuple[tuple[str, ...], ...]:
    """Return the columns of a profile that hold the same values in every row.

    Only columns whose profiles are equal are compared, so most tables are not read again.

    Parameters
    ----------
    rows : table or source of rows
        The rows that were profiled.
    found : Profile
        Their profile.

    Returns
    -------
    tuple of tuple of str
        Groups of two columns or more, in the order of the profile.

    Examples
    --------
    >>> from fedcdh.summaries.profiles import profile
    >>> rows = {"age": [30, 40, 50], "age_again": [30, 40, 50], "size": [30, 50, 40]}
    >>> find_duplicate_columns(rows, profile(rows, "north"))
    (('age', 'age_again'),)
    """
    groups = _group_equal_profiles(found)
    kinds = profiled_kinds(found)
    wanted = {name: kinds[name] for group in groups for name in group}
    if not wanted:
        return ()
    for batch in to_source(rows, f"client {found.client!r}", only=list(wanted)).batches(wanted):
        groups = [part for group in groups for part in _split(group, [batch.columns[name] for name in group])]
    order = list(found.columns)
    return tuple(sorted((tuple(group) for group in groups), key=lambda group: order.index(group[0])))


def _group_equal_profiles(found: Profile) -> list[list[str]]:
    """Return the groups of columns, not empty, whose profiles are equal but for the dependence of rows."""
    groups: list[tuple[ColumnProfile, list[str]]] = []
    for name, column in found.columns.items():
        plain = replace(column, product_share=1.0, mean_share=1.0)
        group = next((group for known, group in groups if known == plain and column.count), None)
        if group is None:
            groups.append((plain, [name]))
        else:
            group.append(name)
    return [group for _, group in groups if len(group) > 1]


def _split(group: Sequence[str], columns: Sequence[Column]) -> list[list[str]]:
    """Return the parts of a group that are equal in these rows."""
    parts: list[tuple[Column, list[str]]] = []
    for name, column in zip(group, columns, strict=True):
        part = next((part for known, part in parts if _are_equal(known, column)), None)
        if part is None:
            parts.append((column, [name]))
        else:
            part.append(name)
    return [part for _, part in parts if len(part) > 1]


def _are_equal(one: Column, other: Column) -> bool:
    if isinstance(one, NumericColumn) and isinstance(other, NumericColumn):
        return np.array_equal(one.values, other.values, equal_nan=True)
    if isinstance(one, CategoricalColumn) and isinstance(other, CategoricalColumn):
        return bool((_to_labels(one) == _to_labels(other)).all())
    return False


def _to_labels(column: CategoricalColumn) -> Any:
    """Return the label of each row; None where it is missing, at the place -1."""
    return np.array([*column.levels, None], dtype=object)[column.codes]
