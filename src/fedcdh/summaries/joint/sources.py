"""Sources of answers: clients in this process, files, or a network. A test treats all of them alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from fedcdh.summaries.aggregation import Cohort
from fedcdh.summaries.joint.answer import answer_request
from fedcdh.summaries.joint.request import JointRequest, JointSummary
from fedcdh.summaries.joint.round_budget import RoundBudget
from fedcdh.summaries.plan import StudyPlan


class AnswerSource(Protocol):
    """Sends the same request to every client of the study, and returns the answer of each, set by set.

    A set that is beyond the limits of the plan is left out for all clients.
    """

    def ask(self, request: JointRequest, /) -> Mapping[str, Sequence[JointSummary]]:
        """Return the answers of all clients to a request.

        Parameters
        ----------
        request : JointRequest
            Sets of variables that are requested.

        Returns
        -------
        mapping from str to sequence of JointSummary
            Answers of each client.
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
        self._rows = dict(zip(cohort.clients, cohort.client_rows, strict=True))
        self.budgets = dict.fromkeys(self._tables, RoundBudget())

    def ask(self, request: JointRequest, /) -> Mapping[str, Sequence[JointSummary]]:
        """Return the answers of all clients.

        Parameters
        ----------
        request : JointRequest
            Sets of variables that are requested.

        Returns
        -------
        mapping from str to sequence of JointSummary
            Answers of each client.
        """
        found = {}
        for client, table in self._tables.items():
            found[client], self.budgets[client] = answer_request(
                table, self._plan, client, request, self.budgets[client], self._rows[client]
            )
        return found
