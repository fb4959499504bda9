"""The header of a summary file: everything besides the moments, in the one way it can be written."""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from types import MappingProxyType
from typing import Any

from fedcdh._io.format_version import find_format_mismatch
from fedcdh._io.strict_json import parse_json, to_canonical_json
from fedcdh._io.text import MAX_NAME_LENGTH, describe_text_problem
from fedcdh.errors import SummaryFormatError
from fedcdh.summaries.bootstrap import MAX_REPLICATES
from fedcdh.summaries.encoder import GRID
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.summary import MAX_ROWS

FORMAT = "fedcdh-summary-3"
"""Version 3 may name variables of which rare levels were merged or small counts rounded."""
MAX_COUNT = (1 << 53) - 1
"""Readers in other languages may hold JSON numbers as float64; up to here these are exact."""
MAX_HEADER_BYTES = 1 << 24
"""Bytes of a header without a plan; with a plan, its own, much smaller bound is used."""
SOFTWARE_PATTERN = re.compile(r"[A-Za-z0-9 .+!_-]{1,64}")
LENGTH_PREFIX = struct.Struct("<Q")
RESEND_ADVICE = "ask the site to send its summary again, as it was written"
PLACEHOLDER_DIGEST = "0" * 64
"""Replaces a digest where only the length of a header is computed."""
DIGEST_PATTERN = re.compile(r"[0-9a-f]{64}")
_EMPTY_PATTERN = re.compile("")
_KEYS = (
    "client",
    "columns",
    "replicate",
    "digest",
    "format",
    "missing",
    "original",
    "plan",
    "disclosure_control",
    "rows",
    "rows_read",
    "software",
)


@dataclass(frozen=True)
class SummaryHeader:
    """Everything that a summary file says besides the moments.

    Attributes
    ----------
    plan : str
        Fingerprint of the plan.
    client : str
        Name of the client.
    rows : int
        Number of rows that were used.
    rows_read : int
        Number of rows that were read.
    missing : mapping from str to int
        Number of missing values of each variable.
    columns : int
        Number of columns of the moments.
    disclosure_control : bool
        Whether the site enforced its disclosure control.
    software : str
        Program that made the file.
    replicate : int, default 0
        0 for the rows themselves; else the number of a bootstrap replicate.
    original : str, default ""
        Digest of the summary to which a replicate belongs (`Summary.digest`).
    noise : int, default 0
        Standard deviation σ of the noise, in steps of the grid of products; named in the file only if there is some.
    coarsened : mapping from tuple of str to int, default {}
        What the site made coarser (`Summary.coarsened`); named in the file only if there is something.

    Examples
    --------
    >>> SummaryHeader("0" * 64, "north", 5, 6, {"age": 1}, 7, True, "fedcdh").entries
    28
    """

    plan: str
    client: str
    rows: int
    rows_read: int
    missing: Mapping[str, int]
    columns: int
    disclosure_control: bool
    software: str
    replicate: int = 0
    original: str = ""
    noise: int = 0
    coarsened: Mapping[tuple[str, ...], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "missing", MappingProxyType(dict(self.missing)))
        object.__setattr__(self, "coarsened", MappingProxyType(dict(sorted(self.coarsened.items()))))

    @property
    def width(self) -> int:
        """Return the bytes per entry: the fewest that hold ±rows · 2³⁶ as a signed number; with noise, all 8."""
        if self.noise:
            return 8
        return next((width for width in (5, 6, 7) if self.rows * GRID**2 < 1 << (8 * width - 1)), 8)

    @property
    def entries(self) -> int:
        """Return the number of entries of the upper triangle with its diagonal."""
        return self.columns * (self.columns + 1) // 2

    @property
    def data_bytes(self) -> int:
        """Return the number of bytes of all entries."""
        return self.width * self.entries

    def digest(self, data: bytes | memoryview) -> str:
        """Return the SHA-256 of the header and the data.

        It finds accidents; anybody can compute it, so that signatures are needed against forgery.

        Parameters
        ----------
        data : bytes or memoryview
            Entries of the file.

        Returns
        -------
        str
            64 hexadecimal digits.
        """
        hasher = hashlib.sha256(to_canonical_json(self._fields()).encode("utf-8"))
        hasher.update(b"\0")
        hasher.update(data)
        return hasher.hexdigest()

    def _fields(self) -> dict[str, Any]:
        named = {name: getattr(self, name) for name in _KEYS if name not in ("digest", "format", "missing")}
        return {
            "format": FORMAT,
            "missing": dict(self.missing),
            **named,
            **({"noise": self.noise} if self.noise else {}),
            **({"coarsened": [[[*names], cells] for names, cells in self.coarsened.items()]} if self.coarsened else {}),
        }

    def render(self, digest: str) -> bytes:
        """Return the file up to its data: length, JSON, and spaces up to a multiple of 8.

        Parameters
        ----------
        digest : str
            Digest of the file.

        Returns
        -------
        bytes
            Beginning of the file.
        """
        document = {
            "__metadata__": {"fedcdh": to_canonical_json({**self._fields(), "digest": digest})},
            "moments": {"dtype": "U8", "shape": [self.width, self.entries], "data_offsets": [0, self.data_bytes]},
        }
        text = to_canonical_json(document).encode("utf-8")
        text += b" " * (-len(text) % 8)
        return LENGTH_PREFIX.pack(len(text)) + text


