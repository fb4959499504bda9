"""Summaries: the sufficient statistics that leave a client.

A summary is one symmetric matrix of integers, Σ_rows φφᵀ with φ = [1, features of every variable], and a few counts.
Features lie in [-1, 1] and are rounded to a grid of 2⁻¹⁸, so every product is an exact integer, block sums are exact
in float64 BLAS, and totals are exact in int64. Integers add up in any order: a summary is the same, bit for bit, for
any order of the rows and any batches or files, and it cannot hold a NaN.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from fedcdh._runtime.array_types import Array
from fedcdh.errors import PlanMismatchError, SummaryError
from fedcdh.summaries.encoder import GRID
from fedcdh.summaries.overviews import format_summary, name_summary, render_summary_html
from fedcdh.summaries.plan import StudyPlan

Integers = npt.NDArray[np.int64]

MAX_ROWS = (1 << 27) - 1
"""|φ_i φ_j| ≤ 2³⁶ on the grid, so the sums of this many rows fit into a signed 64-bit integer."""
MAX_NOISY_ENTRY = 1 << 61
"""Size of an entry with noise, which the bounds of features do not limit: sums of a few entries still fit."""
MAX_CONSTANT_VARIANCE = 1e-10
"""Variance up to which a feature counts as constant: rounding to the grid alone leaves up to 2⁻³⁶/4."""
_TILE_SIZE = 512  # rows or columns of a tile of a large matrix


@dataclass(frozen=True, eq=False)
class Summary:
    """Sums of features and of their products over rows of one or more clients; `a + b` is the summary of all the rows.

    Attributes
    ----------
    plan : str
        Fingerprint of the plan.
    clients : tuple of str
        Clients whose rows are in it.
    moments : array of int64
        Σ φφᵀ on the grid, not centred, because centred moments do not add up.
    rows_read : int
        Number of rows that were read. A row with a missing value is read but not used.
    missing : mapping from str to int
        Number of missing values of each variable.
    replicate : int, default 0
        0 for the rows themselves; 1, 2, ... for a bootstrap replicate of them.
    original : str, default ""
        Digest of the summary that a replicate belongs to. Empty also where replicates of several were added.
    noise : int, default 0
        Variance σ² of the noise that was added for differential privacy, in steps of the grid of products.
    coarsened : mapping from tuple of str to int, default {}
        What a site made coarser before the summary left: from a variable to the number of rare levels that were merged
        with its most common one, from a pair of variables to the number of small counts that were rounded.

    Examples
    --------
    >>> from fedcdh.summaries import Continuous, StudyPlan, summarize
    >>> plan = StudyPlan((Continuous("age", 60, 15),), ("north", "south"))
    >>> total = summarize({"age": [50, 61]}, plan, "north") + summarize({"age": [70]}, plan, "south")
    >>> total.rows, total.clients
    (3, ('north', 'south'))
    """

    plan: str
    clients: tuple[str, ...]
    moments: Integers
    rows_read: int
    missing: Mapping[str, int]
    replicate: int = 0
    original: str = ""
    noise: int = 0
    coarsened: Mapping[tuple[str, ...], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        whole = np.can_cast(np.asarray(self.moments).dtype, np.int64)
        moments = _freeze(self.moments) if whole else np.zeros(0, dtype=np.int64)
        object.__setattr__(self, "moments", moments)
        object.__setattr__(self, "missing", MappingProxyType(dict(self.missing)))
        object.__setattr__(self, "coarsened", MappingProxyType(dict(sorted(self.coarsened.items()))))
        if not _is_symmetric(moments) or not self._within_bounds():
            raise SummaryError(
                f"the summary of {', '.join(self.clients)} is damaged: its moments are not a symmetric matrix of "
                "integers within the bounds of its rows; make it again from the table"
            )

    def __reduce__(self) -> tuple[type[Summary], tuple[object, ...]]:
        """Pickle and copy through the constructor, with its checks: a read-only mapping cannot be pickled."""
        fields = (
            self.plan,
            self.clients,
            self.moments,
            self.rows_read,
            dict(self.missing),
            self.replicate,
            self.original,
        )
        return Summary, (*fields, self.noise, dict(self.coarsened))

    def __repr__(self) -> str:
        """Return the summary in one line."""
        return f"<{name_summary(self)}>"

    def __str__(self) -> str:
        """Return the summary as a small table."""
        return format_summary(self)

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        return render_summary_html(self)

    @property
    def rows(self) -> int:
        """Return the number of rows that were used, Σ 1·1."""
        return int(self.moments[0, 0]) // GRID**2

    @cached_property
    def digest(self) -> str:
        """Return the SHA-256 of the plan's fingerprint and all numbers: rows read, missing values by name, moments."""
        counts = [self.rows_read, *(self.missing[name] for name in sorted(self.missing))]
        hasher = hashlib.sha256(self.plan.encode("utf-8") + np.array(counts, dtype="<i8").tobytes())
        hasher.update(self.moments.astype("<i8", order="C", copy=False).ravel().data)
        hasher.update(str(self.noise).encode() if self.noise else b"")
        return hasher.hexdigest()

    def constant_variables(self, plan: StudyPlan) -> tuple[str, ...]:
        """Return the variables with only one value in all these rows; none with noise, which hides them.

        Parameters
        ----------
        plan : StudyPlan
            Plan of the summary.

        Returns
        -------
        tuple of str
            Names of the variables.
        """
        if self.noise:
            return ()
        means, squares = self.moments[0] / self.moments[0, 0], self.moments.diagonal() / self.moments[0, 0]
        varying = squares - means**2 > MAX_CONSTANT_VARIANCE
        return tuple(name for name, span in plan.layout.spans.items() if not varying[span].any())

    def _within_bounds(self) -> bool:
        """Return whether features in [-1, 1] can have given these moments, so that sums cannot overflow."""
        most, least, largest = int(self.moments[0, 0]), int(self.moments.min()), int(self.moments.max())
        if self.noise:
            return -MAX_NOISY_ENTRY < least <= largest < MAX_NOISY_ENTRY
        return 0 <= self.rows <= self.rows_read and -most <= least <= largest <= most

    @property
    def means(self) -> Array:
        """Return the means of φ as real numbers."""
        shift, rest = self._shift()
        return np.asarray((shift + rest / self.rows) / GRID)

    def means_and_scatter(self, span: slice = slice(None)) -> tuple[Array, Array]:
        """Return the means of φ and its scatter Σ(φ − mean)(φ − mean)ᵀ, as real numbers.

        Parameters
        ----------
        span : slice, default all columns
            Columns to return.

        Returns
        -------
        means : array
            Means of these columns.
        scatter : array
            Scatter matrix of these columns.
        """
        return self.means[span], self.scatter(span, span)

    def scatter(self, rows: slice, columns: slice = slice(None)) -> Array:
        """Return a part of the scatter Σ(φ − mean)(φ − mean)ᵀ; the whole matrix may be large.

        Parameters
        ----------
        rows : slice
            Rows of the matrix.
        columns : slice, default all columns
            Columns of the matrix.

        Returns
        -------
        array
            Part of the scatter matrix.

        Notes
        -----
        Features are first shifted by whole steps of the grid, in integers, so that small spreads around large means
        lose no digits. Intermediate products may pass 2⁶³; sums modulo 2⁶⁴ remain right, and the scatter itself fits.
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
        """Return the means of φ in whole steps of the grid, and the rest of the sums."""
        sums = self.moments[0] // GRID
        shift = np.rint(sums / self.rows).astype(np.int64)
        return shift, (sums - self.rows * shift).astype(np.float64)

    def __add__(self, other: Summary) -> Summary:
        return sum_summaries((self, other))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Summary):
            return NotImplemented
        return self._labels() == other._labels() and np.array_equal(self.moments, other.moments)

    def _labels(self) -> tuple[object, ...]:
        """Return everything but the moments."""
        counts = self.rows_read, dict(self.missing), dict(self.coarsened)
        return self.plan, self.clients, *counts, self.replicate, self.original, self.noise


def check_noise(summary: Summary, plan: StudyPlan) -> None:
    """Raise a SummaryError unless a summary has exactly the noise that its plan asks for."""
    if plan.noise is not None and plan.noise.distributed and len(summary.clients) == 1:
        raise SummaryError(
            f"there is a summary of {summary.clients[0]} alone, but in this plan only the sum over all clients has "
            "enough noise to be seen; delete it, and pass Aggregate.from_total(total, plan) of the secure sum"
        )
    expected = 0 if plan.noise is None else plan.noise.deviation**2
    if summary.noise < expected:
        found = "less noise than" if summary.noise else "none of the noise that"
        raise SummaryError(
            f"the summary of {', '.join(summary.clients)} has {found} the plan asks for, and should not have left the "
            "site like this; delete it, and ask the site for a noisy summary (fedcdh.privacy.add_noise)"
        )
    if summary.noise and plan.noise is None:
        raise SummaryError(
            f"the summary of {', '.join(summary.clients)} has noise, and the plan asks for none; ask the site to make "
            "the summary again with this plan"
        )


def sum_summaries(summaries: Sequence[Summary]) -> Summary:
    """Add one or more summaries into one matrix.

    Parameters
    ----------
    summaries : sequence of Summary
        Summaries of one plan, all of the rows themselves or all of the same replicate.

    Returns
    -------
    Summary
        The summary of all the rows.

    Raises
    ------
    PlanMismatchError
        If the summaries follow different plans.
    SummaryError
        If the summaries do not belong together, or have too many rows.

    Examples
    --------
    >>> from fedcdh.summaries import Continuous, StudyPlan, summarize
    >>> plan = StudyPlan((Continuous("age", 60, 15),), ("north",))
    >>> sum_summaries([summarize({"age": [50]}, plan, "north"), summarize({"age": [70]}, plan, "north")]).rows
    2
    """
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
        coarsened=_add_marks(summaries),
    )


def _add_marks(summaries: Sequence[Summary]) -> Counter[tuple[str, ...]]:
    """Return how many levels and counts were made coarser in all of them."""
    return sum((Counter(summary.coarsened) for summary in summaries), Counter())


def _check_addable(one: Summary, other: Summary) -> None:
    """Raise an error if two summaries do not belong together."""
    if one.plan != other.plan:
        raise PlanMismatchError(
            f"summaries follow different plans ({one.plan[:12]} and {other.plan[:12]}); "
            "send every client the same plan file"
        )
    if one.replicate != other.replicate:
        raise SummaryError(
            f"{describe_summary(one)} and {describe_summary(other)} cannot be added, since their rows were resampled "
            "differently; add summaries of the same replicate only"
        )
    if bool(one.noise) != bool(other.noise):
        raise SummaryError(
            f"only one of {describe_summary(one)} and {describe_summary(other)} has noise; expected both to follow one "
            "plan; remove the wrong one"
        )


def _freeze(moments: Any) -> Integers:
    """Return the moments as an array that cannot be changed: as they are if they are read-only already, else a copy."""
    ours = type(moments) is np.ndarray and moments.dtype == np.int64 and moments.base is None
    if ours and not moments.flags.writeable:
        return np.asarray(moments)
    held = np.array(moments, dtype=np.int64)
    held.setflags(write=False)
    return held


def _is_symmetric(moments: Integers) -> bool:
    """Return whether this is a symmetric matrix; it is compared in tiles, since it may be larger than a cache."""
    if moments.ndim != 2 or moments.size == 0 or moments.shape[0] != moments.shape[1]:
        return False
    starts = range(0, len(moments), _TILE_SIZE)
    tiles = ((slice(a, a + _TILE_SIZE), slice(b, b + _TILE_SIZE)) for a in starts for b in starts if a <= b)
    return all(np.array_equal(moments[rows, columns], moments[columns, rows].T) for rows, columns in tiles)


def iter_triangle_rows(columns: int) -> Iterator[tuple[int, slice]]:
    """Yield each row of the moments, and the place of its entries from the diagonal on in the upper triangle."""
    start = 0
    for row in range(columns):
        yield row, slice(start, start := start + columns - row)


def describe_summary(summary: Summary) -> str:
    """Describe in words whose summary or bootstrap replicate this is."""
    which = f"bootstrap replicate {summary.replicate}" if summary.replicate else "the summary"
    return f"{which} of {', '.join(summary.clients)}"


def describe_coarsened(coarsened: Mapping[tuple[str, ...], int]) -> Iterator[str]:
    """Say in words what was made coarser before a summary left.

    Parameters
    ----------
    coarsened : mapping from tuple of str to int
        From a variable to the number of its levels that were merged, from a pair to the number of rounded counts.

    Yields
    ------
    str
        Part of a sentence, for each variable and for each pair.

    Examples
    --------
    >>> list(describe_coarsened({("sex", "stage"): 2, ("stage",): 1}))
    ['1 rare level of stage was merged with the most common one', '2 small counts of sex with stage were rounded']
    """
    for names, count in sorted(coarsened.items(), key=lambda item: (len(item[0]), item[0])):
        were, s = ("was", "") if count == 1 else ("were", "s")
        if len(names) == 1:
            yield f"{count} rare level{s} of {names[0]} {were} merged with the most common one"
        else:
            yield f"{count} small count{s} of {' with '.join(names)} {were} rounded"


def check_row_capacity(rows: int) -> None:
    """Raise a SummaryError if there are more rows than sums are exact for."""
    if rows > MAX_ROWS:
        raise SummaryError(
            f"there are {rows} rows; sums are exact for at most {MAX_ROWS}; use a random part of the rows"
        )
