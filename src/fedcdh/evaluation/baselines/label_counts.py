"""Counts of labels at clients that agree on the levels of every variable, and on cut points where there are numbers.

Levels: every client sends the values of each column and how often each occurs. The server sends back all values of a
column. Codes are then the same everywhere, and tables of counts may be added up.

Cut points: every client sends its number of rows and nineteen quantiles of each column, from 5 % to 95 %. The server
takes the quantiles of all clients together as values of equal weight within a client, weighted by rows between clients.
The tertiles of these values are the cut points.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from fedcdh._runtime.array_types import Array
from fedcdh.errors import DataError
from fedcdh.evaluation.baselines.interface import CountingChannel

Counts: TypeAlias = npt.NDArray[np.int64]

MAX_LEVELS = 100
"""A column with more different values at the clients together holds no labels."""
_QUANTILES = np.arange(1, 20) / 20


class LabelClient:
    """The rows of one client as codes of labels."""

    def __init__(self, codes: Sequence[Counts], levels: Sequence[int]) -> None:
        self._codes, self._levels = tuple(codes), tuple(levels)

    @property
    def rows(self) -> int:
        """Return the number of rows."""
        return len(self._codes[0])

    def count(self, columns: Sequence[int]) -> Counts:
        """Return how often each combination of levels of these columns occurs, one axis for each column.

        >>> LabelClient([np.array([0, 1, 1]), np.array([0, 0, 1])], (2, 2)).count((0, 1)).tolist()
        [[1, 0], [1, 1]]
        """
        shape = tuple(self._levels[column] for column in columns)
        if not columns:
            return np.array(self.rows)
        place = self._codes[columns[0]]
        for column in columns[1:]:
            place = place * self._levels[column] + self._codes[column]
        return np.bincount(place, minlength=int(np.prod(shape))).reshape(shape)

    def resample(self, draw: np.random.Generator) -> LabelClient:
        """Return rows drawn with replacement."""
        rows = draw.integers(self.rows, size=self.rows)
        return LabelClient([column[rows] for column in self._codes], self._levels)


@dataclass(frozen=True, eq=False)
class LabelStudy:
    """Clients with common levels.

    Attributes
    ----------
    clients : tuple of LabelClient
        The clients.
    levels : tuple of int
        The number of levels of each column.
    ranks : tuple of int
        The place of each column if columns are sorted by how often their levels occur, at all clients and at each. A
        method that has to treat two columns differently goes by these, so that names and places do not matter.
    """

    clients: tuple[LabelClient, ...]
    levels: tuple[int, ...]
    ranks: tuple[int, ...]

    def sort_columns(self, columns: Sequence[int]) -> tuple[int, ...]:
        """Return the columns by their ranks."""
        return tuple(sorted(columns, key=lambda column: self.ranks[column]))

    def count_cells(self, columns: Sequence[int]) -> int:
        """Return the number of cells of the table of these columns."""
        return int(np.prod([self.levels[column] for column in columns], dtype=np.float64))


def agree_on_levels(tables: Mapping[str, Array], channel: CountingChannel) -> LabelStudy:
    """Code the labels of all clients alike.

    >>> tables = {"north": np.array([[2.0, 7.0], [3.0, 7.0]]), "south": np.array([[5.0, 7.0]])}
    >>> agree_on_levels(tables, CountingChannel(2)).levels
    (3, 1)
    """
    received = [_send_levels(table, channel) for table in tables.values()]
    columns = range(len(received[0]))
    found = [_merge_levels([levels[column] for levels in received]) for column in columns]
    _check_levels([values for values, _ in found])
    agreed = [np.asarray(channel.to_clients(values)) for values, _ in found]
    levels = tuple(len(values) for values in agreed)
    clients = tuple(
        LabelClient([np.searchsorted(agreed[column], table[:, column]) for column in columns], levels)
        for table in tables.values()
    )
    keys = [(tuple(found[column][1].tolist()), _list_client_counts(received, column)) for column in columns]
    ranked = sorted(columns, key=lambda column: keys[column])  # equal counts everywhere: in the order of the columns
    ranks = {column: rank for rank, column in enumerate(ranked)}
    return LabelStudy(clients, levels, tuple(ranks[column] for column in columns))


def bin_numbers(tables: Mapping[str, Array], channel: CountingChannel) -> dict[str, Array]:
    """Replace every number by its third, 0 to 2, with cut points common to all clients.

    >>> table = np.arange(300.0)[:, None]
    >>> binned = bin_numbers({"north": table[:150], "south": table[150:]}, CountingChannel(2))
    >>> np.unique(np.concatenate(list(binned.values())), return_counts=True)[1].tolist()
    [99, 102, 99]
    """
    rows = np.array([channel.to_server(np.array(len(table))) for table in tables.values()], dtype=np.float64)
    sent = [channel.to_server(np.quantile(table, _QUANTILES, axis=0)) for table in tables.values()]
    cuts = np.asarray(channel.to_clients(_weighted_tertiles(np.stack(sent), rows)))
    return {
        client: np.sum(table[:, :, None] > cuts.T[None], axis=2).astype(np.float64) for client, table in tables.items()
    }


def _send_levels(table: Array, channel: CountingChannel) -> list[tuple[Array, Counts]]:
    found = [np.unique(column, return_counts=True) for column in table.T]
    return [(channel.to_server(values), channel.to_server(counts)) for values, counts in found]


def _list_client_counts(received: Sequence[Sequence[tuple[Array, Counts]]], column: int) -> list[list[int]]:
    """Return the counts of a column at every client, in an order that does not depend on that of the clients."""
    return sorted(levels[column][1].tolist() for levels in received)


def _merge_levels(sent: Sequence[tuple[Array, Counts]]) -> tuple[Array, Counts]:
    """Return all values of a column and how often each occurs at all clients together."""
    values, place = np.unique(np.concatenate([values for values, _ in sent]), return_inverse=True)
    counts = np.bincount(place, weights=np.concatenate([counts for _, counts in sent]))
    return values, counts.astype(np.int64)


def _check_levels(columns: Sequence[Array]) -> None:
    for place, values in enumerate(columns):
        if len(values) > MAX_LEVELS or (values != np.round(values)).any():
            raise DataError(
                f"found {len(values)} different values in column {place + 1}; expected codes of labels: whole numbers, "
                f"at most {MAX_LEVELS} different ones; choose a method for numbers, or 'fedc2sl-binned'"
            )


def _weighted_tertiles(quantiles: Array, rows: Array) -> Array:
    """Return the two tertiles of each column; quantiles have the axes client, quantile, column."""
    clients, each, columns = quantiles.shape
    values = quantiles.reshape(clients * each, columns)
    weights = np.repeat(rows / rows.sum() / each, each)
    cuts = np.empty((2, columns))
    for column in range(columns):
        order = np.lexsort((weights, values[:, column]))
        share = np.cumsum(weights[order]) - weights[order] / 2
        cuts[:, column] = np.interp((1 / 3, 2 / 3), share, values[order, column])
    return cuts
