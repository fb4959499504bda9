"""Kinds of experiments: what an instance is, and what is measured on it.

- `graph_recovery`: graphs against the truth, on simulated and on real data, and under noise of any shape
- `rejection_rates`: how often independence tests reject
- `independent_change`: how often the independent change principle finds a direction
- `dependent_changes`: what becomes of a direction where mechanisms change together
- `communication`: bytes of a client's summary
- `stocks`: stock returns without a true graph
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Protocol, cast

from fedcdh.errors import SettingsError
from fedcdh.evaluation.experiments.definition import ExperimentCase

__all__ = ["ExperimentKind", "find_kind"]

_IMPORT_PATHS = {
    "graphs": "fedcdh.evaluation.experiments.kinds.graph_recovery:SIMULATED_GRAPHS",
    "real": "fedcdh.evaluation.experiments.kinds.graph_recovery:REAL_DATA_GRAPHS",
    "noise": "fedcdh.evaluation.experiments.kinds.graph_recovery:NOISE_SHAPE_GRAPHS",
    "stocks": "fedcdh.evaluation.experiments.kinds.stocks:STOCK_GRAPHS",
    "tests": "fedcdh.evaluation.experiments.kinds.rejection_rates:REJECTION_RATE",
    "principle": "fedcdh.evaluation.experiments.kinds.independent_change:DIRECTION_ACCURACY",
    "dependent": "fedcdh.evaluation.experiments.kinds.dependent_changes:DEPENDENT_CHANGES",
    "bytes": "fedcdh.evaluation.experiments.kinds.communication:COMMUNICATION_SIZE",
}


class ExperimentKind(Protocol):
    """A kind of experiment: it prepares instances and measures methods on them.

    Methods are loaded and instances prepared before the clock starts. Methods that differ only by a threshold share a
    fit, whose CPU seconds count for each of them. A method that fails gets the measures of an empty result.
    """

    @property
    def measures(self) -> tuple[str, ...]:
        """Return the names of what is measured."""

    def prepare_method(self, method: str) -> None:
        """Import what a method needs, and refuse a method that is unknown or whose library is missing.

        Parameters
        ----------
        method : str
            Name of the method.
        """

    def prepare_instance(self, case: ExperimentCase, seed: int) -> Any:
        """Make the instance of a case and a seed.

        Parameters
        ----------
        case : mapping
            Value of every parameter.
        seed : int
            Seed of the instance.

        Returns
        -------
        object
            The instance, which `measure` takes.
        """

    def fit_name(self, method: str) -> str:
        """Return a name that methods have in common if one fit serves them all, and "" if there is no fit to share.

        Parameters
        ----------
        method : str
            Name of the method.

        Returns
        -------
        str
            Name of the fit.
        """

    def fit(self, prepared: Any, method: str, seed: int) -> Any:
        """Fit what methods with the same `fit_name` share.

        Parameters
        ----------
        prepared : object
            The instance.
        method : str
            Name of a method whose `fit_name` is not empty.
        seed : int
            Seed of the instance, and of the method.

        Returns
        -------
        object
            The fit, which `measure` takes.
        """

    def measure(
        self, prepared: Any, case: ExperimentCase, method: str, seed: int, fitted: Any = None
    ) -> dict[str, Any]:
        """Measure one method on one instance.

        Parameters
        ----------
        prepared : object
            The instance.
        case : mapping
            Value of every parameter.
        method : str
            Name of the method.
        seed : int
            Seed of the instance, and of the method.
        fitted : object, optional
            What `fit` returned; computed here unless given.

        Returns
        -------
        dict
            The value of every measure.
        """

    def failure_measures(self, prepared: Any) -> dict[str, Any]:
        """Return the measures of a method that failed on an instance.

        Parameters
        ----------
        prepared : object
            The instance.

        Returns
        -------
        dict
            The value of every measure.
        """


def find_kind(name: str) -> ExperimentKind:
    """Find the kind of this name, and import it.

    Parameters
    ----------
    name : {"graphs", "real", "noise", "stocks", "tests", "principle", "dependent", "bytes"}
        Name of the kind, as in a file of a definition.

    Returns
    -------
    ExperimentKind
        The kind.

    Raises
    ------
    SettingsError
        If there is no kind of this name.

    Examples
    --------
    >>> from fedcdh.evaluation.experiments.kinds import find_kind
    >>> find_kind("bytes").measures
    ('message', 'raw', 'tensor', 'columns')
    """
    if name not in _IMPORT_PATHS:
        raise SettingsError(
            f"found no kind of experiment {name!r}; expected one of {', '.join(_IMPORT_PATHS)}; choose one of these"
        )
    module, value = _IMPORT_PATHS[name].split(":")
    return cast("ExperimentKind", getattr(import_module(module), value))
