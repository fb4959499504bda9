"""A row with high leverage, and what can be read off for it: python -m benchmarks.attacks.outlier --help

No row is where the leverage K(x) = φ(x)ᵀ M⁻¹ φ(x) of the columns of a number is above 1, so the attacker finds the
largest value where K comes down to 1. The weights of that value, applied to any other number, give its value
up to √((1 − h)/h) standard deviations, h being the leverage of the row (`fedcdh.privacy.disclosure.leverage`). The
policy limits h for each variable by itself.

A row may have high leverage in k variables, in each as high as the policy allows. The columns of all k reveal more than
those of one: K of them all together is what counts. `rule` counts how many honest tables a limit for all columns would
refuse.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from benchmarks.attacks.common import Array, Attacker, Rng, Table, normal_rows, plan_of, refusal_of, summary_of
from benchmarks.bench_leverage import DISTRIBUTIONS
from fedcdh.summaries.summary import Summary

_ZERO_TOLERANCE = 1e-12


def roots(moments: Array) -> Array:
    """W with K(φ) = |W φ|²."""
    scales = np.sqrt(np.maximum(moments.diagonal(), 1.0))
    eigenvalues, vectors = np.linalg.eigh(moments / np.multiply.outer(scales, scales))
    told = eigenvalues > _ZERO_TOLERANCE * eigenvalues[-1]
    return np.asarray(vectors[:, told].T / np.sqrt(eigenvalues[told, None]) / scales)


def columns_of_variable(attacker: Attacker, variables: Sequence[int]) -> npt.NDArray[np.intp]:
    """The constant and the columns of these numbers, among `attacker.columns`."""
    m = (len(attacker.columns) - 1) // len(attacker.numbers)
    return np.array([0, *(1 + j * m + k for j in variables for k in range(m))])


def find_extreme_value(attacker: Attacker, summary: Summary, variable: int, reach: float = 25.0) -> float:
    """The largest value that anybody can have: where K comes down to 1."""
    columns = columns_of_variable(attacker, [variable])
    grid = np.linspace(-reach, reach, 20_001)
    rows = np.zeros((len(grid), len(attacker.numbers)))
    rows[:, variable] = grid
    root = roots(attacker.moments(summary)[np.ix_(columns, columns)])
    known = ((root @ attacker.features(rows)[:, columns].T) ** 2).sum(axis=0)
    return float(grid[np.flatnonzero(known <= 1.0 + 1e-6).max(initial=0)])


def read_row(attacker: Attacker, summary: Summary, known: dict[int, float]) -> Array:
    """All numbers of a row with these values."""
    columns = columns_of_variable(attacker, list(known))
    moments = attacker.moments(summary)
    row = np.zeros(len(attacker.numbers))
    row[list(known)] = list(known.values())
    features = attacker.features(row)[columns]
    root = roots(moments[np.ix_(columns, columns)])
    weights = root.T @ (root @ features)
    linear = 1 + np.arange(len(row)) * ((len(moments) - 1) // len(row))
    told = weights @ moments[np.ix_(columns, linear)] / (weights @ features)
    return np.asarray(told / float(attacker.features(row)[0]) * attacker.plan.clip)


def leverage_at(attacker: Attacker, summary: Summary, known: dict[int, float]) -> float:
    """K of a row with these values: above 1, nobody has them all."""
    columns = columns_of_variable(attacker, list(known))
    row = np.zeros(len(attacker.numbers))
    row[list(known)] = list(known.values())
    root = roots(attacker.moments(summary)[np.ix_(columns, columns)])
    return float(((root @ attacker.features(row)[columns]) ** 2).sum())


def table_with_outlier(n: int, d: int, far: Sequence[float], rng: Rng) -> Table:
    """Return normal rows, the first of which is moved far out in its first variables."""
    table = normal_rows(n, d, rng)
    for j, value in enumerate(far):
        table[f"v{j}"][0] = value
    return table


def leverage_of(table: Table, variables: Sequence[int]) -> float:
    """Of the first row."""
    attacker = Attacker(plan_of(table))
    first = attacker.scaled(table)[0]
    return leverage_at(attacker, summary_of(table, attacker.plan), {j: float(first[j]) for j in variables})


def outlier_at_limit(n: int, d: int, number: int, limit: float, seed: int) -> Table:
    """Return rows whose first has a leverage just below the limit in each of several variables."""
    far: list[float] = []
    for j in range(number):
        low, high = 2.0, 60.0
        for _ in range(12):
            middle = (low + high) / 2
            table = table_with_outlier(n, d, [*far, middle], np.random.default_rng([seed, n, 4]))
            low, high = (low, middle) if leverage_of(table, [j]) > limit else (middle, high)
        far.append(low)
    return table_with_outlier(n, d, far, np.random.default_rng([seed, n, 4]))


def attack_outlier(table: Table, number: int) -> tuple[float, Array]:
    """Return the true leverage, and the errors of all other variables in standard deviations."""
    attacker = Attacker(plan_of(table))
    summary, true = summary_of(table, attacker.plan), attacker.scaled(table)
    found = read_row(attacker, summary, {j: find_extreme_value(attacker, summary, j) for j in range(number)})
    return leverage_of(table, range(number)), (found - true[0])[number:] / true.std(axis=0)[number:]


def leverages(table: Table) -> tuple[float, float]:
    """The largest of any row by one number, and by all together."""
    attacker = Attacker(plan_of(table))
    moments, features = attacker.moments(summary_of(table, attacker.plan)), attacker.features(attacker.scaled(table))
    alone = [columns_of_variable(attacker, [j]) for j in range(len(attacker.numbers))]
    known = [(roots(moments[np.ix_(c, c)]) @ features[:, c].T) ** 2 for c in (*alone, np.arange(len(moments)))]
    largest = [float(one.sum(axis=0).max()) for one in known]
    return max(largest[:-1]), largest[-1]


def show_rule(seeds: Sequence[int]) -> None:
    print(f"honest tables with a row above the limit, 6 numbers, seeds {seeds[0]}..{seeds[-1]}: by one number (by all)")
    limits = (0.99, 0.95, 0.9)
    print(f"{'':32}{'n':>6}" + "".join(f"{f'above {limit}':>16}" for limit in limits))
    for name, draw in DISTRIBUTIONS.items():
        for n in (250, 1000, 5000):
            tables = ({f"v{j}": draw(np.random.default_rng([seed, j]), n) for j in range(6)} for seed in seeds)
            found = np.array([leverages(table) for table in tables])
            shares = (100 * (found > limit).mean(axis=0) for limit in limits)
            print(f"{name:32}{n:6}" + "".join(f"{f'{a:.0f} % ({b:.0f} %)':>16}" for a, b in shares), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("attack", "rule"), nargs="?", default="attack")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seeds", type=int, default=100, help="from 1000 on (default 100)")
    parser.add_argument("--rows", type=int, default=300)
    parser.add_argument("--numbers", type=int, default=5, help="up to so many numbers stand out (default 5)")
    options = parser.parse_args()
    seeds, n = range(1000, 1000 + (10 if options.quick else options.seeds)), options.rows
    if options.what == "rule":
        show_rule(seeds)
    else:
        show_attack(seeds, n, options.numbers)


def show_attack(seeds: Sequence[int], n: int, numbers: int) -> None:
    print(f"one row stands out by one number, 6 numbers, n = {n}, seeds {seeds[0]}..{seeds[-1]}: errors of the other 5")
    print(f"{'value':>8}{'leverage':>11}{'√((1−h)/h)':>12}{'rms error':>11}{'0.1 sd':>9}   the default policy")
    for value in (3.0, 4.0, 4.5, 5.0, 6.0, 8.0, 12.0):
        tables = [table_with_outlier(n, 6, [value], np.random.default_rng([seed, n, 4])) for seed in seeds]
        show(f"{value:5} sd", tables, 1)
    print("\none row stands out by several numbers, by each with a leverage just below 0.99")
    print(f"{'numbers':>8}{'leverage':>11}{'√((1−h)/h)':>12}{'rms error':>11}{'0.1 sd':>9}   the default policy")
    for number in range(1, numbers + 1):
        show(f"{number:8}", [outlier_at_limit(n, 6, number, 0.9895, seed) for seed in seeds], number)


def show(what: str, tables: Sequence[Table], number: int) -> None:
    found = [attack_outlier(table, number) for table in tables]
    leverage = float(np.median([one for one, _ in found]))
    errors = np.concatenate([two for _, two in found])
    refused = sum(bool(refusal_of(table, plan_of(table))) for table in tables)
    expected = np.sqrt(max(1 - leverage, 0) / leverage)
    error, near = np.sqrt((errors**2).mean()), (np.abs(errors) <= 0.1).mean()
    cells = f"{leverage:11.4f}{expected:12.3f}{error:11.3f}{100 * near:7.0f} %"
    print(f"{what}{cells}   refuses {refused} of {len(tables)}", flush=True)


if __name__ == "__main__":
    main()
