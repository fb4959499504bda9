"""Rows with chosen gaps beside a target, to have its value drawn for them: python -m benchmarks.attacks.imputed_values

The attacker is the coordinator, and has rows of its own at the site: visitors who are near the target's place in one
number, v0, and do not say another one, v1. Where values are imputed, v1 is drawn for them from rows like the target's.
The attacker knows v0 of the target and all of its own rows, and reads the mean of v1 off at that place, as in
`outlier`. It then guesses that its rows have the target's value, or the expected one; the better guess counts. Beside
it stands the same attack on complete rows, where the visitors say a v1 like anybody's. A guess without the summary is
0.

Only tables that leave under the default policy count. The attack succeeds, and the command fails, if among these the
target's v1 is found to 0.25 standard deviations more often than without the summary, and than from complete rows, both
by more than 0.15.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from benchmarks.attacks.common import Attacker, Table, normal_rows, plan_of, refusal_of, summary_of
from benchmarks.attacks.outlier import read_row

ROWS, NUMBERS, TOLERANCE, MARGIN = 300, 6, 0.25, 0.15


def draw_table(place: float, visitors: int, seed: int, *, gaps: bool) -> tuple[Table, float]:
    """Return rows of which the first is the target's and the last the visitors', and the target's v1."""
    rng = np.random.default_rng([seed, 23])
    table = normal_rows(ROWS, NUMBERS, rng)
    target = float(table["v1"][0])
    table["v0"][0] = place
    own = {name: rng.normal(size=visitors) for name in table}
    own["v0"] = place + 0.3 * rng.normal(size=visitors)
    own["v1"] = np.full(visitors, np.nan) if gaps else rng.normal(size=visitors)
    return {name: np.concatenate([column, own[name]]) for name, column in table.items()}, target


def attack(place: float, visitors: int, seed: int, *, gaps: bool) -> tuple[bool, float]:
    """Return whether the summary leaves, and the error of the better guess."""
    table, target = draw_table(place, visitors, seed, gaps=gaps)
    plan = replace(plan_of(table), missing="impute" if gaps else "complete")
    if refusal_of(table, plan):
        return False, np.nan
    attacker, one = Attacker(plan), plan.variables[0]
    scaled = (place - one.location) / one.scale  # type: ignore[union-attr]
    other = plan.variables[1]
    read = float(read_row(attacker, summary_of(table, plan), {0: scaled})[1]) * other.scale + other.location  # type: ignore[union-attr]
    guesses = (read, read * (visitors + 1))
    return True, min(abs(guess - target) for guess in guesses)


def measure(place: float, visitors: int, seeds: Sequence[int]) -> bool:
    """Print one line; return whether the attack succeeds."""
    shares, left = [], []
    for gaps in (False, True):
        found = [attack(place, visitors, seed, gaps=gaps) for seed in seeds]
        errors = np.array([error for leaves, error in found if leaves])
        left.append(len(errors))
        shares.append(float((errors < TOLERANCE).mean()) if len(errors) else 0.0)
    targets = np.array([draw_table(place, visitors, seed, gaps=True)[1] for seed in seeds])
    chance = float(2 * (np.abs(targets) < TOLERANCE).mean())  # of two guesses
    succeeds = left[1] >= 5 and shares[1] > max(chance, shares[0]) + MARGIN
    print(
        f"{place:5} sd{visitors:10}   complete rows: {left[0]:3} leave, {shares[0]:4.0%} found   "
        f"imputed: {left[1]:3} leave, {shares[1]:4.0%} found   two guesses: {chance:4.0%}",
        flush=True,
    )
    return succeeds


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seeds", type=int, default=20, help="from 1000 on (default 20)")
    options = parser.parse_args(arguments)
    seeds = range(1000, 1000 + (6 if options.quick else options.seeds))
    places = (3.0,) if options.quick else (2.0, 3.0, 4.0)
    counts = (0, 10) if options.quick else (0, 3, 10, 30)
    print(f"{'place':>8}{'visitors':>10}   seeds {seeds[0]}..{seeds[-1]}, {ROWS} rows besides, {NUMBERS} numbers")
    found = [measure(place, visitors, seeds) for place in places for visitors in counts]
    return int(any(found))


if __name__ == "__main__":
    raise SystemExit(main())
