"""What follows about the people with a rare pair of labels: python -m benchmarks.attacks.rare_pairs --help

A summary holds, for two labels together, the number of people and no sums. The attacker knows of somebody that they
have both labels, knows the rule by which small counts are rounded, and looks for:

- counts: how many people there are, from 1 to 7. Beside it stands the likeliest count given how common each label is.
- labels: their other labels. The attacker fits a table of all labels to all two-way counts (largest entropy), and takes
  the likeliest. Beside it stands the same without the counts of this pair of variables.
- certain: their other labels, where every table of whole numbers with these two-way counts has somebody with them in
  that pair. Where counts are rounded, the attacker takes each for a number less than a step away.
- numbers: a value of each number, by the combination of the two labels' sums that is nearest to a sum over the pair.
  Beside it stands the same with the count that independent labels would have. A value counts as found within 0.1
  standard deviations.

Each is tried on the exact counts, which no site sends, and on what leaves. p is that of Fisher's exact test against the
guess, one-sided. The script fails if anything is found in what leaves above the guess with p < 0.001.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.stats import fisher_exact, poisson

from benchmarks.attacks.common import Array, plan_of
from benchmarks.labelled_tables import Table, simulate_labelled
from fedcdh.privacy.disclosure.rare_cells import coarsen_summary, count_pairs, surrounding_multiples
from fedcdh.privacy.disclosure.thresholds import MIN_PAIR_COUNT, required_cell_count
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.encoder import GRID
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.summary import Summary
from fedcdh.summaries.variables import Categorical, Continuous

Total = dict[tuple[str, str], tuple[int, int]]
NEAR = 0.1
MAX_WHOLE_CELLS = 50
"""Cells of the table of all labels up to which whole numbers are searched for; beyond, counts may be fractions."""
ATTACKS = ("counts", "labels", "certain", "numbers")
_STEP = -(-MIN_PAIR_COUNT // 2)


@dataclass(frozen=True)
class RarePair:
    """Two levels that few people have together, by their places among the label variables and their levels."""

    variables: tuple[int, int]
    levels: tuple[int, int]
    people: int


@dataclass(frozen=True)
class LabelTables:
    """The label variables of a plan, and all two-way counts of them as the attacker sees them."""

    plan: StudyPlan
    summary: Summary

    @property
    def labels(self) -> list[Categorical]:
        return [variable for variable in self.plan.variables if isinstance(variable, Categorical)]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(variable.levels) for variable in self.labels)

    def pair(self, i: int, j: int) -> Array:
        counts = count_pairs(self.summary, self.plan, self.labels[i].name, self.labels[j].name)
        return np.asarray(counts.astype(np.float64))

    def blocks(self, without: tuple[int, int] | None = None) -> Iterator[tuple[tuple[int, int], Array]]:
        for pair in combinations(range(len(self.shape)), 2):
            if pair != without:
                yield pair, self.pair(*pair)


def rare_pairs(exact: LabelTables) -> list[RarePair]:
    return [
        RarePair(pair, (i, j), int(counts[i, j]))
        for pair, counts in exact.blocks()
        for i, j in np.argwhere((counts > 0) & (counts < MIN_PAIR_COUNT)).tolist()
    ]


# Counts


def guess_count(seen: LabelTables, cell: RarePair, *, known: bool) -> int:
    """The likeliest count from 1 to 7, if `known` given the rounded one; without, given how common both labels are."""
    counts = seen.pair(*cell.variables)
    expected = counts.sum(axis=1)[cell.levels[0]] * counts.sum(axis=0)[cell.levels[1]] / counts.sum()
    candidates = np.arange(1, MIN_PAIR_COUNT)
    if known:
        if not seen.summary.coarsened:
            return int(counts[cell.levels])
        rounded = [surrounding_multiples(count, expected, _STEP)[0] for count in candidates.tolist()]
        possible = candidates[np.array(rounded) == counts[cell.levels]]
        candidates = possible if len(possible) else candidates
    return int(candidates[poisson.pmf(candidates, max(expected, 0.1)).argmax()])


# Labels


def fit_table(seen: LabelTables, without: tuple[int, int] | None = None) -> Array:
    """The table of all labels with these two-way counts and the largest entropy, by iterative proportional fitting."""
    table = np.full(seen.shape, seen.summary.rows / np.prod(seen.shape))
    blocks = list(seen.blocks(without))
    for _ in range(100):
        for pair, counts in blocks:
            others = tuple(k for k in range(len(seen.shape)) if k not in pair)
            now = table.sum(axis=others)
            ratio = np.divide(counts, now, out=np.zeros_like(counts), where=now > 1e-12)
            table *= np.expand_dims(ratio, others)
    return table


def likeliest_rows(table: Array, cell: RarePair) -> list[tuple[int, ...]]:
    """The most expected rows of labels among people with a pair, as many as there are."""
    part = {where: table[where] for where in product(*map(range, table.shape)) if _has_pair(where, cell)}
    total = sum(part.values()) or 1.0
    left = {where: value * cell.people / total for where, value in part.items()}
    rows = []
    for _ in range(cell.people):
        best = max(left, key=lambda where: left[where])
        left[best] -= 1.0
        rows.append(best)
    return rows


def certain_rows(seen: LabelTables, cell: RarePair, *, use_pair: bool) -> list[tuple[int, ...]]:
    """Rows of labels that every table of whole numbers with these two-way counts has among people with the pair."""
    cells = list(product(*map(range, seen.shape)))
    rows, low, high = [], [], []
    for (i, j), counts in seen.blocks(None if use_pair else cell.variables):
        slack = _STEP - 1 if (seen.labels[i].name, seen.labels[j].name) in seen.summary.coarsened else 0
        for a, b in np.ndindex(*counts.shape):
            rows.append([float(where[i] == a and where[j] == b) for where in cells])
            low.append(max(counts[a, b] - slack, 0))
            high.append(counts[a, b] + slack)
    for i, size in enumerate(seen.shape):
        margin = seen.pair(i, i + 1).sum(axis=1) if i + 1 < len(seen.shape) else seen.pair(0, i).sum(axis=0)
        for a in range(size):
            rows.append([float(where[i] == a) for where in cells])
            low.append(margin[a])
            high.append(margin[a])
    limits = LinearConstraint(np.array(rows), np.array(low), np.array(high))
    found = []
    whole = np.full(len(cells), int(len(cells) <= MAX_WHOLE_CELLS))
    for k, where in enumerate(cells):
        if _has_pair(where, cell):
            goal = np.zeros(len(cells))
            goal[k] = 1.0
            solved = milp(goal, constraints=limits, integrality=whole, bounds=Bounds(0, np.inf))
            found += [where] * (math.ceil(solved.fun - 1e-6) if solved.success else 0)
    return found


def _has_pair(where: tuple[int, ...], cell: RarePair) -> bool:
    return (where[cell.variables[0]], where[cell.variables[1]]) == cell.levels


def count_common(rows: list[tuple[int, ...]], true: list[tuple[int, ...]]) -> int:
    """How many rows both lists have, each row as often as it is in both."""
    return sum(min(rows.count(row), true.count(row)) for row in set(rows))


# Numbers


def mean_in_pair(seen: LabelTables, cell: RarePair, number: Continuous, *, use_pair: bool) -> float:
    """The mean of a number among people with a pair, in scales: of the nearest combination of both labels' sums."""
    spans, moments = seen.plan.layout.spans, seen.summary.moments / float(GRID**2)
    first, second = (seen.labels[v].name for v in cell.variables)
    places = [0, spans[first].start + cell.levels[0], spans[second].start + cell.levels[1]]
    value = spans[number.name].start
    sums, inner = moments[places, value] * seen.plan.clip, moments[np.ix_(places, places)]
    if not use_pair:
        inner[1, 2] = inner[2, 1] = inner[1, 1] * inner[2, 2] / inner[0, 0]
    people = max(inner[1, 2], 1.0)
    weights = np.linalg.lstsq(inner, np.full(3, people), rcond=None)[0]
    leverage = float(weights.sum())  # the sum of the combination over one person with the pair
    mean, prior = float(weights @ sums) / people, sums[0] / inner[0, 0]
    return mean + (1 - leverage) * prior if leverage < 1 else mean


