"""All methods by name, with what each assumes: the columns are those of the paper's Table 1.

Methods are imported when they are loaded, so that none costs anything, or needs its libraries, before it is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from types import MappingProxyType
from typing import Any, cast

import numpy as np

from fedcdh.errors import DataError, SettingsError
from fedcdh.evaluation.baselines.interface import Array, Found, Method
from fedcdh.protocols import DOMAIN


@dataclass(frozen=True)
class Claims:
    """What a method says of itself, in the words of Table 1."""

    category: str
    distribution: str  # of the data: the same at all clients, or not
    model: str  # what is assumed of the causal model
    identifiable: bool  # whether that model has to be an identifiable one
    strategy: str  # how clients and server work together


@dataclass(frozen=True)
class Entry:
    """A method, and what to know about it. It is called like any method, and refuses tables that none can use."""

    name: str
    title: str
    place: str  # module:function
    claims: Claims
    reference: str
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    needs: str = ""  # the extra of fedcdh that brings its libraries, if any

    def load(self) -> Method:
        """The method itself, imported now."""
        module, name = self.place.split(":")
        found = getattr(import_module(module), name)
        return cast("Method", partial(found, **self.options) if self.options else found)

    def __call__(self, tables: Mapping[str, Array], names: Sequence[str], seed: int = 0) -> Found:
        """Tables of all clients (rows × variables) and the names of the variables in, what was found out."""
        return self.load()(_checked(tables, names), tuple(names), seed)


def method(name: str) -> Entry:
    """The method of this name.

    >>> method("fedpc").claims.strategy
    'Voting'
    """
    if name not in METHODS:
        raise SettingsError(f"there is no method {name!r}; choose one of {', '.join(METHODS)}")
    return METHODS[name]


def as_markdown(entries: Iterable[Entry] | None = None) -> str:
    """The methods as a table, one row each: `docs/rivals.md` shows it."""
    chosen = METHODS.values() if entries is None else entries
    rows = [_HEADS, ("---",) * len(_HEADS), *map(_row, chosen)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"


_HEADS = (
    "Name",
    "Method",
    "Category",
    "Data distribution",
    "Causal model assumption",
    "Identifiability requirement",
    "Federated strategy",
    "Extra",
)


def _row(entry: Entry) -> tuple[str, ...]:
    says = entry.claims
    return (
        f"`{entry.name}`",
        f"{entry.title} ({entry.reference})",
        says.category,
        says.distribution,
        says.model,
        "Yes" if says.identifiable else "No",
        says.strategy,
        f"`{entry.needs}`" if entry.needs else "–",
    )


def _checked(tables: Mapping[str, Array], names: Sequence[str]) -> dict[str, Array]:
    if not tables or len(set(names)) != len(names) or not names or DOMAIN in names:
        raise DataError(
            f"found {len(tables)} tables and the names {', '.join(map(repr, names))}; expected one table or more, and "
            f"names that differ from one another and from {DOMAIN!r}"
        )
    checked = {client: np.asarray(table, dtype=np.float64) for client, table in tables.items()}
    for client, table in checked.items():
        if table.ndim != 2 or table.shape[1] != len(names) or not len(table) or not np.isfinite(table).all():
            raise DataError(
                f"the table of client {client!r} has the shape {table.shape}; expected rows of {len(names)} finite "
                "numbers each, in the order of the names: leave out rows with missing values"
            )
    return checked


_HERE = "fedcdh.evaluation.baselines"
_TESTED, _WEIGHED, _OPTIMISED, _SORTED = "Constraint-based", "Score-based", "Optimization-based", "Regression-based"
_ALIKE, _DIFFERENT = "Homogeneous", "Heterogeneous"
_LINEAR, _NONLINEAR, _ANY = "Linear Gaussian, NV", "Nonlinear Additive Noise", "Arbitrary Functions"
_SUMMARIES, _POOLED = "Summary Statistics", "None (all rows pooled)"

_FEDPC = Claims(_TESTED, _ALIKE, _LINEAR, False, "Voting")
_FEDPC_ANY = Claims(_TESTED, _ALIKE, _ANY, False, "Voting")
_FEDDAG = Claims(_OPTIMISED, _DIFFERENT, _NONLINEAR, True, "FedAvg")
_ADMM = Claims(_OPTIMISED, _ALIKE, "Linear Gaussian, EV", True, "ADMM")
_ADMM_MLP = Claims(_OPTIMISED, _ALIKE, _NONLINEAR, True, "ADMM")

_ENTRIES = (
    Entry(
        "fedcdh-evidence",
        "our `evidence`",
        f"{_HERE}.fedcdh_methods:ours",
        Claims(_WEIGHED, _DIFFERENT, "Additive Functions", False, _SUMMARIES),
        "`fedcdh.discover`, its default",
        {"method": "evidence"},
    ),
    Entry(
        "fedcdh-constraint",
        "our `constraint`",
        f"{_HERE}.fedcdh_methods:ours",
        Claims(_TESTED, _DIFFERENT, "Additive Functions", False, _SUMMARIES),
        "`fedcdh.discover`",
        {"method": "constraint"},
    ),
    Entry(
        "fedcdh-rounds",
        "our `constraint`, with further rounds",
        f"{_HERE}.fedcdh_methods:ours",
        Claims(_TESTED, _DIFFERENT, "Additive Noise", False, _SUMMARIES),
        '`fedcdh.discover(..., rounds="adaptive")`',
        {"method": "constraint", "rounds": "adaptive"},
    ),
    Entry(
        "fedcdh-paper",
        "FedCDH",
        f"{_HERE}.fedcdh_methods:ours",
        Claims(_TESTED, _DIFFERENT, _ANY, False, _SUMMARIES),
        "Li et al. 2024",
        {"method": "paper"},
    ),
    Entry("fedpc", "FedPC", f"{_HERE}.fedpc:fedpc", _FEDPC, "Huang et al. 2022"),
    Entry(
        "fedpc-veto",
        "FedPC, 30 % remove an edge",
        f"{_HERE}.fedpc:fedpc",
        _FEDPC,
        "Huang et al. 2022",
        {"reading": "veto"},
    ),
    Entry(
        "fedpc-kernel",
        "FedPC with FCIT at the clients",
        f"{_HERE}.fedpc:fedpc",
        _FEDPC_ANY,
        "Huang et al. 2022",
        {"test": "kernel"},
    ),
    Entry(
        "fedpc-regression",
        "FedPC with our F tests at the clients",
        f"{_HERE}.fedpc:fedpc",
        Claims(_TESTED, _ALIKE, "Additive Functions", False, "Voting"),
        "Huang et al. 2022",
        {"test": "regression"},
    ),
    Entry(
        "fedpc-kci",
        "FedPC with KCI at the clients",
        f"{_HERE}.fedpc:fedpc",
        _FEDPC_ANY,
        "Huang et al. 2022",
        {"test": "kci"},
        "peers",
    ),
    Entry(
        "notears-admm",
        "NOTEARS-ADMM, threshold 0.1",
        f"{_HERE}.notears_admm:notears_admm",
        _ADMM,
        "Ng and Zhang 2022",
        {"threshold": 0.1},
    ),
    Entry(
        "notears-admm-0.3",
        "NOTEARS-ADMM, threshold 0.3",
        f"{_HERE}.notears_admm:notears_admm",
        _ADMM,
        "Ng and Zhang 2022",
        {"threshold": 0.3},
    ),
    Entry(
        "notears-mlp-admm",
        "NOTEARS-MLP-ADMM",
        f"{_HERE}.notears_mlp_admm:notears_mlp_admm",
        _ADMM_MLP,
        "Ng and Zhang 2022",
    ),
    Entry(
        "feddag",
        "FedDAG, graph shared",
        f"{_HERE}.feddag:feddag",
        _FEDDAG,
        "Gao et al. 2021",
        {"sharing": "graph", "mechanism": "mlp"},
    ),
    Entry(
        "feddag-all",
        "FedDAG, all shared",
        f"{_HERE}.feddag:feddag",
        Claims(_OPTIMISED, _ALIKE, _NONLINEAR, True, "FedAvg"),
        "Gao et al. 2021",
        {"sharing": "all", "mechanism": "mlp"},
    ),
    Entry(
        "feddag-linear",
        "FedDAG, linear, graph shared",
        f"{_HERE}.feddag:feddag",
        Claims(_OPTIMISED, _DIFFERENT, "Linear Gaussian, EV", True, "FedAvg"),
        "Gao et al. 2021",
        {"sharing": "graph", "mechanism": "linear"},
    ),
    Entry(
        "feddag-all-linear",
        "FedDAG, linear, all shared",
        f"{_HERE}.feddag:feddag",
        Claims(_OPTIMISED, _ALIKE, "Linear Gaussian, EV", True, "FedAvg"),
        "Gao et al. 2021",
        {"sharing": "all", "mechanism": "linear"},
    ),
    Entry(
        "sort-by-variance",
        "Sorting by variance",
        f"{_HERE}.var_sort:sort_by_variance",
        Claims(_SORTED, _ALIKE, "Linear, variance grows along arrows", True, _SUMMARIES),
        "Reisach et al. 2021",
    ),
    Entry(
        "cdnod-fisherz",
        "CD-NOD with Fisher's z",
        f"{_HERE}.pooled_references:cdnod",
        Claims(_TESTED, _DIFFERENT, _LINEAR, False, _POOLED),
        "Huang et al. 2020",
        {"test": "fisherz"},
        "peers",
    ),
    Entry(
        "cdnod-rcit",
        "CD-NOD with RCIT",
        f"{_HERE}.pooled_references:cdnod",
        Claims(_TESTED, _DIFFERENT, _ANY, False, _POOLED),
        "Huang et al. 2020",
        {"test": "rcit"},
        "peers",
    ),
    Entry(
        "cdnod-kci",
        "CD-NOD with KCI",
        f"{_HERE}.pooled_references:cdnod",
        Claims(_TESTED, _DIFFERENT, _ANY, False, _POOLED),
        "Huang et al. 2020",
        {"test": "kci"},
        "peers",
    ),
    Entry(
        "pc-fisherz",
        "PC with Fisher's z",
        f"{_HERE}.pooled_references:pc",
        Claims(_TESTED, _ALIKE, _LINEAR, False, _POOLED),
        "Spirtes and Glymour 1991",
        {"test": "fisherz"},
        "peers",
    ),
)

METHODS: Mapping[str, Entry] = MappingProxyType({entry.name: entry for entry in _ENTRIES})
"""Ours first, then the rivals of the paper, then references."""
