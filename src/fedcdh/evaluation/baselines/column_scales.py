"""A first message that several methods share: rows and scales of all clients, and an order of variables by content.

Every client centres its columns at its own means. It sends its number of rows, and for each column the sum of squares
and the sum of absolute values about the mean. The server adds these up and sends back the totals.

Methods that draw at random by place (orders of variables, masks) put the columns into `order` first. Their results then
do not depend on names or on the place of a column in the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedcdh._runtime.array_types import Array
from fedcdh.evaluation.baselines.interface import CountingChannel

_ZERO_TOLERANCE = 1e-12  # of a variance, relative to the largest square: below it, a column is constant


@dataclass(frozen=True, eq=False)
class ColumnScales:
    """Rows of all clients, and for each column its standard deviation within clients and its shape.

    The shape is the mean absolute value over the standard deviation: 0.798 for a normal variable. It neither depends
    on units nor on the other columns.
    """

    rows: int
    deviations: Array
    shapes: Array

    @property
    def order(self) -> npt.NDArray[np.intp]:
        """Return the places of the columns that vary, sorted by shape."""
        varying = np.flatnonzero(self.deviations > 0)
        return varying[np.argsort(self.shapes[varying], kind="stable")]


def centre_columns(table: Array) -> Array:
    """Return the table with columns centred at their means; a column that does not vary is exactly 0.

    >>> centre_columns(np.array([[1.0, 0.1], [3.0, 0.1], [8.0, 0.1]]))
    array([[-3.,  0.],
           [-1.,  0.],
           [ 4.,  0.]])
    """
    centred = table - table.mean(axis=0)
    centred[:, table.max(axis=0) == table.min(axis=0)] = 0.0
    return np.asarray(centred)


def exchange_scales(tables: Mapping[str, Array], channel: CountingChannel) -> ColumnScales:
    """Add up what every client sends about its columns, and send all of them the totals.

    >>> channel = CountingChannel(clients=1)
    >>> exchange_scales({"north": np.array([[1.0, 5.0], [3.0, 5.0]])}, channel).deviations
    array([1., 0.])
    """
    total = np.sum([channel.to_server(_describe_columns(tables[client])) for client in sorted(tables)], axis=0)
    received = channel.to_clients(total)
    squares, sizes = received[1:].reshape(2, -1)
    deviations = np.sqrt(squares / received[0])
    deviations[squares <= _ZERO_TOLERANCE * squares.max(initial=0.0)] = 0.0
    shapes = sizes / received[0] / np.where(deviations > 0, deviations, 1.0)
    return ColumnScales(round(float(received[0])), deviations, shapes)


def _describe_columns(table: Array) -> Array:
    """Return the message of one client: rows, sums of squares, sums of absolute values."""
    centred = centre_columns(table)
    return np.concatenate([[float(len(table))], np.square(centred).sum(axis=0), np.abs(centred).sum(axis=0)])
