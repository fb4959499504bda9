"""Cause or effect? Real pairs with a known direction, one client each: python -m benchmarks.bench_pairs --help

The pairs of `tuebingen_pairs` (docs/experiments.md says where data are looked for) have official weights, so that pairs
of one source do not count several times. A pair without an arrow is open and counts as half right. Beside: IGCI by
slopes and by entropies (Janzing et al. 2012) and RECI (Blöbaum et al. 2018), which decide every pair.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import special

from fedcdh import discover
from fedcdh.evaluation.experiments.real_data import data_folder

Array = np.ndarray[Any, np.dtype[np.float64]]
PUBLISHED = "published best (additive noise, IGCI and later methods, all pairs): weighted accuracy 0.75-0.80"
RECI_DEGREE = 3

PROGRAMS: Mapping[str, Mapping[str, Any]] = {
    "evidence": {"method": "evidence"},
    "evidence one message": {"method": "evidence", "rounds": "one"},
    "constraint": {"method": "constraint"},
}
"""Our programs, as arguments of `fedcdh.discover`."""


@dataclass(frozen=True, eq=False)
class Pair:
    """Two variables, of which one causes the other; `cause` is "x" or "y"."""

    number: str
    x: Array
    y: Array
    cause: str
    weight: float


@dataclass(frozen=True)
class Verdict:
    """The answer to one pair: "x", "y", or None if it is left open."""

    answer: str | None
    cause: str
    weight: float


def load_pairs(folder: Path) -> list[Pair]:
    """Read the pairs of two numbers in the order of their numbers."""
    truth = json.loads((folder / "truth.json").read_text(encoding="utf-8"))["pairs"]
    values: dict[str, list[tuple[float, float]]] = {}
    with gzip.open(folder / "data.csv.gz", "rt", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            values.setdefault(row["pair"], []).append((float(row["x"]), float(row["y"])))
    found = []
    for number in sorted(values, key=int):
        rows = np.array(values[number])
        rows = rows[np.isfinite(rows).all(axis=1)]
        found.append(Pair(number, rows[:, 0], rows[:, 1], truth[number]["cause"], float(truth[number]["weight"])))
    return found


def ask_ours(pair: Pair, settings: Mapping[str, Any]) -> str | None:
    """Return the tail of the arrow that `discover` draws."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        graph = discover({"one": {"x": pair.x, "y": pair.y}}, **settings).graph
    return "x" if ("x", "y") in graph.arrows else "y" if ("y", "x") in graph.arrows else None


def igci_slope(pair: Pair) -> str | None:
    """Return the variable from which the other, both in [0, 1], follows with the smaller mean log slope."""
    x, y = _to_unit_interval(pair.x), _to_unit_interval(pair.y)
    return _smaller(_mean_log_slope(x, y), _mean_log_slope(y, x))


def igci_entropy(pair: Pair) -> str | None:
    """Return the variable with the larger entropy in [0, 1]: the effect is the more concentrated one."""
    return _smaller(-_entropy(_to_unit_interval(pair.x)), -_entropy(_to_unit_interval(pair.y)))


def reci(pair: Pair) -> str | None:
    """Return the variable from which a cubic predicts the other, both in [0, 1], with the smaller error."""
    x, y = _to_unit_interval(pair.x), _to_unit_interval(pair.y)
    return _smaller(_cubic_error(x, y), _cubic_error(y, x))


RIVALS: Mapping[str, Callable[[Pair], str | None]] = {
    "IGCI slope": igci_slope,
    "IGCI entropy": igci_entropy,
    "RECI": reci,
}


def _to_unit_interval(values: Array) -> Array:
    return np.asarray((values - values.min()) / max(np.ptp(values), np.finfo(float).tiny))


def _smaller(forwards: float, backwards: float) -> str | None:
    return None if forwards == backwards else "x" if forwards < backwards else "y"


def _mean_log_slope(x: Array, y: Array) -> float:
    order = np.lexsort((y, x))
    run, rise = np.diff(x[order]), np.abs(np.diff(y[order]))
    use = (run > 0) & (rise > 0)
    return float(np.log(rise[use] / run[use]).mean()) if use.any() else 0.0


def _entropy(values: Array) -> float:
    """Return the differential entropy by the spacings of different values."""
    gaps = np.diff(np.unique(values))
    return float(np.log(gaps).mean() + special.digamma(len(gaps) + 1) - special.digamma(1)) if len(gaps) else 0.0


def _cubic_error(x: Array, y: Array) -> float:
    powers = np.vander(x, RECI_DEGREE + 1)
    return float(((y - powers @ np.linalg.lstsq(powers, y, rcond=None)[0]) ** 2).mean())


def judge(name: str, pair: Pair) -> Verdict:
    """Return what a program or a rival says about a pair."""
    answer = RIVALS[name](pair) if name in RIVALS else ask_ours(pair, PROGRAMS[name])
    return Verdict(answer, pair.cause, pair.weight)


def figures(verdicts: Iterable[Verdict]) -> dict[str, float]:
    """Return the counts and accuracies of one program; accuracies among no pairs are not a number."""
    found = list(verdicts)
    weight = np.array([one.weight for one in found])
    decided = np.array([one.answer is not None for one in found])
    right = np.array([one.answer == one.cause for one in found])
    with np.errstate(invalid="ignore"):
        return {
            "pairs": len(found),
            "decided": int(decided.sum()),
            "right": int(right.sum()),
            "open as half": float(weight @ (right + 0.5 * ~decided) / weight.sum()),
            "among decided, weighted": float(weight @ right / np.float64(weight @ decided)),
            "among decided": float(right.sum() / np.float64(decided.sum())),
        }


def table(results: Mapping[str, list[Verdict]]) -> Iterator[str]:
    """Yield the lines of the table."""
    yield f"{'':28}{'pairs':>7}{'decided':>9}{'right':>7}{'open as half':>14}{'decided, weighted':>19}{'decided':>9}"
    for name, verdicts in results.items():
        pairs, decided, right, half, weighted, plain = figures(verdicts).values()
        yield f"{name:28}{pairs:7.0f}{decided:9.0f}{right:7.0f}{half:14.3f}{weighted:19.3f}{plain:9.3f}"
    yield PUBLISHED


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", default=",".join(PROGRAMS), help=", ".join(PROGRAMS))
    parser.add_argument("--pairs", type=int, default=None, help="number of pairs, from the first (default: all)")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args(arguments)
    folder = data_folder() / "tuebingen_pairs"
    if not (folder / "data.csv.gz").exists():
        print(f"tuebingen_pairs: {folder} not found, skipped (FEDCDH_SHARED names the folder that holds data/)")
        return
    if unknown := [name for name in options.programs.split(",") if name not in PROGRAMS]:
        raise SystemExit(f"found no program {unknown[0]!r}; expected some of {', '.join(PROGRAMS)}; choose among these")
    pairs = load_pairs(folder)[: options.pairs]
    with ProcessPoolExecutor(options.workers) as pool:
        results = {
            name: list(pool.map(partial(judge, name), pairs, chunksize=8))
            for name in [*options.programs.split(","), *RIVALS]
        }
    print("\n".join(table(results)))


if __name__ == "__main__":
    main()
