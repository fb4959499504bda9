"""The programs that the grid compares: our engines, the oracle's class, and programs that take the rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from benchmarks.bench_masked_changes import MAX_BYTES, MAX_ROUNDS, SummedAnswers
from fedcdh import DOMAIN, PartialGraph, discover, discover_from
from fedcdh.discovery.result import Discovery
from fedcdh.errors import SecureAggregationError
from fedcdh.evaluation.baselines.pooled_references import (
    graph_from_endpoint_marks,
    import_causal_learn,
    run_cdnod,
    run_pc,
    wrap_causal_learn,
)
from fedcdh.evaluation.experiments.noise_shape_data import GridStudy
from fedcdh.federation import SecureSumOptions, simulate_federation
from fedcdh.graphs.equivalence import to_cpdag
from fedcdh.privacy.disclosure.policy import Policy
from fedcdh.summaries import StudyPlan, add_up, summarize
from fedcdh.summaries.aggregation import Aggregate

Arrow = tuple[str, str]
MIN_WEIGHT = 0.1
"""A LiNGAM weight below this, between standardised variables, is no edge; the package itself prunes by the lasso."""


@dataclass(frozen=True)
class Found:
    """The graph of one program, and for our engines the reason of each arrow and the cost of further messages."""

    arrows: frozenset[Arrow]
    lines: frozenset[frozenset[str]] = frozenset()
    changing: frozenset[str] | None = None
    reasons: Mapping[Arrow, tuple[str, float | None]] = field(default_factory=dict)
    sums: int = 0  # that a client sends after its summary
    rounds: int = 0


def run_ours(study: GridStudy, **settings: Any) -> Found:
    return _from_result(discover(dict(study.tables), **settings))


def run_sites(study: GridStudy, *, secure: bool = False) -> Found:
    """Run a federated study: every message passes the default policy of its site, as it does by file."""
    terms = SecureSumOptions() if secure else None
    try:
        outcome = simulate_federation(dict(study.tables), policy=Policy(), secure_sum=terms)
    except SecureAggregationError:  # too many sites refuse their summaries: no result, all edges are missed
        return Found(frozenset())
    return _from_result(outcome.result)


def run_sum(study: GridStudy) -> Found:
    """Run what a secure sum gives, sums of answers included, without masks and whatever the policies of sites are."""
    plan = replace(StudyPlan.from_tables(study.tables), max_rounds=MAX_ROUNDS, max_bytes=MAX_BYTES)
    cohort = add_up([summarize(rows, plan, name) for name, rows in study.tables.items()], plan)
    answers = SummedAnswers(study.tables, plan, cohort)
    return _from_result(discover_from(Aggregate.of(cohort), plan, source=answers))


def _from_result(result: Discovery) -> Found:
    reasons = {
        (edge.source, edge.target): (edge.oriented_by or "", edge.log_bayes_direction)
        for edge in result.edges()
        if edge.mark == "→" and DOMAIN not in (edge.source, edge.target)
    }
    asked = result.search_result.residuals
    cost = (asked.entries, asked.rounds) if asked else (0, 0)
    return Found(result.graph.arrows, result.graph.lines, result.changing, reasons, *cost)


def oracle_class(study: GridStudy) -> Found:
    """Return the class of the true graph with its changing mechanisms: what perfect tests would give."""
    augmented = study.arrows | {(DOMAIN, name) for name in study.changing}
    graph = to_cpdag(PartialGraph.from_dag((DOMAIN, *study.names), augmented)).drop(DOMAIN)
    return Found(graph.arrows, graph.lines, study.changing)


def direct_lingam(study: GridStudy, *, scaled: bool) -> Found:
    import lingam

    tables = list(study.matrices().values())
    if scaled:
        tables = [(rows - rows.mean(0)) / rows.std(0) for rows in tables]
    model = lingam.DirectLiNGAM()
    model.fit(np.concatenate(tables))
    return _from_weights(study, model.adjacency_matrix_)


def multi_group_lingam(study: GridStudy) -> Found:
    import lingam

    tables = list(study.matrices().values())
    if len(tables) < 2:
        return direct_lingam(study, scaled=False)
    model = lingam.MultiGroupDirectLiNGAM()
    model.fit(tables)
    return _from_weights(study, np.mean(model.adjacency_matrices_, axis=0))


def resit(study: GridStudy) -> Found:
    """Run RESIT with additive cubic splines on the rows of all clients."""
    import lingam
    from sklearn.linear_model import LinearRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import SplineTransformer

    model = lingam.RESIT(make_pipeline(SplineTransformer(n_knots=6), LinearRegression()))
    model.fit(np.concatenate(list(study.matrices().values())))
    return _from_weights(study, model.adjacency_matrix_)


def _from_weights(study: GridStudy, weights: Any) -> Found:
    names = study.names
    return Found(
        frozenset((names[j], names[i]) for i, j in np.argwhere(np.abs(weights) > MIN_WEIGHT).tolist() if i != j)
    )


def from_rows(study: GridStudy, program: Callable[..., Any]) -> Found:
    found = program(study.matrices(), study.names)
    return Found(found.graph.arrows, found.graph.lines, found.changing)


def score_search(study: GridStudy, module: str, function: str) -> Found:
    """Run causal-learn's GES or BOSS on the rows of all clients."""
    search = import_causal_learn(module, function)
    rows = np.concatenate(list(study.matrices().values()))
    with wrap_causal_learn(function, 0):
        found = search(rows)
    graph = graph_from_endpoint_marks((found["G"] if isinstance(found, dict) else found).graph, study.names)
    return Found(graph.arrows, graph.lines)


PROGRAMS: Mapping[str, Callable[[GridStudy], Found]] = {
    "evidence": partial(run_ours, method="evidence"),
    "evidence, two rounds": partial(run_ours, method="evidence", max_rounds=2),
    "evidence, one message": partial(run_ours, method="evidence", rounds="one"),
    "evidence, by file": run_sites,
    "evidence, secure sum": partial(run_sites, secure=True),
    "evidence, sum": run_sum,
    "constraint": partial(run_ours, method="constraint"),
    "constraint, one message": partial(run_ours, method="constraint", rounds="one"),
    "paper": partial(run_ours, method="paper"),
    "oracle class": oracle_class,
    "DirectLiNGAM": partial(direct_lingam, scaled=False),
    "DirectLiNGAM, scaled per client": partial(direct_lingam, scaled=True),
    "MultiGroupDirectLiNGAM": multi_group_lingam,
    "RESIT": resit,
    "PC": partial(from_rows, program=run_pc),
    "CD-NOD": partial(from_rows, program=run_cdnod),
    "GES": partial(score_search, module="search.ScoreBased.GES", function="ges"),
    "BOSS": partial(score_search, module="search.PermutationBased.BOSS", function="boss"),
}
