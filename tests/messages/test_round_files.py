"""Files of adaptive rounds: they come back as they were, and damage is found."""

from __future__ import annotations

import pytest
import studies
from hypothesis import given, settings
from hypothesis import strategies as st
from round_studies import plan_for

from fedcdh.errors import (
    PlanMismatchError,
    SummaryError,
    SummaryFormatError,
)
from fedcdh.messages.round_files import (
    AnswerMessage,
    pack_answer,
    request_from_json,
    request_to_json,
    round_budget_from_json,
    round_budget_to_json,
    unpack_answer,
)
from fedcdh.summaries.joint import (
    JointRequest,
    RoundBudget,
    answer_request,
)


def test_files_of_further_rounds_come_back_as_they_were():
    tables = studies.mixed()
    plan = plan_for(tables)
    request = JointRequest(plan.fingerprint, 2, (("age", "dose"), ("age", "dose", "group")))
    answers, ledger = answer_request(tables["clinic b"], plan, "clinic b", request, RoundBudget(), 45)
    assert request_from_json(request_to_json(request), plan) == request
    assert round_budget_from_json(round_budget_to_json(ledger, plan), plan) == ledger
    message = AnswerMessage(request.digest, answers)
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
    blob = bytearray(pack_answer(AnswerMessage(request.digest, answers), plan))
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
