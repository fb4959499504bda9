"""The bytes of a summary are those of its file."""

from __future__ import annotations

from fedcdh.evaluation.experiments.kinds.communication import COMMUNICATION_SIZE
from fedcdh.evaluation.simulation import simulate
from fedcdh.messages.summary_file import SummaryMessage, pack_summary
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.plan import StudyPlan


def test_a_message_has_the_size_that_is_claimed():
    study = simulate(variables=6, clients=1, rows=50, changing=0, seed=1, names=[f"v{i:04d}" for i in range(1, 7)])
    plan = StudyPlan.from_tables({c: dict(zip(study.names, t.T, strict=True)) for c, t in study.tables.items()})
    ((client, table),) = study.tables.items()
    summary = summarize(dict(zip(study.names, table.T, strict=True)), plan, client)
    case = {"variables": 6, "rows": 50, "width": plan.family.width}
    claimed = COMMUNICATION_SIZE.measure(case, case, "fedcdh", 0)
    assert claimed["message"] == len(pack_summary(SummaryMessage(summary), plan))
    assert claimed["raw"] == table.nbytes
