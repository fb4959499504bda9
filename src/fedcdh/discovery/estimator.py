"""The scikit-learn estimator. Making one needs scikit-learn; importing the class does not."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from scipy.sparse import issparse

from fedcdh._runtime.optional_imports import optional_import
from fedcdh.data.sources import ColumnKind
from fedcdh.data.table import Table, to_table
from fedcdh.discovery.api import discover
from fedcdh.discovery.settings import (
    DEFAULT_MIN_ARROW_PROBABILITY,
    DEFAULT_MIN_EFFECT,
    DEFAULT_MIN_PROBABILITY,
    TableOptions,
)
from fedcdh.errors import DataError, MissingDependencyError
from fedcdh.graphs.convert.adjacency_matrix import to_adjacency
from fedcdh.graphs.knowledge import Knowledge
from fedcdh.graphs.partial_graph import PartialGraph
from fedcdh.protocols import DOMAIN
from fedcdh.summaries.plan import MissingValues

try:
    with optional_import("scikit-learn", extra="sklearn"):
        from sklearn.base import BaseEstimator
        from sklearn.utils.validation import check_array
except MissingDependencyError as error:
    _missing = error

    class BaseEstimator:  # type: ignore[no-redef]
        """The base class if scikit-learn is not installed: it says so when an estimator is made."""

        def __new__(cls, *args: object, **settings: object) -> BaseEstimator:
            raise _missing


DEFAULT_CLIENT = "all"
"""The name of the only client if a table has no domain."""


class FedCDH(BaseEstimator):  # type: ignore[misc]
    """Causal discovery as a scikit-learn estimator.

    The parameters are those of `discover`.

    Parameters
    ----------
    method : {"auto", "evidence", "constraint", "paper"}, default "auto"
        "evidence" maximises the marginal likelihood, "constraint" uses conditional independence tests, "paper" the
        tests of Algorithm 1 as printed. "auto" is "evidence".
    alpha : float, optional
        Significance level of the tests. Default 0.05; smaller for "constraint" with more than 30 variables.
    knowledge : Knowledge, optional
        Required arrows, forbidden arrows and tiers. Default none.
    max_conditioning_size : int, optional
        The largest number of variables in a conditioning set, or of parents for "evidence". Default no limit.
    kinds : mapping from str to {"continuous", "categorical"}, optional
        The kind of single variables, for example of numbers that are codes.
    max_missing_share : float, default 0.5
        The largest share of a client's rows that may be left out because a value is missing.
    seed : int, default 0
        Seed of the random features of "paper", and of the search of "evidence" where there are many variables.
    n_jobs : int, optional
        How many workers answer the queries of "constraint", -1 for one per processor. Default 1.
    min_probability : float, default 0.5
        The smallest probability of an edge, or of a difference between clients, that "evidence" draws.
    min_arrow_probability : float, default 0.8
        The smallest probability of an arrow. Edges whose likelier direction has less are lines ("evidence").
    min_effect : float, default 0.02
        The smallest share of variance that an edge explains, if "evidence" is to draw it. A quarter of it is enough for
        an edge that shows at nearly all clients. The notes name edges that are left out.
    order_by : str, optional
        Column of `X` with the time of each row: numbers, or texts such as dates like 2024-01-31. It is no variable.
        Rows that depend on the rows before them count as fewer rows, and the notes say so. Default: the order of the
        rows as they are, if a client's table is not sorted by one of its variables.
    accept_differences : collection of str, default ()
        Variables whose ranges or labels really differ between clients. Others are refused where clients seem to have
        different units, different spellings of a label, or no label in common.
    exclude : collection of str, default ()
        Columns of `X` that are no variables, such as identifiers, dates and free text.
    missing : {"complete", "impute"}, default "complete"
        What is done with rows in which a value is missing; see `fedcdh.discover`.
    hidden : bool, default False
        Whether something unmeasured may be behind two variables.

    Attributes
    ----------
    graph_ : PartialGraph or AncestralGraph
        The causal graph over the variables; with `hidden`, a partial ancestral graph.
    augmented_ : PartialGraph or AncestralGraph
        The same with the domain as a further node.
    changing_ : frozenset of str
        The variables whose mechanism differs between clients.
    edges_ : tuple of Edge or AncestralEdge
        Every pair of nodes with its evidence, as ``pandas.DataFrame(edges_)`` takes it.
    adjacency_ : Adjacency
        Names and matrix of `graph_`, in the convention "from-to"; not with `hidden`, where one number cannot hold two
        marks (`fedcdh.graphs.convert.pag_to_pcalg` makes a matrix).
    feature_names_in_ : array of str
        The variables; only if the data have names.
    n_features_in_ : int
        The number of variables.
    result_ : Discovery or AncestralDiscovery
        The whole result.

    See Also
    --------
    discover : The same as a function.

    Examples
    --------
    >>> from fedcdh import FedCDH, demo
    >>> found = FedCDH(method="evidence").fit(demo.hospital_study().columns(), domain="hospital")
    >>> sorted(found.changing_)
    ['medication', 'systolic_pressure']
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
        min_probability: float = DEFAULT_MIN_PROBABILITY,
        min_arrow_probability: float = DEFAULT_MIN_ARROW_PROBABILITY,
        min_effect: float = DEFAULT_MIN_EFFECT,
        order_by: str | None = None,
        accept_differences: Collection[str] = (),
        exclude: Collection[str] = (),
        missing: MissingValues = "complete",
        hidden: bool = False,
    ) -> None:
        self.method = method
        self.alpha = alpha
        self.knowledge = knowledge
        self.max_conditioning_size = max_conditioning_size
        self.kinds = kinds
        self.max_missing_share = max_missing_share
        self.seed = seed
        self.n_jobs = n_jobs
        self.min_probability = min_probability
        self.min_arrow_probability = min_arrow_probability
        self.min_effect = min_effect
        self.order_by = order_by
        self.accept_differences = accept_differences
        self.exclude = exclude
        self.missing = missing
        self.hidden = hidden

    def fit(self, X: Any, y: None = None, *, domain: Any = None) -> FedCDH:
        """Find the causal graph.

        Parameters
        ----------
        X : data frame, mapping of columns, array, or mapping from client to table
            One table, or one table per client.
        y : None
            Ignored; it is there for pipelines.
        domain : str or sequence, optional
            The client of each row of a single table: the name of a column of `X`, or one name per row. Without it,
            a single table is taken for the only client.

        Returns
        -------
        FedCDH
            The estimator itself.

        Raises
        ------
        DataError
            If the data cannot be read, or `domain` does not fit them.
        SettingsError
            If a parameter is out of its range.
        """
        data, label = _with_domain(X, domain)
        options: TableOptions = {
            "domain": label,
            "kinds": self.kinds,
            "method": self.method,
            "alpha": self.alpha,
            "knowledge": self.knowledge,
            "max_conditioning_size": self.max_conditioning_size,
            "max_missing_share": self.max_missing_share,
            "seed": self.seed,
            "workers": 1 if self.n_jobs is None else self.n_jobs,
            "min_probability": self.min_probability,
            "min_arrow_probability": self.min_arrow_probability,
            "min_effect": self.min_effect,
            "order_by": self.order_by,
            "accept_differences": self.accept_differences,
            "exclude": self.exclude,
            "missing": self.missing,
        }
        result = discover(data, hidden=True, **options) if self.hidden else discover(data, **options)
        self.result_ = result
        self.graph_, self.augmented_, self.changing_ = result.graph, result.augmented, result.changing
        self.edges_ = result.edges()
        if isinstance(result.graph, PartialGraph):
            self.adjacency_ = to_adjacency(result.graph, "from-to")
        elif hasattr(self, "adjacency_"):  # of an earlier fit
            del self.adjacency_
        self.n_features_in_ = len(result.cohort.plan.names)
        if _has_names(X):
            self.feature_names_in_ = np.array(result.cohort.plan.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):  # of an earlier fit
            del self.feature_names_in_
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True  # rows with missing values are left out, up to max_missing_share
        tags.input_tags.string = True  # categorical variables may be texts
        tags.input_tags.categorical = True
        return tags


