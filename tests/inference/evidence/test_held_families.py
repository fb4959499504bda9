from __future__ import annotations

import numpy as np
import pytest

import fedcdh
from fedcdh.inference import Basis
from fedcdh.inference.evidence.gaussian import GaussianScore
from fedcdh.inference.evidence.held_families import UNKNOWN_CHANGE, score_held_families
from fedcdh.protocols import Family

FAMILIES = [Family("v1"), Family("v2", frozenset({"v1"})), Family("v3", frozenset({"v1", "v2"}))]


@pytest.fixture(scope="module")
def score():
    study = fedcdh.simulate("linear", variables=3, clients=4, rows=60, seed=2)
    return GaussianScore(Basis.of(fedcdh.discover(study.columns("site"), domain="site", rounds="one").cohort))


def test_where_all_clients_have_all_variables_the_score_is_the_usual_one(score):
    everywhere = dict.fromkeys(("v1", "v2", "v3"), np.ones(4, dtype=np.bool_))
    found = score_held_families(score, FAMILIES, everywhere)
    assert np.array(found) == pytest.approx(np.array(score(FAMILIES)))


def test_the_shared_mechanism_does_not_depend_on_who_has_what(score):
    holding = {"v1": np.ones(4, bool), "v2": np.array([1, 1, 1, 0], bool), "v3": np.array([1, 1, 0, 1], bool)}
    found = score_held_families(score, FAMILIES, holding)
    assert [same for same, _ in found] == pytest.approx(score.same(FAMILIES))


def test_one_client_cannot_say_that_a_mechanism_differs(score):
    holding = {"v1": np.ones(4, bool), "v2": np.array([1, 0, 0, 0], bool), "v3": np.ones(4, bool)}
    (_, (same, differing), _) = score_held_families(score, FAMILIES, holding)
    assert differing - same == UNKNOWN_CHANGE
