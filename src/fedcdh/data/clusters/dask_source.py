"""Rows in the partitions of a Dask data frame."""

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
    """A `dask.dataframe.DataFrame` as a client's table, worked on by whichever scheduler is Dask's at the time.

    `summarize` and `release` work on each partition where it lies; what travels is sums of features. Whatever has to
    see single values more than once (`profile`, bootstrap copies, answers in further rounds) has the columns it needs
    sent to this process, partition by partition.
    """

    frame: Any

    def __post_init__(self) -> None:
        with optional_import("dask", extra="dask"):
            import dask.dataframe
        if not isinstance(self.frame, dask.dataframe.DataFrame):
            raise DataError(
                f"DaskRows is of a dask.dataframe.DataFrame, but found {type(self.frame).__name__}; pass other tables "
                "as they are, or make one of them with dask.dataframe.from_pandas, from_delayed or from_map"
            )

    def kinds(self) -> Mapping[str, ColumnKind]:
        """Numbers are continuous by their type; all other columns are looked at once, on the workers."""
        return dict(self._kinds)

    def batches(self, kinds: Mapping[str, ColumnKind]) -> Iterator[Table]:
        """One batch per partition, sent here one after the other."""
        from dask import delayed

        reading = delayed(make_task(partial(read_partition, dict(kinds)), _OWNER))
        for part in self._select(list(kinds)).to_delayed():
            yield unwrap_result(reading(part).compute())

    def spread(self, work: Callable[[TableSource], Result], add: Callable[[Result, Result], Result]) -> Result:
        """The sum, by `add`, of the work on all partitions, done and added up on the workers.

        Dask repeats what was lost with a worker; the work is a function of the rows alone, so nothing is counted twice.
        """
        from dask import delayed

        working, adding = delayed(make_task(work, _OWNER)), delayed(partial(reduce_results, add))
        done: Result = tree_reduce(map(working, self.frame.to_delayed()), adding).compute()
        return done

    @cached_property
    def _kinds(self) -> dict[str, ColumnKind]:
        from pandas.api.types import is_bool_dtype, is_numeric_dtype

        types = {str(name): kind for name, kind in self.frame.dtypes.items()}
        unsure = [name for name, kind in types.items() if is_bool_dtype(kind) or not is_numeric_dtype(kind)]
        looking = DaskRows(self._select(unsure)) if unsure else None
        labels = looking.spread(partial(find_categorical_columns, unsure), operator.or_) if looking else frozenset()
        return {name: "categorical" if name in labels else "continuous" for name in types}

    def _select(self, names: Sequence[str]) -> Any:
        return self.frame[match_columns(names, self.frame.columns, _OWNER)]
