"""A summary as one row of numbers modulo 2⁶⁴, so that masked rows add up to the row of the sum.

Rows used, rows read and missing values by variable; the upper triangle of the moments; and the first moments, in the
place of the group that the site belongs to, with zeros for the other groups. Numbers of rows stand there as they are,
not times the grid: they cannot pass 2⁶⁴, so that a sum of more rows than sums are exact for is seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt

from fedcdh.errors import SecureAggregationError, SummaryError
from fedcdh.summaries.aggregation import Aggregate
from fedcdh.summaries.encoder import GRID
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.summary import MAX_ROWS, Integers, Summary, iter_triangle_rows
from fedcdh.summaries.validation import validate_summary

Words = npt.NDArray[np.uint64]

MAX_ROWS_READ = 1 << 48
"""Of rows that one site reads: then those of 1000 sites stay below 2⁶³."""

Groups = tuple[tuple[str, tuple[str, ...]], ...]
"""Whose first moments stand together: names of groups, sorted, with their clients."""


def group_clients(groups: Mapping[str, str], clients: Iterable[str]) -> Groups:
    """The groups of these clients, each by itself where there are none."""
    found: dict[str, list[str]] = {}
    for client in sorted(clients):
        found.setdefault(groups.get(client, client), []).append(client)
    return tuple((name, tuple(found[name])) for name in sorted(found))


def vector_length(plan: StudyPlan, groups: int) -> int:
    """How many numbers a site sends."""
    return (
        2 + len(plan.names) + plan.layout.n_columns * (plan.layout.n_columns + 1) // 2 + groups * plan.layout.n_columns
    )


def encode_summary(summary: Summary, plan: StudyPlan, groups: Groups) -> Words:
    """The numbers of one site."""
    if summary.replicate or len(summary.clients) != 1:
        raise SecureAggregationError("only the summary of one client's own rows is masked, no copy of it and no sum")
    if summary.noise != _client_noise_variance(plan):
        raise SecureAggregationError(
            "the summary has not the noise that the plan asks of one site; use privacy.noise.client_deviation"
        )
    if plan.noise is not None and plan.noise.distributed and len(groups) > 1:
        raise SecureAggregationError(
            "sites add noise together in this plan, so that only the sum of all has enough of it, not first moments of "
            "single groups; put all sites into one group"
        )
    if summary.rows_read > MAX_ROWS_READ:
        raise SecureAggregationError(f"{summary.rows_read} rows were read; expected at most {MAX_ROWS_READ}")
    firsts = np.zeros((len(groups), plan.layout.n_columns), dtype=np.int64)
    firsts[[summary.clients[0] in members for _, members in groups].index(True)] = summary.moments[0]
    return _to_vector(summary, plan, firsts)


def encode_aggregate(aggregate: Aggregate) -> Words:
    """The numbers of a sum, as they are kept in a file."""
    return _to_vector(aggregate.total, aggregate.plan, aggregate.first_moments)


def decode_aggregate(words: Words, plan: StudyPlan, groups: Groups) -> Aggregate:
    """The sum that these numbers are of, checked as a summary is; SummaryError for what no rows can have given.

    A site that lies cannot be named: what it sent is known to nobody.
    """
    if len(words) != vector_length(plan, len(groups)):
        raise SummaryError(f"the sum has {len(words)} numbers, expected {vector_length(plan, len(groups))}")
    variables, columns = len(plan.names), plan.layout.n_columns
    rows, read = int(words[0]), int(words[1])
    if not 1 <= rows <= MAX_ROWS:
        raise SummaryError(
            f"the sum is of {rows} rows, and sums are exact for 1 to {MAX_ROWS}; let sites use a random part of "
            "their rows, or look for a site that sends something else than its summary"
        )
    numbers = words.astype(np.uint64).view(np.int64)
    missing = dict(zip(plan.names, map(int, numbers[2 : 2 + variables]), strict=True))
    triangle = numbers[2 + variables : len(numbers) - len(groups) * columns]
    moments = from_triangle(triangle, columns)
    if int(moments[0, 0]) != rows * GRID**2:
        raise SummaryError(f"the sum counts {rows} rows, its moments another number; a site sent what is no summary")
    clients = tuple(sorted(client for _, members in groups for client in members))
    total = Summary(
        plan.fingerprint, clients, moments, read, missing, noise=len(clients) * _client_noise_variance(plan)
    )
    validate_summary(total, plan)
    return Aggregate(plan, total, numbers[len(numbers) - len(groups) * columns :].reshape(-1, columns), groups)


def to_triangle(moments: Integers) -> Integers:
    """The entries from the diagonal on, row by row."""
    return np.concatenate([row[start:] for start, row in enumerate(moments)])


def from_triangle(triangle: Integers, columns: int) -> Integers:
    """The matrix of these entries; row by row, since their places would take more memory than they do."""
    moments = np.empty((columns, columns), dtype=np.int64)
    for row, place in iter_triangle_rows(columns):
        moments[row, row:] = moments[row:, row] = triangle[place]
    return moments


def _client_noise_variance(plan: StudyPlan) -> int:
    """σ² of what every site adds."""
    return 0 if plan.noise is None else plan.noise.client_deviation**2


def _to_vector(summary: Summary, plan: StudyPlan, firsts: Integers) -> Words:
    counts = [summary.rows, summary.rows_read, *(int(summary.missing[name]) for name in plan.names)]
    row: Integers = np.concatenate([np.array(counts, dtype=np.int64), to_triangle(summary.moments), firsts.ravel()])
    return row.view(np.uint64)
