"""Sketches: whether two sets of rows are the same, nearly the same or different, from 4,096 counters about each.

Every value is hashed under a secret of the site, and adds +1 or −1 to one of `N_BUCKETS` buckets; the hash decides
both. The sketch of a union is the sum of the sketches, so order and batches do not matter, and the difference of two
sketches is that of the rows that differ. Absolute values of sums are at most sums of absolute values. So at least as
many values differ as the absolute differences of the buckets add up to, whatever the values and their multiplicities
are. That bound always holds; up to a thousand values it is also close. Two sums of hashes modulo 2⁶⁴ decide whether
anything differs at all.

Neither the names nor the order of columns enter: a renamed column has the same sketch.
"""

from __future__ import annotations

import base64
import hashlib
import math
import zlib
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from fedcdh.data.columns import CategoricalColumn, Column, NumericColumn
from fedcdh.data.sources import ColumnKind, TableSource
from fedcdh.data.table import Table

Words = npt.NDArray[np.uint64]
Integers = npt.NDArray[np.int64]

N_BUCKETS = 4096
"""`benchmarks.bench_ledger` measures which changes this many buckets can detect."""
_GAP_LEVEL = "\0missing"
_BLOCK_CELLS = 1 << 18  # cells that are hashed at a time: they fit into a cache
_COUNT_TYPES = {"1": "i1", "2": "<i2", "4": "<i4"}
_SHARING_STANDARD_ERRORS = 4
_MAX_SINGLE_BUCKETS = 20
_MAX_DISTINCT_RATIO = 1.5
"""Largest ratio of the sum of squared multiplicities to the number of values in a column of distinct values."""


@dataclass(frozen=True, eq=False)
class ValueSketch:
    """A sketch of the values of a column, or of whole rows.

    Parameters
    ----------
    values : int
        Number of values.
    check : tuple of two int
        Two sums of hashes modulo 2⁶⁴.
    counts : array of int
        Signed count of every bucket.

    Examples
    --------
    >>> EMPTY_SKETCH.changed(EMPTY_SKETCH)
    0
    """

    values: int
    check: tuple[int, int]
    counts: Integers

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ValueSketch):
            return NotImplemented
        return (self.values, self.check) == (other.values, other.check) and np.array_equal(self.counts, other.counts)

    def __add__(self, other: ValueSketch) -> ValueSketch:
        """Return the sketch of both sets of values."""
        check = _modulo_word(self.check[0] + other.check[0]), _modulo_word(self.check[1] + other.check[1])
        return ValueSketch(self.values + other.values, check, self.counts + other.counts)

    def changed(self, other: ValueSketch) -> int:
        """Return a lower bound on the number of values that are in one set and not in the other, with multiplicity.

        Parameters
        ----------
        other : ValueSketch
            A sketch under the same secret.

        Returns
        -------
        int
            0 only if the values are the same.
        """
        if (self.values, self.check) == (other.values, other.check):
            return 0
        return max(1, abs(self.values - other.values), int(np.abs(self.counts - other.counts).sum()))

    def net_changes(self, other: ValueSketch) -> Integers:
        """Return the absolute change of every bucket that changed; for few distinct values, that of every value.

        Parameters
        ----------
        other : ValueSketch
            A sketch under the same secret.

        Returns
        -------
        array of int
            Positive numbers.
        """
        difference = np.abs(self.counts - other.counts)
        return np.asarray(difference[difference > 0])

    def shares(self, other: ValueSketch) -> bool:
        """Return whether the two sets surely have rows in common.

        Parameters
        ----------
        other : ValueSketch
            A sketch under the same secret.

        Returns
        -------
        bool
            True if the squared distance is four standard errors smaller than without common rows.

        Notes
        -----
        Two samples of sizes n_a and n_b from one distribution p without a common row have the expected squared
        distance (n_a + n_b)(1 − Σ p²) + (n_a − n_b)² Σ p². Its error comes from the buckets and from repeated values.
        Common rows reduce the distance; another distribution increases it.
        """
        repeats = max(self._repeats, other._repeats)
        expected = (self.values + other.values) * (1 - repeats)
        grown = (self.values - other.values) ** 2 * repeats
        distance = float(((self.counts - other.counts) ** 2).sum())
        chance = math.sqrt(2 / N_BUCKETS + 2 * repeats)
        return expected + grown - distance > _SHARING_STANDARD_ERRORS * chance * (expected + grown)

    @property
    def distinct(self) -> bool:
        """True if nearly all values are distinct, so that changes cannot cancel."""
        return self._squares <= _MAX_DISTINCT_RATIO * self.values

    @property
    def discrete(self) -> bool:
        """True if there are few different values, each of which almost surely has a bucket of its own."""
        return int(np.count_nonzero(self.counts)) <= _MAX_SINGLE_BUCKETS

    @cached_property
    def _squares(self) -> float:
        return float((self.counts**2).sum())

    @property
    def _repeats(self) -> float:
        """Σ p²: the probability that two values are equal."""
        return max(0.0, (self._squares - self.values) / max(1, self.values * (self.values - 1)))

    def to_document(self) -> dict[str, Any]:
        """Return the sketch as a JSON object."""
        largest = int(np.abs(self.counts).max())
        width = next(width for width in _COUNT_TYPES if largest < 1 << (8 * int(width) - 1))
        packed = zlib.compress(self.counts.astype(_COUNT_TYPES[width]).tobytes(), 6)
        return {
            "values": self.values,
            "check": "".join(f"{word:016x}" for word in self.check),
            "counts": width + base64.b64encode(packed).decode("ascii"),
        }

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> ValueSketch:
        """Read a sketch that `to_document` wrote.

        Parameters
        ----------
        document : mapping
            A JSON object.

        Returns
        -------
        ValueSketch
            The sketch.

        Raises
        ------
        ValueError, LookupError, TypeError
            If the object is anything else.
        """
        kind, packed = _COUNT_TYPES[document["counts"][0]], base64.b64decode(document["counts"][1:], validate=True)
        try:
            unpacked = zlib.decompressobj().decompress(packed, N_BUCKETS * 4 + 1)
        except zlib.error as problem:
            raise ValueError(str(problem)) from None
        counts = np.frombuffer(unpacked, dtype=kind).astype(np.int64)
        if counts.shape != (N_BUCKETS,) or len(document["check"]) != 32 or type(document["values"]) is not int:
            raise ValueError("the fields are not those of a sketch")
        check = int(document["check"][:16], 16), int(document["check"][16:], 16)
        return cls(document["values"], check, counts)


