"""The search over DAGs by score: the exact one against all DAGs there are, the order search against the exact one."""

import hashlib
import math
import os
import random
import subprocess
import sys
from dataclasses import replace
from functools import cache
from itertools import combinations, permutations, product
from pathlib import Path

import numpy as np
import pytest
import studies
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import obeys, random_dag, shuffled, topological_order, true_knowledge

import fedcdh.search.order_search
from fedcdh.discovery.api import discover_from
from fedcdh.errors import GraphError, InvalidAnswerError, KnowledgeError
from fedcdh.graphs.knowledge import NO_KNOWLEDGE, Knowledge
from fedcdh.graphs.partial_graph import PartialGraph
from fedcdh.protocols import DOMAIN, Family
from fedcdh.search.exact_search import exact_search
from fedcdh.search.order_search import best_dag, order_search
from fedcdh.search.parent_sets import ParentSpace, ScoreCache
from fedcdh.summaries.aggregation import Aggregate, add_up


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


SMALL = [("a",), ("a", "b", "c"), ("a", "b", "c", "d"), (DOMAIN, "a", "b"), (DOMAIN, "a", "b", "c")]


@pytest.mark.parametrize("seed", range(60))
def test_exact_search_finds_the_best_of_all_dags(seed):
    rng = random.Random(seed)
    nodes = SMALL[seed % len(SMALL)]
    score = noise(seed, rng.choice([0.0, 0.1, 0.3]))
    knowledge = true_knowledge(rng, rng.choice(all_dags(nodes))) if seed % 3 else NO_KNOWLEDGE
    limits = restrictions(rng, nodes)
    found = exact_search(nodes, score, knowledge, **limits)
    best = max(total(dag, score) for dag in all_dags(nodes) if allowed(dag, knowledge, **limits))
    assert found.exact
    assert found.total == pytest.approx(best, abs=1e-9)
    assert found.total == pytest.approx(total(found.dag, score), abs=1e-9)
    assert allowed(found.dag, knowledge, **limits)


def gaussian_problem(seed, most=7):
    rng = random.Random(seed)
    dag = random_dag(rng, rng.randint(2, most), rng.uniform(1, 5), rng.choice([0, 0.3]))
    return rng, dag, gaussian_bic(dag, rng.choice([50, 100, 200, 500]), seed)


@pytest.mark.parametrize("seed", range(30))
def test_a_variable_moves_to_the_best_of_all_places(seed):
    rng = random.Random(seed)
    dag = random_dag(rng, 8, 2, 0.3 * (seed % 2))
    knowledge = true_knowledge(rng, dag) if seed % 3 == 2 else NO_KNOWLEDGE
    space = ParentSpace.of(dag.nodes, knowledge, **restrictions(rng, dag.nodes))
    scores = ScoreCache(space, noise(seed, 0.2))
    search = fedcdh.search.order_search._OrderSearch(space, scores)
    order = fedcdh.search.order_search._topological_order(
        space.required, rng.sample(space.variables, len(space.variables))
    )

    def total_of(order):
        return scores.answer(search._outcome(order)).total

    for variable in space.variables:
        others = [other for other in order if other != variable]
        places = [(*others[:place], variable, *others[place:]) for place in search._places(others, variable)]
        assert order in places
        moved = scores.answer(search._best_move(order, variable))
        assert total_of(moved) == pytest.approx(max(map(total_of, places)), abs=1e-9)
        assert moved == order or total_of(moved) > total_of(order)
        order = moved


@pytest.mark.parametrize("seed", range(200))
def test_order_search_agrees_with_exact_search(seed):
    rng, dag, score = gaussian_problem(seed)
    knowledge = true_knowledge(rng, dag) if seed % 4 == 3 else NO_KNOWLEDGE
    limits = restrictions(rng, dag.nodes) if seed % 4 >= 2 else {}
    exact = exact_search(dag.nodes, score, knowledge, **limits)
    found = order_search(dag.nodes, score, knowledge, **limits)
    assert found.total == pytest.approx(exact.total, abs=1e-9)
    assert found.total == pytest.approx(total(found.dag, score), abs=1e-9)
    assert allowed(found.dag, knowledge, **limits)
    assert exact.exact
    assert not found.exact


def test_growing_and_shrinking_alone_comes_close(monkeypatch):
    monkeypatch.setattr(fedcdh.search.order_search, "FEW", -1)
    gaps = []
    for seed in range(100):
        _, dag, score = gaussian_problem(seed)
        gaps.append(exact_search(dag.nodes, score).total - order_search(dag.nodes, score).total)
    assert min(gaps) > -1e-9
    assert max(gaps) < 3
    assert sum(gap > 1e-9 for gap in gaps) <= 5


