"""Said against found: bins, expected calibration error, its size by chance, log score and Brier score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from benchmarks.probabilities.statements import Statement

Array = np.ndarray[Any, np.dtype[np.float64]]
TENTHS = np.round(np.linspace(0, 1, 11), 10)
TWENTIETHS = np.round(np.linspace(0.5, 1, 11), 10)
LIMITS: Mapping[str, Array] = {"direction": TWENTIETHS, "presence": TENTHS, "change": TENTHS, "arrow": TENTHS}
"""Limits of the bins by kind of statement. The likelier direction has at least one half."""
DRAWS = 200
SEED = 7
MIN_PROBABILITY = 1e-6


class Bin(NamedTuple):
    """Statements whose probability lies from `low` to below `high`, or up to 1 in the last bin."""

    low: float
    high: float
    count: int
    said: float  # mean; nan in an empty bin
    found: float  # share that is true


class Scores(NamedTuple):
    """How well one kind of statement is calibrated; nan without statements.

    Few statements have a positive `ece` even from a perfect forecaster. `by_chance` is the mean of what such a
    forecaster would have with the same probabilities, and `rarely` its 95 % quantile. Both take statements as
    independent; those of one study are not, so that chance may do more.
    """

    count: int
    ece: float
    by_chance: float
    rarely: float
    log_score: float
    brier: float


def make_bins(statements: Sequence[Statement], limits: Array) -> list[Bin]:
    """Sort statements into bins."""
    said, true = _columns(statements)
    place = _places(said, limits)
    found = []
    for number, (low, high) in enumerate(pairwise(limits)):
        inside = place == number
        means = (said[inside].mean(), true[inside].mean()) if inside.any() else (np.nan, np.nan)
        found.append(Bin(float(low), float(high), int(inside.sum()), float(means[0]), float(means[1])))
    return found


def interval(one: Bin) -> tuple[float, float]:
    """Return Wilson's 95 % interval for the share that is true, as if statements were independent."""
    square = 1.96**2 / one.count
    centre = (one.found + square / 2) / (1 + square)
    width = np.sqrt(square * one.found * (1 - one.found) + square**2 / 4) / (1 + square)
    return max(0.0, float(centre - width)), min(1.0, float(centre + width))


def calibration_error(statements: Sequence[Statement], limits: Array) -> float:
    """Return Σ n_b/n · |mean said − share true| over the bins b."""
    if not statements:
        return float("nan")
    said, true = _columns(statements)
    return float(_errors(said, true[np.newaxis], limits)[0])


def chance_errors(statements: Sequence[Statement], limits: Array, draws: int = DRAWS, seed: int = SEED) -> Array:
    """Return the calibration errors of a forecaster with these probabilities if each were right; one per draw."""
    said, _ = _columns(statements)
    true = np.random.default_rng(seed).uniform(size=(draws, len(said))) < said
    return _errors(said, true.astype(float), limits)


def score(statements: Sequence[Statement], limits: Array) -> Scores:
    """Return all figures of one kind of statement."""
    if not statements:
        return Scores(0, *[float("nan")] * 5)
    said, true = _columns(statements)
    chance = chance_errors(statements, limits)
    given = np.clip(np.where(true == 1, said, 1 - said), MIN_PROBABILITY, 1)
    return Scores(
        len(statements),
        calibration_error(statements, limits),
        float(chance.mean()),
        float(np.quantile(chance, 0.95)),
        float(-np.log(given).mean()),
        float(((said - true) ** 2).mean()),
    )


def _columns(statements: Sequence[Statement]) -> tuple[Array, Array]:
    table = np.array(statements, dtype=float).reshape(-1, 2)
    return table[:, 0], table[:, 1]


def _places(said: Array, limits: Array) -> np.ndarray[Any, np.dtype[np.intp]]:
    return np.digitize(said, limits[1:-1])


def _errors(said: Array, true: Array, limits: Array) -> Array:
    """Return the calibration error of each row of `true`."""
    membership = _places(said, limits)[:, np.newaxis] == np.arange(len(limits) - 1)
    gaps: Array = np.abs((said - true) @ membership.astype(float)).sum(axis=1) / len(said)
    return gaps
