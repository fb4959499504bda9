"""Files of masked sums: all that a server learned when sites sent their summaries under masks.

The layout is that of a summary file: a header that says everything and carries a digest, then the numbers of the sum
(`privacy.vectors`), 8 bytes each, the lowest first. One sum has exactly one file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedcdh.errors import NotASummary, PlanMismatch, SummaryError, UnknownClient
from fedcdh.files import SOFTWARE
from fedcdh.files.layout import rendered, said_in
from fedcdh.files.profiles import is_digest, is_name
from fedcdh.files.summary_header import LENGTH, SOFTWARE_NAME
from fedcdh.plan import StudyPlan
from fedcdh.privacy.vectors import decoded, encoded_sum, words_of
from fedcdh.summary import Aggregate

FORMAT = "fedcdh-aggregate-1"
MARK = b"fedcdh-aggregate-"
_AGAIN = "make it again from the sites' answers (fedcdh masked)"


@dataclass(frozen=True)
class AggregateMessage:
    """A sum, and how it came about."""

    aggregate: Aggregate
    session: str  # of the masked sum: digest of its roster
    threshold: int  # so many sites had to agree to open it
    research: tuple[str, ...] = ()  # clients whose policy did not enforce smallest numbers of rows
    software: str = SOFTWARE


def pack_aggregate(message: AggregateMessage) -> bytes:
    """The file of a sum. Same message, same bytes."""
    if not SOFTWARE_NAME.fullmatch(message.software):
        raise SummaryError(f"software {message.software!r} cannot be named in a file; expected up to 64 plain letters")
    said = {
        "format": FORMAT,
        "plan": message.aggregate.plan.fingerprint,
        "groups": [[name, list(members)] for name, members in message.aggregate.groups],
        "session": message.session,
        "threshold": message.threshold,
        "research": sorted(message.research),
        "software": message.software,
    }
    return _rendered(said, encoded_sum(message.aggregate).astype("<u8", copy=False).tobytes())


def unpack_aggregate(blob: bytes, plan: StudyPlan) -> AggregateMessage:
    """The sum in a file, checked for all that bytes and plan can tell, and that some rows can have given it."""
    length = LENGTH.unpack_from(blob)[0] if len(blob) >= LENGTH.size else 0
    start = LENGTH.size + length
    if not 0 < length <= _header_at_most(plan) or start > len(blob):
        raise _not_ours(f"of its {len(blob)} bytes, {length} are said to be header")
    said = _header(blob[LENGTH.size : start])
    groups = tuple((name, tuple(members)) for name, members in said["groups"])
    if said["plan"] != plan.fingerprint:
        raise PlanMismatch(f"the sum follows plan {said['plan'][:12]}, not this plan ({plan.fingerprint[:12]})")
    clients = sorted(client for _, members in groups for client in members)
    if not set(clients) <= set(plan.clients) or len(set(clients)) != len(clients) or not clients:
        raise UnknownClient(f"the sum is of clients whom the plan does not name, or names one twice; {_AGAIN}")
    if not set(said["research"]) <= set(clients):
        raise _not_ours("it says of sites that are not in it that they did research")
    if len(blob) != start + 8 * words_of(plan, len(groups)) or _rendered(said, blob[start:]) != blob:
        raise _not_ours("it was damaged on the way, or is not written in the one way it can be")
    words = np.frombuffer(blob, dtype="<u8", offset=start).astype(np.uint64)
    aggregate = decoded(words, plan, groups)
    return AggregateMessage(aggregate, said["session"], said["threshold"], tuple(said["research"]), said["software"])


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
    kinds = {"plan": str, "groups": list, "session": str, "threshold": int, "research": list, "software": str}
    said = said_in(text, FORMAT, kinds, _not_ours)
    if not is_digest(said["session"]) or not SOFTWARE_NAME.fullmatch(said["software"]) or said["threshold"] < 0:
        raise _not_ours("its header holds what cannot be")
    if not all(map(is_name, said["research"])) or not all(map(_is_group, said["groups"])):
        raise _not_ours("its clients are not lists of names")
    return said


def _is_group(found: Any) -> bool:
    if not isinstance(found, list) or len(found) != 2 or not isinstance(found[1], list):
        return False
    return bool(found[1]) and all(map(is_name, (found[0], *found[1])))


def _not_ours(reason: str) -> NotASummary:
    return NotASummary(f"this is not the file of a masked sum as it was made ({reason}); {_AGAIN}")
