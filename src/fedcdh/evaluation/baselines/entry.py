"""The entry of a method in the registry: where it is, and what it assumes in the words of the paper's Table 1."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import Any, Literal, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from fedcdh._io.strict_toml import abbreviate
from fedcdh._io.text import abbreviate_list
from fedcdh._runtime.array_types import Array
from fedcdh.data.sources import ColumnKind
from fedcdh.errors import DataError, SettingsError
from fedcdh.evaluation.baselines.fitted_weights import FittedWeights
from fedcdh.evaluation.baselines.interface import BaselineMethod, BaselineResult
from fedcdh.protocols import DOMAIN

PACKAGE = "fedcdh.evaluation.baselines"
CONSTRAINT_BASED, SCORE_BASED, OPTIMISATION_BASED, REGRESSION_BASED, FUNCTION_BASED = (
    "Constraint-based",
    "Score-based",
    "Optimization-based",
    "Regression-based",
    "Function-based",
)
HYBRID = "Constraint- and score-based"
HOMOGENEOUS, HETEROGENEOUS = "Homogeneous", "Heterogeneous"
LINEAR_GAUSSIAN, LINEAR_NON_GAUSSIAN, NONLINEAR_ADDITIVE, ARBITRARY_FUNCTIONS = (
    "Linear Gaussian, NV",
    "Linear Non-Gaussian",
    "Nonlinear Additive Noise",
    "Arbitrary Functions",
)
DISCRETE, GAUSSIAN_OR_DISCRETE = "Discrete", "Linear Gaussian, NV, or Discrete"
SUMMARY_STATISTICS, POOLED_ROWS = "Summary Statistics", "None (all rows pooled)"

UsableData: TypeAlias = Literal["numbers", "labels", "either", "mixed"]
"""The columns that a method can use.

