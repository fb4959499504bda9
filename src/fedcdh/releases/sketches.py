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
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from fedcdh.sources import Kind, TableSource
from fedcdh.tables import Column, Numbers, Table

Words = npt.NDArray[np.uint64]
Integers = npt.NDArray[np.int64]

BUCKETS = 4096
"""`benchmarks.bench_ledger` measures what so many can tell."""
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
    """Sketches of the columns of complete rows, and of the rows themselves, while they come by."""

    def __init__(self, secret: bytes) -> None:
        self._hash = _Hash(secret)
        self.columns: dict[str, Sketch] = {}
        self.rows = EMPTY

    def __call__(self, table: Table) -> None:
        """Adds complete rows."""
        hashed = {name: self._hash.column(column) for name, column in table.columns.items()}
        self._add(hashed)
        if hashed:
            self.rows += self._hash.sketch(self._hash.mixed(reduce(np.add, hashed.values())))

    def add_values(self, table: Table) -> None:
        """Adds the values of every column that are not missing, each column by itself."""
        present = {name: column.take(~column.missing) for name, column in table.columns.items()}
        self._add({name: self._hash.column(column) for name, column in present.items()})

    def keyed(self, text: str) -> str:
        """A name for a text, such as a label, that does not show it."""
        return f"{self._hash.text(text):016x}"

    def _add(self, hashed: Mapping[str, Words]) -> None:
        for name, words in hashed.items():
            self.columns[name] = self.columns.get(name, EMPTY) + self._hash.sketch(words)


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

    def column(self, column: Column) -> Words:
        """A label that is a number counts as that number: what a column is read as makes no difference."""
        if isinstance(column, Numbers):
            return self.mixed((column.values + 0.0).view(np.uint64))  # 0.0, and not -0.0
        levels = self.mixed(np.array([self._label(level) for level in column.levels], dtype=np.uint64))
        return levels[column.codes] if len(column.codes) else np.zeros(0, dtype=np.uint64)

    def mixed(self, words: Words) -> Words:
        """Each word to another one, all bits of which depend on all bits of it and of the secret."""
        return _stirred(_stirred(words ^ self._keys[0]) + self._keys[1])

    def sketch(self, words: Words) -> Sketch:
        """Of values with these hashes."""
        signs = 1.0 - 2.0 * ((words >> np.uint64(32)) & np.uint64(1)).astype(np.float64)
        buckets = (words & np.uint64(BUCKETS - 1)).astype(np.intp)
        counts = np.bincount(buckets, weights=signs, minlength=BUCKETS).astype(np.int64)
        other = _stirred(words ^ self._keys[2])
        return Sketch(len(words), (_sum(words), _sum(other)), counts)

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


def _stirred(words: Words) -> Words:
    """Multiplying carries low bits up, shifting brings high bits down; each step can be undone, so none are lost."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(words ^ (words >> np.uint64(31)))


def _sum(words: Words) -> int:
    return int(words.sum(dtype=np.uint64))  # modulo 2⁶⁴


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