EMPTY_SKETCH = ValueSketch(0, (0, 0), np.zeros(N_BUCKETS, dtype=np.int64))


def mark_gaps(rows: Table) -> Table:
    """Return rows in which a missing value is a value of its own, so that rows with gaps can be sketched.

    Parameters
    ----------
    rows : Table
        Rows, which may have missing values.

    Returns
    -------
    Table
        The same rows; numbers may be nan, and a missing level is a level that no table can have.

    Examples
    --------
    >>> from fedcdh.data.table import to_table
    >>> mark_gaps(to_table({"sex": ["f", None]})).columns["sex"].missing.tolist()
    [False, False]
    """
    return Table({name: _mark_gaps(column) for name, column in rows.columns.items()})


def _mark_gaps(column: Column) -> Column:
    if isinstance(column, NumericColumn):
        return NumericColumn(np.where(column.missing, np.nan, column.values))  # one of the many nan
    codes = np.where(column.missing, len(column.levels), column.codes)
    return CategoricalColumn((*column.levels, _GAP_LEVEL), codes)


class RowSketcher:
    """Sketches the columns of complete rows, and the rows themselves, batch after batch.

    The sum `a + b` of two sketchers with the same secret has sketched the rows of both.

    Parameters
    ----------
    secret : bytes
        Secret of the site's ledger.

    Attributes
    ----------
    columns : dict from str to ValueSketch
        Sketch of every column.
    rows : ValueSketch
        Sketch of the rows.

    Examples
    --------
    >>> from fedcdh.data.table import to_table
    >>> sketcher = RowSketcher(b"a secret")
    >>> sketcher(to_table({"age": [50, 61, 72]}))
    >>> sketcher.rows.values
    3
    """

    def __init__(self, secret: bytes) -> None:
        self._hash = _KeyedHash(secret)
        self.columns: dict[str, ValueSketch] = {}
        self.rows = EMPTY_SKETCH

    def __call__(self, table: Table) -> None:
        """Add complete rows."""
        count = max(1, _BLOCK_CELLS // max(1, len(table.columns)))
        for start in range(0, table.rows, count):
            part = table.slice_rows(start, count)
            words = self._hash.hash_columns(list(part.columns.values()))
            self._add(part.names, words)
            (rows,) = self._hash.to_sketches(self._hash.mix(words.sum(axis=0, keepdims=True, dtype=np.uint64)))
            self.rows += rows

    def add_values(self, table: Table) -> None:
        """Add the values of every column that are not missing, each column by itself.

        Parameters
        ----------
        table : Table
            Rows, which may have missing values.
        """
        for name, column in table.columns.items():
            present = column.take(~column.missing)
            for start in range(0, len(present), _BLOCK_CELLS):
                self._add([name], self._hash.hash_columns([present.slice_rows(slice(start, start + _BLOCK_CELLS))]))

    def __add__(self, other: RowSketcher) -> RowSketcher:
        both = copy(self)
        names = dict.fromkeys((*self.columns, *other.columns))
        both.columns = {
            name: self.columns.get(name, EMPTY_SKETCH) + other.columns.get(name, EMPTY_SKETCH) for name in names
        }
        both.rows = self.rows + other.rows
        return both

    def hash_text(self, text: str) -> str:
        """Return a keyed hash of a text, such as a level, that does not reveal it.

        Parameters
        ----------
        text : str
            Any text.

        Returns
        -------
        str
            16 hexadecimal digits.
        """
        return f"{self._hash.hash_text(text):016x}"

    def _add(self, names: Sequence[str], words: Words) -> None:
        for name, sketch in zip(names, self._hash.to_sketches(words), strict=True):
            self.columns[name] = self.columns.get(name, EMPTY_SKETCH) + sketch


def sketch_values(source: TableSource, kinds: Mapping[str, ColumnKind], secret: bytes) -> dict[str, ValueSketch]:
    """Sketch all values of every column in one pass over the rows.

    Parameters
    ----------
    source : TableSource
        The rows.
    kinds : mapping from str to {"continuous", "categorical"}
        How each column is read.
    secret : bytes
        Secret of the site's ledger.

    Returns
    -------
    dict from str to ValueSketch
        Sketch of every column.
    """
    sketcher = RowSketcher(secret)
    for batch in source.batches(kinds):
        sketcher.add_values(batch)
    return sketcher.columns


class _KeyedHash:
    """64 bits for every value, which nobody can compute without the secret."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._keys = np.frombuffer(hashlib.sha256(b"fedcdh sketch" + secret).digest(), dtype="<u8").astype(np.uint64)

    def hash_columns(self, columns: Sequence[Column]) -> Words:
        """Hash columns × rows. A level that is a number counts as that number, however the column is read."""
        words = np.empty((len(columns), len(columns[0])), dtype=np.uint64)
        for place, column in zip(words, columns, strict=True):
            if isinstance(column, NumericColumn):
                np.add(column.values, 0.0, out=place.view(np.float64))  # turns -0.0 into 0.0
            elif len(column):
                levels = np.array([self._hash_level(level) for level in column.levels], dtype=np.uint64)
                place[:] = levels[column.codes]
        return self.mix(words)

    def mix(self, words: Words) -> Words:
        """Permute each word in place, so that all its bits depend on all bits of the word and of the secret."""
        words ^= self._keys[0]
        _mix_bits(words)
        words += self._keys[1]
        return _mix_bits(words)

    def to_sketches(self, words: Words) -> list[ValueSketch]:
        """Return the sketches of columns whose values have these hashes."""
        places = words >> np.uint64(33 - N_BUCKETS.bit_length())
        places &= np.uint64(N_BUCKETS)  # bit 32, the sign, above the bits of the bucket
        places |= words & np.uint64(N_BUCKETS - 1)
        places += np.arange(len(words), dtype=np.uint64)[:, None] * np.uint64(2 * N_BUCKETS)
        counts = np.bincount(places.view(np.int64).ravel(), minlength=len(words) * 2 * N_BUCKETS)
        signed = counts.reshape(len(words), 2, N_BUCKETS)
        checks = zip(_sum_columns(words), _sum_columns(_mix_bits(words ^ self._keys[2])), strict=True)
        each = zip(checks, signed[:, 0] - signed[:, 1], strict=True)
        return [ValueSketch(words.shape[1], check, counts) for check, counts in each]

    def _hash_level(self, level: str) -> int:
        number = _parse_number(level)
        if number is not None:
            return int(np.float64(number + 0.0).view(np.uint64))
        return self.hash_text(level)

    def hash_text(self, text: str) -> int:
        """Return 64 bits for a text."""
        digest = hashlib.blake2b(text.encode("utf-8"), digest_size=8, key=self._secret[:64]).digest()
        return int.from_bytes(digest, "little")


def _parse_number(level: str) -> float | None:
    try:
        number = float(level)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _mix_bits(words: Words) -> Words:
    """Mix the bits of each word in place: products carry low bits up, shifts bring high bits down.

    Each step can be undone, so no two words become equal.
    """
    shifted = np.empty_like(words)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        words ^= np.right_shift(words, np.uint64(shift), out=shifted)
        words *= np.uint64(factor)
    words ^= np.right_shift(words, np.uint64(31), out=shifted)
    return words


def _sum_columns(words: Words) -> list[int]:
    """Sum every column modulo 2⁶⁴."""
    sums: list[int] = words.sum(axis=1, dtype=np.uint64).tolist()
    return sums


def _modulo_word(number: int) -> int:
    return number & ((1 << 64) - 1)


def match_columns(new: Mapping[str, ValueSketch], old: Mapping[str, ValueSketch]) -> list[tuple[str, str]]:
    """Match the columns of two releases: those of the same name, and those that were renamed.

    A renamed column has exactly the same values or, where nearly all values are distinct, values in common. Columns of
    few different values resemble each other without being the same, so of these only identical ones match.

    Parameters
    ----------
    new, old : mapping from str to ValueSketch
        Columns of the two releases.

    Returns
    -------
    list of tuple of str
        Pairs of a name in `new` and a name in `old`.
    """
    known = [(name, name) for name in new if name in old]
    left = [name for name in old if name not in new]
    for name in (name for name in new if name not in old):
        for other in left:
            if _is_renamed(new[name], old[other]):
                known.append((name, other))
                left.remove(other)
                break
    return known


def _is_renamed(one: ValueSketch, other: ValueSketch) -> bool:
    return not one.changed(other) or (one.distinct and other.distinct and one.shares(other))
