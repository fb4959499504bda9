"""The values of people with a rare label: python -m benchmarks.attacks.rare_level --help

The summary tells, for every label, the sums of a number's m columns over those who have it. Each number is solved for
by itself, from many starts; what is found is the mean of all solutions, sorted. A value counts as found if it is within
0.01 or 0.1 standard deviations of the one at its place in the order. Beside it stand two guesses without these sums: a
draw of as many other people's values, and the quantiles of other people's values, moved and stretched to the mean and
the standard deviation of those with the label, which any table of means tells.
What leaves a site has no such sums where the site merges the level with the other one, as the last column says.
"Spiked" numbers are 0 for nine people in ten. There the attacker tries how many of those with the label are not.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np

from benchmarks.attacks.common import (
    Array,
    Attacker,
    Rng,
    Table,
    descend,
    plan_of,
    refusal_of,
    sent_summary,
    summary_of,
)
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.summary import Summary
from fedcdh.summaries.variables import Categorical, Continuous

LABEL = "yes"
MERGED = "the site merges the level with the other one"


def add_rare_level(n: int, people: int, rng: Rng, *, spiked: bool = False) -> Table:
    """Return three continuous variables and a level that a given number of people have."""
    numbers = {f"v{j}": rng.standard_normal(n) for j in range(3)}
    if spiked:
        numbers = {name: np.where(rng.random(n) < 0.9, 0.0, np.abs(x) + 0.5) for name, x in numbers.items()}
    return {**numbers, "label": np.where(rng.permutation(n) < people, LABEL, "no")}


def values_of(plan: StudyPlan, summary: Summary, variable: Continuous, rng: Rng, *, spiked: bool, starts: int) -> Array:
    """The sorted values of this number among those with the label, as far as the sums tell them."""
    spans = plan.layout.spans
    labels = next(variable for variable in plan.variables if isinstance(variable, Categorical))
    place = spans[labels.name].start + labels.levels.index(LABEL)
    told = summary.moments[place, np.r_[place, spans[variable.name]]].astype(np.float64)
    people = round(told[0] / recovered_per_person(summary))
    alone = Attacker(replace(plan, variables=(variable,)))
    sums = told[1:] / np.sqrt(recovered_per_person(summary))
    zero = alone.features(alone.scaled({variable.name: np.zeros(1)}))[0, 1:]
    for others in range(people + 1) if spiked else (people,):
        found, rest = _solve_people(alone, sums - (people - others) * zero, others, rng, starts)
        if rest < 2.0:
            break
    known = np.r_[found, np.full(people - others, alone.scaled({variable.name: np.zeros(1)})[0, 0])]
    return np.sort(known)


def shape_values(values: Array, others: Array) -> Array:
    """What to guess from mean and standard deviation of these values, and the distribution of other people's."""
    shape = np.quantile(others, (np.arange(len(values)) + 0.5) / len(values))
    return np.asarray(values.mean() + (shape - shape.mean()) * values.std() / (shape.std() or 1.0))


def recovered_per_person(summary: Summary) -> float:
    return float(summary.moments[0, 0]) / summary.rows


def _solve_people(alone: Attacker, sums: Array, people: int, rng: Rng, starts: int) -> tuple[Array, float]:
    """The mean of all sorted solutions, and what the best of them leaves, in standard deviations of rounding."""
    scale = np.sqrt(max(people, 1) / 12)
    if not people:
        return np.zeros(0), float(np.sqrt((sums**2).mean()) / scale)

    def left(rows: Array) -> Array:
        return np.asarray(alone.features(rows[..., None])[..., 1:].sum(axis=1) - sums)

    def slope(rows: Array) -> Array:
        return np.asarray(alone.slopes(rows[..., None])[:, :, 0].transpose(0, 2, 1))

    rows = descend(rng.standard_normal((starts, people)), left, slope)
    rest = np.sqrt((left(rows) ** 2).mean(axis=1)) / scale
    good = rest <= max(2.0, 1.1 * rest.min())
    return np.sort(rows[good], axis=1).mean(axis=0), float(rest.min())


def count_hits(n: int, people: int, seed: int, *, spiked: bool, starts: int = 100) -> tuple[Array, str]:
    """Of values that are no spike: found within 0.01 and 0.1, guessed within 0.1 both ways; and what the gate says."""
    rng = np.random.default_rng([seed, n, people, 3])
    table = add_rare_level(n, people, rng, spiked=spiked)
    plan = plan_of(table)
    summary, attacker, there = summary_of(table, plan), Attacker(plan), table["label"] == LABEL
    scaled, found = attacker.scaled(table), []
    for j, variable in enumerate(attacker.numbers):
        true = np.sort(scaled[there, j])
        guess = values_of(plan, summary, variable, rng, spiked=spiked, starts=starts)
        chance = np.sort(rng.choice(scaled[~there, j], people, replace=False))
        shape = shape_values(true, scaled[~there, j])
        counted = true != (0 - variable.location) / variable.scale
        near = [np.abs(guess - true) <= 0.01, *(np.abs(one - true) <= 0.1 for one in (guess, chance, shape))]
        found.extend(np.array(near).T[counted])
    refused = refusal_of(table, plan)
    merged = not refused and ("label",) in sent_summary(table, plan).coarsened
    return np.array(found, dtype=np.float64).reshape(-1, 4), MERGED if merged else refused


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seeds", type=int, default=10, help="from 1000 on (default 10)")
    parser.add_argument("--people", type=int, nargs="+", default=[1, 2, 4, 6, 8, 12, 20, 40])
    options = parser.parse_args()
    seeds = range(1000, 1000 + (2 if options.quick else options.seeds))
    for spiked in (False, True):
        print(f"\n3 {'spiked ' if spiked else ''}numbers, seeds {seeds[0]}..{seeds[-1]}")
        heads = "".join(f"{head:>10}" for head in ("0.01 sd", "0.1 sd", "a draw", "mean, sd"))
        print(f"{'n':>8}{'with the label':>16}{'values':>8}{heads}   the default policy")
        for n in (1000,) if options.quick else (1000, 100_000):
            for people in options.people:
                every = [count_hits(n, people, seed, spiked=spiked) for seed in seeds]
                found, merges = np.concatenate([one for one, _ in every]), sum(said == MERGED for _, said in every)
                refused = sum(bool(said) for _, said in every) - merges
                cells = "".join(f"{100 * share:8.0f} %" for share in found.mean(axis=0)) if len(found) else ""
                done = f"refuses {refused}, merges the level {merges} of {len(every)}"
                print(f"{n:8}{people:16}{len(found):8}{cells}   {done}", flush=True)


if __name__ == "__main__":
    main()
