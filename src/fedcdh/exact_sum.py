"""Sums of floating-point numbers without any error, in any order and in any batches."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

_HALF = 27  # bits: sums of half mantissas of up to 2²⁶ numbers stay whole in float64
_EXPONENTS = 2200  # frexp gives exponents from -1073 to 1024
_OFFSET = 1100


class ExactSum:
    """Adds up mantissas per exponent, in integers; only `value` rounds, once, to the nearest number.

    >>> total = ExactSum()
    >>> total.add(np.array([1e300, 1.0, -1e300]))
    >>> total.value
    1.0
    """

    def __init__(self) -> None:
        self._high = np.zeros(_EXPONENTS, dtype=np.int64)
        self._low = np.zeros(_EXPONENTS, dtype=np.int64)

    def add(self, values: npt.NDArray[np.float64]) -> None:
        """Adds finite numbers."""
        fractions, exponents = np.frexp(values)
        mantissas = np.ldexp(fractions, 53).astype(np.int64)
        places = exponents.astype(np.intp) + _OFFSET
        high = mantissas >> _HALF
        low = mantissas - (high << _HALF)
        self._high += np.bincount(places, weights=high, minlength=_EXPONENTS).astype(np.int64)
        self._low += np.bincount(places, weights=low, minlength=_EXPONENTS).astype(np.int64)

    @property
    def value(self) -> float:
        """The sum, correctly rounded: what `math.fsum` gives."""
        scaled = sum(
            ((int(self._high[place]) << _HALF) + int(self._low[place])) << int(place)
            for place in np.flatnonzero(self._high | self._low)
        )
        return float(Fraction(scaled, 1 << (_OFFSET + 53)))
