"""Differencing at its limits: refused just below, admitted at the limit."""

from __future__ import annotations

import numpy as np
import pytest

from fedcdh.data.table import to_table
from fedcdh.errors import DisclosureError
from fedcdh.privacy.disclosure.thresholds import DifferencingLimits
from fedcdh.privacy.ledger.differencing import ReleasePair, _list_numbers, check_differencing
from fedcdh.privacy.ledger.record import LedgerEntry, Release, ReleasedColumn
from fedcdh.privacy.ledger.row_sketches import RowSketcher, ValueSketch

LIMITS = DifferencingLimits(rows=5, cell_count=4, profile_rows=3)
SECRET = b"of the site"


def sketch(values: object) -> ValueSketch:
    """The sketch of a column."""
    sketcher = RowSketcher(SECRET)
    sketcher.add_values(to_table({"v": values}))
    return sketcher.columns["v"]


def release(kind: str = "summary", load: float = 0.0, **columns: object) -> Release:
    """A release of these columns; their rows are those of the first one."""
    first = next(iter(columns.values()))
    told = {name: ReleasedColumn(sketch(values), load, name == "g") for name, values in columns.items()}
    rows = None if kind == "profile" else sketch(first)
    return Release(kind, "north", "", f"{len(first):064d}", len(first), 0, told, complete_rows=rows)


def is_refused(new: Release, *earlier: Release, limits: DifferencingLimits = LIMITS) -> bool:
    entries = [LedgerEntry(number, "2026-01-01", one) for number, one in enumerate(earlier, start=1)]
    try:
        check_differencing(new, entries, limits)
    except DisclosureError:
        return True
    return False


@pytest.mark.parametrize(("gone", "refused"), [(0, False), (1, True), (4, True), (5, False)])
def test_rows_changed_since_a_summary(gone, refused):
    values = np.arange(50.0)
    assert is_refused(release(a=values[gone:]), release(a=values)) == refused


@pytest.mark.parametrize(("gone", "refused"), [(0, False), (1, True), (2, True), (3, False)])
def test_rows_that_only_the_profile_covers(gone, refused):
    values = np.arange(50.0)
    assert is_refused(release(a=values[gone:]), release("profile", a=values)) == refused


@pytest.mark.parametrize(("gone", "refused"), [(4, True), (5, False)])
def test_values_changed_in_one_column_while_all_others_changed(gone, refused):
    values = np.arange(900.0)
    new = release(b=values + 10_000, a=values[gone:])
    old = release(b=values, a=values)
    assert ReleasePair.of(new, LedgerEntry(1, "", old)).changed["a", "a"] == gone
    assert is_refused(new, old) == refused


@pytest.mark.parametrize(("more", "refused"), [(0, False), (1, True), (4, True), (5, False)])
def test_rows_in_only_one_of_three_releases(more, refused):
    values = np.arange(100.0)
    first, second = release(a=values[:20]), release(a=values[20:40])
    assert is_refused(release(a=values[: 40 + more]), first, second) == refused


@pytest.mark.parametrize(("people", "refused"), [(0, False), (1, True), (3, True), (4, False)])
def test_people_with_a_level_among_new_rows(people, refused):
    """Of twelve new rows these people have the level y, the others x."""
    old = release(a=np.arange(50.0), g=["x"] * 25 + ["y"] * 25)
    new = release(a=np.arange(62.0), g=["x"] * (37 - people) + ["y"] * (25 + people))
    assert is_refused(new, old) == refused


@pytest.mark.parametrize(("removed", "refused"), [(4, True), (5, False)])
def test_many_rows_added_and_many_removed_hide_a_level(removed, refused):
    values, levels = np.arange(55.0), np.array(["x"] * 25 + ["y"] * 25)
    new = release(a=values[removed:], g=[*levels[removed:], *"xxxyx"])
    old = release(a=values[:50], g=levels)
    assert ReleasePair.of(new, LedgerEntry(1, "", old)).min_changed == removed + 5, "no two values share a bucket"
    assert is_refused(new, old) == refused


@pytest.mark.parametrize(("load", "refused"), [(0.5, False), (0.5000001, True)])
def test_loads_of_all_releases_add_up_to_at_most_one(load, refused):
    values = np.arange(50.0)
    assert is_refused(release(load=load, a=values), release(load=0.5, a=values)) == refused


@pytest.mark.parametrize(("strictness", "refused"), [(1.0, False), (1.001, True)])
def test_a_stricter_policy_allows_a_smaller_load(strictness, refused):
    values, limits = np.arange(50.0), DifferencingLimits(5, 4, 3, strictness)
    assert is_refused(release(load=0.5, a=values), release(load=0.5, a=values), limits=limits) == refused


def test_the_load_of_a_single_release_is_for_the_policy():
    assert not is_refused(release(load=2.0, a=np.arange(50.0)))


@pytest.mark.parametrize(("count", "more"), [(20, False), (21, True)])
def test_twenty_findings_are_listed(count, more):
    values = np.arange(50.0)
    earlier = [LedgerEntry(n, "2026-01-01", release(a=np.delete(values, n))) for n in range(count)]
    with pytest.raises(DisclosureError) as refused:
        check_differencing(release(a=values), earlier, LIMITS)
    assert ("\n- and " in str(refused.value)) == more
    assert str(refused.value).count("1 or a few more rows changed") == 20


def test_five_numbers_are_listed():
    assert _list_numbers([3]) == "release 3"
    assert _list_numbers([1, 2, 3, 4, 5]) == "releases 1, 2, 3, 4, 5"
    assert _list_numbers([1, 2, 3, 4, 5, 6]) == "releases 1, 2, 3, 4, 5 and 1 more"
