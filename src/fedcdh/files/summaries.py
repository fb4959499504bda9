"""Summary files: the one message of a client as bytes, and back. `docs/file-format.md` describes every byte.

The layout is that of safetensors, so that any library of that name opens the file, but it is written and read here: the
bytes then depend on nobody's version, and every length is known and compared before anything is parsed. One summary has
exactly one file; a reader that accepted two could be shown one while the other was signed.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from types import MappingProxyType
from typing import Any

import numpy as np

from fedcdh.encoding import GRID
from fedcdh.errors import NotASummary, OutOfBounds, PlanMismatch, RowsInconsistent, SummaryError, UnknownClient
from fedcdh.files.strict_json import canonical, parse
from fedcdh.plan import StudyPlan
from fedcdh.summary import ROWS_AT_MOST, Integers, Summary

FORMAT = "fedcdh-summary-1"
SOFTWARE = f"fedcdh {version('fedcdh')}"
COUNT_AT_MOST = (1 << 53) - 1
"""Readers in other languages may hold JSON numbers as float64; up to here these are exact."""
HEADER_AT_MOST = 1 << 24
"""Bytes; with a plan at hand, its own, much smaller bound is used."""
_LENGTH = struct.Struct("<Q")
_SOFTWARE = re.compile(r"[A-Za-z0-9 .+!_-]{1,64}")
_FINGERPRINT, _ANY = re.compile(r"[0-9a-f]{64}"), re.compile(r".+", re.DOTALL)
_FIELDS = ("client", "columns", "format", "missing", "plan", "research", "rows", "rows_read", "software")
_BLOCK = 256  # rows that are mirrored at a time: blocks of this size and their transposes share the cache
_AGAIN = "ask the site to send its summary again, as it was written"


@dataclass(frozen=True)
class SummaryMessage:
    """A client's summary, and how it came about."""

    summary: Summary
    research: bool = False  # the site's release gate was off: research, no privacy
    software: str = SOFTWARE


@dataclass(frozen=True)
class Header:
    """All that a summary file says besides the moments."""

    plan: str  # fingerprint
    client: str
    rows: int
    rows_read: int
    missing: Mapping[str, int]
    columns: int
    research: bool
    software: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "missing", MappingProxyType(dict(self.missing)))

    @property
    def width(self) -> int:
        """Bytes per entry: the fewest that hold ±rows · 2³⁶ as a signed number."""
        return next((width for width in (5, 6, 7) if self.rows * GRID**2 < 1 << (8 * width - 1)), 8)

    @property
    def entries(self) -> int:
        """The upper triangle with its diagonal."""
        return self.columns * (self.columns + 1) // 2

    @property
    def data_bytes(self) -> int:
        return self.width * self.entries

    def rendered(self) -> bytes:
        """The file up to its data: length, JSON, and spaces up to a multiple of 8."""
        fields = {name: getattr(self, name) for name in _FIELDS if name not in ("format", "missing")}
        document = {
            "__metadata__": {"fedcdh": canonical({"format": FORMAT, "missing": dict(self.missing), **fields})},
            "moments": {"dtype": "U8", "shape": [self.width, self.entries], "data_offsets": [0, self.data_bytes]},
        }
        text = canonical(document).encode("utf-8")
        text += b" " * (-len(text) % 8)
        return _LENGTH.pack(len(text)) + text


def pack(message: SummaryMessage, plan: StudyPlan) -> bytes:
    """The file of a client's summary. Same message, same bytes; what `unpack` would refuse is refused here."""
    header, moments = _header_of(message), message.summary.moments
    _check_with_plan(header, plan)
    _check_rows(header, moments)
    planes = np.empty((header.width, header.entries), dtype=np.uint8)
    for row, place in _rows_of_triangle(header.columns):
        entries = np.ascontiguousarray(moments[row, row:], dtype="<i8")
        planes[:, place] = entries.view(np.uint8).reshape(-1, 8)[:, : header.width].T
    return b"".join((header.rendered(), planes.data))


