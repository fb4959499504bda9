"""Summary files: one summary, one file; what is damaged is refused with the error that says how."""

from __future__ import annotations

import json
import struct
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from redigested import redigested

from fedcdh._io.strict_json import parse_json, to_canonical_json
from fedcdh.errors import (
    MomentBoundsError,
    PlanMismatchError,
    RowCountError,
    SummaryError,
    SummaryFormatError,
    UnknownClientError,
)
from fedcdh.messages.summary_file import (
    SummaryMessage,
    max_summary_bytes,
    pack_summary,
    read_summary_header,
    summary_file_size,
    unpack_summary,
)
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.features import Fourier, Hermite
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.summary import GRID, MAX_ROWS, Summary
from fedcdh.summaries.variables import Categorical, Continuous

WIDTHS = {1: 5, 7: 5, 8: 6, 2047: 6, 2048: 7, 2**19 - 1: 7, 2**19: 8, MAX_ROWS: 8}
"""Bytes per entry at the ends of the ranges of rows."""

cell = st.one_of(st.none(), st.floats(-1e6, 1e6))
tables = st.lists(st.tuples(cell, st.sampled_from("abc"), cell), max_size=12).map(lambda r: [(1.0, "a", 2.0), *r])


def plan_for(family=Hermite(), clients=("north", "süd ↓")) -> StudyPlan:  # noqa: B008 (a value)
    x, g, y = Continuous("x", 3.0, 7.0, 2.5, 4.0), Categorical("g", ("a", "b", "c")), Continuous('"y"\u00a0\\')
    return StudyPlan((x, g, y), clients, family)


def of_rows(plan: StudyPlan, rows: int, seed: int = 0, lost: int = 0) -> Summary:
    """Any moments that fit into so many rows, the largest and smallest among them."""
    most = rows * GRID**2
    moments = np.random.default_rng(seed).integers(-most, most + 1, (plan.layout.n_columns,) * 2)
    moments[1, 1:4] = -most, most, -1
    moments = np.triu(moments) + np.triu(moments, 1).T
    moments[0, 0] = most
    missing = dict.fromkeys(plan.names, 0) | {plan.names[-1]: lost}
    return Summary(plan.fingerprint, plan.clients[:1], moments, rows + lost, missing)


PLAN = plan_for()
SUMMARY = of_rows(PLAN, 10, lost=2)
BLOB = pack_summary(SummaryMessage(SUMMARY, software="fedcdh 0.1.0"), PLAN)


@settings(deadline=None, max_examples=60)
@given(tables, st.booleans(), st.sampled_from([Hermite(), Fourier(6, 0.7, 3)]), st.sampled_from(PLAN.clients))
def test_what_is_packed_is_unpacked(rows, disclosure_control, family, client):
    plan = plan_for(family)
    table = {name: [cells[j] for cells in rows] for j, name in enumerate(plan.names)}
    message = SummaryMessage(summarize(table, plan, client, max_missing_share=1.0), disclosure_control)
    blob = pack_summary(message, plan)
    found = unpack_summary(blob, plan)
    assert found == message
    assert pack_summary(found, plan) == blob
    assert list(found.summary.missing) == list(plan.names)


@pytest.mark.parametrize("rows", WIDTHS)
def test_entries_take_as_few_bytes_as_hold_them(rows):
    message = SummaryMessage(of_rows(PLAN, rows))
    blob = pack_summary(message, PLAN)
    assert unpack_summary(blob, PLAN) == message
    assert read_summary_header(blob).width == WIDTHS[rows]
    largest = rows * GRID**2
    assert -(2 ** (8 * WIDTHS[rows] - 1)) <= -largest <= largest < 2 ** (8 * WIDTHS[rows] - 1)
    assert WIDTHS[rows] == 5 or largest >= 2 ** (8 * WIDTHS[rows] - 9)


