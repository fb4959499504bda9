"""Exact probabilities of arrows, against a sum over all DAGs one after the other."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import random_dag
from scored_graphs import all_dags
from weighted_dags import NAMES, all_families, families_of, probabilities_by_enumeration, random_weights

from fedcdh.inference.posterior.exact_posterior import MAX_EXACT_VARIABLES, sum_over_dags
from fedcdh.inference.posterior.family_table import FamilyTable
from fedcdh.protocols import DOMAIN, Family

problems = st.tuples(
    st.integers(1, 4), st.booleans(), st.integers(0, 9999), st.sampled_from([0, 1, 10, 200, 2000]), st.floats(0, 0.8)
)


def named(weights):
    """Return the probability of every arrow by name."""
    table = FamilyTable.of([*weights], [*weights.values()])
    found = sum_over_dags(table)
    names = table.variables
    arrows = {
        (tail, head): found.arrows[i, j] for i, tail in enumerate(names) for j, head in enumerate(names) if i != j
    }
    return arrows | {(DOMAIN, head): found.changes[j] for j, head in enumerate(names)}


def nodes_of(size, domain):
    return (*([DOMAIN] if domain else []), *NAMES[:size])


@settings(max_examples=120)
@given(problems)
def test_probabilities_are_those_of_all_dags(problem):
    size, domain, seed, scale, missing = problem
    nodes = nodes_of(size, domain)
    weights = random_weights(nodes, seed, scale, missing)
    found, expected = named(weights), probabilities_by_enumeration(nodes, weights)
    for arrow, probability in found.items():
        assert probability == pytest.approx(expected.get(arrow, 0.0), abs=1e-9), arrow
        assert 0 <= probability <= 1
        assert probability + found.get(arrow[::-1], 0.0) <= 1 + 1e-9


@settings(max_examples=60)
@given(problems, st.randoms(use_true_random=False))
def test_names_and_the_order_of_families_do_not_matter(problem, rng):
    size, domain, seed, scale, missing = problem
    weights = random_weights(nodes_of(size, domain), seed, scale, missing)
    names = dict(zip(NAMES, rng.sample(NAMES, len(NAMES)), strict=True)) | {DOMAIN: DOMAIN}
    renamed = {
        Family(names[one.node], frozenset(names[parent] for parent in one.parents)): weight
        for one, weight in rng.sample([*weights.items()], len(weights))
    }
    other = named(renamed)
    for (tail, head), probability in named(weights).items():
        assert probability == pytest.approx(other[names[tail], names[head]], abs=1e-9)


@pytest.mark.parametrize(("size", "dags"), [(2, 3), (3, 25), (4, 543)])
def test_equal_weights_have_no_bias_towards_dags_with_many_orders(size, dags):
    """Of the 25 DAGs on 3 variables, 8 have a given arrow: 2 × 4 ways for the other two pairs, less cycles, by hand."""
    several = all_dags(NAMES[:size])
    assert len(several) == dags
    exact = Fraction(sum(("a", "b") in dag.arrows for dag in several), dags)
    assert size != 3 or exact == Fraction(8, 25)
    found = named(dict.fromkeys(all_families(NAMES[:size]), 0.0))
    for tail, head in ((tail, head) for tail, head in found if tail != DOMAIN):
        assert found[tail, head] == pytest.approx(float(exact), abs=1e-12)


def test_a_change_doubles_every_family_of_equal_weights():
    found = named(dict.fromkeys(all_families((DOMAIN, *NAMES[:3])), 0.0))
    assert [found[DOMAIN, name] for name in NAMES[:3]] == pytest.approx([0.5] * 3)
    assert found["a", "b"] == pytest.approx(8 / 25)


@pytest.mark.parametrize("size", [4, MAX_EXACT_VARIABLES])
def test_families_that_are_missing_decide_with_certainty(size):
    """Every variable but the first requires the one before it."""
    names = [f"v{number:02}" for number in range(size)]
    rng = np.random.default_rng(size)
    before = dict(zip(names[1:], names[:-1], strict=True))
    families = [
        one
        for one in all_families(names)
        if (one.node not in before or before[one.node] in one.parents) and names[-1] not in one.parents
    ]
    found = named(dict(zip(families, (300 * rng.standard_normal(len(families))).tolist(), strict=True)))
    for head, tail in before.items():
        assert found[tail, head] == pytest.approx(1.0, abs=1e-9)
        assert found[head, tail] == pytest.approx(0.0, abs=1e-9)
    for other in names[:-1]:
        assert found[names[-1], other] == 0.0


def test_families_of_weight_zero_are_like_missing_ones():
    weights = random_weights(NAMES[:4], 5, 30.0)
    lost = {one for number, one in enumerate(sorted(weights, key=str)) if one.parents and number % 3 == 0}
    listed = named({one: -np.inf if one in lost else weight for one, weight in weights.items()})
    left_out = named({one: weight for one, weight in weights.items() if one not in lost})
    assert [*listed.values()] == pytest.approx([*left_out.values()], abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_only_one_dag_of_ten_variables_is_possible(seed):
    dag = random_dag(random.Random(seed), MAX_EXACT_VARIABLES, 3)
    found = named(dict.fromkeys(families_of(dag), -1e4))
    assert {arrow for arrow, probability in found.items() if probability > 0.5} == dag.arrows
    assert all(min(probability, 1 - probability) < 1e-9 for probability in found.values())


@pytest.mark.parametrize("seed", range(3))
def test_ten_variables_with_few_parent_sets_have_the_same_probabilities_by_turning_each_family_off(seed):
    """The probability of a family is what the total weight loses without it, and it follows from its odds.

    With the weight w of a family doubled, its odds double, whatever all other families are.
    """
    rng = np.random.default_rng(seed)
    names = [f"v{number:02}" for number in range(MAX_EXACT_VARIABLES)]
    sets = {name: [frozenset(rng.choice(names, 3, replace=False)) - {name} for _ in range(12)] for name in names}
    families = [Family(name, one) for name in names for one in dict.fromkeys([frozenset(), *sets[name]])]
    weights = dict(zip(families, (5 * rng.standard_normal(len(families))).tolist(), strict=True))
    alone = Family("v00", frozenset({"v01"}))
    others = {one: weight for one, weight in weights.items() if one.node != "v00" or "v01" not in one.parents}
    once, twice = (named(others | {alone: value})["v01", "v00"] for value in (0.0, np.log(2)))
    assert twice / (1 - twice) == pytest.approx(2 * once / (1 - once), rel=1e-6)
