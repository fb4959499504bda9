"""One table summarised on one core, by Dask and by Ray: whether the bytes are the same, and times beside one core.

    python -m benchmarks.bench_clusters                      # 2 million rows of 20 variables, two worker processes
    python -m benchmarks.bench_clusters --rows 200000

Rows are made where they are summarised, part by part, and never sent anywhere; making them counts in all times alike.
Clusters are of this machine and stand before the clock starts. A library that is not installed is left out.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from threadpoolctl import threadpool_limits

from fedcdh import Categorical, Continuous, StudyPlan, summarize
from fedcdh.data.clusters import DaskRows, RayRows
from fedcdh.messages.summary_file import SummaryMessage, pack_summary

LABELS = ("a", "b", "c")
MISSING = 0.001  # of the cells

Part = Callable[[int], pa.Table]


def plan_of(variables: int) -> StudyPlan:
    """Numbers, and a label in every tenth place."""
    columns = [
        Categorical(f"x{i}", LABELS) if i % 10 == 0 else Continuous(f"x{i}", 0.1, 1.5) for i in range(1, variables + 1)
    ]
    return StudyPlan(tuple(columns), ("site",))


def make_part(variables: int, rows: int, seed: int, number: int) -> pa.Table:
    """A chain of variables with noise; every tenth of them is cut into labels, and a few values are missing."""
    random = np.random.default_rng([seed, number])
    values = random.standard_normal((variables, rows))
    for i in range(1, variables):
        values[i] += 0.8 * values[i - 1]
    columns = {}
    for i, column in enumerate(values, start=1):
        gaps = random.random(rows) < MISSING
        if i % 10 == 0:
            codes = pa.array(np.digitize(column, [-1, 1]), mask=gaps)
            columns[f"x{i}"] = pa.DictionaryArray.from_arrays(codes, list(LABELS)).cast(pa.string())
        else:
            columns[f"x{i}"] = pa.array(column, mask=gaps)
    return pa.table(columns)


def summarize_rows(part: Part, numbers: Any) -> pa.Table:
    """The part whose number Ray carries around as a row of its own."""
    return part(int(numbers["id"][0]))


def to_frame(part: Part, number: int) -> Any:
    return part(number).to_pandas()


@contextmanager
def run_on_one_core(part: Part, parts: int) -> Iterator[Any]:
    with threadpool_limits(1):
        yield lambda: (part(number) for number in range(parts))


@contextmanager
def run_on_dask(part: Part, parts: int, workers: int) -> Iterator[Any]:
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    alone = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0", "silence_logs": "ERROR"}
    with LocalCluster(n_workers=workers, threads_per_worker=1, **alone) as cluster, Client(cluster):
        frame = dd.from_map(partial(to_frame, part), range(parts), meta=to_frame(part, 0).iloc[:0])
        yield lambda: DaskRows(frame)


@contextmanager
def run_on_ray(part: Part, parts: int, workers: int) -> Iterator[Any]:
    os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # or Ray listens to the network, whatever address it is given
    import ray
    import ray.data

    quiet = {"include_dashboard": False, "log_to_driver": False, "logging_level": "ERROR"}
    ray.init(num_cpus=workers, _node_ip_address="127.0.0.1", object_store_memory=1 << 28, **quiet)
    try:
        ray.data.DataContext.get_current().enable_progress_bars = False
        numbers = ray.data.range(parts, override_num_blocks=parts)
        made = numbers.map_batches(partial(summarize_rows, part), batch_size=1, batch_format="pyarrow")
        yield lambda: RayRows(made)
    finally:
        ray.shutdown()


def time_call(plan: StudyPlan, cluster: Any, times: int) -> tuple[bytes, float]:
    """The message, and the least of several times; the first run, in which workers load their libraries, is extra."""
    with cluster as source:
        taken = []
        for _ in range(times + 1):
            begin = time.perf_counter()
            summary = summarize(source(), plan, "site")
            taken.append(time.perf_counter() - begin)
    return pack_summary(SummaryMessage(summary, False), plan), min(taken[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--variables", type=int, default=20)
    parser.add_argument("--parts", type=int, default=40)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--times", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1000)
    options = parser.parse_args()
    plan, rows = plan_of(options.variables), options.rows // options.parts
    part = partial(make_part, options.variables, rows, options.seed)
    size = f"{rows * options.parts:,} rows of {options.variables} variables in {options.parts} parts"
    print(f"{size} (seed {options.seed}); {options.workers} worker processes")
    print(f"{'':<14} {'same bytes':>10} {'time beside one core':>22}")
    expected, alone = time_call(plan, run_on_one_core(part, options.parts), options.times)
    for name, engine in {"Dask": run_on_dask, "Ray": run_on_ray}.items():
        try:
            found, taken = time_call(plan, engine(part, options.parts, options.workers), options.times)
        except ModuleNotFoundError as lacking:
            print(f"{name:<14} left out: {lacking}")
        else:
            print(f"{name:<14} {'yes' if found == expected else 'NO':>10} {taken / alone:>22.2f}")


if __name__ == "__main__":
    main()
