"""A hundred sites with thirty variables, in one process: seconds, memory and bytes of a whole online study.

python -m benchmarks.bench_federation
"""

from __future__ import annotations

import resource
import time

from fedcdh.discovery import discover
from fedcdh.exports import result_json
from fedcdh.online import simulate_federation
from fedcdh.simulate import simulate

SITES, VARIABLES, ROWS, SEED = 100, 30, 500, 1000


def main() -> None:
    study = simulate(variables=VARIABLES, clients=SITES, rows=ROWS, seed=SEED)
    data = study.columns("site")
    before = _peak()
    print(f"{SITES} sites, {VARIABLES} variables, {ROWS} rows each, seed {SEED}")
    for method in ("evidence", "constraint"):
        start, cpu = time.perf_counter(), time.process_time()
        outcome = simulate_federation(data, domain="site", method=method, accept_ranges=study.names)
        seconds, cpu, record = time.perf_counter() - start, time.process_time() - cpu, outcome.participation
        asked = sum(event.what == "sent" for event in record.events)
        print(
            f"{method:11} {seconds:6.1f} s ({cpu:.1f} s of one core), peak memory {_peak():.0f} MB (data alone "
            f"{before:.0f} MB); {asked} requests, "
            f"{record.bytes_sent / 1e6:.2f} MB to sites, {record.bytes_received / 1e6:.2f} MB from them"
        )
        start = time.perf_counter()
        same = result_json(discover(data, domain="site", method=method)) == result_json(outcome.result)
        print(f"{'':11} {time.perf_counter() - start:6.1f} s with discover alone; the same bytes: {same}")


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
