"""Rows in the blocks of a Ray dataset."""

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
    """A `ray.data.Dataset` as a client's table, worked on by the Ray cluster it belongs to.

    `summarize` and `release` work on each block where it lies or is read; what travels is sums of features. Whatever
    has to see single values more than once (`profile`, bootstrap copies, answers in further rounds) has the columns it
    needs sent to this process, block by block.
    """

    dataset: Any

    def __post_init__(self) -> None:
        with optional_import("ray", extra="ray"):
            import ray.data
        if not isinstance(self.dataset, ray.data.Dataset):
            raise DataError(
                f"RayRows is of a ray.data.Dataset, but found {type(self.dataset).__name__}; pass other tables as they "
                "are, or make one of them with ray.data.from_arrow_refs, from_pandas or read_parquet"
            )

    def kinds(self) -> Mapping[str, ColumnKind]:
        """Numbers are continuous by their type; all other columns are looked at once, on the workers."""
        return dict(self._kinds)

    def batches(self, kinds: Mapping[str, ColumnKind]) -> Iterator[Table]:
        """One batch per block, sent here one after the other."""
        blocks = self._select(list(kinds)).iter_batches(batch_size=None, batch_format=None)
        return InMemorySource(blocks, _OWNER).batches(kinds)

    def spread(self, work: Callable[[TableSource], Result], add: Callable[[Result, Result], Result]) -> Result:
        """The sum, by `add`, of the work on all blocks, done and added up on the workers.

        Ray repeats what was lost with a worker; the work is a function of the rows alone, so nothing is counted twice.
        """
        said = self.dataset.map_batches(
            partial(_run_block, make_task(work, _OWNER)), batch_size=None, batch_format=None
        )
        blocks = (block for bundle in said.iter_internal_ref_bundles() for block in bundle.block_refs)
        sums = _RemoteSums(add)
        try:
            found: list[Result] = sums.fetched(tree_reduce(chain([_to_block()], blocks), sums.join))
        finally:
            blocks.close()  # where a part was refused, others may still be under way
        return found[0] if found else work(InMemorySource([{name: [] for name in self._types}], _OWNER))

    @cached_property
    def _kinds(self) -> dict[str, ColumnKind]:
        unsure = [name for name, type_ in self._types.items() if not _is_numeric(type_)]
        looking = RayRows(self._select(unsure)) if unsure else None
        labels = looking.spread(partial(find_categorical_columns, unsure), operator.or_) if looking else frozenset()
        return {name: "categorical" if name in labels else "continuous" for name in self._types}

    @cached_property
    def _types(self) -> dict[str, Any]:
        """What Ray knows of the columns: types of Arrow, or those of numpy and pandas."""
        try:
            schema = self.dataset.schema()
        except (pa.ArrowInvalid, pa.ArrowTypeError) as problem:
            raise DataError(
                f"blocks of {_OWNER} do not fit together ({problem}); give a column the same type in all of them"
            ) from None
        return dict(zip(schema.names, schema.base_schema.types, strict=True)) if schema else {}

    def _select(self, names: Sequence[str]) -> Any:
        return self.dataset.select_columns(match_columns(names, self._types, _OWNER))


class _RemoteSums:
    """Sums of results, made by the workers and known here by reference only."""

    def __init__(self, add: Callable[[Any, Any], Any]) -> None:
        import ray

        self._ray, self._add = ray, ray.put(add)
        self._adding = ray.remote(num_returns=2)(_add_blocks)
        self._refusals: list[Any] = []

    def join(self, results: Sequence[Any]) -> Any:
        """The sum of these, to be made; raises what is known by now to be refused."""
        self._raise_refusals(wait=False)
        summed, refusal = self._adding.remote(self._add, *results)
        self._refusals.append(refusal)
        return summed

    def fetched(self, summed: Any) -> list[Any]:
        """The one result, or none if there were no rows."""
        self._raise_refusals(wait=True)
        return _from_block(self._ray.get(summed))

    def _raise_refusals(self, *, wait: bool) -> None:
        if self._refusals:
            several = len(self._refusals)
            done, self._refusals = self._ray.wait(self._refusals, num_returns=several, timeout=None if wait else 0)
            for refusal in self._ray.get(done):
                unwrap_result(refusal)


def _run_block(work: Callable[[Any], Any], block: Any) -> Any:
    """Runs on a worker: the result of a block, as a block of its own."""
    return _to_block(work(block))


def _add_blocks(add: Callable[[Any, Any], Any], *blocks: Any) -> tuple[Any, FailedTask | None]:
    """Runs on a worker: the sum of some results, and why there is none."""
    found = [result for block in blocks for result in _from_block(block)]
    try:
        return (_to_block(reduce_results(add, found)) if found else _to_block()), None
    except FedCDHError as problem:
        return _to_block(), FailedTask(problem)


def _to_block(*results: Any) -> Any:
    """Results as Ray's datasets carry them; a block without rows comes without one."""
    return pa.table({_RESULT_COLUMN: pa.array([pickle.dumps(result) for result in results], pa.large_binary())})


def _from_block(block: Any) -> list[Any]:
    return [pickle.loads(cell.as_buffer()) for cell in block[_RESULT_COLUMN]] if block.num_rows else []


def _is_numeric(type_: Any) -> bool:
    if isinstance(type_, pa.DataType):
        return column_content(type_) == "numbers"
    return str(getattr(type_, "kind", "O")) in "iuf"
