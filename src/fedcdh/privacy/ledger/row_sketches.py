"""Whether two sets of rows are the same, nearly the same or others, from a few thousand numbers about each.

Every value is hashed under a secret of the site, and counts +1 or −1 in one of `BUCKETS` buckets; both are read off the
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

from fedcdh.data.sources import Kind, TableSource
from fedcdh.data.table import Column, Numbers, Table

Words = npt.NDArray[np.uint64]
Integers = npt.NDArray[np.int64]

BUCKETS = 4096
"""`benchmarks.bench_ledger` measures what so many can tell."""
_CELLS = 1 << 18  # at a time: what a cache holds
_WIDTHS = {"1": "i1", "2": "<i2", "4": "<i4"}
_SURE = 4  # standard errors
_FEW = 20
_ALIKE = 1.5
"""Squares of multiplicities over their number, up to which a column has nearly as many values as rows."""


@dataclass(frozen=True, eq=False)
class Sketch:
    """What is remembered of a column's values, or of rows."""

    values: int
    check: tuple[int, int]
    counts: Integers

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sketch):
            return NotImplemented
        return (self.values, self.check) == (other.values, other.check) and np.array_equal(self.counts, other.counts)

    def __add__(self, other: Sketch) -> Sketch:
        """That of both sets of values."""
        check = _modulo(self.check[0] + other.check[0]), _modulo(self.check[1] + other.check[1])
        return Sketch(self.values + other.values, check, self.counts + other.counts)

    def changed(self, other: Sketch) -> int:
        """At least so many values stand in one and not in the other, each time they do; 0 only for the same values."""
        if (self.values, self.check) == (other.values, other.check):
            return 0
        return max(1, abs(self.values - other.values), int(np.abs(self.counts - other.counts).sum()))

    def net(self, other: Sketch) -> Integers:
        """How many more there are here than there, per bucket that changed: for few different values, per value."""
        difference = np.abs(self.counts - other.counts)
        return np.asarray(difference[difference > 0])

    def shares(self, other: Sketch) -> bool:
        """Whether the two surely have rows in common.

        Two draws of n_a and n_b from one distribution p without a row in common have the squared distance
        (n_a + n_b)(1 − Σ p²) + (n_a − n_b)² Σ p², give or take what buckets, and few different values, leave to chance.
        Common rows take from it; another distribution adds to it.
        """
        repeats = max(self._repeats, other._repeats)
        expected = (self.values + other.values) * (1 - repeats)
        grown = (self.values - other.values) ** 2 * repeats
        distance = float(((self.counts - other.counts) ** 2).sum())
        chance = math.sqrt(2 / BUCKETS + 2 * repeats)
        return expected + grown - distance > _SURE * chance * (expected + grown)

    @property
    def distinct(self) -> bool:
        """Whether nearly every value stands there once, so that changes cannot cancel."""
        return self._squares <= _ALIKE * self.values

    @property
    def few(self) -> bool:
        """Whether there are so few different values that each has a bucket of its own, nearly surely."""
        return int(np.count_nonzero(self.counts)) <= _FEW

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
        width = next(width for width in _WIDTHS if most < 1 << (8 * int(width) - 1))
        packed = zlib.compress(self.counts.astype(_WIDTHS[width]).tobytes(), 6)
        return {
            "values": self.values,
            "check": "".join(f"{word:016x}" for word in self.check),
            "counts": width + base64.b64encode(packed).decode("ascii"),
        }

    @classmethod
    def from_document(cls, found: Mapping[str, Any]) -> Sketch:
        """What `to_document` wrote; ValueError, LookupError or TypeError for anything else."""
        kind, packed = _WIDTHS[found["counts"][0]], base64.b64decode(found["counts"][1:], validate=True)
        try:
            unpacked = zlib.decompressobj().decompress(packed, BUCKETS * 4 + 1)
        except zlib.error as problem:
            raise ValueError(str(problem)) from None
        counts = np.frombuffer(unpacked, dtype=kind).astype(np.int64)
        if counts.shape != (BUCKETS,) or len(found["check"]) != 32 or type(found["values"]) is not int:
            raise ValueError("a sketch has other parts")
        check = int(found["check"][:16], 16), int(found["check"][16:], 16)
        return cls(found["values"], check, counts)


EMPTY = Sketch(0, (0, 0), np.zeros(BUCKETS, dtype=np.int64))


