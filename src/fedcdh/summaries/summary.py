"""Summaries: all that ever leaves a client.

A summary is one symmetric matrix of integers, Σ_rows φφᵀ with φ = [1, features of every variable], and a few counts.
Features lie in [-1, 1] and are rounded to a grid of 2⁻¹⁸, so every product is an exact integer, block sums are exact
in float64 BLAS, and totals are exact in int64. Integers add up in any order: a summary is the same, bit for bit,
however the rows are ordered, batched or split into files, and it cannot hold a NaN.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from fedcdh._runtime.array_types import Array
from fedcdh.errors import PlanMismatchError, SummaryError
from fedcdh.summaries.encoder import GRID
from fedcdh.summaries.plan import StudyPlan

Integers = npt.NDArray[np.int64]

MAX_ROWS = (1 << 27) - 1
"""|φ_i φ_j| ≤ 2³⁶ on the grid, so this many rows fit into a signed 64-bit integer."""
MAX_NOISY_ENTRY = 1 << 61
"""Size of an entry with noise, which no bound of features holds: sums of a few then still fit."""
MAX_CONSTANT_VARIANCE = 1e-10
"""Variance of a feature up to which it counts as constant: rounding to the grid alone leaves up to 2⁻³⁶/4."""
_TILE_SIZE = 512  # rows or columns of a matrix worked on at a time, where all of it would be a copy too many


@dataclass(frozen=True, eq=False)
class Summary:
    """Sums of features and of their products over some rows of one or more clients; `a + b` is that of all the rows."""

    plan: str  # fingerprint
    clients: tuple[str, ...]
    moments: Integers  # Σ φφᵀ on the grid, not centred: centring does not add up
    rows_read: int
    missing: Mapping[str, int]  # per variable; a row with any missing value is read but not used
    replicate: int = 0  # 0: of the rows themselves; 1, 2, ...: of this bootstrap replicate
    original: str = ""  # the digest of the summary that a replicate belongs to
    noise: int = 0  # σ² of what was added for differential privacy (`budget`, `privacy.noise`), in steps of the grid

    def __post_init__(self) -> None:
        whole = np.can_cast(np.asarray(self.moments).dtype, np.int64)
        moments = _freeze(self.moments) if whole else np.zeros(0, dtype=np.int64)
        object.__setattr__(self, "moments", moments)
        object.__setattr__(self, "missing", MappingProxyType(dict(self.missing)))
        if not _is_symmetric(moments) or not self._within_bounds():
            raise SummaryError(f"the summary of {', '.join(self.clients)} is damaged; make it again from the table")

    def __reduce__(self) -> tuple[type[Summary], tuple[object, ...]]:
        """Pickled and copied as it was made, with the checks: a read-only mapping cannot be pickled."""
        said = self.plan, self.clients, self.moments, self.rows_read, dict(self.missing), self.replicate, self.original
        return Summary, (*said, self.noise)

    @property
    def rows(self) -> int:
        """Rows used: Σ 1·1."""
        return int(self.moments[0, 0]) // GRID**2

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the plan's fingerprint and of all numbers, 8 bytes each: rows read, missing by name, moments."""
        counts = [self.rows_read, *(self.missing[name] for name in sorted(self.missing))]
        said = hashlib.sha256(self.plan.encode("utf-8") + np.array(counts, dtype="<i8").tobytes())
        said.update(self.moments.astype("<i8", order="C", copy=False).ravel().data)
        said.update(str(self.noise).encode() if self.noise else b"")
        return said.hexdigest()

    def constant_variables(self, plan: StudyPlan) -> tuple[str, ...]:
        """The variables that have one and the same value in all these rows; with noise, nobody can tell."""
        if self.noise:
            return ()
        means, squares = self.moments[0] / self.moments[0, 0], self.moments.diagonal() / self.moments[0, 0]
        varying = squares - means**2 > MAX_CONSTANT_VARIANCE
        return tuple(name for name, span in plan.layout.spans.items() if not varying[span].any())

    def _within_bounds(self) -> bool:
        """Whether features in [-1, 1] can have given these moments: then as many rows as we allow cannot overflow."""
        most, least, largest = int(self.moments[0, 0]), int(self.moments.min()), int(self.moments.max())
        if self.noise:
            return -MAX_NOISY_ENTRY < least <= largest < MAX_NOISY_ENTRY
        return 0 <= self.rows <= self.rows_read and -most <= least <= largest <= most

    @property
    def means(self) -> Array:
        """The means of φ, as real numbers."""
        shift, rest = self._shift()
        return np.asarray((shift + rest / self.rows) / GRID)

    def means_and_scatter(self, span: slice = slice(None)) -> tuple[Array, Array]:
        """The means of φ, and its scatter Σ(φ − mean)(φ − mean)ᵀ, as real numbers; of all columns, or of this span."""
        return self.means[span], self.scatter(span, span)

    def scatter(self, rows: slice, columns: slice = slice(None)) -> Array:
        """These rows and columns of the scatter Σ(φ − mean)(φ − mean)ᵀ: all of it may be large.

        Features are first shifted by whole steps of the grid, in integers: then small spreads around large means lose
        no digits. Intermediate products may pass 2⁶³; sums modulo 2⁶⁴ do not mind, and the scatter itself fits.
        """
        sums, (shift, rest) = self.moments[0] // GRID, self._shift()
        shifted = self.moments[rows, columns] - np.multiply.outer(shift[rows], sums[columns])
        shifted -= np.multiply.outer(sums[rows], shift[columns])
        shifted += np.multiply.outer(self.rows * shift[rows], shift[columns])
        scatter = np.multiply.outer(rest[rows], rest[columns])
        scatter /= -self.rows
        scatter += shifted
        scatter /= float(GRID**2)
        return scatter

    def _shift(self) -> tuple[Integers, Array]:
        """The means of φ in whole steps of the grid, and what the sums are beyond these."""
        sums = self.moments[0] // GRID
        shift = np.rint(sums / self.rows).astype(np.int64)
        return shift, (sums - self.rows * shift).astype(np.float64)

    def __add__(self, other: Summary) -> Summary:
        return sum_summaries((self, other))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Summary):
            return NotImplemented
        mine = (self.plan, self.clients, self.rows_read, dict(self.missing), self.replicate, self.original, self.noise)
        theirs = (
            other.plan,
            other.clients,
            other.rows_read,
            dict(other.missing),
            other.replicate,
            other.original,
            other.noise,
        )
        return mine == theirs and np.array_equal(self.moments, other.moments)


