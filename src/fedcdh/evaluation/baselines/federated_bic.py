"""Federated BIC: the Gaussian BIC of all clients together, from one message each.

No publication is needed for these: they are what a reader tries first. Every client sends its number of rows, its means
and its centred second moments. The server then scores families in one of three ways:

- "pooled": common weights; the scatter within clients is added up, so that every client keeps its own means.
- "sum": weights, intercepts and variances of their own; the BICs of all clients are added up.
- "context": client indicators may be parents. A family without the domain has one regression for all rows, and
  common means; a family with the domain has one regression per client. The domain is a parent of a variable if and only
  if the second score is higher, which is CD-NOD (Huang et al. 2020) in the form of a score. Both count
  all parameters of a regression: the weights, the intercept and the variance.

The search is exact up to ten variables, and over orders beyond (`best_dag`). The result is the equivalence class.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import numpy as np

from fedcdh._runtime.array_types import Array
from fedcdh.errors import SettingsError
from fedcdh.evaluation.baselines.gaussian_bic import GaussianBic, GaussianMoments, pool_moments, pool_within_clients
from fedcdh.evaluation.baselines.interface import BaselineResult, CountingChannel
from fedcdh.graphs.equivalence import to_cpdag
from fedcdh.protocols import DOMAIN, Family, LocalScore
from fedcdh.search.order_search import best_dag

BicScoring = Literal["pooled", "sum", "context"]


def run_federated_bic(
    tables: Mapping[str, Array], names: Sequence[str], seed: int = 0, *, scoring: BicScoring = "pooled"
) -> BaselineResult:
    """Find the class with the highest Gaussian BIC; `seed` draws the starts of a search over orders.

    >>> x, y, e = np.random.default_rng(1).standard_normal((3, 200))
    >>> table = np.column_stack([x, y, x + y + e])
    >>> print(run_federated_bic({"north": table[:90], "south": table[90:]}, ("x", "y", "z")).graph)
    x → z
    y → z
    """
    if scoring not in _SCORINGS:
        raise SettingsError(
            f"found scoring {scoring!r}; expected one of {', '.join(_SCORINGS)}; choose one of these",
            parameter="scoring",
        )
    channel = CountingChannel(len(tables))
    clients = [
        GaussianMoments.from_message(channel.to_server(GaussianMoments.of(table).to_message()), len(names))
        for table in tables.values()
    ]
    nodes = (*names, DOMAIN) if scoring == "context" else tuple(names)
    found = best_dag(nodes, _SCORINGS[scoring](clients, names), seed=seed)
    return BaselineResult(to_cpdag(found.dag), channel.traffic)


class SumScore:
    """The sum of several scores; each family is added in the order of size, so that clients have no order."""

    def __init__(self, scores: Sequence[LocalScore]) -> None:
        self._scores = scores

    def __call__(self, families: Sequence[Family], /) -> list[float]:
        """Return one score per family, in order."""
        values = np.array([score(families) for score in self._scores])
        total: list[float] = np.sort(values, axis=0).sum(axis=0).tolist()
        return total


class ContextScore:
    """One score for families without the domain, another for families with it."""

    def __init__(self, common: LocalScore, separate: LocalScore) -> None:
        self._common, self._separate = common, separate

    def __call__(self, families: Sequence[Family], /) -> list[float]:
        """Return one score per family, in order."""
        inner = [Family(family.node, family.parents - {DOMAIN}) for family in families]
        together, apart = self._common(inner), self._separate(inner)
        return [
            of_clients if DOMAIN in family.parents else of_all
            for family, of_all, of_clients in zip(families, together, apart, strict=True)
        ]


def _score_pooled(clients: Sequence[GaussianMoments], names: Sequence[str]) -> LocalScore:
    return GaussianBic(pool_within_clients(clients), names)


def _score_sum(clients: Sequence[GaussianMoments], names: Sequence[str]) -> LocalScore:
    return SumScore([GaussianBic(client, names) for client in clients])


def _score_context(clients: Sequence[GaussianMoments], names: Sequence[str]) -> LocalScore:
    separate = SumScore([GaussianBic(client, names, other_parameters=2) for client in clients])
    return ContextScore(GaussianBic(pool_moments(clients), names, other_parameters=2), separate)


_SCORINGS: Mapping[str, Callable[[Sequence[GaussianMoments], Sequence[str]], LocalScore]] = {
    "pooled": _score_pooled,
    "sum": _score_sum,
    "context": _score_context,
}
