"""Requests of further rounds as files: canonical JSON with a digest.

There are two kinds: a request for joint features of sets of variables, and one for sums of residuals. They are numbered
together, and one request has exactly one text.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fedcdh._io.format_version import find_format_mismatch
from fedcdh._io.storage import read_regular_file
from fedcdh._io.strict_json import parse_json, to_canonical_json
from fedcdh._io.text import to_readable_json
from fedcdh.errors import FedCDHError, SummaryError, SummaryFormatError
from fedcdh.messages._fields import fields_to_document, restore_fields
from fedcdh.summaries.joint import JointRequest
from fedcdh.summaries.joint.round_budget import FurtherRequest
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.residuals import Coordinates, ResidualQuery, ResidualRequest

REQUEST_FORMAT, RESIDUAL_REQUEST_FORMAT = "fedcdh-request-2", "fedcdh-residual-request-2"
_FORMATS = (REQUEST_FORMAT, RESIDUAL_REQUEST_FORMAT)
REQUEST_FILE_NAME, ANSWER_SUFFIX = "request-{:03d}.json", ".answer-{:03d}"
"""Names of files, with the number of the request."""
MAX_TEXT_BYTES = 16_000_000
"""Bytes of a request."""
_ADVICE = "ask for the file again, as it was written"


def request_to_json(request: FurtherRequest) -> str:
    """Write the one text of a request.

    Parameters
    ----------
    request : JointRequest or ResidualRequest
        What is requested.

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
    common = {"plan": request.plan, "number": request.number}
    if isinstance(request, JointRequest):
        return _seal({"format": REQUEST_FORMAT, **common, "sets": [list(names) for names in request.sets]})
    coordinates = {name: fields_to_document(one) for name, one in request.coordinates.items()}
    queries = [fields_to_document(query) for query in request.queries]
    content = {**common, "coordinates": coordinates, "queries": queries, **({"coarse": True} if request.coarse else {})}
    return _seal({"format": RESIDUAL_REQUEST_FORMAT, **content})


def request_from_json(text: str | bytes, plan: StudyPlan) -> FurtherRequest:
    """Read a request that `request_to_json` wrote, and check that it follows this plan.

    Parameters
    ----------
    text : str or bytes
        JSON text.
    plan : StudyPlan
        Plan of the study.

    Returns
    -------
    JointRequest or ResidualRequest
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
    request = read_request(text)
    request.check(plan)
    return request


def is_request(content: bytes) -> bool:
    """Return whether these bytes claim to be a request of either kind."""
    return content[:1] == b"{" and any(f'"format": "{name[:-1]}'.encode() in content for name in _FORMATS)


def read_request(text: str | bytes) -> FurtherRequest:
    """Read a request without its plan, for people who want to see what it asks for.

    Parameters
    ----------
    text : str or bytes
        JSON text.

    Returns
    -------
    JointRequest or ResidualRequest
        The request, whatever plan it follows.

    Raises
    ------
    SummaryFormatError
        If the text is not that of a request, or was changed.
    """
    found = _open_sealed(text)
    try:
        request = _joint_request(found) if found["format"] == REQUEST_FORMAT else _residual_request(found)
    except (TypeError, AttributeError):
        raise _format_error("its parts have other types than this format") from None
    if request_to_json(request).encode() != _to_bytes(text):
        raise _format_error("it is not written the way this program writes one")
    return request


def _joint_request(found: Mapping[str, Any]) -> JointRequest:
    return JointRequest(str(found["plan"]), found["number"], tuple(tuple(map(str, names)) for names in found["sets"]))


def _residual_request(found: Mapping[str, Any]) -> ResidualRequest:
    coordinates = {name: restore_fields(Coordinates, one) for name, one in found["coordinates"].items()}
    queries = tuple(restore_fields(ResidualQuery, one) for one in found["queries"])
    return ResidualRequest(str(found["plan"]), found["number"], coordinates, queries, found.get("coarse", False))


def read_requests(folder: Path, plan: StudyPlan) -> tuple[FurtherRequest, ...]:
    """Read all requests in a folder, from the first one on; they have to follow this plan."""
    found: list[FurtherRequest] = []
    while (path := folder / REQUEST_FILE_NAME.format(len(found) + 1)).exists():
        content = read_regular_file(path, MAX_TEXT_BYTES, "a request", refuse=SummaryFormatError)
        try:
            found.append(request_from_json(content, plan))
        except FedCDHError as problem:
            raise type(problem)(f"{path} is not a request of this study ({problem}); choose another folder") from None
    return tuple(found)


def _seal(document: dict[str, Any]) -> str:
    return to_readable_json({**document, "digest": _digest(document)})


def _open_sealed(text: str | bytes) -> dict[str, Any]:
    """Return the content of a request of either kind, whose digest is right."""
    if len(text) > MAX_TEXT_BYTES:
        raise _format_error(f"it is longer than {MAX_TEXT_BYTES} bytes")
    document: Any = parse_json(text, refuse=_format_error)
    named = document.get("format") if isinstance(document, dict) else None
    expected = RESIDUAL_REQUEST_FORMAT if str(named).startswith("fedcdh-residual-request-") else REQUEST_FORMAT
    if mismatch := find_format_mismatch(named, expected):
        raise _format_error(*mismatch)
    fields = {"sets"} if expected == REQUEST_FORMAT else {"coordinates", "queries"}
    whole = fields | {"format", "plan", "number", "digest"}
    optional = {"coarse"} if expected == RESIDUAL_REQUEST_FORMAT else set[str]()
    if set(document) - optional != whole or document.pop("digest") != _digest(document):
        raise _format_error("its digest is not that of its content: it was changed after it was made")
    return dict(document)


def _digest(document: Mapping[str, Any]) -> str:
    return hashlib.sha256(to_canonical_json(document).encode()).hexdigest()


def _to_bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text


def _format_error(reason: str, advice: str = _ADVICE) -> SummaryError:
    return SummaryFormatError(f"this is not a request as it was made ({reason}); {advice}")
