"""Whether a release may leave after those before it: one message may be harmless, and two of them not.

- The same message again tells nothing (`ReleaseLedger.record` does not even ask).
- Two releases of nearly the same rows differ by those that changed, as if these had been summarized alone. So none may
  have changed, or as many as a summary needs; among the changed ones, as many with a label as a summary needs.
- Sums add up: three releases may tell, of this year, of last year and of both, who is in the last one only. That is
  held to the same figure, where nearly every row is another.
- The same rows under another plan are looked at from another side. All that was told about a variable has to stay below
  what its values can hide: loads (`Told`) add up, to at most 1.
- A profile tells two sums about each column. A summary after it, of the complete rows, tells the same sums about fewer
  rows, so the rows left out have to be none, or as many as people with a label have to be.
- What left under masks does not leave plainly by the same plan.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from fedcdh.errors import DisclosureError
from fedcdh.privacy.ledger.ledger_file import LedgerEntry
from fedcdh.privacy.ledger.record import CELLS_KEY, Release
from fedcdh.privacy.ledger.row_sketches import match_columns

_ASK_FIRST = "after asking who is responsible for data protection"
_MAX_LISTED_FINDINGS = 20
_MAX_TRIPLE_SETS = 40  # sets of rows that are looked at two by two


@dataclass(frozen=True)
class DifferencingLimits:
    """What the policy of a site asks of a release beside others."""

    rows: int  # that have to have changed, if any
    level: int  # people with a label among those that changed
    described: int  # rows that a profile tells of, and a summary, or another profile, does not
    times: float = 1.0  # how much stricter about rows than its plan needs the policy is


def check_differencing(new: Release, earlier: Sequence[LedgerEntry], limits: DifferencingLimits) -> None:
    """Refuses a release that must not leave after these.

    Rows that changed since another message are said first, and alone: with the rows of then, all else may be well.
    """
    pairs = [pair for pair in (ReleasePair.of(new, entry) for entry in earlier) if pair.changed]
    messages = [pair for pair in pairs if not pair.described]
    broken = (
        [*_find_unmasking(new, earlier)]
        or [*_find_small_differences(messages, limits)]
        or [*_find_triple_differences(new, messages, limits)]
    )
    broken = broken or [*_find_small_differences(pairs, limits), *_find_overload(new, pairs, limits)]
    if broken:
        more = [f"and {len(broken) - _MAX_LISTED_FINDINGS} more"] if len(broken) > _MAX_LISTED_FINDINGS else []
        raise DisclosureError(
            f"this {new.kind} must not leave after what left before, says the ledger of this site:\n- "
            + "\n- ".join([*broken[:_MAX_LISTED_FINDINGS], *more])
            + "\nA profile or a summary that was made and never sent: fedcdh ledger withdraw NUMBER --reason ..."
        )


def spent_epsilon(new: Release, earlier: Sequence[LedgerEntry]) -> float:
    """The privacy budget that was spent on rows which are among those of this release: the sum of epsilons."""
    return sum(
        entry.release.epsilon for entry in earlier if entry.release.epsilon and ReleasePair.of(new, entry).sharing
    )


@dataclass(frozen=True)
class ReleasePair:
    """A new release beside an earlier one: which columns are the same, and how many values changed in each."""

    new: Release
    entry: LedgerEntry
    changed: dict[tuple[str, str], int]  # at least so many
    whole: int | None  # rows that changed, where both have the same columns

    @classmethod
    def of(cls, new: Release, entry: LedgerEntry) -> ReleasePair:
        ours = {name: told.sketch for name, told in new.columns.items()}
        theirs = {name: told.sketch for name, told in entry.release.columns.items()}
        columns = match_columns(ours, theirs)
        changed = {(a, b): ours[a].changed(theirs[b]) for a, b in columns}
        whole = None
        if new.whole and entry.release.whole and len(columns) == len(ours) == len(theirs):
            whole = new.whole.changed(entry.release.whole)
        return cls(new, entry, changed, whole)

    @property
    def most(self) -> int:
        """Rows that changed, at least."""
        return max([*self.changed.values(), self.whole or 0], default=0)

    @property
    def sharing(self) -> bool:
        """Whether there are rows in both."""
        if not self.changed:
            return False
        old = self.entry.release
        if self.whole is not None and self.new.whole and old.whole and self.new.whole.shares(old.whole):
            return True
        pairs = ((self.new.columns[a].sketch, old.columns[b].sketch) for a, b in self.changed)
        return not self.most or any(one.shares(other) for one, other in pairs)

    @property
    def comparable(self) -> bool:
        """Whether few changes mean nearly the same rows: two tables with no more in common than the column of sexes
        have nearly the same numbers of women without having anybody in common."""
        return len(self.changed) == len(self.new.columns) == len(self.entry.release.columns) or (
            bool(self.plain) or self.sharing
        )

    @property
    def plain(self) -> dict[tuple[str, str], int]:
        """Of columns in which nearly every value stands once: there, changes do not cancel."""
        new, old = self.new.columns, self.entry.release.columns
        return {(a, b): n for (a, b), n in self.changed.items() if new[a].sketch.distinct and old[b].sketch.distinct}

    @property
    def described(self) -> bool:
        """Whether one of the two only describes columns."""
        return "profile" in (self.new.kind, self.entry.release.kind)


def _find_unmasking(new: Release, earlier: Sequence[LedgerEntry]) -> Iterator[str]:
    hidden = next((entry for entry in earlier if new.unmasks(entry.release)), None)
    if hidden is not None:
        yield (
            f"{_describe_entry(hidden)} left under masks, which this would take off: whoever has the sum, and this, knows more "
            "of this site and of the others than was agreed on; send nothing but what fedcdh secure-sum join writes, or ask for a "
            f"plan of another name if masks were given up, {_ASK_FIRST}"
        )


def _find_small_differences(pairs: Sequence[ReleasePair], limits: DifferencingLimits) -> Iterator[str]:
    for pair in pairs:
        if "noisy" in (pair.new.kind, pair.entry.release.kind):
            continue
        limit = limits.described if pair.described else limits.rows
        near = {name: found for (name, _), found in pair.plain.items() if 0 < found < limit}
        if 0 < pair.most < limit and pair.comparable:
            yield _describe_small_difference(pair, f"{pair.most} or few more rows changed", limit)
        elif near and pair.sharing:
            name = min(near, key=lambda one: near[one])
            yield _describe_small_difference(pair, f"{near[name]} or few more values of {name!r} changed", limit)
        elif pair.most and pair.sharing and not pair.described:
            yield from _find_small_cell_changes(pair, limits)


def _find_triple_differences(new: Release, pairs: Sequence[ReleasePair], limits: DifferencingLimits) -> Iterator[str]:
    """Rows that are left when two earlier releases are added to this one, or taken from it."""
    rows = new.whole
    if rows is None or not rows.distinct or new.kind == "noisy":
        return
    old = [(pair.entry, pair.entry.release) for pair in pairs if pair.whole and pair.entry.release.kind != "noisy"]
    known = {release.whole.check: (entry, release.whole) for entry, release in old if release.whole is not None}
    for (one, first), (other, second) in combinations([*known.values()][-_MAX_TRIPLE_SETS:], 2):
        both = rows.changed(first + second), (rows + first).changed(second), (rows + second).changed(first)
        if 0 < (found := min(both)) < limits.rows and 0 not in both:
            yield (
                f"{found} or few more rows would be told about by {_describe_entry(one)}, {_describe_entry(other)} and this together, "
                f"expected none or at least {limits.rows}: sums of rows add up, so that what is in one of the three "
                "alone can be computed; leave these rows out, wait until there are more, or set min_rows in "
                f"policy.toml, {_ASK_FIRST}"
            )
            return


def _find_small_cell_changes(pair: ReleasePair, limits: DifferencingLimits) -> Iterator[str]:
    """People with a label among those that only came, or only went; where many did both, the two hide each other."""
    came = (pair.most + pair.new.rows - pair.entry.release.rows) / 2
    if min(came, pair.most - came) >= limits.rows:
        return
    for what, least in (*_smallest_level_changes(pair), *_smallest_pair_changes(pair)):
        if least < limits.level:
            yield (
                f"since {_describe_entry(pair.entry)} {least} people more or fewer have a value of {what}, expected none or at "
                f"least {limits.level}: the difference of the two would tell about them; send the rows of then, wait "
                f"for more rows, or leave {what} out"
            )


def _smallest_level_changes(pair: ReleasePair) -> Iterator[tuple[str, int]]:
    """The smallest change in how many have a label, or a value of a number with few different ones."""
    for name, other in pair.changed:
        one, two = pair.new.columns[name], pair.entry.release.columns[other]
        net = one.sketch.net(two.sketch)
        if len(net) and ((one.label and two.label) or (one.sketch.few and two.sketch.few)):
            yield repr(name), int(net.min())


def _smallest_pair_changes(pair: ReleasePair) -> Iterator[tuple[str, int]]:
    """The smallest change in how many have two labels together."""
    new, old = pair.new.about.get(CELLS_KEY, {}), pair.entry.release.about.get(CELLS_KEY, {})
    for names in new.keys() & old.keys():
        both = new[names].keys() | old[names].keys()
        changes = [abs(new[names].get(cell, 0) - old[names].get(cell, 0)) for cell in both]
        if least := min(filter(None, changes), default=0):
            yield names, least


def _find_overload(new: Release, pairs: Sequence[ReleasePair], limits: DifferencingLimits) -> Iterator[str]:
    """All that was told about a variable, in releases that have rows in common with this one."""
    loads = {name: [told.load] for name, told in new.columns.items() if told.load}
    numbers: list[int] = []
    for pair in pairs:
        if pair.sharing:
            for name, other in pair.changed:
                load = pair.entry.release.columns[other].load
                if name in loads and load:
                    loads[name].append(load)
                    numbers.append(pair.entry.number)
    heaviest = max(loads, key=lambda name: sum(loads[name]), default=None)
    if heaviest is not None and len(loads[heaviest]) > 1:
        total = sum(loads[heaviest]) * limits.times
        if total > 1:
            yield (
                f"with {_list_numbers(sorted(set(numbers)))}, which had rows in common with this one, so many numbers would "
                f"be told about {heaviest!r} that {math.ceil(total * new.rows)} rows are needed, and there are "
                f"{new.rows}: single values could be solved for; send the same message as then, leave {heaviest!r} out "
                f"of the plan, add rows, or set min_rows in policy.toml, {_ASK_FIRST}"
            )


def _describe_small_difference(pair: ReleasePair, what: str, limit: int) -> str:
    if pair.described:
        return (
            f"{what} since {_describe_entry(pair.entry)}, "
            f"expected none or at least {limit} (a summary leaves out rows with missing values): the difference of the "
            f"two would tell about them; fill these values in, leave the variable out, or leave {limit} further rows "
            f"out at random, and next time profile with --complete; or set min_cell_count in policy.toml, {_ASK_FIRST}"
        )
    return (
        f"{what} since {_describe_entry(pair.entry)}, expected none or at least {limit}: the difference of the two would tell "
        f"about single people; send the message of then, or one of the same rows, wait until more rows have changed, "
        f"or set min_rows in policy.toml, {_ASK_FIRST}"
    )


def _describe_entry(entry: LedgerEntry) -> str:
    plan = f", plan {entry.release.plan[:12]}" if entry.release.plan else ""
    return f"release {entry.number} ({entry.release.kind} of {entry.time[:10]}{plan})"


def _list_numbers(numbers: Sequence[int]) -> str:
    shown = ", ".join(map(str, numbers[:5])) + (f" and {len(numbers) - 5} more" if len(numbers) > 5 else "")
    return f"release{'s' if len(numbers) > 1 else ''} {shown}"
