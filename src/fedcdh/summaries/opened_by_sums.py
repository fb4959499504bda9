"""Words for the quantities of a single client that a sum over clients opens, and for those that it hides.

Every text that says what masks hide takes its words from here, and `benchmarks/attacks/surrogate.py` tries each of
them: it computes all that is said to be known, and cannot compute what is said to be hidden.
"""

from __future__ import annotations

from collections.abc import Mapping

OPENED: Mapping[str, str] = {
    "rows": "the number of rows",
    "means": "the mean",
    "deviations": "the standard deviation",
    "shapes": "the rough shape of the distribution",
    "counts": "the count of each level",
}
"""What is known of each client, or of each group of clients: the sums of all features, and so of the squares."""

HIDDEN: Mapping[str, str] = {"correlations": "how the variables go together"}
"""What is known of the sum over all clients only."""


def describe_opened() -> str:
    """Return what is known of each client or group.

    >>> describe_opened()[:72]
    'the number of rows, and of every variable the mean, the standard deviati'
    """
    return (
        f"{OPENED['rows']}, and of every variable {OPENED['means']}, {OPENED['deviations']} and {OPENED['shapes']}, "
        f"or {OPENED['counts']}"
    )


def describe_opened_mixtures(mixtures: int, smallest: int) -> str:
    """Return what is known of the clients from a sum with mixtures, of which the smallest sum has this many clients.

    >>> describe_opened_mixtures(2, 4)[:66]
    'of every client the number of rows; sums of features, from which m'
    """
    return (
        f"of every client {OPENED['rows']}; sums of features, from which means and counts follow, of the clients "
        f"together and in {mixtures} mixture{'s' if mixtures > 1 else ''}, from which no sum over fewer than "
        f"{smallest} clients can be computed"
    )


def describe_hidden() -> str:
    """Return what is known of the sum only.

    >>> describe_hidden()
    'how the variables go together'
    """
    return ", ".join(HIDDEN.values())
