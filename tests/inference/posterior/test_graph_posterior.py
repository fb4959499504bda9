"""The posterior as a whole: means of its parts, exact and sampled, and DAGs that are as frequent as likely."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from weighted_dags import NAMES, families_of, probabilities_by_enumeration, random_weights

from fedcdh.errors import SettingsError
from fedcdh.graphs.partial_graph import PartialGraph
from fedcdh.inference.posterior.family_table import FamilyTable
from fedcdh.inference.posterior.graph_posterior import GraphPosterior
from fedcdh.protocols import DOMAIN, Family

NODES = (*NAMES[:4], DOMAIN)


def table_of(weights):
    return FamilyTable.of([*weights], [*weights.values()])


def posterior_of(nodes, *parts, **options):
    """Return the posterior of (share, weights) pairs, from an empty and a full DAG."""
    names = [node for node in nodes if node != DOMAIN]
    full = PartialGraph.from_dag(nodes, [(tail, head) for tail in names for head in names if tail < head])
    tables = [(share, table_of(weights)) for share, weights in parts]
    return GraphPosterior.of(nodes, tables, [PartialGraph(nodes), full], **options)


@settings(max_examples=30)
@given(st.integers(2, 3), st.booleans(), st.integers(0, 999), st.floats(0, 1), st.sampled_from([1, 40]))
def test_a_posterior_is_the_mean_of_its_parts(size, domain, seed, share, scale):
    nodes = (*NAMES[:size], *([DOMAIN] if domain else []))
    weights = [random_weights(nodes, [seed, number], scale, 0.2) for number in range(2)]
    listed = weights[0].keys() & weights[1].keys()
    weights = [{one: part[one] for one in part if one in listed} for part in weights]
    found = posterior_of(nodes, (share, weights[0]), (1 - share, weights[1]))
    assert found.exact
    assert found.largest_difference == 0.0
    one, other = (probabilities_by_enumeration(nodes, part) for part in weights)
    assert found.arrows.keys() == one.keys()
    for arrow, probability in found.arrows.items():
        assert probability == pytest.approx(share * one[arrow] + (1 - share) * other[arrow], abs=1e-9)
        edge = found.probability_of_edge(*arrow)
        assert edge == found.probability_of_edge(*arrow[::-1])
        assert probability <= edge <= 1
        assert edge == pytest.approx(probability + found.arrows.get(arrow[::-1], 0.0), abs=1e-9)


def test_sampled_probabilities_are_near_the_exact_ones():
    """80 sweeps of two groups: standard errors of at most 0.02 here."""
    parts = [(0.3, random_weights(NODES, 1, 2.0)), (0.7, random_weights(NODES, 2, 1.0))]
    exact, sampled = posterior_of(NODES, *parts), posterior_of(NODES, *parts, exact_up_to=0)
    assert (exact.exact, sampled.exact) == (True, False)
    assert 0 < sampled.largest_difference < 0.15
    assert sampled.arrows.keys() == exact.arrows.keys()
    for arrow, probability in exact.arrows.items():
        assert sampled.arrows[arrow] == pytest.approx(probability, abs=0.08)
        assert 0 <= sampled.arrows[arrow] <= sampled.probability_of_edge(*arrow) <= 1


def test_the_seed_of_the_chains_is_all_that_is_random():
    parts = [(0.5, random_weights(NODES, 1, 2.0)), (0.5, random_weights(NODES, 2, 1.0))]
    one, same, other = (posterior_of(NODES, *parts, exact_up_to=0, seed=seed) for seed in (3, 3, 4))
    assert one.arrows == same.arrows != other.arrows
    assert one.sample(5) == same.sample(5) == one.sample(5, seed=0) != one.sample(5, seed=1)


def test_samples_are_dags_as_frequent_as_their_arrows_are_likely():
    parts = [(0.25, random_weights(NODES, 4, 4.0, 0.3)), (0.75, random_weights(NODES, 4, 1.0, 0.3))]
    posterior, count = posterior_of(NODES, *parts), 600
    dags = posterior.sample(count, seed=2)
    assert len(dags) == count
    for dag in dags:
        assert dag.nodes == NODES
        assert dag.is_dag()
        assert all(one in parts[0][1] for one in families_of(dag))
    for arrow, probability in posterior.arrows.items():
        error = np.sqrt(max(probability * (1 - probability), 1e-4) / count)
        share = sum(arrow in dag.arrows for dag in dags) / count
        assert share == pytest.approx(probability, abs=6 * error), arrow


def test_no_dags_and_numbers_that_are_none():
    posterior = posterior_of(NODES, (1.0, random_weights(NODES, 1)))
    assert posterior.sample(0) == []
    for wrong in (-1, 2.0, "3", None):
        with pytest.raises(SettingsError, match="number of DAGs is") as refusal:
            posterior.sample(wrong)
        assert refusal.value.parameter == "n"


def test_arrows_of_the_domain_are_named_only_where_it_is_a_node():
    found = posterior_of(NAMES[:3], (1.0, random_weights(NAMES[:3], 0)))
    assert all(DOMAIN not in arrow for arrow in found.arrows)
    assert found.probability_of_edge(DOMAIN, "a") == 0.0
    with_domain = posterior_of(NODES, (1.0, random_weights(NODES, 0)))
    assert {head for tail, head in with_domain.arrows if tail == DOMAIN} == set(NAMES[:4])
    assert all(head != DOMAIN for _, head in with_domain.arrows)


def test_open_pairs_are_as_likely_either_way_and_all_else_stays():
    posterior = posterior_of(NODES, (1.0, random_weights(NODES, 6, 3.0)))
    opened = posterior.with_open_pairs({frozenset("ab"): 0.9, frozenset("cd"): 1.0})
    assert opened.arrows["a", "b"] == opened.arrows["b", "a"] == 0.45
    assert opened.probability_of_edge("c", "d") == 1.0
    kept = {arrow for arrow in posterior.arrows if frozenset(arrow) not in (frozenset("ab"), frozenset("cd"))}
    assert all(opened.arrows[arrow] == posterior.arrows[arrow] for arrow in kept)
    assert opened.sample(3) == posterior.sample(3)


def test_an_arrow_that_is_known_is_certain_and_all_else_stays():
    posterior = posterior_of(NODES, (1.0, random_weights(NODES, 6, 3.0)))
    known = posterior.with_certain_arrow(("b", "a"))
    assert (known.arrows["b", "a"], known.arrows["a", "b"], known.probability_of_edge("a", "b")) == (1.0, 0.0, 1.0)
    assert all(known.arrows[arrow] == value for arrow, value in posterior.arrows.items() if {*arrow} != {"a", "b"})


def test_chains_that_cannot_meet_show_it():
    """Two complete orders of 8 variables, and nothing between them is likely: each chain stays at its start."""
    names = [f"v{number}" for number in range(8)]
    sets = [(frozenset(names[:number]), frozenset(names[number + 1 :])) for number in range(8)]
    weights = {Family(name, one): 30.0 * len(one) for name, both in zip(names, sets, strict=True) for one in both}
    starts = [
        PartialGraph.from_dag(names, [(tail, name) for name, both in zip(names, sets, strict=True) for tail in both[n]])
        for n in range(2)
    ]
    found = GraphPosterior.of(names, [(1.0, table_of(weights))], starts, exact_up_to=0)
    assert found.largest_difference > 0.9
    alone = GraphPosterior.of(names, [(1.0, table_of(weights))], starts[:1], exact_up_to=0)
    assert alone.largest_difference == 0.0
    assert alone.arrows["v0", "v1"] == pytest.approx(1.0)
