"""How graphs grow better with rows, and which errors stay: python -m benchmarks.bench_rows --help

Counts, for each number of rows per client, the true edges that the DAG of a result has, reverses or lacks, and edges
that are not there. "weak" are the lacking edges whose true share of variance is below `--min-effect`: the cause's term
of the structural equation, among all rows, given the terms of the other causes. Choose settings on seeds below 1000.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product
from typing import Any, NamedTuple, cast

import numpy as np

from fedcdh.discovery.api import discover
from fedcdh.evaluation.simulation import PAPER, MechanismModel, Simulation, identity, keyed_generator, simulate
from fedcdh.graphs.metrics import compare, compare_changing
from fedcdh.graphs.partial_graph import Arrow
from fedcdh.protocols import DOMAIN

COUNTS = ("right", "reversed", "missed", "weak", "extra", "drawn", "drawn wrongly")


class Setting(NamedTuple):
    model: str
    rows: int
    rounds: str
    min_effect: float


class Outcome(NamedTuple):
    figures: Mapping[str, float]
    counts: Counter[str]


def measure_true_strengths(study: Simulation, model: str, seed: int) -> dict[Arrow, float]:
    """Return the share of variance of every true edge, by regressions on the true functions of the causes."""
    place, found = {name: number for number, name in enumerate(study.names)}, {}
    for head in study.names:
        causes = sorted(tail for tail, other in study.arrows if other == head)
        drawn = keyed_generator(seed, "function", str(place[head])).integers(len(PAPER.functions))
        function = PAPER.functions[drawn] if model == "general" else identity
        tables = list(study.tables.values())
        parts = tables if head in study.changing else [np.concatenate(tables)]
        terms = [(part[:, place[head]], {tail: function(part[:, place[tail]]) for tail in causes}) for part in parts]
        whole = sum(_leave([given[one] for one in causes], target) for target, given in terms)
        for tail in causes:
            others = [one for one in causes if one != tail]
            without = sum(_leave([given[one] for one in others], target) for target, given in terms)
            found[tail, head] = 1 - whole / without
    return found


def _leave(columns: list[Any], target: Any) -> float:
    """Return the sum of squares that a regression leaves."""
    design = np.column_stack([np.ones(len(target)), *columns])
    return float(((target - design @ np.linalg.lstsq(design, target, rcond=None)[0]) ** 2).sum())


def score_instance(setting: Setting, seed: int) -> Outcome:
    """Compare the graph of one study with the truth."""
    study = simulate(cast("MechanismModel", setting.model), rows=setting.rows, seed=seed)
    start = time.perf_counter()
    found = discover(
        dict(study.tables), names=study.names, seed=seed, rounds=setting.rounds, min_effect=setting.min_effect
    )
    seconds = time.perf_counter() - start
    arrows = frozenset(arrow for arrow in found.to_dag().arrows if DOMAIN not in arrow)
    strengths = measure_true_strengths(study, setting.model, seed)
    counts: Counter[str] = Counter()
    pairs = {frozenset(arrow) for arrow in study.arrows}
    counts["extra"] = sum(frozenset(arrow) not in pairs for arrow in arrows)
    for arrow in study.arrows:
        lacking = arrow not in arrows and arrow[::-1] not in arrows
        counts["right" if arrow in arrows else "missed" if lacking else "reversed"] += 1
        counts["weak"] += lacking and strengths[arrow] < setting.min_effect
        counts["drawn"] += arrow in found.graph.arrows
        counts["drawn wrongly"] += arrow[::-1] in found.graph.arrows
    changing = compare_changing(found.changing, study.changing)
    figures = {
        "skeleton": compare(found.graph.arrows, study.arrows, found.graph.lines).skeleton.f1,
        "direction": compare(arrows, study.arrows).direction.f1,
        "precision": changing.precision,
        "recall": changing.recall,
        "seconds": seconds,
    }
    return Outcome(figures, counts)


def print_row(setting: Setting, outcomes: list[Outcome]) -> None:
    """Print the means and totals of one setting."""
    names = outcomes[0].figures
    means = [float(np.mean([one.figures[name] for one in outcomes])) for name in names]
    total = sum((one.counts for one in outcomes), Counter[str]())
    cells = "".join(f"{value:11.3f}" for value in means) + "".join(f"{total[name]:>{len(name) + 2}}" for name in COUNTS)
    print(f"{setting.model:9}{setting.rounds:11}{setting.rows:6}{cells}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", default="1000:1010", help="first:last+1 (default 1000:1010)")
    parser.add_argument("--models", nargs="+", choices=["linear", "general"], default=["linear", "general"])
    parser.add_argument("--rows", nargs="+", type=int, default=[100, 400, 1600, 6400], help="of each of ten clients")
    parser.add_argument("--rounds", nargs="+", choices=["one", "residuals"], default=["one", "residuals"])
    parser.add_argument("--min-effect", type=float, default=0.02)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    seeds = range(*map(int, options.seeds.split(":")))
    heading = "".join(f"{name:>11}" for name in ("skeleton", "direction", "chg prec", "chg rec", "seconds"))
    print(f"{'model':9}{'rounds':11}{'rows':>6}{heading}{''.join(f'{name:>{len(name) + 2}}' for name in COUNTS)}")
    with ProcessPoolExecutor(options.workers) as pool:
        for model, rounds, rows in product(options.models, options.rounds, options.rows):
            setting = Setting(model, rows, rounds, options.min_effect)
            print_row(setting, list(pool.map(partial(score_instance, setting), seeds)))


if __name__ == "__main__":
    main()
