"""Graph quality on the paper's synthetic studies, beside the oracle: python -m benchmarks.bench_graphs --help

Every method sees the same instances. The oracle is the true graph's augmented CPDAG, extended to a DAG: what perfect
tests and rules could give. "visible" is what a perfect search could find with our test: the true edges that it sees
(p < 0.05) given the other true parents and the domain, and no false ones. Settings are chosen on seeds below 1000.

A method with "-sums" after its name gets the sum of the summaries only, with the first moments of each client; one
with "-mix3", three mixtures of the clients in their place. One with ":RIDGE" after its name is "paper" with another
ridge.
"""

from __future__ import annotations

import argparse
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from typing import NamedTuple, cast

import numpy as np

from fedcdh.discovery.algorithm import ConstraintSearch
from fedcdh.discovery.api import discover, discover_from
from fedcdh.discovery.methods import METHODS
from fedcdh.discovery.result import Discovery
from fedcdh.discovery.settings import Settings
from fedcdh.evaluation.simulation import AUTHORS, PAPER, MechanismModel, Simulation, simulate
from fedcdh.graphs.equivalence import extend_to_dag, to_cpdag
from fedcdh.graphs.metrics import compare, compare_changing
from fedcdh.graphs.partial_graph import PartialGraph
from fedcdh.inference.independence.kernel_test import KernelTest
from fedcdh.inference.independence.regression_test import RegressionTest
from fedcdh.inference.independent_change import PrintedChange
from fedcdh.inference.orthonormal_basis import Basis
from fedcdh.protocols import DOMAIN, Query
from fedcdh.summaries.aggregation import Aggregate, Cohort
from fedcdh.summaries.domain_mixtures import DomainMixtures

DIALECTS = {"paper": PAPER, "authors": AUTHORS}


class Setting(NamedTuple):
    model: str
    variables: int
    clients: int
    rows: int
    density: int
    dialect: str


def score_oracle(study: Simulation) -> PartialGraph:
    """The best a search can do: the class of the true augmented graph, extended to a DAG."""
    augmented = PartialGraph.from_dag((DOMAIN, *study.names), study.augmented)
    return extend_to_dag(to_cpdag(augmented)).drop(DOMAIN)


def score_visible(study: Simulation, found: Discovery) -> list[tuple[str, str]]:
    """The true edges that the default test sees when it is asked the right question."""
    arrows = sorted(study.arrows)
    parents = {head: {tail for tail, other in arrows if other == head} for _, head in arrows}
    questions = [Query(tail, head, frozenset({DOMAIN, *parents[head]} - {tail})) for tail, head in arrows]
    answers = RegressionTest(Basis.of(found.cohort))(questions)
    return [arrow for arrow, answer in zip(arrows, answers, strict=True) if answer.p_value < found.settings.alpha]


def make_instance(setting: Setting, seed: int) -> Simulation:
    """One study, standardised: nothing may profit from the scale."""
    return simulate(
        cast("MechanismModel", setting.model),
        variables=setting.variables,
        clients=setting.clients,
        rows=setting.rows,
        edges=setting.density * setting.variables,
        seed=seed,
        dialect=DIALECTS[setting.dialect],
    ).standardised()


def find_graph(study: Simulation, method: str, seed: int) -> Discovery:
    """The result of a method on a study, from single summaries or from sums, with the usual ridge or another."""
    method, _, mixtures = method.partition("-mix")
    sums = method.endswith("-sums") or bool(mixtures)
    name, _, ridge = method.removesuffix("-sums").partition(":")
    found = discover(dict(study.tables), names=study.names, method=name, seed=seed, rounds="one" if sums else "auto")
    known = _add_up(cast("Cohort", found.cohort), int(mixtures or 0)) if sums else found.cohort
    if sums:
        found = discover_from(known, known.plan, method=name, seed=seed)
    if not ridge:
        return found

    def statistics(known: Cohort | Aggregate, settings: Settings) -> tuple[KernelTest, PrintedChange]:
        test = KernelTest.of_paper(known, ridge=float(ridge), seed=settings.seed)
        return test, PrintedChange(test.space, float(ridge))

    search = replace(cast("ConstraintSearch", METHODS[name].search), statistics=statistics)
    return replace(found, search_result=search(known, found.settings, None))


