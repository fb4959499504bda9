"""Answers of further rounds as files.

An answer has the layout of a summary file: a header that describes everything and carries a digest, then the entries as
planes of bytes, in the order of the request. About joint features these are, for each set, the triangle of Σ ψψᵀ and
then Σ ψφᵀ; about residuals, the sums of each query. One answer has exactly one file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, overload

import numpy as np

from fedcdh._io.look_alikes import describe_look_alike
from fedcdh.errors import PlanMismatchError, SummaryError, SummaryFormatError, UnknownClientError
from fedcdh.messages._software import SOFTWARE
from fedcdh.messages.container import parse_container_header, render_container
from fedcdh.messages.summary_header import LENGTH_PREFIX, SOFTWARE_PATTERN
from fedcdh.summaries.encoder import GRID
from fedcdh.summaries.joint import JointRequest, JointSummary, joint_terms
from fedcdh.summaries.joint.request import Integers, bytes_per_entry, count_entries
from fedcdh.summaries.joint.round_budget import FurtherRequest
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.residuals import ResidualRequest, ResidualSums
from fedcdh.summaries.residuals.asked import select_answerable
from fedcdh.summaries.residuals.rounding import choose_coarseness
from fedcdh.summaries.summary import MAX_ROWS

ANSWER_FORMAT, RESIDUAL_ANSWER_FORMAT = "fedcdh-answer-2", "fedcdh-residual-answer-1"
_FORMATS = (ANSWER_FORMAT, RESIDUAL_ANSWER_FORMAT)
_MAX_HEADER_BYTES = 8192

AnswerT = TypeVar("AnswerT", bound=JointSummary | ResidualSums, covariant=True)


@dataclass(frozen=True)
class AnswerMessage(Generic[AnswerT]):
    """A client's answer to a request, and how it was made.

    Attributes
    ----------
    request : str
        Digest of the request.
    client : str
        Name of the client.
    answers : tuple of JointSummary or of ResidualSums
        One answer per set or query, in the order of the request.
    disclosure_control : bool, default True
        Whether the site enforced its disclosure control.
    software : str, default this version
        Program that made the file.

    Examples
    --------
    >>> import numpy as np
    >>> from fedcdh.summaries.joint import JointSummary
    >>> part = JointSummary("0" * 64, "north", ("a", "b"), 1, np.array([[4]]), np.array([[2, 1]]))
    >>> AnswerMessage("1" * 64, "north", (part,)).disclosure_control
    True
    """

    request: str
    client: str
    answers: tuple[AnswerT, ...]
    disclosure_control: bool = True
    software: str = SOFTWARE


def pack_answer(message: AnswerMessage[JointSummary | ResidualSums], plan: StudyPlan) -> bytes:
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
    >>> blob = pack_answer(AnswerMessage(request.digest, "north", answers), plan)
    >>> unpack_answer(blob, plan, request).answers == answers
    True
    """
    if not SOFTWARE_PATTERN.fullmatch(message.software):
        raise SummaryError(
            f"the software {message.software!r} cannot be named in a file; expected 1 to 64 plain letters; shorten it"
        )
    rows, is_joint = message.answers[0].rows, isinstance(message.answers[0], JointSummary)
    entries = np.concatenate([_flatten(answer) for answer in message.answers]).astype("<i8")
    width = bytes_per_entry(rows, _entry_bound(is_joint))
    planes = np.ascontiguousarray(entries.view(np.uint8).reshape(-1, 8)[:, :width].T)
    description = {
        "format": _format_name(is_joint),
        "plan": plan.fingerprint,
        "request": message.request,
        "client": message.client,
        "rows": rows,
        "disclosure_control": message.disclosure_control,
        "software": message.software,
    }
    return _render_answer(description, planes.data.tobytes(), width)


@overload
def unpack_answer(blob: bytes, plan: StudyPlan, request: JointRequest) -> AnswerMessage[JointSummary]: ...


@overload
def unpack_answer(blob: bytes, plan: StudyPlan, request: ResidualRequest) -> AnswerMessage[ResidualSums]: ...


