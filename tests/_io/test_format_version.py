"""A file of another version gets an error that names both versions and says what to do."""

from __future__ import annotations

import pytest

from fedcdh._io.format_version import find_format_mismatch


@pytest.mark.parametrize(
    ("found", "reason", "advice"),
    [
        ("fedcdh-plan-2", "earlier version", "make it again"),
        ("fedcdh-plan-9", "later version", "update fedcdh"),
        ("fedcdh-study-2", "names the format", "right file"),
        ("plan", "names the format", "right file"),
        (None, "names the format None", "right file"),
        (["fedcdh-plan-2"], "names the format", "right file"),
    ],
)
def test_another_format_is_named_with_advice(found, reason, advice):
    mismatch = find_format_mismatch(found, "fedcdh-plan-3")
    assert mismatch is not None
    assert reason in mismatch.reason
    assert advice in mismatch.advice


def test_the_same_format_is_no_mismatch():
    assert find_format_mismatch("fedcdh-plan-3", "fedcdh-plan-3") is None
