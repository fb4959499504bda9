"""True effects of simulations, against paths and against interventions."""

import numpy as np
import pytest

from fedcdh import simulate
from fedcdh.errors import SettingsError
from fedcdh.evaluation.simulated_effects import EFFECT_ROWS
from fedcdh.evaluation.simulation import Simulation


def test_linear_effects_are_the_slopes_of_very_many_rows():
    study = simulate(variables=4, clients=2, rows=20_000, seed=2)
    for cause, outcome in sorted(study.arrows):
        parents = sorted(tail for tail, head in study.arrows if head == cause)
        truth = study.client_effects(cause, outcome)
        for client, table in study.tables.items():
            columns = [table[:, study.names.index(name)] for name in (cause, *parents)]
            design = np.column_stack([*columns, np.ones(len(table))])
            slope = np.linalg.lstsq(design, table[:, study.names.index(outcome)], rcond=None)[0][0]
            assert slope == pytest.approx(truth[client], abs=0.1)
        assert study.effect(cause, outcome) == pytest.approx(np.mean(list(truth.values())))


def test_there_is_no_effect_against_the_arrows():
    study = simulate("general", variables=4, clients=2, rows=20, seed=4)
    for cause, outcome in study.arrows:
        assert study.effect(outcome, cause) == 0.0
    assert study.effect("v1", "v1") == pytest.approx(1.0)


def test_general_effects_are_those_of_an_intervention_and_do_not_change_with_rows():
    small, large = (simulate("general", variables=4, clients=2, rows=rows, seed=5) for rows in (10, 50))
    for pair in small.arrows:
        assert small.client_effects(*pair) == large.client_effects(*pair)
    assert EFFECT_ROWS >= 10_000


def test_standardised_tables_have_effects_in_their_units():
    study = simulate(variables=4, clients=3, rows=50, seed=6)
    scaled = study.standardised()
    pooled = np.concatenate(list(study.tables.values())).std(axis=0)
    for cause, outcome in study.arrows:
        factor = pooled[study.names.index(cause)] / pooled[study.names.index(outcome)]
        assert scaled.effect(cause, outcome) == pytest.approx(study.effect(cause, outcome) * factor)


def test_a_client_with_an_intervention_has_no_effect_there():
    study = simulate(variables=4, clients=4, rows=20, interventions=2, seed=1)
    for client, target in study.targets.items():
        for cause, outcome in study.arrows:
            if outcome == target:
                assert study.client_effects(cause, outcome)[client] == 0.0


def test_what_is_not_known_is_refused():
    study = simulate(variables=3, clients=2, rows=5, seed=1)
    with pytest.raises(SettingsError, match="no variable 'x'"):
        study.effect("x", "v1")
    bare = Simulation(study.tables, study.names, study.arrows, study.changing)
    with pytest.raises(SettingsError, match="mechanisms of this study are not known"):
        bare.effect("v1", "v2")
