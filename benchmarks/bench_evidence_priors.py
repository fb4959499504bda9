"""Directions and priors of method "evidence": python -m benchmarks.bench_evidence_priors --help

1. How often directions within a class are right, by the strength of what tells them: curvature, independent change
   weighed as evidence, and the paper's form of that principle. The thresholds in `fedcdh.discovery.algorithm` come from
   here.
2. What other priors do to the graphs.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import fedcdh.inference.evidence.family_score as prior_of_change
from benchmarks.bench_graphs import DIALECTS
from fedcdh.discovery.algorithm import with_domain
from fedcdh.discovery.api import discover
from fedcdh.evaluation.simulation import Simulation, simulate
from fedcdh.graphs.metrics import compare
from fedcdh.graphs.partial_graph import sort_pair
from fedcdh.inference.evidence import gaussian
from fedcdh.inference.evidence.family_score import FamilyScore
from fedcdh.inference.independent_change import OperatorChange
from fedcdh.inference.orthonormal_basis import Basis
from fedcdh.inference.parent_screening import screen_parents
from fedcdh.protocols import DOMAIN
from fedcdh.search.edge_support import make_dag_collider_rule, measure_directions, to_skeleton
from fedcdh.search.order_search import best_dag
from fedcdh.search.orientation import orient_skeleton
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.aggregation import Cohort, add_up
from fedcdh.summaries.features import Hermite
from fedcdh.summaries.plan import StudyPlan

SETTINGS = (("linear", "paper"), ("general", "paper"), ("general", "authors"))
STRENGTHS = {"curvature": (0, 3, 10, 30), "independent change": (0, 3, 10, 30), "operators": (0, 0.05, 0.1, 0.2)}


class Calibration(NamedTuple):
    """One line of a class whose direction is known: what each kind of evidence says, positive if rightly."""

    both_change: bool
    values: dict[str, float]


def cohort_of(study: Simulation, width: int = 4) -> Cohort:
    tables = {client: dict(zip(study.names, table.T, strict=True)) for client, table in study.tables.items()}
    plan = StudyPlan.from_tables(tables, family=Hermite(width))
    return add_up([summarize(table, plan, client) for client, table in tables.items()], plan)


def count_lines(model: Any, dialect: str, seed: int) -> list[Calibration]:
    """The lines in the class of the best DAG of one instance that are edges in truth."""
    study = simulate(model, seed=seed, dialect=DIALECTS[dialect]).standardised()
    cohort = cohort_of(study)
    basis = Basis.of(cohort)
    score, straight = FamilyScore.of(cohort, basis), FamilyScore.of(cohort, basis, curved=False)
    best = best_dag(with_domain(cohort), score, candidates=screen_parents(basis, study.names)).dag
    graph = orient_skeleton(to_skeleton(best), make_dag_collider_rule(best)).graph
    curved = measure_directions(graph, score, straight)
    moving = measure_directions(graph, straight, lambda families: [0.0] * len(families))
    operators = OperatorChange(basis)
    found = []
    for pair in sorted(map(sort_pair, graph.lines)):
        for arrow in {pair, pair[::-1]} & study.arrows:
            (change,) = operators([arrow])
            values = {
                "curvature": curved.get(arrow, -curved.get(arrow[::-1], 0.0)),
                "independent change": moving.get(arrow, -moving.get(arrow[::-1], 0.0)),
                "operators": change.backward - change.forward,
            }
            found.append(Calibration({*arrow} <= graph.children(DOMAIN), values))
    return found


def score_directions(pool: ProcessPoolExecutor, seeds: range) -> None:
    print(f"1. Lines of the class whose direction is told rightly, by strength, seeds {seeds.start}..{seeds.stop - 1}")
    print("(number of lines at least so strong: share of them told rightly)")
    for model, dialect in SETTINGS:
        told = [one for part in pool.map(partial(count_lines, model, dialect), seeds, chunksize=4) for one in part]
        for both in (False, True):
            kinds = STRENGTHS if both else {"curvature": STRENGTHS["curvature"]}
            for kind, steps in kinds.items():
                values = np.array([one.values[kind] for one in told if one.both_change == both])
                shown = [_share(values[np.abs(values) > step], step) for step in steps]
                label = f"{model}, {dialect}, {'both change' if both else 'neither changes'}"
                print(f"{label:34}{kind:20}{''.join(shown)}", flush=True)


def _share(values: np.ndarray[Any, Any], step: float) -> str:
    share = f"{np.mean(values > 0):.2f}" if len(values) else "-"
    return f"  > {step:<5g}{len(values):4d}: {share:>4}"


PRIORS: dict[str, tuple[Any, str, Any]] = {
    "as chosen": (gaussian, "ROUGHNESS", gaussian.ROUGHNESS_DECAY),
    "prior variances of weights / 3": (gaussian, "SIZES", tuple(g / 3 for g in gaussian.PRIOR_VARIANCES)),
    "prior variances of weights x 3": (gaussian, "SIZES", tuple(g * 3 for g in gaussian.PRIOR_VARIANCES)),
    "roughness 0.25": (gaussian, "ROUGHNESS", 0.25),
    "roughness 1": (gaussian, "ROUGHNESS", 1.0),
    "clients' weights / 3": (gaussian, "SHARES", tuple(share / 3 for share in gaussian.DEVIATION_VARIANCES)),
    "clients' weights x 3": (gaussian, "SHARES", tuple(share * 3 for share in gaussian.DEVIATION_VARIANCES)),
    "clients' noise, freedom 2": (gaussian, "FREEDOM", 2.0),
    "clients' noise, freedom 8": (gaussian, "FREEDOM", 8.0),
    "log odds of change 0": (prior_of_change, "CHANGE", 0.0),
    "log odds of change -2": (prior_of_change, "CHANGE", -2.0),
}


@contextmanager
def replace_prior(place: Any, name: str, value: Any) -> Iterator[None]:
    before = getattr(place, name)
    setattr(place, name, value)
    try:
        yield
    finally:
        setattr(place, name, before)


def with_prior(label: str, model: Any, dialect: str, seed: int) -> tuple[float, float]:
    study = simulate(model, seed=seed, dialect=DIALECTS[dialect]).standardised()
    with replace_prior(*PRIORS[label]):
        found = discover(dict(study.tables), names=study.names, method="evidence")
    score = compare(found.to_dag().arrows, study.arrows)
    return score.skeleton.f1, score.direction.f1


def candidate_priors(pool: ProcessPoolExecutor, seeds: range) -> None:
    print(f"\n2. Skeleton F1 / direction F1 with other priors, seeds {seeds.start}..{seeds.stop - 1}")
    print(f"{'':34}" + "".join(f"{f'{model}, {dialect}':>20}" for model, dialect in SETTINGS))
    for label in PRIORS:
        cells = []
        for model, dialect in SETTINGS:
            scores = list(pool.map(partial(with_prior, label, model, dialect), seeds, chunksize=4))
            cells.append("{:.3f} / {:.3f}".format(*np.mean(scores, axis=0)))
        print(f"{label:34}" + "".join(f"{cell:>20}" for cell in cells), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--seeds", default="0:60", help="first:last+1 (default 0:60, where the numbers were chosen)")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    first, last = map(int, options.seeds.split(":"))
    with ProcessPoolExecutor(options.workers) as pool:
        if 1 in options.tables:
            score_directions(pool, range(first, last))
        if 2 in options.tables:
            candidate_priors(pool, range(first, last))


if __name__ == "__main__":
    main()
