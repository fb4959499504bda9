"""A value or place in time from the two shares of rows per column: python -m benchmarks.attacks.row_dependence --help

A profile names for every column two shares of rows that count, with two digits (`fedcdh.summaries.row_dependence`). The
attacker knows other rows in their order, the model of the series, and the shares of all columns. Two things are tried.
*Value*: one cell is unknown, and there are ten candidates for it, one from each tenth of the column. *Place*: the
person's row is known, and there are ten candidates for its place among the others. The attacker computes the shares for
every candidate, and guesses one of those that come nearest to the shares of the profile.

Without any profile, a row that fits its neighbours well is likely to stand beside them. So the same guess is made with
the shares of another series of the same kind. The advantage is how much oftener a guess is right with the true shares.

Who knows all other rows and their order is not kept out: the table shows the advantage, as the exact mean of a profile
reveals a missing value anyway. The bound concerns an attacker who lacks one row in ten and draws those rows from the
model: with `MIN_BOUNDED_ROWS` rows or more, the advantage is at most `MAX_ADVANTAGE`. The command exits with 1 if the
bound is exceeded by more than three standard errors.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from benchmarks.attacks.common import Array, Rng, Table
from fedcdh.data import to_source
from fedcdh.summaries import profile
from fedcdh.summaries.column_profiles import ColumnProfile
from fedcdh.summaries.row_dependence import row_shares

CANDIDATES, COLUMNS = 10, 3
MAX_ADVANTAGE = 0.15
"""The bound: how much oftener a guess may be right with the shares than without, if one row in ten is unknown."""
MIN_BOUNDED_ROWS = 300
"""The bound holds from this number of rows on; by default, policies ask for more than 200 rows of a few variables."""
UNKNOWN_SHARES = (0.0, 0.1)
DRAWS = 5
"""Draws of the unknown rows."""


class Attempt(NamedTuple):
    """What is attacked."""

    what: str  # "value" or "place"
    rows: int
    correlation: float  # of neighbouring rows
    unknown: float  # share of the other rows that the attacker does not know


def draw_series(rows: int, correlation: float, rng: Rng) -> Array:
    """Return (rows, columns): series of the first order with variance 1, of which each adds to the next column."""
    series = rng.standard_normal((rows, COLUMNS))
    for row in range(1, rows):
        series[row] = correlation * series[row - 1] + np.sqrt(1 - correlation**2) * series[row]
    return series


def mix_columns(series: Array) -> Table:
    """Return a table in which every column depends on the column before."""
    return {f"v{j}": series[:, j] + (0.7 * series[:, j - 1] if j else 0.0) for j in range(COLUMNS)}


def fill_gaps(series: Array, gaps: Sequence[int], correlation: float, rng: Rng) -> Array:
    """Return the series with these rows drawn anew from the model, given the row before and the next one if known."""
    filled, unknown = series.copy(), {*gaps, len(series)}
    for row in gaps:
        before, noise = filled[row - 1] if row else np.zeros(COLUMNS), rng.standard_normal(COLUMNS)
        if row + 1 in unknown:
            filled[row] = correlation * before + np.sqrt(1 - correlation**2) * noise
        else:
            both = 1 + correlation**2
            spread = np.sqrt((1 - correlation**2) / both)
            filled[row] = correlation * (before + series[row + 1]) / both + spread * noise
    return filled


def release_shares(series: Array, columns: dict[str, ColumnProfile]) -> Array:
    """Return the logs of the two shares of every column."""
    found = row_shares(to_source(mix_columns(series), "here"), columns, in_time_order=True)
    return np.log([share for name in columns for share in found[name]])


class Candidate(NamedTuple):
    """A table as the attacker imagines it, and the place of the person in it."""

    series: Array
    place: int


def list_candidates(what: str, series: Array, target: int, rng: Rng) -> tuple[list[Candidate], int]:
    """Return the candidates, and which of them is true."""
    others = np.delete(series, target, axis=0)
    if what == "value":
        tenths = np.quantile(others[:, 0], np.arange(1, CANDIDATES) / CANDIDATES)
        values = np.quantile(others[:, 0], (np.arange(CANDIDATES) + 0.5) / CANDIDATES)
        right = int(np.searchsorted(tenths, series[target, 0]))
        values[right] = series[target, 0]
        rows = [np.r_[value, series[target, 1:]] for value in values]
        return [Candidate(np.insert(others, target, row, axis=0), target) for row in rows], right
    places = rng.choice(np.delete(np.arange(len(series)), target), CANDIDATES, replace=False)
    places[0] = target
    return [Candidate(np.insert(others, place, series[target], axis=0), int(place)) for place in places], 0


class Guess(NamedTuple):
    """The probability that a guess is right, with the true shares and with those of another series."""

    informed: float
    control: float


def attack(attempt: Attempt, seed: int) -> Guess:
    """Attack one study."""
    rng = np.random.default_rng([seed, attempt.rows, round(100 * attempt.correlation), attempt.what == "place"])
    series, other = (draw_series(attempt.rows, attempt.correlation, rng) for _ in range(2))
    columns = dict(profile(mix_columns(series), "here").columns)
    target = int(rng.integers(attempt.rows))
    candidates, right = list_candidates(attempt.what, series, target, rng)
    unknown = np.flatnonzero(rng.random(attempt.rows - 1) < attempt.unknown)  # of the other rows
    imagined = []  # (draws, candidates, shares)
    for draw in range(DRAWS if len(unknown) else 1):
        imagined.append([])
        for table, place in candidates:
            gaps = (unknown + (unknown >= place)).tolist()
            filled = fill_gaps(table, gaps, attempt.correlation, np.random.default_rng([seed, draw]))
            imagined[-1].append(release_shares(filled, columns))
    return Guess(*(rate_of(np.array(imagined), release_shares(one, columns), right) for one in (series, other)))


def rate_of(imagined: Array, released: Array, right: int) -> float:
    """Return the probability that a guess among the nearest candidates is right."""
    distances = np.abs(imagined - released).sum(axis=(0, 2))
    best = distances <= distances.min() + 1e-12
    return float(best[right] / best.sum())


class Success(NamedTuple):
    """The guesses of one attack, in several studies."""

    attempt: Attempt
    guesses: tuple[Guess, ...]

    @property
    def is_bounded(self) -> bool:
        """Return whether the bound concerns this attack."""
        return self.attempt.unknown > 0 and self.attempt.rows >= MIN_BOUNDED_ROWS

    @property
    def advantages(self) -> list[float]:
        """Return by how much the shares raise the probability of a right guess, in each study."""
        return [one.informed - one.control for one in self.guesses]


def mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    """Return the mean and its standard error."""
    return float(np.mean(values)), float(np.std(values) / np.sqrt(len(values)))


def exceeds_bound(advantages: Sequence[float]) -> bool:
    """Return whether the mean is above the bound by more than three standard errors."""
    mean, error = mean_and_error(advantages)
    return mean - 3 * error > MAX_ADVANTAGE


def attack_all(rows: Sequence[int], correlations: Sequence[float], seeds: Sequence[int]) -> Iterator[Success]:
    """Yield the success of every attack, and print it."""
    sizes = "".join(f"{f'n = {n}':>18}" for n in rows)
    print(f"right guesses in %: with the shares, with those of another series; seeds {seeds[0]}..{seeds[-1]}")
    print(f"{'':38}{sizes}")
    for unknown, what, correlation in product(UNKNOWN_SHARES, ("value", "place"), correlations):
        print(f"{f'{what}, correlation {correlation}, {unknown:.0%} unknown':38}", end="")
        for n in rows:
            attempt = Attempt(what, n, correlation, unknown)
            found = Success(attempt, tuple(attack(attempt, seed) for seed in seeds))
            informed, control = 100 * np.mean(found.guesses, axis=0)
            print(f"{f'{informed:.0f}, {control:.0f}':>18}", end="", flush=True)
            yield found
        print()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[100, 300, 1000])
    parser.add_argument("--correlations", type=float, nargs="+", default=[0.5, 0.8, 0.95])
    parser.add_argument("--seeds", default="3000:3040", help="first:last+1 (default 3000:3040; choices: below 1000)")
    options = parser.parse_args(arguments)
    found = list(attack_all(options.rows, options.correlations, range(*map(int, options.seeds.split(":")))))
    bounded = [one.advantages for one in found if one.is_bounded]
    together = [advantage for one in bounded for advantage in one]
    if not together:
        print("the bound concerns none of these attacks")
        return 0
    broken = exceeds_bound(together) or any(map(exceeds_bound, bounded))
    mean, error = mean_and_error(together)
    print(
        f"advantage with {MIN_BOUNDED_ROWS} rows or more, one in ten unknown: {mean:.3f} (standard error {error:.3f})"
    )
    print(f"the bound of {MAX_ADVANTAGE} {'is exceeded' if broken else 'holds'}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
