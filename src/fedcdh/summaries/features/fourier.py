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
    """√(2/h) cos(w x + b) with w ~ N(0, 1/σ²), b ~ U(0, 2π): a random approximation of exp(−(x−y)²/2σ²).

    All variables share the same draws. A draw per name would make the result depend on what a variable is called, a
    draw per position on where it stands in the table.
    """

    compresses_tails: ClassVar[bool] = False  # the paper's kernel is one of the standardised value
    width: int = 5
    bandwidth: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.seed, int) or self.seed < 0:
            raise PlanError(f"a seed is a whole number from 0 upwards, found {self.seed!r}")

    def __call__(self, x: Array) -> Array:
        """The columns cos(w_j x + b_j); the factor √(2/h) is in `weights`."""
        return np.stack(list(self.iter_columns(x)), axis=-1)

    def iter_columns(self, x: Array) -> Iterator[Array]:
        """One column after the other, each an array of its own."""
        for frequency, phase in zip(*self._draws, strict=True):
            inside = x * frequency
            inside += phase
            yield np.cos(inside, out=inside)

    @cached_property
    def _draws(self) -> tuple[Array, Array]:
        """Frequencies and phases."""
        rng = np.random.default_rng([self.seed, 0x0F])
        frequencies = rng.standard_normal(self.width) / self.bandwidth
        return frequencies, rng.uniform(0.0, 2 * np.pi, self.width)

    @property
    def weights(self) -> Array:
        return np.full(self.width, np.sqrt(2.0 / self.width))
