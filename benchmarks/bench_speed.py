"""Speed beside causal-learn and plain BLAS, and the server's memory: python -m benchmarks.bench_speed --help

Everything runs on one thread, side by side in one process, on the same rows; CPU seconds, so that other work on the
machine hardly counts. Seconds belong to one machine on one day: the ratios are the result.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import statistics
import time
import tracemalloc
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from fedcdh.discovery import discover, discover_from
from fedcdh.plan import Categorical, StudyPlan
from fedcdh.profile import profile
from fedcdh.simulate import Array, Simulation, simulate
from fedcdh.summary import Summary, summarize
from fedcdh.tables import as_table

FIRST_SEED = 1000
MODELS = ("linear", "general")
MEGABYTE = 1e6


def cpu_seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def study_of(model: str, variables: int, options: argparse.Namespace, seed: int) -> Simulation:
    return simulate(model, variables=variables, clients=options.clients, rows=options.rows, seed=seed).standardised()


def ours(study: Simulation) -> object:
    return discover(dict(study.tables), names=study.names, method="constraint")


def cdnod(study: Simulation, test: str) -> object:
    """causal-learn's CD-NOD with its own settings, on the pooled rows and the client's number."""
    from causallearn.search.ConstraintBased.CDNOD import cdnod as search  # the peer is an optional extra

    tables = list(study.tables.values())
    index = np.repeat(np.arange(1.0, len(tables) + 1), [len(table) for table in tables])
    return search(np.concatenate(tables), index[:, None], 0.05, test, True, 0, 2, show_progress=False)


def side_by_side(title: str, studies: Mapping[str, Simulation], test: str, repeats: int) -> None:
    """Both libraries in turn on every study; of several repeats the fastest counts, for either."""
    print(f"\n{title}")
    print(f"{'':20}{'fedcdh s':>10}{'cdnod ' + test:>16}{'ratio':>8}")
    ratios: dict[str, list[float]] = {}
    for label, study in studies.items():
        rounds = [(cpu_seconds(partial(ours, study)), cpu_seconds(partial(cdnod, study, test))) for _ in range(repeats)]
        mine, theirs = (min(side) for side in zip(*rounds, strict=True))
        ratios.setdefault(label.split()[0], []).append(theirs / mine)
        print(f"{label:20}{mine:10.3f}{theirs:16.3f}{theirs / mine:8.2f}", flush=True)
    for model, found in ratios.items():
        middle = statistics.median(found)
        print(f"{model}: median {middle:.2f} times as fast, from {min(found):.2f} to {max(found):.2f}")


class Message(NamedTuple):
    """A summary as plain values, which can be handed to a process that starts from nothing."""

    client: str
    moments: Any
    rows_read: int
    missing: dict[str, int]


def server(plan_text: str, messages: list[Message]) -> tuple[float, float, float]:
    """MB allocated at the peak of `discover_from`, MB of the whole process, CPU seconds without the measuring."""
    plan = StudyPlan.from_json(plan_text)
    summaries = [Summary(plan.fingerprint, (m.client,), m.moments, m.rows_read, m.missing) for m in messages]
    discover_from(summaries, plan, method="constraint")  # warm up: imports and the like are not the study's
    seconds = cpu_seconds(lambda: discover_from(summaries, plan, method="constraint"))
    tracemalloc.start()
    discover_from(summaries, plan, method="constraint")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / MEGABYTE, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / MEGABYTE, seconds


def messages_of(variables: int, clients: int, rows: int) -> tuple[str, list[Message], float]:
    """The plan, all clients' messages and the MB of the tables they stand for, made in a process of its own."""
    study = simulate("general", variables=variables, clients=clients, rows=rows, edges=variables, seed=FIRST_SEED)
    few = {client: table[:1000] for client, table in study.tables.items()}  # the plan needs a scale, not an exact one
    plan = StudyPlan.from_profiles(profile(as_table(table, study.names), client) for client, table in few.items())
    summaries = [summarize(as_table(table, study.names), plan, client) for client, table in study.tables.items()]
    size = sum(table.nbytes for table in study.tables.values()) / MEGABYTE
    return (
        plan.to_json(),
        [Message(s.clients[0], np.array(s.moments), s.rows_read, dict(s.missing)) for s in summaries],
        size,
    )


