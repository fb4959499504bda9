"""The independent change principle as an experiment: pairs of different seeds differ, unknown forms are refused."""

from __future__ import annotations

import pytest

from fedcdh.errors import SettingsError
from fedcdh.evaluation.experiments.kinds.independent_change import CRITERION_FORMS, DIRECTION_ACCURACY

CASE = {"model": "linear", "dialect": "paper", "clients": 6, "rows": 60, "pairs": 3}


def test_every_form_directs_some_pairs():
    pairs = DIRECTION_ACCURACY.prepare_instance(CASE, 2)
    assert len(pairs) == CASE["pairs"]
    for form in CRITERION_FORMS:
        DIRECTION_ACCURACY.prepare_method(form)
        right = DIRECTION_ACCURACY.measure(pairs, CASE, form, 2)["right"]
        assert 0 <= right <= 1, form
        assert (2 * len(pairs) * right).is_integer(), form  # half a point where a pair is left open


def test_seeds_share_no_pairs():
    first, second = (DIRECTION_ACCURACY.prepare_instance(CASE, seed) for seed in (2, 3))
    moments = [[pair[0].total.moments.tobytes() for pair in pairs] for pairs in (first, second)]
    assert not {*moments[0]} & {*moments[1]}


def test_an_unknown_form_is_refused():
    with pytest.raises(SettingsError, match="paper-random-domain"):
        DIRECTION_ACCURACY.prepare_method("magic")
    assert DIRECTION_ACCURACY.failure_measures([]) == {"right": None}
