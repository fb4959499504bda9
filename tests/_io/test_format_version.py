"""A file of another version gets an error that names both versions and says what to do."""

from __future__ import annotations

import pytest

from fedcdh._io.format_version import find_format_mismatch


@pytest.mark.parametrize(
    ("found", "reason", "advice"),
    [
        ("fedcdh-plan-2", "earlier version", ("make it again with this version",)),
        ("fedcdh-plan-9", "later version", ("update fedcdh, or make the file again with this version",)),
        ("fedcdh-study-2", "names the format", ()),
        ("plan", "names the format", ()),
        (None, "names the format None", ()),
        (["fedcdh-plan-2"], "names the format", ()),
    ],
)
def test_another_format_is_named_with_advice(found, reason, advice):
    mismatch = find_format_mismatch(found, "fedcdh-plan-3")
    assert reason in mismatch[0]
    assert mismatch[1:] == advice


def test_the_same_format_is_no_mismatch():
    assert find_format_mismatch("fedcdh-plan-3", "fedcdh-plan-3") == ()
