"""A client's answer about residuals: one more pass over its rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from fedcdh._runtime.array_types import Array
from fedcdh.data.table import Table
from fedcdh.errors import DataError
from fedcdh.summaries.complete_rows import complete_blocks
from fedcdh.summaries.encoder import GRID, Encoder
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.residuals.functions import (
    MAX_LARGE_RESIDUAL,
    MAX_LOG_SIZE,
    PRODUCT_BOUND,
    product_functions,
    product_of,
    shape_bounds,
    shape_functions,
    size_bounds,
    size_functions,
    size_terms,
)
from fedcdh.summaries.residuals.products import regress_product
from fedcdh.summaries.residuals.request import (
    PRODUCTS,
    SIZE,
    TIES,
    Integers,
    ResidualQuery,
    ResidualRequest,
    ResidualSums,
)
from fedcdh.summaries.residuals.rounding import choose_coarseness, choose_offsets, round_sums, rounding_steps
from fedcdh.summaries.summary import Summary

DEVIATION_SHARE, MIN_SQUARED_WEIGHT = 0.5, 0.01
"""Prior variance of a client's own weight about the common one: a share of its square and of the noise variance."""
MIN_VARIANCE = 1e-7
"""Smallest variance of residuals, in units of the node: rounding to the grid leaves as much."""


def answer_residuals(
    table: Any, plan: StudyPlan, client: str, request: ResidualRequest, summary: Summary
) -> tuple[ResidualSums, ...]:
    """Compute the sums for every query of a request, rounded to a share of the root of the rows (`rounding`).

    Parameters
    ----------
    table : table, list of batches, or files opened with `open_tables`
        Rows of the client.
    plan : StudyPlan
        Plan of the study.
    client : str
        Name of the client.
    request : ResidualRequest
        The queries.
    summary : Summary
        Summary of the same rows; the client adapts weights to it where a mechanism differs.

    Returns
    -------
    tuple of ResidualSums
        One answer per query, in their order.

    Raises
    ------
    DataError
        If the rows are not those of the summary.
    PlanMismatchError, SummaryError
        If the request does not fit the plan.

    Examples
    --------
    >>> from fedcdh.summaries import Continuous, StudyPlan, summarize
    >>> from fedcdh.summaries.residuals import Coordinates
    >>> plan = StudyPlan((Continuous("y"),), ("north",))
    >>> table = {"y": [-1.0, 0.0, 1.0]}
    >>> y = Coordinates((0.0,) * 6, ((plan.clip,) + (0.0,) * 5,))
    >>> query = ResidualQuery("y", (), "shape", weights=(), widths=(), deviation=1.0)
    >>> request = ResidualRequest(plan.fingerprint, 1, {"y": y}, (query,))
    >>> (answer,) = answer_residuals(table, plan, "north", request, summarize(table, plan, "north"))
    >>> answer.rows, int(answer.sums[0])
    (3, 0)
    """
    request.check(plan)
    fits = [fit_query(query, request, plan, summary) for query in request.queries]
    sums = _ResidualTotals(plan, client, request, fits)
    for block in complete_blocks(table, plan, client):
        sums.add(block)
    if sums.rows != summary.rows:
        raise DataError(
            f"client {client!r} has {sums.rows} complete rows; expected the {summary.rows} of its summary: the table "
            "has changed; make the summary again, and let the study start over"
        )
    return sums.answers()


class QueryFit(NamedTuple):
    """The regression of a query as one client applies it: z = (y − weights · x − level) / deviation.

    If the query has a product p of two parents, z is less its first product weight times p − mean − slopes · parents.
    """

    query: ResidualQuery
    weights: Array
    level: float
    deviation: float
    product_weights: tuple[float, ...] = ()


def fit_query(query: ResidualQuery, request: ResidualRequest, plan: StudyPlan, summary: Summary) -> QueryFit:
    """Return the regression with common weights, or with weights that are adapted to the client's own rows.

    The client's weights are the posterior mean with a normal prior about the common weights: own rows decide where
    there are many, the common weights where there are few.

    Parameters
    ----------
    query : ResidualQuery
        The query.
    request : ResidualRequest
        The request, for its coordinates.
    plan : StudyPlan
        Plan of the study.
    summary : Summary
        Summary of the client.

    Returns
    -------
    QueryFit
        Weights, level and deviation.
    """
    weights = np.array(query.weights)
    if not query.differs:
        return QueryFit(query, weights, 0.0, query.deviation, query.product_weights)
    means, scatter = _own_moments(query, request, plan, summary)
    inner, cross, square = scatter[1:, 1:], scatter[0, 1:], scatter[0, 0]

    def variance(chosen: Array) -> float:
        left = square - 2 * chosen @ cross + chosen @ inner @ chosen
        return max(float(left) / summary.rows, MIN_VARIANCE)

    if len(weights):
        noise = variance(weights)
        precision = noise / (DEVIATION_SHARE * (weights**2 + MIN_SQUARED_WEIGHT * noise))
        weights = weights + np.linalg.solve(inner + np.diag(precision), cross - inner @ weights)
    level, deviation = float(means[0] - weights @ means[1:]), float(np.sqrt(variance(weights)))
    return QueryFit(query, weights, level, deviation, _own_product(query, request, plan, summary))


