"""Whether two sets of rows are the same, nearly the same or others, from a few thousand numbers about each.

Every value is hashed under a secret of the site, and counts +1 or −1 in one of `N_BUCKETS` buckets; both are read off the
hash. The sketch of more rows is the sum of their sketches, so order and batches make no difference, and that of the
rows that differ between two sets is the difference of the two. Absolute values of sums are at most sums of absolute
values: at least as many values differ as the buckets of the difference add up to, whatever the values are and however
often each occurs. That bound is sure; for up to a thousand values it is also close. Two sums of hashes modulo 2⁶⁴ tell
whether anything differs at all.

Names are no part of it, nor is the order of columns: a column that was renamed has the same sketch.
"""

from __future__ import annotations

import base64
import hashlib
import math
import zlib
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from fedcdh.data.sources import ColumnKind, TableSource
from fedcdh.data.table import Column, NumericColumn, Table

Words = npt.NDArray[np.uint64]
Integers = npt.NDArray[np.int64]

N_BUCKETS = 4096
"""`benchmarks.bench_ledger` measures what so many can tell."""
_BLOCK_CELLS = 1 << 18  # at a time: what a cache holds
_COUNT_TYPES = {"1": "i1", "2": "<i2", "4": "<i4"}
_SHARING_STANDARD_ERRORS = 4  # standard errors
_MAX_SINGLE_BUCKETS = 20
_MAX_DISTINCT_RATIO = 1.5
"""Squares of multiplicities over their number, up to which a column has nearly as many values as rows."""


@dataclass(frozen=True, eq=False)
class ValueSketch:
    """What is remembered of a column's values, or of rows."""

    values: int
    check: tuple[int, int]
    counts: Integers

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ValueSketch):
            return NotImplemented
        return (self.values, self.check) == (other.values, other.check) and np.array_equal(self.counts, other.counts)

    def __add__(self, other: ValueSketch) -> ValueSketch:
        """That of both sets of values."""
        check = _modulo_word(self.check[0] + other.check[0]), _modulo_word(self.check[1] + other.check[1])
        return ValueSketch(self.values + other.values, check, self.counts + other.counts)

    def changed(self, other: ValueSketch) -> int:
        """At least so many values stand in one and not in the other, each time they do; 0 only for the same values."""
        if (self.values, self.check) == (other.values, other.check):
            return 0
        return max(1, abs(self.values - other.values), int(np.abs(self.counts - other.counts).sum()))

    def net(self, other: ValueSketch) -> Integers:
        """How many more there are here than there, per bucket that changed: for few different values, per value."""
        difference = np.abs(self.counts - other.counts)
        return np.asarray(difference[difference > 0])

    def shares(self, other: ValueSketch) -> bool:
        """Whether the two surely have rows in common.

        Two draws of n_a and n_b from one distribution p without a row in common have the squared distance
        (n_a + n_b)(1 − Σ p²) + (n_a − n_b)² Σ p², give or take what buckets, and few different values, leave to chance.
        Common rows take from it; another distribution adds to it.
        """
        repeats = max(self._repeats, other._repeats)
        expected = (self.values + other.values) * (1 - repeats)
        grown = (self.values - other.values) ** 2 * repeats
        distance = float(((self.counts - other.counts) ** 2).sum())
        chance = math.sqrt(2 / N_BUCKETS + 2 * repeats)
        return expected + grown - distance > _SHARING_STANDARD_ERRORS * chance * (expected + grown)

    @property
    def distinct(self) -> bool:
        """Whether nearly every value stands there once, so that changes cannot cancel."""
        return self._squares <= _MAX_DISTINCT_RATIO * self.values

    @property
    def few(self) -> bool:
        """Whether there are so few different values that each has a bucket of its own, nearly surely."""
        return int(np.count_nonzero(self.counts)) <= _MAX_SINGLE_BUCKETS

    @cached_property
    def _squares(self) -> float:
        return float((self.counts**2).sum())

    @property
    def _repeats(self) -> float:
        """Σ p²: the probability that two values are one and the same."""
        return max(0.0, (self._squares - self.values) / max(1, self.values * (self.values - 1)))

    def to_document(self) -> dict[str, Any]:
        """For a line of JSON."""
        most = int(np.abs(self.counts).max())
        width = next(width for width in _COUNT_TYPES if most < 1 << (8 * int(width) - 1))
        packed = zlib.compress(self.counts.astype(_COUNT_TYPES[width]).tobytes(), 6)
        return {
            "values": self.values,
            "check": "".join(f"{word:016x}" for word in self.check),
            "counts": width + base64.b64encode(packed).decode("ascii"),
        }

    @classmethod
    def from_document(cls, found: Mapping[str, Any]) -> ValueSketch:
        """What `to_document` wrote; ValueError, LookupError or TypeError for anything else."""
        kind, packed = _COUNT_TYPES[found["counts"][0]], base64.b64decode(found["counts"][1:], validate=True)
        try:
            unpacked = zlib.decompressobj().decompress(packed, N_BUCKETS * 4 + 1)
        except zlib.error as problem:
            raise ValueError(str(problem)) from None
        counts = np.frombuffer(unpacked, dtype=kind).astype(np.int64)
        if counts.shape != (N_BUCKETS,) or len(found["check"]) != 32 or type(found["values"]) is not int:
            raise ValueError("a sketch has other parts")
        check = int(found["check"][:16], 16), int(found["check"][16:], 16)
        return cls(found["values"], check, counts)