def unpack(blob: bytes, plan: StudyPlan) -> SummaryMessage:
    """The message in a file, checked for all that bytes and plan can tell; not whether any rows have these moments."""
    if len(blob) > (most := most_bytes(plan)):
        raise NotASummary(
            f"the file has {len(blob)} bytes, a summary with this plan has at most {most}; if it is a summary, it was "
            f"made with another plan: {_AGAIN}"
        )
    header, start = _opened(blob, _header_at_most(plan))
    _check_with_plan(header, plan)
    moments = _matrix(blob, start, header)
    _check_rows(header, moments)
    most_moment = header.rows * GRID**2
    if moments.max() > most_moment or moments.min() < -most_moment:
        raise OutOfBounds(
            f"the summary of {header.client!r} has an entry larger than {header.rows} rows of features in [-1, 1] can "
            f"make it; {_AGAIN}"
        )
    in_order = {name: header.missing[name] for name in plan.names}  # the file sorts by name
    summary = Summary(header.plan, (header.client,), moments, header.rows_read, in_order)
    return SummaryMessage(summary, header.research, header.software)


def peek(blob: bytes) -> Header:
    """What the header of a summary file says. Without a plan nothing tells whether it is true."""
    return _opened(blob, HEADER_AT_MOST)[0]


def size(
    plan: StudyPlan,
    client: str,
    rows: int,
    *,
    rows_read: int | None = None,
    missing: Mapping[str, int] | None = None,
    research: bool = False,
    software: str = SOFTWARE,
) -> int:
    """The exact length of the file that `pack` will give, in bytes; nothing is missing unless said so."""
    counts = dict.fromkeys(plan.names, 0) if missing is None else missing
    read = rows if rows_read is None else rows_read
    header = Header(plan.fingerprint, client, rows, read, counts, plan.columns, research, software)
    return len(header.rendered()) + header.data_bytes


