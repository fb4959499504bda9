"""The values of people who share an extreme value: python -m benchmarks.attacks.extreme_group --help

A few people have the same extreme value x of one number, for instance 999, a code for missing values. The weights
φ(x)ᵀ M⁻¹ φᵢ are then nearly 1/k for these k people and 0 for all others. So the products of the columns give the sums
of every column of every other number over them, and from the sums of m columns up to m values can be computed. The
attacker knows x and k. A value counts as found if it is within 0.1 standard deviations of the one at its place in the
order; the guess is the quantiles of all other people's values.

`attack` prints what is found, and what the default policy does; the exit code is 1 if more than half of the values are
found in tables that it lets go. `limits` prints what is found by the leverage of the group as a whole, from which
`max_group_leverage` was chosen. `honest` counts honest tables that the limits refuse. `uneven` shows why the largest
eigenvalue of a group says little in honest tables: its direction has most of its weight on one or two people.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from benchmarks.attacks.common import (
    SITE,
    Array,
    Attacker,
    Rng,
    Table,
    descend,
    normal_rows,
    plan_of,
    refusal_of,
    summary_of,
)
from benchmarks.bench_leverage import DISTRIBUTIONS, Draw
from fedcdh.data.table import to_table
from fedcdh.privacy.disclosure.group_leverage import ALL_VARIABLES, GroupLeverage, GroupLimits, measure_groups
from fedcdh.privacy.disclosure.leverage import inverse_root
from fedcdh.privacy.disclosure.policy import Policy
from fedcdh.privacy.disclosure.row_scan import ScanOptions, scan_rows
from fedcdh.summaries.encoder import GRID, Encoder
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.summary import Summary

NEAR = 0.1
"""Standard deviations within which a value counts as found."""
MAX_FOUND = 0.5
"""The attack succeeds if more values than this share are found in tables that leave."""
EXTREME = "v0"
_MAX_PEOPLE = 11
_SMALLEST_EIGENVALUE = 0.02  # directions with less tell nothing
_SMALLEST_NOISE = 1e-5  # of a sum, in standard deviations: rounding leaves as much


def table_with_group(n: int, people: int, value: float, rng: Rng, numbers: int = 4) -> Table:
    """Return normal rows, of which the first few have the same value of the first number."""
    table = normal_rows(n, numbers, rng)
    table[EXTREME][:people] = value
    return table


def group_sums(plan: StudyPlan, summary: Summary, value: float, people: int) -> tuple[Array, float]:
    """The sums of all columns over the people with this value, and the leverage of the group as a whole."""
    spans = plan.layout.spans
    own = np.r_[0, spans[EXTREME]]
    number = next(v for v in plan.variables if v.name == EXTREME)
    alone = Attacker(replace(plan, variables=(number,)))
    features = np.rint(alone.features(alone.scaled({EXTREME: np.array([value])}))[0])
    root = inverse_root(summary.moments[np.ix_(own, own)])
    weights = root.T @ (root @ features)
    leverage = min(people * float(weights @ features), 1.0)
    mean = summary.moments[0] / (GRID * summary.rows)  # of every column, in steps of the grid
    weighted = weights @ summary.moments[own].astype(np.float64)
    about_mean = weighted - weighted[0] / GRID * mean
    return np.asarray(people * mean + about_mean * people / leverage), leverage


def solve_people(
    attacker: Attacker, number: int, summary: Summary, sums: Array, leverage: float, people: int, rng: Rng
) -> Array:
    """The values of a number, sorted, whose columns have these sums: the mean of the posterior distribution."""
    plan, variable = attacker.plan, attacker.numbers[number]
    alone, span = Attacker(replace(plan, variables=(variable,))), plan.layout.spans[variable.name]
    mean = summary.moments[0, span] / (GRID * summary.rows)
    square = summary.moments.diagonal()[span] / summary.rows
    spread = np.sqrt(np.maximum(square - mean**2, 1.0))
    noise = np.sqrt(people * ((1 - leverage) / leverage + _SMALLEST_NOISE**2))

    def left(rows: Array) -> Array:
        found = alone.features(rows[..., None])[..., 1:].sum(axis=1)
        return np.concatenate([(found - sums[span]) / spread / noise, rows], axis=1)

    def slope(rows: Array) -> Array:
        steep = alone.slopes(rows[..., None])[:, :, 0].transpose(0, 2, 1) / spread[:, None] / noise
        prior = np.broadcast_to(np.eye(people), (len(rows), people, people))
        return np.concatenate([steep, prior], axis=1)

    rows = descend(rng.standard_normal((60, people)), left, slope, steps=40)
    cost = (left(rows) ** 2).sum(axis=1)
    weights = np.exp(-0.5 * (cost - cost.min()))
    return np.asarray(np.sort(rows, axis=1).T @ (weights / weights.sum()))


def attack_group(table: Table, plan: StudyPlan, value: float, people: int, rng: Rng) -> tuple[float, float, float]:
    """The leverage of the group as a whole, and the shares of values that are found and guessed."""
    attacker, summary = Attacker(plan), summary_of(table, plan)
    sums, leverage = group_sums(plan, summary, value, people)
    scaled, found, guessed = attacker.scaled(table), [], []
    for j in range(1, len(attacker.numbers)):
        true, spread = np.sort(scaled[:people, j]), scaled[:, j].std()
        solved = solve_people(attacker, j, summary, sums, leverage, people, rng)
        guess = np.quantile(scaled[people:, j], (np.arange(people) + 0.5) / people)
        found.append((np.abs(solved - true) <= NEAR * spread).mean())
        guessed.append((np.abs(guess - true) <= NEAR * spread).mean())
    return leverage, float(np.mean(found)), float(np.mean(guessed))


def measure(n: int, people: int, value: float, seed: int) -> tuple[float, float, float, bool]:
    """Return what `attack_group` returns, and whether the default policy refuses the table."""
    rng = np.random.default_rng([seed, n, people, 20])
    table = table_with_group(n, people, value, rng)
    plan = plan_of(table)
    return *attack_group(table, plan, value, people, rng), bool(refusal_of(table, plan))


def show_attack(seeds: Sequence[int], sizes: Sequence[int], groups: Sequence[int], values: Sequence[float]) -> bool:
    """Print what is found; return whether the attack succeeds on what the default policy lets go."""
    head = f"{'n':>7}{'people':>8}{'value':>8}{'leverage':>11}{'found':>8}{'guessed':>9}   the default policy"
    print(f"k people share one value, seeds {seeds[0]}..{seeds[-1]}: other values within {NEAR} sd\n{head}")
    left: list[tuple[float, float]] = []
    for n in sizes:
        for people in groups:
            for value in values:
                every = [measure(n, people, value, seed) for seed in seeds]
                leverage, found, guessed, refused = (float(x) for x in np.mean(every, axis=0))
                left += [(one[1], one[2]) for one in every if not one[3]]
                shares = f"{leverage:11.5f}{100 * found:6.0f} %{100 * guessed:7.0f} %"
                print(f"{n:7}{people:8}{value:8g}{shares}   refuses {round(refused * len(every))} of {len(every)}")
    if not left:
        print("nothing leaves")
        return False
    found, guessed = np.mean(left, axis=0)
    print(f"in the {len(left)} tables that leave: found {100 * found:.0f} %, guessed {100 * guessed:.0f} %")
    return bool(found > MAX_FOUND)


def attack_outermost(draw: Draw, n: int, seed: int) -> tuple[bool, float, Array]:
    """Attack the eleven people with the largest values of a number, which differ, and are known to the attacker.

    Return whether a single row has a leverage above 0.99, the largest eigenvalue of the eleven, and for each of them
    the share of other values that is found. Any weights are used, and people are distinguished.
    """
    rng = np.random.default_rng([seed, n, 22])
    table = normal_rows(n, 4, rng)
    table[EXTREME] = draw(np.random.default_rng([seed, 0]), n)
    plan = plan_of(table)
    attacker, summary, spans = Attacker(plan), summary_of(table, plan), plan.layout.spans
    features = Encoder(plan, SITE)(to_table(table))
    own = np.r_[0, spans[EXTREME]]
    reduced = inverse_root(summary.moments[np.ix_(own, own)]) @ features[own]
    there = np.argsort(-table[EXTREME])[:_MAX_PEOPLE]
    eigenvalues, directions = np.linalg.eigh(reduced[:, there].T @ reduced[:, there])
    kept = eigenvalues > _SMALLEST_EIGENVALUE
    eigenvalues, directions = np.minimum(eigenvalues[kept], 1 - _SMALLEST_NOISE**2), directions[:, kept]
    scaled, found = attacker.scaled(table), []
    for j in range(1, len(attacker.numbers)):
        columns = features[spans[attacker.numbers[j].name]]
        mean, spread = columns.mean(axis=1), columns.std(axis=1)
        seen = (directions.T @ reduced[:, there].T @ reduced @ ((columns.T - mean) / spread)) / eigenvalues[:, None]
        solved = _solve_directions(attacker, j, seen, eigenvalues, directions, (mean, spread), rng)
        found.append(np.abs(solved - scaled[there, j]) <= NEAR * scaled[:, j].std())
    return bool((reduced**2).sum(axis=0).max() > 0.99), float(eigenvalues[-1]), np.mean(found, axis=0)


def _solve_directions(
    attacker: Attacker,
    number: int,
    seen: Array,
    eigenvalues: Array,
    directions: Array,
    standard: tuple[Array, Array],
    rng: Rng,
) -> Array:
    """The values of a number whose standardised columns have these weighted sums, in every direction."""
    alone = Attacker(replace(attacker.plan, variables=(attacker.numbers[number],)))
    precision = np.sqrt(eigenvalues / (1 - eigenvalues))[:, None]
    people, (mean, spread) = len(directions), standard

    def left(rows: Array) -> Array:
        columns = (alone.features(rows[..., None])[..., 1:] - mean) / spread
        rest = (np.einsum("kr,skm->srm", directions, columns) - seen) * precision
        return np.concatenate([rest.reshape(len(rows), -1), rows], axis=1)

    def slope(rows: Array) -> Array:
        steep = np.einsum("kr,skm->srmk", directions, alone.slopes(rows[..., None])[:, :, 0] / spread)
        prior = np.broadcast_to(np.eye(people), (len(rows), people, people))
        return np.concatenate([(steep * precision[..., None]).reshape(len(rows), -1, people), prior], axis=1)

    rows = descend(rng.standard_normal((60, people)), left, slope, steps=40)
    cost = (left(rows) ** 2).sum(axis=1)
    weights = np.exp(-0.5 * (cost - cost.min()))
    return np.asarray(rows.T @ (weights / weights.sum()))


def show_uneven(seeds: Sequence[int], n: int = 250) -> None:
    print(
        f"the eleven outermost of {n} people in honest tables without a row above 0.99, seeds {seeds[0]}..{seeds[-1]}:"
    )
    print(f"1 − the largest eigenvalue, and other values found within {NEAR} sd, from the outermost person inwards")
    for name in ("normal", "exponential", "lognormal, sigma 0.5", "t, 3 degrees of freedom"):
        every = [attack_outermost(DISTRIBUTIONS[name], n, seed) for seed in seeds]
        passing = [(rest, found) for above, rest, found in every if not above]
        rest = float(np.median([1 - one for one, _ in passing]))
        shares = "".join(f"{100 * share:4.0f} %" for share in np.mean([found for _, found in passing], axis=0))
        print(f"{name:26}{rest:10.1g}{shares}", flush=True)


def value_for_leverage(n: int, people: int, wanted: float, seed: int) -> float:
    """Return the value that gives the group this leverage as a whole."""
    low, high = 2.0, 200.0
    for _ in range(20):
        middle = float(np.sqrt(low * high))
        table = table_with_group(n, people, middle, np.random.default_rng([seed, n, people, 20]))
        plan = plan_of(table)
        leverage = group_sums(plan, summary_of(table, plan), middle, people)[1]
        low, high = (middle, high) if leverage < wanted else (low, middle)
    return low


def show_limits(seeds: Sequence[int], n: int, groups: Sequence[int]) -> None:
    leverages = (0.8, 0.9, 0.95, 0.97, 0.98, 0.99, 0.999, 0.9999)
    print(f"values found within {NEAR} sd by leverage of the group, n = {n}, seeds {seeds[0]}..{seeds[-1]}")
    print(f"{'people':>8}{'guessed':>9}" + "".join(f"{leverage:>9}" for leverage in leverages))
    for people in groups:
        cells, guesses = [], []
        for leverage in leverages:
            every = [measure(n, people, value_for_leverage(n, people, leverage, seed), seed) for seed in seeds]
            cells.append(np.mean([one[1] for one in every]))
            guesses.append(np.mean([one[2] for one in every]))
        shares = "".join(f"{100 * share:7.0f} %" for share in cells)
        print(f"{people:8}{100 * np.mean(guesses):7.0f} %{shares}", flush=True)


def largest_leverages(table: Table) -> tuple[float, GroupLeverage]:
    """Return the largest leverage of a row, and those of groups, over all variables and all columns together."""
    plan, policy = plan_of(table), Policy()
    scan = scan_rows(table, plan, SITE, ScanOptions(max_leverage=policy.max_leverage, max_group_people=_MAX_PEOPLE))
    summary = scan.summary(1.0)
    if scan.high_leverage is None:
        raise AssertionError("the scan was asked for rows of high leverage")
    found = measure_groups(scan.high_leverage.rows(summary), summary, plan, _MAX_PEOPLE)
    whole = np.max([found[name].whole for name in (*table, ALL_VARIABLES)], axis=0)
    weighted = np.max([found[name].weighted for name in (*table, ALL_VARIABLES)], axis=0)
    return scan.high_leverage.largest(summary), GroupLeverage(whole, weighted)


def show_honest(seeds: Sequence[int]) -> None:
    print(f"honest tables of 6 numbers above a limit, seeds {seeds[0]}..{seeds[-1]}: a row above 0.99, then also a")
    print("group as a whole above 0.98 (2 people: 0.99), 0.98, 0.95; any weights; the rule: the first and any weights")
    print(f"{'':32}{'n':>6}{'a row':>9}{'0.98*':>9}{'0.98':>9}{'0.95':>9}{'weights':>9}{'rule':>9}")
    for name, draw in DISTRIBUTIONS.items():
        for n in (250, 1000, 5000):
            tables = ({f"v{j}": draw(np.random.default_rng([seed, j]), n) for j in range(6)} for seed in seeds)
            found = [largest_leverages(table) for table in tables]
            row = np.array([one > 0.99 for one, _ in found])
            limits = GroupLimits()
            shares = [row]
            for limit in (limits.of_wholes(_MAX_PEOPLE - 1), 0.98, 0.95):
                shares.append(row | [bool((group.whole > limit).any()) for _, group in found])
            shares.append(row | [bool((group.weighted > limits.with_any_weights(3)).any()) for _, group in found])
            shares.append(row | [bool(group.people_above(limits)) for _, group in found])
            print(f"{name:32}{n:6}" + "".join(f"{100 * one.mean():7.0f} %" for one in shares), flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("attack", "limits", "honest", "uneven"), nargs="?", default="attack")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seeds", type=int, default=20, help="number of seeds (default 20)")
    parser.add_argument("--first-seed", type=int, default=1000, help="below 1000 for choosing limits (default 1000)")
    parser.add_argument("--people", type=int, nargs="+", help="sizes of groups (default 2 3 4 6 8 11)")
    options = parser.parse_args(arguments)
    seeds = range(options.first_seed, options.first_seed + (3 if options.quick else options.seeds))
    groups = options.people or ([2, 8] if options.quick else [2, 3, 4, 6, 8, 11])
    if options.what == "honest":
        show_honest(seeds)
    elif options.what == "uneven":
        show_uneven(seeds)
    elif options.what == "limits":
        show_limits(seeds, 1000, groups)
    else:
        sizes, values = ((300,), (5.0, 999.0)) if options.quick else ((300, 1000), (4.0, 5.0, 6.0, 10.0, 999.0))
        return int(show_attack(seeds, sizes, groups, values))
    return 0


if __name__ == "__main__":
    sys.exit(main())
