"""Chains over DAGs, against exact probabilities; tolerances follow from the spread over chains."""

from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import random_dag
from weighted_dags import NAMES, all_families, families_of, probabilities_by_enumeration, random_weights

from fedcdh.inference.posterior import dag_sampling
from fedcdh.inference.posterior.dag_sampling import DagChain, estimate_arrows
from fedcdh.inference.posterior.exact_posterior import sum_over_dags
from fedcdh.inference.posterior.family_table import FamilyTable
from fedcdh.protocols import DOMAIN, Family

CHAINS = 12


def table_of(weights):
    return FamilyTable.of([*weights], [*weights.values()])


def to_array(found):
    return np.concatenate([found.arrows, found.changes[None]])


def estimates(tables, sweeps, pairs=None):
    """Return the probabilities that single chains find for each table: (chains, tables, nodes, variables)."""
    names = tables[0].variables
    together = [(a, b) for a in names for b in names if a < b] if pairs is None else pairs
    several = [estimate_arrows(tables, [{}], together, sweeps, seed)[0] for seed in range(CHAINS)]
    return np.array([[to_array(one) for one in group] for group in several])


def assert_mean_is(found, expected):
    """Their mean may be as far off as five times its own standard error, and chains may not all be the same wrong."""
    error = found.std(axis=0, ddof=1) / np.sqrt(len(found))
    assert (abs(found.mean(axis=0) - expected) <= 5 * error + 2e-3).all()
    assert error.max() < 0.03  # the chains agree well enough to see a mistake


@pytest.mark.parametrize(("domain", "scale", "missing"), [(False, 1.0, 0.0), (True, 2.0, 0.2), (True, 3.0, 0.5)])
def test_chains_have_the_exact_probabilities(domain, scale, missing):
    nodes = (*NAMES[:4], *([DOMAIN] if domain else []))
    table = table_of(random_weights(nodes, 7, scale, missing))
    assert_mean_is(estimates([table], 120), to_array(sum_over_dags(table))[None])


def test_chains_of_five_variables_have_the_exact_probabilities_without_steps_in_pairs():
    table = table_of(random_weights(NAMES, 3, 1.5))
    assert_mean_is(estimates([table], 120, pairs=[]), to_array(sum_over_dags(table))[None])


def test_exchange_keeps_the_distribution_of_every_chain():
    """Distributions that differ much: exchanging too often would mix them."""
    tables = [table_of(random_weights(NAMES[:3], seed, 2.0)) for seed in range(3)]
    exact = np.array([to_array(sum_over_dags(table)) for table in tables])
    assert abs(exact[0] - exact[1]).max() > 0.3
    assert_mean_is(estimates(tables, 150), exact)


def test_a_chain_without_exchange_stays_where_it_is_and_one_with_it_does_not():
    """Two DAGs without a common family that a single step cannot leave; a flat chain knows the way."""
    names, strong = NAMES[:4], 60.0
    good = [{("a", "b"), ("b", "c"), ("c", "d")}, {("d", "c"), ("c", "b"), ("b", "a")}]
    sets = [{Family(head, frozenset(t for t, h in dag if h == head)) for head in names} for dag in good]
    weights = {one: strong * (one in sets[0] or one in sets[1]) for one in all_families(names)}
    table = table_of(weights)
    flat = FamilyTable(table.parent_sets, {name: weights / strong for name, weights in table.weights.items()})
    exact = to_array(sum_over_dags(table))
    assert_mean_is(estimates([table, flat], 120)[:, :1], exact[None])


def test_the_dags_of_a_chain_are_as_frequent_as_they_should_be():
    nodes = (*NAMES[:3], DOMAIN)
    weights = random_weights(nodes, 11, 1.0)
    expected, chain, count = probabilities_by_enumeration(nodes, weights), DagChain(table_of(weights), {}, [0]), 1500
    found = dict.fromkeys(expected, 0)
    for _ in range(count):
        chain.sweep()
        for arrow in chain.dag(nodes).arrows:
            found[arrow] += 1
    for arrow, probability in expected.items():  # sweeps are nearly independent; 5 standard errors, twice as wide
        error = np.sqrt(probability * (1 - probability) / count)
        assert abs(found[arrow] / count - probability) < 10 * error, arrow


@settings(max_examples=40)
@given(
    st.integers(2, 5),
    st.booleans(),
    st.integers(0, 999),
    st.sampled_from([1, 30, 2000]),
    st.floats(0, 0.9),
    st.randoms(use_true_random=False),
)
def test_every_dag_is_acyclic_and_of_listed_families_whatever_the_start(size, domain, seed, scale, missing, rng):
    nodes = (*NAMES[:size], *([DOMAIN] if domain else []))
    weights = random_weights(nodes, seed, scale, missing)
    start = random_dag(rng, size, 3)
    names = dict(zip(start.nodes, NAMES, strict=False))
    first = {names[node]: frozenset(names[one] for one in start.parents(node)) for node in start.nodes}
    chain = DagChain(table_of(weights), first, [seed])
    for _ in range(3):
        for dag in (chain.dag(nodes), *(chain.sweep() is None or chain.dag(nodes) for _ in range(2))):
            assert dag.is_dag()
            assert all(one in weights for one in families_of(dag))


