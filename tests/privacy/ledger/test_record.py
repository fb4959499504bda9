"""A release as the ledger keeps it: what repeats what, and what comes back from its document."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fedcdh.data.table import to_table
from fedcdh.privacy.ledger.record import RELEASE_KINDS, Release, ReleasedColumn
from fedcdh.privacy.ledger.row_sketches import RowSketcher

FIRST = Release("summary", "north", "a" * 64, "0" * 64, 500, 12)


def test_the_same_numbers_repeat_whatever_the_plan_is_called():
    assert FIRST.repeats(FIRST)
    assert replace(FIRST, plan="b" * 64).repeats(FIRST)
    assert not replace(FIRST, digest="1" * 64).repeats(FIRST)
    assert not replace(FIRST, kind="profile").repeats(FIRST)


def test_replicates_never_repeat():
    assert not replace(FIRST, replicates=1).repeats(FIRST)
    assert FIRST.repeats(replace(FIRST, replicates=1)), "the summary itself left with the replicates"


def test_plain_after_masked_takes_the_masks_off_and_masked_after_plain_adds_nothing():
    masked = replace(FIRST, kind="masked")
    assert FIRST.unmasks(masked)
    assert not FIRST.repeats(masked)
    assert masked.repeats(FIRST)
    other = replace(FIRST, plan="b" * 64)
    assert not other.unmasks(masked)
    assert other.repeats(masked)


def test_what_is_written_is_read_again():
    sketcher = RowSketcher(b"secret")
    sketcher(to_table({"a": [1.0, 2.0], "g": ["x", "y"]}))
    columns = {name: ReleasedColumn(sketch, 0.25, name == "g") for name, sketch in sketcher.columns.items()}
    for kind in RELEASE_KINDS:
        release = Release(
            kind, "north", "", "0" * 64, 2, 3, columns, sketcher.rows, 4, 0.5, 1e-6, False, {"cells": {"a": 1}}
        )
        assert Release.from_document(release.to_document()) == release, kind


def test_a_kind_that_is_not_known_is_refused():
    with pytest.raises(ValueError, match="unknown kind of release 'letter'"):
        Release.from_document({**FIRST.to_document(), "kind": "letter"})


def test_without_load_everything_else_stays():
    sketcher = RowSketcher(b"secret")
    sketcher(to_table({"a": [1.0, 2.0]}))
    loaded = replace(FIRST, columns={"a": ReleasedColumn(sketcher.columns["a"], 0.5)})
    assert loaded.without_load().columns["a"] == replace(loaded.columns["a"], load=0.0)
    assert replace(loaded.without_load(), columns=loaded.columns) == loaded


def test_an_answer_under_masks_takes_no_mask_off_and_one_in_the_open_does_not_repeat_it():
    summary = replace(FIRST, kind="masked")
    answer = replace(FIRST, kind="answer")
    masked = replace(answer, details={"masked": True})
    assert not masked.unmasks(summary)
    assert masked.repeats(masked)
    assert answer.unmasks(summary)
    assert answer.unmasks(masked)
    assert not answer.repeats(masked)
