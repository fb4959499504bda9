"""Computation of a summary from rows: a map over parts of the rows, and a sum."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from functools import partial
from typing import Any, Protocol

import numpy as np

from fedcdh._io.text import abbreviate_list
from fedcdh._runtime.array_types import Array
from fedcdh.data.sources import TableSource
from fedcdh.data.table import Table
from fedcdh.data.threaded_source import partition
from fedcdh.errors import DataError, SettingsError
from fedcdh.summaries.encoder import Encoder
from fedcdh.summaries.imputation.imputed_source import impute_rows, original_rows, prepare_study_rows
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.summary import Summary, check_row_capacity

_MIN_BLOCK_ROWS, _MAX_BLOCK_CELLS, _MAX_BLOCK_FEATURES = 1024, 1 << 17, 1 << 20
"""Rows at least, and cells and features at most otherwise, that are encoded at a time: they fit into a cache, and are
many enough that threads rarely wait for each other."""
_MIN_OBSERVED_ROWS, _MAX_EXACT_ROWS = 1024, 8192
"""Rows that are multiplied at a time at first, with an observer, and at most: 2¹³ · 2³⁶ < 2⁵³ is exact in float64."""


def summarize(table: Any, plan: StudyPlan, client: str, *, max_missing_share: float = 0.5, workers: int = 1) -> Summary:
    """Compute the summary of one client's rows: sums of features and of their products over its complete rows.

    Parameters
    ----------
    table : table, list of batches, files opened with `open_tables`, or PartitionedSource
        Rows of the client. One block of rows is in memory at a time; a `PartitionedSource` is summarised where its
        parts are stored.
    plan : StudyPlan
        Plan of the study.
    client : str
        Name of the client.
    max_missing_share : float, default 0.5
        Largest share of rows that may be left out because of missing values; where the plan asks for imputed values,
        the largest share of a variable's values that may be missing.
    workers : int, default 1
        Number of threads. The result does not depend on it, bit for bit.

    Returns
    -------
    Summary
        The one message of the client.

    Raises
    ------
    DataError
        If the table does not fit the plan, or too many rows have missing values.
    SettingsError
        If `max_missing_share` is not a share.

    See Also
    --------
    release : The summary as a file, checked by the policy and the ledger of the site.
    discover_from : The graph from the summaries of all clients.

    Notes
    -----
    A summary is not anonymous, and this function checks no policy. With the features φ of a row and a constant 1 among
    them, it is the matrix Σ φφᵀ over all complete rows.

    Examples
    --------
    >>> from fedcdh.summaries import Continuous, StudyPlan
    >>> plan = StudyPlan((Continuous("age", 60, 15),), ("north", "south"))
    >>> summary = summarize({"age": [50, 61, None]}, plan, "north")
    >>> summary.rows, summary.rows_read, dict(summary.missing)
    (2, 3, {'age': 1})
    """
    check_summary_arguments(plan, client, max_missing_share)
    table = impute_rows(table, plan, client)
    parts = partition(table, f"client {client!r}", workers=workers, names=plan.names, only=plan.names)
    return parts.map_reduce(partial(accumulate, plan=plan, client=client), MomentAccumulator.__add__).summary(
        plan, client, max_missing_share
    )


def check_summary_arguments(plan: StudyPlan, client: str, max_missing_share: float) -> None:
    """Raise an error, before a row is read, if no summary can be made with these arguments."""
    if not 0 <= max_missing_share <= 1:
        raise SettingsError(
            f"max_missing_share is {max_missing_share}; expected a share of the rows, from 0 to 1",
            parameter="max_missing_share",
        )
    if client not in plan.clients:
        raise DataError(
            f"client {client!r} is not in the plan, which names {abbreviate_list(plan.clients)}; correct the name, or "
            "the plan"
        )


def accumulate(source: TableSource, *, plan: StudyPlan, client: str) -> MomentAccumulator:
    """Return the sums over all rows of a source."""
    sums, encode = MomentAccumulator(plan), Encoder(plan, client)
    for rows in prepare_study_rows(source, plan, client).batches(plan.kinds):
        sums.add(rows, encode)
    return sums


class BlockObserver(Protocol):
    """Receives what is computed from complete rows, block by block."""

    def observe_values(self, values: Array) -> None:
        """Receive the values of continuous variables, variables × rows."""

    def observe_features(self, features: Array, products: Array) -> None:
        """Receive features, columns × rows, and the sums of their products, which are in the moments already."""


class MomentAccumulator:
    """Adds the moments of rows that come in batches; `a + b` has the moments of all their rows.

    Parameters
    ----------
    plan : StudyPlan
        Plan of the study.
    """

    def __init__(self, plan: StudyPlan) -> None:
        self.moments = np.zeros((plan.layout.n_columns, plan.layout.n_columns), dtype=np.int64)
        self.missing = dict.fromkeys(plan.names, 0)
        self.read = self.used = 0
        self._block = _block_rows(plan)

    def add(self, rows: Table, encode: Encoder, observer: BlockObserver | None = None) -> Table:
        """Count rows, and add the products of the features of complete ones.

        Parameters
        ----------
        rows : Table
            A batch of rows.
        encode : Encoder
            Encoder of the plan.
        observer : BlockObserver, optional
            Receives values and features.

        Returns
        -------
        Table
            The complete rows.
        """
        complete = np.ones(rows.rows, dtype=np.bool_)
        for name, column in original_rows(rows).columns.items():
            if (missing := column.missing).any():
                self.missing[name] += int(missing.sum())
                complete &= ~rows.columns[name].missing
        self.read += rows.rows
        used = rows if complete.all() else rows.select_rows(complete)
        for start in range(0, used.rows, self._block):
            block = used.slice_rows(start, self._block)
            features = encode(block, numbers := encode.values(block))
            if observer is not None:
                observer.observe_values(numbers)
            step = _MAX_EXACT_ROWS if observer is None else self._observed_rows()
            for first in range(0, block.rows, step):
                self._multiply(features[:, first : first + step], observer)
        return used

    def _observed_rows(self) -> int:
        """Return a number of rows so small that together they rarely dominate those so far: see `HighLeverageRows`."""
        columns = len(self.moments)
        return min(_MAX_EXACT_ROWS, max(_MIN_OBSERVED_ROWS, columns, self.used // (64 * columns)))

    def _multiply(self, features: Array, observer: BlockObserver | None) -> None:
        self.used += features.shape[1]
        check_row_capacity(self.used)
        products = features @ features.T
        self.moments += products.astype(np.int64)
        if observer is not None:
            observer.observe_features(features, products)

    def __add__(self, other: MomentAccumulator) -> MomentAccumulator:
        total = copy(self)
        total.moments = self.moments + other.moments
        total.missing = {name: count + other.missing[name] for name, count in self.missing.items()}
        total.read, total.used = self.read + other.read, self.used + other.used
        check_row_capacity(total.used)
        return total

    def summary(self, plan: StudyPlan, client: str, max_missing_share: float) -> Summary:
        """Return the summary, unless too many rows were left out.

        Parameters
        ----------
        plan : StudyPlan
            Plan of the study.
        client : str
            Name of the client.
        max_missing_share : float
            Largest share of rows that may be left out.

        Returns
        -------
        Summary
            Summary of the rows so far.

        Raises
        ------
        DataError
            If no row, or too small a share of them, is complete.
        """
        if plan.missing == "impute":
            _check_imputed_share(client, self.read, self.missing, max_missing_share)
        _check_missing_share(client, self.read, self.used, self.missing, max_missing_share)
        return Summary(plan.fingerprint, (client,), self.moments, self.read, self.missing)


def _block_rows(plan: StudyPlan) -> int:
    return max(
        _MIN_BLOCK_ROWS, min(_MAX_BLOCK_CELLS // len(plan.variables), _MAX_BLOCK_FEATURES // plan.layout.n_columns)
    )


def _check_imputed_share(client: str, rows: int, missing: Mapping[str, int], max_missing_share: float) -> None:
    """Refuse a variable whose values would be drawn rather than observed."""
    worst = max(missing, key=lambda name: missing[name])
    if rows and missing[worst] / rows > max_missing_share:
        raise DataError(
            f"client {client!r} has no value of {worst!r} in {missing[worst]} of {rows} rows; expected at most "
            f"{max_missing_share:.0%} of them, since values are drawn for the others; leave that variable or this "
            "client out, or allow a larger share",
            parameter="max_missing_share",
        )


def _check_missing_share(
    client: str, rows: int, used: int, missing: Mapping[str, int], max_missing_share: float
) -> None:
    if rows and used and (rows - used) / rows <= max_missing_share:
        return
    if not rows:
        raise DataError(f"client {client!r} has no rows; expected one or more; leave the client out of the plan")
    worst = max(missing, key=lambda name: missing[name])
    advice = "fill the values in, or allow a larger share" if used else "or fill the values in: no complete row is left"
    raise DataError(
        f"client {client!r} would lose {rows - used} of {rows} rows to missing values, most of them in {worst!r} "
        f"({missing[worst]} missing); leave that variable or this client out, {advice}",
        parameter="max_missing_share" if used else None,
    )
