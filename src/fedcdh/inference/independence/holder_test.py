"""A test that asks, for every query, the clients that have all of its variables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from fedcdh.protocols import DOMAIN, Answer, IndependenceTest, Query
from fedcdh.summaries.aggregation import Cohort


@dataclass(eq=False)
class HolderTest:
    """An independence test for clients that lack variables.

    A query that no client can answer gets the p-value 0 from 0 rows: what nobody measured separates nothing. So does a
    query about the domain that fewer than two clients can answer.

    Attributes
    ----------
    cohort : Cohort
        The summaries as they came.
    make : callable
        Makes the test of clients that have the same variables.

    Examples
    --------
    >>> from fedcdh.inference import Basis, RegressionTest
    >>> from fedcdh.summaries import Continuous, StudyPlan, add_up, summarize
    >>> plan = StudyPlan((Continuous("a"), Continuous("b")), ("north", "south"), absent={"north": ["b"]})
    >>> values = [0.1, 0.9, 1.4, 0.3, 0.8, 2.0, 1.1, 0.2]
    >>> tables = {"north": {"a": values}, "south": {"a": values, "b": values[::-1]}}
    >>> cohort = add_up([summarize(table, plan, client) for client, table in tables.items()], plan)
    >>> HolderTest(cohort, lambda part: RegressionTest(Basis.of(part)))([Query("a", "b")])[0].rows
    8
    """

    cohort: Cohort
    make: Callable[[Cohort], IndependenceTest]
    _tests: dict[tuple[str, ...], IndependenceTest] = field(default_factory=dict, init=False)

    def __call__(self, queries: Sequence[Query], /) -> list[Answer]:
        """Return one answer per query, in order."""
        groups: dict[tuple[str, ...], list[Query]] = {}
        for query in dict.fromkeys(queries):
            groups.setdefault(self.clients_asked(query), []).append(query)
        found: dict[Query, Answer] = {}
        for clients, some in groups.items():
            if not clients:
                found.update({query: Answer(query, 0.0, 0.0, 0) for query in some})
                continue
            if clients not in self._tests:
                self._tests[clients] = self.make(self.cohort.only(clients))
            found.update(zip(some, self._tests[clients](some), strict=True))
        return [found[query] for query in queries]

    def clients_asked(self, query: Query) -> tuple[str, ...]:
        """Return the clients that a query is asked of.

        Parameters
        ----------
        query : Query
            A query.

        Returns
        -------
        tuple of str
            Those that have all variables; none where too few have.
        """
        names = {query.x, query.y, *query.given}
        clients = self.cohort.holders(names - {DOMAIN})
        return clients if len(clients) > (DOMAIN in query.pair) else ()
