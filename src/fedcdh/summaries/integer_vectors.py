"""A summary as one vector of integers modulo 2⁶⁴, so that masked vectors add up to the vector of the sum.

The vector holds rows used, rows read and missing values by variable; the upper triangle of the moments; and the first
moments, in the place of the client's group, with zeros for the other groups. Numbers of rows are not multiplied by the
grid: they cannot pass 2⁶⁴, so a sum of too many rows is recognised. In a sum with mixtures of the clients
(`summaries.domain_mixtures`), the first moments stand once for each mixture, with the client's sign, and then the
number of rows once for each two mixtures, with the product of its signs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt

from fedcdh.errors import SecureAggregationError, SummaryError
from fedcdh.summaries.aggregation import Aggregate
from fedcdh.summaries.domain_mixtures import DomainMixtures, select_signs
from fedcdh.summaries.encoder import GRID
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.summary import MAX_ROWS, Integers, Summary, iter_triangle_rows
from fedcdh.summaries.validation import validate_summary

Words = npt.NDArray[np.uint64]

MAX_ROWS_READ = 1 << 48
"""Rows that one client may read: those of 1000 clients then stay below 2⁶³."""

Groups = tuple[tuple[str, tuple[str, ...]], ...]
"""Groups whose first moments are added together: names of groups, sorted, with their clients."""


def group_clients(groups: Mapping[str, str], clients: Iterable[str]) -> Groups:
    """Return the groups of these clients; a client without a group is a group of its own.

    Parameters
    ----------
    groups : mapping from str to str
        Group of each client that has one.
    clients : iterable of str
        Names of the clients.

    Returns
    -------
    tuple of (str, tuple of str)
        Names of groups, sorted, with their clients.

    Examples
    --------
    >>> group_clients({"a": "east", "b": "east"}, ["a", "b", "c"])
    (('c', ('c',)), ('east', ('a', 'b')))
    """
    found: dict[str, list[str]] = {}
    for client in sorted(clients):
        found.setdefault(groups.get(client, client), []).append(client)
    return tuple((name, tuple(found[name])) for name in sorted(found))


def vector_length(plan: StudyPlan, groups: int, mixtures: int = 0) -> int:
    """Return the number of integers that a client sends; with mixtures, whatever the groups."""
    columns = plan.layout.n_columns
    firsts = mixtures * columns + mixtures * (mixtures - 1) // 2 if mixtures else groups * columns
    return 2 + len(plan.names) + columns * (columns + 1) // 2 + firsts


def encode_summary(summary: Summary, plan: StudyPlan, groups: Groups, mixtures: int = 0) -> Words:
    """Return the vector of one client's summary.

    Parameters
    ----------
    summary : Summary
        Summary of one client's own rows.
    plan : StudyPlan
        Its plan.
    groups : tuple of (str, tuple of str)
        Groups of all clients.
    mixtures : int, default 0
        Number of mixtures of the clients. 0: first moments stand in the place of the client's group.

    Returns
    -------
    array of uint64
        The vector.

    Raises
    ------
    SecureAggregationError
        If the summary is a replicate, a sum, or has not the noise of one client.
    """
    if summary.replicate or len(summary.clients) != 1:
        raise SecureAggregationError(
            "the summary is a bootstrap replicate or a sum; expected that of one client's own rows; pass that one"
        )
    if summary.noise != _client_noise_variance(plan):
        raise SecureAggregationError(
            "the summary has not the noise that the plan asks of one client; use add_noise_share of fedcdh.privacy"
        )
    if plan.noise is not None and plan.noise.distributed and len(groups) > 1:
        raise SecureAggregationError(
            "the noise of this plan is distributed, so that only the sum over all clients has enough of it, and first "
            "moments of single groups have not; put all clients into one group"
        )
    if summary.rows_read > MAX_ROWS_READ:
        raise SecureAggregationError(
            f"{summary.rows_read} rows were read; expected at most {MAX_ROWS_READ}; use a part of the rows"
        )
    if mixtures:
        return _to_vector(summary, plan, _write_mixtures(DomainMixtures.of([summary], plan, mixtures)))
    firsts = np.zeros((len(groups), plan.layout.n_columns), dtype=np.int64)
    firsts[[summary.clients[0] in members for _, members in groups].index(True)] = summary.moments[0]
    return _to_vector(summary, plan, firsts)


def encode_aggregate(aggregate: Aggregate) -> Words:
    """Return the vector of a sum, as it is stored in a file."""
    firsts = aggregate.first_moments
    if aggregate.mixtures is not None:
        firsts = _write_mixtures(aggregate.mixtures)
    return _to_vector(aggregate.total, aggregate.plan, firsts)


def decode_aggregate(words: Words, plan: StudyPlan, groups: Groups, mixtures: int = 0) -> Aggregate:
    """Return the sum in a vector, validated like a summary.

    A client that sends false numbers cannot be named, because nobody knows the vectors of single clients.

    Parameters
    ----------
    words : array of uint64
        Sum of the clients' vectors.
    plan : StudyPlan
        Its plan.
    groups : tuple of (str, tuple of str)
        Groups of the clients in the sum; with mixtures, every client by itself.
    mixtures : int, default 0
        Number of mixtures of the clients.

    Returns
    -------
    Aggregate
        The sum, with the first moments of each group, or with mixtures of them.

    Raises
    ------
    SummaryError
        If no rows can have given these numbers.
    """
    expected = vector_length(plan, len(groups), mixtures)
    if len(words) != expected:
        raise SummaryError(
            f"the sum has {len(words)} numbers; expected {expected}; check that all clients follow this plan"
        )
    variables, columns = len(plan.names), plan.layout.n_columns
    rows, read = int(words[0]), int(words[1])
    if not 1 <= rows <= MAX_ROWS:
        raise SummaryError(
            f"the sum is of {rows} rows; sums are exact for 1 to {MAX_ROWS}; let clients use a random part of their "
            "rows, or look for a client that sends something else than its summary"
        )
    numbers = words.astype(np.uint64).view(np.int64)
    missing = dict(zip(plan.names, map(int, numbers[2 : 2 + variables]), strict=True))
    end = 2 + variables + columns * (columns + 1) // 2
    moments = from_triangle(numbers[2 + variables : end], columns)
    if int(moments[0, 0]) != rows * GRID**2:
        raise SummaryError(
            f"the sum counts {rows} rows, but its moments count another number; a client sent something else than its "
            "summary: begin the sum again"
        )
    clients = tuple(sorted(client for _, members in groups for client in members))
    total = Summary(
        plan.fingerprint, clients, moments, read, missing, noise=len(clients) * _client_noise_variance(plan)
    )
    validate_summary(total, plan)
    if mixtures:
        signs = select_signs(plan, mixtures, clients)
        return Aggregate.from_total(total, plan, _read_mixtures(numbers[end:], signs, rows))
    return Aggregate(plan, total, numbers[end:].reshape(-1, columns), groups)


def _write_mixtures(mixtures: DomainMixtures) -> Integers:
    """Return the end of a vector with mixtures: the sums, and then the products of every two mixtures."""
    upper = np.triu_indices(len(mixtures.signs), 1)
    return np.concatenate([mixtures.sums.ravel(), mixtures.products[upper]])


def _read_mixtures(numbers: Integers, signs: Integers, rows: int) -> DomainMixtures:
    """Return the mixtures at the end of a vector."""
    pairs = len(signs) * (len(signs) - 1) // 2
    products: Integers = np.diag(np.full(len(signs), rows, dtype=np.int64))
    upper = np.triu_indices(len(signs), 1)
    products[upper] = products.T[upper] = numbers[len(numbers) - pairs :]
    return DomainMixtures(signs, numbers[: len(numbers) - pairs].reshape(len(signs), -1), products)


def to_triangle(moments: Integers) -> Integers:
    """Return the entries from the diagonal on, row by row."""
    return np.concatenate([row[start:] for start, row in enumerate(moments)])


def from_triangle(triangle: Integers, columns: int) -> Integers:
    """Return the matrix of these entries; it is filled row by row, since an index would take more memory."""
    moments = np.empty((columns, columns), dtype=np.int64)
    for row, place in iter_triangle_rows(columns):
        moments[row, row:] = moments[row:, row] = triangle[place]
    return moments


def _client_noise_variance(plan: StudyPlan) -> int:
    """Return σ² of the noise that every client adds."""
    return 0 if plan.noise is None else plan.noise.client_deviation**2


def _to_vector(summary: Summary, plan: StudyPlan, firsts: Integers) -> Words:
    counts = [summary.rows, summary.rows_read, *(int(summary.missing[name]) for name in plan.names)]
    row: Integers = np.concatenate([np.array(counts, dtype=np.int64), to_triangle(summary.moments), firsts.ravel()])
    return row.view(np.uint64)
