"""Recoded rows: rows with rare levels replaced, as the summary of a site has them (`rare_cells`).

Answers in further rounds are sums over the same rows. They are computed from rows that are recoded in the same way, so
that no answer holds a sum over the people with a level that was merged.
"""

from __future__ import annotations

from collections.abc import Sequence

from fedcdh.data.columns import CategoricalColumn, Column
from fedcdh.data.labels import strip_zero_decimals
from fedcdh.data.table import Table
from fedcdh.privacy.disclosure.rare_cells import RareLevel


def recode_rows(rows: Table, merged: Sequence[RareLevel]) -> Table:
    """Return rows with rare levels replaced by those they are merged with.

    Parameters
    ----------
    rows : Table
        Rows after the recipes of the plan.
    merged : sequence of RareLevel
        The levels to replace, one after the other.

    Returns
    -------
    Table
        The same rows and columns.

    Examples
    --------
    >>> from fedcdh.data.table import to_table
    >>> recode_rows(to_table({"stage": ["I", "III", "I"]}), [RareLevel("stage", "III", "I")]).columns["stage"].levels
    ('I',)
    """
    if not merged:
        return rows
    return Table({name: _recode(name, column, merged) for name, column in rows.columns.items()})


def _recode(name: str, column: Column, merged: Sequence[RareLevel]) -> Column:
    own = [one for one in merged if one.variable == name]
    if not own:
        return column
    texts = column.to_categorical(f"column {name!r}")
    levels = [_replace(level, own) for level in texts.levels]
    return CategoricalColumn.of([levels[code] if code >= 0 else None for code in texts.codes.tolist()])


def _replace(level: str, merged: Sequence[RareLevel]) -> str:
    for one in merged:
        if one.level in (level, strip_zero_decimals(level)):  # 3.0 is the level 3
            level = one.into
    return level
