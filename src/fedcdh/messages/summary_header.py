"""The header of a summary file: all that is said besides the moments, in the one way it can be written."""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from fedcdh._io.strict_json import canonical, parse
from fedcdh._io.text import LETTERS_AT_MOST, wrong_with
from fedcdh.errors import NotASummary
from fedcdh.summaries.bootstrap import COPIES_AT_MOST
from fedcdh.summaries.encoder import GRID
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.summary import ROWS_AT_MOST

FORMAT = "fedcdh-summary-1"
COUNT_AT_MOST = (1 << 53) - 1
"""Readers in other languages may hold JSON numbers as float64; up to here these are exact."""
HEADER_AT_MOST = 1 << 24
"""Bytes; with a plan at hand, its own, much smaller bound is used."""
SOFTWARE_NAME = re.compile(r"[A-Za-z0-9 .+!_-]{1,64}")
LENGTH = struct.Struct("<Q")
AGAIN = "ask the site to send its summary again, as it was written"
NO_DIGEST = "0" * 64
"""Stands for a digest where only the length of a header is asked for."""
DIGEST = re.compile(r"[0-9a-f]{64}")
_NOTHING = re.compile("")
_FIELDS = (
    "client",
    "columns",
    "copy",
    "digest",
    "format",
    "missing",
    "of",
    "plan",
    "research",
    "rows",
    "rows_read",
    "software",
)


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
    copy: int = 0  # 0: of the rows themselves; else the number of a bootstrap copy
    of: str = ""  # the digest of the summary to which a copy belongs (`Summary.digest`)
    noise: int = 0  # σ of the noise that was added, in steps of the grid of products; said only where there is some

    def __post_init__(self) -> None:
        object.__setattr__(self, "missing", MappingProxyType(dict(self.missing)))

    @property
    def width(self) -> int:
        """Bytes per entry: the fewest that hold ±rows · 2³⁶ as a signed number; with noise, all 8."""
        if self.noise:
            return 8
        return next((width for width in (5, 6, 7) if self.rows * GRID**2 < 1 << (8 * width - 1)), 8)

    @property
    def entries(self) -> int:
        """The upper triangle with its diagonal."""
        return self.columns * (self.columns + 1) // 2

    @property
    def data_bytes(self) -> int:
        return self.width * self.entries

    def digest(self, data: bytes | memoryview) -> str:
        """SHA-256 of what is said and of the data: finds accidents. Who means harm can compute it: that is for keys."""
        said = hashlib.sha256(canonical(self._fields()).encode("utf-8"))
        said.update(b"\0")
        said.update(data)
        return said.hexdigest()

    def _fields(self) -> dict[str, Any]:
        named = {name: getattr(self, name) for name in _FIELDS if name not in ("digest", "format", "missing")}
        return {
            "format": FORMAT,
            "missing": dict(self.missing),
            **named,
            **({"noise": self.noise} if self.noise else {}),
        }

    def rendered(self, digest: str) -> bytes:
        """The file up to its data: length, JSON, and spaces up to a multiple of 8."""
        document = {
            "__metadata__": {"fedcdh": canonical({**self._fields(), "digest": digest})},
            "moments": {"dtype": "U8", "shape": [self.width, self.entries], "data_offsets": [0, self.data_bytes]},
        }
        text = canonical(document).encode("utf-8")
        text += b" " * (-len(text) % 8)
        return LENGTH.pack(len(text)) + text


@lru_cache(maxsize=8)
def header_at_most(plan: StudyPlan) -> int:
    """The length of the JSON part with the longest client and all counts as large as they may be."""
    client = max(plan.clients, key=lambda name: len(canonical(canonical(name)).encode("utf-8")))
    counts = dict.fromkeys(plan.names, COUNT_AT_MOST)
    longest = Header(
        plan=plan.fingerprint,
        client=client,
        rows=ROWS_AT_MOST,
        rows_read=COUNT_AT_MOST,
        missing=counts,
        columns=plan.columns,
        research=False,
        software="x" * 64,
        copy=COPIES_AT_MOST,
        of=NO_DIGEST,
        noise=0 if plan.noise is None else COUNT_AT_MOST,
    )
    return min(len(longest.rendered(NO_DIGEST)) - LENGTH.size, HEADER_AT_MOST)


def opened(blob: bytes, header_at_most: int) -> tuple[Header, int]:
    """The header, and where the data start. Each length is compared before what it measures is looked at."""
    length = LENGTH.unpack_from(blob)[0] if len(blob) >= LENGTH.size else 0
    start = LENGTH.size + length
    if not 0 < length <= header_at_most or start > len(blob):
        raise NotASummary(
            f"this is not a summary file, or not a whole one: of its {len(blob)} bytes, {length} are said to be "
            f"header, expected at most {header_at_most}; {AGAIN}"
        )
    header, digest = _parsed(blob[LENGTH.size : start])
    if len(blob) != (whole := start + header.data_bytes):
        raise NotASummary(f"the summary file has {len(blob)} bytes, its header announces {whole}; {AGAIN}")
    if header.digest(memoryview(blob)[start:]) != digest:
        raise NotASummary(
            f"the summary of {header.client[:80]!r} was damaged on the way: its digest is another; {AGAIN}"
        )
    if blob[:start] != header.rendered(digest):
        raise _no_header("it contradicts itself, or is not written in the one way it can be")
    return header, start


def _parsed(text: bytes) -> tuple[Header, str]:
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
    noisy = type(document) is dict and "noise" in document
    found = _object(document, (*_FIELDS, "noise") if noisy else _FIELDS)
    if type(found["missing"]) is not dict or type(found["research"]) is not bool:
        raise _no_header("'missing' is not an object, or 'research' neither true nor false")
    copy = _whole(found, "copy", COPIES_AT_MOST)
    header = Header(
        plan=_text(found, "plan", DIGEST),
        client=_name(found["client"]),
        rows=_whole(found, "rows", ROWS_AT_MOST),
        rows_read=_whole(found, "rows_read", COUNT_AT_MOST),
        missing={_name(name): _whole(found["missing"], name, COUNT_AT_MOST) for name in found["missing"]},
        columns=_whole(found, "columns", COUNT_AT_MOST),
        research=found["research"],
        software=_text(found, "software", SOFTWARE_NAME),
        copy=copy,
        of=_text(found, "of", DIGEST if copy else _NOTHING),
        noise=_whole(found, "noise", COUNT_AT_MOST) if noisy else 0,
    )
    return header, _text(found, "digest", DIGEST)


def _no_header(reason: str) -> NotASummary:
    return NotASummary(f"the header of the summary file cannot be read: {reason}; {AGAIN}")


def _object(found: Any, keys: tuple[str, ...]) -> dict[str, Any]:
    if type(found) is not dict or found.keys() != set(keys):
        raise _no_header(f"expected an object with {', '.join(keys)} and nothing else")
    return found


def _whole(fields: Mapping[str, Any], name: str, most: int) -> int:
    found = fields[name]
    if type(found) is not int or not 0 <= found <= most:  # not isinstance: True is no number here
        raise _no_header(f"{name[:40]!r} is not a whole number from 0 to {most}")
    return found


def _name(found: Any) -> str:
    if not found or wrong_with(found):
        reason = f"a name should have 1 to {LETTERS_AT_MOST} letters that can be printed, found {str(found)[:40]!r}"
        raise _no_header(reason)
    return str(found)


def _text(fields: Mapping[str, Any], name: str, pattern: re.Pattern[str]) -> str:
    found = fields[name]
    if type(found) is not str or not pattern.fullmatch(found):
        raise _no_header(f"{name!r} is not such a text as belongs there")
    return found
