"""Feature families: bounded everywhere, and the kernels they stand for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.features import Fourier, Hermite, OneHot
from fedcdh.summaries.plan import Categorical, Continuous, StudyPlan
from fedcdh.summaries.summary import GRID

FAMILIES = [Fourier(), Fourier(64, 0.1, 3), Hermite(), Hermite(2), Hermite(64, 0.3), Hermite(40, 5.0)]
X = np.linspace(-3, 3, 61)


def gaussian(x: np.ndarray, bandwidth: float) -> np.ndarray:
    return np.exp(-((x[:, None] - x) ** 2) / (2 * bandwidth**2))


def approximated(family: Fourier | Hermite | OneHot, x: np.ndarray) -> np.ndarray:
    weighted = family(x) * family.weights
    return weighted @ weighted.T


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
@given(x=arrays(np.float64, st.integers(0, 20), elements=st.floats(-100, 100)))
def test_features_lie_between_minus_one_and_one(family, x):
    features = family(x)
    assert features.shape == (len(x), family.width)
    assert np.isfinite(features).all()
    assert np.abs(features).max(initial=0.0) <= 1.0


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_the_bound_is_not_wasteful(family):
    """Features that stay far below 1 would waste the digits of the grid."""
    assert (np.abs(family(np.linspace(-100, 100, 40_001))).max(axis=0) > 0.4).all()


def test_random_features_approach_the_gaussian_kernel_as_they_get_more():
    def error(width: int) -> float:
        exact = gaussian(X, 1.5)
        return float(np.mean([np.abs(approximated(Fourier(width, 1.5, seed), X) - exact).mean() for seed in range(30)]))

    errors = [error(width) for width in (4, 16, 64)]
    assert errors[0] > 1.7 * errors[1] > 1.7**2 * errors[2]  # 1/√width would be a factor of 2
    assert errors[2] < 0.12
    mean = np.mean([approximated(Fourier(64, 1.5, seed), X) for seed in range(200)], axis=0)
    assert np.abs(mean - gaussian(X, 1.5)).max() < 0.05  # no bias


@pytest.mark.parametrize("bandwidth", [0.7, 1.0, 2.0])
def test_hermite_features_converge_to_the_gaussian_kernel(bandwidth):
    errors = [
        np.abs(approximated(Hermite(width, bandwidth), X) - gaussian(X, bandwidth)).max() for width in (4, 16, 64)
    ]
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 1e-6


def test_hermite_eigenfunctions_are_orthonormal_under_the_normal_distribution():
    family = Hermite(8, 2.0)
    x, weights = np.polynomial.hermite_e.hermegauss(120)
    a, b, c = family._constants
    eigenvalues = np.sqrt(2 * a / (a + b + c)) * (b / (a + b + c)) ** np.arange(8)
    functions = family(x) * family.weights / np.sqrt(eigenvalues)
    gram = (functions.T * weights / weights.sum()) @ functions
    assert np.allclose(gram, np.eye(8), atol=1e-8)


@given(st.integers(1, 12), st.lists(st.integers(0, 11), min_size=1, max_size=20))
def test_indicators_are_the_delta_kernel_exactly(levels, codes):
    codes = np.array(codes) % levels
    family = OneHot(tuple(f"l{i}" for i in range(levels)))
    assert family.width == levels
    assert np.array_equal(approximated(family, codes), (codes[:, None] == codes).astype(float))


def test_draws_depend_on_the_seed_and_on_nothing_else():
    assert np.array_equal(Fourier(5, 1.0, 1)(X), Fourier(5, 1.0, 1)(X))
    assert not np.array_equal(Fourier(5, 1.0, 1)(X), Fourier(5, 1.0, 2)(X))
    assert np.array_equal(Fourier(5, 2.0, 1)(2 * X), Fourier(5, 1.0, 1)(X))  # the bandwidth is a unit of length


@pytest.mark.parametrize("bulk", [(), (12.0, 3.0), (9.5, 0.25)])
@pytest.mark.parametrize("family", [Hermite(), Fourier()], ids=repr)
@given(value=st.floats(-1e6, 1e6), clip=st.floats(1, 100))
def test_a_number_leads_with_its_clipped_value_and_the_square(family, bulk, value, clip):
    plan = StudyPlan((Categorical("g", ("a", "b")), Continuous("x", 10.0, 4.0, *bulk)), ("c",), family, clip)
    sums = summarize({"g": ["b"], "x": [value]}, plan, "c").moments[0] / GRID  # of one row: its features on the grid
    z = np.clip((value - 10.0) / 4.0, -clip, clip)
    assert sums[0] == GRID
    assert sums[1:3].tolist() == [0, GRID]  # the labels' indicators
    span = plan.layout.spans["x"]
    assert sums[span.start] == np.rint(z / clip * GRID)
    assert sums[span.start + 1] == np.rint((z / clip) ** 2 * GRID)
    centre, spread = bulk or (10.0, 4.0)
    clipped = np.clip(value, 10.0 - clip * 4.0, 10.0 + clip * 4.0)
    inside = np.arcsinh((clipped - centre) / spread) if family == Hermite() else z
    assert np.array_equal(sums[span.start + 2 : span.stop], np.rint(family(np.array([inside]))[0] * GRID))


# Features of a variable in the study: what its values are measured in and how heavy its tails are


def steps(values: np.ndarray, plan: StudyPlan) -> np.ndarray:
    """The features of the plan's one variable in steps of the grid, one row per value."""
    return np.array([summarize({"x": [value]}, plan, "c").moments[0, 1:] // GRID for value in values.tolist()])


def drawn(shape: str, size: int = 400) -> np.ndarray:
    rng = np.random.default_rng(8)
    normal = rng.standard_normal(size)
    return {
        "normal": normal,
        "lognormal": np.exp(2 * normal),
        "t": rng.standard_t(2, size),
        "Cauchy": rng.standard_cauchy(size),
        "one absurd value": np.append(normal[1:], 1e9),
    }[shape]


HEAVY = ["t", "lognormal", "Cauchy", "one absurd value"]


@pytest.mark.parametrize("family", [Hermite(), Fourier()], ids=repr)
@pytest.mark.parametrize("shape", ["normal", *HEAVY])
@settings(deadline=None, max_examples=5)
@given(
    factor=st.floats(1e-6, 1e6),
    offset=st.floats(-100, 100).map(lambda scales: round(scales, 3)),
    doublings=st.integers(-60, 60),
)
def test_a_change_of_units_leaves_the_features_as_they_were(shape, family, factor, offset, doublings):
    x = drawn(shape, 60)
    before = steps(x, StudyPlan.from_tables({"c": {"x": x}}, family=family))
    moved = factor * (x + offset)
    after = steps(moved, StudyPlan.from_tables({"c": {"x": moved}}, family=family))
    assert np.abs(after - before).max() <= 1  # a value between two steps of the grid may go to the other one
    assert (after != before).mean() < 0.01
    scaled = x * 2.0**doublings  # exact, so the features are
    assert np.array_equal(steps(scaled, StudyPlan.from_tables({"c": {"x": scaled}}, family=family)), before)


@pytest.mark.parametrize("shape", ["normal", *HEAVY])
def test_a_change_of_direction_turns_the_odd_features_around(shape):
    x = drawn(shape, 60)
    forth, back = (steps(values, StudyPlan.from_tables({"c": {"x": values}})) for values in (x, -x))
    assert np.abs(back - forth * np.array([-1, 1, 1, -1, 1, -1])).max() <= 1


def explained(features: np.ndarray, target: np.ndarray) -> float:
    design = np.column_stack([np.ones(len(target)), features])
    left = target - design @ np.linalg.lstsq(design, target, rcond=None)[0]
    return float(1 - left.var() / target.var())


@pytest.mark.parametrize("shape", HEAVY)
def test_heavy_tails_do_not_hide_the_bulk(shape):
    """What happens within a few quartiles of the median is seen, however far out the largest values are."""
    x = drawn(shape)
    low, median, high = np.quantile(x, [0.25, 0.5, 0.75])
    u = (x - median) / (high - low)
    plan = StudyPlan.from_tables({"c": {"x": 1000 + 5 * x}})
    (variable,) = plan.variables
    features = steps(1000 + 5 * x, plan)
    by_scale = steps(1000 + 5 * x, replace(plan, variables=(Continuous("x", variable.location, variable.scale),)))
    for effect in (np.tanh(u), np.exp(-(u**2) / 2)):
        assert explained(features, effect) > 0.95
        assert explained(features, effect) > explained(by_scale, effect)
    assert np.abs(u).max() > 5  # the tails are heavy
    bulk = features[(low <= x) & (x <= high)]
    assert bulk[:, 0].std() > 200  # and yet the value itself keeps its digits


@pytest.mark.parametrize("outlier", [1e6, -1e9, 1e100])
def test_one_absurd_value_leaves_the_features_of_the_others(outlier):
    x = drawn("normal", 200)
    plain, robust = (StudyPlan.from_tables({"c": {"x": values}}) for values in (x, np.append(x, outlier)))
    assert np.abs(steps(x, robust) - steps(x, plain))[:, 2:].max() < 0.05 * GRID