def can_be_coarsened(names: tuple[str, ...], plan: StudyPlan) -> bool:
    """Return whether these are one or two categorical variables of the plan, in its order."""
    place = {name: i for i, (name, kind) in enumerate(plan.kinds.items()) if kind == "categorical"}
    found = [place.get(name, -1) for name in names]
    return min(found) >= 0 and all(one < other for one, other in pairwise(found))


def _max_mark_bytes(plan: StudyPlan) -> int:
    """Return a bound on the bytes of all marks: each categorical variable, and each pair of them, with a number."""
    labels = [name for name, kind in plan.kinds.items() if kind == "categorical"]
    names, marks = len(labels), len(labels) * (len(labels) + 1) // 2
    letters = sum(len(to_canonical_json(to_canonical_json(name)).encode("utf-8")) for name in labels)
    return letters * names + (len(str(MAX_COUNT)) + 16) * marks + 32


@lru_cache(maxsize=8)
def max_header_bytes(plan: StudyPlan) -> int:
    """Return the length of the JSON part with the longest client and the largest counts."""
    client = max(plan.clients, key=lambda name: len(to_canonical_json(to_canonical_json(name)).encode("utf-8")))
    counts = dict.fromkeys(plan.names, MAX_COUNT)
    longest = SummaryHeader(
        plan=plan.fingerprint,
        client=client,
        rows=MAX_ROWS,
        rows_read=MAX_COUNT,
        missing=counts,
        columns=plan.layout.n_columns,
        disclosure_control=False,
        software="x" * 64,
        replicate=MAX_REPLICATES,
        original=PLACEHOLDER_DIGEST,
        noise=0 if plan.noise is None else MAX_COUNT,
    )
    whole = len(longest.render(PLACEHOLDER_DIGEST)) - LENGTH_PREFIX.size + _max_mark_bytes(plan)
    return min(whole, MAX_HEADER_BYTES)


def parse_header(blob: bytes, max_bytes: int) -> tuple[SummaryHeader, int]:
    """Return the header, and where the data start; each length is compared before anything of that length is read."""
    length = LENGTH_PREFIX.unpack_from(blob)[0] if len(blob) >= LENGTH_PREFIX.size else 0
    start = LENGTH_PREFIX.size + length
    if not 0 < length <= max_bytes or start > len(blob):
        raise SummaryFormatError(
            f"this is not a summary file, or not a whole one: of its {len(blob)} bytes, {length} belong to the "
            f"header, expected at most {max_bytes}; {RESEND_ADVICE}"
        )
    header, digest = _header_from_json(blob[LENGTH_PREFIX.size : start])
    if len(blob) != (whole := start + header.data_bytes):
        raise SummaryFormatError(
            f"the summary file has {len(blob)} bytes, its header announces {whole}; {RESEND_ADVICE}"
        )
    if header.digest(memoryview(blob)[start:]) != digest:
        raise SummaryFormatError(
            f"the summary of {header.client[:80]!r} was damaged on the way: its digest is another; {RESEND_ADVICE}"
        )
    if blob[:start] != header.render(digest):
        raise _header_error("it contradicts itself, or is not written in the one way it can be")
    return header, start


