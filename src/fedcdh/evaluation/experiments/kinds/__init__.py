"""Kinds of experiments: what an instance is, and what is measured on it."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Protocol, cast

from fedcdh.errors import SettingsError
from fedcdh.evaluation.experiments.definition import ExperimentCase

_IMPORT_PATHS = {
    "graphs": "fedcdh.evaluation.experiments.kinds.graph_recovery:SIMULATED_GRAPHS",
    "real": "fedcdh.evaluation.experiments.kinds.graph_recovery:REAL_DATA_GRAPHS",
    "stocks": "fedcdh.evaluation.experiments.kinds.stocks:STOCK_GRAPHS",
    "tests": "fedcdh.evaluation.experiments.kinds.rejection_rates:REJECTION_RATE",
    "principle": "fedcdh.evaluation.experiments.kinds.independent_change:DIRECTION_ACCURACY",
    "bytes": "fedcdh.evaluation.experiments.kinds.communication:COMMUNICATION_SIZE",
}


class ExperimentKind(Protocol):
    """Methods are loaded and instances prepared off the clock.

    A method that fails gets the figures of having found nothing.
    """

    @property
    def measures(self) -> tuple[str, ...]: ...

    def prepare_method(self, method: str) -> None:
        """Refuses a method that is not known or whose library is missing, and imports what it needs, off the clock."""

    def prepare_instance(self, case: ExperimentCase, seed: int) -> Any: ...

    def measure(self, prepared: Any, case: ExperimentCase, method: str, seed: int) -> dict[str, Any]: ...

    def failure_measures(self, prepared: Any) -> dict[str, Any]: ...


def find_kind(name: str) -> ExperimentKind:
    """The kind of this name, imported when it is needed."""
    if name not in _IMPORT_PATHS:
        raise SettingsError(f"there is no kind of experiment {name!r}; choose one of {', '.join(_IMPORT_PATHS)}")
    module, value = _IMPORT_PATHS[name].split(":")
    return cast("ExperimentKind", getattr(import_module(module), value))
