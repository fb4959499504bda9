"""The layout of features covers all columns once."""

from __future__ import annotations

from fedcdh.summaries.features import Fourier
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.variables import Categorical, Continuous

PLAN = StudyPlan(
    (Continuous("age", 60.0, 15.0), Categorical("sex", ("f", "m"))), ("north", "south"), Fourier(5, 1.0, 7), 6.0
)


def test_spans_cover_all_columns_once():
    covered = [column for span in PLAN.layout.spans.values() for column in range(span.start, span.stop)]
    assert covered == list(range(1, PLAN.layout.n_columns))
