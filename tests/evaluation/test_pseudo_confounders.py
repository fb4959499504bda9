"""Mechanisms that change together: the truth, the draws, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from fedcdh.errors import SettingsError
from fedcdh.evaluation.pseudo_confounders import PseudoConfounder
from fedcdh.evaluation.simulation import simulate
from fedcdh.protocols import DOMAIN


def levels(variable: int, study) -> np.ndarray:
    return np.array([table[:, variable].mean() for table in study.tables.values()])


def test_variables_of_a_pseudo_confounder_change_in_truth_and_in_the_augmented_truth():
    plain = simulate(variables=5, changing=1, seed=4)
    (changing,) = plain.changing
    others = tuple(sorted({*plain.names} - plain.changing)[:2])
    study = simulate(variables=5, changing=1, seed=4, confounders=[PseudoConfounder(others)])
    assert study.changing == {changing, *others}
    assert study.augmented == plain.arrows | {(DOMAIN, name) for name in study.changing}
    assert study.confounders == (PseudoConfounder(others),)
    assert study.standardised().confounders == study.confounders


def test_levels_of_unconnected_variables_follow_one_number_and_other_draws_stay():
    for seed in range(3):
        given = {"variables": 3, "edges": 0, "changing": 0, "clients": 8, "rows": 50, "seed": seed}
        plain = simulate(**given)
        study = simulate(**given, confounders=[PseudoConfounder(("v1", "v3"), level=2.0)])
        for client, table in study.tables.items():
            shift = table - plain.tables[client]
            assert np.allclose(shift, shift[0])  # one level for all rows of a client
            assert shift[0, 0] == pytest.approx(shift[0, 2]) != 0
            assert shift[0, 1] == 0
        number = (levels(0, study) - levels(0, plain)) / 2.0
        assert 0.3 < number.std() < 2.5  # from N(0, 1)


def test_spreads_are_scaled_by_one_factor():
    given = {"variables": 2, "edges": 0, "changing": 0, "clients": 5, "rows": 40, "seed": 1}
    plain = simulate(**given)
    study = simulate(**given, confounders=[PseudoConfounder(("v1", "v2"), level=0.0, spread=0.7)])
    factors = set()
    for client, table in study.tables.items():
        factor = table / plain.tables[client]
        assert np.allclose(factor, factor[0, 0])
        factors.add(round(float(factor[0, 0]), 9))
    assert len(factors) == len(study.tables)


def test_effects_pass_on_to_descendants():
    study = simulate(variables=2, edges=1, changing=0, clients=30, rows=400, seed=2, confounders=[
        PseudoConfounder(("v1", "v2"), level=1.5)
    ])  # fmt: skip
    (arrow,) = study.arrows
    cause, effect = (levels(study.names.index(name), study) for name in arrow)
    slope = np.polyfit(cause, effect, 1)[0]
    assert slope > 1.4  # its own level, and at least half of that of its cause


def test_several_pseudo_confounders_add_up():
    given = {"variables": 3, "edges": 0, "changing": 0, "clients": 3, "rows": 10, "seed": 5}
    first, second = PseudoConfounder(("v1", "v2")), PseudoConfounder(("v2", "v3"), level=0.5)
    plain, both = simulate(**given), simulate(**given, confounders=[first, second])
    one = simulate(**given, confounders=[first])
    shift, of_first = (np.array([t[0] - plain.tables[c][0] for c, t in study.tables.items()]) for study in (both, one))
    assert np.allclose(shift[:, 1], of_first[:, 1] + shift[:, 2])
    assert both.changing == {"v1", "v2", "v3"}


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: PseudoConfounder(("v1",)), "two or more different variables"),
        (lambda: PseudoConfounder(("v1", "v1")), "two or more different variables"),
        (lambda: PseudoConfounder(("v1", "v2"), level=0.0), "not both 0"),
        (lambda: PseudoConfounder(("v1", "v2"), level=float("nan")), "finite numbers"),
        (lambda: simulate(confounders=[PseudoConfounder(("v1", "w"))]), "pseudo-confounder of w; expected some of v1"),
        (
            lambda: simulate(clients=1, changing=0, confounders=[PseudoConfounder(("v1", "v2"))]),
            "a single client; expected at least 2",
        ),
    ],
)
def test_impossible_pseudo_confounders_are_refused(make, text):
    with pytest.raises(SettingsError, match=text):
        make()