# All of it


def attack_site(table: Table, plan: StudyPlan, *, certain: bool) -> Iterator[tuple[str, str, int, int]]:
    """Yield attack, what is seen, hits, and how many could be hit."""
    exact = LabelTables(plan, summarize(table, plan, plan.clients[0]))
    sent = LabelTables(plan, coarsen_summary(exact.summary, plan, required_cell_count(plan), MIN_PAIR_COUNT)[0])
    codes = [np.searchsorted(variable.levels, table[variable.name]) for variable in exact.labels]
    people = list(zip(*(one.tolist() for one in codes), strict=True))
    numbers = [variable for variable in plan.variables if isinstance(variable, Continuous)]
    fits = {"exact": fit_table(exact), "sent": fit_table(sent)}
    for cell in rare_pairs(exact):
        there = np.array([_has_pair(where, cell) for where in people])
        true = [where for where, inside in zip(people, there, strict=True) if inside]
        seen_counts = {
            "exact": guess_count(exact, cell, known=True),
            "sent": guess_count(sent, cell, known=True),
            "guess": guess_count(exact, cell, known=False),
        }
        for what, count in seen_counts.items():
            yield "counts", what, int(count == cell.people), 1
        for what, fit in (*fits.items(), ("guess", fit_table(exact, cell.variables))):
            yield "labels", what, count_common(likeliest_rows(fit, cell), true), cell.people
        if certain:
            for what, seen, use in (("exact", exact, True), ("sent", sent, True), ("guess", exact, False)):
                yield "certain", what, count_common(certain_rows(seen, cell, use_pair=use), true), cell.people
        for number in numbers:
            values = (table[number.name][there] - number.location) / number.scale
            spread = float(np.std(table[number.name]) / number.scale)
            for what, seen, use in (("exact", exact, True), ("sent", sent, True), ("guess", exact, False)):
                near = np.abs(mean_in_pair(seen, cell, number, use_pair=use) - values) <= NEAR * spread
                yield "numbers", what, int(near.sum()), len(values)


