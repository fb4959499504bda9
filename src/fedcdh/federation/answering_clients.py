"""The clients that are asked about residuals, and how much all of them may answer by the default policy.

The coordinator knows the rows and the summary of every client, so it can tell what a site with the default policy would
refuse, and does not ask for it. Limits of a site's own are not known here; such a site refuses by itself. After secure
aggregation it knows less: the rows of clients or groups, and the sum of all summaries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from fedcdh.privacy.disclosure.policy import Policy
from fedcdh.privacy.disclosure.residual_counts import may_answer, needs_coarse_sums, select_answering_clients
from fedcdh.privacy.disclosure.residual_risk import find_regular_queries
from fedcdh.summaries.aggregation import Aggregate, Cohort
from fedcdh.summaries.joint import RoundBudget, plan_residual_requests, select_affordable_queries
from fedcdh.summaries.joint.round_budget import FurtherRequest
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.residuals import Coordinates, ResidualQuery, ResidualRequest, restrict_request


class _QuerySelection:
    """Selects the queries that may be asked, by limits of the plan and of the default policy."""

    def plan_requests(
        self, wanted: ResidualRequest, earlier_requests: Sequence[FurtherRequest]
    ) -> tuple[ResidualRequest, ...]:
        """Return the requests whose answers hold the wanted queries, as far as all clients may answer them.

        Parameters
        ----------
        wanted : ResidualRequest
            Queries that the search needs.
        earlier_requests : sequence of JointRequest or ResidualRequest
            All requests so far.

        Returns
        -------
        tuple of ResidualRequest
            Earlier requests, and a new one for the rest.
        """
        regular = self._find_regular(wanted)
        if not regular:
            return ()
        chosen = restrict_request(replace(wanted, coarse=self.coarse), regular, wanted.number)
        return plan_residual_requests(chosen, earlier_requests, self._plan, self._largest, self._allow)

    def select_affordable(
        self,
        queries: Sequence[ResidualQuery],
        coordinates: Mapping[str, Coordinates],
        earlier_requests: Sequence[FurtherRequest],
    ) -> tuple[ResidualQuery, ...]:
        """Return the queries that all clients may answer, in the order of priority.

        Parameters
        ----------
        queries : sequence of ResidualQuery
            Queries, the most wanted first.
        coordinates : mapping from str to Coordinates
            Coordinates of their variables.
        earlier_requests : sequence of JointRequest or ResidualRequest
            All requests so far.

        Returns
        -------
        tuple of ResidualQuery
            The affordable queries, in the given order.
        """
        if not queries:
            return ()
        plan = self._plan
        ordered = tuple(sorted(set(queries), key=lambda query: query.key))
        regular = self._find_regular(ResidualRequest(plan.fingerprint, 1, coordinates, ordered))
        # The sum about a product is too small to be found in coarse sums.
        chosen = [query for query in queries if query in regular and not (self.coarse and query.has_products)]
        return select_affordable_queries(
            chosen, coordinates, earlier_requests, plan, self._largest, self._allow, coarse=self.coarse
        )

    @property
    def coarse(self) -> bool:
        """Return whether the clients are asked for coarse sums."""
        return False

    @property
    def _plan(self) -> StudyPlan:
        raise NotImplementedError

    @property
    def _largest(self) -> int:
        """Return the largest number of rows of a client, for the bytes of its answers."""
        raise NotImplementedError

    def _allow(self, budget: RoundBudget) -> bool:
        """Return whether all clients under disclosure control may answer as much."""
        raise NotImplementedError

    def _find_regular(self, request: ResidualRequest) -> frozenset[ResidualQuery]:
        """Return the queries whose residuals look like those of a regression."""
        raise NotImplementedError


@dataclass(frozen=True)
class AnsweringClients(_QuerySelection):
    """The clients of a cohort that are asked about residuals.

    Parameters
    ----------
    cohort : Cohort
        The summaries of all clients.
    uncontrolled : frozenset of str, default empty
        Clients without disclosure control, for which only the plan has limits.
    silent : frozenset of str, default empty
        Clients that did not answer a request about residuals, and are not asked again.

    Examples
    --------
    >>> from fedcdh.summaries import Continuous, StudyPlan, add_up, summarize
    >>> plan = StudyPlan((Continuous("a"), Continuous("b")), ("north", "south"))
    >>> rows = {"north": range(50), "south": range(500)}
    >>> cohort = add_up([summarize({"a": n, "b": n}, plan, client) for client, n in rows.items()], plan)
    >>> AnsweringClients(cohort).names
    ('south',)
    """

    cohort: Cohort
    uncontrolled: frozenset[str] = frozenset()
    silent: frozenset[str] = frozenset()

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Return the clients that are asked, in the order of the cohort; sums are over these."""
        enough = select_answering_clients(self.cohort.plan, self._rows, coarse=self.coarse)
        asked = {*enough, *self.uncontrolled} - self.silent
        return tuple(client for client in self.cohort.clients if client in asked)

    @cached_property
    def coarse(self) -> bool:
        """Return whether a client under disclosure control has too few rows for a search with exact sums."""
        return needs_coarse_sums(
            self.cohort.plan, [rows for client, rows in self._rows.items() if client not in self.uncontrolled]
        )

    @property
    def _plan(self) -> StudyPlan:
        return self.cohort.plan

    @cached_property
    def _rows(self) -> dict[str, int]:
        return dict(zip(self.cohort.clients, self.cohort.client_rows, strict=True))

    @property
    def _largest(self) -> int:
        return max(self.cohort.client_rows)

    @cached_property
    def _controlled(self) -> tuple[str, ...]:
        return tuple(client for client in self.names if client not in self.uncontrolled)

    def _allow(self, budget: RoundBudget) -> bool:
        """Return whether the smallest client under disclosure control may answer as much."""
        rows = [self._rows[client] for client in self._controlled]
        return not rows or may_answer(self.cohort.plan, min(rows), budget)

    def _find_regular(self, request: ResidualRequest) -> frozenset[ResidualQuery]:
        """Return the queries whose residuals are those of a regression at every client; none if nobody is asked."""
        if not self.names:
            return frozenset()
        plan, summaries = self.cohort.plan, dict(zip(self.cohort.clients, self.cohort.summaries, strict=True))
        asked = {client: summaries[client] for client in self._controlled}
        return find_regular_queries(request, plan, asked, Policy().residual_limits(plan))


