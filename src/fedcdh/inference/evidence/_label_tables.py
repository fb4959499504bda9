"""Tables of labels at every client, completed from counts of pairs, and the evidence of a node in them.

A search asks for the same variables again and again, with another node or with other parents beside them. So evidence
is kept, and so are the tables, up to a limit of memory. Tables that are asked for together are completed together.
Variables with fewer levels than others are given levels without rows for that: fitting few small tables at a time would
mostly be waiting for numpy to begin.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np
from scipy.special import gammaln, xlogy

from fedcdh._runtime.array_types import Array, Indices
from fedcdh.inference.evidence._table_completion import complete_tables
from fedcdh.summaries.row_dependence import ALL_ROWS, RowShares

Key: TypeAlias = tuple[str, ...]  # a node and its categorical parents, or variables in the order of their axes
Shape: TypeAlias = tuple[int, ...]
T = TypeVar("T")

PRIOR_ROWS = 1.0
"""Weight of the prior of a table, in rows, over all cells."""
CONCENTRATIONS = np.array([3.0, 10.0, 30.0, 100.0])
"""Weight of the pooled row of a table, in rows, for a client with a mechanism of its own."""
MAX_ELEMENTS = 1_000_000
"""Cells of one table over all clients: about 8 MB."""
MAX_KEPT_ELEMENTS = 4 * MAX_ELEMENTS
"""Cells of all tables that are kept."""
_BATCH_ELEMENTS = 100_000  # in tables that are completed at once: more would not stay in the cache
_MAX_EMPTY_ELEMENTS, _MAX_EMPTY_SCORED = 12_000, 3_000  # without rows, in tables that are completed or scored at once
_TINY_COUNT = 1e-100  # avoids a division by zero for pairs without rows


class SharedEvidence(NamedTuple):
    """Log evidence of one mechanism, and the entropy of the target in nats over all rows that these parents leave."""

    total: float
    left: float


class _KeptTables:
    """Tables of some variables, of which the oldest are forgotten."""

    def __init__(self) -> None:
        self._tables: dict[Key, Array] = {}
        self._elements = 0

    def get(self, names: Key) -> Array | None:
        return self._tables.get(names)

    def add(self, names: Key, table: Array) -> None:
        if len(names) < 3:  # these are read from the counts
            return
        self._tables[names] = table
        self._elements += table.size
        while self._elements > MAX_KEPT_ELEMENTS:
            self._elements -= self._tables.pop(next(iter(self._tables))).size


@dataclass(frozen=True, eq=False)
class LabelTables:
    """Counts of pairs of labels at every client, and what was computed from them.

    Attributes
    ----------
    counts : array
        (clients, columns, columns): the number of rows with both levels.
    levels : dict from str to array
        The columns of each variable's levels that occur.
    shares : RowShares
        Shares of the rows that count, where rows depend on each other. Default all.
    """

    counts: Array
    levels: dict[str, Indices]
    shares: RowShares = ALL_ROWS
    _shared: dict[Key, SharedEvidence] = field(default_factory=dict, init=False)
    _likelihood: dict[Key, float] = field(default_factory=dict, init=False)
    _kept: _KeptTables = field(default_factory=_KeptTables, init=False)

    def shared(self, keys: Iterable[Key]) -> dict[Key, SharedEvidence]:
        """Return the evidence of nodes (first) given parents (the others), with one mechanism for all clients."""
        keys = list(dict.fromkeys(keys))
        self.compute(keys, ())
        return {key: self._shared[key] for key in keys}

    def differing(self, keys: Iterable[Key]) -> dict[Key, float]:
        """Return the log evidence of the same with mechanisms that differ between clients: about four times the work.

        A single client cannot differ.
        """
        keys = list(dict.fromkeys(keys))
        self.compute((), keys)
        if len(self.counts) == 1:
            return {key: self._shared[key].total for key in keys}
        return {key: self._shared[key].total + self._shared[key].left + self._likelihood[key] for key in keys}

    def compute(self, shared: Iterable[Key], differing: Iterable[Key]) -> None:
        """Compute what is not known yet, for keys whose mechanism is shared and for keys whose mechanism differs.

        The table of some variables is the same whichever of them is the node, and is completed once.
        """
        differing = [*differing]
        unknown = {key for key in (*shared, *differing) if key not in self._shared}
        varying = {key for key in differing if key not in self._likelihood} if len(self.counts) > 1 else set[Key]()
        groups: dict[Key, list[Key]] = defaultdict(list)
        for key in sorted(unknown | varying):
            groups[tuple(sorted(key, key=lambda name: (len(self.levels[name]), name)))].append(key)
        for sets in self._batches(sorted(groups)):
            tables = self._complete(sets)
            nodes = {key: _node_first(tables[names], names.index(key[0])) for names in sets for key in groups[names]}
            _score_by_size({key: table for key, table in nodes.items() if key in unknown}, _score_shared, self._shared)
            some = {key: table for key, table in nodes.items() if key in varying}
            _score_by_size(some, _score_differing, self._likelihood)

    def count_cells(self, names: Iterable[str]) -> int:
        """Return the number of cells in the table of some variables."""
        return math.prod(len(self.levels[name]) for name in names)

    def _batches(self, sets: Iterable[Key]) -> Iterable[list[Key]]:
        """Yield sets with as many variables each, in parts that are not too large."""
        sizes: dict[int, list[Key]] = defaultdict(list)
        for names in sets:
            sizes[len(names)].append(names)
        for several in sizes.values():
            part, elements = list[Key](), 0
            for names in several:
                more = self.count_cells(names) * len(self.counts)
                if part and elements + more > _BATCH_ELEMENTS:
                    yield part
                    part, elements = [], 0
                part.append(names)
                elements += more
            yield part

    def _complete(self, sets: Sequence[Key]) -> dict[Key, Array]:
        """Return the tables (*levels, clients) of sets with as many variables each, new or kept."""
        tables = {names: table for names in sets if (table := self._kept.get(names)) is not None}
        shapes: dict[Shape, list[Key]] = defaultdict(list)
        for names in sets:
            if names not in tables:
                shapes[tuple(len(self.levels[name]) for name in names)].append(names)
        for shape, some in _merge_shapes(shapes, len(self.counts)).items():
            found = self._new_tables(some, shape)
            for place, names in enumerate(some):
                kept = tuple(slice(len(self.levels[name])) for name in names)
                tables[names] = np.ascontiguousarray(found[..., place, :][kept])
                self._kept.add(names, tables[names])
        return {names: tables[names] for names in sets}

    @cached_property
    def _padded(self) -> tuple[Array, dict[str, Indices]]:
        """Return the counts of all levels, with a last row and column of zeros, and the places of the levels."""
        columns = np.concatenate([*self.levels.values()])
        counts = np.zeros((len(self.counts), len(columns) + 1, len(columns) + 1))
        counts[:, :-1, :-1] = self.counts[:, columns[:, None], columns]
        ends = np.cumsum([len(found) for found in self.levels.values()])
        return counts, {
            name: np.arange(end - len(found), end)
            for (name, found), end in zip(self.levels.items(), ends.tolist(), strict=True)
        }

    def _new_tables(self, sets: Sequence[Key], shape: Shape) -> Array:
        """Return counts, completed if necessary: (*levels of the variables, sets, clients); levels may be empty."""
        counts, places = self._padded
        levels = [np.full((len(sets), size), counts.shape[1] - 1) for size in shape]
        for row, names in enumerate(sets):
            for axis, name in enumerate(names):
                levels[axis][row, : len(places[name])] = places[name]

        def pair(one: int, other: int) -> Array:
            joint = counts[:, levels[one][:, :, None], levels[other][:, None, :]]
            return np.moveaxis(joint, (2, 3, 1), (0, 1, 2)).reshape(shape[one], shape[other], -1)

        if len(shape) < 3:
            tables = (
                pair(0, 1) if len(shape) == 2 else pair(0, 0).sum(axis=1)
            )  # a level occurs with no other level of its variable
        else:
            tables = complete_tables({(i, j): pair(i, j) for i, j in combinations(range(len(shape)), 2)})
        return _count_share(tables.reshape(*shape, len(sets), len(counts)), self.shares)


def _merge_shapes(shapes: Mapping[Shape, Sequence[Key]], clients: int) -> dict[Shape, list[Key]]:
    """Return sets of variables by a shape that holds their tables; few cells of it are empty.

    Every set is there once, under a shape that is nowhere smaller than its own.
    """
    merged: dict[Shape, list[Key]] = {}
    for shape in sorted(shapes, key=lambda shape: (-math.prod(shape), shape)):
        several = shapes[shape]
        for other in list(merged):
            both = tuple(map(max, shape, other))
            empty = math.prod(both) * (len(several) + len(merged[other]))
            empty -= math.prod(shape) * len(several) + math.prod(other) * len(merged[other])
            if empty * clients <= _MAX_EMPTY_ELEMENTS:
                merged[both] = [*merged.pop(other), *several, *(merged.pop(both, []) if both != other else [])]
                break
        else:
            merged[shape] = [*several]
    return merged


def _count_share(tables: Array, shares: RowShares) -> Array:
    """Return tables (*levels, tables, clients) of a share of the rows; clients are as close as their means are."""
    if shares == ALL_ROWS:
        return tables
    pooled, rows = tables.sum(axis=-1, keepdims=True), tables.sum(axis=tuple(range(tables.ndim - 2)), keepdims=True)
    alike = pooled * (rows / np.maximum(rows.sum(axis=-1, keepdims=True), _TINY_COUNT))
    return np.asarray(shares.product * (alike + shares.mean_factor * (tables - alike)))


def _node_first(table: Array, axis: int) -> Array:
    """Return a table as (levels of the node, configurations of its parents, clients)."""
    moved = np.moveaxis(table, axis, 0)
    return moved.reshape(len(moved), -1, table.shape[-1])


def _score_by_size(tables: Mapping[Key, Array], score: Callable[[list[Array]], list[T]], known: dict[Key, T]) -> None:
    """Score tables (levels, configurations, clients), in parts that become one array by empty configurations."""
    parts: list[list[Key]] = []
    levels = spent = most = 0
    for key, table in sorted(tables.items(), key=lambda one: (len(one[1]), -one[1].size, one[0])):
        spent += most - table.size
        if levels != len(table) or spent > _MAX_EMPTY_SCORED or most * (1 + len(parts[-1])) > _BATCH_ELEMENTS:
            parts.append([])
            levels, spent, most = len(table), 0, table.size
        parts[-1].append(key)
    for part in parts:
        known.update(zip(part, score([tables[key] for key in part]), strict=True))


def _stack_tables(several: Sequence[Array]) -> Array:
    """Return tables (levels, configurations, keys, clients); configurations that a table lacks have no rows."""
    levels, _, clients = several[0].shape
    tables = np.zeros((levels, max(table.shape[1] for table in several), len(several), clients))
    for place, table in enumerate(several):
        tables[:, : table.shape[1], place] = table
    return tables


def _score_shared(several: Sequence[Array]) -> list[SharedEvidence]:
    """Score tables (levels, configurations, clients) with one mechanism for all clients."""
    pooled, levels = _stack_tables([table.sum(axis=-1, keepdims=True) for table in several])[..., 0], len(several[0])
    cell = PRIOR_ROWS / np.array([levels * table.shape[1] for table in several])
    total = _log_rising_factorial(cell, pooled).sum(axis=(0, 1)) - _log_rising_factorial(
        cell * levels, pooled.sum(axis=0)
    ).sum(axis=0)
    left = -xlogy(pooled, level_shares(pooled)).sum(axis=(0, 1))
    return [SharedEvidence(*both) for both in zip(total.tolist(), left.tolist(), strict=True)]


def _score_differing(several: Sequence[Array]) -> list[float]:
    """Score tables (levels, configurations, clients) with a mechanism for each client: log mean likelihoods."""
    tables = _stack_tables(several)
    pooled, own = tables.sum(axis=-1), tables.sum(axis=0)
    free = (pooled / (1 + pooled)).sum(axis=0).clip(1.0) - 1
    by_concentration = [_differing_evidence(tables, own, free, c) for c in CONCENTRATIONS.tolist()]
    found: list[float] = _log_mean(np.stack(by_concentration)).tolist()
    return found


def _differing_evidence(tables: Array, own: Array, free: Array, concentration: float) -> Array:
    """Return the log likelihood of mechanisms around the best common one, with the Occam factor of its entries."""
    weighted = (tables * np.minimum(1.0, (concentration + 1) / (own + concentration))).sum(axis=-1)
    mean = level_shares(weighted)[..., None]
    prior = np.where(mean > 0, concentration * mean, 1.0)  # without rows, any prior will do
    likelihood = _log_rising_factorial(prior, tables).sum(axis=(0, 1, 3)) - _log_rising_factorial(
        np.full(1, concentration), own
    ).sum(axis=(0, 2))
    share = np.divide(weighted.sum(axis=0), own.sum(axis=-1), out=np.ones_like(free), where=free > 0)
    return np.asarray(likelihood - (free * np.log(share)).sum(axis=0) / 2)


def level_shares(table: Array) -> Array:
    """Return the shares of the levels in each configuration; zero without rows."""
    return np.asarray(table / np.maximum(table.sum(axis=0), _TINY_COUNT))


def _log_rising_factorial(start: Array, count: Array) -> Array:
    """Return log Γ(start + count)/Γ(start): the log likelihood of rows that are counted one by one."""
    return np.asarray(gammaln(start + count) - gammaln(start))


def _log_mean(values: Array) -> Array:
    """Return the log of the mean over the first axis, given logs."""
    top = values.max(axis=0)
    return np.asarray(top + np.log(np.exp(values - top).mean(axis=0)))
