"""Hermite features: the eigenfunctions of the Gaussian kernel."""

from __future__ import annotations

import numpy as np
import pytest

from fedcdh.summaries.features import Fourier, Hermite, OneHot

X = np.linspace(-3, 3, 61)


def gaussian(x: np.ndarray, bandwidth: float) -> np.ndarray:
    return np.exp(-((x[:, None] - x) ** 2) / (2 * bandwidth**2))


def approximated(family: Fourier | Hermite | OneHot, x: np.ndarray) -> np.ndarray:
    weighted = family(x) * family.weights
    return weighted @ weighted.T


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
