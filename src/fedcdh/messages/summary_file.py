"""Summary files: the one message of a client as bytes, and back. `docs/file-format.md` describes every byte.

The layout is that of safetensors, so that any library of that name opens the file, but it is written and read here: the
bytes then depend on nobody's version, and every length is known and compared before anything is parsed. One summary has
exactly one file; a reader that accepted two could be shown one while the other was signed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isqrt

import numpy as np

from fedcdh._io.text import abbreviate_list
from fedcdh.errors import (
    MomentBoundsError,
    PlanMismatchError,
    RowCountError,
    SummaryError,
    SummaryFormatError,
    UnknownClientError,
)
from fedcdh.messages import SOFTWARE
from fedcdh.messages.summary_header import (
    DIGEST_PATTERN,
    LENGTH_PREFIX,
    MAX_COUNT,
    MAX_HEADER_BYTES,
    PLACEHOLDER_DIGEST,
    RESEND_ADVICE,
    SOFTWARE_PATTERN,
    SummaryHeader,
    max_header_bytes,
    parse_header,
)
from fedcdh.summaries.bootstrap import MAX_REPLICATES
from fedcdh.summaries.encoder import GRID
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.summary import MAX_ROWS, Integers, Summary, iter_triangle_rows

_BLOCK_ROWS = 256  # rows that are mirrored at a time: blocks of this size and their transposes share the cache


@dataclass(frozen=True)
class SummaryMessage:
    """A client's summary, or a bootstrap copy of it (`summary.replicate`), and how it came about."""

    summary: Summary
    disclosure_control: bool = True
    software: str = SOFTWARE


def pack_summary(message: SummaryMessage, plan: StudyPlan) -> bytes:
    """The file of a client's summary. Same message, same bytes; what `unpack_summary` would refuse is refused here."""
    header, moments = _build_header(message), message.summary.moments
    _check_with_plan(header, plan)
    _check_rows(header, moments)
    planes = np.empty((header.width, header.entries), dtype=np.uint8)
    for row, place in iter_triangle_rows(header.columns):
        entries = np.ascontiguousarray(moments[row, row:], dtype="<i8")
        planes[:, place] = entries.view(np.uint8).reshape(-1, 8)[:, : header.width].T
    return b"".join((header.render(header.digest(planes.data)), planes.data))


def unpack_summary(blob: bytes, plan: StudyPlan) -> SummaryMessage:
    """The message in a file, checked for all that bytes and plan can tell; not whether any rows have these moments."""
    if len(blob) > (most := max_summary_bytes(plan)):
        raise SummaryFormatError(
            f"the file has {len(blob)} bytes, a summary with this plan has at most {most}; if it is a summary, it was "
            f"made with another plan: {RESEND_ADVICE}"
        )
    header, start = parse_header(blob, max_header_bytes(plan))
    _check_with_plan(header, plan)
    moments = _unpack_moments(blob, start, header)
    _check_rows(header, moments)
    most_moment = header.rows * GRID**2
    if not header.noise and (moments.max() > most_moment or moments.min() < -most_moment):
        raise MomentBoundsError(
            f"the summary of {header.client!r} has an entry larger than {header.rows} rows of features in [-1, 1] can "
            f"make it; {RESEND_ADVICE}"
        )
    in_order = {name: header.missing[name] for name in plan.names}  # the file sorts by name
    said = header.rows_read, in_order, header.replicate, header.original, header.noise**2
    summary = Summary(header.plan, (header.client,), moments, *said)
    return SummaryMessage(summary, header.disclosure_control, header.software)


def read_summary_header(blob: bytes) -> SummaryHeader:
    """What the header of a summary file says. Without a plan nothing tells whether it is true."""
    return parse_header(blob, MAX_HEADER_BYTES)[0]


def summary_file_size(
    plan: StudyPlan,
    client: str,
    rows: int,
    *,
    rows_read: int | None = None,
    missing: Mapping[str, int] | None = None,
    disclosure_control: bool = True,
    software: str = SOFTWARE,
    replicate: int = 0,
) -> int:
    """The exact length of the file that `pack_summary` will give, in bytes; nothing is missing unless said so."""
    counts = dict.fromkeys(plan.names, 0) if missing is None else missing
    read = rows if rows_read is None else rows_read
    header = SummaryHeader(
        plan=plan.fingerprint,
        client=client,
        rows=rows,
        rows_read=read,
        missing=counts,
        columns=plan.layout.n_columns,
        disclosure_control=disclosure_control,
        software=software,
        replicate=replicate,
        original=PLACEHOLDER_DIGEST if replicate else "",
        noise=0 if plan.noise is None else plan.noise.deviation,
    )
    return len(header.render(PLACEHOLDER_DIGEST)) + header.data_bytes


