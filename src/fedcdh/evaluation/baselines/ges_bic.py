"""GES with the Gaussian BIC on all rows in one place.

The search is that of Chickering (2002), "Optimal structure identification with greedy search". It is a central
reference: every client sends its rows. With `means="common"` the rows are put together, so that differences between
the means of clients count as correlations. With `means="own"` every client's means are removed. The search has
insertions and deletions, and no turns, as in the publication.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from fedcdh._runtime.array_types import Array
from fedcdh.evaluation.baselines.gaussian_bic import GaussianBic, GaussianMoments, pool_moments, pool_within_clients
from fedcdh.evaluation.baselines.interface import BaselineResult, CountingChannel
from fedcdh.search.greedy_equivalence_search import find_equivalence_class


def run_ges_bic(
    tables: Mapping[str, Array], names: Sequence[str], seed: int = 0, *, means: Literal["common", "own"] = "common"
) -> BaselineResult:
    """Run GES on the rows of all clients; nothing is random.

    >>> import numpy as np
    >>> x, y, e = np.random.default_rng(1).standard_normal((3, 200))
    >>> table = np.column_stack([x, y, x + y + e])
    >>> print(run_ges_bic({"north": table[:90], "south": table[90:]}, ("x", "y", "z")).graph)
    x → z
    y → z
    """
    channel = CountingChannel(len(tables))
    received = [GaussianMoments.of(channel.to_server(table)) for table in tables.values()]
    pooled = pool_moments(received) if means == "common" else pool_within_clients(received)
    found = find_equivalence_class(names, GaussianBic(pooled, names))
    return BaselineResult(found.cpdag, channel.traffic)
