"""Rows from the sums of one site: python -m benchmarks.attacks.reconstruction --help

Two attacks. One by one: the features of every row lie in the row space of the moments, as long as rows are fewer than
columns. At once: all values are moved, from where the first attack ended, until their sums are those of the summary. A
row counts as recovered if some row that was found is nowhere farther from it than 0.01 or 0.1 standard deviations; by
chance: as many independent rows of a normal distribution with the same means and covariances.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np

from benchmarks.attacks.common import (
    Attacker,
    Rng,
    Table,
    normal_rows,
    plan_of,
    recover_rows_jointly,
    recover_rows_singly,
    refusal_of,
    share_within,
    summary_of,
)
from fedcdh.privacy.disclosure.thresholds import required_rows
from fedcdh.summaries.features import FeatureFamily, Fourier, Hermite

FAMILIES: tuple[FeatureFamily, ...] = (
    Hermite(), Hermite(4, 1.0), Fourier(4, 1.0, 1), Fourier(4, 1.0, 2),
    Hermite(4, 0.5), Fourier(4, 1.0, 3), Fourier(4, 0.5, 4), Fourier(4, 0.5, 5),
)  # fmt: skip
"""Of several plans for the same rows, one after the other."""


def attack_summary(table: Table, families: Sequence[FeatureFamily], rng: Rng, steps: int) -> tuple[list[float], str]:
    """Shares recovered within 0.01 and 0.1, one by one and at once; by chance within 0.1; and what the gate says."""
    messages = []
    for family in families:
        plan = plan_of(table, family)
        messages.append((Attacker(plan), summary_of(table, plan)))
    attacker, summary = messages[0]
    true = attacker.scaled(table)
    single = recover_rows_singly(messages, rng)
    whole = recover_rows_jointly(messages, rng, known=single, steps=steps)
    shares = [share_within(true, found, near) for found in (single, whole) for near in (0.01, 0.1)]
    return [*shares, share_within(true, attacker.guesses(summary, len(true), rng), 0.1)], refusal_of(
        table, attacker.plan
    )


def print_rows(variables: int, sizes: Sequence[int], seeds: Sequence[int], plans: int, steps: int) -> None:
    families = FAMILIES[:plans]
    print(f"\n{variables} variables, plans for the same rows: {plans}, seeds {seeds[0]}..{seeds[-1]}")
    print(f"{'n':>6}{'one by one':>24}{'at once':>24}{'by chance':>12}   the default policy")
    print(f"{'':6}{'0.01 sd':>12}{'0.1 sd':>12}{'0.01 sd':>12}{'0.1 sd':>12}{'0.1 sd':>12}")
    for n in sizes:
        found = []
        for seed in seeds:
            rng = np.random.default_rng([seed, n, 8])
            shares, said = attack_summary(normal_rows(n, variables, rng), families, rng, steps)
            found.append(shares)
        mean = np.mean(found, axis=0)
        cells = "".join(f"{100 * share:10.1f} %" for share in mean)
        print(f"{n:6}{cells}   {'refuses' if said else 'lets it go'}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one seed, few sizes")
    parser.add_argument("--seeds", type=int, default=3, help="tables of every size, from seed 1000 on (default 3)")
    parser.add_argument("--steps", type=int, default=200, help="of the attack on all rows at once (default 200)")
    parser.add_argument("--variables", type=int, default=6)
    parser.add_argument("--rows", type=int, nargs="+", help="sizes (default 5 to 100, and the policy's limit)")
    parser.add_argument("--plans", type=int, nargs="+", default=[1], help="how many plans for the same rows (1 to 8)")
    options = parser.parse_args()
    limit = required_rows(plan_of(normal_rows(50, options.variables, np.random.default_rng(0))))
    sizes = options.rows or ([5, 30, limit] if options.quick else [5, 10, 20, 25, 30, 50, 100, limit])
    seeds = range(1000, 1000 + (1 if options.quick else options.seeds))
    for plans in options.plans:
        print_rows(options.variables, sizes, seeds, plans, options.steps)


if __name__ == "__main__":
    main()