EMPTY_SKETCH = ValueSketch(0, (0, 0), np.zeros(N_BUCKETS, dtype=np.int64))


class RowSketcher:
    """Sketches of the columns of complete rows, and of the rows themselves, while they come by.

    `a + b`, of two with the same secret, has seen the rows of both.
    """

    def __init__(self, secret: bytes) -> None:
        self._hash = _KeyedHash(secret)
        self.columns: dict[str, ValueSketch] = {}
        self.rows = EMPTY_SKETCH

    def __call__(self, table: Table) -> None:
        """Adds complete rows."""
        count = max(1, _BLOCK_CELLS // max(1, len(table.columns)))
        for start in range(0, table.rows, count):
            part = table.slice_rows(start, count)
            words = self._hash.columns(list(part.columns.values()))
            self._add(part.names, words)
            (rows,) = self._hash.sketches(self._hash.mixed(words.sum(axis=0, keepdims=True, dtype=np.uint64)))
            self.rows += rows

    def add_values(self, table: Table) -> None:
        """Adds the values of every column that are not missing, each column by itself."""
        for name, column in table.columns.items():
            present = column.take(~column.missing)
            for start in range(0, len(present), _BLOCK_CELLS):
                self._add([name], self._hash.columns([present.slice_rows(slice(start, start + _BLOCK_CELLS))]))

    def __add__(self, other: RowSketcher) -> RowSketcher:
        both = copy(self)
        names = dict.fromkeys((*self.columns, *other.columns))
        both.columns = {
            name: self.columns.get(name, EMPTY_SKETCH) + other.columns.get(name, EMPTY_SKETCH) for name in names
        }
        both.rows = self.rows + other.rows
        return both

    def hash_text(self, text: str) -> str:
        """A name for a text, such as a label, that does not show it."""
        return f"{self._hash.text(text):016x}"

    def _add(self, names: Sequence[str], words: Words) -> None:
        for name, sketch in zip(names, self._hash.sketches(words), strict=True):
            self.columns[name] = self.columns.get(name, EMPTY_SKETCH) + sketch


def sketch_values(source: TableSource, kinds: Mapping[str, ColumnKind], secret: bytes) -> dict[str, ValueSketch]:
    """Of all values of every column, in one pass over the rows; for what describes columns one by one."""
    sketcher = RowSketcher(secret)
    for batch in source.batches(kinds):
        sketcher.add_values(batch)
    return sketcher.columns


class _KeyedHash:
    """64 bits for every value, which nobody can compute who does not know the secret."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._keys = np.frombuffer(hashlib.sha256(b"fedcdh sketch" + secret).digest(), dtype="<u8").astype(np.uint64)

    def columns(self, columns: Sequence[Column]) -> Words:
        """Columns × rows. A label that is a number counts as that number: what a column is read as makes no
        difference."""
        words = np.empty((len(columns), len(columns[0])), dtype=np.uint64)
        for place, column in zip(words, columns, strict=True):
            if isinstance(column, NumericColumn):
                np.add(column.values, 0.0, out=place.view(np.float64))  # 0.0, and not -0.0
            elif len(column):
                place[:] = np.array([self._label(level) for level in column.levels], dtype=np.uint64)[column.codes]
        return self.mixed(words)

    def mixed(self, words: Words) -> Words:
        """Each word to another one, in place, all bits of which depend on all bits of it and of the secret."""
        words ^= self._keys[0]
        _mix_bits(words)
        words += self._keys[1]
        return _mix_bits(words)

    def sketches(self, words: Words) -> list[ValueSketch]:
        """Of columns of values with these hashes."""
        places = words >> np.uint64(33 - N_BUCKETS.bit_length())
        places &= np.uint64(N_BUCKETS)  # bit 32, the sign, above those of the bucket
        places |= words & np.uint64(N_BUCKETS - 1)
        places += np.arange(len(words), dtype=np.uint64)[:, None] * np.uint64(2 * N_BUCKETS)
        counts = np.bincount(places.view(np.int64).ravel(), minlength=len(words) * 2 * N_BUCKETS)
        signed = counts.reshape(len(words), 2, N_BUCKETS)
        checks = zip(_sum_columns(words), _sum_columns(_mix_bits(words ^ self._keys[2])), strict=True)
        each = zip(checks, signed[:, 0] - signed[:, 1], strict=True)
        return [ValueSketch(words.shape[1], check, counts) for check, counts in each]

    def _label(self, level: str) -> int:
        number = _parse_number(level)
        if number is not None:
            return int(np.float64(number + 0.0).view(np.uint64))
        return self.text(level)

    def text(self, text: str) -> int:
        """64 bits for a text."""
        digest = hashlib.blake2b(text.encode("utf-8"), digest_size=8, key=self._secret[:64]).digest()
        return int.from_bytes(digest, "little")


def _parse_number(level: str) -> float | None:
    try:
        number = float(level)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _mix_bits(words: Words) -> Words:
    """In place. Multiplying carries low bits up, shifting brings high bits down; each step can be undone, so none are
    lost."""
    shifted = np.empty_like(words)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        words ^= np.right_shift(words, np.uint64(shift), out=shifted)
        words *= np.uint64(factor)
    words ^= np.right_shift(words, np.uint64(31), out=shifted)
    return words


def _sum_columns(words: Words) -> list[int]:
    """Of every column, modulo 2⁶⁴."""
    sums: list[int] = words.sum(axis=1, dtype=np.uint64).tolist()
    return sums


def _modulo_word(number: int) -> int:
    return number & ((1 << 64) - 1)


def match_columns(
    new: Mapping[str, ValueSketch], old: Mapping[str, ValueSketch], among: Iterable[str] | None = None
) -> list[tuple[str, str]]:
    """Which columns of two releases are the same: those of one name, and those that were renamed.

    A renamed column has the very same values or, where nearly every value stands there once, values in common. Columns
    of few different values are alike without being the same, so there only the very same ones count.
    """
    known = [(name, name) for name in new if name in old]
    left = [name for name in old if name not in new]
    for name in (name for name in (new if among is None else among) if name not in old):
        sketch = new[name]
        for other in left:
            if _is_renamed(sketch, old[other]):
                known.append((name, other))
                left.remove(other)
                break
    return known


def _is_renamed(one: ValueSketch, other: ValueSketch) -> bool:
    return not one.changed(other) or (one.distinct and other.distinct and one.shares(other))
