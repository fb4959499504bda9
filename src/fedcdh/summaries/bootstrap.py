"""Poisson bootstrap within a client: summaries of resampled rows, and their validation at the server.

In every replicate a row counts 0, 1, 2, ... times, Poisson with mean 1. The generator is keyed by seed, client and
number of the replicate, and its n-th number belongs to the n-th row of the table. So a replicate is a summary like any
other, exact and additive, made in the same single pass over the rows. Its number distinguishes it from the summary of
the rows themselves, and the digest of that summary, which it carries, from replicates of other rows. Batches and files
make no difference, and further replicates leave the first ones unchanged. The order of the rows matters: another order
is another, equally good sample. Weights keyed by the values of a row would not depend on the order, but equal rows need
independent weights, and counting them would take memory for every different row.

Replicates are further releases of the same rows, and a policy has to count all of them. The seed determines how often
every row counts in every replicate; from as many replicates as there are rows, each row follows. So the seed has to
stay at the site, where it should be random, and rows have to be many compared with columns times replicates.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from scipy import stats

from fedcdh._io.text import abbreviate_list
from fedcdh._runtime.array_types import Array
from fedcdh._runtime.blas_threads import single_blas_thread
from fedcdh.data.sources import to_source
from fedcdh.data.table import Table
from fedcdh.errors import DataError, SettingsError, SummaryError
from fedcdh.summaries._moment_identities import RARE_EXPONENT, UNIT_ROUNDOFF, describe_clients, row_blocks
from fedcdh.summaries.aggregation import Cohort
from fedcdh.summaries.client_changes import belongs_to
from fedcdh.summaries.encoder import GRID, Encoder
from fedcdh.summaries.imputation.imputed_source import impute_rows, original_rows, prepare_study_rows
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.summary import Summary, check_row_capacity
from fedcdh.summaries.validation import admit_summaries, describe_replicate, fingerprint_of, is_distinctive

ReplicateObserver = Callable[[Table, Array], None]

MAX_REPLICATES = 1000
MAX_BOOTSTRAP_BYTES = 1 << 30
"""Memory for the sums of all replicates of a client, which are made in one pass over the rows, side by side."""
_BLOCK_ROWS = 2048  # rows at a time
_POISSON_CDF = stats.poisson.cdf(np.arange(16), 1.0)
"""P(at most 0, 1, ... times). More than 15 times, which has probability 2 · 10⁻¹⁴, counts as 16: then a block's 2048
products of up to 16 · 2³⁶ add up to at most 2⁵¹, exact in float64."""


def bootstrap_summaries(
    table: Any, plan: StudyPlan, client: str, replicates: int, seed: int, *, observer: ReplicateObserver | None = None
) -> tuple[Summary, ...]:
    """Compute summaries of a client's rows in which every row counts Poisson(1) times.

    Parameters
    ----------
    table : table, list of batches, or files opened with `open_tables`
        Rows of the client.
    plan : StudyPlan
        Plan of the study.
    client : str
        Name of the client.
    replicates : int
        Number of bootstrap replicates.
    seed : int
        Seed of the weights. It has to stay at the site.
    observer : callable, optional
        Called with the complete rows of every block, and how often each of them counts in each replicate, (replicates,
        rows). For disclosure control at the site only.

    Returns
    -------
    tuple of Summary
        One summary per replicate.

    Raises
    ------
    DataError
        If the table does not fit the plan, or a replicate is empty.
    SettingsError
        If `replicates` or `seed` is out of its range.

    Examples
    --------
    >>> from fedcdh.summaries import Continuous, StudyPlan
    >>> plan = StudyPlan((Continuous("age", 60, 15),), ("north", "south"))
    >>> [one.rows for one in bootstrap_summaries({"age": range(40, 80)}, plan, "north", 3, seed=1)]
    [33, 38, 28]
    """
    check_replicate_count(plan, replicates)
    if not isinstance(seed, int) or seed < 0:
        raise SettingsError(f"the seed is {seed!r}; expected a whole number from 0 upwards", parameter="seed")
    if client not in plan.clients:
        raise DataError(
            f"client {client!r} is not in the plan, which names {abbreviate_list(plan.clients)}; correct the name, or "
            "the plan"
        )
    table = impute_rows(table, plan, client)
    source = to_source(table, f"client {client!r}", names=plan.names, only=plan.names)
    source = prepare_study_rows(source, plan, client)
    encode, whole = Encoder(plan, client), _ReplicateSums(plan, client, seed, 0)
    drawn = [_ReplicateSums(plan, client, seed, number) for number in range(1, replicates + 1)]
    with single_blas_thread():
        for batch in source.batches(plan.kinds):
            for start in range(0, batch.rows, _BLOCK_ROWS):
                _add_block(batch.slice_rows(start, _BLOCK_ROWS), encode, whole, drawn, observer)
    if empty := sum(not one.moments[0, 0] for one in drawn):
        raise DataError(
            f"client {client!r} has too few complete rows: {empty} of {replicates} replicates are empty; use more "
            "rows, or ask for no replicates"
        )
    original = whole.summary(plan, client).digest
    drawn.reverse()
    return tuple(drawn.pop().summary(plan, client, original) for _ in range(replicates))  # frees each before the next


def check_replicate_count(plan: StudyPlan, replicates: int) -> None:
    """Raise a SettingsError if the number of replicates is out of range, or their sums take too much memory.

    Parameters
    ----------
    plan : StudyPlan
        Plan of the study.
    replicates : int
        Number of bootstrap replicates.

    Raises
    ------
    SettingsError
        If the number is not allowed.
    """
    if not isinstance(replicates, int) or not 1 <= replicates <= MAX_REPLICATES:
        raise SettingsError(
            f"the number of bootstrap replicates is {replicates!r}; expected a whole number from 1 to {MAX_REPLICATES}",
            parameter="replicates",
        )
    if plan.noise is not None:
        raise SettingsError(
            "bootstrap replicates were asked for in a plan with noise, where each would spend the plan's epsilon "
            "again; ask for none",
            parameter="replicates",
        )
    each = 8 * plan.layout.n_columns**2
    if replicates * each > MAX_BOOTSTRAP_BYTES:
        advice = f"ask for up to {most} replicates" if (most := MAX_BOOTSTRAP_BYTES // each) else "ask for none"
        raise SettingsError(
            f"{replicates} replicates of the sums of {plan.layout.n_columns} columns take "
            f"{replicates * each / 1e9:.1f} GB of memory; expected at most {MAX_BOOTSTRAP_BYTES / 1e9:.1f} GB; "
            f"{advice}, or leave variables out of the plan",
            parameter="replicates",
        )


def admit_replicates(replicates: Iterable[Summary], cohort: Cohort) -> tuple[Cohort, ...]:
    """Validate the bootstrap replicates that all clients sent.

    Replicates that some client did not send are left out, and so are those of clients that are not in the cohort.

    Parameters
    ----------
    replicates : iterable of Summary
        Replicates of all clients, in any order.
    cohort : Cohort
        Summaries of the rows themselves.

    Returns
    -------
    tuple of Cohort
        One cohort per replicate.

    Raises
    ------
    SummaryError
        If a replicate cannot be one of these rows.

    Examples
    --------
    >>> from fedcdh.summaries import Continuous, StudyPlan, add_up, summarize
    >>> plan, table = StudyPlan((Continuous("age", 60, 15),), ("north",)), {"age": list(range(40, 80))}
    >>> cohort = add_up([summarize(table, plan, "north")], plan)
    >>> len(admit_replicates(bootstrap_summaries(table, plan, "north", 3, seed=1), cohort))
    3
    """
    numbered: dict[int, list[Summary]] = {}
    for one in replicates:
        numbered.setdefault(one.replicate, []).append(one)
    complete = find_complete_replicates(
        {number: [client for one in sent for client in one.clients] for number, sent in numbered.items()}, cohort
    )
    return tuple(iter_admitted_replicates(((number, numbered[number]) for number in complete), cohort))


def find_complete_replicates(senders: Mapping[int, Iterable[str]], cohort: Cohort) -> list[int]:
    """Return the numbers of the replicates that every client of the cohort sent, in ascending order."""
    return [number for number, clients in sorted(senders.items()) if {*clients} >= {*cohort.clients}]


def iter_admitted_replicates(numbered: Iterable[tuple[int, Iterable[Summary]]], cohort: Cohort) -> Iterator[Cohort]:
    """Validate one replicate after the other, so that not all of them have to be in memory."""
    originals = dict(zip(cohort.clients, cohort.summaries, strict=True))
    absent = set(cohort.plan.clients) - set(originals)
    seen = {client: {fingerprint_of(summary): "its summary"} for client, summary in originals.items()}
    for number, sent in numbered:
        here = (one for one in sent if not absent.intersection(one.clients))
        admitted = admit_summaries(here, cohort.plan, replicate=number, without=absent)
        for client, one in zip(admitted.clients, admitted.summaries, strict=True):
            validate_replicate(one, originals[client], cohort.plan)
            other = seen[client].setdefault(fingerprint_of(one), describe_replicate(number))
            if other != describe_replicate(number) and is_distinctive(one, cohort.plan):
                raise SummaryError(
                    f"{describe_replicate(number)} and {other} of {describe_clients(one)} have the same sums to the "
                    "last digit, which no two samples of rows do; ask the client to make its replicates again"
                )
        yield admitted


def validate_replicate(replicate: Summary, original: Summary, plan: StudyPlan) -> None:
    """Raise a SummaryError if a replicate belongs to another summary, or is farther from it than chance explains.

    Parameters
    ----------
    replicate : Summary
        Bootstrap replicate of a client.
    original : Summary
        Summary of the client's rows.
    plan : StudyPlan
        Plan of both. They may have been made by an earlier one.

    Raises
    ------
    SummaryError
        If the replicate is not one of these rows.

    Notes
    -----
    Σ (w − 1) f over rows with Poisson weights w and |f| ≤ 1 has the variance V = Σ f², and is larger than t with a
    probability of at most 2 exp(−t²/(2(V + t/3))) (Bernstein). For products of features V ≤ Σ φ_i², Σ φ_j²; of rows,
    complete or not, it is their number.
    """
    if not belongs_to(replicate.original, original, plan):
        raise SummaryError(
            f"{describe_replicate(replicate.replicate)} of {describe_clients(replicate)} belongs to another summary "
            f"than the one that came: it names {replicate.original[:12] or 'none'}, expected {original.digest[:12]}; "
            "ask the client for the files of one run, the summary and its replicates, and remove older ones"
        )
    squares = original.moments.diagonal() / float(GRID**2)
    apart = np.abs(replicate.moments - original.moments) / float(GRID**2)
    far = any(
        (apart[rows] > _chance_bound(np.minimum.outer(squares[rows], squares))).any()
        for rows in row_blocks(len(squares))
    )
    counts = [
        (replicate.rows_read, original.rows_read),
        *((replicate.missing[name], original.missing[name]) for name in original.missing),
    ]
    if far or any(abs(drawn - there) > _chance_bound(np.float64(there)) for drawn, there in counts):
        raise SummaryError(
            f"{describe_replicate(replicate.replicate)} of {describe_clients(replicate)} is not drawn from the rows "
            "of its summary: its sums differ by more than chance explains; ask the client for the files of one run, "
            "the summary and its replicates"
        )


def _chance_bound(variance: Array | np.float64) -> Any:
    """Return the deviation that is exceeded with a probability of 2 exp(−64), below 1e-27."""
    return (RARE_EXPONENT / 3 + np.sqrt(RARE_EXPONENT**2 / 9 + 2 * RARE_EXPONENT * variance)) * (1 + 8 * UNIT_ROUNDOFF)


class _ReplicateSums:
    """Adds the moments of one replicate; number 0 is the rows themselves."""

    def __init__(self, plan: StudyPlan, client: str, seed: int, number: int) -> None:
        self.moments = np.zeros((plan.layout.n_columns, plan.layout.n_columns), dtype=np.int64)
        self.missing = dict.fromkeys(plan.names, 0)
        self.number, self.read = number, 0
        key = hashlib.sha256(f"{seed}\0{client}\0{number}".encode()).digest()
        self._generator = np.random.Generator(np.random.Philox(np.random.SeedSequence(list(key))))

    def times(self, rows: int) -> Array:
        """Return how often each of the next rows counts, with one random number for each, for any batches."""
        if not self.number:
            return np.ones(rows)
        return np.searchsorted(_POISSON_CDF, self._generator.random(rows)).astype(np.float64)

    def summary(self, plan: StudyPlan, client: str, original: str = "") -> Summary:
        """Return the summary; `original` is the digest of that of the rows themselves."""
        return Summary(plan.fingerprint, (client,), self.moments, self.read, self.missing, self.number, original)


def _add_block(
    block: Table,
    encode: Encoder,
    whole: _ReplicateSums,
    drawn: list[_ReplicateSums],
    observer: ReplicateObserver | None,
) -> None:
    missing = {name: column.missing for name, column in original_rows(block).columns.items()}
    complete = ~np.logical_or.reduce([column.missing for column in block.columns.values()])
    used = block if complete.all() else block.select_rows(complete)
    features = encode(used)
    weights = np.empty((len(drawn), used.rows))
    for one in (whole, *drawn):
        times = one.times(block.rows)
        one.read += int(times.sum())
        check_row_capacity(one.read)
        for name, lacking in missing.items():
            one.missing[name] += int(times[lacking].sum())
        one.moments += ((features * times[complete]) @ features.T).astype(np.int64)
        if one.number:
            weights[one.number - 1] = times[complete]
    if observer:
        observer(used, weights)
