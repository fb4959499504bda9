"""The direction of x → y where both mechanisms change: how often the independent change principle finds it.

Parameters: model, dialect, clients, rows (per client), pairs (per seed).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fedcdh.data.table import to_table
from fedcdh.discovery.api import discover_from
from fedcdh.errors import SettingsError
from fedcdh.evaluation.experiments.definition import ExperimentCase
from fedcdh.evaluation.experiments.kinds.single_step import SingleStepKind
from fedcdh.evaluation.simulation import AUTHORS, PAPER, simulate
from fedcdh.graphs.partial_graph import Arrow
from fedcdh.inference.independence.kernel_test import FeatureSpace, one_hot_domain, random_domain_features
from fedcdh.inference.independent_change import OperatorChange, PrintedChange
from fedcdh.inference.orthonormal_basis import Basis
from fedcdh.protocols import IndependentChange
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.aggregation import Cohort, add_up
from fedcdh.summaries.plan import StudyPlan

CohortPair = tuple[Cohort, Arrow]


class DirectionAccuracy(SingleStepKind):
    """The share of pairs that a form of the principle directs rightly."""

    measures = ("right",)

    def prepare_method(self, name: str) -> None:
        if name not in CRITERION_FORMS:
            raise SettingsError(
                f"found no form {name!r} of the principle; expected one of {', '.join(CRITERION_FORMS)}; choose one of "
                "these"
            )

    def prepare_instance(self, case: ExperimentCase, seed: int) -> list[CohortPair]:
        """Simulate the pairs of a seed; seeds share none."""
        return [_simulate_pair(case, seed * case["pairs"] + number) for number in range(case["pairs"])]

    def measure(
        self, prepared: list[CohortPair], case: ExperimentCase, name: str, seed: int, fitted: None = None
    ) -> dict[str, Any]:
        return {"right": sum(CRITERION_FORMS[name](*pair) for pair in prepared) / len(prepared)}

    def failure_measures(self, prepared: list[CohortPair]) -> dict[str, Any]:
        return {"right": None}


def _simulate_pair(case: ExperimentCase, seed: int) -> CohortPair:
    study = simulate(
        case["model"],
        variables=2,
        edges=1,
        changing=2,
        clients=case["clients"],
        rows=case["rows"],
        seed=seed,
        dialect={"paper": PAPER, "authors": AUTHORS}[case["dialect"]],
    ).standardised()
    tables = {client: to_table(table, study.names) for client, table in study.tables.items()}
    plan = StudyPlan.from_tables(tables)
    (arrow,) = study.arrows
    return add_up((summarize(table, plan, client) for client, table in tables.items()), plan), arrow


def _direction_by(form: Callable[[Cohort], IndependentChange]) -> Callable[[Cohort, Arrow], float]:
    def right(cohort: Cohort, arrow: Arrow) -> float:
        (measured,) = form(cohort)([arrow])
        return float(measured.forward < measured.backward)

    return right


def _direction_by_evidence(cohort: Cohort, arrow: Arrow) -> float:
    """Score the default method on a pair: 1 if right, 0 if wrong, ½ if it finds no edge or leaves it open."""
    arrows = discover_from(cohort, cohort.plan).graph.arrows
    return 1.0 if arrow in arrows else 0.0 if arrows else 0.5


CRITERION_FORMS: dict[str, Callable[[Cohort, Arrow], float]] = {
    "operator": _direction_by(lambda cohort: OperatorChange(Basis.of(cohort))),
    "paper": _direction_by(lambda cohort: PrintedChange(FeatureSpace.of(cohort, one_hot_domain))),
    "paper-random-domain": _direction_by(lambda cohort: PrintedChange(FeatureSpace.of(cohort, random_domain_features))),
    "evidence": _direction_by_evidence,
}
"""`paper-random-domain` has random features of the domain in place of one indicator per client, as the authors do."""
DIRECTION_ACCURACY = DirectionAccuracy()
