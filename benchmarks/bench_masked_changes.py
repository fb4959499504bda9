"""Changes and directions under masks, beside those with all summaries: python -m benchmarks.bench_masked_changes --help

Studies are the paper's (six variables, ten clients of 100 rows, two mechanisms that change). Every program sees the
same instances. "sum" is what a secure sum leaves: the sum of the summaries, the sums of features of every client, and
sums of answers about residuals. `--protocol` runs the masked rounds themselves, which gives the same sums and takes
longer. Directions are those of the drawn graph, and of the DAG that extends it. Numbers were chosen on seeds below
1000.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from fedcdh import discover_from
from fedcdh.discovery.result import Discovery
from fedcdh.evaluation.simulation import Simulation, simulate
from fedcdh.federation import SecureSumOptions, simulate_federation
from fedcdh.graphs.metrics import compare_graph
from fedcdh.summaries import StudyPlan, add_up, summarize
from fedcdh.summaries.aggregation import Aggregate
from fedcdh.summaries.joint import LocalAnswerSource
from fedcdh.summaries.residuals import ResidualRequest, ResidualSums

MAX_ROUNDS, MAX_BYTES = 20, 10_000_000
"""Limits of the plan for questions about residuals."""


class SummedAnswers(LocalAnswerSource):
    """Clients of which only the sum of answers is seen."""

    def ask_residuals(self, request: ResidualRequest, /) -> Mapping[str, Sequence[ResidualSums]]:
        """Return the sums over all clients, as one entry."""
        answers = [found for found in super().ask_residuals(request).values() if found]
        return {"all clients": tuple(sum(several[1:], start=several[0]) for several in zip(*answers, strict=True))}


class Counts(NamedTuple):
    """The result of one program on one study."""

    right: int  # changes that are there and found
    found: int
    true: int
    drawn_f1: float
    dag_f1: float
    skeleton_f1: float


def run_study(study: Simulation, *, protocol: bool) -> dict[str, Counts]:
    """Run all programs on one study."""
    tables = {name: dict(zip(study.names, rows.T, strict=True)) for name, rows in study.tables.items()}
    plan = replace(StudyPlan.from_tables(tables), max_rounds=MAX_ROUNDS, max_bytes=MAX_BYTES)
    cohort = add_up([summarize(rows, plan, name) for name, rows in tables.items()], plan)
    total = Aggregate.of(cohort)
    found = {
        "all summaries": discover_from(cohort, plan, source=LocalAnswerSource(tables, plan, cohort)),
        "all summaries, one message": discover_from(cohort, plan),
        "sum": discover_from(total, plan, source=SummedAnswers(tables, plan, cohort)),
        "sum, one message": discover_from(total, plan),
    }
    if protocol:
        found["sum, masked rounds"] = _run_rounds(tables)
    return {name: _count(study, result) for name, result in found.items()}


def _run_rounds(tables: Mapping[str, Any]) -> Discovery:
    return simulate_federation(dict(tables), secure_sum=SecureSumOptions()).result


def _count(study: Simulation, result: Discovery) -> Counts:
    drawn, dag = compare_graph(result.graph, sorted(study.arrows)), compare_graph(result.to_dag(), sorted(study.arrows))
    right = len(result.changing & study.changing)
    sizes = (right, len(result.changing), len(study.changing))
    return Counts(*sizes, drawn.direction.f1, dag.direction.f1, drawn.skeleton.f1)


def print_table(model: str, counts: Mapping[str, Sequence[Counts]]) -> None:
    print(f"\n{model:28s} recall  precision  direction F1  of the DAG  skeleton F1   (recall, precision of changes)")
    for name, several in counts.items():
        right, found, true, drawn, dag, skeleton = np.array(several).T
        precision = right.sum() / max(found.sum(), 1)
        print(
            f"{name:28s} {right.sum() / true.sum():6.3f} {precision:10.3f} {drawn.mean():13.3f} {dag.mean():11.3f}"
            f" {skeleton.mean():12.3f}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", default="1000:1040", help="first and last seed, the last excluded")
    parser.add_argument("--models", nargs="+", default=["linear", "general"])
    parser.add_argument("--clients", type=int, default=10)
    parser.add_argument("--rows", type=int, default=100)
    parser.add_argument("--protocol", action="store_true", help="run the rounds of secure aggregation as well")
    options = parser.parse_args()
    first, last = map(int, options.seeds.split(":"))
    print(f"{options.clients} clients of {options.rows} rows, seeds {first} to {last - 1}")
    for model in options.models:
        counts: dict[str, list[Counts]] = {}
        for seed in range(first, last):
            study = simulate(model, clients=options.clients, rows=options.rows, seed=seed)
            for name, one in run_study(study, protocol=options.protocol).items():
                counts.setdefault(name, []).append(one)
        print_table(model, counts)


if __name__ == "__main__":
    main()
