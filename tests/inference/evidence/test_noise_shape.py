"""The evidence of a free density: none for normal noise, nearly all that there is for other noise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from fedcdh.inference.evidence.noise_shape import ShapeMoments, density_weights, shape_evidence
from fedcdh.summaries.residuals.functions import SHAPE_FUNCTIONS, shape_functions

ROWS, SAMPLES = 1000, 20
BUMP = 0.35  # standard deviation of each of two bumps, with variance one together
NORMAL_ENTROPY = 0.5 * np.log(2 * np.pi * np.e)


def standardised(z: np.ndarray) -> np.ndarray:
    return (z - z.mean(axis=1, keepdims=True)) / z.std(axis=1, keepdims=True)


def evidence(z: np.ndarray) -> np.ndarray:
    """Return the factor of every row of residuals."""
    means = shape_functions(z).mean(axis=2).T
    return shape_evidence(ShapeMoments(means, (z**2).mean(axis=1), np.full(len(z), float(z.shape[1]))))


def two_bumps(rng: np.random.Generator, size: tuple[int, int]) -> np.ndarray:
    return rng.choice([-1, 1], size=size) * np.sqrt(1 - BUMP**2) + BUMP * rng.standard_normal(size)


def bump_entropy() -> float:
    grid, step = np.linspace(-6, 6, 12001, retstep=True)
    place = np.sqrt(1 - BUMP**2)
    density = (stats.norm.pdf(grid, -place, BUMP) + stats.norm.pdf(grid, place, BUMP)) / 2
    return float(-(density * np.log(density)).sum() * step)


NOISE = {
    "exponential": lambda rng, size: rng.exponential(size=size),
    "uniform": lambda rng, size: rng.random(size),
    "Student": lambda rng, size: rng.standard_t(3, size=size),
    "two bumps": two_bumps,
}
ENTROPY = {"exponential": 1.0, "uniform": 0.5 * np.log(12), "two bumps": bump_entropy()}
"""Entropies of the densities with variance one, in nats."""


def drawn(name: str, rows: int = ROWS, samples: int = SAMPLES, seed: int = 0) -> np.ndarray:
    return standardised(NOISE[name](np.random.default_rng(seed), (samples, rows)))


@pytest.mark.parametrize("rows", [100, 300, 1000, 5000])
def test_normal_noise_has_no_shape(rows):
    """Each family has half its prior probability on normal noise, so the factor is above log ½."""
    found = evidence(standardised(np.random.default_rng(rows).standard_normal((60, rows))))
    assert found.min() >= np.log(0.5) - 1e-9
    assert found.max() < 3
    assert found.mean() < 0


@pytest.mark.parametrize("name", NOISE)
def test_other_noise_has_one(name):
    found = evidence(drawn(name))
    assert found.min() > 40
    assert evidence(drawn(name, 4 * ROWS)).mean() > 3 * found.mean()


@pytest.mark.parametrize("name", ENTROPY)
def test_most_of_the_difference_in_entropy_is_found(name):
    """The most that n rows can say on average is n times the difference between the entropies."""
    most = ROWS * (NORMAL_ENTROPY - ENTROPY[name])
    found = evidence(drawn(name))
    assert found.min() > 0.6 * most
    assert found.mean() < most


@pytest.mark.parametrize(("scale", "shift"), [(0.3, 0.0), (0.5, 0.4), (1.6, 0.0), (0.8, -1.5)])
def test_normal_noise_of_any_level_and_size_has_no_shape(scale, shift):
    """Some clients may not answer; the residuals of the others have another mean and variance."""
    found = evidence(shift + scale * standardised(np.random.default_rng(7).standard_normal((30, 500))))
    assert found.max() < 3


@pytest.mark.parametrize("name", NOISE)
def test_mirrored_noise_has_the_same_evidence(name):
    z = drawn(name, 300)
    assert evidence(-z) == pytest.approx(evidence(z), abs=1e-6)


def test_regressions_do_not_influence_each_other():
    """Newton's method stops when all are within a hundredth; together they may go on a little longer."""
    rng = np.random.default_rng(1)
    z = standardised(np.concatenate([rng.standard_normal((200, 100)), rng.exponential(size=(200, 100))]))
    together = evidence(z)
    assert together.shape == (400,)
    assert together[::-1] == pytest.approx(evidence(z[::-1]), abs=0.1)
    assert together[::40] == pytest.approx(np.concatenate([evidence(one[None]) for one in z[::40]]), abs=0.1)
    assert shape_evidence(ShapeMoments(np.zeros((0, SHAPE_FUNCTIONS)), np.zeros(0), np.zeros(0))).shape == (0,)


DEGENERATE = {
    "all zero": np.zeros((1, 50)),
    "all at the clip": np.full((1, 50), 9.0),
    "all beyond the clip": np.full((1, 50), -1e6),
    "two values": np.tile([-1.0, 1.0], 25)[None],
    "both clips": np.tile([-9.0, 9.0], 25)[None],
    "one outlier": np.append(np.zeros(49), 9.0)[None],
    "one row": np.array([[0.3]]),
}


@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_residuals_have_finite_evidence(name):
    z = DEGENERATE[name]
    means = shape_functions(z).mean(axis=2).T
    for squares in ((z**2).mean(axis=1), np.ones(1)):
        assert np.isfinite(shape_evidence(ShapeMoments(means, squares, np.full(len(squares), float(z.shape[1]))))).all()


@settings(max_examples=40)
@given(arrays(np.float64, st.tuples(st.just(1), st.integers(1, 30)), elements=st.floats(-100, 100)))
def test_any_residuals_have_finite_evidence(z):
    assert np.isfinite(evidence(z)).all()


@pytest.mark.parametrize("seed", range(3))
def test_density_weights_are_the_log_ratio_to_the_normal_density(seed):
    """Mean over rows of the log ratio, up to its constant, beside that of the true density: exponential noise."""
    z = np.random.default_rng(seed).exponential(size=4000) - 1
    z /= z.std()
    functions = shape_functions(z)
    (weights,) = density_weights(ShapeMoments(functions.mean(1)[None], np.ones(1), np.full(1, 4000.0)))
    fitted, true = weights @ functions, -(z + 1) + z**2 / 2
    assert np.corrcoef(fitted, true)[0, 1] > 0.9


def test_density_weights_of_normal_noise_are_zero():
    z = np.random.default_rng(0).standard_normal(4000)
    functions = shape_functions((z - z.mean()) / z.std())
    (weights,) = density_weights(ShapeMoments(functions.mean(1)[None], np.ones(1), np.full(1, 4000.0)))
    assert not weights.any()
