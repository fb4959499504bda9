"""Files of sums: the result of secure aggregation, or of adding many summaries in the open.

The layout is that of a summary file: a header that describes everything and carries a digest, then the numbers of the
sum (`summaries.integer_vectors`), 8 bytes each, little endian. One sum has exactly one file. A secure sum names its
session; a sum that was added in the open names the SHA-256 of every summary file in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from fedcdh._io.text import abbreviate_list, is_digest, is_name
from fedcdh.errors import SummaryError, SummaryFormatError, UnknownClientError
from fedcdh.messages._software import SOFTWARE
from fedcdh.messages.container import parse_container_header, render_container
from fedcdh.messages.summary_header import LENGTH_PREFIX, SOFTWARE_PATTERN
from fedcdh.summaries.aggregation import Aggregate
from fedcdh.summaries.client_changes import describe_plan_mismatch
from fedcdh.summaries.domain_mixtures import MAX_MIXTURES
from fedcdh.summaries.integer_vectors import decode_aggregate, encode_aggregate, vector_length
from fedcdh.summaries.plan import StudyPlan

FORMAT = "fedcdh-aggregate-2"
MIXED_FORMAT = "fedcdh-aggregate-3"
"""A secure sum with mixtures of its clients; sums without them are written as before, so that older ones stay valid."""
FORMAT_PREFIX = b"fedcdh-aggregate-"
_FORMAT_MARKER = rb"\"format\":\"" + FORMAT_PREFIX  # in a text within a text, where no name can say so
_MIXED_MARKER = rb"\"format\":\"" + MIXED_FORMAT.encode() + rb"\""
_MAX_MARKER_OFFSET = 1 << 20
_ADVICE = "make it again from what the sites sent (fedcdh secure-sum run, or fedcdh aggregate)"
_COMMON_KEYS = {"plan": str, "groups": list, "without_disclosure_control": list, "software": str}
_SECURE_KEYS = {**_COMMON_KEYS, "session": str, "threshold": int}
_MIXED_KEYS = {**_SECURE_KEYS, "mixtures": int}
_OPEN_KEYS = {**_COMMON_KEYS, "summaries": dict}


@dataclass(frozen=True)
class AggregateMessage:
    """A sum, and how it was made.

    Attributes
    ----------
    aggregate : Aggregate
        The sum.
    session : str, default ""
        Digest of the roster of the secure aggregation.
    threshold : int, default 0
        Number of clients that had to agree to open the secure sum.
    without_disclosure_control : tuple of str, default ()
        Clients whose disclosure control was switched off.
    software : str, default this version
        Program that made the file.
    summaries : mapping from str to str, default empty
        SHA-256 of each client's summary file, in a sum that was added in the open.

    Examples
    --------
    >>> from fedcdh.summaries import Aggregate, Continuous, StudyPlan, add_up, summarize
    >>> plan = StudyPlan((Continuous("age", 60, 15),), ("north",))
    >>> cohort = add_up([summarize({"age": [50, 61]}, plan, "north")], plan)
    >>> AggregateMessage(Aggregate.of(cohort), session="0" * 64, threshold=1).masked
    True
    """

    aggregate: Aggregate
    session: str = ""
    threshold: int = 0
    without_disclosure_control: tuple[str, ...] = ()
    software: str = SOFTWARE
    summaries: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "summaries", MappingProxyType(dict(self.summaries)))

    @property
    def masked(self) -> bool:
        """Return whether nobody has seen the summaries in it."""
        return not self.summaries


def pack_aggregate(message: AggregateMessage) -> bytes:
    """Write the file of a sum. The same message gives the same bytes.

    Parameters
    ----------
    message : AggregateMessage
        The sum, and how it was made.

    Returns
    -------
    bytes
        The file.

    Raises
    ------
    SummaryError
        If the message contradicts itself.

    Examples
    --------
    >>> from fedcdh.summaries import Aggregate, Continuous, StudyPlan, add_up, summarize
    >>> plan = StudyPlan((Continuous("age", 60, 15),), ("north",))
    >>> cohort = add_up([summarize({"age": [50, 61]}, plan, "north")], plan)
    >>> blob = pack_aggregate(AggregateMessage(Aggregate.of(cohort), session="0" * 64, threshold=1))
    >>> unpack_aggregate(blob, plan).aggregate.total.rows
    2
    """
    if not SOFTWARE_PATTERN.fullmatch(message.software):
        raise SummaryError(
            f"the software {message.software!r} cannot be named in a file; expected 1 to 64 plain letters; shorten it"
        )
    mixtures = message.aggregate.mixtures
    description = {
        "format": FORMAT if mixtures is None else MIXED_FORMAT,
        "plan": message.aggregate.plan.fingerprint,
        "groups": [[name, list(members)] for name, members in message.aggregate.groups],
        "without_disclosure_control": sorted(message.without_disclosure_control),
        "software": message.software,
        **_origin(message),
        **({} if mixtures is None else {"mixtures": len(mixtures.signs)}),
    }
    return _render(description, encode_aggregate(message.aggregate).astype("<u8", copy=False).tobytes())


def _origin(message: AggregateMessage) -> dict[str, Any]:
    if message.masked or message.aggregate.mixtures is not None:
        return {"session": message.session, "threshold": message.threshold}
    if message.session or message.threshold or tuple(sorted(message.summaries)) != message.aggregate.total.clients:
        raise SummaryError(
            f"the sum of {abbreviate_list(message.aggregate.total.clients)} names files of "
            f"{abbreviate_list(message.summaries)}; a sum that was added in the open names the file of every client "
            "in it, and no session; correct the message"
        )
    return {"summaries": dict(message.summaries)}


def is_aggregate(blob: bytes) -> bool:
    """Return whether these bytes claim to be the file of a sum."""
    return _FORMAT_MARKER in blob[:_MAX_MARKER_OFFSET]


def read_plan_fingerprint(blob: bytes) -> str:
    """Return the fingerprint of the plan that a sum claims to follow."""
    return str(_parse_header(blob[LENGTH_PREFIX.size : _data_offset(blob, len(blob))])["plan"])


def unpack_aggregate(blob: bytes, plan: StudyPlan) -> AggregateMessage:
    """Read the file of a sum, and validate it against the plan.

    Parameters
    ----------
    blob : bytes
        The file.
    plan : StudyPlan
        Plan of the study.

    Returns
    -------
    AggregateMessage
        The sum, and how it was made.

    Raises
    ------
    SummaryFormatError
        If the bytes are not those of a sum as it was made.
    PlanMismatchError
        If the sum follows another plan.
    UnknownClientError
        If a client is not in the plan, or is named twice.
    SummaryError
        If no rows can have given the sum.

    Examples
    --------
    >>> from fedcdh.summaries import Continuous, StudyPlan
    >>> unpack_aggregate(b"", StudyPlan((Continuous("age"),), ("north",)))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    fedcdh.errors.SummaryFormatError: ...
    """
    start = _data_offset(blob, _max_header_bytes(plan))
    description = _parse_header(blob[LENGTH_PREFIX.size : start])
    groups = tuple((name, tuple(members)) for name, members in description["groups"])
    if description["plan"] not in plan.fingerprints:
        raise describe_plan_mismatch("the sum", description["plan"], plan, _ADVICE)
    clients = sorted(client for _, members in groups for client in members)
    if not plan.client_set.issuperset(clients) or len(set(clients)) != len(clients) or not clients:
        raise UnknownClientError(f"the sum has clients that the plan does not name, or names one twice; {_ADVICE}")
    if not set(description["without_disclosure_control"]) <= set(clients):
        raise _format_error("it names clients without disclosure control that are not in it")
    if sorted(description.get("summaries", clients)) != clients:
        raise _format_error("the summaries that it names are not those of its clients")
    mixtures = description.get("mixtures", 0)
    length = 8 * vector_length(plan, len(groups), mixtures)
    if len(blob) != start + length or _render(description, blob[start:]) != blob:
        raise _format_error("it was damaged on the way, or is not written in the one way it can be")
    words = np.frombuffer(blob, dtype="<u8", offset=start).astype(np.uint64)
    aggregate = decode_aggregate(words, plan, groups, mixtures)
    session, threshold, summaries = (
        description.get("session", ""),
        description.get("threshold", 0),
        description.get("summaries", {}),
    )
    return AggregateMessage(
        aggregate,
        session,
        threshold,
        tuple(description["without_disclosure_control"]),
        description["software"],
        summaries,
    )


def _data_offset(blob: bytes, at_most: int) -> int:
    """Return where the numbers begin, after a header of at most `max_bytes` bytes."""
    length = int(LENGTH_PREFIX.unpack_from(blob)[0]) if len(blob) >= LENGTH_PREFIX.size else 0
    if not 0 < length <= at_most or LENGTH_PREFIX.size + length > len(blob):
        raise _format_error(f"of its {len(blob)} bytes, {length} belong to the header, as it says")
    return LENGTH_PREFIX.size + length


def max_aggregate_bytes(plan: StudyPlan) -> int:
    """Return the length that no file of a sum with this plan exceeds."""
    words = max(vector_length(plan, len(plan.clients), mixtures) for mixtures in (0, MAX_MIXTURES))
    return LENGTH_PREFIX.size + _max_header_bytes(plan) + 8 * words


def _max_header_bytes(plan: StudyPlan) -> int:
    """Return the length of the longest header: names of clients and groups, in a text within a text."""
    return 2000 + 4000 * len(plan.clients)


def _render(description: Mapping[str, Any], data: bytes) -> bytes:
    return render_container(description, "words", "U64", [len(data) // 8], data)


def _parse_header(text: bytes) -> dict[str, Any]:
    """Return the description in the header."""
    if _MIXED_MARKER in text:
        description = parse_container_header(text, MIXED_FORMAT, _MIXED_KEYS, _format_error)
    else:
        description = parse_container_header(text, FORMAT, _SECURE_KEYS, _format_error, _OPEN_KEYS)
    digests = [description["session"]] if "session" in description else description["summaries"].values()
    if (
        not all(map(is_digest, digests))
        or not SOFTWARE_PATTERN.fullmatch(description["software"])
        or description.get("threshold", 0) < 0
        or not 1 <= description.get("mixtures", 1) <= MAX_MIXTURES
    ):
        raise _format_error("its header has a digest, a threshold, mixtures or a software that cannot be")
    if "mixtures" in description and len(description["groups"]) != 1:
        raise _format_error("it has mixtures, and more than one group")
    if not all(map(is_name, description["without_disclosure_control"])) or not all(
        map(_is_group, description["groups"])
    ):
        raise _format_error("its clients are not lists of names")
    lists = (
        [name for name, _ in description["groups"]],
        description["without_disclosure_control"],
        *(members for _, members in description["groups"]),
    )
    if any(found != sorted(set(found)) for found in lists):
        raise _format_error("its lists are out of order, or name one twice")
    return description


def _is_group(found: Any) -> bool:
    if not isinstance(found, list) or len(found) != 2 or not isinstance(found[1], list):
        return False
    return bool(found[1]) and all(map(is_name, (found[0], *found[1])))


def _format_error(reason: str) -> SummaryFormatError:
    return SummaryFormatError(f"this is not the file of a sum as it was made ({reason}); {_ADVICE}")
