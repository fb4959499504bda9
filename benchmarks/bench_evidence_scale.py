"""Method "evidence" with many variables, and with many clients: python -m benchmarks.bench_evidence_scale --help

Studies have ten clients, and one edge per variable. Beside the way pairs are screened
(`fedcdh.inference.parent_screening`) is the plain screen: every pair that is dependent at significance level 0.1, which
is also how up to 100 variables are screened. Every run has its own process, one after the other. Seconds are processor
time of the search, from the sum of the summaries on; megabytes are the most that the process ever had, its tables
included. Missed are true edges to which the screen leaves no chance.

Many clients have 50 rows of 6 variables each, and their summaries are kept apart. Beside the seconds of the search are
those of comparing every mechanism of every client with the others' (drift) and of writing all of it as JSON.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from functools import partial
from time import process_time
from typing import Any, NamedTuple

import numpy as np

from benchmarks.bench_evidence_priors import cohort_of, replace_prior
from fedcdh.discovery import algorithm
from fedcdh.discovery.api import discover_from
from fedcdh.evaluation.simulation import simulate
from fedcdh.graphs.metrics import compare
from fedcdh.inference import parent_screening
from fedcdh.reporting.result_files import render_result_json

SCREENS: dict[str, dict[str, float]] = {
    "as chosen": {},
    "plain": {"MANY": 1_000_000},
    "3 companions": {"COMPANIONS": 3},
    "8 companions": {"COMPANIONS": 8},
    "3 by chance": {"BY_CHANCE": 3.0},
    "no companions": {"COMPANIONS": 0},
}
SHOWN = ("as chosen", "plain")


class ScaleMeasurement(NamedTuple):
    seconds: float
    families: float
    candidates: float
    missed: float
    megabytes: float
    skeleton: float
    direction: float


def measure_size(screen: str, model: Any, variables: int, rows: int, seed: int) -> ScaleMeasurement:
    study = simulate(model, variables=variables, edges=variables, rows=rows, seed=seed).standardised()
    cohort = cohort_of(study)
    possible: dict[str, frozenset[str]] = {}
    scored = [0]

    def screened(*asked: Any) -> Any:
        possible.update(parent_screening.screen_parents(*asked) or {})
        return possible or None

    with ExitStack() as stack:
        stack.enter_context(replace_prior(algorithm, "screen_parents", screened))
        for name, value in SCREENS[screen].items():
            stack.enter_context(replace_prior(parent_screening, name, value))
        start = process_time()
        found = discover_from(
            cohort, cohort.plan, method="evidence", progress=lambda before, new: scored.append(before + new)
        )
        seconds = process_time() - start
    score = compare(found.to_dag().arrows, study.arrows)
    return ScaleMeasurement(
        seconds,
        max(scored),
        float(np.mean([len(others) for others in possible.values()])),
        sum(tail not in possible[head] for tail, head in study.arrows),
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        score.skeleton.f1,
        score.direction.f1,
    )


class ClientComparison(NamedTuple):
    search: float
    drift: float
    export: float
    megabytes: float


def compare_clients(clients: int, seed: int) -> ClientComparison:
    """Run a study of many small clients, from their summaries to the file of the result."""
    study = simulate("general", variables=6, edges=6, clients=clients, rows=50, seed=seed).standardised()
    cohort = cohort_of(study)
    moments = [process_time()]
    result = discover_from(cohort, cohort.plan, method="evidence")
    moments.append(process_time())
    result.drift(study.names)
    moments.append(process_time())
    render_result_json(result)
    moments.append(process_time())
    return ClientComparison(*np.diff(moments).tolist(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def show_clients(numbers: list[int], seeds: range) -> None:
    """A row for every number of clients, and with what power of it the seconds grow, without the smallest."""
    print("\nMany clients: d = 6, edges = 6, n_k = 50, general")
    print(f"{'':36}{'search s':>9}{'drift s':>10}{'JSON s':>12}{'MB':>15}")
    found = []
    for clients in numbers:
        found.append(run_in_process(partial(compare_clients, clients), seeds))
        search, drift, export, megabytes = found[-1]
        print(f"{f'K = {clients}':36}{search:9.1f}{drift:10.1f}{export:12.1f}{megabytes:15.0f}", flush=True)
    if len(numbers) < 2:
        return
    larger = slice(1 if len(numbers) > 2 else 0, None)
    powers = np.polyfit(np.log(numbers[larger]), np.log(np.array(found)[larger, :3]), 1)[0]
    print(f"{'grows with K to the power':36}{powers[0]:9.2f}{powers[1]:10.2f}{powers[2]:12.2f}")


def run_in_process(run: Callable[[int], tuple[float, ...]], seeds: range) -> list[float]:
    """The mean over seeds of what a run measures, each in a process of its own."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), max_tasks_per_child=1) as pool:
        return [float(mean) for mean in np.mean(list(pool.map(run, seeds)), axis=0)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--variables", nargs="*", type=int, default=[30, 100, 200])
    parser.add_argument("--models", nargs="+", default=["linear", "general"])
    parser.add_argument("--screens", nargs="+", default=SHOWN, choices=SCREENS)
    parser.add_argument("--rows", type=int, default=500, help="of each client (default 500)")
    parser.add_argument("--seeds", default="2000:2001", help="first:last+1 (default 2000:2001; choices: below 1000)")
    parser.add_argument("--clients", nargs="*", type=int, default=[500, 1000, 3000, 10_000], help="numbers of clients")
    parser.add_argument("--quick", action="store_true", help="30 and 120 variables, 100 rows, few clients, one seed")
    options = parser.parse_args()
    if options.quick:
        options.variables, options.rows, options.seeds = [30, 120], 100, "2000:2001"
        options.clients = [50, 100, 200]
    seeds = range(*map(int, options.seeds.split(":")))
    print(f"Means over seeds {seeds.start}..{seeds.stop - 1}, edges = d, K = 10, n_k = {options.rows}")
    print(f"{'':36}{'seconds':>9}{'families':>10}{'cand./var.':>12}{'missed':>8}{'MB':>7}{'skel F1':>9}{'dir F1':>8}")
    for model in options.models:
        for variables in options.variables:
            for screen in (
                options.screens if variables > parent_screening.MAX_PAIRWISE_VARIABLES else options.screens[:1]
            ):
                run = partial(measure_size, screen, model, variables, options.rows)
                found = ScaleMeasurement(*run_in_process(run, seeds))
                label = f"{model:8} d = {variables:<4} {screen}"
                print(
                    f"{label:36}{found.seconds:9.1f}{found.families:10.0f}{found.candidates:12.1f}{found.missed:8.1f}"
                    f"{found.megabytes:7.0f}{found.skeleton:9.3f}{found.direction:8.3f}",
                    flush=True,
                )
    if options.clients:
        show_clients(options.clients, seeds)


if __name__ == "__main__":
    main()
