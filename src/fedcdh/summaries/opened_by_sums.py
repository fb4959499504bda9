"""Words for the quantities of a single client that a sum over clients opens, and for those that it hides.

Every text that says what masks hide takes its words from here, and `benchmarks/attacks/surrogate.py` tries each of
them: it computes all that is said to be known, and cannot compute what is said to be hidden.
"""

from __future__ import annotations

from collections.abc import Mapping

from fedcdh.summaries.domain_mixtures import find_smallest_row_sum, find_smallest_sum
from fedcdh.summaries.summary import Integers

OPENED: Mapping[str, str] = {
    "rows": "the number of rows",
    "means": "the mean",
    "deviations": "the standard deviation",
    "shapes": "the rough shape of the distribution",
    "counts": "the count of each level",
}
"""Sums of all features, and so of the squares, which are known of each client or group of clients."""

HIDDEN: Mapping[str, str] = {"correlations": "how the variables go together"}
"""Content that is known of the sum over all clients only."""


def describe_opened() -> str:
    """Return what is known of each client or group.

    >>> describe_opened()[:72]
    'the number of rows, and of every variable the mean, the standard deviati'
    """
    return (
        f"{OPENED['rows']}, and of every variable {OPENED['means']}, {OPENED['deviations']} and {OPENED['shapes']}, "
        f"or {OPENED['counts']}"
    )


def describe_opened_mixtures(signs: Integers) -> str:
    """Return what is known of the clients from a sum with mixtures that have these signs.

    >>> import numpy as np
    >>> describe_opened_mixtures(np.array([[1, 1, 1, -1, -1, -1]]))[:56]
    '1 mixture of the clients, from which means and counts of'
    """
    mixtures, rows = len(signs), find_smallest_row_sum(signs)
    counted = f"{rows} clients together" if rows > 1 else "single clients"
    return (
        f"{mixtures} mixture{'s' if mixtures > 1 else ''} of the clients, from which means and counts of no fewer than "
        f"{find_smallest_sum(signs)} clients together can be computed, and {OPENED['rows']} of {counted} at the least"
    )


def describe_hidden() -> str:
    """Return what is known of the sum only.

    >>> describe_hidden()
    'how the variables go together'
    """
    return ", ".join(HIDDEN.values())
