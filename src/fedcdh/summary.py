"""Summaries: all that ever leaves a client.

A summary is one symmetric matrix of integers, Σ_rows φφᵀ with φ = [1, features of every variable], and a few counts.
Features lie in [-1, 1] and are rounded to a grid of 2⁻¹⁸, so every product is an exact integer, block sums are exact
in float64 BLAS, and totals are exact in int64. Integers add up in any order: a summary is the same, bit for bit,
however the rows are ordered, batched or split into files, and it cannot hold a NaN.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from fedcdh.encoding import GRID, Encoder
from fedcdh.errors import DataError, PlanMismatch, SettingsError, SummaryError
from fedcdh.plan import StudyPlan
from fedcdh.sources import source_of
from fedcdh.tables import Table

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

ROWS_AT_MOST = (1 << 27) - 1
"""|φ_i φ_j| ≤ 2³⁶ on the grid, so this many rows fit into a signed 64-bit integer."""
NOISY_AT_MOST = 1 << 61
"""Size of an entry with noise, which no bound of features holds: sums of a few then still fit."""
CONSTANT = 1e-10
"""Variance of a feature up to which it counts as constant: rounding to the grid alone leaves up to 2⁻³⁶/4."""
_BLOCK = 2048  # rows at a time: what a cache holds; up to 8192, 2¹³ · 2³⁶ < 2⁵³, sums are exact in float64


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
        moments = np.array(self.moments, dtype=np.int64) if whole else np.zeros(0, dtype=np.int64)
        moments.setflags(write=False)
        object.__setattr__(self, "moments", moments)
        object.__setattr__(self, "missing", MappingProxyType(dict(self.missing)))
        square = moments.ndim == 2 and moments.size > 0 and np.array_equal(moments, moments.T)
        if not square or not self._within_bounds():
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
        most = self.moments[0, 0]
        if self.noise:
            return bool((np.abs(self.moments) < NOISY_AT_MOST).all())
        return 0 <= self.rows <= self.rows_read and bool(((-most <= self.moments) & (self.moments <= most)).all())

    def centred(self) -> tuple[Array, Array]:
        """The means of φ, and its scatter Σ(φ − mean)(φ − mean)ᵀ, as real numbers.

        Features are first shifted by whole steps of the grid, in integers: then small spreads around large means lose
        no digits. Intermediate products may pass 2⁶³; sums modulo 2⁶⁴ do not mind, and the scatter itself fits.
        """
        sums = self.moments[0] // GRID
        shift = np.rint(sums / self.rows).astype(np.int64)
        crossed = np.multiply.outer(shift, sums)
        shifted = self.moments - crossed - crossed.T + self.rows * np.multiply.outer(shift, shift)
        rest = (sums - self.rows * shift).astype(np.float64)
        scatter = (shifted - np.multiply.outer(rest, rest) / self.rows) / float(GRID**2)
        return (shift + rest / self.rows) / GRID, scatter

    def __add__(self, other: Summary) -> Summary:
        if self.plan != other.plan:
            raise PlanMismatch(
                f"summaries follow different plans ({self.plan[:12]} and {other.plan[:12]}); "
                "send every client the same plan file"
            )
        if self.copy != other.copy:
            raise SummaryError(
                f"{_draw(self)} and {_draw(other)} cannot be added: they are not of the same draw of rows"
            )
        if bool(self.noise) != bool(other.noise):
            raise SummaryError(f"of {_draw(self)} and {_draw(other)} only one has noise; one of them must not be here")
        _check_capacity(self.rows + other.rows)
        return Summary(
            plan=self.plan,
            clients=tuple(sorted({*self.clients, *other.clients})),
            moments=self.moments + other.moments,
            rows_read=self.rows_read + other.rows_read,
            missing={name: self.missing[name] + other.missing[name] for name in self.missing},
            copy=self.copy,
            of=self.of if self.of == other.of else "",
            noise=self.noise + other.noise,
        )

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
        return reduce(Summary.__add__, self.summaries)

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

    def centred(self) -> tuple[Array, Array]:
        """Per client, the means of φ and its scatter about them."""
        means, scatter = zip(*(summary.centred() for summary in self.summaries), strict=True)
        return np.array(means), np.array(scatter)


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

    def centred(self) -> tuple[Array, Array]:
        """The means of φ per client, and its scatter within clients, of all clients together."""
        centre, scatter = self.total.centred()
        means = self.firsts / self.firsts[:, :1]
        apart = means - centre
        rows = np.array(self.client_rows, dtype=np.float64)
        return means, (scatter - (apart.T * rows) @ apart)[None]


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
    if (lacking := [client for client in plan.clients if client not in {*parts, *without}]) or not parts:
        raise SummaryError(
            f"no summary from client {', '.join(lacking)}; wait for it, or make a plan without it for all others"
        )
    cohort = Cohort(plan, tuple(reduce(Summary.__add__, parts[client]) for client in sorted(parts)))
    _check_capacity(sum(summary.rows for summary in cohort.summaries))
    return cohort


def summarize(table: Any, plan: StudyPlan, client: str, *, max_dropped: float = 0.5) -> Summary:
    """The one message of a client: sums of features and of their products over its complete rows.

    A table may also come in batches, or as files opened with `open_tables`: one block of rows is in memory at a time.
    Rows with a missing value are left out and counted; more than the share `max_dropped` of them is an error.

    >>> from fedcdh.plan import Continuous
    >>> plan = StudyPlan((Continuous("age", 60, 15),), ("north", "south"))
    >>> message = summarize({"age": [50, 61, None]}, plan, "north")
    >>> message.rows, message.rows_read, dict(message.missing)
    (2, 3, {'age': 1})
    """
    if not 0 <= max_dropped <= 1:
        raise SettingsError(f"max_dropped is {max_dropped}; expected a share of the rows, from 0 to 1")
    if client not in plan.clients:
        raise DataError(f"client {client!r} is not part of the plan, which names {', '.join(plan.clients)}")
    source = source_of(table, f"client {client!r}", names=plan.names, only=plan.names)
    encode, sums = Encoder(plan, client), _Sums(plan)
    for batch in source.batches(plan.kinds):
        for start in range(0, batch.rows, _BLOCK):
            sums.add(batch.rows_from(start, _BLOCK), encode)
    _check_dropped(client, sums.read, sums.used, sums.missing, max_dropped)
    return Summary(plan.fingerprint, (client,), sums.moments, sums.read, sums.missing)


class _Sums:
    """What is added up while rows come by."""

    def __init__(self, plan: StudyPlan) -> None:
        self.moments = np.zeros((plan.columns, plan.columns), dtype=np.int64)
        self.missing = dict.fromkeys(plan.names, 0)
        self.read = self.used = 0

    def add(self, block: Table, encode: Encoder) -> None:
        """Counts the rows, and adds the products of the features of those that are complete."""
        complete = np.ones(block.rows, dtype=np.bool_)
        for name, column in block.columns.items():
            if (missing := column.missing).any():
                self.missing[name] += int(missing.sum())
                complete &= ~missing
        self.read += block.rows
        self.used += int(complete.sum())
        _check_capacity(self.used)
        features = encode(block if complete.all() else block.where(complete))
        self.moments += (features @ features.T).astype(np.int64)


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


def _draw(summary: Summary) -> str:
    which = f"bootstrap copy {summary.copy}" if summary.copy else "the summary"
    return f"{which} of {', '.join(summary.clients)}"


def _check_capacity(rows: int) -> None:
    if rows > ROWS_AT_MOST:
        raise SummaryError(
            f"{rows} rows are more than the {ROWS_AT_MOST} whose sums are exact; use a random part of the rows"
        )
