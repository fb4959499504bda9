"""All attacks on tables that just pass the default policy: python -m benchmarks.attacks.red_team --help

Counted are: rows recovered to within 0.1 standard deviations in every value (`reconstruct`), beside as many rows of
another table of the same kind; of those who have the outermost value of a number, or of several at once, their other
values within 0.1 (`outlier`), beside those of somebody else; of the people with the rarest label, values within 0.1 of
the one at the same place in the order (`rare_level`), beside guesses from their mean and standard deviation. p is that
of Fisher's exact test, one-sided: below 0.001, the policy lets through more than chance. Last, whether a second summary
without one of the rows is refused.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.stats import fisher_exact

from benchmarks.attacks import differencing, outlier, rare_level
from benchmarks.attacks.common import (
    Array,
    Attacker,
    Rng,
    Table,
    is_within,
    normal_rows,
    plan_of,
    recover_rows_jointly,
    refusal_of,
    sent_summary,
)
from fedcdh.privacy.disclosure.thresholds import required_rows
from fedcdh.summaries.summary import Summary

NEAR = 0.1
STEPS = 200
Draw = Callable[[int, Rng], Array]


def _make_table(draw: Draw, d: int = 4) -> Callable[[int, Rng], Table]:
    return lambda n, rng: {f"v{j}": draw(n, rng) for j in range(d)}


def _with_level(n: int, rng: Rng) -> Table:
    """A label that as few people have as may."""
    return {**normal_rows(n, 3, rng), "label": np.where(rng.permutation(n) < 12, rare_level.LABEL, "no")}


def _with_two_levels(n: int, rng: Rng) -> Table:
    """Pairs of labels that as few people have as may."""
    pair = np.minimum(rng.permutation(n) // 12, 3)
    return {
        **normal_rows(n, 3, rng),
        "label": np.where(pair == 0, rare_level.LABEL, np.where(pair == 1, "no", "unknown")),
        "other": np.where(pair % 2 == 0, "a", "b"),
    }


def _with_rare_pairs(n: int, rng: Rng) -> Table:
    """Three people with two labels that many have each, and a level of two people, which the site merges."""
    label = np.where(rng.permutation(n) < 30, rare_level.LABEL, "no")
    other = np.where(rng.random(n) < 0.4, "a", "b")
    other[label == rare_level.LABEL] = np.where(np.arange(30) < 3, "a", "b")
    third = np.array(["common"] * n)
    third[rng.permutation(n)[:2]] = "rare"
    return {**normal_rows(n, 3, rng), "label": label, "other": other, "third": third}


def _with_spike(n: int, rng: Rng) -> Table:
    """Make most values 0, and a level so common that enough of its people have other values."""
    rows = {f"v{j}": np.where(rng.random(n) < 0.7, 0.0, rng.uniform(1, 3, n)) for j in range(3)}
    return {**rows, "label": np.where(rng.permutation(n) < 48, rare_level.LABEL, "no")}


def _with_few_values(n: int, rng: Rng) -> Table:
    return {**normal_rows(n, 2, rng), "v2": rng.integers(0, 3, n) * 1.0, "v3": rng.integers(0, 2, n) * 10.0}


def _with_duplicates(n: int, rng: Rng) -> Table:
    half = normal_rows((n + 1) // 2, 4, rng)
    return {name: np.r_[column, column][:n] for name, column in half.items()}


def _with_near_duplicates(n: int, rng: Rng) -> Table:
    table = normal_rows(n, 4, rng)
    return {**table, "v1": table["v0"] + 0.05 * rng.standard_normal(n)}


def _with_outlier(numbers: int, limit: float) -> Callable[[int, Rng], Table]:
    return lambda n, rng: outlier.outlier_at_limit(n, 6, numbers, limit, int(rng.integers(1 << 30)))


FIXTURES: dict[str, Callable[[int, Rng], Table]] = {
    "normal, 1 number": lambda n, rng: normal_rows(n, 1, rng),
    "normal, 2 numbers": lambda n, rng: normal_rows(n, 2, rng),
    "normal, 6 numbers": lambda n, rng: normal_rows(n, 6, rng),
    "uniform": _make_table(lambda n, rng: rng.uniform(-1, 1, n)),
    "logs of heavy tails": _make_table(lambda n, rng: np.log(rng.lognormal(0, 2, n) + 0.1)),
    "t with 5 degrees, cut at 3": _make_table(lambda n, rng: np.clip(rng.standard_t(5, n), -3, 3)),
    "whole years": _make_table(lambda n, rng: np.round(30 + 55 * rng.beta(2, 2, n))),
    "few values": _with_few_values,
    "counts around 30": _make_table(lambda n, rng: rng.poisson(30, n).astype(float)),
    "every row twice": _with_duplicates,
    "two nearly the same": _with_near_duplicates,
    "two far modes": _make_table(lambda n, rng: rng.choice([-5.0, 5.0], n) + rng.standard_normal(n)),
    "a label at the limit": _with_level,
    "pairs of labels at the limit": _with_two_levels,
    "rare pairs and levels": _with_rare_pairs,
    "spikes, a label at the limit": _with_spike,
    "somebody stands out by 1 number": _with_outlier(1, 0.985),
    "somebody stands out by 5 numbers": _with_outlier(5, 0.93),
}


@dataclass(frozen=True)
class Hits:
    """Count people, and how many of them were found and guessed."""

    found: int = 0
    guessed: int = 0
    of: int = 0

    def __add__(self, other: Hits) -> Hits:
        return Hits(self.found + other.found, self.guessed + other.guessed, self.of + other.of)

    @property
    def p_value(self) -> float:
        if not self.of:
            return 1.0
        table = [[self.found, self.of - self.found], [self.guessed, self.of - self.guessed]]
        return float(fisher_exact(table, alternative="greater").pvalue)

    def __str__(self) -> str:
        if not self.of:
            return f"{'':26}"
        flag = " *" if self.p_value < 0.001 else "  "
        return f"{self.found:6}{self.guessed:6}{self.of:6}{self.p_value:6.0e}{flag}"


def count_hits(near: Array, guess: Array) -> Hits:
    return Hits(int(near.sum()), int(guess.sum()), near.size)


def tables_at_limit(name: str, seed: int, tries: int = 60) -> Table | None:
    """A table of this kind with as few rows as the policy lets pass, the first that does."""
    for k in range(tries):
        rng = np.random.default_rng([seed, k, 11])
        n = required_rows(plan_of(FIXTURES[name](400, rng)))
        if not refusal_of(table := FIXTURES[name](n, rng), plan_of(table)):
            return table
    return None


def rows(table: Table, other: Table, attacker: Attacker, summary: Summary, rng: Rng, steps: int) -> Hits:
    true = attacker.scaled(table)
    found = recover_rows_jointly([(attacker, summary)], rng, restarts=1, steps=steps)
    return count_hits(is_within(true, found, NEAR), is_within(true, attacker.scaled(other), NEAR))


def extreme_people(table: Table, attacker: Attacker, summary: Summary, rng: Rng) -> Hits:
    """Whose value of a number is the largest: what follows from that one, and from others that may be theirs, too."""
    true, d = attacker.scaled(table), len(attacker.numbers)
    spread, total = true.std(axis=0), Hits()
    far = [outlier.find_extreme_value(attacker, summary, j) for j in range(d)]
    for j in range(d):
        known = {j: far[j]}
        for i in range(d):
            if i != j and outlier.leverage_at(attacker, summary, {**known, i: far[i]}) <= 1.01:
                known[i] = far[i]
        rest = [i for i in range(d) if i not in known]
        person = int(np.abs(true[:, j] - far[j]).argmin())
        somebody = true[rng.integers(len(true))]
        told = outlier.read_row(attacker, summary, known)
        near = [np.abs(one - true[person])[rest] <= NEAR * spread[rest] for one in (told, somebody)]
        total += count_hits(*near)
    return total


def people_with_level(table: Table, attacker: Attacker, summary: Summary, rng: Rng, starts: int) -> Hits:
    total, plan = Hits(), attacker.plan
    if "label" not in table:
        return total
    there, scaled = table["label"] == rare_level.LABEL, attacker.scaled(table)
    for j, variable in enumerate(attacker.numbers):
        values = scaled[:, j]
        zero = -variable.location / variable.scale
        spiked = bool((values == zero).mean() > 0.3)
        true, counted = np.sort(values[there]), np.sort(values[there]) != zero
        found = rare_level.values_of(plan, summary, variable, rng, spiked=spiked, starts=starts)
        guess = rare_level.shape_values(true, values[~there])
        total += count_hits(*(np.abs(one - true)[counted] <= NEAR * values.std() for one in (found, guess)))
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seeds", type=int, default=5, help="tables of each kind, from 1000 on (default 5)")
    parser.add_argument("--steps", type=int, default=STEPS, help=f"of the attack on all rows (default {STEPS})")
    parser.add_argument("--only", nargs="+", choices=FIXTURES, default=list(FIXTURES), metavar="KIND")
    options = parser.parse_args()
    seeds = range(1000, 1000 + (2 if options.quick else options.seeds))
    steps = 10 if options.quick else options.steps
    print(f"found, guessed, of how many, p (* below 0.001); seeds {seeds[0]}..{seeds[-1]}")
    heads = "".join(f"{head:>20}{'':6}" for head in ("rows", "who is outermost", "who has the label"))
    print(f"{'':34}{'n':>5}  {heads}second refused")
    for name in options.only:
        total, refused, n = [Hits(), Hits(), Hits()], 0, 0
        for seed in seeds:
            table, other = tables_at_limit(name, seed), tables_at_limit(name, seed + 5000)
            if table is None or other is None:
                continue
            rng = np.random.default_rng([seed, 12])
            attacker, n = Attacker(plan_of(table)), len(table["v0"])
            summary = sent_summary(table, attacker.plan)
            found = (
                rows(table, other, attacker, summary, rng, steps),
                extreme_people(table, attacker, summary, rng),
                people_with_level(table, attacker, summary, rng, 60),
            )
            total = [before + one for before, one in zip(total, found, strict=True)]
            fewer = {key: column[1:] for key, column in table.items()}
            refused += bool(differencing.try_second_release(table, fewer, attacker.plan))
        print(f"{name:34}{n:5}  {''.join(map(str, total))}{refused:6} of {len(seeds)}", flush=True)


if __name__ == "__main__":
    main()
