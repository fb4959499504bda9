"""No text in a CSV file is a formula, and every text can be read back."""

from __future__ import annotations

import csv
import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcdh._io.csv_cells import escape_cell, unescape_cell

TEXTS = st.text(st.sampled_from("=+-@\t\r\n'; |,\"a1＝＠\u00a0"), max_size=12) | st.text(max_size=30)


@given(TEXTS)
def test_what_is_written_can_be_read_back(text):
    assert unescape_cell(str(escape_cell(text))) == text


@given(TEXTS)
def test_no_cell_begins_a_formula_whatever_separates_cells(text):
    written = str(escape_cell(text))
    for cell in (written, *re.split(r"[;|\t\r\n]", written)[1:]):
        assert not cell.lstrip(" \u00a0").startswith(("=", "+", "-", "@", "＝", "＋", "－", "＠"))


@given(TEXTS)
def test_a_file_that_is_written_and_read_gives_the_text(text):
    out = io.StringIO(newline="")
    csv.writer(out).writerow([escape_cell(text), "next"])
    ((first, _),) = csv.reader(io.StringIO(out.getvalue(), newline=""))
    assert unescape_cell(first) == text


@pytest.mark.parametrize("value", [-0.5, 1, None, True, float("-inf")])
def test_numbers_stay_numbers(value):
    assert escape_cell(value) is value


def test_harmless_texts_stay_as_they_are():
    for text in ("age", "a-b", "x = 1", "d'accord", "", "größe"):
        assert escape_cell(text) == text
