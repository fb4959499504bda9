"""What a summary costs: beside numpy, beside reading alone, on several cores, with all checks; memory, and bytes sent.

    python -m benchmarks.bench_summarize                      # 10 million rows of 20 variables
    python -m benchmarks.bench_summarize --rows 1000000 --workers 1 2

Rates are ratios of processor time, measured in turn on the same rows, one core. "numpy" is, for the default features,
the same columns as anybody would write them in float64, without rounding to the grid and without looking for missing
values; for random Fourier features only the cosines themselves. In both cases with the product of the block with itself
by BLAS. Reading is beside Arrow alone, which gives batches of the same file and throws them away.

Several workers are beside one, by the clock; beside that stands how many more rows as many processes that have nothing
in common, each with its rows in memory, sum up in the same time: what the machine has to give for this work. Other
programs that run meanwhile take their part of both; the load says how many there were. Memory is the peak of
a process of its own that runs the command.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from threadpoolctl import threadpool_limits

from fedcdh import Continuous, StudyPlan, open_tables, summarize
from fedcdh._runtime.cpu_count import available_cpus
from fedcdh.data.columns import NumericColumn
from fedcdh.data.table import Table
from fedcdh.messages.study_file import Study
from fedcdh.messages.summary_file import summary_file_size
from fedcdh.privacy.ledger import ReleaseLedger
from fedcdh.privacy.ledger.gate import ReleaseGate
from fedcdh.privacy.releases import ReleaseContext, release_summary
from fedcdh.summaries.features import FeatureFamily, Fourier, Hermite

Array = npt.NDArray[np.float64]
BLOCK = 4096
PART = 1 << 20
BATCH = 1 << 16
TIMES, ENOUGH = 5, 30_000_000
"""Rounds at most, and rows that are enough for one figure by the clock."""
MEASURE = """
import re, sys, time
from pathlib import Path
from fedcdh.cli import main

def peak():  # getrusage would tell the peak of the process that started this one
    return re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]

