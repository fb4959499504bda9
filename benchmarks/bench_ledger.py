"""What sketches of rows tell a site's ledger, and what they cost beside the summary.

    python -m benchmarks.bench_ledger [--tables 20]

Changed rows: some of n rows are replaced, so that twice as many stand in one table and not in the other. The sure bound
is never above that; the share of it that sketches of 1024, 4096 and 16384 buckets see decides from when on a second
release may leave. Rows in common: how often a share of common rows is seen, and how often one where there is none.
Cost: processor time to sketch all columns and the rows, over the time to summarize them.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from time import process_time

import numpy as np
import numpy.typing as npt

from fedcdh import StudyPlan
from fedcdh.data.columns import NumericColumn
from fedcdh.privacy.disclosure.row_scan import ScanOptions, scan_rows
from fedcdh.privacy.ledger import row_sketches

Array = npt.NDArray[np.float64]
BUCKETS = (1024, 4096, 16384)
SHAPES: dict[str, Callable[[np.random.Generator, int], Array]] = {
    "numbers": lambda rng, n: rng.standard_normal(n),
    "years": lambda rng, n: np.round(rng.normal(50, 15, n)),
    "3 labels": lambda rng, n: rng.choice([0.0, 1.0, 2.0], n, p=[0.6, 0.3, 0.1]),
}


def make_sketch(values: Array, seed: int) -> row_sketches.ValueSketch:
    (found,) = (hashed := row_sketches._KeyedHash(bytes([seed % 251]))).to_sketches(
        hashed.hash_columns([NumericColumn(values)])
    )
    return found


def count_detected(rows: int, changed: int, buckets: int, tables: int) -> float:
    """The sure bound over how many values really changed, on average."""
    shares = []
    for seed in range(1000, 1000 + tables):
        rng = np.random.default_rng(seed)
        before = rng.standard_normal(rows)
        after = np.concatenate([before[changed:], rng.standard_normal(changed)])
        shares.append(make_sketch(before, seed).changed(make_sketch(after, seed)) / (2 * changed))
    return statistics.mean(shares)


def show_common_rows(draw: Callable[[np.random.Generator, int], Array], rows: int, share: float, tables: int) -> float:
    """How often common rows are seen."""
    hits = 0
    for seed in range(1000, 1000 + tables):
        rng = np.random.default_rng(seed)
        before, kept = draw(rng, rows), round(share * rows)
        after = np.concatenate([before[:kept], draw(rng, rows - kept)])
        hits += make_sketch(before, seed).shares(make_sketch(after, seed))
    return hits / tables


def show_cost(variables: int, rows: int) -> tuple[float, float]:
    """Seconds of the processor to summarize, and what sketches add to it."""
    data = np.random.default_rng(0).standard_normal((rows, variables))
    table = {f"v{j}": data[:, j] for j in range(variables)}
    plan = StudyPlan.from_tables({"site": {name: column[:1000] for name, column in table.items()}})
    times: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(3):
        for watched in times:
            wanted = ScanOptions(secret=b"secret" if watched else None)
            start = process_time()
            scan_rows(table, plan, "site", wanted)
            times[watched].append(process_time() - start)
    plain = statistics.median(times[False])
    return plain, statistics.median(times[True]) - plain


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=20)
    tables = parser.parse_args().tables
    print(f"share of the changed values that the sure bound sees ({tables} tables, seeds 1000 on)")
    print(f"{'rows':>8}{'replaced':>10}" + "".join(f"{f'{k} buckets':>16}" for k in BUCKETS))
    chosen = row_sketches.N_BUCKETS
    for rows, changed in ((1000, 1), (1000, 50), (1000, 250), (10_000, 1000), (100_000, 2500), (100_000, 10_000)):
        cells = []
        for row_sketches.N_BUCKETS in BUCKETS:  # what is measured
            cells.append(f"{count_detected(rows, changed, row_sketches.N_BUCKETS, tables):>16.2f}")
        print(f"{rows:>8}{changed:>10}" + "".join(cells))
    row_sketches.N_BUCKETS = chosen
    shares = (0.0, 0.05, 0.1, 0.2, 0.5, 0.98)
    print(f"\nhow often common rows are seen, {chosen} buckets")
    print(f"{'':>10}{'rows':>8}" + "".join(f"{share:>8.0%}" for share in shares))
    for name, draw in SHAPES.items():
        for rows in (1000, 100_000):
            cells = [f"{show_common_rows(draw, rows, share, tables):>8.2f}" for share in shares]
            print(f"{name:>10}{rows:>8}" + "".join(cells))
    print("\nprocessor seconds to summarize, what sketches add, ratio")
    for variables, rows in ((6, 100_000), (30, 100_000), (6, 500_000)):
        plain, more = show_cost(variables, rows)
        print(f"{variables:>4} variables, {rows:>9} rows {plain:>8.2f}{more:>8.2f}{more / plain:>8.2f}")


if __name__ == "__main__":
    main()
