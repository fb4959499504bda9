"""Differencing: whether a release may leave after those before it. One message may be harmless, and two not.

- A release that repeats an earlier one adds nothing, and is not checked (`ReleaseLedger.record`).
- Two releases of nearly the same rows differ by the rows that changed, as if these had been summarised alone. So either
  no row may have changed, or as many as a summary needs. Among the changed rows, each level needs the minimum cell
  count.
- Sums can be added. Of three releases, one may be of this year, one of last year, and one of both years and a few more
  people. The same limit on changed rows holds for sets of three, where nearly every row is distinct.
- Another plan looks at the same rows in another way. Everything released about a variable has to stay below what its
  values can hide: the loads of its columns (`ReleasedColumn`) add up to at most 1.
- A profile releases two sums about each column. A summary of the complete rows releases the same sums about fewer rows.
  So the rows left out have to be none, or at least the minimum cell count.
- What left under masks must not leave in plain by the same plan.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from fedcdh.errors import DisclosureError
from fedcdh.privacy.disclosure.thresholds import DifferencingLimits
from fedcdh.privacy.ledger.record import CELLS_KEY, RECIPES_KEY, LedgerEntry, Release
from fedcdh.privacy.ledger.row_sketches import match_columns

_ASK_FIRST = "after asking the person responsible for data protection"
_MAX_LISTED_FINDINGS = 20
_MAX_TRIPLE_SETS = 40  # latest sets of rows that are compared two by two with the new one


def check_differencing(new: Release, earlier: Sequence[LedgerEntry], limits: DifferencingLimits) -> None:
    """Refuse a release that must not leave after earlier ones.

    Rows that changed since another summary are reported first and alone: with the earlier rows, the other findings may
    not apply.

    Parameters
    ----------
    new : Release
        What is to leave.
    earlier : sequence of LedgerEntry
        Active entries of the ledger.
    limits : DifferencingLimits
        Limits of the site's policy.

    Raises
    ------
    DisclosureError
        With one line for each finding.

    Examples
    --------
    >>> first = Release("summary", "north", "", "0" * 64, rows=500, numbers=12)
    >>> check_differencing(first, [], DifferencingLimits(100, 8, 8))  # nothing left before
    """
    pairs = [pair for pair in (ReleasePair.of(new, entry) for entry in earlier) if pair.changed]
    messages = [pair for pair in pairs if not pair.has_profile]
    findings = (
        [*_find_unmasking(new, earlier)]
        or [*_find_small_differences(messages, limits)]
        or [*_find_triple_differences(new, messages, limits)]
        or [*_find_small_differences(pairs, limits), *_find_overload(new, pairs, limits)]
    )
    if findings:
        more = [f"and {len(findings) - _MAX_LISTED_FINDINGS} more"] if len(findings) > _MAX_LISTED_FINDINGS else []
        raise DisclosureError(
            f"This {new.kind} must not leave after the releases in this site's ledger:\n- "
            + "\n- ".join([*findings[:_MAX_LISTED_FINDINGS], *more])
            + "\nIf an earlier profile or summary was never sent, withdraw it: "
            "fedcdh ledger withdraw NUMBER --reason ..."
        )


@dataclass(frozen=True)
class ReleasePair:
    """A new release beside an earlier one: their common columns, and how many values changed in each.

    Parameters
    ----------
    new : Release
        What is to leave.
    entry : LedgerEntry
        An earlier release.
    changed : dict
        For each pair of a column of the new release and the same column of the earlier one, a lower bound on the
        number of values that changed.
    changed_rows : int or None
        Lower bound on the number of rows that changed, if both have the same columns.
    """

    new: Release
    entry: LedgerEntry
    changed: dict[tuple[str, str], int]
    changed_rows: int | None

    @classmethod
    def of(cls, new: Release, entry: LedgerEntry) -> ReleasePair:
        """Compare the sketches of two releases."""
        ours = {name: column.sketch for name, column in new.columns.items()}
        theirs = {name: column.sketch for name, column in entry.release.columns.items()}
        columns = match_columns(ours, theirs)
        changed = {(a, b): ours[a].changed(theirs[b]) for a, b in columns}
        changed_rows = None
        old_rows = entry.release.complete_rows
        if new.complete_rows and old_rows and len(columns) == len(ours) == len(theirs):
            changed_rows = new.complete_rows.changed(old_rows)
        return cls(new, entry, changed, changed_rows)

    @property
    def min_changed(self) -> int:
        """Lower bound on the number of rows that changed."""
        return max([*self.changed.values(), self.changed_rows or 0], default=0)

    @property
    def shares_rows(self) -> bool:
        """True if the two releases surely have rows in common."""
        if not self.changed:
            return False
        new, old = self.new.complete_rows, self.entry.release.complete_rows
        if self.changed_rows is not None and new and old and new.shares(old):
            return True
        columns = self.entry.release.columns
        pairs = ((self.new.columns[a].sketch, columns[b].sketch) for a, b in self.changed)
        return not self.min_changed or any(one.shares(other) for one, other in pairs)

    @property
    def may_share_rows(self) -> bool:
        """False if a column of nearly distinct values shows that the two releases have hardly a row in common.

        Without such a column in both, nothing is known.
        """
        return self.shares_rows or not self.changed_distinct

    @property
    def is_masked_alike(self) -> bool:
        """True if both leave under the masks of one plan, so that only sums over its clients are seen."""
        return self.new.is_masked and self.entry.release.is_masked and self.new.plan == self.entry.release.plan

    @property
    def is_comparable(self) -> bool:
        """True if few changes mean nearly the same rows.

        Two tables that have only the column of sexes in common have similar numbers of women, and nobody in common.
        """
        return len(self.changed) == len(self.new.columns) == len(self.entry.release.columns) or (
            bool(self.changed_distinct) or self.shares_rows
        )

    @property
    def changed_distinct(self) -> dict[tuple[str, str], int]:
        """Changes in columns whose values are nearly all distinct, so that changes do not cancel."""
        new, old = self.new.columns, self.entry.release.columns
        return {(a, b): n for (a, b), n in self.changed.items() if new[a].sketch.distinct and old[b].sketch.distinct}

    @property
    def has_profile(self) -> bool:
        """True if one of the two releases is a profile."""
        return "profile" in (self.new.kind, self.entry.release.kind)


def _find_unmasking(new: Release, earlier: Sequence[LedgerEntry]) -> Iterator[str]:
    hidden = next((entry for entry in earlier if new.unmasks(entry.release)), None)
    if hidden is not None:
        yield (
            f"{_describe_entry(hidden)} left under masks, which this release would take off. Together with the sum it "
            "would show more of this client, and of the others, than was agreed on. Send only what fedcdh secure-sum "
            f"join writes; or, if masks were given up, ask for a plan of another name, {_ASK_FIRST}"
        )


def _find_small_differences(pairs: Sequence[ReleasePair], limits: DifferencingLimits) -> Iterator[str]:
    for pair in pairs:
        if "noisy" in (pair.new.kind, pair.entry.release.kind):
            continue
        limit = limits.profile_rows if pair.has_profile else limits.rows
        near = {name: found for (name, _), found in pair.changed_distinct.items() if 0 < found < limit}
        if 0 < pair.min_changed < limit and pair.is_comparable:
            yield _describe_small_difference(pair, f"{pair.min_changed} or a few more rows changed", limit)
        elif near and pair.shares_rows:
            name = min(near, key=lambda one: near[one])
            yield _describe_small_difference(pair, f"{near[name]} or a few more values of {name!r} changed", limit)
        elif pair.min_changed and pair.shares_rows and not pair.has_profile:
            yield from _find_small_cell_changes(pair, limits)


def _find_triple_differences(new: Release, pairs: Sequence[ReleasePair], limits: DifferencingLimits) -> Iterator[str]:
    """Find rows that remain when two earlier releases are added to this one, or subtracted from it."""
    rows = new.complete_rows
    if rows is None or not rows.distinct or new.kind == "noisy":
        return
    old = [
        (pair.entry, pair.entry.release) for pair in pairs if pair.changed_rows and pair.entry.release.kind != "noisy"
    ]
    known = {
        release.complete_rows.check: (entry, release.complete_rows)
        for entry, release in old
        if release.complete_rows is not None
    }
    for (one, first), (other, second) in combinations([*known.values()][-_MAX_TRIPLE_SETS:], 2):
        differences = rows.changed(first + second), (rows + first).changed(second), (rows + second).changed(first)
        if (found := min(differences)) < limits.rows and 0 not in differences:
            yield (
                f"{found} or a few more rows would be disclosed by {_describe_entry(one)}, {_describe_entry(other)} "
                f"and this release together, expected none or at least {limits.rows}: sums of rows can be added, so "
                "the rows that are in only one of the three can be computed. Leave these rows out, wait until there "
                f"are more, or set min_rows in policy.toml, {_ASK_FIRST}"
            )
            return


def _find_small_cell_changes(pair: ReleasePair, limits: DifferencingLimits) -> Iterator[str]:
    """Find levels with few people among the rows that were only added, or only removed.

    Where many rows were added and many removed, the two hide each other.
    """
    added = (pair.min_changed + pair.new.rows - pair.entry.release.rows) / 2
    if min(added, pair.min_changed - added) >= limits.rows:
        return
    for what, smallest in (*_smallest_level_changes(pair), *_smallest_pair_changes(pair)):
        if smallest < limits.cell_count:
            yield (
                f"since {_describe_entry(pair.entry)} the number of people with a value of {what} changed by "
                f"{smallest}, expected none or at least {limits.cell_count}: the difference of the two releases would "
                f"disclose them. Send the rows of then, wait for more rows, or leave {what} out"
            )


def _smallest_level_changes(pair: ReleasePair) -> Iterator[tuple[str, int]]:
    """Yield the smallest change in how many people have a level, or a value of a discrete variable."""
    new, old = pair.new.details.get(RECIPES_KEY, {}), pair.entry.release.details.get(RECIPES_KEY, {})
    for name, other in pair.changed:
        if name in new and new[name] == old.get(other):  # counted by the levels that the recipe makes
            continue
        one, two = pair.new.columns[name], pair.entry.release.columns[other]
        net = one.sketch.net_changes(two.sketch)
        if len(net) and ((one.categorical and two.categorical) or (one.sketch.discrete and two.sketch.discrete)):
            yield repr(name), int(net.min())


def _smallest_pair_changes(pair: ReleasePair) -> Iterator[tuple[str, int]]:
    """Yield the smallest change in how many people have two levels together."""
    new, old = pair.new.details.get(CELLS_KEY, {}), pair.entry.release.details.get(CELLS_KEY, {})
    for names in new.keys() & old.keys():
        cells = new[names].keys() | old[names].keys()
        changes = [abs(new[names].get(cell, 0) - old[names].get(cell, 0)) for cell in cells]
        if smallest := min(filter(None, changes), default=0):
            yield names, smallest


def _find_overload(new: Release, pairs: Sequence[ReleasePair], limits: DifferencingLimits) -> Iterator[str]:
    """Find a variable whose loads, over all releases that share rows with this one, exceed 1."""
    loads = {name: [column.load] for name, column in new.columns.items() if column.load}
    numbers: list[int] = []
    sharing = [pair for pair in pairs if pair.shares_rows]
    if all(pair.is_masked_alike for pair in sharing):  # the policy counts these against the rows of all clients
        return
    for pair in sharing:
        for name, other in pair.changed:
            load = pair.entry.release.columns[other].load
            if name in loads and load:
                loads[name].append(load)
                numbers.append(pair.entry.number)
    heaviest = max(loads, key=lambda name: sum(loads[name]), default=None)
    if heaviest is not None and len(loads[heaviest]) > 1:
        total = sum(loads[heaviest]) * limits.strictness
        if total > 1:
            yield (
                f"together with {_list_numbers(sorted(set(numbers)))}, which shared rows with this one, the releases "
                f"about {heaviest!r} would hold as many numbers as need {math.ceil(total * new.rows)} rows, and there "
                f"are {new.rows}: single values could be computed. Send the earlier message again, leave "
                f"{heaviest!r} out of the plan, add rows, or set min_rows in policy.toml, {_ASK_FIRST}"
            )


def _describe_small_difference(pair: ReleasePair, what: str, limit: int) -> str:
    if pair.has_profile:
        return (
            f"{what} since {_describe_entry(pair.entry)}, expected none or at least {limit} (a summary leaves out rows "
            "with missing values): the difference of the two releases would disclose them. Fill these values in, leave "
            f"the variable out, or leave {limit} further rows out at random, and next time profile with --complete; "
            f"or set min_cell_count in policy.toml, {_ASK_FIRST}"
        )
    return (
        f"{what} since {_describe_entry(pair.entry)}, expected none or at least {limit}: the difference of the two "
        "releases would disclose single people. Send the earlier message again, or one of the same rows, wait until "
        f"more rows have changed, or set min_rows in policy.toml, {_ASK_FIRST}"
    )


def _describe_entry(entry: LedgerEntry) -> str:
    plan = f", plan {entry.release.plan[:12]}" if entry.release.plan else ""
    return f"release {entry.number} ({entry.release.kind} of {entry.time[:10]}{plan})"


def _list_numbers(numbers: Sequence[int]) -> str:
    shown = ", ".join(map(str, numbers[:5])) + (f" and {len(numbers) - 5} more" if len(numbers) > 5 else "")
    return f"release{'s' if len(numbers) > 1 else ''} {shown}"
