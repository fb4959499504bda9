"""Summaries: all that ever leaves a client.

A summary is one symmetric matrix of integers, Σ_rows φφᵀ with φ = [1, features of every variable], and a few counts.
Features lie in [-1, 1] and are rounded to a grid of 2⁻¹⁸, so every product is an exact integer, block sums are exact
in float64 BLAS, and totals are exact in int64. Integers add up in any order: a summary is the same, bit for bit,
however the rows are ordered, batched or split into files, and it cannot hold a NaN.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from fedcdh.encoding import GRID, Encoder
from fedcdh.errors import DataError, PlanMismatch, SettingsError, SummaryError
from fedcdh.plan import StudyPlan, some_of
from fedcdh.row_workers import spread_of
from fedcdh.sources import TableSource
from fedcdh.tables import Table

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

ROWS_AT_MOST = (1 << 27) - 1
"""|φ_i φ_j| ≤ 2³⁶ on the grid, so this many rows fit into a signed 64-bit integer."""
NOISY_AT_MOST = 1 << 61
"""Size of an entry with noise, which no bound of features holds: sums of a few then still fit."""
CONSTANT = 1e-10
"""Variance of a feature up to which it counts as constant: rounding to the grid alone leaves up to 2⁻³⁶/4."""
_ENCODED, _CELLS, _FEATURES = 1024, 1 << 17, 1 << 20
"""Rows at least, and cells and features at most otherwise, that are encoded at a time: what a cache holds, yet so much
that threads do not get in each other's way between the steps."""
_WATCHED, _EXACT = 1024, 8192
"""Rows that are multiplied at a time while few have been, and at most, since 2¹³ · 2³⁶ < 2⁵³: exact in float64."""
_TILE = 512  # rows or columns of a matrix worked on at a time, where all of it would be a copy too many


@dataclass(frozen=True, eq=False)
class Summary:
    """Sums of features and of their products over some rows of one or more clients; `a + b` is that of all the rows."""

    plan: str  # fingerprint
    clients: tuple[str, ...]
    moments: Integers  # Σ φφᵀ on the grid, not centred: centring does not add up
    rows_read: int
    missing: Mapping[str, int]  # per variable; a row with any missing value is read but not used
    copy: int = 0  # 0: of the rows themselves; 1, 2, ...: of the rows as drawn for this bootstrap copy (`resampling`)
    of: str = ""  # the digest of the summary that a copy belongs to; "" also where copies of several were added
    noise: int = 0  # σ² of what was added for differential privacy (`budget`, `privacy.noise`), in steps of the grid

    def __post_init__(self) -> None:
        whole = np.can_cast(np.asarray(self.moments).dtype, np.int64)
        moments = _held(self.moments) if whole else np.zeros(0, dtype=np.int64)
        object.__setattr__(self, "moments", moments)
        object.__setattr__(self, "missing", MappingProxyType(dict(self.missing)))
        if not _symmetric(moments) or not self._within_bounds():
            raise SummaryError(f"the summary of {', '.join(self.clients)} is damaged; make it again from the table")

    def __reduce__(self) -> tuple[type[Summary], tuple[object, ...]]:
        """Pickled and copied as it was made, with the checks: a read-only mapping cannot be pickled."""
        said = self.plan, self.clients, self.moments, self.rows_read, dict(self.missing), self.copy, self.of
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

    def constant(self, plan: StudyPlan) -> tuple[str, ...]:
        """The variables that have one and the same value in all these rows; with noise, nobody can tell."""
        if self.noise:
            return ()
        means, squares = self.moments[0] / self.moments[0, 0], self.moments.diagonal() / self.moments[0, 0]
        varying = squares - means**2 > CONSTANT
        return tuple(name for name, span in plan.spans().items() if not varying[span].any())

    def _within_bounds(self) -> bool:
        """Whether features in [-1, 1] can have given these moments: then as many rows as we allow cannot overflow."""
        most, least, largest = int(self.moments[0, 0]), int(self.moments.min()), int(self.moments.max())
        if self.noise:
            return -NOISY_AT_MOST < least <= largest < NOISY_AT_MOST
        return 0 <= self.rows <= self.rows_read and -most <= least <= largest <= most

    @property
    def means(self) -> Array:
        """The means of φ, as real numbers."""
        shift, rest = self._shift()
        return np.asarray((shift + rest / self.rows) / GRID)

    def centred(self, span: slice = slice(None)) -> tuple[Array, Array]:
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
        return _sum_of((self, other))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Summary):
            return NotImplemented
        mine = (self.plan, self.clients, self.rows_read, dict(self.missing), self.copy, self.of, self.noise)
        theirs = (other.plan, other.clients, other.rows_read, dict(other.missing), other.copy, other.of, other.noise)
        return mine == theirs and np.array_equal(self.moments, other.moments)