@pytest.mark.parametrize("seed", range(40))
def test_knowledge_is_obeyed_whatever_the_scores(seed):
    rng = random.Random(seed)
    dag = random_dag(rng, 11, 3, rng.choice([0, 0.4]))
    knowledge, score = true_knowledge(rng, dag), Recorded(noise(seed, 0.05))
    limits = restrictions(rng, dag.nodes)
    found = order_search(dag.nodes, score, knowledge, **limits)
    assert allowed(found.dag, knowledge, **limits)
    for family in score.families:
        assert family.node != DOMAIN
        assert family.node not in family.parents
        assert not any(knowledge.forbids(parent, family.node) for parent in family.parents)
        assert all(tail in family.parents for tail in dag.nodes if knowledge.requires(tail, family.node))


@pytest.mark.parametrize("search", [exact_search, order_search])
@pytest.mark.parametrize("seed", range(10))
def test_the_order_of_nodes_does_not_matter(seed, search):
    rng, dag, score = gaussian_problem(seed, 9)
    knowledge = true_knowledge(rng, dag)
    first, second = Recorded(score), Recorded(score)
    assert search(dag.nodes, first, knowledge) == search(shuffled(dag, rng), second, knowledge)
    assert first.batches == second.batches


def test_the_hash_seed_does_not_matter():
    code = (
        "from test_order_search import *\n"
        "dag = random_dag(random.Random(1), 12, 3, 0.3)\n"
        "score = Recorded(gaussian_bic(dag, 200, 1))\n"
        "found = order_search(dag.nodes, score)\n"
        "asked = [[(f.node, sorted(f.parents)) for f in batch] for batch in score.batches]\n"
        "print(found.dag, found.total, hashlib.sha256(str(asked).encode()).hexdigest())"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={
                **os.environ,
                "PYTHONHASHSEED": seed,
                "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path]),
            },
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(printed) == 1


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


def test_equal_scores_give_the_fewest_arrows():
    def indifferent(families):
        return [0.0 for _ in families]

    for search in (exact_search, order_search):
        assert search([DOMAIN, *"abcdefghij"], indifferent).dag == PartialGraph((DOMAIN, *"abcdefghij"))


def test_progress_counts_what_is_scored():
    seen = []
    found = order_search([DOMAIN, *"abcdefghijk"], noise(0), progress=lambda *counts: seen.append(counts))
    assert seen[0][0] == 0
    assert [done + new for done, new in seen] == [*(done for done, _ in seen[1:]), found.families_scored]


# Which search


def test_the_search_is_exact_where_that_is_affordable():
    assert best_dag("abcd", noise(0)).exact
    assert not best_dag("abcd", noise(0), exact_up_to=3).exact
    assert best_dag("abcd", noise(0), exact_up_to=3, max_parents=1).exact
    many = [f"v{position:02}" for position in range(12)]
    assert not best_dag(many, noise(0, 1.0)).exact
    assert best_dag(many, noise(0, 1.0), max_parents=2).exact
    assert not best_dag([*many, *"abcdef"], noise(0, 1.0), max_parents=0).exact


def test_what_is_said_about_an_absent_domain_is_idle():
    knowledge = Knowledge(required=[(DOMAIN, "a"), ("b", "a")], forbidden=[(DOMAIN, "b")])
    for search in (exact_search, order_search):
        assert search("ab", noise(0, 1.0), knowledge).dag == PartialGraph.from_dag("ab", [("b", "a")])
        found = search(["b", "a", DOMAIN], noise(0, 1.0), knowledge)
        assert found.dag == PartialGraph.from_dag(["b", "a", DOMAIN], [("b", "a"), (DOMAIN, "a")])
        assert found.dag.nodes == ("b", "a", DOMAIN)


@pytest.mark.parametrize("search", [exact_search, order_search])
@pytest.mark.parametrize("nodes", [(), ("a",), (DOMAIN,), (DOMAIN, "a")])
def test_tiny_graphs(search, nodes):
    found = search(nodes, noise(0, 2.0))
    assert found.dag == PartialGraph(nodes)
    assert found.total == pytest.approx(total(found.dag, noise(0)))


# Size


def near(dag, rng, others):
    """What a prescreening leaves: the true neighbours and some other variables."""
    variables = [node for node in dag.nodes if node != DOMAIN]
    return {node: dag.neighbours(node) | set(rng.sample(variables, others)) - {node} for node in variables}


@pytest.mark.parametrize("seed", range(4))
def test_thirty_variables_score_no_less_than_the_truth(seed):
    rng = random.Random(seed)
    dag = random_dag(rng, 30, 3, 0.2)
    score = Recorded(gaussian_bic(dag, 1000, seed))
    found = best_dag(dag.nodes, score, candidates=near(dag, rng, 8))
    assert found.total >= total(dag, score.score) - 1e-9
    assert found.families_scored < 15_000
    assert len(score.batches) < 1000
    assert len(dag.skeleton ^ found.dag.skeleton) <= 0.1 * len(dag.skeleton)


def test_sixteen_variables_with_few_candidates_are_searched_exactly():
    dag = random_dag(random.Random(5), 16, 2)
    score = gaussian_bic(dag, 300, 5)
    found = best_dag(dag.nodes, score, candidates={node: dag.neighbours(node) for node in dag.nodes})
    assert found.exact
    assert found.total >= total(dag, score) - 1e-9


# Refusals


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_score_that_is_none_is_an_error(value):
    with pytest.raises(InvalidAnswerError, match=f"score of a given no parents is {value}"):
        best_dag("ab", lambda families: [value for _ in families])


def test_missing_scores_are_an_error():
    with pytest.raises(InvalidAnswerError, match="about 4 families and gave 3"):
        best_dag("ab", lambda families: noise(0)(families[1:]))


def test_impossible_arguments_are_refused():
    with pytest.raises(ValueError, match="max_parents is -1"):
        best_dag("ab", noise(0), max_parents=-1)
    with pytest.raises(ValueError, match="restarts is -1"):
        best_dag("ab", noise(0), restarts=-1)
    with pytest.raises(ValueError, match="candidates name unknown nodes: z"):
        best_dag("ab", noise(0), candidates={"a": frozenset("bz")})
    with pytest.raises(GraphError, match="more than once: a"):
        best_dag("aba", noise(0))
    with pytest.raises(KnowledgeError, match="unknown variables: z"):
        best_dag("ab", noise(0), Knowledge(required=[("a", "z")]))


# Very many rows: scores grow with them, and so do their last digits


@pytest.mark.parametrize("seed", range(6))
def test_how_large_scores_are_changes_nothing(seed):
    small, nodes = noise(seed), tuple(f"v{j}" for j in range(12))
    found = order_search(nodes, small, restarts=2)
    for times in (2.0**20, 2.0**40):
        large = order_search(nodes, lambda families, times=times: [times * one for one in small(families)], restarts=2)
        assert large.dag == found.dag
        assert large.total == pytest.approx(times * found.total, rel=1e-9)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.floats(-1, 1), min_size=2, max_size=40), st.floats(0, 1e13), st.randoms(use_true_random=False))
