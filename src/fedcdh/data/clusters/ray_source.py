"""The rows of a Ray dataset."""

from __future__ import annotations

import operator
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from typing import Any, TypeVar

import pyarrow as pa  # type: ignore[import-untyped]

from fedcdh._runtime.optional_imports import optional_import
from fedcdh.data.clusters.partitions import (
    FailedTask,
    find_categorical_columns,
    make_task,
    match_columns,
    reduce_results,
    tree_reduce,
    unwrap_result,
)
from fedcdh.data.readers.arrow_columns import column_content
from fedcdh.data.sources import ColumnKind, InMemorySource, TableSource
from fedcdh.data.table import Table
from fedcdh.errors import DataError, FedCDHError

Result = TypeVar("Result")

_OWNER = "the Ray dataset"
_RESULT_COLUMN = "said"  # the one column of a dataset of results


@dataclass(frozen=True, eq=False)
class RayRows:
    """A Ray dataset as a client's table.

    `summarize` and `release` work on each block where it lies or is read, by the Ray cluster of the dataset; only sums
    of features travel. Work that reads single values more than once (`profile`, bootstrap replicates, answers in
    adaptive rounds) gets the columns it needs sent to this process, block by block.

    Parameters
    ----------
    dataset : ray.data.Dataset
        The rows.

    Raises
    ------
    DataError
        If `dataset` is not a Ray dataset.
    MissingDependencyError
        If ray is not installed.

    Examples
    --------
    >>> import ray.data  # doctest: +SKIP
    >>> RayRows(ray.data.from_items([{"x": 1.0}, {"x": 2.0}])).kinds()  # doctest: +SKIP
    {'x': 'continuous'}
    """

    dataset: Any

    def __post_init__(self) -> None:
        with optional_import("ray", extra="ray"):
            import ray.data
        if not isinstance(self.dataset, ray.data.Dataset):
            raise DataError(
                f"found {type(self.dataset).__name__}, but RayRows expects a ray.data.Dataset; pass other tables as "
                "they are, or convert them with ray.data.from_arrow_refs, from_pandas or read_parquet"
            )

    def kinds(self) -> Mapping[str, ColumnKind]:
        """Return the kind of every column; columns that are not numeric by type are read once, on the workers."""
        return dict(self._kinds)

    def batches(self, kinds: Mapping[str, ColumnKind]) -> Iterator[Table]:
        """Return an iterator over the blocks, sent to this process one after the other.

        Parameters
        ----------
        kinds : mapping from str to {"continuous", "categorical"}
            The columns to read, and the kind of each.

        Returns
        -------
        iterator of Table
            The rows, one table per block.
        """
        blocks = self._select(list(kinds)).iter_batches(batch_size=None, batch_format=None)
        return InMemorySource(blocks, _OWNER).batches(kinds)

    def map_reduce(self, work: Callable[[TableSource], Result], add: Callable[[Result, Result], Result]) -> Result:
        """Return the sum of the work on all blocks, done and added up on the workers.

        Ray repeats the work that was lost with a worker. The work depends on the rows alone, so nothing is counted
        twice.

        Parameters
        ----------
        work : callable
            The work on one block.
        add : callable
            Adds two results.

        Returns
        -------
        result
            The sum of all results.
        """
        task = partial(_run_block, make_task(work, _OWNER))
        results = self.dataset.map_batches(task, batch_size=None, batch_format=None)
        blocks = (block for bundle in results.iter_internal_ref_bundles() for block in bundle.block_refs)
        sums = _RemoteSums(add)
        try:
            found: list[Result] = sums.fetch(tree_reduce(chain([_to_block()], blocks), sums.join))
        finally:
            blocks.close()  # after an error in one block, others may still be running
        return found[0] if found else work(InMemorySource([{name: [] for name in self._types}], _OWNER))

    @cached_property
    def _kinds(self) -> dict[str, ColumnKind]:
        unsure = [name for name, type_ in self._types.items() if not _is_numeric(type_)]
        scanned = RayRows(self._select(unsure)) if unsure else None
        labels = scanned.map_reduce(partial(find_categorical_columns, unsure), operator.or_) if scanned else frozenset()
        return {name: "categorical" if name in labels else "continuous" for name in self._types}

    @cached_property
    def _types(self) -> dict[str, Any]:
        """Return the types of the columns as Ray knows them: those of Arrow, or of numpy and pandas."""
        try:
            schema = self.dataset.schema()
        except (pa.ArrowInvalid, pa.ArrowTypeError) as problem:
            raise DataError(
                f"blocks of {_OWNER} do not fit together ({problem}); expected the same type of a column in all of "
                "them. Convert the column"
            ) from None
        return dict(zip(schema.names, schema.base_schema.types, strict=True)) if schema else {}

    def _select(self, names: Sequence[str]) -> Any:
        return self.dataset.select_columns(match_columns(names, self._types, _OWNER))


class _RemoteSums:
    """Sums of results on the workers; this process holds references only."""

    def __init__(self, add: Callable[[Any, Any], Any]) -> None:
        import ray

        self._ray, self._add = ray, ray.put(add)
        self._adding = ray.remote(num_returns=2)(_add_blocks)
        self._errors: list[Any] = []

    def join(self, results: Sequence[Any]) -> Any:
        """Start the sum of these results and return its reference; raise an error that is known by now."""
        self._raise_errors(wait=False)
        summed, error = self._adding.remote(self._add, *results)
        self._errors.append(error)
        return summed

    def fetch(self, summed: Any) -> list[Any]:
        """Return a list of the one result, or an empty list if there were no rows."""
        self._raise_errors(wait=True)
        return _from_block(self._ray.get(summed))

    def _raise_errors(self, *, wait: bool) -> None:
        if self._errors:
            count = len(self._errors)
            done, self._errors = self._ray.wait(self._errors, num_returns=count, timeout=None if wait else 0)
            for error in self._ray.get(done):
                unwrap_result(error)


def _run_block(work: Callable[[Any], Any], block: Any) -> Any:
    """Return the result of a block as a block of its own, on a worker."""
    return _to_block(work(block))


def _add_blocks(add: Callable[[Any, Any], Any], *blocks: Any) -> tuple[Any, FailedTask | None]:
    """Return the sum of results, and the error if there is none, on a worker."""
    found = [result for block in blocks for result in _from_block(block)]
    try:
        return (_to_block(reduce_results(add, found)) if found else _to_block()), None
    except FedCDHError as problem:
        return _to_block(), FailedTask(problem)


def _to_block(*results: Any) -> Any:
    """Return results as a block of a Ray dataset; without results, a block without rows."""
    return pa.table({_RESULT_COLUMN: pa.array([pickle.dumps(result) for result in results], pa.large_binary())})


def _from_block(block: Any) -> list[Any]:
    return [pickle.loads(cell.as_buffer()) for cell in block[_RESULT_COLUMN]] if block.num_rows else []


def _is_numeric(type_: Any) -> bool:
    if isinstance(type_, pa.DataType):
        return column_content(type_) == "numbers"
    return str(getattr(type_, "kind", "O")) in "iuf"