def _header_from_json(text: bytes) -> tuple[SummaryHeader, str]:
    outer = _require_object(parse_json(text, refuse=_header_error), ("__metadata__", "moments"))
    inner = _require_object(outer["__metadata__"], ("fedcdh",))["fedcdh"]
    if type(inner) is not str:
        raise _header_error("its metadata is not a text")
    document = parse_json(inner, refuse=_header_error)
    if mismatch := find_format_mismatch(document.get("format") if type(document) is dict else None, FORMAT):
        raise _header_error(*mismatch)
    further = [name for name in ("noise", "coarsened") if type(document) is dict and name in document]
    found = _require_object(document, (*_KEYS, *further))
    if type(found["missing"]) is not dict or type(found["disclosure_control"]) is not bool:
        raise _header_error("'missing' is not an object, or 'disclosure_control' neither true nor false")
    number = _require_whole(found, "replicate", MAX_REPLICATES)
    header = SummaryHeader(
        plan=_require_text(found, "plan", DIGEST_PATTERN),
        client=_require_name(found["client"]),
        rows=_require_whole(found, "rows", MAX_ROWS),
        rows_read=_require_whole(found, "rows_read", MAX_COUNT),
        missing={_require_name(name): _require_whole(found["missing"], name, MAX_COUNT) for name in found["missing"]},
        columns=_require_whole(found, "columns", MAX_COUNT),
        disclosure_control=found["disclosure_control"],
        software=_require_text(found, "software", SOFTWARE_PATTERN),
        replicate=number,
        original=_require_text(found, "original", DIGEST_PATTERN if number else _EMPTY_PATTERN),
        noise=_require_whole(found, "noise", MAX_COUNT) if "noise" in further else 0,
        coarsened=_require_marks(found["coarsened"]) if "coarsened" in further else {},
    )
    return header, _require_text(found, "digest", DIGEST_PATTERN)


def _header_error(reason: str, advice: str = RESEND_ADVICE) -> SummaryFormatError:
    return SummaryFormatError(f"the header of the summary file cannot be read: {reason}; {advice}")


def _require_object(found: Any, keys: tuple[str, ...]) -> dict[str, Any]:
    if type(found) is not dict or found.keys() != set(keys):
        raise _header_error(f"expected an object with {', '.join(keys)} and nothing else")
    return found


def _require_whole(fields: Mapping[str, Any], name: str, most: int) -> int:
    found = fields[name]
    if type(found) is not int or not 0 <= found <= most:  # not isinstance: True is no number here
        raise _header_error(f"{name[:40]!r} is not a whole number from 0 to {most}")
    return found


def _require_marks(found: Any) -> dict[tuple[str, ...], int]:
    """Return the marks of what is coarser: variables or pairs of these, each with a number of levels or counts."""
    marks: list[Any] = found if type(found) is list else []
    if not marks or not all(type(one) is list and len(one) == 2 and type(one[0]) is list for one in marks):
        raise _header_error("'coarsened' is not a list of variables or pairs of them, each with a number")
    if not all(1 <= len(names) <= 2 for names, _ in marks):
        raise _header_error("'coarsened' has an entry about none, or about more than two variables")
    return {
        tuple(map(_require_name, names)): _require_whole({"coarsened": cells}, "coarsened", MAX_COUNT)
        for names, cells in marks
    }


def _require_name(found: Any) -> str:
    if not found or describe_text_problem(found):
        reason = f"a name should have 1 to {MAX_NAME_LENGTH} letters that can be printed, found {str(found)[:40]!r}"
        raise _header_error(reason)
    return str(found)


def _require_text(fields: Mapping[str, Any], name: str, pattern: re.Pattern[str]) -> str:
    found = fields[name]
    if type(found) is not str or not pattern.fullmatch(found):
        raise _header_error(f"{name!r} is not a text of the expected form")
    return found
