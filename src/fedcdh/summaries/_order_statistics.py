"""The k-th smallest numbers of a column that is too large to be sorted, exactly, in a few passes.

Numbers are ordered like the 64-bit integers that `_to_keys` makes of them. A pass counts the leading bits of all
numbers; the next one uses only the numbers that begin like a wanted one, and further bits, until the rest is small
enough to be kept and sorted. Small columns take one pass.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import numpy.typing as npt

from fedcdh._runtime.array_types import Array

Keys = npt.NDArray[np.uint64]

MAX_BUFFERED_VALUES = 1 << 17
"""Numbers of one column that are kept in memory: one megabyte."""
_KEY_BITS = 64
_BITS_PER_PASS = 12  # bits that one pass resolves
_SIGN_BIT = np.uint64(1 << (_KEY_BITS - 1))


class RankSelection:
    """Finds the numbers of given ranks, counted from 0.

    >>> selection = RankSelection()
    >>> selection.add(np.array([3.0, 1.0, 2.0]))
    >>> selection.narrow([0, 2])
    {0: 1.0, 2: 3.0}
    """

    def __init__(self) -> None:
        self._bits = 0  # known leading bits of every wanted number
        self._below = {0: 0}  # these bits → number of values with smaller ones
        self._start()

    def add(self, values: Array) -> None:
        """Add a batch of numbers; all numbers have to be added once before `narrow`."""
        begin = _to_keys(values) >> np.uint64(_KEY_BITS - self._bits) if self._bits else None
        for leading in self._below:
            inside = values if begin is None else values[begin == np.uint64(leading)]
            self._size += len(inside)
            self._kept[leading].append(inside)
        if self._size > MAX_BUFFERED_VALUES:
            self._tally()

    def _tally(self) -> None:
        """Count the kept numbers by their next bits, and drop them."""
        for leading, kept in self._kept.items():
            for values in kept:
                following = (_to_keys(values) >> np.uint64(self._rest)) & np.uint64((1 << self._step) - 1)
                self._tallies[leading] += np.bincount(following.astype(np.intp), minlength=1 << self._step)
            kept.clear()

    def narrow(self, ranks: Collection[int]) -> dict[int, float] | None:
        """Return the numbers of these ranks if this pass has found them; None if all numbers have to be added again."""
        if self._size <= MAX_BUFFERED_VALUES:
            found: dict[int, float] = {}
            for leading, below in self._below.items():
                numbers = np.sort(np.concatenate([np.zeros(0), *self._kept[leading]]))
                here = [rank for rank in ranks if 0 <= rank - below < len(numbers)]
                wanted = numbers[np.array(here, dtype=np.intp) - below] + 0.0  # both zeros become 0.0
                found |= zip(here, wanted.tolist(), strict=True)
            return {rank: found[rank] for rank in ranks}
        below_next: dict[int, int] = {}
        ends_of: dict[int, int] = {}
        for leading, below in self._below.items():
            starts = below + np.concatenate([[0], np.cumsum(self._tallies[leading])])
            for rank in (rank for rank in ranks if starts[0] <= rank < starts[-1]):
                place = int(np.searchsorted(starts, rank, side="right")) - 1
                ends_of[rank] = (leading << self._step) | place
                below_next[ends_of[rank]] = int(starts[place])
        if self._rest == 0:
            ends = np.array([ends_of[rank] for rank in ranks], dtype=np.uint64)
            return dict(zip(ranks, _from_keys(ends), strict=True))
        self._bits, self._below = self._bits + self._step, below_next
        self._start()
        return None

    def _start(self) -> None:
        self._step = min(_BITS_PER_PASS, _KEY_BITS - self._bits)
        self._rest = _KEY_BITS - self._bits - self._step
        self._size = 0
        self._tallies = {leading: np.zeros(1 << self._step, dtype=np.int64) for leading in self._below}
        self._kept: dict[int, list[Array]] = {leading: [] for leading in self._below}


def _to_keys(values: Array) -> Keys:
    """Return unsigned integers in the order of the numbers; both zeros have one key."""
    bits = (np.ascontiguousarray(values) + 0.0).view(np.uint64)
    return np.where(bits & _SIGN_BIT, ~bits, bits | _SIGN_BIT)


def _from_keys(keys: Keys) -> list[float]:
    bits = np.where(keys & _SIGN_BIT, keys & ~_SIGN_BIT, ~keys)
    numbers: list[float] = bits.view(np.float64).tolist()
    return numbers
