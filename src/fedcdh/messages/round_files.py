"""Files of adaptive rounds: a request, a client's answer, and the budget that a client keeps.

Requests and budgets are canonical JSON. An answer has the layout of a summary file: a header that describes everything
and carries a digest, then the entries as planes of bytes, set after set in the order of the request; of each set, the
triangle of Σ ψψᵀ and then Σ ψφᵀ. One answer has exactly one file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fedcdh._io.format_version import find_format_mismatch
from fedcdh._io.storage import read_regular_file
from fedcdh._io.strict_json import parse_json, to_canonical_json
from fedcdh._io.text import to_readable_json
from fedcdh.errors import FedCDHError, PlanMismatchError, SummaryError, SummaryFormatError, UnknownClientError
from fedcdh.messages._software import SOFTWARE
from fedcdh.messages.container import parse_container_header, render_container
from fedcdh.messages.summary_header import LENGTH_PREFIX, SOFTWARE_PATTERN
from fedcdh.summaries.joint import JointRequest, JointSummary, RoundBudget, joint_terms
from fedcdh.summaries.joint.request import Integers, bytes_per_entry, count_entries
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.summary import MAX_ROWS

REQUEST_FORMAT, ANSWER_FORMAT, ROUND_BUDGET_FORMAT = "fedcdh-request-2", "fedcdh-answer-2", "fedcdh-round-budget-2"
REQUEST_FILE_NAME, ANSWER_SUFFIX = "request-{:03d}.json", ".answer-{:03d}"
"""Names of files, with the number of the request."""
MAX_TEXT_BYTES = 16_000_000
"""Bytes of a request or a budget."""
_MAX_HEADER_BYTES = 8192
_ADVICE = "ask for the file again, as it was written"


@dataclass(frozen=True)
class AnswerMessage:
    """A client's answer to a request, and how it was made.

    Attributes
    ----------
    request : str
        Digest of the request.
    answers : tuple of JointSummary
        One answer per set, in the order of the request.
    disclosure_control : bool, default True
        Whether the site enforced its disclosure control.
    software : str, default this version
        Program that made the file.

    Examples
    --------
    >>> import numpy as np
    >>> from fedcdh.summaries.joint import JointSummary
    >>> part = JointSummary("0" * 64, "north", ("a", "b"), 1, np.array([[4]]), np.array([[2, 1]]))
    >>> AnswerMessage("1" * 64, (part,)).client
    'north'
    """

    request: str
    answers: tuple[JointSummary, ...]
    disclosure_control: bool = True
    software: str = SOFTWARE

    @property
    def client(self) -> str:
        """Return the name of the client."""
        return self.answers[0].client


# Requests and ledgers


def request_to_json(request: JointRequest) -> str:
    """Write the one text of a request.

    Parameters
    ----------
    request : JointRequest
        Sets of variables that are requested.

    Returns
    -------
    str
        JSON text.

    Examples
    --------
    >>> from fedcdh.summaries import Continuous, StudyPlan
    >>> from fedcdh.summaries.joint import JointRequest
    >>> plan = StudyPlan((Continuous("a"), Continuous("b")), ("north",), max_rounds=1, max_bytes=10**6)
    >>> request = JointRequest(plan.fingerprint, 1, (("a", "b"),))
    >>> request_from_json(request_to_json(request), plan) == request
    True
    """
    return _seal(
        {
            "format": REQUEST_FORMAT,
            "plan": request.plan,
            "number": request.number,
            "sets": [list(s) for s in request.sets],
        }
    )


def request_from_json(text: str | bytes, plan: StudyPlan) -> JointRequest:
    """Read a request that `request_to_json` wrote, and check that it follows this plan.

    Parameters
    ----------
    text : str or bytes
        JSON text.
    plan : StudyPlan
        Plan of the study.

    Returns
    -------
    JointRequest
        The request.

    Raises
    ------
    SummaryFormatError
        If the text is not that of a request, or was changed.
    PlanMismatchError
        If the request follows another plan.

    Examples
    --------
    >>> from fedcdh.summaries import Continuous, StudyPlan
    >>> request_from_json("{}", StudyPlan((Continuous("age"),), ("north",)))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    fedcdh.errors.SummaryFormatError: ...
    """
    found = _open_sealed(text, REQUEST_FORMAT, {"plan", "number", "sets"})
    try:
        request = JointRequest(str(found["plan"]), found["number"], tuple(tuple(map(str, s)) for s in found["sets"]))
    except TypeError:
        raise _format_error("its sets are not lists of names") from None
    if request_to_json(request).encode() != _to_bytes(text):
        raise _format_error("it is not written the way this program writes one")
    request.check(plan)
    return request


def read_requests(folder: Path, plan: StudyPlan) -> tuple[JointRequest, ...]:
    """Read all requests in a folder, from the first one on; they have to follow this plan."""
    found: list[JointRequest] = []
    while (path := folder / REQUEST_FILE_NAME.format(len(found) + 1)).exists():
        content = read_regular_file(path, MAX_TEXT_BYTES, "a request", refuse=SummaryFormatError)
        try:
            found.append(request_from_json(content, plan))
        except FedCDHError as problem:
            raise type(problem)(f"{path} is not a request of this study ({problem}); choose another folder") from None
    return tuple(found)


def round_budget_to_json(budget: RoundBudget, plan: StudyPlan) -> str:
    """Write the one text of a budget."""
    sets = sorted(map(list, budget.sets))
    spent = {"requests": list(budget.requests), "sets": sets, "bytes": budget.bytes}
    return _seal({"format": ROUND_BUDGET_FORMAT, "plan": plan.fingerprint, **spent})


def round_budget_from_json(text: str | bytes, plan: StudyPlan) -> RoundBudget:
    """Read a budget that `round_budget_to_json` wrote, and check that it follows this plan."""
    found = _open_sealed(text, ROUND_BUDGET_FORMAT, {"plan", "requests", "sets", "bytes"})
    if found["plan"] != plan.fingerprint:
        raise PlanMismatchError("the budget of adaptive rounds belongs to another study; move the file away")
    try:
        budget = RoundBudget(
            tuple(map(str, found["requests"])), frozenset(tuple(s) for s in found["sets"]), found["bytes"]
        )
        same = round_budget_to_json(budget, plan).encode() == _to_bytes(text)
    except TypeError:
        same = False
    if not same:
        raise _format_error("it is not written the way this program writes one")
    return budget


def _seal(document: dict[str, Any]) -> str:
    return to_readable_json({**document, "digest": _digest(document)})


def _open_sealed(text: str | bytes, expected: str, fields: set[str]) -> dict[str, Any]:
    if len(text) > MAX_TEXT_BYTES:
        raise _format_error(f"it is longer than {MAX_TEXT_BYTES} bytes")
    document: Any = parse_json(text, refuse=_format_error)
    if mismatch := find_format_mismatch(document.get("format") if isinstance(document, dict) else None, expected):
        raise _format_error(*mismatch)
    if set(document) != fields | {"format", "digest"} or document.pop("digest") != _digest(document):
        raise _format_error("its digest is not that of its content: it was changed after it was made")
    return dict(document)


def _digest(document: Mapping[str, Any]) -> str:
    return hashlib.sha256(to_canonical_json(document).encode()).hexdigest()


def _to_bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text


def _format_error(reason: str, advice: str = _ADVICE) -> SummaryError:
    return SummaryFormatError(f"this is not a file of adaptive rounds as it was made ({reason}); {advice}")


# Answers


def pack_answer(message: AnswerMessage, plan: StudyPlan) -> bytes:
    """Write the file of an answer. The same message gives the same bytes.

    Parameters
    ----------
    message : AnswerMessage
        Answer of a client.
    plan : StudyPlan
        Plan of the study.

    Returns
    -------
    bytes
        The file.

    Raises
    ------
    SummaryError
        If the software cannot be named in a file.

    Examples
    --------
    >>> from fedcdh.summaries import Continuous, StudyPlan
    >>> from fedcdh.summaries.joint import JointRequest, RoundBudget, answer_request
    >>> plan = StudyPlan((Continuous("a"), Continuous("b")), ("north",), max_rounds=1, max_bytes=10**6)
    >>> request = JointRequest(plan.fingerprint, 1, (("a", "b"),))
    >>> answers, _ = answer_request({"a": [0.5, 1], "b": [1, 2]}, plan, "north", request, RoundBudget(), rows=2)
    >>> blob = pack_answer(AnswerMessage(request.digest, answers), plan)
    >>> unpack_answer(blob, plan, request).answers == answers
    True
    """
    if not SOFTWARE_PATTERN.fullmatch(message.software):
        raise SummaryError(
            f"the software {message.software!r} cannot be named in a file; expected 1 to 64 plain letters; shorten it"
        )
    rows = message.answers[0].rows
    entries = np.concatenate([_flatten(answer) for answer in message.answers]).astype("<i8")
    width = bytes_per_entry(rows)
    planes = np.ascontiguousarray(entries.view(np.uint8).reshape(-1, 8)[:, :width].T)
    description = {
        "format": ANSWER_FORMAT,
        "plan": plan.fingerprint,
        "request": message.request,
        "client": message.client,
        "rows": rows,
        "disclosure_control": message.disclosure_control,
        "software": message.software,
    }
    return _render_answer(description, planes.data.tobytes(), width)


def unpack_answer(blob: bytes, plan: StudyPlan, request: JointRequest) -> AnswerMessage:
    """Read the file of an answer, and check it against plan and request.

    Parameters
    ----------
    blob : bytes
        The file.
    plan : StudyPlan
        Plan of the study.
    request : JointRequest
        Request that is answered.

    Returns
    -------
    AnswerMessage
        The answer.

    Raises
    ------
    SummaryFormatError
        If the bytes are not those of an answer as it was made.
    PlanMismatchError
        If the answer belongs to another plan or request.
    UnknownClientError
        If the plan does not name the client.

    Examples
    --------
    >>> from fedcdh.summaries import Continuous, StudyPlan
    >>> from fedcdh.summaries.joint import JointRequest
    >>> plan = StudyPlan((Continuous("a"), Continuous("b")), ("north",), max_rounds=1, max_bytes=10**6)
    >>> unpack_answer(b"", plan, JointRequest(plan.fingerprint, 1, (("a", "b"),)))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    fedcdh.errors.SummaryFormatError: ...
    """
    length = LENGTH_PREFIX.unpack_from(blob)[0] if len(blob) >= LENGTH_PREFIX.size else 0
    if not 0 < length <= _MAX_HEADER_BYTES or LENGTH_PREFIX.size + length > len(blob):
        raise _format_error(f"of its {len(blob)} bytes, {length} belong to the header, as it says")
    start = LENGTH_PREFIX.size + length
    description = _parse_answer_header(blob[LENGTH_PREFIX.size : start])
    width, count = bytes_per_entry(description["rows"]), sum(count_entries(plan, names) for names in request.sets)
    if description["plan"] != plan.fingerprint or description["request"] != request.digest:
        raise PlanMismatchError(
            "the answer belongs to another request or another plan; ask the site to answer this request"
        )
    if description["client"] not in plan.clients:
        raise UnknownClientError(
            f"there is an answer of {description['client'][:80]!r}, which the plan does not name; correct the name at "
            "the site"
        )
    if len(blob) != start + width * count or _render_answer(description, blob[start:], width) != blob:
        raise _format_error("it was damaged on the way, or is not written in the one way it can be")
    planes = np.frombuffer(blob, dtype=np.uint8, offset=start).reshape(width, count)
    entries = np.zeros(count, dtype="<i8")
    entries.view(np.uint8).reshape(-1, 8)[:, 8 - width :] = planes.T  # then shifted down: the sign comes along
    entries >>= 8 * (8 - width)
    return AnswerMessage(
        request.digest,
        tuple(_split_answers(entries, plan, request, description)),
        description["disclosure_control"],
        description["software"],
    )


def max_answer_bytes(plan: StudyPlan, request: JointRequest) -> int:
    """Return the length that no answer to this request exceeds."""
    return LENGTH_PREFIX.size + _MAX_HEADER_BYTES + 8 * sum(count_entries(plan, names) for names in request.sets)


def _flatten(answer: JointSummary) -> Integers:
    return np.concatenate([answer.own[np.triu_indices(len(answer.own))], answer.cross.ravel()])


def _split_answers(
    entries: Integers, plan: StudyPlan, request: JointRequest, description: Mapping[str, Any]
) -> list[JointSummary]:
    found, start = [], 0
    for names in request.sets:
        columns = len(joint_terms(plan, names))
        corner, start = entries[start : (middle := start + columns * (columns + 1) // 2)], middle
        own = np.zeros((columns, columns), dtype=np.int64)
        own[np.triu_indices(columns)] = corner
        own += np.triu(own, 1).T
        block, start = entries[start : (end := start + columns * plan.layout.n_columns)], end
        cross = block.reshape(columns, plan.layout.n_columns).astype(np.int64)
        found.append(JointSummary(plan.fingerprint, description["client"], names, description["rows"], own, cross))
    return found


def _render_answer(description: Mapping[str, Any], data: bytes, width: int) -> bytes:
    return render_container(description, "answers", "U8", [width, len(data) // width], data)


def _parse_answer_header(text: bytes) -> dict[str, Any]:
    """Return the description in the header of an answer."""
    kinds = {"plan": str, "request": str, "client": str, "rows": int, "disclosure_control": bool, "software": str}
    description = parse_container_header(text, ANSWER_FORMAT, kinds, _format_error)
    if not 0 < description["rows"] <= MAX_ROWS or not SOFTWARE_PATTERN.fullmatch(description["software"]):
        raise _format_error("its header has a number of rows or a software that cannot be")
    return description
