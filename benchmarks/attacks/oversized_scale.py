"""A plan whose scale is far too large: python -m benchmarks.attacks.oversized_scale --help

Features are rounded to a grid. With a scale that is thousands of times too large, the number becomes 0 or 1, "below T"
or "above T", and the plan's location decides where T is. If k people lie above T, the summary holds the sums of all
columns of all other numbers over these k people, exactly, and from m sums up to m values can be computed. The sum of
three sites holds them as well, if nobody else lies above T.

The square of a number is rounded to 0 or 1 much earlier, at less than a hundred standard deviations: "farther from the
location than T".

The attacker writes the plan, and knows roughly where the largest values lie. The exit code is 1 if more than half of
the values are found within 0.1 standard deviations in tables that the default policy lets go.

`honest` counts the refusals of honest sites whose standard deviation is a small share of the plan's scale.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from benchmarks.attacks.common import Array, Attacker, Rng, Table, normal_rows, plan_of, refusal_of, summary_of
from benchmarks.attacks.extreme_group import MAX_FOUND, NEAR, solve_people
from fedcdh.summaries.encoder import GRID
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.variables import Continuous

LABELLED = "v0"


def value_plan(table: Table, people: int, ratio: float = 62_000.0) -> StudyPlan:
    """Return a plan that rounds the first number to a label of the people with the largest values."""
    honest, values = plan_of(table), np.sort(table[LABELLED])
    threshold = (values[-people] + values[-people - 1]) / 2
    scale = ratio * float(values.std())
    step = scale * honest.clip / GRID
    labelled = Continuous(LABELLED, threshold - step / 2, scale)
    return replace(honest, variables=(labelled, *honest.variables[1:]))


def square_plan(table: Table, people: int) -> StudyPlan:
    """Return a plan that rounds the square of the first number to a label of the people farthest from the mean.

    A scale of less than a hundred standard deviations is enough.
    """
    honest, mean = plan_of(table), float(table[LABELLED].mean())
    distances = np.sort(np.abs(table[LABELLED] - mean))
    threshold = (distances[-people] + distances[-people - 1]) / 2
    labelled = Continuous(LABELLED, mean, float(threshold / (honest.clip * np.sqrt(0.5 / GRID))))
    return replace(honest, variables=(labelled, *honest.variables[1:]))


PLANS: dict[str, Callable[[Table, int], StudyPlan]] = {
    "value": value_plan,
    "value, 10^6 sd": lambda table, people: value_plan(table, people, 1e6),
    "square": square_plan,
}


def attack_label(
    tables: Sequence[Table], plan: StudyPlan, column: int, there: npt.NDArray[np.intp], rng: Rng
) -> tuple[float, float, float]:
    """The shares of values found and guessed, and the median error in sd, from the sum of all sites."""
    attacker, summaries = Attacker(plan), [summary_of(table, plan) for table in tables]
    moments = np.sum([summary.moments for summary in summaries], axis=0)
    total = replace(summaries[0], moments=moments, rows_read=sum(summary.rows_read for summary in summaries))
    people = int(moments[column, column])  # if they have the value 1, and all others 0
    if people != len(there) or moments[0, column] != people * GRID:
        return 0.0, 0.0, np.inf
    sums, scaled = moments[column].astype(np.float64), attacker.scaled(tables[0])
    found, guessed, errors = [], [], []
    for j in range(1, len(attacker.numbers)):
        true, spread = np.sort(scaled[there, j]), scaled[:, j].std()
        solved = solve_people(attacker, j, total, sums, 1.0, people, rng)
        guess = np.quantile(scaled[:, j], (np.arange(people) + 0.5) / people)
        found.append((np.abs(solved - true) <= NEAR * spread).mean())
        guessed.append((np.abs(guess - true) <= NEAR * spread).mean())
        errors.append(np.median(np.abs(solved - true)) / spread)
    return float(np.mean(found)), float(np.mean(guessed)), float(np.median(errors))


def measure(n: int, people: int, what: str, sites: int, seed: int) -> tuple[float, float, float, float, bool]:
    """Return what `attack_label` returns, the ratio of scale to sd, and whether the first site refuses."""
    rng = np.random.default_rng([seed, n, people, sites])
    tables = [normal_rows(n, 4, rng) for _ in range(sites)]
    values = tables[0][LABELLED]
    plan, square = PLANS[what](tables[0], people), what == "square"
    there = np.argsort(-np.abs(values - values.mean()) if square else -values)[:people]
    for table in tables[1:]:  # nobody there lies beyond T
        table[LABELLED] = np.clip(table[LABELLED], values.mean() - 1, values.mean() + 1)
    column = plan.layout.spans[LABELLED].start + square
    labelled = next(variable for variable in Attacker(plan).numbers if variable.name == LABELLED)
    found = attack_label(tables, plan, column, there, rng)
    return *found, labelled.scale / float(values.std()), bool(refusal_of(tables[0], plan))


def show_attack(seeds: Sequence[int], sizes: Sequence[int], groups: Sequence[int], sites: int) -> list[Array]:
    """Print what is found; return the shares that are found and guessed in the tables that the policy lets go."""
    print(f"\n{sites} site(s), seeds {seeds[0]}..{seeds[-1]}: other values of k people beyond T, within {NEAR} sd")
    head = f"{'n':>8}{'people':>8}{'scale/sd':>10}{'found':>8}{'guessed':>9}{'error':>10}   the default policy"
    print(f"{'rounded to a label':20}{head}")
    left = []
    for what in PLANS:
        for n in sizes:
            for people in groups:
                every = np.array([measure(n, people, what, sites, seed) for seed in seeds])
                found, guessed, _, ratio, refused = every.mean(axis=0)
                left += [one[:2] for one in every if not one[-1]]
                cells = f"{ratio:10.3g}{100 * found:6.0f} %{100 * guessed:7.0f} %{np.median(every[:, 2]):10.1g}"
                count = f"refuses {round(refused * len(every))} of {len(every)}"
                print(f"{what:20}{n:8}{people:8}{cells}   {count}", flush=True)
    return left


def count_values(values: Array, ratio: float, clip: float) -> tuple[int, int]:
    """Count different values of the rounded number and of its square."""
    linear = values / values.std() / ratio / clip
    return len(np.unique(np.rint(linear * GRID))), len(np.unique(np.rint(linear**2 * GRID)))


def show_honest(seeds: Sequence[int], n: int = 1000) -> None:
    print(f"honest sites of {n} rows, 4 normal numbers, one with a smaller standard deviation than the plan's scale;")
    print(f"its mean is d scales from the location, seeds {seeds[0]}..{seeds[-1]}: different values, and refusals")
    print(f"{'scale/sd':>10}{'values':>8}{'squares':>9}" + "".join(f"{f'd = {d:g}':>10}" for d in (0, 0.1, 1)))
    for ratio in (1, 3, 10, 20, 30, 50, 70, 100, 200, 290, 500, 1000, 3000, 10_000):
        tables = [normal_rows(n, 4, np.random.default_rng([seed, n, 21])) for seed in seeds]
        counts = np.median([count_values(table[LABELLED], ratio, 30.0) for table in tables], axis=0)
        cells = []
        for distance in (0.0, 0.1, 1.0):
            refused = 0
            for table in tables:
                plan = plan_of(table)
                scale = ratio * float(table[LABELLED].std())
                apart = Continuous(LABELLED, float(table[LABELLED].mean()) + distance * scale, scale)
                refused += bool(refusal_of(table, replace(plan, variables=(apart, *plan.variables[1:]))))
            cells.append(f"{refused:4} of {len(tables)}")
        print(f"{ratio:10}{counts[0]:8.0f}{counts[1]:9.0f}" + "".join(f"{cell:>10}" for cell in cells), flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("attack", "honest"), nargs="?", default="attack")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seeds", type=int, default=10, help="number of seeds (default 10)")
    parser.add_argument("--first-seed", type=int, default=1000, help="below 1000 for choosing limits (default 1000)")
    options = parser.parse_args(arguments)
    seeds = range(options.first_seed, options.first_seed + (2 if options.quick else options.seeds))
    if options.what == "honest":
        show_honest(seeds)
        return 0
    groups = (2, 3) if options.quick else (1, 2, 3, 6, 11)
    left = show_attack(seeds, (300,) if options.quick else (1000, 20_000), groups, 1)
    left += show_attack(seeds, (300,) if options.quick else (1000,), groups, 3)
    if not left:
        print("nothing leaves")
        return 0
    found, guessed = np.mean(left, axis=0)
    print(f"in the {len(left)} tables that leave: found {100 * found:.0f} %, guessed {100 * guessed:.0f} %")
    return int(found > MAX_FOUND)


if __name__ == "__main__":
    sys.exit(main())
