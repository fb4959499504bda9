"""The direction of x → y where both mechanisms follow one pseudo-confounder ψ: they change, but not independently.

Parameters: model, clients, rows (per client), pairs (per seed), level and spread (effects of ψ on both mechanisms).
"""

from __future__ import annotations

from typing import Any

from fedcdh.discovery.api import discover
from fedcdh.discovery.settings import SearchOptions
from fedcdh.errors import SettingsError
from fedcdh.evaluation.experiments.definition import ExperimentCase
from fedcdh.evaluation.experiments.kinds.single_step import SingleStepKind
from fedcdh.evaluation.pseudo_confounders import PseudoConfounder
from fedcdh.evaluation.simulation import Simulation, simulate

DIRECTING_METHODS: dict[str, SearchOptions] = {
    "evidence": {"method": "evidence"},
    "evidence-one": {"method": "evidence", "rounds": "one"},
    "constraint": {"method": "constraint"},
    "paper": {"method": "paper"},
}
"""Settings of `discover`; "one" stands for one message, without questions about residuals."""


class DependentChanges(SingleStepKind):
    """The shares of pairs that a method reverses, leaves open, directs rightly, and does not find."""

    measures = ("reversed", "open", "right", "missed")

    def prepare_method(self, name: str) -> None:
        """Refuse methods that are unknown."""
        if name not in DIRECTING_METHODS:
            raise SettingsError(
                f"found no method {name!r} for this experiment; expected one of {', '.join(DIRECTING_METHODS)}; choose "
                "one of these"
            )

    def prepare_instance(self, case: ExperimentCase, seed: int) -> list[Simulation]:
        """Simulate the pairs of a seed; seeds share none."""
        return [_simulate_pair(case, seed * case["pairs"] + number) for number in range(case["pairs"])]

    def measure(
        self, prepared: list[Simulation], case: ExperimentCase, name: str, seed: int, fitted: None = None
    ) -> dict[str, Any]:
        """Return the share of each outcome."""
        found = [_judge_direction(study, DIRECTING_METHODS[name], seed) for study in prepared]
        return {measure: found.count(measure) / len(found) for measure in self.measures}

    def failure_measures(self, prepared: list[Simulation]) -> dict[str, Any]:
        """Return that nothing was found."""
        return dict.fromkeys(self.measures)


def _simulate_pair(case: ExperimentCase, seed: int) -> Simulation:
    shared = PseudoConfounder(("v1", "v2"), level=case["level"], spread=case["spread"])
    return simulate(
        case["model"],
        variables=2,
        edges=1,
        changing=0,
        clients=case["clients"],
        rows=case["rows"],
        seed=seed,
        confounders=(shared,),
    ).standardised()


def _judge_direction(study: Simulation, options: SearchOptions, seed: int) -> str:
    chosen: SearchOptions = {**options, "seed": seed}
    graph = discover(dict(study.tables), names=study.names, **chosen).graph
    (arrow,) = study.arrows
    if arrow in graph.arrows:
        return "right"
    return "reversed" if graph.arrows else "open" if graph.lines else "missed"


DEPENDENT_CHANGES = DependentChanges()