def _with_domain(X: Any, domain: Any) -> tuple[Any, str | None]:
    """Return the data, and the name of the column with the client of each row, as `discover` takes them."""
    if domain is None:
        return (X, None) if _is_per_client(X) else ({DEFAULT_CLIENT: _to_table(X)}, None)
    if _is_per_client(X):
        raise DataError(
            "X has one table per client, and domain is given as well; expected one of them; leave domain out",
            parameter="domain",
        )
    if isinstance(domain, str):
        return X, domain
    table, labels = _to_table(X), to_table({DOMAIN: np.asarray(domain)}, owner="domain").columns[DOMAIN]
    if DOMAIN in table.columns:
        raise DataError(
            f"X has a column {DOMAIN!r}, a name that this package uses itself; rename the column, or pass {DOMAIN!r} "
            "as domain if it holds the client",
            parameter="domain",
        )
    if len(labels) != table.rows:
        raise DataError(
            f"domain has {len(labels)} names for {table.rows} rows; expected one name per row; pass the name of a "
            "column, or as many names as X has rows",
            parameter="domain",
        )
    return Table({**table.columns, DOMAIN: labels}), DOMAIN


def _to_table(X: Any) -> Table:
    """Return a table; arrays and lists of rows are checked as scikit-learn does."""
    if _has_names(X):
        table = to_table(X)
        if table.rows < 2:
            raise DataError(f"found {table.rows} rows; expected at least 2; pass more rows (n_samples = {table.rows})")
        return table
    return to_table(check_array(X, dtype=None, ensure_all_finite="allow-nan", ensure_min_samples=2))


def _has_names(X: Any) -> bool:
    """Return whether columns have names: in data frames and mappings, not in rows or sparse matrices."""
    if _is_per_client(X):
        return all(map(_has_names, X.values()))
    if issparse(X):  # one of the sparse formats is a dict
        return False
    return isinstance(X, (Mapping, Table)) or hasattr(X, "columns") or hasattr(X, "column_names")


def _is_per_client(X: Any) -> bool:
    """Return whether this is a mapping from client to table, and not one of columns."""
    return isinstance(X, Mapping) and not issparse(X) and len(X) > 0 and all(map(_is_table, X.values()))


def _is_table(value: Any) -> bool:
    return isinstance(value, (Mapping, Table)) or hasattr(value, "columns") or getattr(value, "ndim", 1) == 2
