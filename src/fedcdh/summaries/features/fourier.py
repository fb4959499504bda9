"""Random Fourier features, the family of the paper (Lemma 7)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from fedcdh._runtime.array_types import Array
from fedcdh.errors import PlanError


@dataclass(frozen=True)
class Fourier:
    """Random Fourier features of the Gaussian kernel.

    All variables share the same frequencies and phases. Frequencies per name would make the result depend on the
    names of variables, and frequencies per position on the order of the columns.

    Attributes
    ----------
    width : int, default 5
        Number h of features.
    bandwidth : float, default 1.0
        Bandwidth σ of the kernel.
    seed : int, default 0
        Seed of the random frequencies and phases.

    Notes
    -----
    √(2/h) cos(w x + b) with w ~ N(0, 1/σ²) and b ~ U(0, 2π) approximates exp(−(x−y)²/2σ²).

    Examples
    --------
    >>> Fourier(width=3)(np.array([0.0])).shape
    (1, 3)
    """

    compresses_tails: ClassVar[bool] = False  # the kernel of the paper is one of the standardised value
    width: int = 5
    bandwidth: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.seed, int) or self.seed < 0:
            raise PlanError(
                f"the seed of the features is {self.seed!r}; expected a whole number from 0 upwards", parameter="seed"
            )

    def __call__(self, x: Array) -> Array:
        """Return the columns cos(w_j x + b_j); the factor √(2/h) is in `weights`."""
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
            cos(w_j x + b_j) for the next j.
        """
        for frequency, phase in zip(*self.frequencies_and_phases, strict=True):
            inside = x * frequency
            inside += phase
            yield np.cos(inside, out=inside)

    @cached_property
    def frequencies_and_phases(self) -> tuple[Array, Array]:
        """Return the frequencies w_j and the phases b_j."""
        rng = np.random.default_rng([self.seed, 0x0F])
        frequencies = rng.standard_normal(self.width) / self.bandwidth
        return frequencies, rng.uniform(0.0, 2 * np.pi, self.width)

    @property
    def weights(self) -> Array:
        """Return the weights of the columns in the kernel."""
        return np.full(self.width, np.sqrt(2.0 / self.width))
