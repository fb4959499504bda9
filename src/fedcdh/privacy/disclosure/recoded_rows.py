"""Recoded rows: the rows of a site with rare levels replaced, as its summary has them (`rare_cells`).

Answers in further rounds are sums over the same rows. They are computed from rows that are recoded in the same way, so
that no answer holds a sum over the people with a level that was merged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from fedcdh.data.columns import CategoricalColumn, Column
from fedcdh.data.labels import strip_zero_decimals
from fedcdh.data.sources import ColumnKind, TableSource
from fedcdh.data.table import Table
from fedcdh.privacy.disclosure.rare_cells import RareLevel


@dataclass(frozen=True, eq=False)
class RecodedRows:
    """The rows of another source, with rare levels replaced by those they are merged with.

    Parameters
    ----------
    source : TableSource
        The rows.
    merged : tuple of RareLevel
        The levels to replace, one after the other.

    Examples
    --------
    >>> from fedcdh.data.sources import to_source
    >>> rows = to_source({"stage": ["I", "III", "I"]}, "client 'north'")
    >>> recoded = RecodedRows(rows, (RareLevel("stage", "III", "I"),))
    >>> [table.columns["stage"].levels for table in recoded.batches({"stage": "categorical"})]
    [('I',)]
    """

    source: TableSource
    merged: tuple[RareLevel, ...]

    def kinds(self) -> Mapping[str, ColumnKind]:
        """Return every column in order, with its kind."""
        return self.source.kinds()

    def batches(self, kinds: Mapping[str, ColumnKind]) -> Iterator[Table]:
        """Yield all rows once, recoded.

        Parameters
        ----------
        kinds : mapping from str to {"continuous", "categorical"}
            The columns to read, and the kind of each.

        Yields
        ------
        Table
            The next rows.
        """
        for table in self.source.batches(kinds):
            columns = {name: self._recode(name, column) for name, column in table.columns.items()}
            yield Table(columns) if self.merged else table

    def _recode(self, name: str, column: Column) -> Column:
        own = [one for one in self.merged if one.variable == name]
        if not own:
            return column
        texts = column.to_categorical(f"column {name!r}")
        levels = [self._replace(level, own) for level in texts.levels]
        return CategoricalColumn.of([levels[code] if code >= 0 else None for code in texts.codes.tolist()])

    @staticmethod
    def _replace(level: str, merged: list[RareLevel]) -> str:
        for one in merged:
            if one.level in (level, strip_zero_decimals(level)):  # 3.0 is the level 3
                level = one.into
        return level