@dataclass(frozen=True, eq=False)
class Cohort:
    """One summary per client, sorted by client. What the server knows in the cohort mode of trust."""

    plan: StudyPlan
    summaries: tuple[Summary, ...]

    @cached_property
    def total(self) -> Summary:
        """The sum of all clients: what the server would know in the aggregate mode of trust."""
        return _sum_of(self.summaries)

    @property
    def clients(self) -> tuple[str, ...]:
        return tuple(summary.clients[0] for summary in self.summaries)

    @property
    def client_rows(self) -> tuple[int, ...]:
        return tuple(summary.rows for summary in self.summaries)

    @cached_property
    def moments(self) -> Array:
        """Σ φφᵀ per client as real numbers, (clients, columns, columns)."""
        return np.stack([summary.moments for summary in self.summaries]) / float(GRID**2)

    def drawn(self, clients: Iterable[str]) -> Cohort:
        """The study of these clients only, by the same plan; one that is drawn again counts as another client.

        The copy is called what no plan allows, so that it cannot be mistaken for a client of the study.
        """
        summaries = dict(zip(self.clients, self.summaries, strict=True))
        times = Counter(clients)
        if not times or not times.keys() <= summaries.keys():
            raise SettingsError(f"found clients {sorted(times)}; expected some of {', '.join(self.clients)}")
        copies = [
            replace(summaries[client], clients=(client if number == 1 else f"{client}\n{number}",))
            for client in times
            for number in range(1, times[client] + 1)
        ]
        return Cohort(self.plan, tuple(sorted(copies, key=lambda summary: summary.clients)))

    @property
    def means(self) -> Array:
        """The means of φ, (clients, columns)."""
        return np.array([summary.means for summary in self.summaries])

    def scatters(self, rows: slice) -> Iterator[Array]:
        """Some rows of the scatter of φ about its means, at one client after the other: all of it may be large."""
        return (summary.scatter(rows) for summary in self.summaries)