def max_summary_bytes(plan: StudyPlan) -> int:
    """No summary file with this plan is longer: what to read at most before looking at any of it."""
    return LENGTH_PREFIX.size + max_header_bytes(plan) + 8 * (plan.layout.n_columns * (plan.layout.n_columns + 1) // 2)


# What a header must say, and the moments


def _build_header(message: SummaryMessage) -> SummaryHeader:
    summary = message.summary
    if len(summary.clients) != 1:
        raise SummaryError(
            f"this is the sum of clients {', '.join(summary.clients)}; a file holds the summary of one: write each"
        )
    if not SOFTWARE_PATTERN.fullmatch(message.software):
        raise SummaryError(f"software {message.software!r} cannot be named in a file; expected up to 64 plain letters")
    if not 0 <= summary.replicate <= MAX_REPLICATES:
        raise SummaryError(
            f"the summary is bootstrap copy {summary.replicate}; a file holds one from 1 to {MAX_REPLICATES}"
        )
    if not (DIGEST_PATTERN.fullmatch(summary.original) if summary.replicate else summary.original == ""):
        raise SummaryError(
            f"of is {summary.original!r}; expected nothing for the summary itself, and for a bootstrap copy the digest of "
            "the summary it was drawn from: set original=summary.digest"
        )
    missing = {name: int(count) for name, count in summary.missing.items()}
    counts, columns = (summary.rows, int(summary.rows_read), missing), len(summary.moments)
    said, drawn = (bool(message.disclosure_control), message.software), (int(summary.replicate), summary.original)
    return SummaryHeader(summary.plan, summary.clients[0], *counts, columns, *said, *drawn, isqrt(summary.noise))


def _check_with_plan(header: SummaryHeader, plan: StudyPlan) -> None:
    """Also that it has the noise of the plan, all of it and no less: without, it must not be in any file."""
    if header.plan != plan.fingerprint:
        raise PlanMismatchError(
            f"the summary of {header.client[:80]!r} follows plan {header.plan[:12]}, not this plan "
            f"({plan.fingerprint[:12]}); send the site this plan, and have it make the summary again"
        )
    if header.client not in plan.client_set:
        raise UnknownClientError(
            f"there is a summary of {header.client[:80]!r}, but the plan names {abbreviate_list(plan.clients)}; correct the "
            "name at the site, or make a plan with it for all"
        )
    if header.noise != (0 if plan.noise is None else plan.noise.deviation) or (
        plan.noise is not None and plan.noise.distributed
    ):
        raise SummaryError(
            f"the summary of {header.client!r} has not just the noise that a message of its own has in this plan; "
            "no file is to hold it: use noisy(summary, plan) of fedcdh.privacy.differential.mechanism (or masked sums, where the plan "
            "has sites add noise together)"
        )
    if header.columns != plan.layout.n_columns or header.missing.keys() != set(plan.names):
        raise SummaryFormatError(
            f"the summary of {header.client!r} names this plan, but has {header.columns} columns of "
            f"{len(header.missing)} variables where the plan has {plan.layout.n_columns} of {len(plan.names)}, or names other "
            f"variables; {RESEND_ADVICE}"
        )


def _check_rows(header: SummaryHeader, moments: Integers) -> None:
    """Σ 1·1 counts the rows; and each row left out lacks one value or more, no more than one of each variable."""
    rows, read, missing = header.rows, header.rows_read, header.missing.values()
    if not 1 <= rows <= min(read, MAX_ROWS) or int(moments[0, 0]) != rows * GRID**2:
        raise RowCountError(
            f"the summary of {header.client!r} claims {rows} of {read} rows, but expected are 1 to {MAX_ROWS} "
            f"rows, no more than were read, and as many as its moments count; {RESEND_ADVICE}"
        )
    if read > MAX_COUNT or min(missing) < 0 or not max(missing) <= read - rows <= sum(missing):
        raise RowCountError(
            f"the summary of {header.client!r} left out {read - rows} of {read} rows, which does not fit its "
            f"{sum(missing)} missing values, at most {max(missing)} of them in one variable; {RESEND_ADVICE}"
        )


def _unpack_moments(blob: bytes, start: int, header: SummaryHeader) -> Integers:
    """Bytes go to the high end of each entry; shifting them down then carries the sign along."""
    planes = np.frombuffer(blob, dtype=np.uint8, offset=start).reshape(header.width, header.entries)
    moments = np.zeros((header.columns, header.columns), dtype="<i8")
    unused = 8 - header.width
    for row, place in iter_triangle_rows(header.columns):
        moments[row, row:].view(np.uint8).reshape(-1, 8)[:, unused:] = planes[:, place].T
    moments >>= 8 * unused
    for first in range(0, header.columns, _BLOCK_ROWS):
        last = min(first + _BLOCK_ROWS, header.columns)
        corner = moments[first:last, first:last]
        corner += np.triu(corner, 1).T
        moments[last:, first:last] = moments[first:last, last:].T
    whole = moments.astype(np.int64, copy=False)
    whole.setflags(write=False)  # so that a summary need not copy it
    return whole