def _add_up(cohort: Cohort, mixtures: int) -> Aggregate:
    """The part of a secure sum that is opened: first moments of each client, or mixtures of them."""
    if not mixtures:
        return Aggregate.of(cohort)
    return Aggregate.from_total(cohort.total, cohort.plan, DomainMixtures.of(cohort.summaries, cohort.plan, mixtures))


def score_instance(setting: Setting, methods: tuple[str, ...], seed: int) -> dict[str, list[float]]:
    """Skeleton F1, direction F1, SHDs, changing recall and precision, seconds: per method, for one instance."""
    study = make_instance(setting, seed)
    best = compare(score_oracle(study).arrows, study.arrows)
    figures = {"oracle": [best.skeleton.f1, best.direction.f1, 0, best.direction.shd, 1, 1, 0]}
    for method in methods:
        start = time.perf_counter()
        found = find_graph(study, method, seed)
        seconds = time.perf_counter() - start
        score = compare(found.to_dag().arrows, study.arrows)
        changing = compare_changing(found.changing, study.changing)
        skeleton = compare(found.graph.arrows, study.arrows, found.graph.lines).skeleton
        figures[method] = [skeleton.f1, score.direction.f1, skeleton.shd, score.direction.shd]
        figures[method] += [changing.recall, changing.precision, seconds]
        if method == "constraint":
            seen = compare(score_visible(study, found), study.arrows)
            figures["visible"] = [seen.skeleton.f1, np.nan, seen.skeleton.shd, np.nan, np.nan, np.nan, 0]
    return figures


def print_table(setting: Setting, methods: tuple[str, ...], seeds: range, workers: int) -> None:
    with ProcessPoolExecutor(workers) as pool:
        results = list(pool.map(partial(score_instance, setting, methods), seeds, chunksize=2))
    print(
        f"\n{setting.model}, d={setting.variables}, K={setting.clients}, n_k={setting.rows}, "
        f"edges={setting.density}d, {setting.dialect} dialect, seeds {seeds.start}..{seeds.stop - 1}"
    )
    print(
        f"{'method':16}{'skel F1':>9}{'dir F1':>9}{'of oracle':>10}{'skel SHD':>9}{'dir SHD':>9}"
        f"{'chg rec':>9}{'chg prec':>9}{'ms':>9}"
    )
    best = np.mean([r["oracle"][1] for r in results])
    for method in results[0]:
        mean = np.mean([r[method] for r in results], axis=0)
        cells = zip(mean, ("9.3f", "9.3f", "9.2f", "9.2f", "9.3f", "9.3f"), strict=False)
        shown = [f"{'-':>9}" if np.isnan(value) else f"{value:{form}}" for value, form in cells]
        share = f"{'-':>10}" if np.isnan(mean[1]) else f"{mean[1] / best:10.3f}"
        print(f"{method:16}{''.join(shown[:2])}{share}{''.join(shown[2:])}{1000 * mean[6]:9.1f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", default="1000:1060", help="first:last+1 (default 1000:1060)")
    parser.add_argument("--models", nargs="+", default=["linear", "general"])
    parser.add_argument("--variables", nargs="+", type=int, default=[6, 12])
    parser.add_argument("--clients", type=int, default=10)
    parser.add_argument("--rows", type=int, default=100)
    parser.add_argument("--density", type=int, default=1, help="edges per variable")
    parser.add_argument("--dialect", choices=DIALECTS, default="paper")
    parser.add_argument("--methods", nargs="+", default=["evidence", "constraint", "paper"])
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    first, last = map(int, options.seeds.split(":"))
    for variables in options.variables:
        for model in options.models:
            setting = Setting(model, variables, options.clients, options.rows, options.density, options.dialect)
            print_table(setting, tuple(options.methods), range(first, last), options.workers)


if __name__ == "__main__":
    main()
