"""A whole online study in one process: python -m benchmarks.bench_federation --help

A hundred sites with thirty variables: seconds, memory and bytes. And thirty sites with ten variables where tests ask
again, with and without a site that drops out on the way.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Mapping
from typing import Any

from fedcdh.discovery.api import discover
from fedcdh.evaluation.simulation import Simulation, simulate
from fedcdh.federation import simulate_federation
from fedcdh.federation.participation import Participation
from fedcdh.reporting.result_files import render_result_json

ROWS, SEED = 500, 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes only: a trial of the program, not a result")
    quick = parser.parse_args().quick
    one_shot = _study(*(6, 10) if quick else (30, 100))
    for method in ("evidence", "constraint"):
        _run(one_shot, {"method": method})
    _run(further := _study(*(6, 10) if quick else (10, 30)), asking := {"method": "constraint", "rounds": "adaptive"})
    client = next(iter(further.tables))
    start = time.perf_counter()
    outcome = simulate_federation(
        further.columns("site"),
        domain="site",
        accept_differences=further.names,
        faults={(client, "answer 2"): "silent"},
        **asking,
    )
    print(f"{'':11} {time.perf_counter() - start:6.1f} s where {client} drops out in the second of them; ", end="")
    print(f"{_traffic(outcome.participation)}; {outcome.result.search_result.spent}")


def _study(variables: int, clients: int) -> Simulation:
    print(f"{clients} sites, {variables} variables, {ROWS} rows each, seed {SEED}")
    return simulate(variables=variables, clients=clients, rows=ROWS, seed=SEED)


def _run(study: Simulation, search: Mapping[str, Any]) -> None:
    data, before = study.columns("site"), _peak()
    start, cpu = time.perf_counter(), time.process_time()
    outcome = simulate_federation(data, domain="site", accept_differences=study.names, **search)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    print(
        f"{search['method']:11} {seconds:6.1f} s ({cpu:.1f} s of one core), peak memory {_peak():.0f} MB (before "
        f"{before:.0f} MB); {_traffic(outcome.participation)}"
    )
    if outcome.result.search_result.spent:
        print(f"{'':11} {outcome.result.search_result.spent}")
    start = time.perf_counter()
    same = render_result_json(discover(data, domain="site", **search)) == render_result_json(outcome.result)
    print(f"{'':11} {time.perf_counter() - start:6.1f} s with discover alone; the same bytes: {same}")


def _traffic(record: Participation) -> str:
    asked = sum(event.what == "sent" for event in record.events)
    return (
        f"{asked} requests, {record.bytes_sent / 1e6:.2f} MB to sites, {record.bytes_received / 1e6:.2f} MB from them"
    )


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
