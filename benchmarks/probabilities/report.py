"""The printed output: a line per cell, reliability tables, totals and goals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from benchmarks.probabilities.cells import CONFORMING, MISSPECIFIED, PAPER
from benchmarks.probabilities.reliability import LIMITS, Bin, Scores, interval, make_bins, score
from benchmarks.probabilities.statements import DRAWN, KINDS, Statements, add_up, share_right

GROUPS = (CONFORMING, MISSPECIFIED, PAPER)
WHAT = {
    "presence": "presence: the two variables are adjacent",
    "direction": "direction: the likelier direction of a true edge",
    "change": "change: the mechanism differs between clients",
    "arrow": "arrow: this arrow is there (every ordered pair)",
}


@dataclass(frozen=True, eq=False)
class Record:
    """The statements of one method about the studies of one cell."""

    title: str
    group: str
    family: str
    statements: Statements

    @cached_property
    def scores(self) -> dict[str, Scores]:
        return {kind: score(self.statements.of(kind), LIMITS[kind]) for kind in KINDS}

    def as_json(self) -> dict[str, Any]:
        figures = {kind: _plain(self.scores[kind]._asdict()) for kind in KINDS}
        bins = {kind: [_plain(one._asdict()) for one in _bins(self.statements, kind)] for kind in KINDS}
        names = {"title": self.title, "group": self.group, "family": self.family}
        return names | {"scores": figures, "bins": bins, "drawn": dict(sorted(self.statements.drawn.items()))}


def merge(title: str, records: Iterable[Record]) -> Record:
    """Return the records of several cells as one."""
    return Record(title, "", "", add_up(record.statements for record in records))


def _bins(statements: Statements, kind: str) -> list[Bin]:
    return make_bins(statements.of(kind), LIMITS[kind])


def _plain(figures: dict[str, Any]) -> dict[str, Any]:
    """Return figures without nan, which JSON does not know."""
    return {key: None if value != value else value for key, value in figures.items()}


# Lines and tables

HEADING = (
    f"{'':50}{'presence':^21}{'direction':^21}{'change':^21}{'drawn arrows':^35}\n"
    f"{'cell':50}" + f"{'n':>7}{'ECE':>7}{'chance':>7}" * 3 + f"{'right':>7}{'rev.':>6}{'none':>6}{'right':>9}"
    f"{'lines':>7}{'missed':>8}"
)


def line(record: Record) -> str:
    """Return one line: count, calibration error and its size by chance for three kinds, and what is drawn."""
    cells = [
        f"{one.count:7d}{number(one.ece)}{number(one.by_chance)}"
        for one in (record.scores[kind] for kind in ("presence", "direction", "change"))
    ]
    drawn = record.statements.drawn
    right, wrong, extra = (drawn[outcome] for outcome in DRAWN)
    return (
        f"{record.title:50}{''.join(cells)}{right:7d}{wrong:6d}{extra:6d}{percent(share_right(drawn))}"
        f"{drawn['lines']:7d}{drawn['missed']:8d}"
    )


def number(value: float) -> str:
    return f"{'–':>7}" if np.isnan(value) else f"{value:7.3f}"


def percent(share: float) -> str:
    return f"{'–':>9}" if np.isnan(share) else f"{100 * share:7.1f} %"


def table(record: Record, kind: str) -> list[str]:
    """Return the reliability table of one kind of statement."""
    found = [f"{'said':12}{'n':>8}{'mean said':>11}{'found':>8}{'95 % interval':>16}"]
    for one in _bins(record.statements, kind):
        if one.count:
            span, (low, high) = f"{one.low:.2f}–{one.high:.2f}", interval(one)
            within = f"{low:.3f}–{high:.3f}"
            found.append(f"{span:12}{one.count:8d}{one.said:11.3f}{one.found:8.3f}{within:>16}")
    return [f"{record.title}, {WHAT[kind]}", *found, summary(record.scores[kind])]


def summary(scores: Scores) -> str:
    if not scores.count:
        return "no statements"
    return (
        f"{scores.count} statements, ECE {scores.ece:.3f} (by chance {scores.by_chance:.3f}, in 95 % of draws below "
        f"{scores.rarely:.3f}), log score {scores.log_score:.3f}, Brier score {scores.brier:.3f}"
    )


def show_totals(records: Sequence[Record], say: Callable[[str], None] = print) -> None:
    """Print the tables of every group and of all, the totals by family, and which goals are met."""
    present = [group for group in GROUPS if any(record.group == group for record in records)]
    parts = [merge(group, [record for record in records if record.group == group]) for group in present]
    whole = merge("all cells", records)
    for one in (*parts, whole):
        for kind in KINDS:
            if one.statements.of(kind):
                say("\n" + "\n".join(table(one, kind)))
    say(f"\n{HEADING}")
    for one in (*by_family(records), *parts, whole):
        say(line(one))
    say("")
    for goal in goals(records):
        say(str(goal))


def by_family(records: Sequence[Record]) -> list[Record]:
    """Return one record for every family of noise, and for everything that contradicts the model."""
    found: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        found.setdefault((record.group, record.family), []).append(record)
    return [
        Record(f"{group}: {family}", group, family, add_up(record.statements for record in members))
        for (group, family), members in sorted(found.items(), key=lambda item: GROUPS.index(item[0][0]))
    ]


# Goals


class Goal(NamedTuple):
    """A figure that shall not exceed, or not fall below, its limit; `where` names the worst part."""

    what: str
    value: float
    limit: float
    met: bool
    where: str = ""

    def __str__(self) -> str:
        outcome = "met" if self.met else "no figure" if np.isnan(self.value) else "NOT met"
        where = f" ({self.where})" if self.where else ""
        return f"{self.what}: {self.value:.3f}, goal {self.limit:g}: {outcome}{where}"

    def as_json(self) -> dict[str, Any]:
        return _plain(self._asdict())


OVERALL_LIMITS = {"presence": 0.05, "direction": 0.07}
CELL_LIMIT = 0.12
SHARE_LIMITS = {CONFORMING: 0.95, MISSPECIFIED: 0.85}


def goals(records: Sequence[Record]) -> list[Goal]:
    """Return the goals over all cells, in the worst cell, and in the worst family of each group."""
    whole = merge("all cells", records)
    found = []
    for kind, limit in OVERALL_LIMITS.items():
        overall = whole.scores[kind].ece
        found.append(Goal(f"ECE of {kind} over all cells", overall, limit, overall <= limit))
    found += [_worst_cell(records, kind) for kind in OVERALL_LIMITS]
    families = by_family(records)
    return found + [_worst_share(families, group) for group in SHARE_LIMITS]


def _worst_cell(records: Sequence[Record], kind: str) -> Goal:
    known = [record for record in records if record.scores[kind].count]
    what = f"ECE of {kind} in the worst cell"
    if not known:
        return Goal(what, float("nan"), CELL_LIMIT, False)
    worst = max(known, key=lambda record: record.scores[kind].ece)
    above = sum(record.scores[kind].ece > CELL_LIMIT for record in known)
    figures = worst.scores[kind]
    where = f"{worst.title}; by chance {figures.by_chance:.3f}; {above} of {len(known)} cells above"
    return Goal(what, figures.ece, CELL_LIMIT, figures.ece <= CELL_LIMIT, where)


def _worst_share(families: Sequence[Record], group: str) -> Goal:
    known = [one for one in families if one.group == group and not np.isnan(share_right(one.statements.drawn))]
    what, limit = f"share of drawn arrows that are right, worst family of {group} cells", SHARE_LIMITS[group]
    if not known:
        return Goal(what, float("nan"), limit, False)
    worst = min(known, key=lambda one: share_right(one.statements.drawn))
    share = share_right(worst.statements.drawn)
    return Goal(what, share, limit, share >= limit, worst.family)