def test_sums_of_scores_are_exact_however_large(values, size, rng):
    names = tuple(f"v{j:02}" for j in range(len(values)))
    space = ParentSpace.of(names, NO_KNOWLEDGE, None, None)
    scores = ScoreCache(space, lambda families: [size * values[names.index(family.node)] for family in families])
    scores.ask((node, 0) for node in space.variables)
    known = [scores.of(node)[0] for node in space.variables]
    assert known == pytest.approx([size * value for value in values], abs=max(1e-9, 40 * size * 1e-12))
    mixed = rng.sample(known, len(known))
    assert sum(mixed) == sum(known)
    assert sum(mixed) - known[0] == sum(known[1:])


def test_millions_of_rows_and_a_variable_in_two_units(monkeypatch):
    """What is written twice makes many orders alike, and none of them may look better than the last for ever."""
    tables, rng = {}, np.random.default_rng(0)
    for client in ("a", "b"):
        columns = rng.normal(size=(9, 300))
        for j in range(1, 9):
            columns[j] += np.sin(columns[j - 1]) + 0.5 * columns[max(0, j - 3)]
        table = {f"v{j}": column for j, column in enumerate(columns)}
        tables[client] = {**table, "u0": table["v0"] * 2.2046 + 3, "u1": table["v1"] * 2.2046 + 3}
    few = studies.cohort_of(tables)
    times = 20_000  # as if every row were there so often
    many = [replace(one, moments=one.moments * times, rows_read=one.rows_read * times) for one in few.summaries]
    moves, move = 0, fedcdh.search.order_search._OrderSearch._best_move

    def counted(self, order, variable):
        nonlocal moves
        moves += 1
        assert moves < 100_000, "the search does not end"
        return (yield from move(self, order, variable))

    monkeypatch.setattr(fedcdh.search.order_search._OrderSearch, "_best_move", counted)
    found = discover_from(Aggregate.of(add_up(many, few.plan)), few.plan)
    assert frozenset({"u0", "v0"}) in found.graph.skeleton
    assert moves > 100
