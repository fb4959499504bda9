"""A file of an earlier version gets an error that names both versions and says what to do.

`old_formats.json` holds files that version 0.1.0 wrote before its formats were renumbered: texts as they are, binary
files in base64.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from fedcdh.errors import FedCDHError
from fedcdh.messages.aggregate_file import unpack_aggregate
from fedcdh.messages.answer_file import unpack_answer
from fedcdh.messages.envelope import Envelope
from fedcdh.messages.profile_file import profile_from_json
from fedcdh.messages.round_files import request_from_json
from fedcdh.messages.signing import verify
from fedcdh.messages.study_file import Study
from fedcdh.messages.summary_file import read_summary_header, unpack_summary
from fedcdh.summaries.features import Hermite
from fedcdh.summaries.joint import JointRequest
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.variables import Continuous

OLD = json.loads(Path(__file__).with_name("old_formats.json").read_text(encoding="utf-8"))
PLAN = StudyPlan((Continuous("a"),), ("north",), family=Hermite(2))
TWO = StudyPlan((Continuous("a"), Continuous("b")), ("north",), family=Hermite(2), max_rounds=1, max_bytes=10**6)
REQUEST = JointRequest(TWO.fingerprint, 1, (("a", "b"),))


def binary(name: str) -> bytes:
    return base64.b64decode(OLD[name])


READERS = {
    "plan": (lambda: StudyPlan.from_json(OLD["plan"]), "fedcdh-plan-2", "fedcdh-plan-5"),
    "study": (lambda: Study.from_json(OLD["study"]), "fedcdh-study-1", "fedcdh-study-2"),
    "profile": (lambda: profile_from_json(OLD["profile"]), "fedcdh-profile-1", "fedcdh-profile-3"),
    "summary": (lambda: unpack_summary(binary("summary"), PLAN), "fedcdh-summary-1", "fedcdh-summary-3"),
    "header": (lambda: read_summary_header(binary("summary")), "fedcdh-summary-1", "fedcdh-summary-3"),
    "aggregate": (lambda: unpack_aggregate(binary("aggregate"), PLAN), "fedcdh-aggregate-1", "fedcdh-aggregate-2"),
    "request": (lambda: request_from_json(OLD["request"], TWO), "fedcdh-request-1", "fedcdh-request-2"),
    "answer": (lambda: unpack_answer(binary("answer"), TWO, REQUEST), "fedcdh-answer-1", "fedcdh-answer-2"),
    "signature": (
        lambda: verify("summary", binary("summary"), OLD["signature"]),
        "fedcdh-signature-1",
        "fedcdh-signature-2",
    ),
}


@pytest.mark.parametrize("name", READERS)
def test_a_file_of_an_earlier_version_is_named_with_advice(name):
    read, found, expected = READERS[name]
    with pytest.raises(FedCDHError) as refused:
        read()
    assert f"format {found} of an earlier version" in str(refused.value)
    assert f"this version reads {expected}" in str(refused.value)
    assert "make it again with this version" in str(refused.value)


def test_a_message_of_an_earlier_version_asks_for_one_version():
    with pytest.raises(FedCDHError, match=r"fedcdh-online-1 of an earlier version.*fedcdh-online-2.*same version"):
        Envelope.from_bytes(binary("envelope"))
