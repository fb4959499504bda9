"""docs/file-format.md says what the code does: its examples are the code's, and a reader made from its words agrees.

    python tests/messages/test_file_format.py

writes the examples anew when the formats change.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import re
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from hypothesis import given, settings
from hypothesis import strategies as st

from fedcdh.messages.signing import SigningKey, key_fingerprint, sign
from fedcdh.messages.summary_file import SummaryMessage, pack_summary
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.features import Hermite
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.summary import GRID, MAX_ROWS, Summary
from fedcdh.summaries.variables import Categorical, Continuous

PAGE = Path(__file__).parents[2] / "docs" / "file-format.md"
PLAN = StudyPlan(
    (Continuous("height", 170, 10), Categorical("smoker", ("no", "yes"))), ("north", "south"), Hermite(width=2)
)
TABLE = "height,smoker\n170,no\n155,yes\n,no\n191,no"
KEY = SigningKey(Ed25519PrivateKey.from_private_bytes(bytes(range(32))))


def example() -> tuple[bytes, Summary]:
    cells = list(csv.DictReader(io.StringIO(TABLE)))
    table = {
        "height": [float(row["height"]) if row["height"] else None for row in cells],
        "smoker": [row["smoker"] for row in cells],
    }
    summary = summarize(table, PLAN, "north")
    return pack_summary(SummaryMessage(summary, software="fedcdh 0.1.0"), PLAN), summary


def hexdump(blob: bytes) -> str:
    def line(start: int) -> str:
        part = blob[start : start + 16]
        shown = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in part)
        return f"{start:04x}  {part.hex(' '):<47}  {shown}".rstrip()

    return "\n".join(line(start) for start in range(0, len(blob), 16))


def blocks() -> dict[str, str]:
    """What stands in the fenced blocks of the page, by the name of the fence without "example-"."""
    blob, summary = example()
    width = max(len(str(entry)) for entry in summary.moments.flat)
    return {
        "plan": PLAN.to_json(),
        "table": TABLE,
        "hexdump": hexdump(blob),
        "matrix": "\n".join(" ".join(f"{entry:>{width}}" for entry in row) for row in summary.moments.tolist()),
        "signature": sign(KEY, "summary", blob),
        "fingerprint": PLAN.fingerprint,
    }


def on_page(page: str) -> dict[str, str]:
    return dict(re.findall(r"^```example-(\w+)\n(.*?)\n```$", page, re.DOTALL | re.MULTILINE))


def test_the_page_shows_what_the_code_writes():
    page, (blob, _) = PAGE.read_text(encoding="utf-8"), example()
    assert on_page(page) == blocks(), "run python tests/messages/test_file_format.py, and read what it changed"
    assert f"all {len(blob)} bytes of it" in page
    assert f"`{key_fingerprint(KEY.public)}`" in page


# A second reader, from the words of the page: no numpy, nothing of fedcdh


def read_summary(blob: bytes) -> tuple[dict, list[list[int]]]:
    (length,) = struct.unpack("<Q", blob[:8])
    header = json.loads(blob[8 : 8 + length].decode("utf-8"))
    metadata = json.loads(header["__metadata__"]["fedcdh"])
    p, rows = metadata["columns"], metadata["rows"]
    count = p * (p + 1) // 2
    w = 5 if rows <= 7 else 6 if rows <= 2047 else 7 if rows <= 524287 else 8
    assert header["moments"] == {"data_offsets": [0, w * count], "dtype": "U8", "shape": [w, count]}
    assert len(blob) == 8 + length + w * count
    assert metadata["format"] == "fedcdh-summary-3"
    rest = {key: found for key, found in metadata.items() if key != "digest"}
    said = write_value(rest).encode() + b"\0" + blob[8 + length :]
    assert metadata["digest"] == hashlib.sha256(said).hexdigest()
    matrix = [[0] * p for _ in range(p)]
    places = [(i, j) for i in range(p) for j in range(i, p)]
    for e, (i, j) in enumerate(places):
        digits = bytes(blob[8 + length + plane * count + e] for plane in range(w))
        matrix[i][j] = matrix[j][i] = int.from_bytes(digits, "little", signed=True)
    assert matrix[0][0] == 2**36 * rows
    return metadata, matrix


def summary_digest(plan: str, rows_read: int, missing: dict[str, int], matrix: list[list[int]]) -> str:
    """What a bootstrap replicate says in `of`, from the summary it belongs to."""
    numbers = [rows_read, *(missing[name] for name in sorted(missing)), *(entry for row in matrix for entry in row)]
    return hashlib.sha256(plan.encode() + b"".join(struct.pack("<q", number) for number in numbers)).hexdigest()


def write_string(text: str) -> str:
    named = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}
    return '"' + "".join(named.get(c, f"\\u{ord(c):04x}" if c < " " else c) for c in text) + '"'


def write_value(found) -> str:
    if isinstance(found, dict):
        return "{" + ",".join(f"{write_string(key)}:{write_value(found[key])}" for key in sorted(found)) + "}"
    return write_string(found) if isinstance(found, str) else str(found).lower()


def write_header(metadata: dict, w: int, count: int) -> bytes:
    """The one spelling of a header, by the rules of the page."""
    tensor = f'{{"data_offsets":[0,{w * count}],"dtype":"U8","shape":[{w},{count}]}}'
    text = f'{{"__metadata__":{{"fedcdh":{write_string(write_value(metadata))}}},"moments":{tensor}}}'.encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text


names = st.text(st.characters(exclude_categories=["C", "Zl", "Zp"]), min_size=1, max_size=8)


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_a_reader_made_from_the_page_agrees(data):
    levels = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    called = data.draw(st.lists(names, min_size=len(levels), max_size=len(levels), unique=True))
    client, software = data.draw(names), data.draw(st.from_regex(r"[A-Za-z0-9 .+!_-]{1,64}", fullmatch=True))
    variables = [Categorical(f"v{name}", tuple("abcd"[:k])) for name, k in zip(called, levels, strict=True)]
    plan = StudyPlan(tuple(variables), (client, client + "2"))
    rows = data.draw(st.one_of(st.integers(1, MAX_ROWS), st.sampled_from([7, 8, 2047, 2048, 524287, 524288])))
    lost = data.draw(st.integers(0, 2**40))
    missing = {name: data.draw(st.integers(0, lost)) for name in plan.names} | {plan.names[0]: lost}
    moments = np.random.default_rng(rows).integers(-rows * GRID**2, rows * GRID**2 + 1, (plan.layout.n_columns,) * 2)
    moments = np.triu(moments) + np.triu(moments, 1).T
    moments[0, 0] = rows * GRID**2
    disclosure_control, copy = data.draw(st.booleans()), data.draw(st.integers(0, 1000))
    of = hashlib.sha256(data.draw(st.binary(max_size=4))).hexdigest() if copy else ""
    summary = Summary(plan.fingerprint, (client,), moments, rows + lost, missing, copy, of)
    assert summary.digest == summary_digest(summary.plan, rows + lost, missing, moments.tolist())
    blob = pack_summary(SummaryMessage(summary, disclosure_control, software), plan)
    metadata, matrix = read_summary(blob)
    assert matrix == moments.tolist()
    assert metadata == {
        "client": client,
        "columns": plan.layout.n_columns,
        "replicate": copy,
        "digest": metadata["digest"],  # compared by the reader
        "format": "fedcdh-summary-3",
        "missing": missing,
        "original": of,
        "plan": hashlib.sha256(plan.to_json().encode()).hexdigest(),
        "disclosure_control": disclosure_control,
        "rows": rows,
        "rows_read": rows + lost,
        "software": software,
    }
    w, count = json.loads(blob[8 : 8 + struct.unpack("<Q", blob[:8])[0]])["moments"]["shape"]
    assert blob.startswith(write_header(metadata, w, count))


def test_the_bytes_on_the_page_hold_the_matrix_on_the_page():
    shown = on_page(PAGE.read_text(encoding="utf-8"))
    blob = bytes.fromhex("".join(line[6:53] for line in shown["hexdump"].splitlines()))
    metadata, matrix = read_summary(blob)
    assert matrix == [[int(entry) for entry in line.split()] for line in shown["matrix"].splitlines()]
    assert metadata["plan"] == hashlib.sha256(shown["plan"].encode()).hexdigest() == shown["fingerprint"]
    assert (metadata["client"], metadata["rows"], metadata["rows_read"]) == ("north", 3, 4)
    assert metadata["missing"] == {"height": 1, "smoker": 0}
    assert metadata["original"] == ""
    assert f"`{summary_digest(metadata['plan'], 4, metadata['missing'], matrix)}`" in PAGE.read_text(encoding="utf-8")
    signature = json.loads(shown["signature"])
    raw = base64.b64decode(signature["key"].removeprefix("ed25519:"))
    signed = b"fedcdh-signature-2\0summary\0" + hashlib.sha256(blob).digest()
    Ed25519PublicKey.from_public_bytes(raw).verify(base64.b64decode(signature["signature"]), signed)


def test_a_library_for_safetensors_opens_the_file():
    library = pytest.importorskip("safetensors")
    from safetensors.numpy import load

    blob, summary = example()
    planes = load(blob)["moments"]
    assert planes.dtype == np.uint8
    assert planes.shape == (5, 28)
    entries = [int.from_bytes(bytes(planes[:, e]), "little", signed=True) for e in range(28)]
    assert entries == summary.moments[np.triu_indices(7)].tolist()
    ((_, info),) = library.deserialize(blob)
    assert (info["dtype"], info["shape"]) == ("U8", [5, 28])


def test_the_library_finds_the_metadata(tmp_path):
    safetensors = pytest.importorskip("safetensors")
    blob, summary = example()
    (tmp_path / "north.summary").write_bytes(blob)
    with safetensors.safe_open(tmp_path / "north.summary", framework="numpy") as file:
        found = json.loads(file.metadata()["fedcdh"])
        assert list(file.keys()) == ["moments"]
    assert (found["rows"], found["plan"]) == (summary.rows, PLAN.fingerprint)


def test_the_example_would_notice_a_change():
    blob, summary = example()
    assert pack_summary(SummaryMessage(replace(summary, rows_read=4), False, "fedcdh 0.1.0"), PLAN) != blob


def rewrite() -> None:
    page, (blob, summary) = PAGE.read_text(encoding="utf-8"), example()
    for name, text in blocks().items():
        page = re.sub(
            rf"^(```example-{name}\n).*?(\n```)$", lambda m, t=text: m[1] + t + m[2], page, flags=re.DOTALL | re.M
        )
    page = re.sub(r"(?<=all )\S+(?= bytes of it)", str(len(blob)), page)
    page = re.sub(r"(?<=say in `original` that they belong to\n`)[^`]+(?=`)", summary.digest, page)
    page = re.sub(r"(?<=whose fingerprint is\n`)[^`]+(?=`)", key_fingerprint(KEY.public), page)
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    rewrite()
