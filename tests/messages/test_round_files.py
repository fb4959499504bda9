"""Files of adaptive rounds: they come back as they were, and damage is found."""

from __future__ import annotations

import pytest
import residual_studies
import studies
from hypothesis import given, settings
from hypothesis import strategies as st
from round_studies import plan_for

from fedcdh.errors import (
    PlanMismatchError,
    SummaryError,
    SummaryFormatError,
)
from fedcdh.messages.answer_file import AnswerMessage, is_answer, pack_answer, read_answer_header, unpack_answer
from fedcdh.messages.round_files import is_request, read_request, request_from_json, request_to_json
from fedcdh.summaries.joint import (
    JointRequest,
    RoundBudget,
    answer_request,
)
from fedcdh.summaries.residuals import answer_residuals, restrict_request


def test_files_of_further_rounds_come_back_as_they_were():
    tables = studies.mixed()
    plan = plan_for(tables)
    request = JointRequest(plan.fingerprint, 2, (("age", "dose"), ("age", "dose", "group")))
    answers, _ = answer_request(tables["clinic b"], plan, "clinic b", request, RoundBudget(), 45)
    assert request_from_json(request_to_json(request), plan) == request
    message = AnswerMessage(request.digest, "clinic b", answers)
    blob = pack_answer(message, plan)
    again = unpack_answer(blob, plan, request)
    assert all(a == b for a, b in zip(again.answers, answers, strict=True))
    assert pack_answer(again, plan) == blob
    with pytest.raises(PlanMismatchError):
        unpack_answer(blob, plan, JointRequest(plan.fingerprint, 2, (("age", "dose"),)))


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_a_changed_byte_is_found(data):
    tables = studies.numbers()
    plan = plan_for(tables)
    request = JointRequest(plan.fingerprint, 1, (("v1", "v2"),))
    answers, _ = answer_request(tables["site0"], plan, "site0", request, RoundBudget(), 60)
    blob = bytearray(pack_answer(AnswerMessage(request.digest, "site0", answers), plan))
    place, other = data.draw(st.integers(0, len(blob) - 1)), data.draw(st.integers(1, 255))
    blob[place] ^= other
    with pytest.raises((SummaryError, PlanMismatchError)):
        unpack_answer(bytes(blob), plan, request)
    text = bytearray(request_to_json(request).encode())
    text[place % len(text)] ^= other
    with pytest.raises((SummaryError, PlanMismatchError)):
        request_from_json(bytes(text), plan)


@pytest.mark.parametrize("blob", [b"", b"\0" * 40, b"\x08" + b"\0" * 7 + b"{}      "])
def test_what_is_no_answer_is_refused(blob):
    plan = plan_for(studies.numbers())
    with pytest.raises(SummaryFormatError):
        unpack_answer(blob, plan, JointRequest(plan.fingerprint, 1, (("v1", "v2"),)))


def residual_files(data=None, queries=()):
    data = data or residual_studies.tables((60, 50))
    plan = residual_studies.plan_of(data)
    cohort = residual_studies.cohort_of(data, plan)
    request = residual_studies.request_for(cohort, *queries, number=2)
    answers = answer_residuals(data["site0"], plan, "site0", request, cohort.summaries[0])
    return plan, request, AnswerMessage(request.digest, "site0", answers, disclosure_control=False)


ABOUT = {
    "shape and size": (residual_studies.tables((60, 50)), residual_studies.QUERIES),
    "products": (residual_studies.interacting_causes((60, 50)), residual_studies.PRODUCT_QUERIES),
}


@pytest.mark.parametrize("about", ABOUT)
def test_files_about_residuals_come_back_as_they_were(about):
    plan, request, message = residual_files(*ABOUT[about])
    assert request_from_json(request_to_json(request), plan) == read_request(request_to_json(request)) == request
    blob = pack_answer(message, plan)
    assert unpack_answer(blob, plan, request) == message
    assert pack_answer(unpack_answer(blob, plan, request), plan) == blob
    entries = sum(query.count_entries(plan) for query in request.queries)
    assert len(blob) < 700 + 3 * entries  # 60 rows of functions up to 2^18 fit into three bytes
    assert is_answer(blob)
    assert is_request(request_to_json(request).encode())
    assert read_answer_header(blob)["client"] == "site0"


def test_the_two_kinds_of_request_are_told_apart():
    plan, request, message = residual_files()
    joint = JointRequest(plan.fingerprint, 2, (("x", "y"),))
    with pytest.raises(SummaryFormatError, match="'fedcdh-residual-answer-1', and 'fedcdh-answer-2' was expected"):
        unpack_answer(pack_answer(message, plan), plan, joint)
    assert isinstance(request_from_json(request_to_json(joint), plan), JointRequest)
    with pytest.raises(PlanMismatchError):
        unpack_answer(pack_answer(message, plan), plan, restrict_request(request, request.queries[:1], 2))


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_a_changed_byte_about_residuals_is_found(data):
    plan, request, message = residual_files()
    blob, text = bytearray(pack_answer(message, plan)), bytearray(request_to_json(request).encode())
    for content in (blob, text):
        content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    with pytest.raises((SummaryError, PlanMismatchError)):
        unpack_answer(bytes(blob), plan, request)
    with pytest.raises((SummaryError, PlanMismatchError)):
        request_from_json(bytes(text), plan)
