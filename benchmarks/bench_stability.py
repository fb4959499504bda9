"""Is a client drawn twice two clients, or one of double weight? python -m benchmarks.bench_stability --help

Clients are drawn with replacement from studies in which nothing differs between them; every change found is false.
"""

from __future__ import annotations

import argparse
from collections import Counter
from dataclasses import replace

import numpy as np

from fedcdh.discovery import discover_from
from fedcdh.engines import engine_for
from fedcdh.plan import StudyPlan
from fedcdh.questions import DOMAIN
from fedcdh.result import Discovery
from fedcdh.summary import Cohort, add_up, summarize

NAMES = ("a", "b")


def alike(seed: int, method: str, clients: int = 10, rows: int = 80) -> Discovery:
    """a → b at all clients alike."""
    tables = {}
    for k in range(clients):
        a, b = np.random.default_rng([seed, k, 6]).standard_normal((2, rows))
        tables[f"c{k}"] = {"a": a, "b": a + b}
    plan = StudyPlan.from_tables(tables)
    cohort = add_up((summarize(table, plan, client) for client, table in tables.items()), plan)
    return discover_from(cohort, plan, method=method)


def of_double_weight(cohort: Cohort, drawn: tuple[str, ...]) -> Cohort:
    """Every client once, its sums multiplied by how often it was drawn."""
    times = Counter(drawn)
    summaries = [
        replace(one, moments=one.moments * times[name], rows_read=one.rows_read * times[name])
        for name, one in zip(cohort.clients, cohort.summaries, strict=True)
        if times[name]
    ]
    return Cohort(cohort.plan, tuple(summaries))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", default="1000:1060", help="first:last+1 (default 1000:1060)")
    parser.add_argument("--runs", type=int, default=5, help="draws of clients per study (default 5)")
    options = parser.parse_args()
    seeds = range(*map(int, options.seeds.split(":")))
    print(f"share of variables that seem to change though nothing differs, 10 clients, seeds {options.seeds}")
    print(f"{'method':12}{'the study':>11}{'two clients':>13}{'double weight':>15}")
    for method in ("evidence", "constraint"):
        whole, two, double = [], [], []
        for seed in seeds:
            result = alike(seed, method)
            whole.append(len(result.changing) / len(NAMES))
            for run in result.stability(options.runs, seed=seed).runs:
                weighed = of_double_weight(result.cohort, run.clients)
                graph = engine_for(method).search(weighed, result.settings, None).orientation.graph
                two.append(len(run.changing or ()) / len(NAMES))
                double.append(len(graph.children(DOMAIN)) / len(NAMES))
        print(f"{method:12}{np.mean(whole):11.3f}{np.mean(two):13.3f}{np.mean(double):15.3f}", flush=True)


if __name__ == "__main__":
    main()
