"""Laws of Fed-CD: closed forms equal regressions, combinations weigh as specified, targets direct edges."""

from __future__ import annotations

import numpy as np
import pytest

from fedcdh.errors import SettingsError
from fedcdh.evaluation.baselines import find_baseline
from fedcdh.evaluation.baselines.fed_cd import (
    combine_beliefs,
    find_arrows,
    run_fed_cd,
    run_fed_cd_with_targets,
    weigh_arrows,
)
from fedcdh.evaluation.baselines.fed_cd_learner import (
    Beliefs,
    ClosedFormLearner,
    LearnerSettings,
    add_hermite_features,
    keep_values,
)
from fedcdh.evaluation.simulation import simulate


def make_learner(rows, features=keep_values, targets=frozenset(), uses_curvature=False):
    return ClosedFormLearner(rows, features, targets, uses_curvature, LearnerSettings(), np.random.default_rng(1))


def regression_loss(rows, features, head, inputs):
    """Return ½ log of the residual variance by least squares on the rows."""
    columns = [features(rows[:, i]) for i in inputs]
    design = np.column_stack([np.ones(len(rows)), *columns])
    left = rows[:, head] - design @ np.linalg.lstsq(design, rows[:, head], rcond=None)[0]
    return 0.5 * np.log(left @ left / (len(rows) - design.shape[1]))


@pytest.mark.parametrize("features", [keep_values, add_hermite_features])
def test_effects_are_differences_of_regression_losses(features):
    rows = simulate("general", variables=4, clients=1, changing=0, rows=300, seed=5).tables["client01"]
    rows = rows / rows.std(axis=0)
    learner = make_learner(rows, features)
    for head, inside in ((0, ()), (1, (0,)), (2, (0, 3)), (3, (0, 1, 2))):
        inputs = np.isin(np.arange(4), inside)
        found = learner._effects_on(head, inputs)
        for tail in (i for i in range(4) if i != head):
            with_tail, without = sorted({*inside, tail}), [i for i in inside if i != tail]
            expected = regression_loss(rows, features, head, with_tail) - regression_loss(rows, features, head, without)
            assert found[tail] == pytest.approx(expected, abs=1e-3)  # the ridge


def test_curvature_is_zero_for_lines_and_favours_the_direction_of_a_curve():
    draw = np.random.default_rng(2)
    x, e = draw.standard_normal((2, 1000))
    rows = np.column_stack([x, np.tanh(2 * x) + 0.2 * e])
    assert np.abs(make_learner(rows, keep_values, uses_curvature=True)._curvature).max() == 0.0
    curvature = make_learner(rows, add_hermite_features, uses_curvature=True)._curvature
    assert curvature[0, 1] < 0  # the loss falls by more that way round
    assert curvature[0, 1] == -curvature[1, 0]


def test_an_input_that_explains_nothing_has_no_effect_on_average():
    effects = []
    for seed in range(300):
        rows = np.random.default_rng(seed).standard_normal((60, 3))
        effects.append(make_learner(rows, add_hermite_features)._effects_on(0, np.array([False, True, False]))[1:])
    means, errors = np.mean(effects, axis=0), np.std(effects, axis=0) / np.sqrt(300)
    assert (np.abs(means) < 4 * errors + 0.005).all()  # the logarithm bends the mean a little


def test_an_intervention_protects_the_targets_mechanism_and_directs_its_edges():
    x, e = np.random.default_rng(3).standard_normal((2, 400))
    learner = make_learner(np.column_stack([x, x + e]), targets=frozenset({0}))
    learned = learner.learn(Beliefs.open(2))
    assert learned.existence[1, 0] == 0.0  # nothing is learned about the causes of what was set
    assert learned.existence[0, 1] > 0
    assert learned.direction[0, 1] > 0
    assert learned.direction[0, 1] == pytest.approx(-learned.direction[1, 0])


def test_naive_is_the_weighted_mean_and_directions_stay_antisymmetric():
    draw = np.random.default_rng(4)
    answers = [Beliefs(*draw.standard_normal((2, 3, 3))) for _ in range(2)]
    weights = np.broadcast_to(np.array([0.25, 0.75])[:, None, None], (2, 3, 3))
    found = combine_beliefs(answers, weights)
    assert np.allclose(found.existence, 0.25 * answers[0].existence + 0.75 * answers[1].existence)
    assert np.allclose(found.direction, -found.direction.T)


def test_proximity_weighs_arrows_near_the_targets_more():
    chain = np.zeros((6, 6), dtype=bool)
    chain[range(5), range(1, 6)] = True
    weights = weigh_arrows(chain, frozenset({0}))
    assert [weights[i, i + 1] for i in range(5)] == [8.0, 4.0, 2.0, 1.0, 1.0]
    assert weights[0, 3] == 1.0  # no arrow of the graph
    assert (weigh_arrows(chain, frozenset()) == 1.0).all()
    assert weigh_arrows(chain, frozenset({2}))[0, 1] == 1.0  # distances follow arrows


def intervened_chain(rows=500, seed=0):
    """x → y → z, linear and Gaussian; each client but the first sets one variable by itself."""
    tables = {}
    for number, target in enumerate((None, "x", "y", "z")):
        draw = np.random.default_rng([seed, number])
        x, y, z = draw.standard_normal((3, rows))
        y = 2.0 * y if target == "y" else x + y
        z = 2.0 * z if target == "z" else y + z
        tables[f"c{number}"] = np.column_stack([x, y, z])
    return tables, {"c1": ["x"], "c2": ["y"], "c3": ["z"]}


@pytest.mark.parametrize("combination", ["naive", "proximity"])
def test_targets_direct_what_observations_cannot(combination):
    tables, targets = intervened_chain()
    for seed in range(3):
        found = run_fed_cd_with_targets(
            tables, "xyz", seed, targets=targets, combination=combination, mechanisms="linear"
        )
        assert {("x", "y"), ("y", "z")} <= found.graph.arrows
    observed = run_fed_cd({"c0": tables["c0"]}, "xyz", mechanisms="linear")
    assert not observed.graph.arrows
    assert {frozenset("xy"), frozenset("yz")} <= observed.graph.lines


def test_each_round_sends_two_matrices_each_way():
    study = simulate(variables=4, clients=3, rows=60, seed=1)
    traffic = run_fed_cd(study.tables, study.names, rounds=5).traffic
    assert traffic.bytes_up == 3 * (8 * (1 + 2 * 4) + 5 * 2 * 16 * 8)
    assert traffic.bytes_down == traffic.bytes_up


def test_without_targets_and_with_equal_rows_both_combinations_agree():
    study = simulate("general", variables=4, clients=3, rows=60, seed=2)
    naive, proximity = (find_baseline(f"fed-cd-{way}")(study.tables, study.names) for way in ("naive", "proximity"))
    assert naive == proximity


def test_missing_and_unknown_targets_are_refused():
    tables, _ = intervened_chain(rows=30)
    with pytest.raises(SettingsError, match="no target"):
        find_baseline("fed-cd-targets-naive")(tables, "xyz")
    for wrong in ({"c1": ["w"]}, {"c9": ["x"]}):
        with pytest.raises(SettingsError, match=r"'w'|'c9'"):
            run_fed_cd_with_targets(tables, "xyz", targets=wrong)
    with pytest.raises(SettingsError, match="combination"):
        run_fed_cd(tables, "xyz", combination="median")


def test_arrows_need_both_beliefs():
    beliefs = Beliefs(np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([[0.0, 0.3], [-0.3, 0.0]]))
    assert find_arrows(beliefs).tolist() == [[False, True], [False, False]]