def _own_product(
    query: ResidualQuery, request: ResidualRequest, plan: StudyPlan, summary: Summary
) -> tuple[float, ...]:
    """Return the common weight of a product, and its mean and slopes over the rows of this client."""
    if not query.product:
        return ()
    own = regress_product(query.product, request.coordinates, plan, summary)
    return (query.product_weights[0], own.mean, *own.slopes)


def residual_moments(fit: QueryFit, request: ResidualRequest, plan: StudyPlan, summary: Summary) -> tuple[float, float]:
    """Return mean and standard deviation of the standardised residuals over the rows of a summary, before any clipping.

    Residuals are linear in the features, so the coordinator computes the same numbers as the site.

    Parameters
    ----------
    fit : QueryFit
        The regression as a client applies it, with noise of constant size.
    request : ResidualRequest
        The request, for its coordinates.
    plan : StudyPlan
        Plan of the study.
    summary : Summary
        Summary of the client.

    Returns
    -------
    tuple of float
        Mean and standard deviation of z.
    """
    means, scatter = _own_moments(fit.query, request, plan, summary)
    weights = np.concatenate([[1.0], -fit.weights])
    variance = max(float(weights @ scatter @ weights) / summary.rows, 0.0)
    return float(weights @ means - fit.level) / fit.deviation, float(np.sqrt(variance)) / fit.deviation


def coordinate_rms(name: str, request: ResidualRequest, plan: StudyPlan, summary: Summary) -> Array:
    """Return the root mean square of every coordinate of a variable over the rows of a summary.

    Parameters
    ----------
    name : str
        A variable that the request names.
    request : ResidualRequest
        The request.
    plan : StudyPlan
        Plan of the study.
    summary : Summary
        Summary of the client.

    Returns
    -------
    array
        √(Σ u²/n) of each coordinate u, and last of the normal score if there is one.
    """
    one, columns = request.coordinates[name], plan.layout.spans[name]
    turn = np.array([*one.matrix, *([one.score] if one.score else [])])
    means = turn @ (summary.means[columns] - np.array(one.centre))
    scatter = turn @ summary.scatter(columns, columns) @ turn.T
    return np.asarray(np.sqrt(np.maximum(scatter.diagonal() / summary.rows + means**2, 0.0)))


def _own_moments(
    query: ResidualQuery, request: ResidualRequest, plan: StudyPlan, summary: Summary
) -> tuple[Array, Array]:
    """Return means and scatter of the node's first coordinate and of the parents' coordinates at this client."""
    spans = plan.layout.spans
    parts = [(query.node, 1), *zip(query.parents, query.widths, strict=True)]
    columns = np.concatenate([np.arange(spans[name].start, spans[name].stop) for name, _ in parts])
    turn = np.zeros((sum(width for _, width in parts), len(columns)))
    centre, row, column = np.zeros(len(columns)), 0, 0
    for name, width in parts:
        one = request.coordinates[name]
        used = (one.score,) if name == query.node and query.scored else one.matrix[:width]
        turn[row : row + width, column : column + len(one.centre)] = used
        centre[column : column + len(one.centre)] = one.centre
        row, column = row + width, column + len(one.centre)
    blocks = [spans[name] for name, _ in parts]
    scatter = np.block([[summary.scatter(one, other) for other in blocks] for one in blocks])
    return turn @ (summary.means[columns] - centre), turn @ scatter @ turn.T