def unpack_answer(blob: bytes, plan: StudyPlan, request: FurtherRequest) -> Any:
    """Read the file of an answer, and check it against plan and request.

    Parameters
    ----------
    blob : bytes
        The file.
    plan : StudyPlan
        Plan of the study.
    request : JointRequest or ResidualRequest
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
    start = _data_offset(blob)
    is_joint = isinstance(request, JointRequest)
    description = _parse_answer_header(blob[LENGTH_PREFIX.size : start], _format_name(is_joint))
    if description["plan"] != plan.fingerprint or description["request"] != request.digest:
        raise PlanMismatchError(
            "the answer belongs to another request or another plan; ask the site to answer this request"
        )
    if description["client"] not in plan.clients:
        raise UnknownClientError(
            f"there is an answer of {description['client'][:80]!r}, which the plan does not name"
            f"{describe_look_alike(description['client'][:80], plan.clients)}; correct the name at the site"
        )
    asked = request
    plan = plan.for_client(description["client"])
    request = select_answerable(request, plan)
    width, count = bytes_per_entry(description["rows"], _entry_bound(is_joint)), sum(_entries_of(plan, request))
    if len(blob) != start + width * count or _render_answer(description, blob[start:], width) != blob:
        raise _format_error("it was damaged on the way, or is not written in the one way it can be")
    planes = np.frombuffer(blob, dtype=np.uint8, offset=start).reshape(width, count)
    entries = np.zeros(count, dtype="<i8")
    entries.view(np.uint8).reshape(-1, 8)[:, 8 - width :] = planes.T  # then shifted down: the sign comes along
    entries >>= 8 * (8 - width)
    return AnswerMessage(
        asked.digest,
        description["client"],
        tuple(_split_answers(entries, plan, request, description)),
        description["disclosure_control"],
        description["software"],
    )


def is_answer(blob: bytes) -> bool:
    """Return whether these bytes claim to be the file of an answer."""
    return any(name.rpartition("-")[0].encode() in blob[:_MAX_HEADER_BYTES] for name in _FORMATS)


def read_answer_header(blob: bytes) -> dict[str, Any]:
    """Return what the header of an answer says, without its request: format, plan, request, client, rows and others."""
    form = RESIDUAL_ANSWER_FORMAT if b"fedcdh-residual-answer" in blob[:_MAX_HEADER_BYTES] else ANSWER_FORMAT
    return _parse_answer_header(blob[LENGTH_PREFIX.size : _data_offset(blob)], form)


def max_answer_bytes(plan: StudyPlan, request: FurtherRequest) -> int:
    """Return the length that no answer to this request exceeds."""
    return LENGTH_PREFIX.size + _MAX_HEADER_BYTES + 8 * sum(_entries_of(plan, request))


def _data_offset(blob: bytes) -> int:
    """Return where the entries begin, after the header."""
    length = LENGTH_PREFIX.unpack_from(blob)[0] if len(blob) >= LENGTH_PREFIX.size else 0
    if not 0 < length <= _MAX_HEADER_BYTES or LENGTH_PREFIX.size + length > len(blob):
        raise _format_error(f"of its {len(blob)} bytes, {length} belong to the header, as it says")
    return int(LENGTH_PREFIX.size + length)


def _format_name(is_joint: bool) -> str:
    return ANSWER_FORMAT if is_joint else RESIDUAL_ANSWER_FORMAT


def _entry_bound(is_joint: bool) -> int:
    """Return the largest entry that one row can give: a product of two features, or one function of a residual."""
    return GRID**2 if is_joint else GRID


def _entries_of(plan: StudyPlan, request: FurtherRequest) -> list[int]:
    """Return the number of entries of each part of the answer."""
    if isinstance(request, JointRequest):
        return [count_entries(plan, names) for names in request.sets]
    return [query.count_entries(plan) for query in request.queries]


def _flatten(answer: JointSummary | ResidualSums) -> Integers:
    if isinstance(answer, ResidualSums):
        return answer.sums
    return np.concatenate([answer.own[np.triu_indices(len(answer.own))], answer.cross.ravel()])


def _split_answers(
    entries: Integers, plan: StudyPlan, request: FurtherRequest, description: Mapping[str, Any]
) -> Sequence[JointSummary | ResidualSums]:
    parts = np.split(entries.astype(np.int64), np.cumsum(_entries_of(plan, request))[:-1])
    rows = description["rows"]
    if isinstance(request, ResidualRequest):
        coarseness = choose_coarseness(plan, rows) if request.coarse else 1.0
        return [
            ResidualSums(query, rows, part, coarseness=coarseness)
            for query, part in zip(request.queries, parts, strict=True)
        ]
    return [
        JointSummary(plan.fingerprint, description["client"], names, rows, *_split_blocks(part, plan, names))
        for names, part in zip(request.sets, parts, strict=True)
    ]


def _split_blocks(part: Integers, plan: StudyPlan, names: tuple[str, ...]) -> tuple[Integers, Integers]:
    """Return Σ ψψᵀ and Σ ψφᵀ of a set."""
    columns = len(joint_terms(plan, names))
    corner = columns * (columns + 1) // 2
    own = np.zeros((columns, columns), dtype=np.int64)
    own[np.triu_indices(columns)] = part[:corner]
    own += np.triu(own, 1).T
    return own, part[corner:].reshape(columns, plan.layout.n_columns)


def _render_answer(description: Mapping[str, Any], data: bytes, width: int) -> bytes:
    return render_container(description, "answers", "U8", [width, len(data) // width], data)


def _parse_answer_header(text: bytes, form: str) -> dict[str, Any]:
    """Return the description in the header of an answer of this format."""
    kinds = {"plan": str, "request": str, "client": str, "rows": int, "disclosure_control": bool, "software": str}
    description = parse_container_header(text, form, kinds, _format_error)
    if not 0 < description["rows"] <= MAX_ROWS or not SOFTWARE_PATTERN.fullmatch(description["software"]):
        raise _format_error("its header has a number of rows or a software that cannot be")
    return description


def _format_error(reason: str) -> SummaryError:
    return SummaryFormatError(
        f"this is not an answer as it was made ({reason}); ask for the file again, as it was written"
    )