"numbers": all columns are numbers to it, codes of labels included. "labels": codes of labels only. "either": all
columns numbers, or all labels. "mixed": both in one table.
"""
KnownTruth: TypeAlias = Literal["", "order"]
"""The part of the truth that an experiment hands over: none, or an order in which causes precede effects."""


@dataclass(frozen=True)
class MethodAssumptions:
    """The assumptions of a method, in the words of the paper's Table 1.

    Parameters
    ----------
    category : str
        Kind of method, such as "Constraint-based".
    distribution : str
        Whether the data of all clients are assumed to have the same distribution.
    model : str
        Assumed causal model.
    identifiable : bool
        Whether that model has to be identifiable.
    strategy : str
        How clients and server work together.

    Examples
    --------
    >>> from fedcdh.evaluation.baselines import find_baseline
    >>> find_baseline("feddag").assumptions.strategy
    'FedAvg'
    """

    category: str
    distribution: str  # of the data: the same at all clients, or not
    model: str  # what is assumed of the causal model
    identifiable: bool  # whether that model has to be an identifiable one
    strategy: str  # how clients and server work together


@dataclass(frozen=True)
class BaselineEntry:
    """A method with its description. It is called like any method, and refuses tables that no method can use.

    Parameters
    ----------
    name : str
        Name by which `find_baseline` finds it.
    title : str
        Name in tables.
    import_path : str
        Where the function is, as "module:function".
    assumptions : MethodAssumptions
        The method in the words of the paper's Table 1.
    reference : str
        Publication.
    options : mapping, optional
        Further arguments of the function.
    extra : str, default ""
        Extra of fedcdh that installs its libraries, if it needs any.
    data : str, default "numbers"
        Columns that it can use: "numbers", "labels", "either" or "mixed".
    truth : str, default ""
        Part of the truth that it has to be given, an advantage that its title names: "order", or none.
    fit_path : str, default ""
        Where the function is that fits weights, as "module:function". Entries with the same one, and with the same
        options but for `threshold`, share their fit. Empty for a method that finds its graph in one step.

    Examples
    --------
    >>> from fedcdh.evaluation.baselines import BASELINES
    >>> BASELINES["pc-fisherz"].extra
    'experiments'
    """

    name: str
    title: str
    import_path: str  # module:function
    assumptions: MethodAssumptions
    reference: str
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    extra: str = ""  # the extra of fedcdh that brings its libraries, if any
    data: UsableData = "numbers"
    truth: KnownTruth = ""
    fit_path: str = ""  # module:function, if weights are fitted before a threshold

    def load(self) -> BaselineMethod:
        """Import the method and return it.

        Returns
        -------
        BaselineMethod
            The function, with its options set.
        """
        found = _import_function(self.import_path)
        return cast("BaselineMethod", partial(found, **self.options) if self.options else found)

    @property
    def fit_name(self) -> str:
        """Return a name that entries have in common if one fit serves them all, and "" if there is no fit to share.

        Returns
        -------
        str
            The function that fits and its options.
        """
        options = ", ".join(f"{name}={value!r}" for name, value in sorted(self._fit_options().items()))
        return f"{self.fit_path}({options})" if self.fit_path else ""

    def fit(self, tables: Mapping[str, Array], names: Sequence[str], seed: int = 0) -> FittedWeights:
        """Fit the weights, to which every entry with the same `fit_name` applies its threshold.

        Parameters
        ----------
        tables : mapping from str to array
            Table of every client, rows × variables.
        names : sequence of str
            Names of the variables.
        seed : int, default 0
            Seed of what is drawn at random.

        Returns
        -------
        FittedWeights
            The weights, and what was sent.

        Raises
        ------
        SettingsError
            If the method finds its graph in one step.
        """
        if not self.fit_path:
            raise SettingsError(
                f"the method {self.name!r} finds its graph in one step; expected one with weights to fit; call it"
            )
        return cast(
            "FittedWeights",
            _import_function(self.fit_path)(_check_tables(tables, names), tuple(names), seed, **self._fit_options()),
        )

    def apply_threshold(self, fitted: FittedWeights, names: Sequence[str]) -> BaselineResult:
        """Return the graph that this entry finds, given its fit.

        Parameters
        ----------
        fitted : FittedWeights
            What `fit` returned, of this entry or of another with the same `fit_name`.
        names : sequence of str
            Names of the variables.

        Returns
        -------
        BaselineResult
            The same as that of a call of the entry.
        """
        return fitted.apply_threshold(tuple(names), self.options["threshold"])

    def _fit_options(self) -> dict[str, Any]:
        return {name: value for name, value in self.options.items() if name != "threshold"}

    def __call__(
        self,
        tables: Mapping[str, Array],
        names: Sequence[str],
        seed: int = 0,
        *,
        kinds: Mapping[str, ColumnKind] | None = None,
        order: Sequence[str] | None = None,
    ) -> BaselineResult:
        """Run the method on the tables of all clients (rows × variables).

        Parameters
        ----------
        tables : mapping from str to array
            The table of each client.
        names : sequence of str
            Names of the variables.
        seed : int, default 0
            Seed of all that the method draws.
        kinds : mapping from str to str, optional
            Variables whose numbers are codes of labels ("categorical").
        order : sequence of str, optional
            An order in which causes precede effects, for a method whose `truth` is "order".

        Returns
        -------
        BaselineResult
            The graph, and what was sent.

        Raises
        ------
        DataError
            If the method cannot use these tables.
        """
        checked = _check_tables(tables, names)
        self._check_kinds(names, kinds or {})
        further: dict[str, Any] = {} if self.data == "numbers" else {"kinds": kinds or {}}
        if self.truth == "order":
            further["order"] = order
        return cast("Callable[..., BaselineResult]", self.load())(checked, tuple(names), seed, **further)

    def _check_kinds(self, names: Sequence[str], kinds: Mapping[str, ColumnKind]) -> None:
        """Refuse labels beside numbers, and numbers where only labels will do."""
        labels = [name for name in names if kinds.get(name) == "categorical"]
        declared = self.data == "labels" and bool(kinds)
        if self.data != "mixed" and len(labels) < len(names) and (labels or declared):
            wanted = {"numbers": "numbers only", "labels": "labels only"}.get(self.data, "numbers only, or labels only")
            raise DataError(
                f"found {len(labels)} of {len(names)} variables declared as labels ({_list_names(labels)}); the method "
                f"{self.name!r} expected {wanted}; leave out the others, or choose a method for mixed tables such as "
                "'fedcdh'"
            )


def _import_function(path: str) -> Any:
    """Import a function by its path, module:function."""
    module, name = path.split(":")
    return getattr(import_module(module), name)


def _list_names(names: Sequence[str]) -> str:
    return abbreviate_list(map(repr, names)) or "none"


def _check_tables(tables: Mapping[str, Array], names: Sequence[str]) -> dict[str, Array]:
    if not tables or len(set(names)) != len(names) or not names or DOMAIN in names:
        raise DataError(
            f"found {len(tables)} tables and the names {', '.join(map(repr, names))}; expected one table or more, and "
            f"names that differ from one another and from {DOMAIN!r}; correct these"
        )
    checked = {client: _to_numbers(client, table, names) for client, table in tables.items()}
    for client, table in checked.items():
        if table.ndim != 2 or table.shape[1] != len(names) or not len(table) or not np.isfinite(table).all():
            raise DataError(
                f"the table of client {client!r} has the shape {table.shape}; expected rows of {len(names)} finite "
                "numbers each, in the order of the names; leave out rows with missing values"
            )
    return checked


def _to_numbers(client: str, table: Any, names: Sequence[str]) -> Array:
    """Return the table as numbers; name the columns that hold something else."""
    found = np.asarray(table)
    if found.dtype.kind in "fiub" or found.ndim != 2 or found.shape[1] != len(names):
        try:
            return found.astype(np.float64)
        except (TypeError, ValueError):
            raise DataError(
                f"the table of client {client!r} is of type {type(table).__name__} and shape {found.shape}; expected "
                "rows of numbers, with a column for each name; pass an array"
            ) from None
    texts = {
        name: text for name, column in zip(names, found.T, strict=True) if (text := _find_text(column)) is not None
    }
    if texts:
        listed = ", ".join(f"{name!r} ({text})" for name, text in texts.items())
        raise DataError(
            f"the table of client {client!r} has columns that are not numbers: {listed}; expected numbers, and codes "
            'in the place of labels, such as 0, 1, 2; replace the labels by codes and declare them with kinds={"'
            f'{next(iter(texts))}": "categorical"}}, or leave these columns out'
        )
    return found.astype(np.float64)


def _find_text(column: npt.NDArray[Any]) -> str | None:
    """Return the first value of a column that is no number; None if there is none."""
    for value in column:
        try:
            float(value)
        except (TypeError, ValueError):
            return abbreviate(value)
    return None