def attack_sites(n: int, seeds: range, *, certain: bool = True) -> Total:
    """Hits and how many could be hit, by attack and by what is seen."""
    tables = (table for seed in seeds for table in simulate_labelled(n, seed, clients=1).tables.values())
    return add_up(one for table in tables for one in attack_site(table, plan_of(table), certain=certain))


def add_up(found: Iterable[tuple[str, str, int, int]]) -> Total:
    """Add the hits of `attack_site`, and how many could be hit, by attack and by what is seen."""
    total: Total = {}
    for attack, what, hits, of in found:
        before = total.get((attack, what), (0, 0))
        total[attack, what] = before[0] + hits, before[1] + of
    return total


def p_value(total: Total, attack: str, what: str) -> float:
    """Of Fisher's exact test that more are found than guessed."""
    (hits, of), (guessed, _) = total[attack, what], total[attack, "guess"]
    return float(fisher_exact([[hits, of - hits], [guessed, of - guessed]], alternative="greater").pvalue)


def succeeded(total: Total) -> list[str]:
    """The attacks that find more in what leaves than they may."""
    tried = [attack for attack, what in total if what == "sent"]
    return [attack for attack in tried if p_value(total, attack, "sent") < 0.001]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seeds", type=int, default=10, help="tables of each size (default 10)")
    parser.add_argument("--first", type=int, default=1000, help="the first seed (default 1000)")
    parser.add_argument("--rows", type=int, nargs="+", default=[200, 300, 500, 1000])
    options = parser.parse_args()
    seeds = range(options.first, options.first + (2 if options.quick else options.seeds))
    sizes = [300] if options.quick else options.rows
    print(f"people with a rare pair of labels; seeds {seeds[0]}..{seeds[-1]}")
    print(f"{'n':>6}  {'attack':10}{'of':>7}{'exact':>9}{'sent':>9}{'guess':>9}{'p, sent':>10}")
    broken = []
    for n in sizes:
        total = attack_sites(n, seeds)
        for attack in ATTACKS:
            shares = [total[attack, what][0] / total[attack, what][1] for what in ("exact", "sent", "guess")]
            shown = "".join(f"{100 * share:7.1f} %" for share in shares)
            print(
                f"{n:6}  {attack:10}{total[attack, 'sent'][1]:7}{shown}{p_value(total, attack, 'sent'):10.1g}",
                flush=True,
            )
        broken += [f"{attack} at n = {n}" for attack in succeeded(total)]
    if broken:
        raise SystemExit(f"found more than may be: {', '.join(broken)}")


if __name__ == "__main__":
    main()
