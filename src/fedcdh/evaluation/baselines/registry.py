"""All methods by name, with what each assumes: the columns are those of the paper's Table 1.

A method is imported when it is loaded, so that none needs its libraries before it is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from types import MappingProxyType
from typing import Any, cast

import numpy as np

from fedcdh._runtime.array_types import Array
from fedcdh.errors import DataError, SettingsError
from fedcdh.evaluation.baselines.interface import BaselineMethod, BaselineResult
from fedcdh.protocols import DOMAIN


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

    def load(self) -> BaselineMethod:
        """Import the method and return it.

        Returns
        -------
        BaselineMethod
            The function, with its options set.
        """
        module, name = self.import_path.split(":")
        found = getattr(import_module(module), name)
        return cast("BaselineMethod", partial(found, **self.options) if self.options else found)

    def __call__(self, tables: Mapping[str, Array], names: Sequence[str], seed: int = 0) -> BaselineResult:
        """Run the method on the tables of all clients (rows × variables)."""
        return self.load()(_check_tables(tables, names), tuple(names), seed)


def find_baseline(name: str) -> BaselineEntry:
    """Find the method of this name.

    Parameters
    ----------
    name : str
        A key of `BASELINES`, such as "fedpc".

    Returns
    -------
    BaselineEntry
        The method, which can be called.

    Raises
    ------
    SettingsError
        If there is no method of this name.

    Examples
    --------
    >>> from fedcdh.evaluation.baselines import find_baseline
    >>> find_baseline("fedpc").assumptions.strategy
    'Voting'
    """
    if name not in BASELINES:
        raise SettingsError(f"found the method {name!r}; expected one of {', '.join(BASELINES)}; choose one of these")
    return BASELINES[name]


def to_markdown_table(entries: Iterable[BaselineEntry] | None = None) -> str:
    """Write the methods as a table in Markdown, one row each.

    Parameters
    ----------
    entries : iterable of BaselineEntry, optional
        The methods to write, all of them unless given.

    Returns
    -------
    str
        The table that the page "Rivals" of the documentation shows.

    Examples
    --------
    >>> from fedcdh.evaluation.baselines import to_markdown_table
    >>> to_markdown_table().splitlines()[2].split("|")[1].strip()
    '`fedcdh-evidence`'
    """
    chosen = BASELINES.values() if entries is None else entries
    rows = [_TABLE_HEADS, ("---",) * len(_TABLE_HEADS), *map(_table_row, chosen)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"


_TABLE_HEADS = (
    "Name",
    "Method",
    "Category",
    "Data distribution",
    "Causal model assumption",
    "Identifiability requirement",
    "Federated strategy",
    "Extra",
)


def _table_row(entry: BaselineEntry) -> tuple[str, ...]:
    says = entry.assumptions
    return (
        f"`{entry.name}`",
        f"{entry.title} ({entry.reference})",
        says.category,
        says.distribution,
        says.model,
        "Yes" if says.identifiable else "No",
        says.strategy,
        f"`{entry.extra}`" if entry.extra else "–",
    )


def _check_tables(tables: Mapping[str, Array], names: Sequence[str]) -> dict[str, Array]:
    if not tables or len(set(names)) != len(names) or not names or DOMAIN in names:
        raise DataError(
            f"found {len(tables)} tables and the names {', '.join(map(repr, names))}; expected one table or more, and "
            f"names that differ from one another and from {DOMAIN!r}; correct these"
        )
    checked = {client: np.asarray(table, dtype=np.float64) for client, table in tables.items()}
    for client, table in checked.items():
        if table.ndim != 2 or table.shape[1] != len(names) or not len(table) or not np.isfinite(table).all():
            raise DataError(
                f"the table of client {client!r} has the shape {table.shape}; expected rows of {len(names)} finite "
                "numbers each, in the order of the names; leave out rows with missing values"
            )
    return checked


_PACKAGE = "fedcdh.evaluation.baselines"
_CONSTRAINT_BASED, _SCORE_BASED, _OPTIMISATION_BASED, _REGRESSION_BASED = (
    "Constraint-based",
    "Score-based",
    "Optimization-based",
    "Regression-based",
)
_HOMOGENEOUS, _HETEROGENEOUS = "Homogeneous", "Heterogeneous"
_LINEAR_GAUSSIAN, _NONLINEAR_ADDITIVE, _ARBITRARY_FUNCTIONS = (
    "Linear Gaussian, NV",
    "Nonlinear Additive Noise",
    "Arbitrary Functions",
)
_SUMMARY_STATISTICS, _POOLED_ROWS = "Summary Statistics", "None (all rows pooled)"

_FEDPC = MethodAssumptions(_CONSTRAINT_BASED, _HOMOGENEOUS, _LINEAR_GAUSSIAN, False, "Voting")
_FEDPC_ANY = MethodAssumptions(_CONSTRAINT_BASED, _HOMOGENEOUS, _ARBITRARY_FUNCTIONS, False, "Voting")
_FEDDAG = MethodAssumptions(_OPTIMISATION_BASED, _HETEROGENEOUS, _NONLINEAR_ADDITIVE, True, "FedAvg")
_ADMM = MethodAssumptions(_OPTIMISATION_BASED, _HOMOGENEOUS, "Linear Gaussian, EV", True, "ADMM")
_ADMM_MLP = MethodAssumptions(_OPTIMISATION_BASED, _HOMOGENEOUS, _NONLINEAR_ADDITIVE, True, "ADMM")

_ENTRIES = (
    BaselineEntry(
        "fedcdh-evidence",
        "our `evidence`",
        f"{_PACKAGE}.fedcdh_methods:run_fedcdh",
        MethodAssumptions(_SCORE_BASED, _HETEROGENEOUS, "Additive Functions", False, _SUMMARY_STATISTICS),
        "`fedcdh.discover`, its default",
        {"method": "evidence"},
    ),
    BaselineEntry(
        "fedcdh-constraint",
        "our `constraint`",
        f"{_PACKAGE}.fedcdh_methods:run_fedcdh",
        MethodAssumptions(_CONSTRAINT_BASED, _HETEROGENEOUS, "Additive Functions", False, _SUMMARY_STATISTICS),
        "`fedcdh.discover`",
        {"method": "constraint"},
    ),
    BaselineEntry(
        "fedcdh-rounds",
        "our `constraint`, with adaptive rounds",
        f"{_PACKAGE}.fedcdh_methods:run_fedcdh",
        MethodAssumptions(_CONSTRAINT_BASED, _HETEROGENEOUS, "Additive Noise", False, _SUMMARY_STATISTICS),
        '`fedcdh.discover(..., rounds="adaptive")`',
        {"method": "constraint", "rounds": "adaptive"},
    ),
    BaselineEntry(
        "fedcdh-paper",
        "FedCDH",
        f"{_PACKAGE}.fedcdh_methods:run_fedcdh",
        MethodAssumptions(_CONSTRAINT_BASED, _HETEROGENEOUS, _ARBITRARY_FUNCTIONS, False, _SUMMARY_STATISTICS),
        "Li et al. 2024",
        {"method": "paper"},
    ),
    BaselineEntry("fedpc", "FedPC", f"{_PACKAGE}.fedpc:run_fedpc", _FEDPC, "Huang et al. 2022"),
    BaselineEntry(
        "fedpc-veto",
        "FedPC, 30 % remove an edge",
        f"{_PACKAGE}.fedpc:run_fedpc",
        _FEDPC,
        "Huang et al. 2022",
        {"voting": "veto"},
    ),
    BaselineEntry(
        "fedpc-kernel",
        "FedPC with FCIT at the clients",
        f"{_PACKAGE}.fedpc:run_fedpc",
        _FEDPC_ANY,
        "Huang et al. 2022",
        {"test": "kernel"},
    ),
    BaselineEntry(
        "fedpc-regression",
        "FedPC with our F tests at the clients",
        f"{_PACKAGE}.fedpc:run_fedpc",
        MethodAssumptions(_CONSTRAINT_BASED, _HOMOGENEOUS, "Additive Functions", False, "Voting"),
        "Huang et al. 2022",
        {"test": "regression"},
    ),
    BaselineEntry(
        "fedpc-kci",
        "FedPC with KCI at the clients",
        f"{_PACKAGE}.fedpc:run_fedpc",
        _FEDPC_ANY,
        "Huang et al. 2022",
        {"test": "kci"},
        "experiments",
    ),
    BaselineEntry(
        "notears-admm",
        "NOTEARS-ADMM, threshold 0.1",
        f"{_PACKAGE}.notears_admm:run_notears_admm",
        _ADMM,
        "Ng and Zhang 2022",
        {"threshold": 0.1},
    ),
    BaselineEntry(
        "notears-admm-0.3",
        "NOTEARS-ADMM, threshold 0.3",
        f"{_PACKAGE}.notears_admm:run_notears_admm",
        _ADMM,
        "Ng and Zhang 2022",
        {"threshold": 0.3},
    ),
    BaselineEntry(
        "notears-mlp-admm",
        "NOTEARS-MLP-ADMM",
        f"{_PACKAGE}.notears_mlp_admm:run_notears_mlp_admm",
        _ADMM_MLP,
        "Ng and Zhang 2022",
    ),
    BaselineEntry(
        "feddag",
        "FedDAG, graph shared",
        f"{_PACKAGE}.feddag:run_feddag",
        _FEDDAG,
        "Gao et al. 2021",
        {"sharing": "graph", "mechanism": "mlp"},
    ),
    BaselineEntry(
        "feddag-all",
        "FedDAG, all shared",
        f"{_PACKAGE}.feddag:run_feddag",
        MethodAssumptions(_OPTIMISATION_BASED, _HOMOGENEOUS, _NONLINEAR_ADDITIVE, True, "FedAvg"),
        "Gao et al. 2021",
        {"sharing": "all", "mechanism": "mlp"},
    ),
    BaselineEntry(
        "feddag-linear",
        "FedDAG, linear, graph shared",
        f"{_PACKAGE}.feddag:run_feddag",
        MethodAssumptions(_OPTIMISATION_BASED, _HETEROGENEOUS, "Linear Gaussian, EV", True, "FedAvg"),
        "Gao et al. 2021",
        {"sharing": "graph", "mechanism": "linear"},
    ),
    BaselineEntry(
        "feddag-all-linear",
        "FedDAG, linear, all shared",
        f"{_PACKAGE}.feddag:run_feddag",
        MethodAssumptions(_OPTIMISATION_BASED, _HOMOGENEOUS, "Linear Gaussian, EV", True, "FedAvg"),
        "Gao et al. 2021",
        {"sharing": "all", "mechanism": "linear"},
    ),
    BaselineEntry(
        "sort-by-variance",
        "Sorting by variance",
        f"{_PACKAGE}.var_sort:sort_by_variance",
        MethodAssumptions(
            _REGRESSION_BASED, _HOMOGENEOUS, "Linear, variance grows along arrows", True, _SUMMARY_STATISTICS
        ),
        "Reisach et al. 2021",
    ),
    BaselineEntry(
        "cdnod-fisherz",
        "CD-NOD with Fisher's z",
        f"{_PACKAGE}.pooled_references:run_cdnod",
        MethodAssumptions(_CONSTRAINT_BASED, _HETEROGENEOUS, _LINEAR_GAUSSIAN, False, _POOLED_ROWS),
        "Huang et al. 2020",
        {"test": "fisherz"},
        "experiments",
    ),
    BaselineEntry(
        "cdnod-rcit",
        "CD-NOD with RCIT",
        f"{_PACKAGE}.pooled_references:run_cdnod",
        MethodAssumptions(_CONSTRAINT_BASED, _HETEROGENEOUS, _ARBITRARY_FUNCTIONS, False, _POOLED_ROWS),
        "Huang et al. 2020",
        {"test": "rcit"},
        "experiments",
    ),
    BaselineEntry(
        "cdnod-kci",
        "CD-NOD with KCI",
        f"{_PACKAGE}.pooled_references:run_cdnod",
        MethodAssumptions(_CONSTRAINT_BASED, _HETEROGENEOUS, _ARBITRARY_FUNCTIONS, False, _POOLED_ROWS),
        "Huang et al. 2020",
        {"test": "kci"},
        "experiments",
    ),
    BaselineEntry(
        "pc-fisherz",
        "PC with Fisher's z",
        f"{_PACKAGE}.pooled_references:run_pc",
        MethodAssumptions(_CONSTRAINT_BASED, _HOMOGENEOUS, _LINEAR_GAUSSIAN, False, _POOLED_ROWS),
        "Spirtes and Glymour 1991",
        {"test": "fisherz"},
        "experiments",
    ),
)

BASELINES: Mapping[str, BaselineEntry] = MappingProxyType({entry.name: entry for entry in _ENTRIES})
"""All methods by name: ours first, then the baselines of the paper, then references."""
