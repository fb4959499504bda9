"""A sample of the rows of a site in bounded memory: those with the smallest keys, each with its count.

Which rows are in it depends on their content only, so it is the same for any order of rows and any batches. A site with
fewer different rows than the sample can hold is in it as a whole.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedcdh._runtime.array_types import Array
from fedcdh.summaries.imputation.row_keys import Keys

MAX_SAMPLE_ROWS = 2000
"""Different rows from which a site's models are fitted."""
MAX_COUNTED_KEYS = 1 << 18
"""Different rows with gaps whose repetitions are numbered; with more, those with larger keys are not."""


@dataclass(frozen=True)
class RowSample:
    """Different rows with the smallest keys, sorted by key.

    Attributes
    ----------
    keys : array of uint64
        Their keys.
    values : array
        Variables × rows, nan where a value is missing.
    counts : array of int
        How often each occurs.
    limit : int
        Number of rows to keep.

    Examples
    --------
    >>> from fedcdh.summaries.imputation.row_keys import row_keys
    >>> values = np.array([[1.0, 2.0, 1.0]])
    >>> sample = RowSample.empty(1).add(row_keys(["x"], values), values)
    >>> sorted(zip(sample.values[0].tolist(), sample.counts.tolist()))
    [(1.0, 2), (2.0, 1)]
    """

    keys: Keys
    values: Array
    counts: npt.NDArray[np.int64]
    limit: int = MAX_SAMPLE_ROWS

    @classmethod
    def empty(cls, variables: int, limit: int = MAX_SAMPLE_ROWS) -> RowSample:
        """Return a sample without rows."""
        return cls(np.zeros(0, np.uint64), np.zeros((variables, 0)), np.zeros(0, np.int64), limit)

    @property
    def is_whole(self) -> bool:
        """Return whether all different rows are in the sample, as long as it has room for one more."""
        return len(self.keys) < self.limit

    def add(self, keys: Keys, values: Array) -> RowSample:
        """Return the sample with further rows."""
        if not self.is_whole:
            near = keys <= self.keys[-1]
            keys, values = keys[near], values[:, near]
        everything = np.concatenate([self.keys, keys])
        found, first, inverse = np.unique(everything, return_index=True, return_inverse=True)
        ones = np.ones(len(keys), np.int64)
        counts = np.bincount(inverse, np.concatenate([self.counts, ones]), minlength=len(found)).astype(np.int64)
        kept = slice(None, self.limit)
        together = np.concatenate([self.values, values], axis=1)[:, first[kept]]
        return RowSample(found[kept], together, counts[kept], self.limit)


class RepetitionCounter:
    """Numbers equal rows 0, 1, 2, ..., in the order in which they come.

    Parameters
    ----------
    largest : int
        Largest key whose rows are numbered; the others have the number 0.

    Examples
    --------
    >>> RepetitionCounter(9)(np.array([3, 3, 5, 3], dtype=np.uint64)).tolist()
    [0, 1, 0, 2]
    """

    def __init__(self, largest: int) -> None:
        self._largest, self._seen = np.uint64(largest), dict[int, int]()

    def __call__(self, keys: Keys) -> npt.NDArray[np.int64]:
        """Return the number of each of these rows among all equal rows so far."""
        numbers = np.zeros(len(keys), np.int64)
        for place in np.flatnonzero(keys <= self._largest).tolist():
            key = int(keys[place])
            numbers[place] = self._seen.get(key, 0)
            self._seen[key] = int(numbers[place]) + 1
        return numbers
