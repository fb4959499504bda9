"""Log weights of families for a posterior over graphs that allows for a model that is not quite true.

The evidence counts every row as new and the model as true. On data that follow no model exactly, it is right far less
often than it says. Five remedies are combined:

- **Powers.** Only a share of the evidence counts (a power posterior), while the cost of parameters stays whole:
  otherwise edges that are not there would become likely. The posterior is a mean over several powers.
- **Spread over clients.** With enough clients, the posterior is a mean over draws of clients (`client_deviations`).
  What the clients disagree about stays open.
- **Undirected gains.** Noise and curvature say much about directions, and are wrong together where the model fails. In
  a part of the mean they count for the presence of an edge only: an edge gains as much in either direction, and the
  linear evidence decides.
- **Undirected changes.** With few clients, which mechanisms differ says little about directions. Every family then
  allows for differences, and a change costs or gains as much as with the parents of the best graph.
- **Doubt.** Where a variable shows that the model does not hold for it, it and its neighbours have undirected gains in
  a larger part of the mean. Where many variables have few values, less of the evidence counts for all directions.

Powers and shares were chosen on seeds 100 to 105 of the grid of noise shapes and its special cases
(`benchmarks.bench_probabilities` prints how well they do on others).

References
----------
Grünwald and van Ommen, "Inconsistency of Bayesian inference for misspecified linear models, and a proposal for
repairing it", Bayesian Analysis 12, 2017.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fedcdh._runtime.array_types import Array
from fedcdh.graphs.partial_graph import Pair
from fedcdh.protocols import DOMAIN, Family

Chosen = npt.NDArray[np.bool_]

MIN_DIRECTING_CLIENTS = 5
"""With fewer clients, changes direct nothing."""
CHANGE_COST = 3.0
"""Log cost of a mechanism that differs between clients, besides its prior, where evidence counts in part."""


class Power(NamedTuple):
    """One part of the mean over powers.

    Attributes
    ----------
    share : float
        Its share of the mean.
    power : float
        The share of the evidence that counts.
    directed : {"all", "clear", "none"}
        The variables whose noise and curvature direct: all but those with no density, those without doubts, or none.
    cost : float
        The share of the cost of parameters that replaces evidence that does not count.
    direction : float, optional
        The share of the evidence that counts for directions, where that is less than for the presence of edges.
    """

    share: float
    power: float
    directed: str
    cost: float = 1.0
    direction: float | None = None


RESIDUAL_POWERS = (
    Power(0.15, 1.0, "all"),
    Power(0.4, 1 / 2, "all", 0.5),
    Power(0.3, 1 / 4, "clear", 0.5),
    Power(0.15, 1 / 4, "none", 0.5),
)
"""Powers where residuals are known, and too few clients to measure how much these disagree."""
MEASURED_POWERS = (
    Power(0.7, 1 / 2, "all", 0.5),
    Power(0.2, 1 / 4, "clear", 0.5),
    Power(0.1, 1 / 4, "none", 0.5),
)
"""Powers where residuals are known, and the spread of the evidence over clients too. Chosen on seeds 110 to 115."""
SUMMARY_POWERS = (
    Power(0.1, 1 / 4, "all"),
    Power(0.05, 1 / 16, "all"),
    Power(0.4, 1 / 4, "none"),
    Power(0.45, 1 / 8, "none"),
)
"""Powers where only summaries are known: Gaussian noise is assumed, and curvature directs little."""


CAUTIOUS_POWERS = (
    Power(0.65, 1 / 4, "clear", 0.5, direction=1 / 12),
    Power(0.35, 1 / 4, "none", 0.5, direction=0.0),
)
"""Powers where many variables have few values or are labels among numbers, and where rows depend on each other. They
hold for all variables: powers of their own would turn arrows towards variables whose evidence counts more."""
MIN_INDEPENDENT_SHARE = 0.9
"""Share of rows that count for links below which `CAUTIOUS_POWERS` hold."""
MAX_COARSE_SHARE = 0.3
"""Share of variables with few values, or of labels among numbers, above which `CAUTIOUS_POWERS` hold."""


@dataclass(frozen=True, eq=False)
class ScoredFamilies:
    """Families with the parts of their scores.

    Attributes
    ----------
    families : tuple of Family
        The families.
    prior : array
        Log prior of each.
    linear : array
        Log score with linear mechanisms and Gaussian noise, with the prior.
    full : array
        Log score with all that is known about curvature and noise, with the prior.
    cost : array
        Log cost of the parameters of the parents, about half the log of the rows for each.

    Examples
    --------
    >>> one = np.zeros(1)
    >>> ScoredFamilies((Family("x"),), one, one, one, one).weigh(Power(1.0, 0.5, "all"), {}, {}).tolist()
    [0.0]
    """

    families: tuple[Family, ...]
    prior: Array
    linear: Array
    full: Array
    cost: Array

    def weigh(
        self,
        part: Power,
        gains: Mapping[Pair, float],
        factors: Mapping[Pair, float],
        undirected: frozenset[str] = frozenset(),
        doubtful: frozenset[str] = frozenset(),
    ) -> Array:
        """Return the log weight of each family in one part of the mean.

        Parameters
        ----------
        part : Power
            The part.
        gains : mapping from pair to float
            What noise and curvature add to the presence of edges, see `undirected_gains`.
        factors : mapping from pair to float
            Log Bayes factors of edges against no edge, with the prior, for parts in which directions count less.
        undirected : frozenset of str
            Variables whose noise and curvature never direct.
        doubtful : frozenset of str
            Variables whose noise and curvature direct in a part of the mean only.

        Returns
        -------
        array
            Log weights.
        """
        evidence = self._count_evidence(part, gains, undirected, doubtful)
        base = self.prior + (1 - part.power) * part.cost * self.cost
        if part.direction is None:
            return np.asarray(base + part.power * evidence)
        presence = self._sum_over_pairs(factors) - self.prior
        presence = np.where(np.isfinite(presence), presence, evidence)
        return np.asarray(base + part.power * presence + part.direction * (evidence - presence))

    def _count_evidence(
        self, part: Power, gains: Mapping[Pair, float], undirected: frozenset[str], doubtful: frozenset[str]
    ) -> Array:
        """Return the evidence of each family, without its prior; some or all nodes have undirected gains."""
        neutral = self.linear - self.prior + self._sum_over_pairs(gains, 0.0)
        return np.where(self._have_neutral_evidence(part, undirected, doubtful), neutral, self.full - self.prior)

    def choose_deviations(
        self,
        part: Power,
        linear: Array,
        full: Array,
        undirected: frozenset[str] = frozenset(),
        doubtful: frozenset[str] = frozenset(),
    ) -> Array:
        """Return how much the log weight of each family changes by client, in one part of the mean.

        Parameters
        ----------
        part : Power
            The part.
        linear, full : array
            (families, clients): deviations of the log likelihood, see `client_deviations`.
        undirected : frozenset of str
            Variables whose noise and curvature never direct.
        doubtful : frozenset of str
            Variables whose noise and curvature direct in a part of the mean only.

        Returns
        -------
        array
            (families, clients).
        """
        share = part.power if part.direction is None else part.direction
        return share * np.where(self._have_neutral_evidence(part, undirected, doubtful)[:, None], linear, full)

    def _have_neutral_evidence(self, part: Power, undirected: frozenset[str], doubtful: frozenset[str]) -> Chosen:
        """Return for each family whether its noise and curvature do not direct."""
        if part.directed == "none":
            return np.full(len(self.families), True)
        left_out = undirected | doubtful if part.directed == "clear" else undirected
        return np.array([family.node in left_out for family in self.families])

    def neutralize_changes(self, weights: Array, parents: Mapping[str, frozenset[str]]) -> Array:
        """Return log weights in which a change gains or costs as much with any parents of a node.

        Parameters
        ----------
        weights : array
            Log weights.
        parents : mapping from str to frozenset of str
            The parents of every variable in the best graph; the domain may be among them.

        Returns
        -------
        array
            Log weights. All families of a node allow for differences between clients; those without the domain have
            the weight of that with it, less the gain by a change with the parents of the best graph.
        """
        known = dict(zip(self.families, weights.tolist(), strict=True))
        gains = {}
        for node, several in parents.items():
            same, differs = Family(node, several - {DOMAIN}), Family(node, several | {DOMAIN})
            if same in known and differs in known:
                gains[node] = known[differs] - known[same]
        return np.array(
            [
                known[Family(one.node, one.parents | {DOMAIN})] - gains[one.node]
                if DOMAIN not in one.parents and one.node in gains and Family(one.node, one.parents | {DOMAIN}) in known
                else known[one]
                for one in self.families
            ]
        )

    def _sum_over_pairs(self, values: Mapping[Pair, float], otherwise: float = np.nan) -> Array:
        """Return for each family the sum over the pairs of its node and a parent, whose order does not matter."""
        return np.array(
            [
                fsum(values.get(frozenset((family.node, one)), otherwise) for one in family.parents)
                for family in self.families
            ]
        )


def parameter_costs(families: Sequence[Family], rows: float, levels: Mapping[str, int]) -> Array:
    """Return the log cost of the parents' parameters: half the log of the rows for each.

    Parameters
    ----------
    families : sequence of Family
        Nodes with their parents.
    rows : float
        Number of rows.
    levels : mapping from str to int
        Number of levels of each categorical variable.

    Returns
    -------
    array
        Costs, 0 or negative.

    Examples
    --------
    >>> parameter_costs([Family("x", frozenset("y"))], np.exp(2), {}).tolist()
    [-1.0]
    """

    def freedom(name: str) -> int:
        return max(1, levels.get(name, 2) - 1)

    def count(family: Family) -> int:
        return freedom(family.node) * sum(freedom(name) for name in family.parents if name != DOMAIN)

    each = np.log(max(rows, 1.0)) / 2
    return np.array([0.0 - each * count(one) - CHANGE_COST * (DOMAIN in one.parents) for one in families])


def undirected_gains(scored: ScoredFamilies, arrows: Sequence[tuple[str, str]]) -> dict[Pair, float]:
    """Return what noise and curvature add to the presence of each edge of a DAG: the larger gain of its directions.

    Parameters
    ----------
    scored : ScoredFamilies
        Families with their scores.
    arrows : sequence of (str, str)
        The arrows of the DAG.

    Returns
    -------
    dict from pair to float
        Gains of at least 0; arrows of the domain have none.
    """
    beyond = dict(zip(scored.families, (scored.full - scored.linear).tolist(), strict=True))
    parents: dict[str, set[str]] = {}
    for tail, head in arrows:
        parents.setdefault(head, set()).add(tail)

    def gain(tail: str, head: str) -> float:
        others = parents.get(head, set()) - {tail}
        with_tail, without = Family(head, frozenset(others | {tail})), Family(head, frozenset(others))
        return beyond[with_tail] - beyond[without] if with_tail in beyond and without in beyond else 0.0

    return {
        frozenset((tail, head)): max(0.0, gain(tail, head), gain(head, tail)) for tail, head in arrows if tail != DOMAIN
    }


def add_changed_families(
    families: Sequence[Family], known: Mapping[Family, float], curved: Array
) -> dict[Family, float]:
    """Return known scores, also of families that differ from a known one by the domain only.

    Both have nearly the same noise, so both gain as much by its shape. Families with and without a change can then be
    compared, whichever of them the clients were asked about.

    Parameters
    ----------
    families : sequence of Family
        Nodes with their parents.
    known : mapping from Family to float
        Scores of the families that were asked about.
    curved : array
        Gaussian scores of all families.

    Returns
    -------
    dict from Family to float
        Known scores, and those that follow from them.

    Examples
    --------
    >>> both = [Family("x"), Family("x", frozenset({DOMAIN}))]
    >>> [*add_changed_families(both, {both[0]: 5.0}, np.array([1.0, -2.0])).values()]
    [5.0, 2.0]
    """
    gaussian, found = dict(zip(families, curved.tolist(), strict=True)), dict(known)
    for family in families:
        other = Family(family.node, family.parents ^ {DOMAIN})
        if family not in known and other in known and other in gaussian:
            found[family] = known[other] + gaussian[family] - gaussian[other]
    return found


def complete_scores(families: Sequence[Family], known: Mapping[Family, float], linear: Array, curved: Array) -> Array:
    """Return the scores of all families, given those about which the clients were asked.

    A search asks about all families that may be better than those it knows. The others are given no benefit: the lower
    of their Gaussian scores, and the smallest gain by the noise that a family of the same node has.

    Parameters
    ----------
    families : sequence of Family
        Nodes with their parents.
    known : mapping from Family to float
        Scores of the families that were asked about.
    linear, curved : array
        Gaussian scores of all families, with linear and with nonlinear mechanisms.

    Returns
    -------
    array
        Scores.

    Examples
    --------
    >>> both = [Family("x"), Family("x", frozenset("y"))]
    >>> complete_scores(both, {both[0]: 5.0}, np.array([1.0, 2.0]), np.array([1.0, 3.0])).tolist()
    [5.0, 6.0]
    """
    gains: dict[str, float] = {}
    for family, score in zip(families, curved.tolist(), strict=True):
        if family in known:
            gains[family.node] = min(known[family] - score, gains.get(family.node, np.inf))
    return np.array(
        [
            known[family] if family in known else min(low, high) + gains.get(family.node, 0.0)
            for family, low, high in zip(families, linear.tolist(), curved.tolist(), strict=True)
        ]
    )
