"""What a server knows: the summary of every client (a cohort), or only their sum (an aggregate)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fedcdh._io.text import abbreviate_list
from fedcdh._runtime.array_types import Array
from fedcdh.errors import PlanMismatchError, SettingsError, SummaryError
from fedcdh.summaries.encoder import GRID
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.summary import Integers, Summary, check_noise, check_row_capacity, describe_summary, sum_summaries


@dataclass(frozen=True, eq=False)
class Cohort:
    """One summary per client, sorted by client. What the server knows in the cohort mode of trust."""

    plan: StudyPlan
    summaries: tuple[Summary, ...]

    @cached_property
    def total(self) -> Summary:
        """The sum of all clients: what the server would know in the aggregate mode of trust."""
        return sum_summaries(self.summaries)

    @property
    def clients(self) -> tuple[str, ...]:
        return tuple(summary.clients[0] for summary in self.summaries)

    @property
    def client_rows(self) -> tuple[int, ...]:
        return tuple(summary.rows for summary in self.summaries)

    @cached_property
    def moments(self) -> Array:
        """Σ φφᵀ per client as real numbers, (clients, columns, columns)."""
        found = np.empty((len(self.summaries), self.plan.layout.n_columns, self.plan.layout.n_columns))
        for out, summary in zip(found, self.summaries, strict=True):  # it may be large: no copy besides
            np.divide(summary.moments, float(GRID**2), out=out)
        return found

    def resample_clients(self, clients: Iterable[str]) -> Cohort:
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

    def scatters(self, rows: slice, columns: slice) -> Iterator[Array]:
        """A part of the scatter of φ about its means, at one client after the other: all of it may be large."""
        return (summary.scatter(rows, columns) for summary in self.summaries)


@dataclass(frozen=True, eq=False)
class Aggregate:
    """What the server knows in the aggregate mode of trust: the sum of all summaries, and that of φ per client.

    The latter are the moments of φ with features of the client index, here one for each client: rows and means of every
    client are known, whether spreads and dependences differ between clients is not. Where clients stand together in
    groups, rows and means of every group are known, and groups are what is compared: they are its `clients`.

    >>> from fedcdh.summaries.plan import Continuous
    >>> from fedcdh.summaries.accumulator import summarize
    >>> plan = StudyPlan((Continuous("age", 60, 15),), ("north", "south"))
    >>> cohort = add_up([summarize({"age": [50, 61]}, plan, "north"), summarize({"age": [70]}, plan, "south")], plan)
    >>> Aggregate.of(cohort).client_rows
    (2, 1)
    """

    plan: StudyPlan
    total: Summary
    first_moments: Integers  # (groups, columns): the first row of the moments of each, in the order of the groups
    groups: tuple[tuple[str, tuple[str, ...]], ...] = ()  # name and clients; empty: every client of the plan by itself

    def __post_init__(self) -> None:
        if not self.groups:
            object.__setattr__(self, "groups", tuple((client, (client,)) for client in self.plan.clients))
        whole = np.can_cast(np.asarray(self.first_moments).dtype, np.int64)
        firsts = np.array(self.first_moments, dtype=np.int64) if whole else np.zeros(0, dtype=np.int64)
        firsts.setflags(write=False)
        object.__setattr__(self, "firsts", firsts)
        shape = (len(self.groups), self.plan.layout.n_columns)
        if self.total.plan != self.plan.fingerprint:
            raise PlanMismatchError("the sum of the summaries follows another plan; make it again with this plan")
        if self.first_moments.shape != shape or not np.array_equal(
            self.first_moments.sum(axis=0), self.total.moments[0]
        ):
            raise SummaryError("the clients' first moments do not add up to those of the sum; ask for both again")
        rows = self.first_moments[:, :1]
        if (rows <= 0).any():
            raise SummaryError("a client has no rows in the sum; wait for it, or make a plan without it for all others")
        if self.total.noise and len(self.groups) > 1:
            raise SummaryError("with noise in the sum only, first moments of single clients are not known")
        if (rows % GRID**2).any() or ((np.abs(self.first_moments) > rows).any() and not self.total.noise):
            raise SummaryError("the clients' first moments are damaged: no rows can have them; ask for them again")
        if self.plan.max_rows_per_client and not self.total.noise and not self.total.replicate:
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
    def from_total(cls, total: Summary, plan: StudyPlan) -> Aggregate:
        """A sum of which nothing is known by client: all of them are one group."""
        return cls(plan, total, total.moments[:1], (("all clients", total.clients),))

    def _check_rows(self) -> None:
        for (name, members), rows in zip(self.groups, self.client_rows, strict=True):
            if rows > self.plan.max_rows_per_client * len(members):
                raise SummaryError(
                    f"{name!r} counts {rows} rows in the sum, and the plan lets each of its {len(members)} clients "
                    f"have {self.plan.max_rows_per_client}; ask for them again, or make a plan with a higher max_rows_per_client for all"
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
        return tuple(int(first) // GRID**2 for first in self.first_moments[:, 0])

    @cached_property
    def moments(self) -> Array:
        """Σ φφᵀ of all clients as real numbers, (1, columns, columns)."""
        return np.asarray(self.total.moments[None] / float(GRID**2))

    @property
    def means(self) -> Array:
        """The means of φ, (clients, columns)."""
        return np.asarray(self.first_moments / self.first_moments[:, :1])

    def scatters(self, rows: slice, columns: slice) -> Iterator[Array]:
        """A part of the scatter of φ within clients, of all clients together."""
        apart = self.means - self.total.means
        between = (apart[:, rows].T * np.array(self.client_rows, dtype=np.float64)) @ apart[:, columns]
        yield self.total.scatter(rows, columns) - between


def add_up(summaries: Iterable[Summary], plan: StudyPlan, *, without: Collection[str] = ()) -> Cohort:
    """The cohort of these summaries: parts of one client are added, clients are kept apart.

    Every client of the plan has to be there, but for those that the study goes on `without`.

    >>> from fedcdh.summaries.plan import Continuous
    >>> from fedcdh.summaries.accumulator import summarize
    >>> plan = StudyPlan((Continuous("age", 60, 15),), ("north", "south"))
    >>> parts = [summarize({"age": [50, 61]}, plan, "north"), summarize({"age": [70]}, plan, "north")]
    >>> add_up([*parts, summarize({"age": [55, 80]}, plan, "south")], plan).total.rows
    5
    """
    parts: dict[str, list[Summary]] = {}
    first: Summary | None = None
    for summary in summaries:
        first = first or summary
        if summary.replicate != first.replicate:
            raise SummaryError(
                f"{describe_summary(first)} and {describe_summary(summary)} came together: a bootstrap copy counts rows again that are "
                "counted already; pass summaries of the same draw, and copies to result.stability(copies=...)"
            )
        if summary.plan != plan.fingerprint:
            raise PlanMismatchError(
                f"the summary of {', '.join(summary.clients)} follows plan {summary.plan[:12]}, not this plan "
                f"({plan.fingerprint[:12]}); make it again with this plan"
            )
        if summary.moments.shape != (plan.layout.n_columns, plan.layout.n_columns) or not summary.rows:
            raise SummaryError(
                f"the summary of {', '.join(summary.clients)} has no rows, or not the {plan.layout.n_columns} columns of the "
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
            f"no summary from client {abbreviate_list(lacking)}; wait for it, or make a plan without it for all others"
        )
    cohort = Cohort(plan, tuple(sum_summaries(parts[client]) for client in sorted(parts)))
    check_row_capacity(sum(summary.rows for summary in cohort.summaries))
    return cohort
