"""Further rounds by file: a request, a site's answer, and the ledger that a site keeps of what it has told.

Requests and ledgers are canonical JSON. An answer has the layout of a summary file (`summaries`): a header that names
everything and carries a digest, then the entries as planes of bytes, set after set in the order of the request, of each
set the triangle of Σ ψψᵀ and then Σ ψφᵀ. One answer has exactly one file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fedcdh._io.storage import read_regular
from fedcdh._io.strict_json import canonical, parse
from fedcdh._io.text import readable
from fedcdh.errors import FedCDHError, NotASummary, PlanMismatch, SummaryError, UnknownClient
from fedcdh.messages import SOFTWARE
from fedcdh.messages.container import rendered, said_in
from fedcdh.messages.summary_header import LENGTH, SOFTWARE_NAME
from fedcdh.summaries.joint import JointRequest, JointSummary, Ledger, joint_columns
from fedcdh.summaries.joint.request import Integers, entry_bytes, numbers_for
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.summary import ROWS_AT_MOST

REQUEST, ANSWER, LEDGER = "fedcdh-request-1", "fedcdh-answer-1", "fedcdh-ledger-1"
REQUEST_NAME, ANSWER_ENDING = "request-{:03d}.json", ".answer-{:03d}"
"""What files are called, with the number of the request."""
TEXT_AT_MOST = 16_000_000
"""Bytes of a request or a ledger."""
_HEADER_AT_MOST = 8192
_AGAIN = "ask for the file again, as it was written"


@dataclass(frozen=True)
class AnswerMessage:
    """What a site answers to a request, and how it came about."""

    request: str  # digest
    answers: tuple[JointSummary, ...]  # in the order of the request's sets
    research: bool = False
    software: str = SOFTWARE

    @property
    def client(self) -> str:
        return self.answers[0].client


# Requests and ledgers


def request_text(request: JointRequest) -> str:
    """The one text of a request."""
    return _sealed(
        {"format": REQUEST, "plan": request.plan, "number": request.number, "sets": [list(s) for s in request.sets]}
    )


def read_request(text: str | bytes, plan: StudyPlan) -> JointRequest:
    """The request that `request_text` wrote, if it is one of this plan."""
    found = _opened(text, REQUEST, {"plan", "number", "sets"})
    try:
        request = JointRequest(str(found["plan"]), found["number"], tuple(tuple(map(str, s)) for s in found["sets"]))
    except TypeError:
        raise _not_ours("its sets are not lists of names") from None
    if request_text(request).encode() != _bytes(text):
        raise _not_ours("it is not written the way this program writes one")
    request.check(plan)
    return request


def requests_in(folder: Path, plan: StudyPlan) -> tuple[JointRequest, ...]:
    """All requests in a folder, from the first one on; they have to be of this plan."""
    found: list[JointRequest] = []
    while (path := folder / REQUEST_NAME.format(len(found) + 1)).exists():
        content = read_regular(path, TEXT_AT_MOST, "a request", refuse=NotASummary)
        try:
            found.append(read_request(content, plan))
        except FedCDHError as problem:
            raise type(problem)(f"{path} is no request of this study ({problem}); choose another folder") from None
    return tuple(found)


def ledger_text(ledger: Ledger, plan: StudyPlan) -> str:
    """The one text of a ledger."""
    sets = sorted(map(list, ledger.sets))
    told = {"requests": list(ledger.requests), "sets": sets, "bytes": ledger.bytes}
    return _sealed({"format": LEDGER, "plan": plan.fingerprint, **told})


def read_ledger(text: str | bytes, plan: StudyPlan) -> Ledger:
    """The ledger that `ledger_text` wrote, if it is one of this plan."""
    found = _opened(text, LEDGER, {"plan", "requests", "sets", "bytes"})
    if found["plan"] != plan.fingerprint:
        raise PlanMismatch("the ledger is that of another study; move it away, or name another with --ledger")
    try:
        ledger = Ledger(tuple(map(str, found["requests"])), frozenset(tuple(s) for s in found["sets"]), found["bytes"])
        same = ledger_text(ledger, plan).encode() == _bytes(text)
    except TypeError:
        same = False
    if not same:
        raise _not_ours("it is not written the way this program writes one")
    return ledger


def _sealed(document: dict[str, Any]) -> str:
    return readable({**document, "digest": _digest(document)})


def _opened(text: str | bytes, expected: str, fields: set[str]) -> Mapping[str, Any]:
    if len(text) > TEXT_AT_MOST:
        raise _not_ours(f"it is longer than {TEXT_AT_MOST} bytes")
    document = parse(text, refuse=_not_ours)
    if not isinstance(document, dict) or document.get("format") != expected:
        raise _not_ours(f"it does not say that its format is {expected!r}")
    if set(document) != fields | {"format", "digest"} or document.pop("digest") != _digest(document):
        raise _not_ours("its digest is not that of its content: it was changed after it was made")
    return document


def _digest(document: Mapping[str, Any]) -> str:
    return hashlib.sha256(canonical(document).encode()).hexdigest()


def _bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text


def _not_ours(reason: str) -> SummaryError:
    return NotASummary(f"this is not a file of further rounds as it was made ({reason}); {_AGAIN}")


# Answers


def pack_answer(message: AnswerMessage, plan: StudyPlan) -> bytes:
    """The file of an answer. Same message, same bytes."""
    if not SOFTWARE_NAME.fullmatch(message.software):
        raise SummaryError(f"software {message.software!r} cannot be named in a file; expected up to 64 plain letters")
    rows = message.answers[0].rows
    entries = np.concatenate([_entries(answer) for answer in message.answers]).astype("<i8")
    width = entry_bytes(rows)
    planes = np.ascontiguousarray(entries.view(np.uint8).reshape(-1, 8)[:, :width].T)
    said = {
        "format": ANSWER,
        "plan": plan.fingerprint,
        "request": message.request,
        "client": message.client,
        "rows": rows,
        "research": message.research,
        "software": message.software,
    }
    return _rendered(said, planes.data.tobytes(), width)


def unpack_answer(blob: bytes, plan: StudyPlan, request: JointRequest) -> AnswerMessage:
    """The answer in a file, checked for all that bytes, plan and request can tell."""
    length = LENGTH.unpack_from(blob)[0] if len(blob) >= LENGTH.size else 0
    if not 0 < length <= _HEADER_AT_MOST or LENGTH.size + length > len(blob):
        raise _not_ours(f"of its {len(blob)} bytes, {length} are said to be header")
    start = LENGTH.size + length
    said = _header(blob[LENGTH.size : start])
    width, count = entry_bytes(said["rows"]), sum(numbers_for(plan, names) for names in request.sets)
    if said["plan"] != plan.fingerprint or said["request"] != request.digest:
        raise PlanMismatch("the answer is to another request, or of another plan; ask the site to answer this one")
    if said["client"] not in plan.clients:
        raise UnknownClient(f"there is an answer of {said['client'][:80]!r}, whom the plan does not name")
    if len(blob) != start + width * count or _rendered(said, blob[start:], width) != blob:
        raise _not_ours("it was damaged on the way, or is not written in the one way it can be")
    planes = np.frombuffer(blob, dtype=np.uint8, offset=start).reshape(width, count)
    entries = np.zeros(count, dtype="<i8")
    entries.view(np.uint8).reshape(-1, 8)[:, 8 - width :] = planes.T  # then shifted down: the sign comes along
    entries >>= 8 * (8 - width)
    return AnswerMessage(
        request.digest, tuple(_parted(entries, plan, request, said)), said["research"], said["software"]
    )


def answer_bytes_at_most(plan: StudyPlan, request: JointRequest) -> int:
    """No answer to this request is longer."""
    return LENGTH.size + _HEADER_AT_MOST + 8 * sum(numbers_for(plan, names) for names in request.sets)


def _entries(answer: JointSummary) -> Integers:
    return np.concatenate([answer.own[np.triu_indices(len(answer.own))], answer.cross.ravel()])


def _parted(entries: Integers, plan: StudyPlan, request: JointRequest, said: Mapping[str, Any]) -> list[JointSummary]:
    found, start = [], 0
    for names in request.sets:
        columns = len(joint_columns(plan, names))
        corner, start = entries[start : (middle := start + columns * (columns + 1) // 2)], middle
        own = np.zeros((columns, columns), dtype=np.int64)
        own[np.triu_indices(columns)] = corner
        own += np.triu(own, 1).T
        block, start = entries[start : (end := start + columns * plan.columns)], end
        cross = block.reshape(columns, plan.columns).astype(np.int64)
        found.append(JointSummary(plan.fingerprint, said["client"], names, said["rows"], own, cross))
    return found


def _rendered(said: Mapping[str, Any], data: bytes, width: int) -> bytes:
    return rendered(said, "answers", "U8", [width, len(data) // width], data)


def _header(text: bytes) -> dict[str, Any]:
    """What an answer says of itself."""
    kinds = {"plan": str, "request": str, "client": str, "rows": int, "research": bool, "software": str}
    said = said_in(text, ANSWER, kinds, _not_ours)
    if not 0 < said["rows"] <= ROWS_AT_MOST or not SOFTWARE_NAME.fullmatch(said["software"]):
        raise _not_ours("its header holds what cannot be")
    return said