def most_bytes(plan: StudyPlan) -> int:
    """No summary file with this plan is longer: what to read at most before looking at any of it."""
    return _LENGTH.size + _header_at_most(plan) + 8 * (plan.columns * (plan.columns + 1) // 2)


def _header_at_most(plan: StudyPlan) -> int:
    """The length of the JSON part with the longest client and all counts as large as they may be."""
    client = max(plan.clients, key=lambda name: len(canonical(canonical(name)).encode("utf-8")))
    counts = dict.fromkeys(plan.names, COUNT_AT_MOST)
    longest = Header(plan.fingerprint, client, ROWS_AT_MOST, COUNT_AT_MOST, counts, plan.columns, False, "x" * 64)
    return min(len(longest.rendered()) - _LENGTH.size, HEADER_AT_MOST)


# From bytes to a header


def _opened(blob: bytes, header_at_most: int) -> tuple[Header, int]:
    """The header, and where the data start. Each length is compared before what it measures is looked at."""
    length = _LENGTH.unpack_from(blob)[0] if len(blob) >= _LENGTH.size else 0
    start = _LENGTH.size + length
    if not 0 < length <= header_at_most or start > len(blob):
        raise NotASummary(
            f"this is not a summary file, or not a whole one: of its {len(blob)} bytes, {length} are said to be "
            f"header, expected at most {header_at_most}; {_AGAIN}"
        )
    header = _parsed(blob[_LENGTH.size : start])
    if len(blob) != (whole := start + header.data_bytes):
        raise NotASummary(f"the summary file has {len(blob)} bytes, its header announces {whole}; {_AGAIN}")
    if blob[:start] != header.rendered():
        raise _no_header("it contradicts itself, or is not written in the one way it can be")
    return header, start


def _parsed(text: bytes) -> Header:
    outer = _object(parse(text, refuse=_no_header), ("__metadata__", "moments"))
    inner = _object(outer["__metadata__"], ("fedcdh",))["fedcdh"]
    if type(inner) is not str:
        raise _no_header("its metadata are not a text")
    document = parse(inner, refuse=_no_header)
    if type(document) is dict and document.get("format") != FORMAT:
        raise NotASummary(
            f"the summary was written in the format {str(document.get('format'))[:40]!r}, expected {FORMAT!r}; use the "
            "same version of fedcdh at all sites"
        )
    found = _object(document, _FIELDS)
    if type(found["missing"]) is not dict or type(found["research"]) is not bool:
        raise _no_header("'missing' is not an object, or 'research' neither true nor false")
    return Header(
        plan=_text(found, "plan", _FINGERPRINT),
        client=_text(found, "client", _ANY),
        rows=_whole(found, "rows", ROWS_AT_MOST),
        rows_read=_whole(found, "rows_read", COUNT_AT_MOST),
        missing={name: _whole(found["missing"], name, COUNT_AT_MOST) for name in found["missing"]},
        columns=_whole(found, "columns", COUNT_AT_MOST),
        research=found["research"],
        software=_text(found, "software", _SOFTWARE),
    )


def _no_header(reason: str) -> NotASummary:
    return NotASummary(f"the header of the summary file cannot be read: {reason}; {_AGAIN}")


def _object(found: Any, keys: tuple[str, ...]) -> dict[str, Any]:
    if type(found) is not dict or found.keys() != set(keys):
        raise _no_header(f"expected an object with {', '.join(keys)} and nothing else")
    return found


def _whole(fields: Mapping[str, Any], name: str, most: int) -> int:
    found = fields[name]
    if type(found) is not int or not 0 <= found <= most:  # not isinstance: True is no number here
        raise _no_header(f"{name[:40]!r} is not a whole number from 0 to {most}")
    return found


def _text(fields: Mapping[str, Any], name: str, pattern: re.Pattern[str]) -> str:
    found = fields[name]
    if type(found) is not str or not pattern.fullmatch(found):
        raise _no_header(f"{name!r} is not such a text as belongs there")
    return found


# What a header must say, and the moments


def _header_of(message: SummaryMessage) -> Header:
    summary = message.summary
    if len(summary.clients) != 1:
        raise SummaryError(
            f"this is the sum of clients {', '.join(summary.clients)}; a file holds the summary of one: write each"
        )
    if not _SOFTWARE.fullmatch(message.software):
        raise SummaryError(f"software {message.software!r} cannot be named in a file; expected up to 64 plain letters")
    missing = {name: int(count) for name, count in summary.missing.items()}
    counts, columns = (summary.rows, int(summary.rows_read), missing), len(summary.moments)
    return Header(summary.plan, summary.clients[0], *counts, columns, bool(message.research), message.software)


def _check_with_plan(header: Header, plan: StudyPlan) -> None:
    if header.plan != plan.fingerprint:
        raise PlanMismatch(
            f"the summary of {header.client[:80]!r} follows plan {header.plan[:12]}, not this plan "
            f"({plan.fingerprint[:12]}); send the site this plan, and have it make the summary again"
        )
    if header.client not in plan.clients:
        raise UnknownClient(
            f"there is a summary of {header.client[:80]!r}, but the plan names {', '.join(plan.clients)}; correct the "
            "name at the site, or make a plan with it for all"
        )
    if header.columns != plan.columns or header.missing.keys() != set(plan.names):
        raise NotASummary(
            f"the summary of {header.client!r} names this plan, but has {header.columns} columns of "
            f"{len(header.missing)} variables where the plan has {plan.columns} of {len(plan.names)}, or names other "
            f"variables; {_AGAIN}"
        )


def _check_rows(header: Header, moments: Integers) -> None:
    """Σ 1·1 counts the rows; and each row left out lacks one value or more, no more than one of each variable."""
    rows, read, missing = header.rows, header.rows_read, header.missing.values()
    if not 1 <= rows <= min(read, ROWS_AT_MOST) or int(moments[0, 0]) != rows * GRID**2:
        raise RowsInconsistent(
            f"the summary of {header.client!r} claims {rows} of {read} rows, but expected are 1 to {ROWS_AT_MOST} "
            f"rows, no more than were read, and as many as its moments count; {_AGAIN}"
        )
    if read > COUNT_AT_MOST or min(missing) < 0 or not max(missing) <= read - rows <= sum(missing):
        raise RowsInconsistent(
            f"the summary of {header.client!r} left out {read - rows} of {read} rows, which does not fit its "
            f"{sum(missing)} missing values, at most {max(missing)} of them in one variable; {_AGAIN}"
        )


def _rows_of_triangle(columns: int) -> Iterator[tuple[int, slice]]:
    """Each row of the matrix, and where its entries from the diagonal on stand in the file."""
    start = 0
    for row in range(columns):
        yield row, slice(start, start := start + columns - row)


def _matrix(blob: bytes, start: int, header: Header) -> Integers:
    """Bytes go to the high end of each entry; shifting them down then carries the sign along."""
    planes = np.frombuffer(blob, dtype=np.uint8, offset=start).reshape(header.width, header.entries)
    moments = np.zeros((header.columns, header.columns), dtype="<i8")
    unused = 8 - header.width
    for row, place in _rows_of_triangle(header.columns):
        moments[row, row:].view(np.uint8).reshape(-1, 8)[:, unused:] = planes[:, place].T
    moments >>= 8 * unused
    for first in range(0, header.columns, _BLOCK):
        last = min(first + _BLOCK, header.columns)
        corner = moments[first:last, first:last]
        corner += np.triu(corner, 1).T
        moments[last:, first:last] = moments[first:last, last:].T
    return moments.astype(np.int64, copy=False)
