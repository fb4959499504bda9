"""Files of sums: all that a server learned when sites sent their summaries under masks, or what `adding` made of many.

The layout is that of a summary file: a header that says everything and carries a digest, then the numbers of the sum
(`privacy.vectors`), 8 bytes each, the lowest first. One sum has exactly one file. A masked sum names its session, one
that was added in the open the SHA-256 of every summary file that is in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from fedcdh._io.text import abbreviate_list, is_digest, is_name
from fedcdh.errors import PlanMismatchError, SummaryError, SummaryFormatError, UnknownClientError
from fedcdh.messages import SOFTWARE
from fedcdh.messages.container import parse_container_header, render_container
from fedcdh.messages.summary_header import LENGTH_PREFIX, SOFTWARE_PATTERN
from fedcdh.summaries.aggregation import Aggregate
from fedcdh.summaries.integer_vectors import decode_aggregate, encode_aggregate, vector_length
from fedcdh.summaries.plan import StudyPlan

FORMAT = "fedcdh-aggregate-2"
FORMAT_PREFIX = b"fedcdh-aggregate-"
_FORMAT_MARKER = rb"\"format\":\"" + FORMAT_PREFIX  # in a text within a text, where no name can say so
_MAX_MARKER_OFFSET = 1 << 20
_ADVICE = "make it again from what the sites sent (fedcdh secure-sum run, or fedcdh aggregate)"
_COMMON_KEYS = {"plan": str, "groups": list, "without_disclosure_control": list, "software": str}
_SECURE_KEYS = {**_COMMON_KEYS, "session": str, "threshold": int}
_OPEN_KEYS = {**_COMMON_KEYS, "summaries": dict}


@dataclass(frozen=True)
class AggregateMessage:
    """A sum, and how it came about."""

    aggregate: Aggregate
    session: str = ""  # of the masked sum: digest of its roster
    threshold: int = 0  # so many sites had to agree to open it
    without_disclosure_control: tuple[str, ...] = ()  # clients whose policy did not enforce smallest numbers of rows
    software: str = SOFTWARE
    summaries: Mapping[str, str] = field(default_factory=dict)  # not masked: client → SHA-256 of its summary file

    def __post_init__(self) -> None:
        object.__setattr__(self, "summaries", MappingProxyType(dict(self.summaries)))

    @property
    def masked(self) -> bool:
        """Whether nobody has seen the summaries that are in it."""
        return not self.summaries


def pack_aggregate(message: AggregateMessage) -> bytes:
    """The file of a sum. Same message, same bytes."""
    if not SOFTWARE_PATTERN.fullmatch(message.software):
        raise SummaryError(f"software {message.software!r} cannot be named in a file; expected up to 64 plain letters")
    said = {
        "format": FORMAT,
        "plan": message.aggregate.plan.fingerprint,
        "groups": [[name, list(members)] for name, members in message.aggregate.groups],
        "without_disclosure_control": sorted(message.without_disclosure_control),
        "software": message.software,
        **_origin(message),
    }
    return _render(said, encode_aggregate(message.aggregate).astype("<u8", copy=False).tobytes())


def _origin(message: AggregateMessage) -> dict[str, Any]:
    if message.masked:
        return {"session": message.session, "threshold": message.threshold}
    if message.session or message.threshold or tuple(sorted(message.summaries)) != message.aggregate.total.clients:
        raise SummaryError(
            f"the sum of {abbreviate_list(message.aggregate.total.clients)} names files of {abbreviate_list(message.summaries)}; a sum "
            "that was added in the open names the file of every client in it, and no session"
        )
    return {"summaries": dict(message.summaries)}


def is_aggregate(blob: bytes) -> bool:
    """Whether these bytes say that they are the file of a sum."""
    return _FORMAT_MARKER in blob[:_MAX_MARKER_OFFSET]


def read_plan_fingerprint(blob: bytes) -> str:
    """The fingerprint of the plan that a sum says it follows."""
    return str(_parse_header(blob[LENGTH_PREFIX.size : _data_offset(blob, len(blob))])["plan"])


def unpack_aggregate(blob: bytes, plan: StudyPlan) -> AggregateMessage:
    """The sum in a file, checked for all that bytes and plan can tell, and that some rows can have given it."""
    start = _data_offset(blob, _max_header_bytes(plan))
    said = _parse_header(blob[LENGTH_PREFIX.size : start])
    groups = tuple((name, tuple(members)) for name, members in said["groups"])
    if said["plan"] != plan.fingerprint:
        raise PlanMismatchError(f"the sum follows plan {said['plan'][:12]}, not this plan ({plan.fingerprint[:12]})")
    clients = sorted(client for _, members in groups for client in members)
    if not plan.client_set.issuperset(clients) or len(set(clients)) != len(clients) or not clients:
        raise UnknownClientError(f"the sum is of clients whom the plan does not name, or names one twice; {_ADVICE}")
    if not set(said["without_disclosure_control"]) <= set(clients):
        raise _format_error("it says of sites that are not in it that they did without_disclosure_control")
    if sorted(said.get("summaries", clients)) != clients:
        raise _format_error("the summaries that it names are not those of its clients")
    if len(blob) != start + 8 * vector_length(plan, len(groups)) or _render(said, blob[start:]) != blob:
        raise _format_error("it was damaged on the way, or is not written in the one way it can be")
    words = np.frombuffer(blob, dtype="<u8", offset=start).astype(np.uint64)
    aggregate = decode_aggregate(words, plan, groups)
    session, threshold, summaries = said.get("session", ""), said.get("threshold", 0), said.get("summaries", {})
    return AggregateMessage(
        aggregate, session, threshold, tuple(said["without_disclosure_control"]), said["software"], summaries
    )


def _data_offset(blob: bytes, at_most: int) -> int:
    """Where the numbers begin, after a header of at most so many bytes."""
    length = int(LENGTH_PREFIX.unpack_from(blob)[0]) if len(blob) >= LENGTH_PREFIX.size else 0
    if not 0 < length <= at_most or LENGTH_PREFIX.size + length > len(blob):
        raise _format_error(f"of its {len(blob)} bytes, {length} are said to be header")
    return LENGTH_PREFIX.size + length


def max_aggregate_bytes(plan: StudyPlan) -> int:
    """No file of a sum with this plan is longer."""
    return LENGTH_PREFIX.size + _max_header_bytes(plan) + 8 * vector_length(plan, len(plan.clients))


def _max_header_bytes(plan: StudyPlan) -> int:
    """Names of clients and groups, in a text within a text."""
    return 2000 + 4000 * len(plan.clients)


def _render(said: Mapping[str, Any], data: bytes) -> bytes:
    return render_container(said, "words", "U64", [len(data) // 8], data)


def _parse_header(text: bytes) -> dict[str, Any]:
    """What the file says of itself."""
    said = parse_container_header(text, FORMAT, _SECURE_KEYS, _format_error, _OPEN_KEYS)
    digests = [said["session"]] if "session" in said else said["summaries"].values()
    if (
        not all(map(is_digest, digests))
        or not SOFTWARE_PATTERN.fullmatch(said["software"])
        or said.get("threshold", 0) < 0
    ):
        raise _format_error("its header holds what cannot be")
    if not all(map(is_name, said["without_disclosure_control"])) or not all(map(_is_group, said["groups"])):
        raise _format_error("its clients are not lists of names")
    lists = (
        [name for name, _ in said["groups"]],
        said["without_disclosure_control"],
        *(members for _, members in said["groups"]),
    )
    if any(found != sorted(set(found)) for found in lists):
        raise _format_error("its lists are out of order, or name one twice")
    return said


def _is_group(found: Any) -> bool:
    if not isinstance(found, list) or len(found) != 2 or not isinstance(found[1], list):
        return False
    return bool(found[1]) and all(map(is_name, (found[0], *found[1])))


def _format_error(reason: str, advice: str = _ADVICE) -> SummaryFormatError:
    return SummaryFormatError(f"this is not the file of a sum as it was made ({reason}); {advice}")
