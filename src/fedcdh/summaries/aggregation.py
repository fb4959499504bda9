"""The knowledge of a server: the summary of every client (a cohort), or only their sum (an aggregate)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fedcdh._io.text import abbreviate_list
from fedcdh._runtime.array_types import Array
from fedcdh.errors import PlanMismatchError, SettingsError, SummaryError
from fedcdh.summaries.client_changes import adopt_summary, describe_plan_mismatch
from fedcdh.summaries.domain_mixtures import DomainMixtures
from fedcdh.summaries.encoder import GRID
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.summary import Integers, Summary, check_noise, check_row_capacity, describe_summary, sum_summaries


@dataclass(frozen=True, eq=False)
class Cohort:
    """One summary per client, sorted by client: what a server knows in the cohort mode of trust.

    Attributes
    ----------
    plan : StudyPlan
        Plan of the study.
    summaries : tuple of Summary
        One summary per client.

    Examples
    --------
    >>> from fedcdh.summaries import Continuous, StudyPlan, summarize
    >>> plan = StudyPlan((Continuous("age", 60, 15),), ("north",))
    >>> add_up([summarize({"age": [50, 61]}, plan, "north")], plan).clients
    ('north',)
    """

    plan: StudyPlan
    summaries: tuple[Summary, ...]

    @cached_property
    def total(self) -> Summary:
        """Return the sum over all clients: what the server would know in the aggregate mode of trust."""
        return sum_summaries(self.summaries)

    @property
    def clients(self) -> tuple[str, ...]:
        """Return the names of the clients."""
        return tuple(summary.clients[0] for summary in self.summaries)

    @property
    def client_rows(self) -> tuple[int, ...]:
        """Return the number of rows of each client."""
        return tuple(summary.rows for summary in self.summaries)

    @property
    def first_moments(self) -> Integers:
        """Return the first row of the moments of each client, (clients, columns): all that a sum keeps of them."""
        return np.array([summary.moments[0] for summary in self.summaries])

    @cached_property
    def moments(self) -> Array:
        """Return Σ φφᵀ per client as real numbers, (clients, columns, columns)."""
        found = np.empty((len(self.summaries), self.plan.layout.n_columns, self.plan.layout.n_columns))
        for out, summary in zip(found, self.summaries, strict=True):  # it may be large: no second copy
            np.divide(summary.moments, float(GRID**2), out=out)
        return found

    def resample_clients(self, clients: Iterable[str]) -> Cohort:
        """Return the study of these clients only, by the same plan.

        A client that occurs again counts as another client. The repetition gets a name that no plan allows, so that
        it cannot be mistaken for a client of the study.

        Parameters
        ----------
        clients : iterable of str
            Names of clients, with repetitions.

        Returns
        -------
        Cohort
            The resampled study.

        Raises
        ------
        SettingsError
            If there is none, or one is not in the cohort.
        """
        summaries = dict(zip(self.clients, self.summaries, strict=True))
        times = Counter(clients)
        if not times or not times.keys() <= summaries.keys():
            raise SettingsError(
                f"found clients {sorted(times)}; expected some of {', '.join(self.clients)}; pass names of these "
                "clients"
            )
        resampled = [
            replace(summaries[client], clients=(client if number == 1 else f"{client}\n{number}",))
            for client in times
            for number in range(1, times[client] + 1)
        ]
        return Cohort(self.plan, tuple(sorted(resampled, key=lambda summary: summary.clients)))

    @property
    def means(self) -> Array:
        """Return the means of φ, (clients, columns)."""
        return np.array([summary.means for summary in self.summaries])

    def scatters(self, rows: slice, columns: slice) -> Iterator[Array]:
        """Return a part of the scatter of φ about its means, at one client after the other; all of it may be large.

        Parameters
        ----------
        rows : slice
            Rows of the scatter matrix.
        columns : slice
            Columns of the scatter matrix.

        Returns
        -------
        iterator of array
            That part of the scatter matrix of each client.
        """
        return (summary.scatter(rows, columns) for summary in self.summaries)


@dataclass(frozen=True, eq=False)
class Aggregate:
    """The sum of all summaries, and the first moments of each client: the aggregate mode of trust.

    The first moments are those of φ with indicators of the clients, so the means of all features of every client are
    known, and with those of the squares its standard deviations; how variables go together at one client is not. Where
    clients form groups, the same is known of every group, and groups are compared: they are its `clients`.

    Attributes
    ----------
    plan : StudyPlan
        Plan of the study.
    total : Summary
        Sum of the clients' summaries.
    first_moments : array of int64
        First row of the moments of each group, (groups, columns).
    groups : tuple of (str, tuple of str), default ()
        Name and clients of each group. Empty: every client of the plan is a group of its own.
    mixtures : DomainMixtures, optional
        Mixtures of the clients' first moments, in their place: all clients are then one group.

    Examples
    --------
    >>> from fedcdh.summaries import Continuous, StudyPlan, summarize
    >>> plan = StudyPlan((Continuous("age", 60, 15),), ("north", "south"))
    >>> cohort = add_up([summarize({"age": [50, 61]}, plan, "north"), summarize({"age": [70]}, plan, "south")], plan)
    >>> Aggregate.of(cohort).client_rows
    (2, 1)
    """

    plan: StudyPlan
    total: Summary
    first_moments: Integers
    groups: tuple[tuple[str, tuple[str, ...]], ...] = ()
    mixtures: DomainMixtures | None = None

    def __post_init__(self) -> None:
        if not self.groups:
            object.__setattr__(self, "groups", tuple((client, (client,)) for client in self.plan.clients))
        whole = np.can_cast(np.asarray(self.first_moments).dtype, np.int64)
        firsts = np.array(self.first_moments, dtype=np.int64) if whole else np.zeros(0, dtype=np.int64)
        firsts.setflags(write=False)
        object.__setattr__(self, "first_moments", firsts)
        shape = (len(self.groups), self.plan.layout.n_columns)
        if self.total.plan != self.plan.fingerprint:
            raise PlanMismatchError(
                "the sum of the summaries follows another plan than this one; make it again with this plan"
            )
        if self.first_moments.shape != shape or not np.array_equal(
            self.first_moments.sum(axis=0), self.total.moments[0]
        ):
            raise SummaryError(
                "the clients' first moments do not add up to those of the sum; expected them to; ask for both again"
            )
        rows = self.first_moments[:, :1]
        if (rows <= 0).any():
            raise SummaryError(
                "a client has no rows in the sum; expected one or more; wait for it, or make a plan without it for "
                "all others"
            )
        if self.total.noise and len(self.groups) > 1:
            raise SummaryError(
                f"the sum has noise and {len(self.groups)} groups; with noise, first moments of single groups are not "
                "known; put all clients into one group"
            )
        if (rows % GRID**2).any() or ((np.abs(self.first_moments) > rows).any() and not self.total.noise):
            raise SummaryError("the clients' first moments are damaged: no rows can have them; ask for them again")
        if self.plan.max_rows_per_client and not self.total.noise and not self.total.replicate:
            self._check_rows()
        members = sorted(client for _, group in self.groups for client in group)
        if tuple(members) != self.total.clients:
            raise SummaryError(
                f"the groups have the clients {', '.join(members)}, the sum has {', '.join(self.total.clients)}; name "
                "every client of the sum in one group"
            )
        if self.mixtures is not None:
            if len(self.groups) > 1 or self.total.noise:
                raise SummaryError(
                    "the sum has mixtures with groups or noise; expected neither; leave the mixtures out"
                )
            self.mixtures.check(self.plan, self.total)

    @classmethod
    def of(cls, cohort: Cohort, groups: Mapping[str, str] | None = None) -> Aggregate:
        """Return what is left of a cohort when only sums over clients may be seen.

        Parameters
        ----------
        cohort : Cohort
            Summaries of all clients.
        groups : mapping from str to str, optional
            Group of each client. Default: every client is a group of its own.

        Returns
        -------
        Aggregate
            The sum, with the first moments of each group.
        """
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
    def from_total(cls, total: Summary, plan: StudyPlan, mixtures: DomainMixtures | None = None) -> Aggregate:
        """Return the aggregate of a sum of which no means are known by client: all clients are one group.

        Parameters
        ----------
        total : Summary
            Sum of the clients' summaries.
        plan : StudyPlan
            Plan of the study.
        mixtures : DomainMixtures, optional
            Mixtures of the clients' first moments.

        Returns
        -------
        Aggregate
            The sum, with one group.
        """
        return cls(plan, total, total.moments[:1], (("all clients", total.clients),), mixtures)

    def _check_rows(self) -> None:
        for (name, members), rows in zip(self.groups, self.client_rows, strict=True):
            if rows > self.plan.max_rows_per_client * len(members):
                raise SummaryError(
                    f"{name!r} counts {rows} rows in the sum; expected at most {self.plan.max_rows_per_client} for "
                    f"each of its {len(members)} clients; ask for the summaries again, or make a plan with a higher "
                    "limit",
                    parameter="max_rows_per_client",
                )

    @property
    def summaries(self) -> tuple[Summary, ...]:
        """Return the sum as the only summary."""
        return (self.total,)

    @property
    def clients(self) -> tuple[str, ...]:
        """Return the names of the groups whose rows and means are known."""
        return tuple(group for group, _ in self.groups)

    @property
    def client_rows(self) -> tuple[int, ...]:
        """Return the number of rows of each group."""
        return tuple(int(first) // GRID**2 for first in self.first_moments[:, 0])

    @cached_property
    def moments(self) -> Array:
        """Return Σ φφᵀ of all clients as real numbers, (1, columns, columns)."""
        return np.asarray(self.total.moments[None] / float(GRID**2))

    @property
    def means(self) -> Array:
        """Return the means of φ, (groups, columns)."""
        return np.asarray(self.first_moments / self.first_moments[:, :1])

    def scatters(self, rows: slice, columns: slice) -> Iterator[Array]:
        """Yield a part of the scatter of φ within groups, of all groups together.

        Parameters
        ----------
        rows : slice
            Rows of the scatter matrix.
        columns : slice
            Columns of the scatter matrix.

        Yields
        ------
        array
            That part of the pooled within-group scatter matrix.
        """
        apart = self.means - self.total.means
        between = (apart[:, rows].T * np.array(self.client_rows, dtype=np.float64)) @ apart[:, columns]
        yield self.total.scatter(rows, columns) - between


def add_up(summaries: Iterable[Summary], plan: StudyPlan, *, without: Collection[str] = ()) -> Cohort:
    """Collect the summaries of all clients: parts of one client are added, clients are kept apart.

    Parameters
    ----------
    summaries : iterable of Summary
        One or more summaries of every client.
    plan : StudyPlan
        Plan of the study.
    without : collection of str, default ()
        Clients of the plan that may be absent.

    Returns
    -------
    Cohort
        One summary per client.

    Raises
    ------
    PlanMismatchError
        If a summary follows another plan.
    SummaryError
        If a client is missing, a summary came twice, or summaries do not belong together.

    Examples
    --------
    >>> from fedcdh.summaries import Continuous, StudyPlan, summarize
    >>> plan = StudyPlan((Continuous("age", 60, 15),), ("north", "south"))
    >>> parts = [summarize({"age": [50, 61]}, plan, "north"), summarize({"age": [70]}, plan, "north")]
    >>> add_up([*parts, summarize({"age": [55, 80]}, plan, "south")], plan).total.rows
    5
    """
    parts: dict[str, list[Summary]] = {}
    first: Summary | None = None
    for given in summaries:
        summary = adopt_summary(given, plan)
        first = first or summary
        _check_replicate(summary, first)
        _check_fits_plan(summary, plan)
        known = parts.setdefault(summary.clients[0], [])
        _check_new(summary, known)
        known.append(summary)
    there = {*parts, *without}
    if (lacking := [client for client in plan.clients if client not in there]) or not parts:
        raise SummaryError(
            f"there is no summary from client {abbreviate_list(lacking)}; expected one of every client of the plan; "
            "wait for it, or leave it out with without=(...), for which no other client has to do anything",
            parameter="without",
        )
    cohort = Cohort(plan, tuple(sum_summaries(parts[client]) for client in sorted(parts)))
    check_row_capacity(sum(summary.rows for summary in cohort.summaries))
    return cohort


def _check_replicate(summary: Summary, first: Summary) -> None:
    """Raise an error if bootstrap replicates and summaries of the rows themselves are mixed."""
    if summary.replicate != first.replicate:
        raise SummaryError(
            f"{describe_summary(first)} and {describe_summary(summary)} came together; a bootstrap replicate counts "
            "rows that are counted already; pass summaries of the same replicate, and replicates to "
            "result.stability()"
        )


def _check_fits_plan(summary: Summary, plan: StudyPlan) -> None:
    """Raise an error if a summary is not that of one client, by this plan, with its noise."""
    if summary.plan != plan.fingerprint:
        whose = f"the summary of {', '.join(summary.clients)}"
        raise describe_plan_mismatch(whose, summary.plan, plan, "make it again with this plan")
    if summary.moments.shape != (plan.layout.n_columns, plan.layout.n_columns) or not summary.rows:
        raise SummaryError(
            f"the summary of {', '.join(summary.clients)} has {summary.rows} rows and {len(summary.moments)} columns; "
            f"expected one row or more and the {plan.layout.n_columns} columns of the plan; make it again from the "
            "table"
        )
    check_noise(summary, plan)
    if len(summary.clients) != 1:
        raise SummaryError(
            f"a summary holds the sum of clients {', '.join(summary.clients)}, in which their differences are lost; "
            "expected the summaries of single clients; pass these"
        )


def _check_new(summary: Summary, known: Collection[Summary]) -> None:
    """Raise an error if a client's summary came before, or a second noisy one comes."""
    if summary in known:
        raise SummaryError(
            f"the same summary of client {summary.clients[0]!r} came twice; pass it once (or, if these really are "
            "other rows with the same values, add the two with + first)"
        )
    if known and summary.noise:
        raise SummaryError(
            f"two noisy summaries of client {summary.clients[0]!r} came, each of which spends its epsilon; ask the "
            "client which of them is valid (it has to add parts of its rows itself, before the noise)"
        )
