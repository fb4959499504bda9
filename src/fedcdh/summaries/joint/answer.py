"""A client's answer to a request: one more pass over its rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedcdh._io.text import abbreviate_list
from fedcdh.data.sources import to_source
from fedcdh.data.table import Table
from fedcdh.errors import DataError
from fedcdh.summaries.encoder import Encoder
from fedcdh.summaries.joint.encoder import JointEncoder, joint_terms
from fedcdh.summaries.joint.request import JointRequest, JointSummary
from fedcdh.summaries.joint.round_budget import RoundBudget
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.summary import Integers

_BLOCK = 2048  # rows at a time; as in a summary, sums of a block are exact in float64


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
    for batch in to_source(table, f"client {client!r}", names=plan.names, only=plan.names).batches(plan.kinds):
        for start in range(0, batch.rows, _BLOCK):
            sums.add(batch.slice_rows(start, _BLOCK))
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
        """Add the products over the complete rows of a block."""
        complete = np.ones(block.rows, dtype=np.bool_)
        for column in block.columns.values():
            complete &= ~column.missing
        used = block if complete.all() else block.select_rows(complete)
        self.rows += used.rows
        features = self._encode(used)
        for names, joint in self._joint(used):
            self.own[names] += (joint @ joint.T).astype(np.int64)
            self.cross[names] += (joint @ features.T).astype(np.int64)
