"""Hill climbing that leaves plateaus by restarts within an equivalence class."""

from __future__ import annotations

import numpy as np
from label_studies import random_labels
from scored_graphs import all_dags

from fedcdh.evaluation.baselines.gaussian_bic import GaussianBic
from fedcdh.evaluation.baselines.interface import CountingChannel
from fedcdh.evaluation.baselines.label_counts import agree_on_levels
from fedcdh.evaluation.baselines.label_scores import BdeuScore
from fedcdh.evaluation.baselines.restarted_climb import climb_with_restarts, draw_class_member, round_scores
from fedcdh.evaluation.simulation import simulate
from fedcdh.graphs.equivalence import to_cpdag
from fedcdh.graphs.partial_graph import PartialGraph
from fedcdh.protocols import Family

NAMES = tuple("wxyz")
ALL_PAIRS = PartialGraph.complete(NAMES).lines


def make_score(seed):
    tables = {client: table[:, :4] for client, table in random_labels(seed, clients=1, rows=300).items()}
    study = agree_on_levels(tables, CountingChannel(1))
    return BdeuScore(study.clients[0].count, NAMES, study.levels)


def total(score, dag):
    return sum(score([Family(node, dag.parents(node)) for node in NAMES]))


def test_restarts_never_lose_and_sometimes_gain():
    gains = []
    for seed in range(8):
        score = make_score(seed)
        plain, restarted = (climb_with_restarts(NAMES, score, ALL_PAIRS, 0, restarts=number) for number in (0, 10))
        gains.append(total(score, restarted) - total(score, plain))
    assert min(gains) > -1e-4
    assert max(gains) > 1


def test_linear_models_have_the_best_dag_of_all():
    """No two causes of a linear model act together only, so that a greedy search need not miss them."""
    for seed in range(8):
        study = simulate(variables=4, clients=1, rows=300, changing=0, seed=seed)
        score = GaussianBic.of_table(study.tables["client01"], NAMES)
        best = max(total(score, dag) for dag in all_dags(NAMES))
        assert total(score, climb_with_restarts(NAMES, score, ALL_PAIRS, 0)) > best - 1e-4, f"seed {seed}"


def test_edges_are_among_the_pairs_and_parents_within_the_limit():
    for seed in range(5):
        score = make_score(seed)
        pairs = sorted(ALL_PAIRS, key=sorted)[seed % 3 :: 2]
        assert climb_with_restarts(NAMES, score, pairs, 0).skeleton <= {*pairs}
        found = climb_with_restarts(NAMES, score, ALL_PAIRS, 0, max_parents=1)
        assert max(len(found.parents(node)) for node in NAMES) <= 1


def test_members_of_a_class_have_its_class_and_differ():
    chain = PartialGraph.from_dag(NAMES, [("w", "x"), ("x", "y"), ("y", "z")])
    drawn = [draw_class_member(chain, np.random.default_rng(seed)) for seed in range(20)]
    assert all(dag.is_dag() and to_cpdag(dag) == to_cpdag(chain) for dag in drawn)
    assert len(set(drawn)) > 1
    fixed = PartialGraph.from_dag(NAMES, [("w", "y"), ("x", "y"), ("y", "z")])
    assert draw_class_member(fixed, np.random.default_rng(0)) == fixed


def test_rounding_keeps_what_is_not_available():
    rounded = round_scores(lambda families: [0.1, float("-inf")])([Family("x"), Family("y")])
    assert abs(rounded[0] - 0.1) < 1e-6
    assert rounded[0] * 2**20 == round(rounded[0] * 2**20)
    assert rounded[1] == float("-inf")
