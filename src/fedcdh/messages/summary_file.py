"""Summary files: the summary of a client as bytes, and back. `docs/file-format.md` describes every byte.

The layout is that of safetensors, so that any library of that name opens the file, but it is written and read here: the
bytes then depend on no other library's version, and every length is compared before anything is parsed. One summary has
exactly one file; if a reader accepted two, it could be shown one while the other was signed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isqrt

import numpy as np

from fedcdh._io.look_alikes import describe_look_alike
from fedcdh._io.text import abbreviate_list
from fedcdh.errors import (
    MomentBoundsError,
    RowCountError,
    SummaryError,
    SummaryFormatError,
    UnknownClientError,
)
from fedcdh.messages._software import SOFTWARE
from fedcdh.messages.summary_header import (
    DIGEST_PATTERN,
    LENGTH_PREFIX,
    MAX_COUNT,
    MAX_HEADER_BYTES,
    PLACEHOLDER_DIGEST,
    RESEND_ADVICE,
    SOFTWARE_PATTERN,
    SummaryHeader,
    can_be_coarsened,
    max_header_bytes,
    parse_header,
)
from fedcdh.summaries.bootstrap import MAX_REPLICATES
from fedcdh.summaries.client_changes import describe_plan_mismatch
from fedcdh.summaries.encoder import GRID
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.row_counts import are_counts_possible
from fedcdh.summaries.summary import MAX_ROWS, Integers, Summary, iter_triangle_rows

_BLOCK_ROWS = 256  # rows that are mirrored at a time: blocks of this size and their transposes share the cache


@dataclass(frozen=True)
class SummaryMessage:
    """A client's summary or a bootstrap replicate of it, and how it was made.

    Attributes
    ----------
    summary : Summary
        Summary of one client.
    disclosure_control : bool, default True
        Whether the site enforced its disclosure control.
    software : str, default this version
        Program that made the file.

    Examples
    --------
    >>> from fedcdh.summaries import Continuous, StudyPlan, summarize
    >>> plan = StudyPlan((Continuous("age", 60, 15),), ("north",))
    >>> SummaryMessage(summarize({"age": [50, 61]}, plan, "north")).disclosure_control
    True
    """

    summary: Summary
    disclosure_control: bool = True
    software: str = SOFTWARE


def pack_summary(message: SummaryMessage, plan: StudyPlan) -> bytes:
    """Write the file of a client's summary. The same message gives the same bytes.

    Parameters
    ----------
    message : SummaryMessage
        Summary of a client.
    plan : StudyPlan
        Its plan.

    Returns
    -------
    bytes
        The file.

    Raises
    ------
    SummaryError
        If `unpack_summary` would refuse the file.

    Examples
    --------
    >>> from fedcdh.summaries import Continuous, StudyPlan, summarize
    >>> plan = StudyPlan((Continuous("age", 60, 15),), ("north",))
    >>> message = SummaryMessage(summarize({"age": [50, 61]}, plan, "north"))
    >>> unpack_summary(pack_summary(message, plan), plan) == message
    True
    """
    header, moments = _build_header(message), message.summary.moments
    _check_with_plan(header, plan)
    _check_rows(header, moments, plan)
    planes = np.empty((header.width, header.entries), dtype=np.uint8)
    for row, place in iter_triangle_rows(header.columns):
        entries = np.ascontiguousarray(moments[row, row:], dtype="<i8")
        planes[:, place] = entries.view(np.uint8).reshape(-1, 8)[:, : header.width].T
    return b"".join((header.render(header.digest(planes.data)), planes.data))


def unpack_summary(blob: bytes, plan: StudyPlan) -> SummaryMessage:
    """Read the file of a client's summary, and check it against the plan.

    Whether any rows can have these moments is for `validate_summary` to say.

    Parameters
    ----------
    blob : bytes
        The file.
    plan : StudyPlan
        Plan of the study.

    Returns
    -------
    SummaryMessage
        The summary, and how it was made.

    Raises
    ------
    SummaryFormatError
        If the bytes are not those of a summary file.
    PlanMismatchError
        If the summary follows another plan.
    UnknownClientError
        If the plan does not name the client.
    RowCountError
        If counts contradict each other.
    MomentBoundsError
        If an entry is too large for its rows.
    SummaryError
        If the summary has not the noise of the plan.

    Examples
    --------
    >>> from fedcdh.summaries import Continuous, StudyPlan
    >>> unpack_summary(b"", StudyPlan((Continuous("age"),), ("north",)))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    fedcdh.errors.SummaryFormatError: ...
    """
    if len(blob) > (most := max_summary_bytes(plan)):
        raise SummaryFormatError(
            f"the file has {len(blob)} bytes; a summary with this plan has at most {most}; if it is a summary, it was "
            f"made with another plan; {RESEND_ADVICE}"
        )
    header, start = parse_header(blob, max_header_bytes(plan))
    _check_with_plan(header, plan)
    moments = _unpack_moments(blob, start, header)
    _check_rows(header, moments, plan)
    most_moment = header.rows * GRID**2
    if not header.noise and (moments.max() > most_moment or moments.min() < -most_moment):
        raise MomentBoundsError(
            f"the summary of {header.client!r} has an entry larger than {header.rows} rows of features in [-1, 1] can "
            f"make it; {RESEND_ADVICE}"
        )
    in_order = {name: header.missing[name] for name in plan.names}  # the file is sorted by name
    rest = header.rows_read, in_order, header.replicate, header.original, header.noise**2, header.coarsened
    summary = Summary(plan.fingerprint, (header.client,), moments, *rest)  # also by an earlier plan of the study
    return SummaryMessage(summary, header.disclosure_control, header.software)


def read_summary_header(blob: bytes) -> SummaryHeader:
    """Read the header of a summary file; without a plan, its truth cannot be checked.

    Parameters
    ----------
    blob : bytes
        The file.

    Returns
    -------
    SummaryHeader
        Description of the file.

    Examples
    --------
    >>> from fedcdh.summaries import Continuous, StudyPlan, summarize
    >>> plan = StudyPlan((Continuous("age", 60, 15),), ("north",))
    >>> read_summary_header(pack_summary(SummaryMessage(summarize({"age": [50]}, plan, "north")), plan)).rows
    1
    """
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
    """Return the exact length of the file that `pack_summary` will write, in bytes.

    Parameters
    ----------
    plan : StudyPlan
        Plan of the study.
    client : str
        Name of the client.
    rows : int
        Number of rows that are used.
    rows_read : int, optional
        Number of rows that are read. Default: `rows`.
    missing : mapping from str to int, optional
        Number of missing values of each variable. Default: none.
    disclosure_control : bool, default True
        Whether the site enforces its disclosure control.
    software : str, default this version
        Program that makes the file.
    replicate : int, default 0
        Number of the bootstrap replicate; 0 for the rows themselves.

    Returns
    -------
    int
        Number of bytes.

    Examples
    --------
    >>> from fedcdh.summaries import Continuous, StudyPlan
    >>> plan = StudyPlan((Continuous("age", 60, 15),), ("north",))
    >>> summary_file_size(plan, "north", 1000) > summary_file_size(plan, "north", 5)
    True
    """
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
    """Return the length that no summary file with this plan exceeds: what to read at most before parsing it."""
    return LENGTH_PREFIX.size + max_header_bytes(plan) + 8 * (plan.layout.n_columns * (plan.layout.n_columns + 1) // 2)


# What a header must say, and the moments


def _build_header(message: SummaryMessage) -> SummaryHeader:
    summary = message.summary
    if len(summary.clients) != 1:
        raise SummaryError(
            f"this is the sum of clients {', '.join(summary.clients)}; a file holds the summary of one client; write "
            "one file for each"
        )
    if not SOFTWARE_PATTERN.fullmatch(message.software):
        raise SummaryError(
            f"the software {message.software!r} cannot be named in a file; expected 1 to 64 plain letters; shorten it"
        )
    if not 0 <= summary.replicate <= MAX_REPLICATES:
        raise SummaryError(
            f"the summary is bootstrap replicate {summary.replicate}; expected a number from 0 to {MAX_REPLICATES}; "
            "make it again"
        )
    if not (DIGEST_PATTERN.fullmatch(summary.original) if summary.replicate else summary.original == ""):
        raise SummaryError(
            f"the original is {summary.original!r}; expected nothing for the summary itself, and for a bootstrap "
            "replicate the digest of the summary it was drawn from; set original=summary.digest"
        )
    missing = {name: int(count) for name, count in summary.missing.items()}
    return SummaryHeader(
        plan=summary.plan,
        client=summary.clients[0],
        rows=summary.rows,
        rows_read=int(summary.rows_read),
        missing=missing,
        columns=len(summary.moments),
        disclosure_control=bool(message.disclosure_control),
        software=message.software,
        replicate=int(summary.replicate),
        original=summary.original,
        noise=isqrt(summary.noise),
        coarsened=summary.coarsened,
    )


def _check_with_plan(header: SummaryHeader, plan: StudyPlan) -> None:
    """Check a header against the plan, and that it has exactly the plan's noise, without which no file may exist."""
    if header.plan not in plan.fingerprints:
        advice = "send the site this plan, and have it make the summary again"
        raise describe_plan_mismatch(f"the summary of {header.client[:80]!r}", header.plan, plan, advice)
    if header.client not in plan.client_set:
        raise UnknownClientError(
            f"there is a summary of {header.client[:80]!r}{describe_look_alike(header.client[:80], plan.clients)}, but "
            f"the plan names {abbreviate_list(plan.clients)}; "
            "correct the name at the site, or make a plan with it for all"
        )
    if header.noise != (0 if plan.noise is None else plan.noise.deviation) or (
        plan.noise is not None and plan.noise.distributed
    ):
        raise SummaryError(
            f"the summary of {header.client!r} has other noise than the plan asks of a single summary; no file may "
            "hold it; make a noisy summary with fedcdh.privacy.add_noise, or use a secure sum where noise is "
            "distributed"
        )
    if strange := [names for names in header.coarsened if not can_be_coarsened(names, plan)]:
        raise SummaryFormatError(
            f"the summary of {header.client!r} says that {' with '.join(strange[0])} was made coarser; expected "
            f"categorical variables of the plan, in its order; {RESEND_ADVICE}"
        )
    if header.columns != plan.layout.n_columns or header.missing.keys() != set(plan.names):
        raise SummaryFormatError(
            f"the summary of {header.client!r} names this plan, but has {header.columns} columns of "
            f"{len(header.missing)} variables where the plan has {plan.layout.n_columns} of {len(plan.names)}, or "
            f"names other variables; {RESEND_ADVICE}"
        )


def _check_rows(header: SummaryHeader, moments: Integers, plan: StudyPlan) -> None:
    """Check that Σ 1·1 counts the rows, and that rows left out and missing values fit together."""
    rows, read, missing = header.rows, header.rows_read, header.missing.values()
    if not 1 <= rows <= min(read, MAX_ROWS) or int(moments[0, 0]) != rows * GRID**2:
        raise RowCountError(
            f"the summary of {header.client!r} claims {rows} of {read} rows; expected 1 to {MAX_ROWS} rows, no more "
            f"than were read, and as many as its moments count; {RESEND_ADVICE}"
        )
    if read > MAX_COUNT or not are_counts_possible(plan, rows, read, missing):
        raise RowCountError(
            f"the summary of {header.client!r} left out {read - rows} of {read} rows, which does not fit its "
            f"{sum(missing)} missing values, at most {max(missing)} of them in one variable; {RESEND_ADVICE}"
        )


def _unpack_moments(blob: bytes, start: int, header: SummaryHeader) -> Integers:
    """Return the matrix: bytes go to the high end of each entry, and shifting them down carries the sign along."""
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
