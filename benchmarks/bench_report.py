"""Cost of a report: python -m benchmarks.bench_report --help

Results are searches by one message on simulated studies of ten clients with 300 rows each. *Page* is the time from the
document to the HTML, *document* that from the result to the document with all its effects, and *search* the time that
the result itself took, all in processor seconds of one run after a first one that loads the libraries. Ratios of the
first two to the search are the figures to compare: seconds belong to one machine on one day.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from time import process_time
from typing import NamedTuple

from fedcdh.discovery.api import discover
from fedcdh.evaluation.simulation import simulate
from fedcdh.reporting.html import render_report
from fedcdh.reporting.result_files import render_result_json

CLIENTS, ROWS = 10, 300


class Cost(NamedTuple):
    """Processor seconds, and the size of the page."""

    search: float
    document: float
    page: float
    kilobytes: float


def measure_cost(variables: int, seed: int) -> Cost:
    """Make one result and its report."""
    study = simulate("linear", variables=variables, clients=CLIENTS, rows=ROWS, seed=seed)
    start = process_time()
    result = discover(dict(study.tables), names=study.names, rounds="one")
    found = process_time()
    document = json.loads(render_result_json(result))
    written = process_time()
    page = render_report(document)
    return Cost(found - start, written - found, process_time() - written, len(page) / 1000)


def main(argv: Sequence[str] | None = None) -> None:
    """Print a row per number of variables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--variables", type=int, nargs="+", default=[8, 30, 100])
    parser.add_argument("--seed", type=int, default=1000)
    options = parser.parse_args(argv)
    measure_cost(4, options.seed)  # loads the libraries
    print("| variables | search | document | page | page / search | kB |\n|---|---|---|---|---|---|")
    for variables in options.variables:
        cost = measure_cost(variables, options.seed)
        print(
            f"| {variables} | {cost.search:.2f} s | {cost.document:.2f} s | {cost.page:.2f} s | "
            f"{cost.page / cost.search:.3f} | {cost.kilobytes:.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
