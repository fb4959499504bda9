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

from fedcdh._io.text import is_digest, is_name, some_of
from fedcdh.errors import NotASummary, PlanMismatch, SummaryError, UnknownClient
from fedcdh.messages import SOFTWARE
from fedcdh.messages.container import rendered, said_in
from fedcdh.messages.summary_header import LENGTH, SOFTWARE_NAME
from fedcdh.summaries.aggregation import Aggregate
from fedcdh.summaries.integer_vectors import decoded, encoded_sum, words_of
from fedcdh.summaries.plan import StudyPlan

FORMAT = "fedcdh-aggregate-1"
MARK = b"fedcdh-aggregate-"
_SAYS = rb"\"format\":\"" + MARK  # in a text within a text, where no name can say so
_LOOKED_AT = 1 << 20
_AGAIN = "make it again from what the sites sent (fedcdh masked, or fedcdh add)"
_SHARED = {"plan": str, "groups": list, "research": list, "software": str}
_MASKED = {**_SHARED, "session": str, "threshold": int}
_OPEN = {**_SHARED, "summaries": dict}


@dataclass(frozen=True)
class AggregateMessage:
    """A sum, and how it came about."""

    aggregate: Aggregate
    session: str = ""  # of the masked sum: digest of its roster
    threshold: int = 0  # so many sites had to agree to open it
    research: tuple[str, ...] = ()  # clients whose policy did not enforce smallest numbers of rows
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
    if not SOFTWARE_NAME.fullmatch(message.software):
        raise SummaryError(f"software {message.software!r} cannot be named in a file; expected up to 64 plain letters")
    said = {
        "format": FORMAT,
        "plan": message.aggregate.plan.fingerprint,
        "groups": [[name, list(members)] for name, members in message.aggregate.groups],
        "research": sorted(message.research),
        "software": message.software,
        **_origin(message),
    }
    return _rendered(said, encoded_sum(message.aggregate).astype("<u8", copy=False).tobytes())


def _origin(message: AggregateMessage) -> dict[str, Any]:
    if message.masked:
        return {"session": message.session, "threshold": message.threshold}
    if message.session or message.threshold or tuple(sorted(message.summaries)) != message.aggregate.total.clients:
        raise SummaryError(
            f"the sum of {some_of(message.aggregate.total.clients)} names files of {some_of(message.summaries)}; a sum "
            "that was added in the open names the file of every client in it, and no session"
        )
    return {"summaries": dict(message.summaries)}


def is_sum(blob: bytes) -> bool:
    """Whether these bytes say that they are the file of a sum."""
    return _SAYS in blob[:_LOOKED_AT]


def plan_of(blob: bytes) -> str:
    """The fingerprint of the plan that a sum says it follows."""
    return str(_header(blob[LENGTH.size : _start(blob, len(blob))])["plan"])


def unpack_aggregate(blob: bytes, plan: StudyPlan) -> AggregateMessage:
    """The sum in a file, checked for all that bytes and plan can tell, and that some rows can have given it."""
    start = _start(blob, _header_at_most(plan))
    said = _header(blob[LENGTH.size : start])
    groups = tuple((name, tuple(members)) for name, members in said["groups"])
    if said["plan"] != plan.fingerprint:
        raise PlanMismatch(f"the sum follows plan {said['plan'][:12]}, not this plan ({plan.fingerprint[:12]})")
    clients = sorted(client for _, members in groups for client in members)
    if not plan.client_set.issuperset(clients) or len(set(clients)) != len(clients) or not clients:
        raise UnknownClient(f"the sum is of clients whom the plan does not name, or names one twice; {_AGAIN}")
    if not set(said["research"]) <= set(clients):
        raise _not_ours("it says of sites that are not in it that they did research")
    if sorted(said.get("summaries", clients)) != clients:
        raise _not_ours("the summaries that it names are not those of its clients")
    if len(blob) != start + 8 * words_of(plan, len(groups)) or _rendered(said, blob[start:]) != blob:
        raise _not_ours("it was damaged on the way, or is not written in the one way it can be")
    words = np.frombuffer(blob, dtype="<u8", offset=start).astype(np.uint64)
    aggregate = decoded(words, plan, groups)
    session, threshold, summaries = said.get("session", ""), said.get("threshold", 0), said.get("summaries", {})
    return AggregateMessage(aggregate, session, threshold, tuple(said["research"]), said["software"], summaries)


def _start(blob: bytes, at_most: int) -> int:
    """Where the numbers begin, after a header of at most so many bytes."""
    length = int(LENGTH.unpack_from(blob)[0]) if len(blob) >= LENGTH.size else 0
    if not 0 < length <= at_most or LENGTH.size + length > len(blob):
        raise _not_ours(f"of its {len(blob)} bytes, {length} are said to be header")
    return LENGTH.size + length


def aggregate_bytes_at_most(plan: StudyPlan) -> int:
    """No file of a sum with this plan is longer."""
    return LENGTH.size + _header_at_most(plan) + 8 * words_of(plan, len(plan.clients))


def _header_at_most(plan: StudyPlan) -> int:
    """Names of clients and groups, in a text within a text."""
    return 2000 + 4000 * len(plan.clients)


def _rendered(said: Mapping[str, Any], data: bytes) -> bytes:
    return rendered(said, "words", "U64", [len(data) // 8], data)


def _header(text: bytes) -> dict[str, Any]:
    """What the file says of itself."""
    said = said_in(text, FORMAT, _MASKED, _not_ours, _OPEN)
    digests = [said["session"]] if "session" in said else said["summaries"].values()
    if (
        not all(map(is_digest, digests))
        or not SOFTWARE_NAME.fullmatch(said["software"])
        or said.get("threshold", 0) < 0
    ):
        raise _not_ours("its header holds what cannot be")
    if not all(map(is_name, said["research"])) or not all(map(_is_group, said["groups"])):
        raise _not_ours("its clients are not lists of names")
    lists = ([name for name, _ in said["groups"]], said["research"], *(members for _, members in said["groups"]))
    if any(found != sorted(set(found)) for found in lists):
        raise _not_ours("its lists are out of order, or name one twice")
    return said


def _is_group(found: Any) -> bool:
    if not isinstance(found, list) or len(found) != 2 or not isinstance(found[1], list):
        return False
    return bool(found[1]) and all(map(is_name, (found[0], *found[1])))


def _not_ours(reason: str) -> NotASummary:
    return NotASummary(f"this is not the file of a sum as it was made ({reason}); {_AGAIN}")
