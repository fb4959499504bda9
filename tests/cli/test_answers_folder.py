"""The coordinator's folder of requests and answers."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_study import plan_of, summaries

from fedcdh.cli._answers_folder import AnswersFolder
from fedcdh.cli._console import Output
from fedcdh.cli._inputs import read_study
from fedcdh.cli._summaries import SummaryReader, admit_messages
from fedcdh.errors import PendingAnswersError
from fedcdh.messages.round_files import read_requests
from fedcdh.summaries.joint import JointRequest


def test_what_is_not_answered_is_asked_once(study, here):
    found, _ = read_study(Path(plan_of(study)))
    messages, _ = SummaryReader(found).read_all([Path(path) for path in summaries(study)], Output(quiet=True))
    cohort = admit_messages(messages, found.plan, Output(quiet=True))
    folder = AnswersFolder(here / "rounds", found, cohort, None, Output(quiet=True))
    wanted = JointRequest(found.plan.fingerprint, 1, (("v1", "v2"),))
    if found.plan.max_rounds == 0:  # a plan that allows no questions: nothing is asked, and nothing is answered
        assert folder.ask(wanted) is not None
        assert not (here / "rounds").exists()
        return
    for _ in range(2):
        with pytest.raises(PendingAnswersError, match="Send it to these sites"):
            folder.ask(wanted)
    assert len(read_requests(here / "rounds", found.plan)) == 1
