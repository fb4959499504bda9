"""Columns that are no variables: left out of what is described."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from fedcdh.data.recipe_file import Recipes
from fedcdh.data.sources import ColumnKind, to_source
from fedcdh.data.table import check_excluded


def exclude_columns(
    rows: Any, exclude: Collection[str], kinds: Mapping[str, ColumnKind], recipes: Recipes
) -> tuple[dict[str, ColumnKind], Recipes]:
    """Return the kinds and recipes of the columns that are not excluded.

    Parameters
    ----------
    rows : table or source of rows
        The rows, which have the excluded columns.
    exclude : collection of str
        Columns to leave out.
    kinds : mapping from str to {"continuous", "categorical"}
        How to read columns.
    recipes : Recipes
        What is done with columns before they are described.

    Returns
    -------
    tuple of dict and Recipes
        The kinds of the other columns, and recipes that exclude these.

    Raises
    ------
    DataError
        If a column is not there.

    Examples
    --------
    >>> exclude_columns({"id": [1, 2], "age": [30, 40]}, ["id"], {"id": "categorical"}, Recipes())[0]
    {}
    """
    names = {exclude} if isinstance(exclude, str) else set(exclude)
    if names:
        check_excluded(names, to_source(rows, "the table").kinds())
    return {name: kind for name, kind in kinds.items() if name not in names}, recipes.exclude(names)
