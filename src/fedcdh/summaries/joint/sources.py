"""Who answers requests: clients in this process, files that come by mail, a network. The test sees no difference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from fedcdh.summaries.aggregation import Cohort
from fedcdh.summaries.joint.answer import answer_request
from fedcdh.summaries.joint.request import JointRequest, JointSummary
from fedcdh.summaries.joint.round_budget import RoundBudget
from fedcdh.summaries.plan import StudyPlan


class AnswerSource(Protocol):
    """Asks every client of the study the same, and returns what each of them answers, set by set.

    A set that nobody may be asked about any more, since the budget was used up before, is left out for all of them.
    """

    def ask(self, request: JointRequest, /) -> Mapping[str, Sequence[JointSummary]]: ...


class LocalAnswerSource:
    """Clients whose tables are here: each keeps its own ledger and holds itself to the plan's budget."""

    def __init__(self, tables: Mapping[str, Any], plan: StudyPlan, cohort: Cohort) -> None:
        self._tables, self._plan = dict(tables), plan
        self._rows = dict(zip(cohort.clients, cohort.client_rows, strict=True))
        self.budgets = dict.fromkeys(self._tables, RoundBudget())

    def ask(self, request: JointRequest, /) -> Mapping[str, Sequence[JointSummary]]:
        """The answers of all clients."""
        found = {}
        for client, table in self._tables.items():
            found[client], self.budgets[client] = answer_request(
                table, self._plan, client, request, self.budgets[client], self._rows[client]
            )
        return found