@dataclass(frozen=True)
class AnsweringSum(_QuerySelection):
    """The clients of a secure sum, whose answers about residuals are seen as a sum only.

    Sums are counted against the rows of at least as many clients as the threshold says. Of these, a site knows its own
    rows, and that all others have as many as the policy demands for a summary.

    Parameters
    ----------
    aggregate : Aggregate
        The sum of the summaries.
    threshold : int
        Number of clients that are at least in a sum.
    uncontrolled : frozenset of str, default empty
        Clients without disclosure control, for which only the plan has limits.

    Examples
    --------
    >>> from fedcdh.summaries import Aggregate, Continuous, StudyPlan, add_up, summarize
    >>> plan = StudyPlan((Continuous("a"),), ("east", "north", "south"), max_rounds=1, max_bytes=10**6)
    >>> cohort = add_up([summarize({"a": range(150)}, plan, client) for client in plan.clients], plan)
    >>> AnsweringSum(Aggregate.of(cohort), threshold=3).min_rows
    350
    """

    aggregate: Aggregate
    threshold: int
    uncontrolled: frozenset[str] = frozenset()

    @cached_property
    def min_rows(self) -> int:
        """Return the rows that the smallest client under disclosure control knows to be in a sum."""
        least = Policy().differencing_limits(self._plan).rows
        own = [
            rows if len(members) == 1 else least
            for (_, members), rows in zip(self.aggregate.groups, self.aggregate.client_rows, strict=True)
            if not self.uncontrolled.issuperset(members)
        ]
        return min(own, default=0) + (self.threshold - 1) * least

    @property
    def _plan(self) -> StudyPlan:
        return self.aggregate.plan

    @property
    def _largest(self) -> int:
        return max(self.aggregate.client_rows)

    @cached_property
    def _is_controlled(self) -> bool:
        return not self.uncontrolled.issuperset(self.aggregate.total.clients)

    def _allow(self, budget: RoundBudget) -> bool:
        return not self._is_controlled or may_answer(self._plan, self.min_rows, budget)

    def _find_regular(self, request: ResidualRequest) -> frozenset[ResidualQuery]:
        summaries = {"": self.aggregate.total} if self._is_controlled else {}
        return find_regular_queries(request, self._plan, summaries, Policy().residual_limits(self._plan))