@settings(deadline=None, max_examples=60)
@given(st.integers(1, MAX_ROWS), st.integers(0, 2**50), st.booleans(), st.text("abc .+", min_size=1, max_size=64))
def test_sizes_are_known_beforehand(rows, lost, disclosure_control, software):
    copy = lost % 1001
    summary = replace(of_rows(PLAN, rows, lost=lost), replicate=copy, original="a" * 64 if copy else "")
    message = SummaryMessage(summary, disclosure_control, software)
    told = {
        "rows_read": summary.rows_read,
        "missing": summary.missing,
        "disclosure_control": disclosure_control,
        "software": software,
    }
    told["replicate"] = summary.replicate
    length = len(pack_summary(message, PLAN))
    assert summary_file_size(PLAN, "north", rows, **told) == length <= max_summary_bytes(PLAN)
    assert summary_file_size(PLAN, "north", rows) == len(pack_summary(SummaryMessage(of_rows(PLAN, rows)), PLAN))


def test_the_header_tells_what_is_in_the_file():
    header = read_summary_header(BLOB)
    assert (header.client, header.plan, header.columns) == ("north", PLAN.fingerprint, PLAN.layout.n_columns)
    assert (header.rows, header.rows_read, dict(header.missing)) == (10, 12, dict(SUMMARY.missing))
    assert (header.disclosure_control, header.software, header.replicate) == (True, "fedcdh 0.1.0", 0)
    copy = edited(replicate=7, original=SUMMARY.digest)
    assert read_summary_header(copy).replicate == unpack_summary(copy, PLAN).summary.replicate == 7
    assert read_summary_header(copy).original == unpack_summary(copy, PLAN).summary.original == SUMMARY.digest


@pytest.mark.parametrize(
    ("replicate", "original"), [(0, "a" * 64), (0, "x"), (1, ""), (1, "a" * 63), (1, "A" * 64), (1, "a" * 64 + "\n")]
)
def test_replicates_and_only_they_name_their_original(replicate, original):
    with pytest.raises(SummaryFormatError, match="'original'"):
        read_summary_header(edited(replicate=replicate, original=original))
    with pytest.raises(SummaryError, match="the original is"):
        pack_summary(SummaryMessage(replace(SUMMARY, replicate=replicate, original=original)), PLAN)


def test_the_layout_of_an_array_does_not_matter():
    message = SummaryMessage(replace(SUMMARY, moments=np.asfortranarray(SUMMARY.moments)), software="fedcdh 0.1.0")
    assert pack_summary(message, PLAN) == BLOB


def test_matrices_larger_than_a_block_are_mirrored():
    plan = StudyPlan(tuple(Continuous(f"v{k}") for k in range(100)), ("north",))
    message = SummaryMessage(of_rows(plan, 3000))
    assert unpack_summary(pack_summary(message, plan), plan) == message


@pytest.mark.parametrize("rows", [100, 1000, 10**6])
@pytest.mark.parametrize("variables", [6, 30, 100])
def test_a_message_is_less_than_half_of_the_papers(variables, rows):
    """The paper sends a tensor of (d + 1)² blocks of h × h float64; here h is 6, with the default features."""
    plan = StudyPlan(tuple(Continuous(f"v{k}") for k in range(variables)), ("north",))
    assert plan.layout.n_columns == 1 + 6 * variables
    assert summary_file_size(plan, "north", rows) <= 0.5 * (variables + 1) ** 2 * 6**2 * 8


# Damage


def rebuilt(header: object, data: bytes | None = None) -> bytes:
    """A file with this header, its lengths set right."""
    text = (header if isinstance(header, str) else to_canonical_json(header)).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + (BLOB[START:] if data is None else data)


START = 8 + struct.unpack("<Q", BLOB[:8])[0]
HEADER = json.loads(BLOB[8:START])
INNER = json.loads(HEADER["__metadata__"]["fedcdh"])


def edited(**fields: object) -> bytes:
    return redigested(rebuilt({**HEADER, "__metadata__": {"fedcdh": to_canonical_json({**INNER, **fields})}}))