class Sketcher:
    """Sketches of the columns of complete rows, and of the rows themselves, while they come by.

    `a + b`, of two with the same secret, has seen the rows of both.
    """

    def __init__(self, secret: bytes) -> None:
        self._hash = _Hash(secret)
        self.columns: dict[str, Sketch] = {}
        self.rows = EMPTY

    def __call__(self, table: Table) -> None:
        """Adds complete rows."""
        count = max(1, _CELLS // max(1, len(table.columns)))
        for start in range(0, table.rows, count):
            part = table.rows_from(start, count)
            words = self._hash.columns(list(part.columns.values()))
            self._add(part.names, words)
            (rows,) = self._hash.sketches(self._hash.mixed(words.sum(axis=0, keepdims=True, dtype=np.uint64)))
            self.rows += rows

    def add_values(self, table: Table) -> None:
        """Adds the values of every column that are not missing, each column by itself."""
        for name, column in table.columns.items():
            present = column.take(~column.missing)
            for start in range(0, len(present), _CELLS):
                self._add([name], self._hash.columns([present.cut(slice(start, start + _CELLS))]))

    def __add__(self, other: Sketcher) -> Sketcher:
        both = copy(self)
        names = dict.fromkeys((*self.columns, *other.columns))
        both.columns = {name: self.columns.get(name, EMPTY) + other.columns.get(name, EMPTY) for name in names}
        both.rows = self.rows + other.rows
        return both

    def keyed(self, text: str) -> str:
        """A name for a text, such as a label, that does not show it."""
        return f"{self._hash.text(text):016x}"

    def _add(self, names: Sequence[str], words: Words) -> None:
        for name, sketch in zip(names, self._hash.sketches(words), strict=True):
            self.columns[name] = self.columns.get(name, EMPTY) + sketch


def sketch_values(source: TableSource, kinds: Mapping[str, Kind], secret: bytes) -> dict[str, Sketch]:
    """Of all values of every column, in one pass over the rows; for what describes columns one by one."""
    sketcher = Sketcher(secret)
    for batch in source.batches(kinds):
        sketcher.add_values(batch)
    return sketcher.columns


class _Hash:
    """64 bits for every value, which nobody can compute who does not know the secret."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._keys = np.frombuffer(hashlib.sha256(b"fedcdh sketch" + secret).digest(), dtype="<u8").astype(np.uint64)

    def columns(self, columns: Sequence[Column]) -> Words:
        """Columns × rows. A label that is a number counts as that number: what a column is read as makes no
        difference."""
        words = np.empty((len(columns), len(columns[0])), dtype=np.uint64)
        for place, column in zip(words, columns, strict=True):
            if isinstance(column, Numbers):
                np.add(column.values, 0.0, out=place.view(np.float64))  # 0.0, and not -0.0
            elif len(column):
                place[:] = np.array([self._label(level) for level in column.levels], dtype=np.uint64)[column.codes]
        return self.mixed(words)

    def mixed(self, words: Words) -> Words:
        """Each word to another one, in place, all bits of which depend on all bits of it and of the secret."""
        words ^= self._keys[0]
        _stir(words)
        words += self._keys[1]
        return _stir(words)

    def sketches(self, words: Words) -> list[Sketch]:
        """Of columns of values with these hashes."""
        places = words >> np.uint64(33 - BUCKETS.bit_length())
        places &= np.uint64(BUCKETS)  # bit 32, the sign, above those of the bucket
        places |= words & np.uint64(BUCKETS - 1)
        places += np.arange(len(words), dtype=np.uint64)[:, None] * np.uint64(2 * BUCKETS)
        counts = np.bincount(places.view(np.int64).ravel(), minlength=len(words) * 2 * BUCKETS)
        signed = counts.reshape(len(words), 2, BUCKETS)
        checks = zip(_sums(words), _sums(_stir(words ^ self._keys[2])), strict=True)
        each = zip(checks, signed[:, 0] - signed[:, 1], strict=True)
        return [Sketch(words.shape[1], check, counts) for check, counts in each]

    def _label(self, level: str) -> int:
        number = _as_number(level)
        if number is not None:
            return int(np.float64(number + 0.0).view(np.uint64))
        return self.text(level)

    def text(self, text: str) -> int:
        """64 bits for a text."""
        digest = hashlib.blake2b(text.encode("utf-8"), digest_size=8, key=self._secret[:64]).digest()
        return int.from_bytes(digest, "little")


def _as_number(level: str) -> float | None:
    try:
        number = float(level)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _stir(words: Words) -> Words:
    """In place. Multiplying carries low bits up, shifting brings high bits down; each step can be undone, so none are
    lost."""
    shifted = np.empty_like(words)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        words ^= np.right_shift(words, np.uint64(shift), out=shifted)
        words *= np.uint64(factor)
    words ^= np.right_shift(words, np.uint64(31), out=shifted)
    return words


def _sums(words: Words) -> list[int]:
    """Of every column, modulo 2⁶⁴."""
    sums: list[int] = words.sum(axis=1, dtype=np.uint64).tolist()
    return sums


def _modulo(number: int) -> int:
    return number & ((1 << 64) - 1)


def same_columns(
    new: Mapping[str, Sketch], old: Mapping[str, Sketch], among: Iterable[str] | None = None
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
            if _renamed(sketch, old[other]):
                known.append((name, other))
                left.remove(other)
                break
    return known


def _renamed(one: Sketch, other: Sketch) -> bool:
    return not one.changed(other) or (one.distinct and other.distinct and one.shares(other))
