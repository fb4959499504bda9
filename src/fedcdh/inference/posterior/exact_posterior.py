"""Exact probabilities of arrows under a posterior over all DAGs, by sums over sets of variables.

Every DAG has sinks. The total weight of the DAGs on a set B follows from those on smaller sets by inclusion and
exclusion over the sinks S that are taken away:

    H(B) = Σ_{∅ ≠ S ⊆ B} (−1)^{|S|+1} H(B∖S) Π_{j ∈ S} a_j(B∖S),

where a_j(U) is the sum of the weights of all parent sets of j within U. Each DAG is counted once, so there is no bias
towards DAGs with many orders. The derivatives of log H with respect to the a_j are probabilities; one backward pass
through the same sums gives all of them. Both passes visit 3^d pairs of sets.

Positive terms exceed the result at most 2^d times, so signs cost few digits.

References
----------
Tian and He, "Computing posterior probabilities of structural features in Bayesian networks", UAI 2009.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fedcdh._runtime.array_types import Array, Indices
from fedcdh.inference.posterior.family_table import MIN_LOG_WEIGHT, FamilyTable
from fedcdh.protocols import DOMAIN

MAX_EXACT_VARIABLES = 10
"""Number of variables up to which all DAGs are summed up: with 10 this takes a tenth of a second."""
_MIN_LOG, _MAX_LOG = -745.0, 700.0  # outside, exp gives 0 or infinity


class ArrowProbabilities(NamedTuple):
    """Probabilities of all arrows between variables, and of arrows from the domain.

    Attributes
    ----------
    arrows : array
        (variables, variables): the probability of an arrow from the first to the second.
    changes : array
        (variables,): the probability of an arrow from the domain.

    Examples
    --------
    >>> ArrowProbabilities(np.zeros((2, 2)), np.ones(2)).changes.tolist()
    [1.0, 1.0]
    """

    arrows: Array
    changes: Array


def sum_over_dags(table: FamilyTable) -> ArrowProbabilities:
    """Return the exact probability of every arrow, over all DAGs with families of the table.

    Parameters
    ----------
    table : FamilyTable
        Parent sets with log weights. Sets that are not listed have weight 0.

    Returns
    -------
    ArrowProbabilities
        Probabilities, in the order of the table's variables.

    Examples
    --------
    >>> from fedcdh.protocols import Family
    >>> both = [Family("x"), Family("y"), Family("x", frozenset("y")), Family("y", frozenset("x"))]
    >>> sum_over_dags(FamilyTable.of(both, [0.0, 0.0, 0.0, np.log(2)])).arrows.round(3).tolist()
    [[0.0, 0.5], [0.25, 0.0]]
    """
    size = len(table.variables)
    plain, changed = _weights_by_set(table)
    everything = _sum_over_subsets(np.logaddexp(plain, changed))
    steps = [_Removals.of(everything, taken) for taken in range(1 << size)]
    shares = _removal_shares(steps, _log_totals(steps, size), size)
    return ArrowProbabilities(
        _arrow_probabilities(shares, everything),
        np.asarray((shares * np.exp(np.minimum(_sum_over_subsets(changed) - everything, 0.0))).sum(axis=1)).clip(0, 1),
    )


class _Removals(NamedTuple):
    """All ways to add sinks to a set of variables: the larger sets, their log weights and signs."""

    larger: Indices
    weights: Array
    signs: Array

    @classmethod
    def of(cls, everything: Array, members: int) -> _Removals:
        larger, weights, signs = np.zeros(1, dtype=np.int64), np.zeros(1), -np.ones(1)
        for sink in range(len(everything)):
            if not members >> sink & 1:
                larger = np.concatenate([larger, larger | (1 << sink)])
                weights = np.concatenate([weights, weights + everything[sink, members]])
                signs = np.concatenate([signs, -signs])
        return cls(larger[1:] | members, weights[1:], signs[1:])


def _weights_by_set(table: FamilyTable) -> tuple[Array, Array]:
    """Return the log weights of every set of parents, without and with the domain: (variables, sets)."""
    size = len(table.variables)
    plain, changed = (np.full((size, 1 << size), MIN_LOG_WEIGHT) for _ in range(2))
    for row, name in enumerate(table.variables):
        for parents, weight in zip(table.parent_sets[name], table.weights[name], strict=True):
            place = sum(1 << table.places[parent] for parent in parents if parent != DOMAIN)
            (changed if DOMAIN in parents else plain)[row, place] = weight
    return plain, changed


def _sum_over_subsets(weights: Array) -> Array:
    """Return the log of the sum of weights over all subsets of every set."""
    total, sets = weights.copy(), np.arange(weights.shape[1])
    for bit in range(len(weights)):
        larger = sets[sets >> bit & 1 == 1]
        total[:, larger] = np.logaddexp(total[:, larger], total[:, larger ^ (1 << bit)])
    return total


def _log_totals(steps: list[_Removals], size: int) -> Array:
    """Return log H of every set; sums are taken relative to the best DAG of each set."""
    best = np.full(1 << size, -np.inf)
    best[0] = 0.0
    for members, step in enumerate(steps):
        best[step.larger] = np.maximum(best[step.larger], best[members] + step.weights)
    found, relative = np.zeros(1 << size), np.zeros(1 << size)
    relative[0] = 1.0
    for members, step in enumerate(steps):
        found[members] = best[members] + np.log(max(relative[members], np.finfo(float).tiny))
        terms = found[members] + step.weights - best[step.larger]
        relative[step.larger] += step.signs * np.exp(terms.clip(_MIN_LOG, _MAX_LOG))
    return found


def _removal_shares(steps: list[_Removals], totals: Array, size: int) -> Array:
    """Return how much each a_j(U) contributes to the logarithm of the total: (variables, sets), each row sums to 1."""
    reached = np.zeros(1 << size)
    reached[-1] = 1.0
    shares = np.zeros((size, 1 << size))
    for members in range((1 << size) - 2, -1, -1):
        larger, weights, signs = steps[members]
        logs = (totals[members] + weights - totals[larger]).clip(_MIN_LOG, _MAX_LOG)
        parts = reached[larger] * signs * np.exp(logs)
        reached[members] = parts.sum()
        inside = larger[:, None] >> np.arange(size) & 1 == 1
        shares[:, members] = parts @ (inside & (members >> np.arange(size) & 1 == 0))
    return shares


def _arrow_probabilities(shares: Array, everything: Array) -> Array:
    """Return the probability of an arrow from each variable to each other one."""
    size, sets = len(shares), np.arange(shares.shape[1])
    found = np.zeros((size, size))
    for tail in range(size):
        with_tail = sets[sets >> tail & 1 == 1]
        for head in range(size):
            if head != tail:
                left = np.minimum(everything[head, with_tail ^ (1 << tail)] - everything[head, with_tail], 0.0)
                found[tail, head] = (shares[head, with_tail] * -np.expm1(left)).sum()
    return found.clip(0.0, 1.0)
