"""The strength of an edge: the share of variance that a cause explains, given the other causes of its effect."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from fedcdh._runtime.array_types import Array
from fedcdh.graphs.partial_graph import Arrow, PartialGraph
from fedcdh.inference.orthonormal_basis import Basis
from fedcdh.protocols import DOMAIN

_RIDGE = 1e-6  # of the rows: keeps collinear columns solvable


def measure_strengths(dag: PartialGraph, basis: Basis, arrows: Iterable[Arrow] | None = None) -> dict[Arrow, float]:
    """Return the share of the variance left by the other causes that each arrow of a DAG explains.

    Effects may be nonlinear, as far as the summaries show. Where the mechanism of the effect differs between clients,
    only variation within clients counts. The share is corrected for the number of columns, as an adjusted R² is.

    Parameters
    ----------
    dag : PartialGraph
        A DAG on the variables, or with the domain.
    basis : Basis
        The moments in orthonormal coordinates.
    arrows : iterable of (str, str), optional
        The arrows to measure, which need not be in the DAG. Default all arrows between its variables.

    Returns
    -------
    dict from (str, str) to float
        Shares between 0 and 1.

    Examples
    --------
    >>> import fedcdh
    >>> result = fedcdh.discover(fedcdh.demo.hospital_study().columns(), domain="hospital")
    >>> strengths = measure_strengths(result.to_dag(), Basis.of(result.cohort))
    >>> 0 < strengths["smoker", "cholesterol"] < 1
    True
    """
    wanted = sorted(dag.arrows if arrows is None else arrows)
    return {(tail, head): _measure(dag, basis, tail, head) for tail, head in wanted if tail != DOMAIN}


def _measure(dag: PartialGraph, basis: Basis, tail: str, head: str) -> float:
    others = sorted(dag.parents(head) - {DOMAIN, tail})
    differs = DOMAIN in dag.nodes and head in dag.children(DOMAIN)
    scatter, clients = (basis.within, len(basis.rows)) if differs else (basis.total, 1)
    before = [column for name in others for column in basis.predictors[name]]
    more = [*before, *basis.predictors[tail]]
    without, with_tail = (
        _residual(scatter, basis.targets[head].tolist(), columns, basis.total_rows) for columns in (before, more)
    )
    freedom = max(basis.total_rows - clients - len(more), 1.0)
    explained = 1 - with_tail / max(without, np.finfo(float).tiny)
    return float(np.clip(1 - (1 - explained) * (basis.total_rows - clients - len(before)) / freedom, 0.0, 1.0))


def _residual(scatter: Array, targets: list[int], columns: list[int], rows: float) -> float:
    """Return the sum of squares of the targets that these columns leave."""
    left = float(scatter[targets, targets].sum())
    if not columns:
        return left
    inner, cross = scatter[np.ix_(columns, columns)], scatter[np.ix_(columns, targets)]
    inner = inner + _RIDGE * rows * np.eye(len(columns))
    return max(left - float((cross * np.linalg.solve(inner, cross)).sum()), 0.0)
