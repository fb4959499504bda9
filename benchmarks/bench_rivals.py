"""Methods of the registry at the paper's base setting, side by side: python -m benchmarks.bench_rivals --help

Every method sees the same standardised instances, scored as in the experiments: F1 of the skeleton and of the
directions, after lines are extended to a DAG. The oracle is what perfect tests and rules could find. A method that
fails on an instance has the scores of an empty graph there, and the failures are counted.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any, NamedTuple, cast, get_args

import numpy as np

from fedcdh.errors import FedCDHError
from fedcdh.evaluation.baselines import BASELINES, find_baseline, oracle_result
from fedcdh.evaluation.experiments.kinds.graph_recovery import (
    ORACLE_METHOD,
    SIMULATED_GRAPHS,
    GraphInstance,
    score_result,
)
from fedcdh.evaluation.simulation import AUTHORS, PAPER, MechanismModel, simulate
from fedcdh.protocols import DOMAIN

DIALECTS = {"paper": PAPER, "authors": AUTHORS}
SHOWN = (
    "skeleton_f1",
    "skeleton_precision",
    "skeleton_recall",
    "direction_f1",
    "changing_recall",
    "bytes_up",
    "bytes_down",
)


class RivalSetting(NamedTuple):
    """A cell of the paper's simulated studies."""

    model: str
    variables: int
    clients: int
    rows: int
    dialect: str

    def draw(self, seed: int) -> GraphInstance:
        """Draw one study, standardised."""
        study = simulate(
            cast("MechanismModel", self.model),
            variables=self.variables,
            clients=self.clients,
            rows=self.rows,
            seed=seed,
            dialect=DIALECTS[self.dialect],
        ).standardised()
        return GraphInstance(study.tables, study.names, study.arrows, study.changing, {})


def measure(instance: GraphInstance, method: str, seed: int) -> dict[str, Any]:
    """Run one method on one instance, and return its scores, its seconds and whether it failed."""
    start = time.perf_counter()
    failed = 0
    try:
        if method == ORACLE_METHOD:
            augmented = instance.arrows | {(DOMAIN, name) for name in instance.changing or ()}
            scores = score_result(instance, oracle_result(instance.names, augmented))
        else:
            scores = score_result(instance, find_baseline(method)(instance.tables, instance.names, seed))
    except FedCDHError:
        scores, failed = SIMULATED_GRAPHS.failure_measures(instance), 1
    return {**scores, "seconds": time.perf_counter() - start, "failed": failed}


def measure_all(setting: RivalSetting, methods: Sequence[str], seed: int) -> dict[str, dict[str, Any]]:
    instance = setting.draw(seed)
    return {method: measure(instance, method, seed) for method in methods}


def mean_of(values: Sequence[Any]) -> float:
    known = [float(value) for value in values if value is not None]
    return float(np.mean(known)) if known else float("nan")


def print_table(setting: RivalSetting, methods: Sequence[str], seeds: range, workers: int) -> None:
    if workers > 1:
        with ProcessPoolExecutor(workers) as pool:
            found = list(pool.map(partial(measure_all, setting, methods), seeds))
    else:
        found = [measure_all(setting, methods, seed) for seed in seeds]
    print(
        f"\n{setting.model}, d={setting.variables}, K={setting.clients}, n_k={setting.rows}, "
        f"{setting.dialect} dialect, standardised, seeds {seeds.start}..{seeds.stop - 1}"
    )
    heads = ("skel F1", "prec", "recall", "dir F1", "chg rec", "bytes up", "down", "± dir", "ms", "failed")
    print(f"{'method':22}" + "".join(f"{head:>10}" for head in heads))
    for method in methods:
        rows = [result[method] for result in found]
        shown = [mean_of([row[name] for row in rows]) for name in SHOWN]
        deviation = float(np.std([row["direction_f1"] for row in rows]) / np.sqrt(len(rows)))
        cells = [f"{value:10.3f}" if np.isfinite(value) else f"{'-':>10}" for value in shown[:5]]
        cells += [f"{value:10.0f}" for value in shown[5:]] + [f"{deviation:10.3f}"]
        cells += [f"{1000 * mean_of([row['seconds'] for row in rows]):10.1f}", f"{sum(r['failed'] for r in rows):10d}"]
        print(f"{method:22}{''.join(cells)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--methods", required=True, help=f"names with commas between: {', '.join(BASELINES)}")
    parser.add_argument("--seeds", default="1000:1030", help="first:last+1 (default 1000:1030)")
    parser.add_argument("--models", nargs="+", choices=get_args(MechanismModel), default=["linear", "general"])
    parser.add_argument("--variables", type=int, default=6)
    parser.add_argument("--clients", type=int, default=10)
    parser.add_argument("--rows", type=int, default=100, help="rows of every client")
    parser.add_argument("--dialect", choices=DIALECTS, default="paper")
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    first, last = map(int, options.seeds.split(":"))
    methods = [ORACLE_METHOD, *(find_baseline(name).name for name in options.methods.split(","))]
    for model in options.models:
        setting = RivalSetting(model, options.variables, options.clients, options.rows, options.dialect)
        print_table(setting, methods, range(first, last), options.workers)


if __name__ == "__main__":
    main()
