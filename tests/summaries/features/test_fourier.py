"""Random Fourier features: the Gaussian kernel of the paper."""

from __future__ import annotations

import numpy as np

from fedcdh.summaries.features import Fourier, Hermite, OneHot

X = np.linspace(-3, 3, 61)


def gaussian(x: np.ndarray, bandwidth: float) -> np.ndarray:
    return np.exp(-((x[:, None] - x) ** 2) / (2 * bandwidth**2))


def approximated(family: Fourier | Hermite | OneHot, x: np.ndarray) -> np.ndarray:
    weighted = family(x) * family.weights
    return weighted @ weighted.T


def test_random_features_approach_the_gaussian_kernel_as_they_get_more():
    def error(width: int) -> float:
        exact = gaussian(X, 1.5)
        return float(np.mean([np.abs(approximated(Fourier(width, 1.5, seed), X) - exact).mean() for seed in range(30)]))

    errors = [error(width) for width in (4, 16, 64)]
    assert errors[0] > 1.7 * errors[1] > 1.7**2 * errors[2]  # 1/√width would be a factor of 2
    assert errors[2] < 0.12
    mean = np.mean([approximated(Fourier(64, 1.5, seed), X) for seed in range(200)], axis=0)
    assert np.abs(mean - gaussian(X, 1.5)).max() < 0.05  # no bias


def test_draws_depend_on_the_seed_and_on_nothing_else():
    assert np.array_equal(Fourier(5, 1.0, 1)(X), Fourier(5, 1.0, 1)(X))
    assert not np.array_equal(Fourier(5, 1.0, 1)(X), Fourier(5, 1.0, 2)(X))
    assert np.array_equal(Fourier(5, 2.0, 1)(2 * X), Fourier(5, 1.0, 1)(X))  # the bandwidth is a unit of length
