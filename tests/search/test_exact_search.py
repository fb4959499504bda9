"""The exact search, against all DAGs there are."""

import random

import pytest
from oracle import random_dag, true_knowledge
from scored_graphs import (
    Recorded,
    all_dags,
    allowed,
    exact_search,
    gaussian_bic,
    noise,
    order_search,
    restrictions,
    total,
)

from fedcdh.graphs.knowledge import NO_KNOWLEDGE
from fedcdh.protocols import DOMAIN
from fedcdh.search.order_search import best_dag

SMALL = [("a",), ("a", "b", "c"), ("a", "b", "c", "d"), (DOMAIN, "a", "b"), (DOMAIN, "a", "b", "c")]


def test_exact_search_finds_the_best_of_all_dags():
    for seed in range(60):
        rng = random.Random(seed)
        nodes = SMALL[seed % len(SMALL)]
        score = noise(seed, rng.choice([0.0, 0.1, 0.3]))
        knowledge = true_knowledge(rng, rng.choice(all_dags(nodes))) if seed % 3 else NO_KNOWLEDGE
        limits = restrictions(rng, nodes)
        found = exact_search(nodes, score, knowledge, **limits)
        best = max(total(dag, score) for dag in all_dags(nodes) if allowed(dag, knowledge, **limits))
        assert found.exact, f"seed {seed}"
        assert found.total == pytest.approx(best, abs=1e-9), f"seed {seed}"
        assert found.total == pytest.approx(total(found.dag, score), abs=1e-9), f"seed {seed}"
        assert allowed(found.dag, knowledge, **limits), f"seed {seed}"


def test_families_are_asked_for_once_and_in_few_batches():
    dag = random_dag(random.Random(0), 8, 3, 0.3)
    score = Recorded(gaussian_bic(dag, 300, 0))
    exact = exact_search(dag.nodes, score)
    assert len(score.batches) == 1
    assert exact.families_scored == len(set(score.families)) == len(score.families) == 8 * 2**8
    score = Recorded(gaussian_bic(dag, 300, 0))
    found = order_search(dag.nodes, score)
    assert found.families_scored == len(set(score.families)) == len(score.families) < exact.families_scored
    assert len(score.batches) < 100


def test_sixteen_variables_with_few_candidates_are_searched_exactly():
    dag = random_dag(random.Random(5), 16, 2)
    score = gaussian_bic(dag, 300, 5)
    found = best_dag(dag.nodes, score, candidates={node: dag.neighbours(node) for node in dag.nodes})
    assert found.exact
    assert found.total >= total(dag, score) - 1e-9