def tensor(**fields: object) -> bytes:
    return rebuilt({**HEADER, "moments": {**HEADER["moments"], **fields}})


def without(name: str) -> bytes:
    inner = to_canonical_json({key: value for key, value in INNER.items() if key != name})
    return rebuilt({**HEADER, "__metadata__": {"fedcdh": inner}})


def with_entry(index: int, value: int) -> bytes:
    planes = np.frombuffer(BLOB, np.uint8, offset=START).reshape(HEADER["moments"]["shape"]).copy()
    planes[:, index] = list(value.to_bytes(len(planes), "little", signed=True))
    return redigested(BLOB[:START] + planes.tobytes())


def raw_inner(text: str) -> bytes:
    return rebuilt({**HEADER, "__metadata__": {"fedcdh": text}})


@pytest.mark.parametrize("place", [START, START + 1, len(BLOB) - 1, BLOB.index(b"north"), BLOB.index(b"0.1.0")])
def test_no_bit_changes_unnoticed(place):
    for bit in range(8):
        damaged = bytearray(BLOB)
        damaged[place] ^= 1 << bit
        with pytest.raises(SummaryFormatError):
            unpack_summary(bytes(damaged), PLAN)
        with pytest.raises(SummaryFormatError):
            read_summary_header(bytes(damaged))


def test_the_tools_of_this_test_work():
    assert edited() == tensor() == raw_inner(to_canonical_json(INNER)) == with_entry(0, 10 * GRID**2) == BLOB


