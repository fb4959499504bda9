"""Many variables: what the tests take and find as variables grow: python -m benchmarks.bench_variables --help

Every size runs in a process of its own, from rows to summaries to a graph, with default settings; as many edges as
variables, ten clients. CPU seconds count all threads; peak MB is all that the process ever held, summaries included.
Seconds belong to one machine on one day. `--levels` shows what other levels than the usual one would have given.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple, cast

from threadpoolctl import threadpool_limits

from fedcdh.data.table import to_table
from fedcdh.discovery.api import discover_from
from fedcdh.discovery.settings import default_alpha
from fedcdh.evaluation.simulation import MechanismModel, Simulation, simulate
from fedcdh.graphs.metrics import compare, compare_changing
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.aggregation import Cohort, add_up
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.profiles import profile

FIRST_SEED = 1000
SIZES = (100, 300, 1000)
LEVELS = (0.05, 0.01, 0.001, 1e-4, 1e-5)
KILOBYTE, MEGABYTE = 1024, 1e6


class Case(NamedTuple):
    """A study and how it is searched; alpha None is the usual level."""

    model: str
    variables: int
    clients: int
    rows: int
    seed: int
    alpha: float | None
    workers: int


class Figures(NamedTuple):
    seconds: float
    cpu: float
    peak: float
    questions: int
    skeleton: float
    direction: float
    changing: float


def study_of(case: Case) -> Simulation:
    size = {"variables": case.variables, "clients": case.clients, "rows": case.rows, "edges": case.variables}
    return simulate(cast("MechanismModel", case.model), seed=case.seed, **size).standardised()


def aggregate_study(study: Simulation) -> tuple[Cohort, StudyPlan]:
    """What the server gets."""
    tables = {client: to_table(table, study.names) for client, table in study.tables.items()}
    plan = StudyPlan.from_profiles(profile(table, client) for client, table in tables.items())
    return add_up([summarize(table, plan, client) for client, table in tables.items()], plan), plan


def measure_case(case: Case) -> Figures:
    """From summaries to a graph, and how right that is."""
    study = study_of(case)
    cohort, plan = aggregate_study(study)
    start, cpu = time.perf_counter(), time.process_time()
    found = discover_from(cohort, plan, method="constraint", alpha=case.alpha, workers=case.workers)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    return Figures(
        seconds,
        cpu,
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * KILOBYTE / MEGABYTE,
        sum(found.skeleton.queries_per_level),
        compare(found.graph.arrows, study.arrows, found.graph.lines).skeleton.f1,
        compare(found.to_dag().arrows, study.arrows).direction.f1,
        compare_changing(found.changing, study.changing).f1,
    )


def measure_in_process(case: Case) -> Figures:
    """In a fresh process, so that its peak is its own."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context, initializer=threadpool_limits, initargs=(1,)) as pool:
        return pool.submit(measure_case, case).result()


def make_cases(options: argparse.Namespace) -> Iterator[Case]:
    sizes = (30, 60) if options.quick else options.variables
    for variables in sizes:
        for model in options.models:
            for seed in range(FIRST_SEED, FIRST_SEED + options.instances):
                for alpha in (*LEVELS, None) if options.levels else (None,):
                    yield Case(model, variables, options.clients, options.rows, seed, alpha, options.workers)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--variables", nargs="+", type=int, default=SIZES, help=f"(default {SIZES})")
    parser.add_argument("--models", nargs="+", default=["general"], choices=("linear", "general"))
    parser.add_argument("--clients", type=int, default=10)
    parser.add_argument("--rows", type=int, default=500, help="per client (default 500)")
    parser.add_argument("--instances", type=int, default=1, help="studies per size and model (default 1)")
    parser.add_argument("--workers", type=int, default=1, help="threads (default 1)")
    parser.add_argument("--levels", action="store_true", help="besides the usual level, others")
    parser.add_argument("--quick", action="store_true", help="small sizes only: a trial of the program, not a result")
    options = parser.parse_args()
    print(f"From summaries to a graph, method='constraint', K={options.clients}, n_k={options.rows}, d edges")
    titles = f"{'questions':>11}{'skeleton F1':>13}{'direction F1':>14}{'changing F1':>13}"
    print(f"{'model':>8}{'seed':>6}{'d':>6}{'level':>9}{'seconds':>9}{'CPU s':>8}{'peak MB':>9}{titles}")
    for case in make_cases(options):
        found = measure_in_process(case)
        level = default_alpha("constraint", case.variables) if case.alpha is None else case.alpha
        print(
            f"{case.model:>8}{case.seed:>6}{case.variables:>6}{level:>9.1e}{found.seconds:>9.1f}{found.cpu:>8.1f}"
            f"{found.peak:>9.0f}{found.questions:>11}{found.skeleton:>13.3f}{found.direction:>14.3f}"
            f"{found.changing:>13.3f}" + (" (usual)" if options.levels and case.alpha is None else ""),
            flush=True,
        )


if __name__ == "__main__":
    main()