start, begin = peak(), time.perf_counter()
assert main(sys.argv[1:]) == 0
print(start, peak(), time.perf_counter() - begin)
"""


def names(variables: int) -> list[str]:
    return [f"x{number + 1}" for number in range(variables)]


def plan_of(variables: int, family: FeatureFamily | None = None) -> StudyPlan:
    return StudyPlan(tuple(Continuous(n, 0.1, 1.5) for n in names(variables)), ("site",), family or Hermite())


def draw_chain(rng: np.random.Generator, rows: int, variables: int) -> Array:
    """Every variable hangs on the one before."""
    values = rng.standard_normal((variables, rows))
    for i in range(1, variables):
        values[i] += 0.8 * values[i - 1]
    return values


def table_of(values: Array) -> Table:
    return Table({name: NumericColumn(column) for name, column in zip(names(len(values)), values, strict=True)})


def write(path: Path, rows: int, variables: int, seed: int) -> None:
    """Written part by part."""
    rng = np.random.default_rng(seed)
    schema = pa.schema([(name, pa.float64()) for name in names(variables)])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, PART):
            writer.write_table(pa.table(list(draw_chain(rng, min(PART, rows - start), variables)), schema=schema))


# Beside numpy


def sum_with_numpy(values: Array, plan: StudyPlan) -> Array:
    """The default features and their products, as anybody would write them."""
    total = np.zeros((plan.layout.n_columns, plan.layout.n_columns))
    for start in range(0, values.shape[1], BLOCK):
        clipped = np.clip((values[:, start : start + BLOCK] - 0.1) / 1.5, -plan.clip, plan.clip)
        linear = clipped / plan.clip
        features = plan.family.iter_columns(np.arcsinh(clipped))
        block = np.concatenate([np.ones((1, linear.shape[1])), linear, linear**2, *features])
        total += block @ block.T
    return total


def cosine_features(values: Array, plan: StudyPlan) -> Array:
    """As many cosines as there are features, and the product of a block of that size, nothing else."""
    width, total = plan.family.width, np.zeros((plan.layout.n_columns, plan.layout.n_columns))
    block = np.ones((plan.layout.n_columns, BLOCK))
    for start in range(0, values.shape[1], BLOCK):
        some = values[:, start : start + BLOCK]
        inside = block[:, : some.shape[1]]
        for number in range(width):
            np.cos(some, out=inside[number * len(some) : (number + 1) * len(some)])
        total += inside @ inside.T
    return total


def speed_ratio(plan: StudyPlan, alone: Callable[[Array, StudyPlan], Array], rows: int, seed: int) -> float:
    """How much of the speed of numpy alone a summary reaches: the median of rounds, in turn."""
    values = draw_chain(np.random.default_rng(seed), rows, len(plan.names))
    table, ratios = table_of(values), []

    for _ in range(TIMES):
        theirs = time_call(lambda: alone(values, plan))
        ratios.append(theirs / time_call(lambda: summarize(table, plan, "site")))
    return statistics.median(ratios)


def time_call(work: Callable[[], object], clock: Callable[[], float] = process_time) -> float:
    begin = clock()
    work()
    return clock() - begin


def compare_with_numpy(variables: int, rows: int, seed: int) -> None:
    fourier = plan_of(variables, Fourier())
    hermite = speed_ratio(plan_of(variables), sum_with_numpy, rows, seed)
    print(
        f"features and products, of numpy's speed: {hermite:.0%} by default, "
        f"{speed_ratio(fourier, cosine_features, rows, seed):.0%} for {fourier.family.width} Fourier features"
    )


def print_small_ratios() -> None:
    """Ratios only, in a few seconds."""
    compare_with_numpy(20, 100_000, 1000)
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data.parquet"
        write(data, 200_000, 20, 1000)
        show_whole_file(data, Path(folder), plan_of(20), 200_000)


# A whole file


def read_with_arrow(path: Path) -> None:
    with pq.ParquetFile(path, pre_buffer=False, buffer_size=1 << 16) as file:
        for _ in file.iter_batches(BATCH, use_threads=False):
            pass


def read(path: Path, plan: StudyPlan) -> None:
    for _ in open_tables(path).batches(plan.kinds):
        pass


def release_rows(rows: object, plan: StudyPlan, workers: int = 1) -> None:
    with tempfile.TemporaryDirectory() as folder:
        gate = ReleaseGate(ReleaseLedger(Path(folder) / "releases.jsonl"))
        release_summary(rows, plan, ReleaseContext("site", gate=gate, workers=workers))


def show_wide_table(variables: int, rows: int, seed: int) -> None:
    """Where columns are many, rows have to be looked at one by one until there are millions."""
    plan, table = plan_of(variables), table_of(draw_chain(np.random.default_rng(seed), rows, variables))
    ratio = time_call(lambda: release_rows(table, plan)) / time_call(lambda: summarize(table, plan, "site"))
    print(f"of {rows:,} rows of {variables} variables, {ratio:.1f} times as long")


def show_whole_file(path: Path, folder: Path, plan: StudyPlan, rows: int) -> None:
    """Processor time of one core: reading beside Arrow alone, reading and checks beside the sums."""
    theirs, ours = time_call(lambda: read_with_arrow(path)), time_call(lambda: read(path, plan))
    sums = time_call(lambda: summarize(open_tables(path), plan, "site"))
    all_of_it = time_call(lambda: release_rows(open_tables(path), plan))
    cells = rows * len(plan.names) * 8
    print(f"reading Parquet: {theirs / ours:.0%} of Arrow's speed ({cells / theirs / 1e9:.1f} GB of numbers a second)")
    print(
        f"of the time of a summary without checks, reading is {ours / sums:.0%}; with the checks of policy and ledger "
        f"it takes {all_of_it / sums:.2f} times as long"
    )


def keep_busy(seed: int) -> None:
    """The sums of rows in memory of its own."""
    plan = plan_of(20)
    table = table_of(draw_chain(np.random.default_rng(seed), 200_000, 20))
    summarize([table] * 8, plan, "site")


def available_speed(processes: int) -> float:
    """Return the wall-clock seconds of several processes, each with the same work."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(processes) as pool:
        pool.map(keep_busy, range(processes))  # until all have started
        return time_call(lambda: pool.map(keep_busy, range(processes), chunksize=1), perf_counter)


