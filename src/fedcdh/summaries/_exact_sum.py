"""Exact sums of floating-point numbers, in any order and in any batches."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt

MAX_BUFFERED = 4096
"""Up to this number of values, `math.fsum` is faster than integer arithmetic."""

_MAX_FSUM_VALUE = 1e300  # `math.fsum` fails where an intermediate sum overflows
_HALF_BITS = 27  # bits: sums of half mantissas of up to 2²⁶ numbers stay whole in float64
_MAX_CHUNK = 1 << 26
_EXPONENTS = 2200  # frexp gives exponents from -1073 to 1024
_OFFSET = 1100


class ExactSum:
    """Adds mantissas per exponent, in integers; only `value` rounds, once, to the nearest number.

    >>> total = ExactSum()
    >>> total.add(np.array([1e300, 1.0, -1e300]))
    >>> total.value
    1.0
    """

    def __init__(self) -> None:
        self._buffered: list[float] = []
        self._by_exponent: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]] | None = None

    def add(self, values: npt.NDArray[np.float64]) -> None:
        """Add finite numbers."""
        if (
            self._by_exponent is None
            and len(self._buffered) + len(values) <= MAX_BUFFERED
            and np.all(np.abs(values) < _MAX_FSUM_VALUE)
        ):
            self._buffered += values.tolist()
            return
        if self._by_exponent is None:
            self._by_exponent = np.zeros(_EXPONENTS, dtype=np.int64), np.zeros(_EXPONENTS, dtype=np.int64)
            self._add(np.array(self._buffered, dtype=np.float64), *self._by_exponent)
        for start in range(0, len(values), _MAX_CHUNK):
            self._add(values[start : start + _MAX_CHUNK], *self._by_exponent)

    @property
    def value(self) -> float:
        """Return the correctly rounded sum, as `math.fsum` does."""
        if self._by_exponent is None:
            return math.fsum(self._buffered)
        high, low = self._by_exponent
        scaled = sum(
            ((int(high[place]) << _HALF_BITS) + int(low[place])) << int(place) for place in np.flatnonzero(high | low)
        )
        return float(Fraction(scaled, 1 << (_OFFSET + 53)))

    @staticmethod
    def _add(values: npt.NDArray[np.float64], highs: npt.NDArray[np.int64], lows: npt.NDArray[np.int64]) -> None:
        fractions, exponents = np.frexp(values)
        mantissas = np.ldexp(fractions, 53).astype(np.int64)
        places = exponents.astype(np.intp) + _OFFSET
        high = mantissas >> _HALF_BITS
        low = mantissas - (high << _HALF_BITS)
        highs += np.bincount(places, weights=high, minlength=_EXPONENTS).astype(np.int64)
        lows += np.bincount(places, weights=low, minlength=_EXPONENTS).astype(np.int64)