@settings(max_examples=30)
@given(st.randoms(use_true_random=False), st.sampled_from([1.0, 300.0]))
def test_required_arrows_leave_a_way_from_a_start_that_is_not_listed(rng, scale):
    """No set is empty but that of the first variable, and the start has parents that are not possible any more."""
    dag = random_dag(rng, 6, 4)
    lost = rng.choice(sorted(dag.arrows)) if dag.arrows else ()
    weights = {}
    for node in dag.nodes:
        parents = dag.parents(node) - ({lost[0]} if node in lost[1:] else set())
        children = [other for other in dag.nodes if node in dag.parents(other)]
        for more in (frozenset(), frozenset(children[:1]), frozenset(children)):
            weights[Family(node, parents | more)] = rng.gauss(0, scale)
    chain = DagChain(table_of(weights), {node: dag.parents(node) for node in dag.nodes}, [0])
    for _ in range(4):
        assert chain.dag(dag.nodes).is_dag()
        shares = chain.sweep()
        assert np.isfinite(shares).all()
        assert all(one in weights for one in families_of(chain.dag(dag.nodes)))


def test_a_start_that_is_not_listed_is_replaced_by_its_largest_listed_part():
    """The first listed set of c would close a circle with a, which has no other set."""
    weights = dict.fromkeys([Family("a", frozenset("c")), Family("c", frozenset("a")), Family("b"), Family("d")], 0.0)
    weights |= dict.fromkeys([Family("c", frozenset("b")), Family("c", frozenset("bd"))], 0.0)
    start = {"a": frozenset("c"), "b": frozenset(), "c": frozenset("bde"), "d": frozenset(), "e": frozenset()}
    chain = DagChain(table_of(weights | {Family("e"): 0.0}), start, [0])
    assert chain.dag("abcde").arrows == {("c", "a"), ("b", "c"), ("d", "c")}
    for _ in range(4):
        assert np.isfinite(chain.sweep()).all()
        assert chain.dag("abcde").is_dag()


@pytest.mark.parametrize("size", [63, 64, 65, 140])
def test_more_variables_than_bits_of_a_word(size):
    """A chain of strong arrows, each as likely either way: only the whole chain turned, or a fork, has no collider."""
    names = [f"v{number:03}" for number in range(size)]
    weights = {Family(name): 0.0 for name in names}
    weights |= {Family(head, frozenset({tail})): 40.0 for tail, head in pairwise(names)}
    weights |= {Family(names[0], frozenset({names[-1]})): 80.0, Family(names[5], frozenset({DOMAIN, names[4]})): 90.0}
    chain = DagChain(table_of(weights), {}, [0])
    for _ in range(3):
        chain.sweep()
    dag = chain.dag((*names, DOMAIN))
    assert dag.is_dag()
    assert (DOMAIN, names[5]) in dag.arrows
    assert (names[-1], names[0]) in dag.arrows  # it closes the circle, so one of the others is missing
    assert len(dag.arrows) == size + 1 - 1


def test_the_same_seed_gives_the_same_result_whatever_the_order_of_families_and_pairs():
    weights = random_weights((*NAMES[:4], DOMAIN), 2, 3.0, 0.2)
    pairs = [("a", "b"), ("c", "a"), (DOMAIN, "a"), ("b", "d")]
    rng, starts = random.Random(0), [{}, {"a": frozenset("b")}]
    expected = estimate_arrows([table_of(weights)], starts, pairs, 20, 5)
    for _ in range(3):
        mixed = dict(rng.sample([*weights.items()], len(weights)))
        turned = [pair[:: rng.choice([1, -1])] for pair in rng.sample(pairs, len(pairs))]
        found = estimate_arrows([table_of(mixed)], starts, turned, 20, 5)
        assert found[1] == expected[1]
        assert to_array(found[0][0]).tolist() == to_array(expected[0][0]).tolist()
    other = estimate_arrows([table_of(weights)], starts, pairs, 20, 6)
    assert to_array(other[0][0]).tolist() != to_array(expected[0][0]).tolist()


def test_the_largest_difference_shows_chains_that_have_not_met():
    """Two orders of twelve variables that share no family; between them are DAGs with far fewer arrows only."""
    names = [f"v{number:02}" for number in range(12)]
    after = [frozenset(names[:number]) for number in range(12)]
    before = [frozenset(names[number + 1 :]) for number in range(12)]
    both = [(name, sets) for several in (after, before) for name, sets in zip(names, several, strict=True)]
    weights = {Family(name, sets): 10.0 * len(sets) for name, sets in both}
    starts = [dict(zip(names, sets, strict=True)) for sets in (after, before)]
    found, apart = estimate_arrows([table_of(weights)], starts, [], 10, 0)
    assert apart == pytest.approx(1.0)
    assert found[0].arrows[0, 1] == pytest.approx(0.5)
    assert estimate_arrows([table_of(weights)], starts[:1], [], 10, 0)[1] == 0.0


@pytest.mark.parametrize("kept", [1, 2, 7])
def test_what_a_chain_remembers_does_not_change_its_draws(monkeypatch, kept):
    nodes = (*NAMES, DOMAIN)
    table = table_of(random_weights(nodes, 5, 1.5, 0.2))

    def run():
        chain = DagChain(table, {}, [3])
        return [(chain.sweep().tolist(), sorted(chain.dag(nodes).arrows)) for _ in range(20)]

    expected = run()
    assert len({str(arrows) for _, arrows in expected}) > 5  # it moves
    monkeypatch.setattr(dag_sampling, "MAX_REMEMBERED", kept)
    assert run() == expected
