"""The rows of a Dask data frame."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, TypeVar

from fedcdh._runtime.optional_imports import optional_import
from fedcdh.data.clusters.partitions import (
    find_categorical_columns,
    make_task,
    match_columns,
    read_partition,
    reduce_results,
    tree_reduce,
    unwrap_result,
)
from fedcdh.data.sources import ColumnKind, TableSource
from fedcdh.data.table import Table
from fedcdh.errors import DataError

Result = TypeVar("Result")

_OWNER = "the Dask table"


@dataclass(frozen=True, eq=False)
class DaskRows:
    """A Dask data frame as a client's table.

    `summarize` and `release` work on each partition where it lies, by Dask's current scheduler; only sums of features
    travel. Work that reads single values more than once (`profile`, bootstrap replicates, answers in adaptive rounds)
    gets the columns it needs sent to this process, partition by partition.

    Parameters
    ----------
    frame : dask.dataframe.DataFrame
        The rows.

    Raises
    ------
    DataError
        If `frame` is not a Dask data frame.
    MissingDependencyError
        If dask is not installed.

    Examples
    --------
    >>> import dask.dataframe, pandas
    >>> frame = dask.dataframe.from_pandas(pandas.DataFrame({"x": [1.0, 2.0, 3.0]}), npartitions=2)
    >>> DaskRows(frame).kinds()
    {'x': 'continuous'}
    """

    frame: Any

    def __post_init__(self) -> None:
        with optional_import("dask", extra="dask"):
            import dask.dataframe
        if not isinstance(self.frame, dask.dataframe.DataFrame):
            raise DataError(
                f"found {type(self.frame).__name__}, but DaskRows expects a dask.dataframe.DataFrame; pass other "
                "tables as they are, or convert them with dask.dataframe.from_pandas, from_delayed or from_map"
            )

    def kinds(self) -> Mapping[str, ColumnKind]:
        """Return the kind of every column; columns that are not numeric by type are read once, on the workers."""
        return dict(self._kinds)

    def batches(self, kinds: Mapping[str, ColumnKind]) -> Iterator[Table]:
        """Yield one batch per partition, sent to this process one after the other.

        Parameters
        ----------
        kinds : mapping from str to {"continuous", "categorical"}
            The columns to read, and the kind of each.

        Yields
        ------
        Table
            The rows of one partition.
        """
        from dask import delayed

        read = delayed(make_task(partial(read_partition, dict(kinds)), _OWNER))
        for part in self._select(list(kinds)).to_delayed():
            yield unwrap_result(read(part).compute())

    def map_reduce(self, work: Callable[[TableSource], Result], add: Callable[[Result, Result], Result]) -> Result:
        """Return the sum of the work on all partitions, done and added up on the workers.

        Dask repeats the work that was lost with a worker. The work depends on the rows alone, so nothing is counted
        twice.

        Parameters
        ----------
        work : callable
            The work on one partition.
        add : callable
            Adds two results.

        Returns
        -------
        result
            The sum of all results.
        """
        from dask import delayed

        run, total = delayed(make_task(work, _OWNER)), delayed(partial(reduce_results, add))
        done: Result = tree_reduce(map(run, self.frame.to_delayed()), total).compute()
        return done

    @cached_property
    def _kinds(self) -> dict[str, ColumnKind]:
        from pandas.api.types import is_bool_dtype, is_numeric_dtype

        types = {str(name): kind for name, kind in self.frame.dtypes.items()}
        unsure = [name for name, kind in types.items() if is_bool_dtype(kind) or not is_numeric_dtype(kind)]
        scanned = DaskRows(self._select(unsure)) if unsure else None
        labels = scanned.map_reduce(partial(find_categorical_columns, unsure), operator.or_) if scanned else frozenset()
        return {name: "categorical" if name in labels else "continuous" for name in types}

    def _select(self, names: Sequence[str]) -> Any:
        return self.frame[match_columns(names, self.frame.columns, _OWNER)]
