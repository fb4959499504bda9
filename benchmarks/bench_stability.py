"""What shares of bootstrap runs mean. python -m benchmarks.bench_stability --help

`clients`: is a client drawn twice two clients, or one of double weight? Clients are drawn with replacement from studies
in which nothing differs between them; every change found is false.

`rows`: how often are edges found again in bootstrap replicates, beside new rows of the same study? Pairs are grouped by
whether the truth and the result have an edge.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations, product

import numpy as np

from fedcdh.discovery.api import discover_from
from fedcdh.discovery.methods import get_method
from fedcdh.discovery.result import Discovery
from fedcdh.evaluation.simulation import simulate
from fedcdh.protocols import DOMAIN
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.aggregation import Cohort, add_up
from fedcdh.summaries.bootstrap import bootstrap_summaries
from fedcdh.summaries.plan import StudyPlan

NAMES = ("a", "b")
METHODS = ("evidence", "constraint")


def discover_independent(seed: int, method: str, clients: int = 10, rows: int = 80) -> Discovery:
    """a → b at all clients alike."""
    tables = {}
    for k in range(clients):
        a, b = np.random.default_rng([seed, k, 6]).standard_normal((2, rows))
        tables[f"c{k}"] = {"a": a, "b": a + b}
    plan = StudyPlan.from_tables(tables)
    cohort = add_up((summarize(table, plan, client) for client, table in tables.items()), plan)
    return discover_from(cohort, plan, method=method)


def double_weight(cohort: Cohort, drawn: tuple[str, ...]) -> Cohort:
    """Every client once, its sums multiplied by how often it was drawn."""
    times = Counter(drawn)
    summaries = [
        replace(one, moments=one.moments * times[name], rows_read=one.rows_read * times[name])
        for name, one in zip(cohort.clients, cohort.summaries, strict=True)
        if times[name]
    ]
    return Cohort(cohort.plan, tuple(summaries))


HALVES = (slice(0, None, 2), slice(1, None, 2))
KINDS = ("true, found", "true, not found", "false, found", "absent, not found")


def replicate_shares(
    seed: int, model: str, method: str, replicates: int, rows: int = 200
) -> list[tuple[str, float, float]]:
    """For every pair: what kind it is of, the share of replicates with an edge, and whether new rows give one."""
    study = simulate(model, variables=6, clients=5, rows=2 * rows, seed=seed)  # type: ignore[arg-type]
    halves = [{c: dict(zip(study.names, t[part].T, strict=True)) for c, t in study.tables.items()} for part in HALVES]
    plan = StudyPlan.from_tables(halves[0])
    result, new = (
        discover_from([summarize(table, plan, client) for client, table in half.items()], plan, method=method)
        for half in halves
    )
    drawn = [bootstrap_summaries(table, plan, client, replicates, seed) for client, table in halves[0].items()]
    runs = result.stability(replicates=zip(*drawn, strict=True)).runs
    true = {frozenset(arrow) for arrow in study.arrows}
    found = []
    for pair in map(frozenset, combinations(study.names, 2)):
        kind = KINDS[2 * (pair not in true) + (pair not in result.graph.skeleton)]
        found.append((kind, float(np.mean([bool(run.mark(*pair)) for run in runs])), float(pair in new.graph.skeleton)))
    return found


def show_row_stability(seeds: range, replicates: int, methods: Sequence[str]) -> None:
    print(
        f"share of runs with an edge, d = 6, K = 5, n = 200, {replicates} replicates, seeds {seeds.start}:{seeds.stop}"
    )
    print(
        f"{'model':9}{'method':12}{'pair':20}{'pairs':>7}"
        f"{'replicates':>12}{'new rows':>10}{'in 9 of 10 replicates':>23}"
    )
    for method, model in product(methods, ("linear", "general")):
        found = [record for seed in seeds for record in replicate_shares(seed, model, method, replicates)]
        for kind in KINDS:
            shares = np.array([record[1:] for record in found if record[0] == kind]).reshape(-1, 2)
            again, new = shares.mean(axis=0) if len(shares) else (np.nan, np.nan)
            firm = (shares[:, 0] >= 0.9).mean() if len(shares) else np.nan
            print(f"{model:9}{method:12}{kind:20}{len(shares):7}{again:12.2f}{new:10.2f}{firm:23.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("clients", "rows"), nargs="?", default="clients")
    parser.add_argument("--seeds", help="first:last+1 (default 1000:1060 for clients, 1000:1020 for rows)")
    parser.add_argument("--runs", type=int, default=5, help="draws of clients per study (default 5)")
    parser.add_argument("--methods", nargs="+", default=METHODS, choices=METHODS)
    parser.add_argument("--replicates", type=int, default=20, help="bootstrap replicates per study (default 20)")
    options = parser.parse_args()
    if options.what == "rows":
        show_row_stability(
            range(*map(int, (options.seeds or "1000:1020").split(":"))), options.replicates, options.methods
        )
    else:
        show_client_stability(
            range(*map(int, (options.seeds or "1000:1060").split(":"))), options.runs, options.methods
        )


def show_client_stability(seeds: range, runs: int, methods: Sequence[str]) -> None:
    print(f"share of variables that seem to change, nothing differs, 10 clients, seeds {seeds.start}:{seeds.stop}")
    print(f"{'method':12}{'the study':>11}{'two clients':>13}{'double weight':>15}")
    for method in methods:
        whole, two, double = [], [], []
        for seed in seeds:
            result = discover_independent(seed, method)
            whole.append(len(result.changing) / len(NAMES))
            for run in result.stability(runs, seed=seed).runs:
                weighed = double_weight(result.cohort, run.clients)
                graph = get_method(method).search(weighed, result.settings, None).orientation.graph
                two.append(len(run.changing or ()) / len(NAMES))
                double.append(len(graph.children(DOMAIN)) / len(NAMES))
        print(f"{method:12}{np.mean(whole):11.3f}{np.mean(two):13.3f}{np.mean(double):15.3f}", flush=True)


if __name__ == "__main__":
    main()
