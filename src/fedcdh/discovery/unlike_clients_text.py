"""Sentences on clients whose columns look swapped, or whose tails are longer than elsewhere."""

from __future__ import annotations

from collections.abc import Iterator

from fedcdh.inference.heterogeneity.unlike_clients import LongTails, find_long_tails, find_swapped_columns
from fedcdh.summaries.aggregation import Aggregate, Cohort


def describe_unlike_clients(known: Cohort | Aggregate) -> tuple[str, ...]:
    """Return what to ask of single clients before a graph is believed; nothing where only sums are known."""
    if isinstance(known, Aggregate):
        return ()
    return (*_describe_swaps(known), *_describe_tails(find_long_tails(known)))


def _describe_swaps(cohort: Cohort) -> Iterator[str]:
    for one in find_swapped_columns(cohort):
        yield (
            f"client {one.client}: columns {one.columns[0]} and {one.columns[1]} fit the other clients better if they "
            f"are swapped (log likelihood ratio {one.log_ratio:.0f}); ask the client whether they are mixed up"
        )


def _describe_tails(found: tuple[LongTails, ...]) -> Iterator[str]:
    for client in dict.fromkeys(one.client for one in found):
        own = [one for one in found if one.client == client]
        shown = ", ".join(
            f"{one.variable} {one.kurtosis:.0f}, elsewhere up to {one.largest_elsewhere:.1f}" for one in own
        )
        yield (
            f"client {client} has far longer tails than the others (kurtosis of {shown}): a few rows may decide what "
            "depends on what there; ask the client about its extreme values"
        )
