"""The header of a summary file: its widths, its length and its one spelling."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fedcdh.errors import SummaryFormatError
from fedcdh.messages.summary_header import (
    LENGTH_PREFIX,
    MAX_HEADER_BYTES,
    PLACEHOLDER_DIGEST,
    SummaryHeader,
    max_header_bytes,
    parse_header,
)
from fedcdh.summaries.encoder import GRID
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.summary import MAX_ROWS
from fedcdh.summaries.variables import Continuous

PLAN = StudyPlan((Continuous("age"), Continuous("dose")), ("north", "a longer name"))
HEADER = SummaryHeader(PLAN.fingerprint, "north", 5, 6, {"age": 1, "dose": 0}, 3, True, "fedcdh 0.1.0")


def file_of(header: SummaryHeader) -> bytes:
    data = bytes(header.data_bytes)
    return header.render(header.digest(data)) + data


def test_entries_take_as_few_bytes_as_hold_them():
    for width in (5, 6, 7):
        largest = ((1 << (8 * width - 1)) - 1) // GRID**2
        assert replace(HEADER, rows=largest).width == width
        assert replace(HEADER, rows=largest + 1).width == width + 1
    assert replace(HEADER, rows=MAX_ROWS).width == 8
    assert replace(HEADER, noise=1).width == 8


def test_what_is_rendered_is_parsed():
    for header in (HEADER, replace(HEADER, replicate=7, original="a" * 64), replace(HEADER, noise=9)):
        found, start = parse_header(file_of(header), MAX_HEADER_BYTES)
        assert found == header
        assert start == len(header.render(PLACEHOLDER_DIGEST))


def test_a_header_is_admitted_at_its_limit_and_refused_beyond():
    blob = file_of(HEADER)
    length = LENGTH_PREFIX.unpack_from(blob)[0]
    assert parse_header(blob, length)[0] == HEADER
    with pytest.raises(SummaryFormatError, match=f"expected at most {length - 1}"):
        parse_header(blob, length - 1)


def test_no_header_of_a_plan_is_longer_than_its_bound():
    longest = replace(HEADER, client="a longer name", rows=MAX_ROWS, rows_read=2**53 - 1, disclosure_control=False)
    longest = replace(
        longest, software="x" * 64, replicate=1000, original="a" * 64, missing=dict.fromkeys(PLAN.names, 2**53 - 1)
    )
    longest = replace(longest, columns=PLAN.layout.n_columns)
    assert LENGTH_PREFIX.unpack_from(longest.render(PLACEHOLDER_DIGEST))[0] <= max_header_bytes(PLAN)
