"""A client's answer to a request: one more pass over its rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fedcdh._io.text import abbreviate_list
from fedcdh.data.table import Table
from fedcdh.errors import DataError
from fedcdh.summaries.complete_rows import complete_blocks
from fedcdh.summaries.encoder import Encoder
from fedcdh.summaries.joint.encoder import JointEncoder, joint_terms
from fedcdh.summaries.joint.request import JointRequest, JointSummary
from fedcdh.summaries.joint.round_budget import FurtherRequest, RoundBudget
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.residuals import ResidualRequest, ResidualSums, check_residuals
from fedcdh.summaries.residuals.asked import select_answerable
from fedcdh.summaries.summary import Integers, Summary


def answer_request(
    table: Any, plan: StudyPlan, client: str, request: JointRequest, budget: RoundBudget, rows: int
) -> tuple[tuple[JointSummary, ...], RoundBudget]:
    """Compute one joint summary for every set of a request.

    Whether the site's own policy allows the answer to leave is for `Policy.check_answer` to say.

    Parameters
    ----------
    table : table, list of batches, or files opened with `open_tables`
        Rows of the client.
    plan : StudyPlan
        Plan of the study.
    client : str
        Name of the client.
    request : JointRequest
        Sets of variables that are requested.
    budget : RoundBudget
        What the client has answered before.
    rows : int
        Number of complete rows in the client's summary; the answer has to be of the same rows.

    Returns
    -------
    answers : tuple of JointSummary
        One answer per set of the request.
    afterwards : RoundBudget
        What the client has answered with this request.

    Raises
    ------
    DataError
        If the table does not fit the plan, or has changed.
    DisclosureError
        If the plan does not allow another answer of this size.

    Examples
    --------
    >>> from fedcdh.summaries import Continuous, StudyPlan
    >>> plan = StudyPlan((Continuous("a"), Continuous("b")), ("north",), max_rounds=1, max_bytes=10**6)
    >>> request = JointRequest(plan.fingerprint, 1, (("a", "b"),))
    >>> (answer,), spent = answer_request({"a": [0.5, 1], "b": [1, 2]}, plan, "north", request, RoundBudget(), rows=2)
    >>> answer.cross.shape, spent.rounds
    ((17, 13), 1)
    """
    if client not in plan.clients:
        raise DataError(
            f"client {client!r} is not in the plan, which names {abbreviate_list(plan.clients)}; correct the name, or "
            "the plan"
        )
    afterwards = budget.charge(request, plan, rows)
    sums = _JointSums(plan, client, request)
    for block in complete_blocks(table, plan, client):
        sums.add(block)
    if sums.rows != rows:
        raise DataError(
            f"client {client!r} has {sums.rows} complete rows; expected the {rows} of its summary: the table has "
            "changed; make the summary again, and let the study start over"
        )
    answers = (
        JointSummary(plan.fingerprint, client, names, rows, sums.own[names], sums.cross[names])
        for names in request.sets
    )
    return tuple(answers), afterwards


def check_answers(
    answers: Sequence[JointSummary | ResidualSums],
    request: FurtherRequest,
    plan: StudyPlan,
    summary: Summary,
    client: str,
) -> None:
    """Raise an error if a client's answers do not fit the request, or are not of the rows of its summary.

    Parameters
    ----------
    answers : sequence of JointSummary or of ResidualSums
        Answers of the client, in the order of the request.
    request : JointRequest or ResidualRequest
        The request.
    plan : StudyPlan
        Plan of the study.
    summary : Summary
        Summary of the client.
    client : str
        Name of the client.

    Raises
    ------
    PlanMismatchError
        If an answer follows another plan.
    SummaryError
        If no rows, or not those of the summary, can have given an answer.
    """
    plan = plan.for_client(client)
    request = select_answerable(request, plan)
    if isinstance(request, ResidualRequest):
        check_residuals([one for one in answers if isinstance(one, ResidualSums)], request, plan, summary, client)
    for answer in answers:
        if isinstance(answer, JointSummary):
            answer.check(plan, summary)


class _JointSums:
    """Adds the joint moments of rows that come in blocks."""

    def __init__(self, plan: StudyPlan, client: str, request: JointRequest) -> None:
        self._encode, self._joint = Encoder(plan, client), JointEncoder(plan, client, request.sets)
        widths = {names: len(joint_terms(plan, names)) for names in request.sets}
        self.own: dict[tuple[str, ...], Integers] = {
            names: np.zeros((width, width), dtype=np.int64) for names, width in widths.items()
        }
        self.cross: dict[tuple[str, ...], Integers] = {
            names: np.zeros((width, plan.layout.n_columns), dtype=np.int64) for names, width in widths.items()
        }
        self.rows = 0

    def add(self, block: Table) -> None:
        """Add the products over complete rows."""
        self.rows += block.rows
        features = self._encode(block)
        for names, joint in self._joint(block):
            self.own[names] += (joint @ joint.T).astype(np.int64)
            self.cross[names] += (joint @ features.T).astype(np.int64)
