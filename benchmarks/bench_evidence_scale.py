"""The evidence engine with many variables: python -m benchmarks.bench_evidence_scale [--quick] [--seeds 2000:2001]

As many edges as variables, ten clients. Beside the way pairs are screened (`fedcdh.screening`), the plain screen: every
pair that is dependent at level 0.1, which is also how up to 100 variables are screened. Every run has a process of its
own, one after the other. Seconds are processor time of the search, from the sum of the summaries on; megabytes are the
most that the process ever had, its tables included. Missed are true edges to which the screen leaves no chance.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from functools import partial
from time import process_time
from typing import Any, NamedTuple

import numpy as np

from benchmarks.bench_evidence import cohort_of, replaced
from fedcdh import algorithm, screening
from fedcdh.discovery import discover_from
from fedcdh.metrics import compare
from fedcdh.simulate import simulate

SCREENS: dict[str, dict[str, float]] = {
    "as chosen": {},
    "plain": {"MANY": 1_000_000},
    "3 companions": {"COMPANIONS": 3},
    "8 companions": {"COMPANIONS": 8},
    "3 by chance": {"BY_CHANCE": 3.0},
    "no companions": {"COMPANIONS": 0},
}
SHOWN = ("as chosen", "plain")


class Measured(NamedTuple):
    seconds: float
    families: float
    candidates: float
    missed: float
    megabytes: float
    skeleton: float
    direction: float


def measured(screen: str, model: Any, variables: int, rows: int, seed: int) -> Measured:
    study = simulate(model, variables=variables, edges=variables, rows=rows, seed=seed).standardised()
    cohort = cohort_of(study)
    possible: dict[str, frozenset[str]] = {}
    scored = [0]

    def screened(*asked: Any) -> Any:
        possible.update(screening.screened(*asked) or {})
        return possible or None

    with ExitStack() as stack:
        stack.enter_context(replaced(algorithm, "screened", screened))
        for name, value in SCREENS[screen].items():
            stack.enter_context(replaced(screening, name, value))
        start = process_time()
        found = discover_from(
            cohort, cohort.plan, method="evidence", progress=lambda before, new: scored.append(before + new)
        )
        seconds = process_time() - start
    score = compare(found.to_dag().arrows, study.arrows)
    return Measured(
        seconds,
        max(scored),
        float(np.mean([len(others) for others in possible.values()])),
        sum(tail not in possible[head] for tail, head in study.arrows),
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        score.skeleton.f1,
        score.direction.f1,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--variables", nargs="+", type=int, default=[30, 100, 200])
    parser.add_argument("--models", nargs="+", default=["linear", "general"])
    parser.add_argument("--screens", nargs="+", default=SHOWN, choices=SCREENS)
    parser.add_argument("--rows", type=int, default=500, help="of each client (default 500)")
    parser.add_argument("--seeds", default="2000:2001", help="first:last+1 (default 2000:2001; choices: below 1000)")
    parser.add_argument("--quick", action="store_true", help="30 and 120 variables, 100 rows, one seed")
    options = parser.parse_args()
    if options.quick:
        options.variables, options.rows, options.seeds = [30, 120], 100, "2000:2001"
    seeds = range(*map(int, options.seeds.split(":")))
    print(f"Means over seeds {seeds.start}..{seeds.stop - 1}, edges = d, K = 10, n_k = {options.rows}")
    print(f"{'':36}{'seconds':>9}{'families':>10}{'cand./var.':>12}{'missed':>8}{'MB':>7}{'skel F1':>9}{'dir F1':>8}")
    for model in options.models:
        for variables in options.variables:
            for screen in options.screens if variables > screening.MANY else options.screens[:1]:
                run = partial(measured, screen, model, variables, options.rows)
                with ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), max_tasks_per_child=1) as pool:
                    found = Measured(*np.mean(list(pool.map(run, seeds)), axis=0))
                label = f"{model:8} d = {variables:<4} {screen}"
                print(
                    f"{label:36}{found.seconds:9.1f}{found.families:10.0f}{found.candidates:12.1f}{found.missed:8.1f}"
                    f"{found.megabytes:7.0f}{found.skeleton:9.3f}{found.direction:8.3f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
