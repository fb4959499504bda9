"""Keys of rows, and random numbers that depend on nothing else.

The number drawn for a gap is a hash of the values that the row has, of its place among equal rows, and of the
variable. So the order of rows, batches and threads does not change it, and neither does another plan: a second plan
about the same rows does not draw anew.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fedcdh._runtime.array_types import Array

Keys = npt.NDArray[np.uint64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_GAP = np.uint64(0x7FF8000000000001)  # in place of the bits of a missing value


def hash_name(text: str) -> np.uint64:
    """Return 64 bits of the SHA-256 of a text."""
    return np.uint64(int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little"))


def row_keys(names: Sequence[str], values: Array) -> Keys:
    """Return a key of the content of every row.

    Parameters
    ----------
    names : sequence of str
        Names of the variables.
    values : array
        Variables × rows, nan where a value is missing.

    Returns
    -------
    array of uint64
        Equal rows have equal keys.

    Examples
    --------
    >>> a, b, c = row_keys(["x", "y"], np.array([[1.0, 1.0, 1.0], [np.nan, 2.0, np.nan]]))
    >>> bool(a == c), bool(a == b)
    (True, False)
    """
    keys = np.zeros(values.shape[1], dtype=np.uint64)
    for name, column in zip(names, values, strict=True):
        bits = np.where(np.isnan(column), _GAP, (column + 0.0).view(np.uint64))  # -0.0 is 0.0
        keys = _mix(keys ^ _mix(bits ^ hash_name(name)))
    return keys


def draw_uniform(keys: Keys, purpose: str) -> Array:
    """Return a number in [0, 1) for every key, another one for every purpose.

    Parameters
    ----------
    keys : array of uint64
        Keys of rows.
    purpose : str
        What the number is for.

    Returns
    -------
    array of float
        One number per key.
    """
    return np.asarray((_mix(keys ^ hash_name(purpose)) >> np.uint64(11)) * 2.0**-53)


def number_keys(keys: Keys, numbers: npt.NDArray[np.int64]) -> Keys:
    """Return the keys of rows and of their numbers among rows with the same key."""
    return _mix(keys + numbers.astype(np.uint64) * _GOLDEN)


def _mix(keys: Keys) -> Keys:
    """Return the finaliser of SplitMix64, a bijection of 64 bits."""
    mixed = keys + _GOLDEN
    mixed = (mixed ^ (mixed >> np.uint64(30))) * _FIRST
    mixed = (mixed ^ (mixed >> np.uint64(27))) * _SECOND
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))
