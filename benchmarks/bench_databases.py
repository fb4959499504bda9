"""Cost of a summary of rows in a database, beside Parquet, with the peak of memory.

    python -m benchmarks.bench_databases                     # 10 million rows of 20 variables in DuckDB and PostgreSQL
    python -m benchmarks.bench_databases --rows 100000 --databases duckdb

The same rows are summarised from a Parquet file and from each database, by the command of a site, in a process of its
own. Times are ratios to Parquet, memory is the peak of the process. PostgreSQL is started for the purpose, if it is
installed (Debian: postgresql). The summaries have to be equal, byte for byte.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.postgresql_server import run_server, why_no_server
from fedcdh import Continuous, StudyPlan
from fedcdh.messages.study_file import Study

BATCH = 1 << 17
MEASURE = """
import re, sys
from pathlib import Path
from fedcdh.cli import main
code = main(sys.argv[1:])
print("peak", re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
sys.exit(code)
"""


def batches(rows: int, variables: int, seed: int) -> Iterator[pa.RecordBatch]:
    draw = np.random.default_rng(seed)
    for start in range(0, rows, BATCH):
        values = draw.standard_normal((variables, min(BATCH, rows - start)))
        yield pa.RecordBatch.from_arrays(
            [pa.array(column) for column in values], [f"x{i + 1}" for i in range(variables)]
        )


def fill_parquet(folder: Path, rows: Callable[[], Iterator[pa.RecordBatch]]) -> Path:
    schema = next(rows()).schema
    with pq.ParquetWriter(folder / "rows.parquet", schema) as writer:
        for batch in rows():
            writer.write_batch(batch)
    return folder / "rows.parquet"


def write_query(path: Path, url: str) -> Path:
    path.write_text(f'url = "{url}"\nquery = "SELECT * FROM patients"\n', encoding="utf-8")
    return path


def fill_duckdb(folder: Path, parquet: Path) -> Path:
    import duckdb

    with duckdb.connect(str(folder / "rows.duckdb")) as connection:
        connection.execute(f"CREATE TABLE patients AS SELECT * FROM '{parquet}'")
    return write_query(folder / "duckdb.query.toml", "duckdb:///rows.duckdb")


def fill_postgresql(folder: Path, address: str, rows: Callable[[], Iterator[pa.RecordBatch]]) -> Path:
    from adbc_driver_postgresql import dbapi

    with dbapi.connect(address) as connection, connection.cursor() as cursor:
        for number, batch in enumerate(rows()):
            cursor.adbc_ingest("patients", batch, mode="append" if number else "create")
        connection.commit()
    return write_query(folder / "postgresql.query.toml", address)


def measure(folder: Path, plan: Path, source: Path) -> tuple[float, float, bytes]:
    """Return seconds, peak megabytes and the bytes of the summary."""
    output = folder / f"{source.name}.summary"
    ledger = folder / f"{source.name}.jsonl"
    options = ["--client", "north", "-o", output, "--workers", "1", "--ledger", ledger, "--no-disclosure-control", "-q"]
    start = perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, "summarize", plan, source, *options],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    return perf_counter() - start, int(done.stdout.split()[-1]) / 1024, output.read_bytes()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--variables", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1000)
    parser.add_argument("--databases", default="duckdb,postgresql")
    given = parser.parse_args()
    chosen = given.databases.split(",")

    def rows() -> Iterator[pa.RecordBatch]:
        return batches(given.rows, given.variables, given.seed)

    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        plan = StudyPlan(tuple(Continuous(f"x{i + 1}") for i in range(given.variables)), ("north",))
        (folder / "study.plan.json").write_text(Study(plan).to_json(), encoding="utf-8")
        parquet = fill_parquet(folder, rows)
        print(f"{given.rows:,} rows of {given.variables} variables (seed {given.seed})")
        base, peak, expected = measure(folder, folder / "study.plan.json", parquet)
        print(f"parquet      1.00 of the time of Parquet, {peak:,.0f} MB at most")

        def report(name: str, source: Path) -> None:
            seconds, peak, found = measure(folder, folder / "study.plan.json", source)
            same = "the same bytes" if found == expected else "OTHER BYTES"
            print(f"{name:12} {seconds / base:.2f} of the time of Parquet, {peak:,.0f} MB at most, {same}", flush=True)

        if "duckdb" in chosen:
            report("duckdb", fill_duckdb(folder, parquet))
        if "postgresql" in chosen and (reason := why_no_server()):
            print(f"postgresql   not measured: {reason}")
        elif "postgresql" in chosen:
            with run_server() as address:
                report("postgresql", fill_postgresql(folder, address, rows))


if __name__ == "__main__":
    main()
