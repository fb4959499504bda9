"""Weights of families, and the probabilities that follow from them by a sum over all DAGs, one after the other."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from scored_graphs import all_dags

from fedcdh.protocols import DOMAIN, Family

NAMES = ("a", "b", "c", "d", "e")


def all_families(nodes):
    """Return every node but the domain with every set of the others."""
    return [
        Family(node, frozenset(parents))
        for node in nodes
        if node != DOMAIN
        for others in [[one for one in nodes if one != node]]
        for size in range(len(others) + 1)
        for parents in combinations(others, size)
    ]


def random_weights(nodes, seed, scale=1.0, missing=0.0):
    """Return families with log weights at random; the empty parent sets are always there, so there is a DAG."""
    rng = np.random.default_rng(seed)
    families = [one for one in all_families(nodes) if not one.parents or rng.random() >= missing]
    return dict(zip(families, (scale * rng.standard_normal(len(families))).tolist(), strict=True))


def probabilities_by_enumeration(nodes, weights):
    """Return the probability of every arrow: the share of the DAGs that have it."""
    dags = [dag for dag in all_dags(tuple(nodes)) if all(one in weights for one in families_of(dag))]
    logs = np.array([sum(weights[one] for one in families_of(dag)) for dag in dags])
    shares = np.exp(logs - logs.max())
    shares /= shares.sum()
    found = {(tail, head): 0.0 for tail in nodes for head in nodes if tail != head and head != DOMAIN}
    for dag, share in zip(dags, shares.tolist(), strict=True):
        for arrow in dag.arrows:
            found[arrow] += share
    return found


def families_of(dag):
    return [Family(node, dag.parents(node)) for node in sorted(dag.nodes) if node != DOMAIN]