class _ResidualTotals:
    """Adds the functions of residuals of rows that come in blocks."""

    def __init__(self, plan: StudyPlan, client: str, request: ResidualRequest, fits: Sequence[QueryFit]) -> None:
        self._plan, self._client, self._request, self._fits = plan, client, request, fits
        self._encode = Encoder(plan, client)
        self._sums: list[Integers] = [np.zeros(fit.query.count_entries(plan), dtype=np.int64) for fit in fits]
        self._tied = {fit.query.node for fit in fits if fit.query.about == TIES}
        self._values: dict[str, list[Array]] = {name: [] for name in self._tied}
        self.rows = 0

    def add(self, block: Table) -> None:
        """Add complete rows."""
        self.rows += block.rows
        features, spans = self._encode(block), self._plan.layout.spans
        coordinates = compute_coordinates(features, self._request, self._plan)
        for fit, sums in zip(self._fits, self._sums, strict=True):
            if fit.query.about != TIES:
                sums += _round_to_grid(_scaled_functions(fit, coordinates, self._plan)).sum(axis=1)
        for name in self._tied:
            self._values[name].append(features[spans[name].start])

    def answers(self) -> tuple[ResidualSums, ...]:
        """Return the rounded answer to every query."""
        found, coarseness = [], choose_coarseness(self._plan, self.rows) if self._request.coarse else None
        for fit, sums in zip(self._fits, self._sums, strict=True):
            if fit.query.about == TIES:
                sums = np.array([GRID * _count_tied_rows(self._values[fit.query.node])], dtype=np.int64)
            steps, offsets = rounding_steps(fit.query, self._plan, self.rows, coarseness), None
            if coarseness is not None and fit.query.about != TIES:
                offsets = choose_offsets(steps, self._plan, self._client, fit.query.about)
            rounded = round_sums(sums, steps, self.rows, offsets)
            found.append(ResidualSums(fit.query, self.rows, rounded, coarseness=coarseness or 1.0))
        return tuple(found)


def compute_coordinates(features: Array, request: ResidualRequest, plan: StudyPlan) -> dict[str, Array]:
    """Return the coordinates of every variable that a request names, at every row of encoded features."""
    spans = plan.layout.spans
    return {name: one(features[spans[name]] / GRID) for name, one in request.coordinates.items()}


def standardise(fit: QueryFit, coordinates: Mapping[str, Array], plan: StudyPlan) -> tuple[Array, Array, Array]:
    """Return the standardised residuals of rows, the functions of the parents, and the logarithm of the noise size.

    The functions of the parents are the terms of the noise size, or the products of two parents.
    """
    query = fit.query
    columns = [coordinates[name][:width] for name, width in zip(query.parents, query.widths, strict=True)]
    explained = fit.weights @ np.concatenate(columns) if columns else 0.0
    z = (coordinates[query.node][-1 if query.scored else 0] - explained - fit.level) / fit.deviation
    if query.about == PRODUCTS:
        values = ([coordinates[name][0] for name in pair] for pair in query.pairs(plan))
        return z, np.stack([product_of(*pair) for pair in values]), np.zeros(len(z))
    if query.product:
        first, second = (coordinates[name][0] for name in query.product)
        weight, mean, *slopes = fit.product_weights
        z = z - weight * (product_of(first, second) - mean - slopes[0] * first - slopes[1] * second)
    if query.about != SIZE and not query.size:
        return z, np.zeros((0, len(z))), np.zeros(len(z))
    terms = size_terms(np.stack([coordinates[name][0] for name in query.continuous_parents(plan)]))
    if query.about == SIZE:
        return z, terms, np.zeros(len(z))
    log_size = np.clip(query.size[0] + np.array(query.size[1:]) @ terms, -MAX_LOG_SIZE, MAX_LOG_SIZE)
    return z * np.exp(-log_size / 2), terms, log_size


def _scaled_functions(fit: QueryFit, coordinates: Mapping[str, Array], plan: StudyPlan) -> Array:
    """Return the functions of a query at every row, each divided by its bound."""
    z, terms, log_size = standardise(fit, coordinates, plan)
    if fit.query.about == SIZE:
        return size_functions(z, terms) / size_bounds(len(terms) // 2)[:, None]
    if fit.query.about == PRODUCTS:
        return product_functions(z, terms) / PRODUCT_BOUND
    shape, large = shape_functions(z) / shape_bounds()[:, None], np.clip(z / MAX_LARGE_RESIDUAL, -1, 1) ** 2
    if fit.query.product:
        return np.concatenate([shape, [large]])
    return np.concatenate([shape, [large, log_size / MAX_LOG_SIZE]]) if fit.query.size else shape


def _round_to_grid(values: Array) -> Integers:
    return np.rint(values * GRID).astype(np.int64)


def _count_tied_rows(values: Iterable[Array]) -> int:
    """Return the number of rows that have the most frequent value."""
    together = np.concatenate([np.zeros(0), *values])
    return int(np.unique(together, return_counts=True)[1].max(initial=0))
