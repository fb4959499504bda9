"""`FedCDH`: discovery in the manner of scikit-learn; parameters when it is made, `fit`, results with a trailing _.

>>> from fedcdh.evaluation.demo import hospital_study
>>> found = FedCDH(method="evidence").fit(hospital_study().columns(), domain="hospital")
>>> sorted(found.changing_)
['medication', 'systolic_pressure']
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.sparse import issparse

from fedcdh._runtime.optional_imports import optional_import
from fedcdh.data.sources import ColumnKind
from fedcdh.data.table import Table, to_table
from fedcdh.discovery.api import discover
from fedcdh.errors import DataError
from fedcdh.graphs.convert.adjacency_matrix import to_adjacency
from fedcdh.graphs.knowledge import Knowledge
from fedcdh.protocols import DOMAIN

with optional_import("scikit-learn", extra="sklearn"):
    from sklearn.base import BaseEstimator
    from sklearn.utils.validation import check_array

DEFAULT_CLIENT = "all"
"""What a table without a domain is called: it is the only client."""


class FedCDH(BaseEstimator):  # type: ignore[misc]
    """Causal discovery from the tables of several clients.

    Parameters are those of `fedcdh.discover`; `n_jobs` is its `workers`. After `fit`:

    - `graph_`: the `PartialGraph` over the variables; `augmented_`: the same with the domain
    - `changing_`: the variables whose mechanism differs between clients
    - `edges_`: every pair of nodes with its evidence, as `pandas.DataFrame(edges_)` takes it
    - `adjacency_`: an `Adjacency` of `graph_` (names and matrix) in the convention "from-to"
    - `feature_names_in_`, `n_features_in_`: the variables; the former where the data have names
    - `result_`: the `Discovery` with everything else
    """

    def __init__(
        self,
        method: str = "auto",
        alpha: float | None = None,
        knowledge: Knowledge | None = None,
        max_conditioning_size: int | None = None,
        kinds: Mapping[str, ColumnKind] | None = None,
        max_missing_share: float = 0.5,
        seed: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.method = method
        self.alpha = alpha
        self.knowledge = knowledge
        self.max_conditioning_size = max_conditioning_size
        self.kinds = kinds
        self.max_missing_share = max_missing_share
        self.seed = seed
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: None = None, *, domain: Any = None) -> FedCDH:
        """Finds the graph. `y` is there for pipelines and is not looked at.

        `domain` says which client a row belongs to: the name of a column of X, or one label per row. Without it, X is
        a mapping from client to table, or one table, which then is the only client.
        """
        data, label = _with_domain(X, domain)
        result = discover(
            data,
            domain=label,
            kinds=self.kinds,
            method=self.method,
            alpha=self.alpha,
            knowledge=self.knowledge,
            max_conditioning_size=self.max_conditioning_size,
            max_missing_share=self.max_missing_share,
            seed=self.seed,
            workers=1 if self.n_jobs is None else self.n_jobs,
        )
        self.result_ = result
        self.graph_, self.augmented_, self.changing_ = result.graph, result.augmented, result.changing
        self.edges_, self.adjacency_ = result.edges(), to_adjacency(result.graph, "from-to")
        self.n_features_in_ = len(result.cohort.plan.names)
        if _has_names(X):
            self.feature_names_in_ = np.array(result.cohort.plan.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):  # of an earlier fit
            del self.feature_names_in_
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True  # rows with missing values are left out, up to max_missing_share
        tags.input_tags.string = True  # labels are a kind of data here
        tags.input_tags.categorical = True
        return tags


def _with_domain(X: Any, domain: Any) -> tuple[Any, str | None]:
    """The data and the name of the column that says which client a row belongs to, as `discover` takes them."""
    if domain is None:
        return (X, None) if _is_per_client(X) else ({DEFAULT_CLIENT: _to_table(X)}, None)
    if _is_per_client(X):
        raise DataError("X has one table per client, which says it all; leave domain= out")
    if isinstance(domain, str):
        return X, domain
    table, labels = _to_table(X), to_table({DOMAIN: np.asarray(domain)}, owner="domain=").columns[DOMAIN]
    if DOMAIN in table.columns:
        raise DataError(f"X has a column {DOMAIN!r}, a name that is taken; rename it, or pass domain={DOMAIN!r}")
    if len(labels) != table.rows:
        raise DataError(f"domain= has {len(labels)} labels for {table.rows} rows; expected one label per row")
    return Table({**table.columns, DOMAIN: labels}), DOMAIN


def _to_table(X: Any) -> Table:
    """A table, checked as scikit-learn does where it is an array or a list of rows."""
    if _has_names(X):
        table = to_table(X)
        if table.rows < 2:
            raise DataError(f"found {table.rows} rows; expected at least 2 (n_samples = {table.rows})")
        return table
    return to_table(check_array(X, dtype=None, ensure_all_finite="allow-nan", ensure_min_samples=2))


def _has_names(X: Any) -> bool:
    """Whether the columns of the data have names: a data frame or a mapping, but neither rows nor a sparse matrix."""
    if _is_per_client(X):
        return all(map(_has_names, X.values()))
    if issparse(X):  # one of the sparse formats is a dict
        return False
    return isinstance(X, (Mapping, Table)) or hasattr(X, "columns") or hasattr(X, "column_names")


def _is_per_client(X: Any) -> bool:
    """Whether this is a mapping from client to table, and not one of columns."""
    return isinstance(X, Mapping) and not issparse(X) and len(X) > 0 and all(map(_is_table, X.values()))


def _is_table(value: Any) -> bool:
    return isinstance(value, (Mapping, Table)) or hasattr(value, "columns") or getattr(value, "ndim", 1) == 2
