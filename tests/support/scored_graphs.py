"""Scores of DAGs whose best is known, and the searches to compare: exact, and over orders."""

from __future__ import annotations

import hashlib
import math
import random
from functools import cache
from itertools import combinations, permutations, product

import numpy as np
from oracle import obeys, random_dag, topological_order

from fedcdh.graphs.knowledge import NO_KNOWLEDGE
from fedcdh.graphs.partial_graph import PartialGraph
from fedcdh.protocols import DOMAIN, Family
from fedcdh.search.order_search import SearchEffort, best_dag


def exact_search(nodes, score, knowledge=NO_KNOWLEDGE, **options):
    """Find the best DAG exactly, whatever the size of the problem."""
    return best_dag(nodes, score, knowledge, effort=SearchEffort(exact_up_to=40), **options)


def order_search(nodes, score, knowledge=NO_KNOWLEDGE, restarts=None, **options):
    """Find a DAG by the search over orders, whatever the size of the problem."""
    return best_dag(nodes, score, knowledge, effort=SearchEffort(exact_up_to=0, restarts=restarts), **options)


class Recorded:
    """A score that keeps the batches it was asked about."""

    def __init__(self, score):
        self.score, self.batches = score, []

    def __call__(self, families):
        self.batches.append(list(families))
        return self.score(families)

    @property
    def families(self):
        return [family for batch in self.batches for family in batch]


def noise(seed, penalty=0.3):
    """Scores at random, with no sense in them but a price for every parent; the same family gets the same score."""

    def one(family):
        digest = hashlib.sha256(f"{seed} {family.node} {sorted(family.parents)}".encode()).digest()
        return int.from_bytes(digest[:7]) / 2**56 - penalty * len(family.parents)

    return lambda families: [one(family) for family in families]


def gaussian_bic(dag, rows, seed, clients=3):
    """The BIC of linear regressions on rows drawn from the DAG; the domain shifts means and enters as indicators."""
    rng = np.random.default_rng(seed)
    client = rng.integers(clients, size=rows)
    columns = {DOMAIN: np.eye(clients)[client][:, 1:]}
    for node in topological_order(dag):
        if node != DOMAIN:
            noise = rng.normal(scale=rng.uniform(0.5, 1.5), size=rows)
            causes = [
                rng.normal(size=clients)[client]
                if parent == DOMAIN
                else columns[parent][:, 0] * rng.uniform(0.3, 1.2) * rng.choice([-1, 1])
                for parent in sorted(dag.parents(node))
            ]
            columns[node] = (noise + sum(causes))[:, None]
    centred = {node: values - values.mean(axis=0) for node, values in columns.items()}

    @cache
    def one(family):
        y, x = centred[family.node], np.hstack([np.zeros((rows, 0)), *(centred[p] for p in sorted(family.parents))])
        gram, moments = x.T @ x, x.T @ y
        left = float((y.T @ y - moments.T @ np.linalg.solve(gram, moments))[0, 0])
        return -0.5 * rows * math.log(left / rows) - 0.5 * math.log(rows) * x.shape[1]

    return lambda families: [one(family) for family in families]


def total(dag, score):
    return sum(score([Family(node, dag.parents(node)) for node in sorted(dag.nodes) if node != DOMAIN]))


def restrictions(rng, nodes):
    """Candidates and a limit, each at times."""
    variables = [node for node in nodes if node != DOMAIN]
    named = {node: frozenset(v for v in variables if v != node and rng.random() < 0.6) for node in variables}
    return {"candidates": rng.choice([None, named]), "max_parents": rng.choice([None, 1, 2])}


def allowed(dag, knowledge, candidates=None, max_parents=None):
    required = {node: {tail for tail in dag.nodes if knowledge.requires(tail, node)} for node in dag.nodes}
    within = all(
        candidates is None or dag.parents(node) <= candidates[node] | required[node] | {DOMAIN}
        for node in dag.nodes
        if node != DOMAIN
    )
    few = all(
        max_parents is None
        or len(dag.parents(node) - {DOMAIN}) <= max_parents
        or dag.parents(node) - {DOMAIN} == required[node] - {DOMAIN}
        for node in dag.nodes
    )
    return obeys(dag, knowledge) and within and few


@cache
def all_dags(nodes):
    """Every DAG on these nodes: for every order every choice of arrows along it."""
    variables = [node for node in nodes if node != DOMAIN]
    roots = [node for node in nodes if node == DOMAIN]
    arrows = {
        frozenset(arrow for arrow, taken in zip(pairs, choice, strict=True) if taken)
        for order in permutations(variables)
        for pairs in [list(combinations([*roots, *order], 2))]
        for choice in product((False, True), repeat=len(pairs))
    }
    return [PartialGraph.from_dag(nodes, chosen) for chosen in arrows]


def gaussian_problem(seed, most=7):
    rng = random.Random(seed)
    dag = random_dag(rng, rng.randint(2, most), rng.uniform(1, 5), rng.choice([0, 0.3]))
    return rng, dag, gaussian_bic(dag, rng.choice([50, 100, 200, 500]), seed)
