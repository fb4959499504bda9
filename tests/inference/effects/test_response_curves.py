"""Curved responses, against least squares on the features of the rows, and against curves that are known."""

import numpy as np
import pytest
from studies import cohort_of, mixed, numbers

from fedcdh.data.table import to_table
from fedcdh.inference.effects.response_curves import CURVE_POINTS, FeatureScatters
from fedcdh.summaries.encoder import GRID, Encoder

SIZES = (150, 120, 90)


def bent(seed, sizes=(400, 300)):
    """Rows of two sites with y = x² + z + noise, where z is a cause of x."""
    rng = np.random.default_rng(seed)
    tables = {}
    for number, size in enumerate(sizes):
        z = rng.normal(size=size)
        x = 0.5 * z + rng.normal(size=size)
        tables[f"site{number}"] = {"x": x, "y": x**2 + z + 0.3 * rng.normal(size=size) + number, "z": z}
    return tables


def test_a_response_is_that_of_least_squares_on_all_features():
    tables = numbers(0, sizes=SIZES)
    cohort = cohort_of(tables)
    features = FeatureScatters.of(cohort, ("v1", "v2"), "v3")
    contrast = features.contrast("v1", -0.5, 1.0)
    found = features.slopes(contrast, None)
    spans, unit = cohort.plan.layout.spans, features.scatters.units["v3"]
    for number, client in enumerate(cohort.clients):
        rows = Encoder(cohort.plan, client)(to_table(tables[client])) / GRID
        columns = np.vstack([rows[spans["v1"]], rows[spans["v2"]], np.ones(SIZES[number])]).T
        slopes = np.linalg.lstsq(columns, rows[spans["v3"].start], rcond=None)[0]
        assert found.values[number] == pytest.approx(unit * contrast @ slopes[: len(contrast)], rel=1e-6)


def test_differences_add_up_along_the_curve():
    features = FeatureScatters.of(cohort_of(bent(0)), ("x", "z"), "y")
    first, second, whole = (
        features.slopes(features.contrast("x", *ends), None).common.value for ends in ((-1, 0), (0, 2), (-1, 2))
    )
    assert first + second == pytest.approx(whole, rel=1e-9)
    back = features.slopes(features.contrast("x", 2, -1), None).common
    assert back.value == pytest.approx(-whole, rel=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_a_parabola_is_found_and_called_curved(seed):
    curve = FeatureScatters.of(cohort_of(bent(seed)), ("x", "z"), "y").curve("x", None)
    assert len(curve.cause_values) == CURVE_POINTS
    truth = curve.cause_values**2 - curve.reference**2
    middle = np.abs(curve.cause_values - curve.reference) < 1.5
    assert np.abs(curve.differences - truth)[middle].max() < 0.4
    assert curve.p_value < 1e-10
    assert (curve.differences[CURVE_POINTS // 2], curve.low[CURVE_POINTS // 2]) == (0.0, 0.0)
    assert (curve.low <= curve.differences).all()
    assert (curve.differences <= curve.high).all()


def test_straight_lines_are_seldom_called_curved():
    p_values = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        tables = {}
        for client in ("a", "b"):
            x = rng.normal(size=150)
            tables[client] = {"x": x, "y": x + rng.normal(size=150)}
        p_values.append(FeatureScatters.of(cohort_of(tables), ("x",), "y").curve("x", None).p_value)
    assert sum(p < 0.05 for p in p_values) <= 6  # at most 6 of 40 with probability 0.986


def test_points_of_a_curve_are_contrasts_from_its_reference():
    features = FeatureScatters.of(cohort_of(bent(1)), ("x", "z"), "y")
    curve = features.curve("x", None)
    for place in (0, 7, CURVE_POINTS - 1):
        alone = features.slopes(features.contrast("x", curve.reference, curve.cause_values[place]), None).common
        assert curve.differences[place] == pytest.approx(alone.value, rel=1e-9)
        assert (curve.low[place], curve.high[place]) == pytest.approx(alone.interval, rel=1e-6)


def test_the_probability_of_a_level_has_a_curve_and_levels_are_adjusted_for():
    cohort = cohort_of(mixed(0, sizes=(200, 150)))
    outcome, level = "sex", "m"
    curve = FeatureScatters.of(cohort, ("age", "group"), outcome).curve("age", level)
    other = FeatureScatters.of(cohort, ("age", "group"), outcome).curve("age", "f")
    assert curve.differences == pytest.approx(-other.differences, abs=1e-9)  # both probabilities add up to 1


def test_a_cause_that_does_not_vary_has_no_curve():
    tables = {client: {"x": np.ones(50), "y": np.arange(50.0)} for client in ("a", "b")}
    assert FeatureScatters.of(cohort_of(tables), ("x",), "y").curve("x", None) is None
