"""Poisson bootstrap within a client: summaries of its rows as they might have been drawn anew.

In every copy a row counts 0, 1, 2, ... times, Poisson with mean 1, drawn from a generator keyed by seed, client and
number of the copy; the n-th number of the generator belongs to the n-th row of the table. So a copy is a summary like
any other, exact and additive, made in the same single pass over the rows. By its number it is not taken for that of the
rows themselves, and by the digest of the latter, which it bears, not for a copy of other rows. Batches and files make
no difference, and more copies leave the first ones as they were. The order of rows does make one: another order is
another, equally good draw. Numbers keyed by what a row holds would not mind the order, but rows that are alike must be
drawn apart, and counting them would need memory for every different row.

Copies are further releases of the same rows, and a policy has to count all of them. Whoever knows the seed knows how
often every row counts in every copy; from as many copies as there are rows, each row follows. So the seed has to stay
at the site, where it should be drawn at random, and rows have to be many beside columns times copies.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import stats

from fedcdh._runtime.array_types import Array
from fedcdh._runtime.blas_threads import single_blas_thread
from fedcdh.data.sources import to_source
from fedcdh.data.table import Table
from fedcdh.errors import DataError, SettingsError, SummaryError
from fedcdh.summaries.encoder import Encoder
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.summary import MAX_ROWS, Summary

ReplicateObserver = Callable[[Table, Array], None]

MAX_REPLICATES = 1000
MAX_BOOTSTRAP_BYTES = 1 << 30
"""Of memory for the sums of all copies of a client: they are made in one pass over the rows, side by side."""
_BLOCK_ROWS = 2048  # rows at a time
_POISSON_CDF = stats.poisson.cdf(np.arange(16), 1.0)
"""P(at most 0, 1, ... times). More than 15 times, which has probability 2 · 10⁻¹⁴, counts as 16: then a block's 2048
products of up to 16 · 2³⁶ add up to at most 2⁵¹, exact in float64."""


def bootstrap_summaries(
    table: Any, plan: StudyPlan, client: str, replicates: int, seed: int, *, observer: ReplicateObserver | None = None
) -> tuple[Summary, ...]:
    """So many summaries of the client's rows, each with every row counted Poisson(1) times.

    `observer` sees who is in which copy: for every block of rows it is called with the complete rows, and how often each
    of them counts in each copy, (copies, rows). It is for the site to look at, and for nobody else.

    >>> from fedcdh.summaries.plan import Continuous
    >>> plan = StudyPlan((Continuous("age", 60, 15),), ("north", "south"))
    >>> [copy.rows for copy in bootstrap_summaries({"age": range(40, 80)}, plan, "north", 3, seed=1)]
    [33, 38, 28]
    """
    check_replicate_count(plan, replicates)
    if not isinstance(seed, int) or seed < 0:
        raise SettingsError(f"seed is {seed!r}; expected a whole number from 0 up", parameter="seed")
    if client not in plan.clients:
        raise DataError(f"client {client!r} is not part of the plan, which names {', '.join(plan.clients)}")
    source = to_source(table, f"client {client!r}", names=plan.names, only=plan.names)
    encode, whole = Encoder(plan, client), _ReplicateSums(plan, client, seed, 0)
    drawn = [_ReplicateSums(plan, client, seed, number) for number in range(1, replicates + 1)]
    with single_blas_thread():
        for batch in source.batches(plan.kinds):
            for start in range(0, batch.rows, _BLOCK_ROWS):
                _add_block(batch.slice_rows(start, _BLOCK_ROWS), encode, whole, drawn, observer)
    if empty := sum(not copy.moments[0, 0] for copy in drawn):
        raise DataError(f"client {client!r} has too few complete rows: {empty} of {replicates} copies are empty")
    of = whole.summary(plan, client).digest
    drawn.reverse()
    return tuple(drawn.pop().summary(plan, client, of) for _ in range(replicates))  # each goes before the next is made


def check_replicate_count(plan: StudyPlan, replicates: int) -> None:
    """Refuses numbers of copies that are none, or whose sums take more memory than `MAX_BOOTSTRAP_BYTES`."""
    if not isinstance(replicates, int) or not 1 <= replicates <= MAX_REPLICATES:
        raise SettingsError(f"copies is {replicates!r}; expected a whole number from 1 to {MAX_REPLICATES}")
    if plan.noise is not None:
        raise SettingsError("every bootstrap copy would spend the plan's epsilon again; ask for none with noise")
    each = 8 * plan.layout.n_columns**2
    if replicates * each > MAX_BOOTSTRAP_BYTES:
        advice = f"ask for up to {most} copies" if (most := MAX_BOOTSTRAP_BYTES // each) else "do without copies"
        raise SettingsError(
            f"{replicates} copies of the sums of {plan.layout.n_columns} columns take {replicates * each / 1e9:.1f} GB of memory, "
            f"expected at most {MAX_BOOTSTRAP_BYTES / 1e9:.1f} GB; {advice}, or leave variables out of the plan"
        )


class _ReplicateSums:
    """What is added up for one copy while rows come by; number 0 is the rows themselves."""

    def __init__(self, plan: StudyPlan, client: str, seed: int, number: int) -> None:
        self.moments = np.zeros((plan.layout.n_columns, plan.layout.n_columns), dtype=np.int64)
        self.missing = dict.fromkeys(plan.names, 0)
        self.number, self.read = number, 0
        key = hashlib.sha256(f"{seed}\0{client}\0{number}".encode()).digest()
        self._generator = np.random.Generator(np.random.Philox(np.random.SeedSequence(list(key))))

    def times(self, rows: int) -> Array:
        """How often each of the next rows counts; one number of the generator for each, wherever batches end."""
        if not self.number:
            return np.ones(rows)
        return np.searchsorted(_POISSON_CDF, self._generator.random(rows)).astype(np.float64)

    def summary(self, plan: StudyPlan, client: str, of: str = "") -> Summary:
        """What came of it; `of` is the digest of that of the rows themselves."""
        return Summary(plan.fingerprint, (client,), self.moments, self.read, self.missing, self.number, of)


def _add_block(
    block: Table,
    encode: Encoder,
    whole: _ReplicateSums,
    drawn: list[_ReplicateSums],
    observer: ReplicateObserver | None,
) -> None:
    missing = {name: column.missing for name, column in block.columns.items()}
    complete = ~np.logical_or.reduce(list(missing.values()))
    used = block if complete.all() else block.select_rows(complete)
    features = encode(used)
    often = np.empty((len(drawn), used.rows))
    for copy in (whole, *drawn):
        times = copy.times(block.rows)
        copy.read += int(times.sum())
        if copy.read > MAX_ROWS:
            raise SummaryError(f"more rows than the {MAX_ROWS} whose sums are exact; use a random part of the rows")
        for name, lacking in missing.items():
            copy.missing[name] += int(times[lacking].sum())
        copy.moments += ((features * times[complete]) @ features.T).astype(np.int64)
        if copy.number:
            often[copy.number - 1] = times[complete]
    if observer:
        observer(used, often)