MOST = 10 * GRID**2
counts = dict(SUMMARY.missing)
NOT_A_SUMMARY = {
    "nothing": b"",
    "seven bytes": BLOB[:7],
    "a length alone": BLOB[:8],
    "a length of 0": bytes(8) + BLOB[8:],
    "a length of 2^63": struct.pack("<Q", 2**63) + BLOB[8:],
    "a length of 2^64 - 1": struct.pack("<Q", 2**64 - 1) + BLOB[8:],
    "a length to the end": struct.pack("<Q", len(BLOB) - 8) + BLOB[8:],
    "a length past the end": struct.pack("<Q", len(BLOB) - 7) + BLOB[8:],
    "cut off": BLOB[:-1],
    "half": BLOB[: len(BLOB) // 2],
    "a byte more": BLOB + b"\0",
    "a megabyte more": BLOB + bytes(1 << 20),
    "twice": BLOB + BLOB,
    "a text": b"age,dose\n50,1\n" * 20,
    "a zip": b"PK\x03\x04" + BLOB,
    "an npy file": b"\x93NUMPY\x01\x00" + BLOB,
    "a pickle": b"\x80\x04\x95" + BLOB,
    "spaces for a header": rebuilt(" " * 64),
    "an array": rebuilt("[]"),
    "deep nesting": rebuilt("[" * 100_000),
    "deep nesting that fits": rebuilt('{"a":' * 80),
    "deep nesting inside": raw_inner("[" * 300),
    "many digits": rebuilt("9" * 400),
    "many digits inside": raw_inner('{"rows":' + "9" * 300 + "}"),
    "a large exponent": raw_inner(to_canonical_json(INNER).replace('"rows":10', '"rows":1e999')),
    "NaN": raw_inner(to_canonical_json(INNER).replace('"rows":10', '"rows":NaN')),
    "a key twice": raw_inner(to_canonical_json(INNER).replace('"rows":10', '"rows":10,"rows":10')),
    "a key twice, once escaped": raw_inner(to_canonical_json(INNER).replace('"rows":10', '"rows":10,"row\\u0073":10')),
    "no UTF-8": BLOB.replace(b"north", b"nor\xff\xff"),
    "half a surrogate pair": raw_inner(to_canonical_json(INNER).replace("north", "\\ud800")),
    "text after the JSON": raw_inner(to_canonical_json(INNER) + "{}"),
    "another tensor": rebuilt({**HEADER, "more": HEADER["moments"]}),
    "no tensor": rebuilt({"__metadata__": HEADER["__metadata__"]}),
    "no metadata": rebuilt({"moments": HEADER["moments"]}),
    "more metadata": rebuilt({**HEADER, "__metadata__": {**HEADER["__metadata__"], "x": "y"}}),
    "metadata that are no text": rebuilt({**HEADER, "__metadata__": {"fedcdh": INNER}}),
    "another type": tensor(dtype="I8"),
    "pickled objects": tensor(dtype="O"),
    "another shape": tensor(shape=HEADER["moments"]["shape"][::-1]),
    "a huge shape": tensor(shape=[10**12, 10**12]),
    "a shape of floats": tensor(shape=[float(n) for n in HEADER["moments"]["shape"]]),
    "other offsets": tensor(data_offsets=[1, HEADER["moments"]["data_offsets"][1] + 1]),
    "an unknown key of the tensor": tensor(note="x"),
    "another format": edited(format="fedcdh-summary-1"),
    "an unknown key": edited(note="x"),
    **{f"no {name}": without(name) for name in INNER},
    **{f"{name} is null": edited(**{name: None}) for name in INNER if name != "digest"},
    **{f"{name} is true": edited(**{name: True}) for name in INNER if name not in ("digest", "disclosure_control")},
    **{
        f"the digest is {text}": raw_inner(to_canonical_json({**INNER, "digest": text}))
        for text in (None, True, "", "0" * 64)
    },
    **{
        f"{name} is a float": edited(**{name: float(INNER[name])})
        for name in ("rows", "rows_read", "columns", "replicate")
    },
    **{f"{name} is negative": edited(**{name: -1}) for name in ("rows", "rows_read", "columns", "replicate")},
    **{f"{name} is 2^53": edited(**{name: 2**53}) for name in ("rows", "rows_read", "columns")},
    "copy is 1001": edited(replicate=1001),
    "disclosure_control is 0": edited(disclosure_control=0),
    "an empty client": edited(client=""),
    "a long client": edited(client="n" * 201),
    **{f"a client with {ord(one):#x}": edited(client=f"north{one}") for one in "\n\x1b\x7f\x9b\u200b\u2028\u202e"},
    "a variable that cannot be printed": edited(missing={**counts, "\x1b[2J": 0}),
    "a variable with a long name": edited(missing={**counts, "z" * 201: 0}),
    "a plan in capitals": edited(plan=PLAN.fingerprint.upper()),
    "a plan cut short": edited(plan=PLAN.fingerprint[:63]),
    "a letter in the software": edited(software="fedcdh é"),
    "long software": edited(software="x" * 65),
    "missing as a list": edited(missing=[[name, 0] for name in PLAN.names]),
    "missing a bool": edited(missing={**counts, "x": False}),
    "missing a float": edited(missing={**counts, "x": 0.0}),
    "missing negative": edited(missing={**counts, "x": -1}),
    "missing a variable": edited(missing={"x": 0, "g": 2}),
    "a variable too many": edited(missing={**counts, "z": 0}),
    "columns of another plan": edited(columns=PLAN.layout.n_columns + 1),
    "rows that need fewer bytes": edited(rows=7),
    "rows that need more bytes": edited(rows=2048),
    "a header with spaces": rebuilt(json.dumps(HEADER)),
    "a header in another order": rebuilt(json.dumps(dict(reversed(HEADER.items())), separators=(",", ":"))),
    "an escaped letter": rebuilt(to_canonical_json(HEADER).replace("moments", "moment\\u0073")),
    "an escaped slash": raw_inner(to_canonical_json(INNER).replace("north", "n\\/orth")),
    "minus zero": raw_inner(to_canonical_json(INNER).replace('"x":0', '"x":-0')),
    "eight more spaces": struct.pack("<Q", START) + BLOB[8:START] + b" " * 8 + BLOB[START:],
    "tabs for spaces": BLOB[: START - 1] + b"\t" + BLOB[START:],
}


@pytest.mark.parametrize("blob", NOT_A_SUMMARY.values(), ids=NOT_A_SUMMARY.keys())
def test_what_is_not_a_summary_file_is_refused(blob):
    with pytest.raises(SummaryFormatError, match=r"ask the site|with this version"):
        unpack_summary(blob, PLAN)


OTHER_PLAN = replace(PLAN, clip=5.0)
WRONG = {
    "another plan": (PlanMismatchError, edited(plan=OTHER_PLAN.fingerprint), "follows plan .*make the summary again"),
    "a stranger": (UnknownClientError, edited(client="west"), "summary of 'west', but the plan names north, süd"),
    "no rows": (SummaryFormatError, edited(rows=0), "announces"),
    "a row more": (RowCountError, edited(rows=11), "claims 11 of 12 rows"),
    "a row less": (RowCountError, edited(rows=9), "claims 9 of 12 rows"),
    "fewer read than used": (RowCountError, edited(rows_read=9), "claims 10 of 9 rows"),
    "rows lost for no reason": (RowCountError, edited(rows_read=13), "left out 3 of 13 .* 2 missing values"),
    "missing in rows that are used": (RowCountError, edited(rows_read=11), "left out 1 of 11 .*at most 2"),
    "nothing lost": (RowCountError, edited(rows_read=10), "left out 0 of 10"),
    "more missing than read": (RowCountError, edited(missing={**counts, "x": 13}), "15 missing"),
    "another first entry": (RowCountError, with_entry(0, MOST + 1), "as many as its moments count"),
    "a first entry below": (RowCountError, with_entry(0, -MOST), "as many as its moments count"),
    "an entry too large": (MomentBoundsError, with_entry(5, MOST + 1), "larger than 10 rows"),
    "an entry too small": (MomentBoundsError, with_entry(-1, -MOST - 1), "larger than 10 rows"),
    "the largest entry": (MomentBoundsError, with_entry(7, 2**47 - 1), "larger than 10 rows"),
    "the smallest entry": (MomentBoundsError, with_entry(7, -(2**47)), "larger than 10 rows"),
}


@pytest.mark.parametrize(("error", "blob", "words"), WRONG.values(), ids=WRONG.keys())
def test_each_contradiction_has_its_error(error, blob, words):
    with pytest.raises(error, match=words) as refusal:
        unpack_summary(blob, PLAN)
    assert type(refusal.value) is error


def test_no_rows_are_no_summary():
    one = pack_summary(SummaryMessage(of_rows(PLAN, 1)), PLAN)
    header = json.loads(one[8 : 8 + struct.unpack("<Q", one[:8])[0]])
    inner = {**json.loads(header["__metadata__"]["fedcdh"]), "rows": 0, "rows_read": 0}
    data = bytes(header["moments"]["data_offsets"][1])
    with pytest.raises(RowCountError, match="claims 0 of 0 rows"):
        unpack_summary(
            redigested(rebuilt({**header, "__metadata__": {"fedcdh": to_canonical_json(inner)}}, data)), PLAN
        )


def test_a_file_is_read_with_its_own_plan_only():
    for other in (OTHER_PLAN, plan_for(Fourier()), plan_for(clients=("north", "south"))):
        with pytest.raises((PlanMismatchError, SummaryFormatError), match=r"plan"):
            unpack_summary(BLOB, other)


def test_peek_checks_all_that_needs_no_plan():
    for name in ("cut off", "a byte more", "another shape", "a huge shape", "eight more spaces", "deep nesting"):
        with pytest.raises(SummaryFormatError):
            read_summary_header(NOT_A_SUMMARY[name])
    assert read_summary_header(edited(client="west")).client == "west"
    with pytest.raises(SummaryFormatError, match=r"letters that can be printed, found 'n\\x9bn") as refusal:
        read_summary_header(edited(client="n\x9b" * 100_000))
    assert len(str(refusal.value)) < 400


@pytest.mark.parametrize(
    ("damage", "error", "words"),
    [
        ({"clients": ("north", "süd ↓")}, SummaryError, "sum of clients north, süd"),
        ({"clients": ("west",)}, UnknownClientError, "summary of 'west'"),
        ({"plan": OTHER_PLAN.fingerprint}, PlanMismatchError, "follows plan"),
        ({"rows_read": 15}, RowCountError, "left out 5 of 15"),
        ({"missing": {"x": 0, "g": 2}}, SummaryFormatError, "names other variables"),
        ({"moments": np.diag([GRID**2, 0, 0]), "rows_read": 1}, SummaryFormatError, "3 columns"),
        ({"moments": SUMMARY.moments * 0}, RowCountError, "claims 0 of 12"),
    ],
)
def test_what_would_be_refused_is_not_written(damage, error, words):
    with pytest.raises(error, match=words):
        pack_summary(SummaryMessage(replace(SUMMARY, **damage)), PLAN)


def test_half_a_row_is_not_written():
    moments = SUMMARY.moments.copy()
    moments[0, 0] += 1
    with pytest.raises(RowCountError, match="as many as its moments count"):
        pack_summary(SummaryMessage(replace(SUMMARY, moments=moments)), PLAN)
    with pytest.raises(SummaryError, match="software 'é' cannot be named"):
        pack_summary(SummaryMessage(SUMMARY, software="é"), PLAN)


def test_refusals_tell_no_moments():
    canary = 3**24 + 1  # an entry that would stand out
    planes = with_entry(5, canary)
    for blob in (
        planes[:-1],
        planes + b"x",
        planes.replace(b"north", b"south"),
        planes.replace(b'rows\\":10', b'rows\\":11'),
    ):
        with pytest.raises(SummaryError) as refusal:
            unpack_summary(blob, PLAN)
        assert str(canary) not in str(refusal.value)


# JSON


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("{} {}", "not JSON"),
        ("\ufeff{}", "not JSON"),
        ("'a'", "not JSON"),
        ('{"a": 1, "a": 1}', "'a' stands twice"),
        ("[" * 33 + "]" * 33, "nested more than 32 deep"),
        ("[" * 10**6, "nested more than 32 deep"),
        ('{"a":' * 10**5, "nested more than 32 deep"),
        ("1" * 41, "number with 41 digits"),
        ("0." + "1" * 10**5, "number with 100000 digits"),
        ("NaN", "holds NaN"),
        ("[-Infinity]", "holds -Infinity"),
        ("1e999", "beyond the range"),
        (b"\xff", "not UTF-8"),
        (b"\xed\xa0\x80", "not UTF-8"),
        ('"\ud800"', "half of a surrogate pair"),
        ('"\\ud800"', "half of a surrogate pair"),
        ('{"\\uDFFF": 1}', "half of a surrogate pair"),
    ],
)
def test_json_that_could_be_read_in_two_ways_or_harm_is_refused(text, reason):
    with pytest.raises(SummaryFormatError, match=reason) as refusal:
        parse_json(text, refuse=SummaryFormatError)
    assert refusal.value.__context__ is None  # where parts of the text could hide


documents = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text('[{"\\9é', max_size=50), inner, max_size=4),
    max_leaves=12,
)


@settings(deadline=None, max_examples=150)
@given(documents)
def test_json_is_read_back_and_written_in_one_way(document):
    text = to_canonical_json(document)
    assert parse_json(text, refuse=ValueError) == parse_json(text.encode(), refuse=ValueError) == document
    assert to_canonical_json(parse_json(json.dumps(document, indent=2), refuse=ValueError)) == text


def test_brackets_and_digits_in_strings_count_for_nothing():
    document = {"[" * 100: "9" * 100, '\\"' * 50 + "[" * 50: "😀\\"}
    assert parse_json(json.dumps(document), refuse=ValueError) == document
    assert parse_json("[" * 32 + "]" * 32, refuse=ValueError)
