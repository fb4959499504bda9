"""Refusals: all findings in one error, one line for each cause, and up to twenty of them."""

from __future__ import annotations

import pytest

from fedcdh.errors import DisclosureError
from fedcdh.privacy.disclosure._findings import Finding, feasible_replicates, group_findings, raise_findings


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


def cell(number: int, advice: str = "group levels") -> Finding:
    return Finding(
        f"level {number} of 'cp' has 3 people; {advice}", f"level {number} of 'cp'", f"few: {{items}}; {advice}"
    )


def test_one_cause_has_one_line_and_advice_is_said_once():
    lines = group_findings([cell(1), "another rule", cell(2), cell(3, "take logarithms")])
    assert lines == [
        "few: level 1 of 'cp', level 2 of 'cp'; group levels",
        "another rule",
        "level 3 of 'cp' has 3 people; take logarithms",
    ]


@pytest.mark.parametrize(("number", "more"), [(4, ""), (5, " and 1 more, most of them of 'cp'")])
def test_of_many_items_the_first_are_listed(number, more):
    (line,) = group_findings(map(cell, range(number)))
    assert line.count("level") == 4 + 1  # and the advice
    assert more in line
    assert bool(more) == ("more" in line)


def test_the_error_carries_every_finding():
    with pytest.raises(DisclosureError) as refused:
        raise_findings("This must not leave", [], map(cell, range(9)), True)
    assert len(refused.value.findings) == 9
    assert str(refused.value).count("group levels") == 1