def show_workers(path: Path, plan: StudyPlan, workers: list[int], rounds: int) -> None:
    """By the clock, in turn: several workers beside one, with and without checks."""
    tasks: dict[str, Callable[[int], object]] = {
        "sums": lambda number: summarize(open_tables(path), plan, "site", workers=number),
        "with checks": lambda number: release_rows(open_tables(path), plan, number),
    }
    for number in (number for number in workers if number > 1):
        found: dict[str, list[float]] = {}
        for _ in range(rounds):
            for name, task in tasks.items():
                alone, shared = (
                    time_call(partial(task, 1), perf_counter),
                    time_call(partial(task, number), perf_counter),
                )
                found.setdefault(name, []).append(alone / shared)
            found.setdefault(f"{number} processes", []).append(number * available_speed(1) / available_speed(number))
        print(f"{number} workers beside 1, times as fast, median (and range) of {rounds}:")
        for name, each in found.items():
            print(f"  {name:12} {statistics.median(each):.2f} ({min(each):.2f} to {max(each):.2f})")


def measure_command(*command: object) -> tuple[float, float, float]:
    """Peak memory of a command in MB, before and after, and its time."""
    program = [sys.executable, "-c", MEASURE, *map(str, command)]
    run = subprocess.run(program, capture_output=True, text=True, check=False)
    if run.returncode:
        raise SystemExit(run.stderr)
    before, after, seconds = map(float, run.stdout.split())
    return before / 1024, after / 1024, seconds


def show_commands(data: Path, folder: Path, plan: StudyPlan, workers: list[int]) -> None:
    plan_file = folder / "study.plan.json"
    plan_file.write_text(Study(plan).to_json(), encoding="utf-8")
    summarizing = [["summarize", plan_file, data, "--workers", number] for number in workers]
    for place, command in enumerate([*summarizing, ["profile", data]]):
        common = ["--client", "site", "-o", folder / f"{place}.out", "--ledger", folder / f"{place}.jsonl", "-q"]
        before, after, seconds = measure_command(*command, *common)
        shown = " ".join(str(part) for part in command if not isinstance(part, Path))
        print(f"fedcdh {shown}: peak {after:.0f} MB, of which {before:.0f} MB after starting; {seconds:.0f} s")


def show_summary_sizes() -> None:
    print("\nbytes of a message, and of the paper's tensor of (d + 1)² h² float64 numbers (h = 6 columns a variable)")
    print(f"{'d':>5} {'paper':>12} " + " ".join(f"{f'n = {rows:,}':>22}" for rows in (1000, 100_000, 10_000_000)))
    for variables in (6, 30, 100):
        plan = StudyPlan(tuple(map(Continuous, names(variables))), ("site",))
        paper = (variables + 1) ** 2 * 6**2 * 8
        cells = [summary_file_size(plan, "site", rows) for rows in (1000, 100_000, 10_000_000)]
        print(f"{variables:>5} {paper:>12,} " + " ".join(f"{f'{cell:,} ({cell / paper:.2f})':>22}" for cell in cells))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--variables", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1000)
    parser.add_argument("--workers", type=int, nargs="+", default=sorted({1, available_cpus()}))
    options = parser.parse_args()
    plan = plan_of(options.variables)
    with tempfile.TemporaryDirectory() as name, threadpool_limits(1):
        folder = Path(name)
        data = folder / "data.parquet"
        write(data, options.rows, options.variables, options.seed)
        file = f"Parquet, {data.stat().st_size / 1e6:,.0f} MB"
        print(f"{options.rows:,} rows of {options.variables} variables (seed {options.seed}), {file}")
        print(f"{available_cpus()} cores, load {os.getloadavg()[0]:.1f}")
        compare_with_numpy(options.variables, min(options.rows, 200_000), options.seed)
        show_whole_file(data, folder, plan, options.rows)
        show_wide_table(300, min(options.rows, 50_000), options.seed)
        show_workers(data, plan, options.workers, min(TIMES, max(1, ENOUGH // options.rows)))
        show_commands(data, folder, plan, options.workers)
        print(f"load {os.getloadavg()[0]:.1f}")
    show_summary_sizes()


if __name__ == "__main__":
    main()
