"""Pairs whose mechanisms change together, as an experiment."""

from __future__ import annotations

import pytest

from fedcdh.errors import SettingsError
from fedcdh.evaluation.experiments.kinds.dependent_changes import DEPENDENT_CHANGES, DIRECTING_METHODS

CASE = {"model": "linear", "clients": 6, "rows": 60, "pairs": 3, "level": 1.0, "spread": 0.0}


def test_outcomes_of_every_method_add_up_to_all_pairs():
    pairs = DEPENDENT_CHANGES.prepare_instance(CASE, 2)
    assert len(pairs) == CASE["pairs"]
    for method in DIRECTING_METHODS:
        DEPENDENT_CHANGES.prepare_method(method)
        found = DEPENDENT_CHANGES.measure(pairs, CASE, method, 2)
        assert sum(found.values()) == pytest.approx(1.0), method
        assert tuple(found) == DEPENDENT_CHANGES.measures


def test_both_mechanisms_of_a_pair_change_and_seeds_share_no_pairs():
    first, second = (DEPENDENT_CHANGES.prepare_instance(CASE, seed) for seed in (2, 3))
    assert all(study.changing == {"v1", "v2"} and len(study.arrows) == 1 for study in first)
    rows = [{next(iter(study.tables.values())).tobytes() for study in studies} for studies in (first, second)]
    assert not rows[0] & rows[1]


def test_an_unknown_method_is_refused():
    with pytest.raises(SettingsError, match="evidence-one"):
        DEPENDENT_CHANGES.prepare_method("magic")
    assert DEPENDENT_CHANGES.failure_measures([]) == dict.fromkeys(DEPENDENT_CHANGES.measures)
