"""The influence of single clients on the evidence for each edge."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from fedcdh.discovery.stability_run import StabilityRun
from fedcdh.graphs.partial_graph import sort_pair


@dataclass(frozen=True)
class Influence:
    """The change of the evidence for all edges when one client is left out.

    The evidence for an edge is the log Bayes factor of its presence, negative where it is absent; for searches by
    tests it is −ln p. A client with more rows has more influence.

    Attributes
    ----------
    client : str
        The client that is left out.
    share : float
        Its share of all rows.
    largest : float
        The largest change of the evidence for an edge; positive if the client's rows support that edge.
    link : (str, str), optional
        The pair of variables with the largest change; None if there is no evidence to compare.
    total : float
        The sum of the absolute changes over all pairs.
    n_changed : int
        How many edges and mechanisms are found differently without the client.

    Examples
    --------
    >>> from fedcdh import discover, simulate
    >>> stability = discover(simulate(seed=1).columns("site"), domain="site").stability()
    >>> sizes = [abs(one.largest) for one in stability.influence]
    >>> sizes == sorted(sizes, reverse=True)
    True
    """

    client: str
    share: float
    largest: float
    link: tuple[str, str] | None
    total: float
    n_changed: int


def measure_influence(
    whole: StabilityRun, runs: Sequence[StabilityRun], shares: Mapping[str, float], n_changed: Mapping[str, int]
) -> tuple[Influence, ...]:
    """Return the influence of every client that a run leaves out, the largest first."""
    found = _compare_runs(whole, runs, shares, n_changed)
    return tuple(sorted(found, key=lambda one: (-abs(one.largest), one.client)))


def _compare_runs(
    whole: StabilityRun, runs: Sequence[StabilityRun], shares: Mapping[str, float], n_changed: Mapping[str, int]
) -> Iterator[Influence]:
    for run in runs:
        if not run.leaves_one_out:
            continue
        (client,) = run.left_out
        common = whole.weights.keys() & run.weights
        moved = {sort_pair(pair): whole.weights[pair] - run.weights[pair] for pair in common}
        link = max(sorted(moved), key=lambda pair: abs(moved[pair]), default=None)
        yield Influence(
            client,
            shares[client],
            largest=moved[link] if link else 0.0,
            link=link,
            total=math.fsum(map(abs, moved.values())),
            n_changed=n_changed.get(client, 0),
        )
