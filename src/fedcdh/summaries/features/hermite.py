"""The leading Mercer eigenfunctions of the Gaussian kernel: not random, and as good as many more random features."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from fedcdh._runtime.array_types import Array

_SEARCH_GRID = np.linspace(-12.0, 12.0, 2401)  # holds the extremes of all eigenfunctions


@dataclass(frozen=True)
class Hermite:
    """The leading eigenfunctions of the Gaussian kernel under the standard normal distribution.

    Attributes
    ----------
    width : int, default 4
        Number of eigenfunctions.
    bandwidth : float, default 2.0
        Bandwidth σ of the kernel.

    Notes
    -----
    k(x, y) = exp(−(x−y)²/2σ²) = Σ_j λ_j e_j(x) e_j(y), with e_j orthonormal under x ~ N(0, 1): e_j(x) ∝
    exp(−(c−a)x²) H_j(√(2c) x) and λ_j = √(2a/A) (b/A)^j, where a = 1/4, b = 1/2σ², c = √(a² + 2ab) and A = a + b + c.

    Examples
    --------
    >>> Hermite(width=3)(np.array([0.0])).shape
    (1, 3)
    """

    compresses_tails: ClassVar[bool] = True  # the encoder passes arcsinh of the values
    width: int = 4
    bandwidth: float = 2.0

    def __call__(self, x: Array) -> Array:
        """Return the eigenfunctions, each scaled to at most 1 in size; `weights` undoes the scaling."""
        return np.stack(list(self.iter_columns(x)), axis=-1)

    def iter_columns(self, x: Array) -> Iterator[Array]:
        """Yield one column after the other, each as an array of its own.

        Parameters
        ----------
        x : array
            Standardised values.

        Yields
        ------
        array
            Values of the next eigenfunction, scaled to at most 1 in size.
        """
        for function, scale in zip(self._eigenfunctions(x), self._scales, strict=True):
            scaled = function * scale
            yield np.clip(scaled, -1.0, 1.0, out=scaled)

    @property
    def weights(self) -> Array:
        """Return the weights of the columns in the kernel."""
        a, b, c = self._constants
        total = a + b + c
        eigenvalues = np.sqrt(2 * a / total) * (b / total) ** np.arange(self.width)
        return np.asarray(np.sqrt(eigenvalues) / self._scales)

    @property
    def derivative_recurrence(self) -> tuple[float, Array]:
        """Return the constants d and c_j of f_j' = −d x f_j + c_j f_{j−1}, for the scaled eigenfunctions f_j."""
        a, _, c = self._constants
        rises = [np.sqrt(4 * c * j) * self._scales[j] / self._scales[j - 1] for j in range(1, self.width)]
        return 2 * (c - a), np.array([0.0, *rises])

    @property
    def _constants(self) -> tuple[float, float, float]:
        a, b = 0.25, 0.5 / self.bandwidth**2
        return a, b, float(np.sqrt(a * a + 2 * a * b))

    @cached_property
    def _scales(self) -> Array:
        """Return powers of two, so that scaling is exact and does not depend on the last digit of a maximum."""
        largest = np.array([np.abs(function).max() for function in self._eigenfunctions(_SEARCH_GRID)])
        return np.asarray(2.0 ** -np.ceil(np.log2(largest)), dtype=np.float64)

    def _eigenfunctions(self, x: Array) -> Iterator[Array]:
        a, _, c = self._constants
        z = np.sqrt(2 * c) * x
        # (2c/2a)^(1/4) makes them orthonormal under N(0, 1); the recurrence is that of H_j / √(2^j j!)
        before, last = np.zeros_like(x), (c / a) ** 0.25 * np.exp(-(c - a) * x * x)
        yield last
        for j in range(1, self.width):
            before, last = last, np.sqrt(2.0 / j) * z * last - np.sqrt((j - 1) / j) * before
            yield last
