"""Tables of families: sorted, complete and in bits."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from weighted_dags import NAMES, random_weights

from fedcdh.inference.posterior.family_table import MIN_LOG_WEIGHT, FamilyTable
from fedcdh.protocols import DOMAIN, Family


@settings(max_examples=40)
@given(st.integers(1, 5), st.booleans(), st.integers(0, 999))
def test_a_table_has_every_family_with_its_weight_whatever_their_order(size, domain, seed):
    nodes = (*NAMES[:size], *([DOMAIN] if domain else []))
    weights = random_weights(nodes, seed, missing=0.3)
    table = FamilyTable.of([*weights], [*weights.values()])
    mixed = random.Random(seed).sample([*weights], len(weights))
    other = FamilyTable.of(mixed, [weights[one] for one in mixed])
    assert table.variables == other.variables == NAMES[:size]
    assert table.places[DOMAIN] == size
    found = {}
    for name in table.variables:
        assert table.parent_sets[name] == other.parent_sets[name]
        assert table.weights[name].tolist() == other.weights[name].tolist()
        assert table.parent_sets[name][0] == frozenset()  # the smallest set is the first
        found |= {
            Family(name, parents): weight
            for parents, weight in zip(table.parent_sets[name], table.weights[name].tolist(), strict=True)
        }
    assert found == weights


@pytest.mark.parametrize("size", [1, 62, 63, 64, 65, 130])
def test_bits_name_the_parents_however_many_variables_there_are(size):
    names = [f"v{number:03}" for number in range(size)]
    sets = [frozenset(), frozenset({DOMAIN}), frozenset(names[1:]), frozenset({names[-1], DOMAIN}) - {names[0]}]
    families = [*(Family(name) for name in names[1:]), *(Family(names[0], one) for one in dict.fromkeys(sets))]
    table = FamilyTable.of(families, np.zeros(len(families)))
    for parents, words in zip(table.parent_sets[names[0]], table.words[names[0]], strict=True):
        together = sum(int(word) << 64 * place for place, word in enumerate(words))
        assert {name for name, place in table.places.items() if together >> place & 1} == parents


def test_a_family_that_cannot_be_has_a_weight_that_is_finite():
    table = FamilyTable.of([Family("x"), Family("x", frozenset("y")), Family("y")], [0.0, -np.inf, 0.0])
    assert table.weights["x"].tolist() == [0.0, MIN_LOG_WEIGHT]


def test_every_family_needs_one_weight():
    with pytest.raises(ValueError, match="shorter"):
        FamilyTable.of([Family("x"), Family("y")], [0.0])
