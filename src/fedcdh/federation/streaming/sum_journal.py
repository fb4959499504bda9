"""The file format of the journal of a running sum."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fedcdh.errors import SummaryError
from fedcdh.messages.container import parse_container_header, render_container
from fedcdh.messages.summary_header import LENGTH_PREFIX
from fedcdh.summaries.integer_vectors import vector_length
from fedcdh.summaries.plan import StudyPlan

FORMAT = "fedcdh-adding-3"
_HEADER_TYPES = {
    "plan": str,
    "study": str,
    "groups": str,
    "added": list,
    "aside": list,
    "differing": list,
    "shared": list,
}
_OLD_FORMATS = (
    rb"\"format\":\"fedcdh-adding-1\"",
    rb"\"format\":\"fedcdh-adding-2\"",
)  # did not record refused summaries


def max_set_aside(plan: StudyPlan) -> int:
    """Return how many conflicting summaries are recorded; the limit keeps a client from filling the disk."""
    return 20 + 2 * len(plan.clients)


def _max_header_bytes(plan: StudyPlan) -> int:
    """Return the size of the largest header, which lists clients with two digests each."""
    return 2000 + 4000 * (len(plan.clients) + max_set_aside(plan))


def max_journal_bytes(plan: StudyPlan) -> int:
    """Return the size of the largest journal of a plan."""
    return LENGTH_PREFIX.size + _max_header_bytes(plan) + 8 * vector_length(plan, len(plan.clients))


def read_header(blob: bytes, plan: StudyPlan) -> tuple[dict[str, Any], int]:
    """Return the header of a journal, and the position at which its numbers begin."""
    length = LENGTH_PREFIX.unpack_from(blob)[0] if len(blob) >= LENGTH_PREFIX.size else 0
    start = LENGTH_PREFIX.size + length
    if not 0 < length <= _max_header_bytes(plan) or start > len(blob):
        raise journal_error("it is cut off")
    if any(older in blob[:start] for older in _OLD_FORMATS):
        raise SummaryError(
            f"The journal is of an older version of this program. Expected the format {FORMAT!r}. Remove the journal "
            "to start again."
        )
    return parse_container_header(blob[LENGTH_PREFIX.size : start], FORMAT, _HEADER_TYPES, journal_error), start


def to_container(header: Mapping[str, Any], data: bytes) -> bytes:
    """Return a journal with this header and these numbers."""
    return render_container(header, "words", "I64", [len(data) // 8], data)


def journal_error(reason: str) -> SummaryError:
    """Return the error for a damaged journal."""
    return SummaryError(
        f"The journal is damaged: {reason}. Expected the file as this program wrote it. Remove it to start again."
    )
