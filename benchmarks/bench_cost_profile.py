"""Where the time goes: the largest costs of each phase, as shares of it: python -m benchmarks.bench_cost_profile --help

A function's own time, with that of libraries it calls and without that of other functions of ours. The profiler slows
down what calls many small functions, so shares tell where to look, and not how much faster all would be without them.
One thread.
"""

from __future__ import annotations

import argparse
import cProfile
from collections import Counter
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

import fedcdh
from benchmarks.scale import jobs
from benchmarks.scale.measure import Work

Place = tuple[str, int, str]
PACKAGE = str(Path(fedcdh.__file__).parent)
MAX_LIBRARY_CALLS = 8
"""Calls within libraries that are followed back."""
PHASES: Mapping[str, partial[Work]] = {
    "client: 500,000 rows of 20 variables": partial(jobs.client, rows=500_000, variables=20),
    "arrival: 300 messages of 10 variables": partial(jobs.arrival, clients=300, variables=10, rows=200),
    "tables to graph: constraint, d = 30": partial(jobs.whole, "constraint", variables=30, clients=10, rows=100),
    "server: constraint, d = 200": partial(jobs.server, "constraint", variables=200, clients=10, rows=200),
    "server: evidence, d = 50": partial(jobs.server, "evidence", variables=50, clients=10, rows=200),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, default=6, help="costs of each phase (default 6)")
    parser.add_argument("--only", default="", metavar="WORD", help="phases with this word only")
    options = parser.parse_args()
    with threadpool_limits(1):
        for phase, prepare in PHASES.items():
            if options.only in phase:
                print(f"\n{phase}", flush=True)
                for share, name in profile_costs(prepare(), options.most):
                    print(f"  {share:5.0%}  {name}", flush=True)


def profile_costs(work: Work, most: int) -> list[tuple[float, str]]:
    """The largest shares of the time of some work, and whose they are."""
    profiler = cProfile.Profile()
    profiler.runcall(work)
    profiler.create_stats()
    calls: dict[Place, Any] = profiler.stats  # type: ignore[attr-defined]
    own: Counter[Place] = Counter()
    for place, (_, _, seconds, _, _) in calls.items():
        _charge_callers(place, seconds, calls, own)
    return [(seconds / own.total(), _format_function(place)) for place, seconds in own.most_common(most)]


def _charge_callers(place: Place, seconds: float, calls: Mapping[Place, Any], own: Counter[Place], up: int = 0) -> None:
    """The time of a function of a library goes to those of ours that called it, each according to its calls."""
    callers = calls[place][4]
    if place[0].startswith(PACKAGE) or not callers or up > MAX_LIBRARY_CALLS:
        own[place] += seconds
        return
    whole = sum(part[3] for part in callers.values()) or 1.0
    for caller, (_, _, _, there) in callers.items():
        if there:
            _charge_callers(caller, seconds * there / whole, calls, own, up + 1)


def _format_function(place: Place) -> str:
    file, _, name = place
    if file == "~":
        return name
    path = Path(file)
    shown = path.relative_to(PACKAGE) if path.is_relative_to(PACKAGE) else Path(path.parent.name, path.name)
    return f"{shown.as_posix()} {name}"


if __name__ == "__main__":
    main()