@dataclass(frozen=True, eq=False)
class Aggregate:
    """What the server knows in the aggregate mode of trust: the sum of all summaries, and that of φ per client.

    The latter are the moments of φ with features of the client index, here one for each client: rows and means of every
    client are known, whether spreads and dependences differ between clients is not. Where clients stand together in
    groups, rows and means of every group are known, and groups are what is compared: they are its `clients`.

    >>> from fedcdh.plan import Continuous
    >>> plan = StudyPlan((Continuous("age", 60, 15),), ("north", "south"))
    >>> cohort = add_up([summarize({"age": [50, 61]}, plan, "north"), summarize({"age": [70]}, plan, "south")], plan)
    >>> Aggregate.of(cohort).client_rows
    (2, 1)
    """

    plan: StudyPlan
    total: Summary
    firsts: Integers  # (groups, columns): the first row of the moments of each, in the order of the groups
    groups: tuple[tuple[str, tuple[str, ...]], ...] = ()  # name and clients; empty: every client of the plan by itself

    def __post_init__(self) -> None:
        if not self.groups:
            object.__setattr__(self, "groups", tuple((client, (client,)) for client in self.plan.clients))
        whole = np.can_cast(np.asarray(self.firsts).dtype, np.int64)
        firsts = np.array(self.firsts, dtype=np.int64) if whole else np.zeros(0, dtype=np.int64)
        firsts.setflags(write=False)
        object.__setattr__(self, "firsts", firsts)
        shape = (len(self.groups), self.plan.columns)
        if self.total.plan != self.plan.fingerprint:
            raise PlanMismatch("the sum of the summaries follows another plan; make it again with this plan")
        if self.firsts.shape != shape or not np.array_equal(self.firsts.sum(axis=0), self.total.moments[0]):
            raise SummaryError("the clients' first moments do not add up to those of the sum; ask for both again")
        rows = self.firsts[:, :1]
        if (rows <= 0).any():
            raise SummaryError("a client has no rows in the sum; wait for it, or make a plan without it for all others")
        if self.total.noise and len(self.groups) > 1:
            raise SummaryError("with noise in the sum only, first moments of single clients are not known")
        if (rows % GRID**2).any() or ((np.abs(self.firsts) > rows).any() and not self.total.noise):
            raise SummaryError("the clients' first moments are damaged: no rows can have them; ask for them again")
        if self.plan.most_rows and not self.total.noise and not self.total.copy:
            self._check_rows()
        members = sorted(client for _, group in self.groups for client in group)
        if tuple(members) != self.total.clients:
            raise SummaryError(
                f"the groups are of {', '.join(members)}, the sum of {', '.join(self.total.clients)}; name every "
                "client of the sum in one group"
            )

    @classmethod
    def of(cls, cohort: Cohort, groups: Mapping[str, str] | None = None) -> Aggregate:
        """All that is left of a cohort when only sums over clients may be seen; `groups` names that of each client."""
        firsts: dict[str, Integers] = {}
        members: dict[str, tuple[str, ...]] = {}
        for client, summary in zip(cohort.clients, cohort.summaries, strict=True):
            group = client if groups is None else groups[client]
            firsts[group] = summary.moments[0] + firsts.get(group, np.int64(0))
            members[group] = (*members.get(group, ()), client)
        named = sorted(members)
        together = tuple((group, members[group]) for group in named)
        return cls(cohort.plan, cohort.total, np.array([firsts[group] for group in named]), together)

    @classmethod
    def of_sum(cls, total: Summary, plan: StudyPlan) -> Aggregate:
        """A sum of which nothing is known by client: all of them are one group."""
        return cls(plan, total, total.moments[:1], (("all clients", total.clients),))

    def _check_rows(self) -> None:
        for (name, members), rows in zip(self.groups, self.client_rows, strict=True):
            if rows > self.plan.most_rows * len(members):
                raise SummaryError(
                    f"{name!r} counts {rows} rows in the sum, and the plan lets each of its {len(members)} clients "
                    f"have {self.plan.most_rows}; ask for them again, or make a plan with a higher most_rows for all"
                )

    @property
    def summaries(self) -> tuple[Summary, ...]:
        return (self.total,)

    @property
    def clients(self) -> tuple[str, ...]:
        """Whom rows and means are known of: clients, or groups of them."""
        return tuple(group for group, _ in self.groups)

    @property
    def client_rows(self) -> tuple[int, ...]:
        return tuple(int(first) // GRID**2 for first in self.firsts[:, 0])

    @cached_property
    def moments(self) -> Array:
        """Σ φφᵀ of all clients as real numbers, (1, columns, columns)."""
        return np.asarray(self.total.moments[None] / float(GRID**2))

    @property
    def means(self) -> Array:
        """The means of φ, (clients, columns)."""
        return np.asarray(self.firsts / self.firsts[:, :1])

    def scatters(self, rows: slice) -> Iterator[Array]:
        """Some rows of the scatter of φ within clients, of all clients together."""
        apart = self.means - self.total.means
        between = (apart[:, rows].T * np.array(self.client_rows, dtype=np.float64)) @ apart
        yield self.total.scatter(rows) - between


def add_up(summaries: Iterable[Summary], plan: StudyPlan, *, without: Collection[str] = ()) -> Cohort:
    """The cohort of these summaries: parts of one client are added, clients are kept apart.

    Every client of the plan has to be there, but for those that the study goes on `without`.

    >>> from fedcdh.plan import Continuous
    >>> plan = StudyPlan((Continuous("age", 60, 15),), ("north", "south"))
    >>> parts = [summarize({"age": [50, 61]}, plan, "north"), summarize({"age": [70]}, plan, "north")]
    >>> add_up([*parts, summarize({"age": [55, 80]}, plan, "south")], plan).total.rows
    5
    """
    parts: dict[str, list[Summary]] = {}
    first: Summary | None = None
    for summary in summaries:
        first = first or summary
        if summary.copy != first.copy:
            raise SummaryError(
                f"{_draw(first)} and {_draw(summary)} came together: a bootstrap copy counts rows again that are "
                "counted already; pass summaries of the same draw, and copies to result.stability(copies=...)"
            )
        if summary.plan != plan.fingerprint:
            raise PlanMismatch(
                f"the summary of {', '.join(summary.clients)} follows plan {summary.plan[:12]}, not this plan "
                f"({plan.fingerprint[:12]}); make it again with this plan"
            )
        if summary.moments.shape != (plan.columns, plan.columns) or not summary.rows:
            raise SummaryError(
                f"the summary of {', '.join(summary.clients)} has no rows, or not the {plan.columns} columns of the "
                "plan; make it again from the table"
            )
        check_noise(summary, plan)
        if len(summary.clients) != 1:
            raise SummaryError(
                f"a summary holds the sum of clients {', '.join(summary.clients)}: who differs from whom is lost in "
                "it; pass the summaries of the single clients"
            )
        known = parts.setdefault(summary.clients[0], [])
        if summary in known:
            raise SummaryError(
                f"the same summary of client {summary.clients[0]!r} came twice; pass it once (or, if these really are "
                "other rows with the same values, add the two with + first)"
            )
        if known and summary.noise:
            raise SummaryError(
                f"two noisy summaries of client {summary.clients[0]!r} came, each of which spends its epsilon; ask it "
                "which of them holds (it has to add up parts of its rows itself, before the noise)"
            )
        known.append(summary)
    there = {*parts, *without}
    if (lacking := [client for client in plan.clients if client not in there]) or not parts:
        raise SummaryError(
            f"no summary from client {some_of(lacking)}; wait for it, or make a plan without it for all others"
        )
    cohort = Cohort(plan, tuple(_sum_of(parts[client]) for client in sorted(parts)))
    _check_capacity(sum(summary.rows for summary in cohort.summaries))
    return cohort


def summarize(table: Any, plan: StudyPlan, client: str, *, max_dropped: float = 0.5, workers: int = 1) -> Summary:
    """The one message of a client: sums of features and of their products over its complete rows.

    A table may also come in batches, or as files opened with `open_tables`: one block of rows is in memory at a time,
    for each of the `workers`, threads that share the rows; however many there are, the bytes are the same. A `Spread`
    is worked on where its parts lie. Rows with a missing value are left out and counted; more than the share
    `max_dropped` of them is an error.

    >>> from fedcdh.plan import Continuous
    >>> plan = StudyPlan((Continuous("age", 60, 15),), ("north", "south"))
    >>> message = summarize({"age": [50, 61, None]}, plan, "north")
    >>> message.rows, message.rows_read, dict(message.missing)
    (2, 3, {'age': 1})
    """
    check_asked(plan, client, max_dropped)
    parts = spread_of(table, f"client {client!r}", workers=workers, names=plan.names, only=plan.names)
    return parts.spread(partial(sums_of, plan=plan, client=client), Sums.__add__).summary(plan, client, max_dropped)


def check_asked(plan: StudyPlan, client: str, max_dropped: float) -> None:
    """Refuses, before a row is read, what no summary can be made with."""
    if not 0 <= max_dropped <= 1:
        raise SettingsError(f"max_dropped is {max_dropped}; expected a share of the rows, from 0 to 1")
    if client not in plan.clients:
        raise DataError(f"client {client!r} is not part of the plan, which names {', '.join(plan.clients)}")


def sums_of(source: TableSource, *, plan: StudyPlan, client: str) -> Sums:
    """What one look at the rows of a source gives."""
    sums, encode = Sums(plan), Encoder(plan, client)
    for rows in source.batches(plan.kinds):
        sums.add(rows, encode)
    return sums


class Watch(Protocol):
    """Who else wants to see what is computed of complete rows, block by block."""

    def numbers(self, numbers: Array) -> None:
        """The values of continuous variables: variables × rows."""

    def features(self, features: Array, products: Array) -> None:
        """Features, columns × rows, and the sums of their products; these are in the moments already."""


class Sums:
    """What is added up while rows come by; `a + b` is what both would have come to."""

    def __init__(self, plan: StudyPlan) -> None:
        self.moments = np.zeros((plan.columns, plan.columns), dtype=np.int64)
        self.missing = dict.fromkeys(plan.names, 0)
        self.read = self.used = 0
        self._block = _block_rows(plan)

    def add(self, rows: Table, encode: Encoder, watch: Watch | None = None) -> Table:
        """Counts the rows, adds the products of the features of those that are complete, and gives these back."""
        complete = np.ones(rows.rows, dtype=np.bool_)
        for name, column in rows.columns.items():
            if (missing := column.missing).any():
                self.missing[name] += int(missing.sum())
                complete &= ~missing
        self.read += rows.rows
        used = rows if complete.all() else rows.where(complete)
        for start in range(0, used.rows, self._block):
            block = used.rows_from(start, self._block)
            features = encode(block, numbers := encode.numbers(block))
            if watch is not None:
                watch.numbers(numbers)
            step = _EXACT if watch is None else self._watched()
            for first in range(0, block.rows, step):
                self._multiply(features[:, first : first + step], watch)
        return used

    def _watched(self) -> int:
        """So few rows that they can hardly stand out among those so far, taken together: see `LonelyRows`."""
        columns = len(self.moments)
        return min(_EXACT, max(_WATCHED, columns, self.used // (4 * columns)))

    def _multiply(self, features: Array, watch: Watch | None) -> None:
        self.used += features.shape[1]
        _check_capacity(self.used)
        products = features @ features.T
        self.moments += products.astype(np.int64)
        if watch is not None:
            watch.features(features, products)

    def __add__(self, other: Sums) -> Sums:
        total = copy(self)
        total.moments = self.moments + other.moments
        total.missing = {name: count + other.missing[name] for name, count in self.missing.items()}
        total.read, total.used = self.read + other.read, self.used + other.used
        _check_capacity(total.used)
        return total

    def summary(self, plan: StudyPlan, client: str, max_dropped: float) -> Summary:
        """The message, unless too many rows were left out."""
        _check_dropped(client, self.read, self.used, self.missing, max_dropped)
        return Summary(plan.fingerprint, (client,), self.moments, self.read, self.missing)


def _block_rows(plan: StudyPlan) -> int:
    return max(_ENCODED, min(_CELLS // len(plan.variables), _FEATURES // plan.columns))


def _check_dropped(client: str, rows: int, used: int, missing: Mapping[str, int], max_dropped: float) -> None:
    if rows and used and (rows - used) / rows <= max_dropped:
        return
    if not rows:
        raise DataError(f"client {client!r} has no rows; leave it out of the plan")
    worst = max(missing, key=lambda name: missing[name])
    raise DataError(
        f"client {client!r} would lose {rows - used} of {rows} rows to missing values, most of them in {worst!r} "
        f"({missing[worst]} missing); leave that variable or this client out, fill the values in, or allow it with "
        "max_dropped=" + ("" if used else " (no complete row is left, so that alone would not help)")
    )


def check_noise(summary: Summary, plan: StudyPlan) -> None:
    """With noise in the plan, a summary has it, all of it; without, none."""
    if plan.noise is not None and plan.noise.shared == "together" and len(summary.clients) == 1:
        raise SummaryError(
            f"there is a summary of {summary.clients[0]} alone, but in this plan only sums over sites have noise "
            "enough to be seen; delete it, and pass Aggregate.of_sum(total, plan) of the masked sum"
        )
    expected = 0 if plan.noise is None else plan.noise.deviation**2
    if summary.noise < expected:
        found = "less noise than" if summary.noise else "none of the noise that"
        raise SummaryError(
            f"the summary of {', '.join(summary.clients)} has {found} the plan asks for, and must not have left the "
            "site like this; delete it, and ask the site for noisy(summary, plan) of fedcdh.privacy.noise"
        )
    if summary.noise and plan.noise is None:
        raise SummaryError(f"the summary of {', '.join(summary.clients)} has noise, and the plan asks for none")


def _sum_of(summaries: Sequence[Summary]) -> Summary:
    """The sum of one or more summaries, added into one matrix: there may be ten thousand, or large ones."""
    first, *others = summaries
    if not others:
        return first
    for other in others:
        _check_alike(first, other)
    _check_capacity(sum(summary.rows for summary in summaries))
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
        copy=first.copy,
        of=first.of if {summary.of for summary in summaries} == {first.of} else "",
        noise=sum(summary.noise for summary in summaries),
    )


def _check_alike(one: Summary, other: Summary) -> None:
    """Refuses to add what does not belong together."""
    if one.plan != other.plan:
        raise PlanMismatch(
            f"summaries follow different plans ({one.plan[:12]} and {other.plan[:12]}); "
            "send every client the same plan file"
        )
    if one.copy != other.copy:
        raise SummaryError(f"{_draw(one)} and {_draw(other)} cannot be added: they are not of the same draw of rows")
    if bool(one.noise) != bool(other.noise):
        raise SummaryError(f"of {_draw(one)} and {_draw(other)} only one has noise; one of them must not be here")


def _held(moments: Any) -> Integers:
    """The moments as nobody can change them: as they are if they cannot be written to already, else a copy."""
    ours = type(moments) is np.ndarray and moments.dtype == np.int64 and moments.base is None
    if ours and not moments.flags.writeable:
        return np.asarray(moments)
    held = np.array(moments, dtype=np.int64)
    held.setflags(write=False)
    return held


def _symmetric(moments: Integers) -> bool:
    """Whether this is a symmetric matrix; looked at in tiles, since it may be larger than what a cache holds."""
    if moments.ndim != 2 or moments.size == 0 or moments.shape[0] != moments.shape[1]:
        return False
    starts = range(0, len(moments), _TILE)
    tiles = ((slice(a, a + _TILE), slice(b, b + _TILE)) for a in starts for b in starts if a <= b)
    return all(np.array_equal(moments[rows, columns], moments[columns, rows].T) for rows, columns in tiles)


def _draw(summary: Summary) -> str:
    which = f"bootstrap copy {summary.copy}" if summary.copy else "the summary"
    return f"{which} of {', '.join(summary.clients)}"


def _check_capacity(rows: int) -> None:
    if rows > ROWS_AT_MOST:
        raise SummaryError(
            f"{rows} rows are more than the {ROWS_AT_MOST} whose sums are exact; use a random part of the rows"
        )
