"""Refusals: all findings in one error, up to twenty of them."""

from __future__ import annotations

import pytest

from fedcdh.errors import DisclosureError
from fedcdh.privacy.disclosure._findings import feasible_replicates, raise_findings


@pytest.mark.parametrize(("findings", "more"), [(20, ""), (21, "and 1 more")])
def test_twenty_findings_are_listed(findings, more):
    with pytest.raises(DisclosureError) as refused:
        raise_findings("This must not leave", ["always"], iter(map(str, range(findings - 1))), True)
    lines = str(refused.value).splitlines()
    assert lines[:2] == ["This must not leave, by the policy of this site:", "- always"]
    assert len(lines) == 21 + bool(more)
    assert not more or lines[-1] == f"- {more}"


def test_findings_count_only_where_limits_are_enforced():
    raise_findings("This must not leave", [], iter(["limit"]), False)
    with pytest.raises(DisclosureError, match="list"):
        raise_findings("This must not leave", ["list"], iter(["limit"]), False)


@pytest.mark.parametrize(
    ("allowed", "said"), [(-1, "no number of"), (0, "without bootstrap"), (1, "up to 1 boot"), (7, "up to 7 boot")]
)
def test_the_largest_number_of_replicates_is_said(allowed, said):
    (found,) = feasible_replicates(9, lambda replicates: iter(["finding"] if replicates > allowed else []))
    assert said in found
    assert not list(feasible_replicates(9, lambda replicates: iter([])))
