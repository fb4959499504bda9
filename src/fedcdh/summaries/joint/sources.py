"""Sources of answers: clients in this process, files, or a network. A test treats all of them alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from fedcdh.summaries.aggregation import Cohort
from fedcdh.summaries.joint.answer import answer_request
from fedcdh.summaries.joint.request import JointRequest, JointSummary
from fedcdh.summaries.joint.round_budget import FurtherRequest, RoundBudget
from fedcdh.summaries.joint.scheduling import (
    plan_requests,
    plan_residual_requests,
    select_affordable_queries,
    select_answers,
    select_residuals,
)
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.residuals.answer import answer_residuals
from fedcdh.summaries.residuals.asked import can_answer, select_answerable
from fedcdh.summaries.residuals.request import Coordinates, ResidualQuery, ResidualRequest, ResidualSums


class AnswerSource(Protocol):
    """Sends the same request to every client of the study, and returns the answer of each.

    What is beyond the limits of the plan is left out for all clients.
    """

    def ask(self, request: JointRequest, /) -> Mapping[str, Sequence[JointSummary]]:
        """Return the answers of all clients to a request for joint features.

        Parameters
        ----------
        request : JointRequest
            Sets of variables that are requested.

        Returns
        -------
        mapping from str to sequence of JointSummary
            Answers of each client.
        """

    def ask_residuals(self, request: ResidualRequest, /) -> Mapping[str, Sequence[ResidualSums]]:
        """Return the answers of all clients to a request about residuals, or the sum of their answers.

        Parameters
        ----------
        request : ResidualRequest
            Queries that are requested.

        Returns
        -------
        mapping from str to sequence of ResidualSums
            Answers of each client, in the order of the queries. A client with too few rows for any answer is left out;
            after secure aggregation there is one entry, the sum over all clients.
        """

    def select_affordable(
        self, queries: Sequence[ResidualQuery], coordinates: Mapping[str, Coordinates], /
    ) -> tuple[ResidualQuery, ...]:
        """Return the queries that all clients may answer, in the order of priority.

        Parameters
        ----------
        queries : sequence of ResidualQuery
            Queries, the most wanted first.
        coordinates : mapping from str to Coordinates
            Coordinates of their variables.

        Returns
        -------
        tuple of ResidualQuery
            Queries that were asked before, or that fit into the limits of the plan and the default policy.
        """


class LocalAnswerSource:
    """Clients whose tables are in this process; each keeps its own budget and enforces the limits of the plan.

    Parameters
    ----------
    tables : mapping from str to table
        Table of each client.
    plan : StudyPlan
        Plan of the study.
    cohort : Cohort
        Summaries of the clients.

    Examples
    --------
    >>> from fedcdh.summaries import Continuous, StudyPlan, add_up, summarize
    >>> plan = StudyPlan((Continuous("a"), Continuous("b")), ("north",), max_rounds=1, max_bytes=10**6)
    >>> table = {"a": [0.5, 1], "b": [1, 2]}
    >>> source = LocalAnswerSource({"north": table}, plan, add_up([summarize(table, plan, "north")], plan))
    >>> len(source.ask(JointRequest(plan.fingerprint, 1, (("a", "b"),)))["north"])
    1
    """

    def __init__(self, tables: Mapping[str, Any], plan: StudyPlan, cohort: Cohort) -> None:
        self._tables, self._plan = dict(tables), plan
        self._summaries = dict(zip(cohort.clients, cohort.summaries, strict=True))
        self._largest = max(cohort.client_rows)
        self._requests: list[FurtherRequest] = []
        self._received: dict[int, Mapping[str, Sequence[Any]]] = {}
        self.budgets = dict.fromkeys(self._tables, RoundBudget())

    def ask(self, request: JointRequest, /) -> Mapping[str, Sequence[JointSummary]]:
        """Return the answers of all clients to a request for joint features.

        Parameters
        ----------
        request : JointRequest
            Sets of variables that are requested.

        Returns
        -------
        mapping from str to sequence of JointSummary
            Answers of each client.
        """
        requests = plan_requests(request, self._requests, self._plan, self._largest)
        return self._none() | select_answers(request, [self._answers(one) for one in requests])

    def ask_residuals(self, request: ResidualRequest, /) -> Mapping[str, Sequence[ResidualSums]]:
        """Return the answers of all clients to a request about residuals.

        Parameters
        ----------
        request : ResidualRequest
            Queries that are requested.

        Returns
        -------
        mapping from str to sequence of ResidualSums
            Answers of each client.
        """
        requests = plan_residual_requests(request, self._requests, self._plan, self._largest)
        return self._none() | select_residuals(request, [self._answers(one) for one in requests])

    def select_affordable(
        self, queries: Sequence[ResidualQuery], coordinates: Mapping[str, Coordinates], /
    ) -> tuple[ResidualQuery, ...]:
        """Return the queries that the plan allows, in the order of priority; no policy holds in this process.

        Parameters
        ----------
        queries : sequence of ResidualQuery
            Queries, the most wanted first.
        coordinates : mapping from str to Coordinates
            Coordinates of their variables.

        Returns
        -------
        tuple of ResidualQuery
            Queries that were asked before, or that fit into the limits of the plan.
        """
        return select_affordable_queries(queries, coordinates, self._requests, self._plan, self._largest)

    def _none(self) -> dict[str, tuple[Any, ...]]:
        return dict.fromkeys(self._tables, ())

    def _answers(self, request: FurtherRequest) -> Mapping[str, Sequence[Any]]:
        """Return the answers of all clients to a request, computed once."""
        if request.number not in self._received:
            self._requests.append(request)
            self._received[request.number] = {client: self._answer(client, request) for client in self._tables}
        return self._received[request.number]

    def _answer(self, client: str, request: FurtherRequest) -> Sequence[Any]:
        table, plan, summary = self._tables[client], self._plan.for_client(client), self._summaries[client]
        if not can_answer(request, plan):
            return ()
        request = select_answerable(request, plan)
        if isinstance(request, JointRequest):
            answers, self.budgets[client] = answer_request(
                table, plan, client, request, self.budgets[client], summary.rows
            )
            return answers
        self.budgets[client] = self.budgets[client].charge(request, plan, summary.rows)
        return answer_residuals(table, plan, client, request, summary)
