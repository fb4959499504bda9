"""Bytes that are sent: a client's summary beside its rows, and beside the tensor that the paper sends.

Parameters: variables, rows (of the client), width (h). Nothing is random: there is one seed.
"""

from __future__ import annotations

from typing import Any

from fedcdh.errors import SettingsError
from fedcdh.evaluation.experiments.definition import ExperimentCase
from fedcdh.evaluation.experiments.kinds.single_step import SingleStepKind
from fedcdh.messages.summary_file import summary_file_size
from fedcdh.summaries.features import FeatureFamily, Fourier, Hermite
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.variables import Continuous

FLOAT64_BYTES = 8  # bytes of a float64
FEATURE_FAMILIES = {"fedcdh-paper": Fourier, "fedcdh": Hermite}


class CommunicationSize(SingleStepKind):
    """The bytes of a summary, which are those that `fedcdh summarize` writes."""

    measures = ("message", "raw", "tensor", "columns")

    def prepare_method(self, name: str) -> None:
        if name not in FEATURE_FAMILIES:
            raise SettingsError(
                f"found {name!r}, which has no features to count; expected one of {', '.join(FEATURE_FAMILIES)}; "
                "choose one of these"
            )

    def prepare_instance(self, case: ExperimentCase, seed: int) -> ExperimentCase:
        return case

    def measure(
        self, prepared: ExperimentCase, case: ExperimentCase, name: str, seed: int, fitted: None = None
    ) -> dict[str, Any]:
        family: FeatureFamily = FEATURE_FAMILIES[name](case["width"])
        variables = tuple(Continuous(f"v{i:04d}", 0.0, 1.0) for i in range(1, case["variables"] + 1))
        plan = StudyPlan(variables, ("client01",), family=family)
        domain_too = (case["variables"] + 1) * case["width"]  # the paper's tensor is over the variables and the domain
        return {
            "message": summary_file_size(plan, "client01", case["rows"]),
            "raw": FLOAT64_BYTES * case["rows"] * case["variables"],
            "tensor": FLOAT64_BYTES * domain_too**2,
            "columns": plan.layout.n_columns,
        }

    def failure_measures(self, prepared: ExperimentCase) -> dict[str, Any]:
        return dict.fromkeys(self.measures)


COMMUNICATION_SIZE = CommunicationSize()