def alone(work: Callable[[], Any]) -> Any:
    """The result of work done in a fresh process."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context, initializer=threadpool_limits, initargs=(1,)) as pool:
        return pool.submit(work).result()


def server_memory(variables: int, clients: int, sizes: list[int]) -> None:
    print(f"\nServer: discover_from on the summaries of {clients} clients, d={variables} (general, seed {FIRST_SEED})")
    print(f"{'rows per client':>16}{'tables MB':>11}{'messages MB':>13}{'peak MB':>9}{'process MB':>12}{'CPU s':>8}")
    for rows in sizes:
        plan, messages, tables = alone(partial(messages_of, variables, clients, rows))
        peak, process, seconds = alone(partial(server, plan, messages))
        sent = sum(m.moments.nbytes for m in messages) / MEGABYTE
        print(f"{rows:16}{tables:11.2f}{sent:13.2f}{peak:9.2f}{process:12.0f}{seconds:8.3f}", flush=True)
    print("the peak follows the number of questions: with more rows more edges are seen, and deeper levels asked")


def features(table: Array, plan: StudyPlan) -> Array:
    """The matrix whose second moments are the summary: the constant, then each variable's columns."""
    columns = [np.ones((len(table), 1))]
    for values, variable in zip(table.T, plan.variables, strict=True):
        assert not isinstance(variable, Categorical)
        standard = np.clip((values - variable.location) / variable.scale, -plan.clip, plan.clip)
        bounded = standard / plan.clip
        assert variable.centre is not None
        assert variable.spread is not None
        inside = np.arcsinh((standard * variable.scale + variable.location - variable.centre) / variable.spread)
        columns += [bounded[:, None], bounded[:, None] ** 2, plan.family(inside)]
    return np.concatenate(columns, axis=1)


def throughput(variables: int, rows: int, repeats: int = 3) -> None:
    table = simulate("general", variables=variables, clients=1, rows=rows, changing=0, seed=FIRST_SEED)
    (client,) = table.tables
    read = as_table(table.tables[client], table.names)
    plan = StudyPlan.from_profiles([profile(read, client)])
    matrix = features(table.tables[client], plan)
    works: tuple[Callable[[], object], ...] = (lambda: summarize(read, plan, client), lambda: matrix.T @ matrix)
    rounds = [[cpu_seconds(work) for work in works] for _ in range(repeats)]
    mine, plain = np.min(rounds, axis=0)
    print(
        f"{variables:4}{plan.columns:9}{rows:9}{rows / mine:16.0f}{rows / plain:12.0f}{plain / mine:8.2f}", flush=True
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clients", type=int, default=10)
    parser.add_argument("--rows", type=int, default=100, help="rows per client beside causal-learn (default 100)")
    parser.add_argument("--instances", type=int, default=5, help="studies per model beside fisherz (default 5)")
    parser.add_argument("--variables", type=int, default=30, help="variables beside fisherz (default 30)")
    parser.add_argument("--repeats", type=int, default=3, help="rounds beside fisherz, the fastest counts (default 3)")
    parser.add_argument("--server-rows", nargs="+", type=int, default=[100, 10_000, 1_000_000])
    parser.add_argument("--skip-kci", action="store_true", help="leave out the one run that takes minutes")
    options = parser.parse_args()
    os.environ["TQDM_DISABLE"] = "1"  # cdnod does not hand its show_progress on; bars would count as its time
    with threadpool_limits(1):
        if find_spec("causallearn") is None:
            print("causal-learn is not installed (pip install 'fedcdh[peers]'): no figures beside it")
        else:
            beside_causal_learn(options)
        server_memory(6, options.clients, options.server_rows)
        print("\nClient: summarize beside a plain X.T @ X of the ready matrix of features, rows per CPU second")
        print(f"{'d':>4}{'columns':>9}{'rows':>9}{'summarize':>16}{'X.T @ X':>12}{'ratio':>8}")
        for variables, rows in ((6, 200_000), (30, 100_000)):
            throughput(variables, rows)


def beside_causal_learn(options: argparse.Namespace) -> None:
    tests = ("fisherz",) if options.skip_kci else ("fisherz", "kci")
    for warm_up in (ours, *(partial(cdnod, test=test) for test in tests)):
        warm_up(study_of("linear", 2, options, 0))  # imports and first calls are not what is measured
    d, size = options.variables, f"K={options.clients}, n_k={options.rows}"
    studies = {
        f"{model} {seed}": study_of(model, d, options, seed)
        for model in MODELS
        for seed in range(FIRST_SEED, FIRST_SEED + options.instances)
    }
    title = f"Whole search, d={d}, {size}, CPU seconds, best of {options.repeats}"
    side_by_side(title, studies, "fisherz", options.repeats)
    if not options.skip_kci:
        one = {f"general {FIRST_SEED}": study_of("general", 6, options, FIRST_SEED)}
        side_by_side(f"Whole search, d=6, {size}, CPU seconds", one, "kci", 1)


if __name__ == "__main__":
    main()
