"""The coordinator's folder of requests and answers."""

from __future__ import annotations

from pathlib import Path

import pytest
import residual_studies
from cli_study import plan_of, summaries

from fedcdh.cli._answers_folder import AnswersFolder
from fedcdh.cli._console import Output
from fedcdh.cli._inputs import read_study
from fedcdh.cli._summaries import SummaryReader, admit_messages
from fedcdh.errors import PendingAnswersError, SummaryError
from fedcdh.messages.answer_file import AnswerMessage, pack_answer
from fedcdh.messages.round_files import read_requests
from fedcdh.messages.study_file import Study
from fedcdh.summaries.joint import JointRequest
from fedcdh.summaries.residuals import answer_residuals


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


def test_a_site_that_does_not_answer_about_residuals_is_not_waited_for(tmp_path):
    data = residual_studies.tables((800, 700, 600))
    study = Study(residual_studies.plan_of(data))
    cohort = residual_studies.cohort_of(data, study.plan)
    request = residual_studies.request_for(cohort)
    folder = AnswersFolder(tmp_path, study, cohort, None, Output(True, False), silent=frozenset({"site1"}))
    with pytest.raises(PendingAnswersError, match=r"Answers of site0, site2 to .* the residuals of 5 regressions"):
        folder.ask_residuals(request)
    for client in ("site0", "site2"):
        summary = cohort.summaries[cohort.clients.index(client)]
        answers = answer_residuals(data[client], study.plan, client, request, summary)
        message = AnswerMessage(request.digest, client, answers)
        (tmp_path / f"{client}.answer-001").write_bytes(pack_answer(message, study.plan))
    assert [*folder.ask_residuals(request)] == ["site0", "site2"]
    assert folder.select_affordable(request.queries, request.coordinates) == request.queries
    other = cohort.summaries[1]
    swapped = answer_residuals(data["site1"], study.plan, "site1", request, other)
    wrong = AnswerMessage(request.digest, "site0", swapped)
    (tmp_path / "site0.answer-001").write_bytes(pack_answer(wrong, study.plan))
    with pytest.raises(SummaryError, match="of the 800 rows of its summary"):
        folder.ask_residuals(request)
