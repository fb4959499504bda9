"""The limit up to which every client is left out once without being asked for, since it takes a few seconds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fedcdh.summaries.aggregation import Cohort

if TYPE_CHECKING:
    from fedcdh.discovery.result import Discovery

MAX_WORK = 1 << 11
"""Largest number of clients times 2 to the number of variables: 8 clients and 8 variables take about four seconds."""
_MIN_CLIENTS = 3


def is_quick(result: Discovery) -> bool:
    """Return whether every client can be left out once within a few seconds.

    Parameters
    ----------
    result : Discovery
        The result.

    Returns
    -------
    bool
        False also where clients cannot be left out.
    """
    clients, variables = len(result.cohort.clients), len(result.cohort.plan.names)
    if result.posterior is None or not isinstance(result.cohort, Cohort) or clients < _MIN_CLIENTS:
        return False
    return result.settings.rounds != "adaptive" and clients * 2**variables <= MAX_WORK
