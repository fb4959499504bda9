"""What a summary costs: memory and time for a large Parquet file, beside numpy alone, and the size of the message.

    python -m benchmarks.bench_summarize                      # 10 million rows of 20 variables
    python -m benchmarks.bench_summarize --rows 1000000

Memory is the peak of a process of its own that runs `fedcdh summarize` (and `fedcdh profile`) on the file. Times are
those of one core. "numpy alone" computes the same features in float64, block by block, and adds up their products with
BLAS, without rounding to the grid, without looking for missing values, and from arrays that are in memory already.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from threadpoolctl import threadpool_limits

from fedcdh import Continuous, StudyPlan, open_tables, summarize
from fedcdh.files.studies import Study
from fedcdh.files.summaries import size
from fedcdh.plan import DEFAULT_FAMILY
from fedcdh.policy import Policy
from fedcdh.releases import ReleaseLedger
from fedcdh.releasing import Gate
from fedcdh.taking_part import checked_summary

Array = npt.NDArray[np.float64]
BLOCK = 2048
PART = 1 << 20
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


def write(path: Path, rows: int, variables: int, seed: int) -> None:
    """A chain of variables with noise, written part by part."""
    rng = np.random.default_rng(seed)
    schema = pa.schema([(name, pa.float64()) for name in names(variables)])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, PART):
            part = rng.standard_normal((variables, min(PART, rows - start)))
            for i in range(1, variables):
                part[i] += 0.8 * part[i - 1]
            writer.write_table(pa.table(list(part), schema=schema))


def alone(values: Array, plan: StudyPlan) -> Array:
    """Features and their products as anybody would write them."""
    location = np.array([[v.location] for v in plan.variables if isinstance(v, Continuous)])
    scale = np.array([[v.scale] for v in plan.variables if isinstance(v, Continuous)])
    total = np.zeros((plan.columns, plan.columns))
    for start in range(0, values.shape[1], BLOCK):
        clipped = np.clip((values[:, start : start + BLOCK] - location) / scale, -plan.clip, plan.clip)
        linear = clipped / plan.clip
        features = DEFAULT_FAMILY.features(np.arcsinh(clipped))
        block = np.concatenate([np.ones((1, linear.shape[1])), linear, linear**2, *features])
        total += block @ block.T
    return total


def compute(path: Path, plan: StudyPlan, rows: int) -> tuple[float, float, float]:
    """Seconds for reading, for our sums, and for numpy alone, batch by batch in turn."""
    reading = ours = theirs = 0.0
    begin = time.perf_counter()
    for batch in open_tables(path).batches(plan.kinds):
        reading += time.perf_counter() - begin
        begin = time.perf_counter()
        summarize(batch, plan, "site")
        ours += time.perf_counter() - begin
        values = np.array([batch.columns[name].values for name in plan.names])
        begin = time.perf_counter()
        alone(values, plan)
        theirs += time.perf_counter() - begin
        begin = time.perf_counter()
    return reading, ours, theirs


def gated(path: Path, plan: StudyPlan, folder: Path) -> float:
    """Seconds for a summary that may leave: reading, sums, and all that a site looks at before."""
    begin = time.perf_counter()
    checked_summary(open_tables(path), plan, "site", Policy(), gate=Gate(ReleaseLedger(folder / "first")))
    return time.perf_counter() - begin


def measured(*command: object) -> tuple[float, float, float]:
    """Peak memory of a command in MB, before and after, and its time."""
    program = [sys.executable, "-c", MEASURE, *map(str, command)]
    run = subprocess.run(program, capture_output=True, text=True, check=False)
    if run.returncode:
        raise SystemExit(run.stderr)
    before, after, seconds = map(float, run.stdout.split())
    return before / 1024, after / 1024, seconds


def message_sizes() -> None:
    print("\nbytes of a message, and of the paper's tensor of (d + 1)² h² float64 numbers (h = 6 columns a variable)")
    print(f"{'d':>5} {'paper':>12} " + " ".join(f"{f'n = {rows:,}':>22}" for rows in (1000, 100_000, 10_000_000)))
    for variables in (6, 30, 100):
        plan = StudyPlan(tuple(map(Continuous, names(variables))), ("site",))
        paper = (variables + 1) ** 2 * 6**2 * 8
        cells = [size(plan, "site", rows) for rows in (1000, 100_000, 10_000_000)]
        print(f"{variables:>5} {paper:>12,} " + " ".join(f"{f'{cell:,} ({cell / paper:.2f})':>22}" for cell in cells))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--variables", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1000)
    options = parser.parse_args()
    plan = StudyPlan(tuple(Continuous(name, 0.1, 1.5) for name in names(options.variables)), ("site",))
    with tempfile.TemporaryDirectory() as folder, threadpool_limits(1):
        data, plan_file = Path(folder) / "data.parquet", Path(folder) / "study.plan.json"
        write(data, options.rows, options.variables, options.seed)
        plan_file.write_text(Study(plan).to_json(), encoding="utf-8")
        file = f"Parquet, {data.stat().st_size / 1e6:,.0f} MB"
        print(f"{options.rows:,} rows of {options.variables} variables (seed {options.seed}), {file}")
        reading, ours, theirs = compute(data, plan, options.rows)
        print(f"reading {reading:.1f} s, summary {ours:.1f} s, numpy alone {theirs:.1f} s: {ours / theirs:.2f} times")
        times = gated(data, plan, Path(folder)) / (reading + ours)
        print(f"with the checks of policy and ledger, reading included: {times:.2f} times")
        for command in (["summarize", plan_file, data], ["profile", data]):
            out = Path(folder) / f"{command[0]}.out"
            before, after, seconds = measured(
                *command, "--client", "site", "-o", out, "--ledger", Path(folder) / "ledger", "-q"
            )
            memory = f"peak {after:.0f} MB, of which {before:.0f} MB after starting"
            print(f"fedcdh {command[0]}: {memory}; {seconds:.0f} s")
    message_sizes()


if __name__ == "__main__":
    main()