def check_noise(summary: Summary, plan: StudyPlan) -> None:
    """With noise in the plan, a summary has it, all of it; without, none."""
    if plan.noise is not None and plan.noise.distributed and len(summary.clients) == 1:
        raise SummaryError(
            f"there is a summary of {summary.clients[0]} alone, but in this plan only sums over sites have noise "
            "enough to be seen; delete it, and pass Aggregate.of_sum(total, plan) of the masked sum"
        )
    expected = 0 if plan.noise is None else plan.noise.deviation**2
    if summary.noise < expected:
        found = "less noise than" if summary.noise else "none of the noise that"
        raise SummaryError(
            f"the summary of {', '.join(summary.clients)} has {found} the plan asks for, and must not have left the "
            "site like this; delete it, and ask the site for noisy(summary, plan) of fedcdh.privacy.differential.mechanism"
        )
    if summary.noise and plan.noise is None:
        raise SummaryError(f"the summary of {', '.join(summary.clients)} has noise, and the plan asks for none")


def sum_summaries(summaries: Sequence[Summary]) -> Summary:
    """The sum of one or more summaries, added into one matrix: there may be ten thousand, or large ones."""
    first, *others = summaries
    if not others:
        return first
    for other in others:
        _check_addable(first, other)
    check_row_capacity(sum(summary.rows for summary in summaries))
    moments = first.moments.copy()
    for other in others:
        moments += other.moments
    moments.setflags(write=False)
    return Summary(
        plan=first.plan,
        clients=tuple(sorted({client for summary in summaries for client in summary.clients})),
        moments=moments,
        rows_read=sum(summary.rows_read for summary in summaries),
        missing={name: sum(summary.missing[name] for summary in summaries) for name in first.missing},
        replicate=first.replicate,
        original=first.original if {summary.original for summary in summaries} == {first.original} else "",
        noise=sum(summary.noise for summary in summaries),
    )


def _check_addable(one: Summary, other: Summary) -> None:
    """Refuses to add what does not belong together."""
    if one.plan != other.plan:
        raise PlanMismatchError(
            f"summaries follow different plans ({one.plan[:12]} and {other.plan[:12]}); "
            "send every client the same plan file"
        )
    if one.replicate != other.replicate:
        raise SummaryError(
            f"{describe_summary(one)} and {describe_summary(other)} cannot be added: they are not of the same draw of rows"
        )
    if bool(one.noise) != bool(other.noise):
        raise SummaryError(
            f"of {describe_summary(one)} and {describe_summary(other)} only one has noise; one of them must not be here"
        )


def _freeze(moments: Any) -> Integers:
    """The moments as nobody can change them: as they are if they cannot be written to already, else a copy."""
    ours = type(moments) is np.ndarray and moments.dtype == np.int64 and moments.base is None
    if ours and not moments.flags.writeable:
        return np.asarray(moments)
    held = np.array(moments, dtype=np.int64)
    held.setflags(write=False)
    return held


def _is_symmetric(moments: Integers) -> bool:
    """Whether this is a symmetric matrix; looked at in tiles, since it may be larger than what a cache holds."""
    if moments.ndim != 2 or moments.size == 0 or moments.shape[0] != moments.shape[1]:
        return False
    starts = range(0, len(moments), _TILE_SIZE)
    tiles = ((slice(a, a + _TILE_SIZE), slice(b, b + _TILE_SIZE)) for a in starts for b in starts if a <= b)
    return all(np.array_equal(moments[rows, columns], moments[columns, rows].T) for rows, columns in tiles)


def iter_triangle_rows(columns: int) -> Iterator[tuple[int, slice]]:
    """Each row of the moments, and where its entries from the diagonal on stand among all of these, row after row."""
    start = 0
    for row in range(columns):
        yield row, slice(start, start := start + columns - row)


def describe_summary(summary: Summary) -> str:
    """What a summary is, in messages: of the rows themselves, or of a bootstrap copy."""
    which = f"bootstrap copy {summary.replicate}" if summary.replicate else "the summary"
    return f"{which} of {', '.join(summary.clients)}"


def check_row_capacity(rows: int) -> None:
    """Refuses more rows than sums are exact for."""
    if rows > MAX_ROWS:
        raise SummaryError(
            f"{rows} rows are more than the {MAX_ROWS} whose sums are exact; use a random part of the rows"
        )
