"""Residual risk: whether the sums of residuals that a site is asked for could single out people.

The coordinator chooses the weights of the regressions. Weights that fit no regression can push all rows but one so far
out that every function is constant there, and the sums then describe that one row. Residuals of a regression have a
root mean square near 1, depend on many rows, and most of them lie between the soft steps. The site checks all of it on
its own rows. The numbers come from `benchmarks/attacks/residuals.py`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedcdh.privacy.disclosure.residual_counts import describe_regression
from fedcdh.summaries.complete_rows import complete_blocks
from fedcdh.summaries.encoder import Encoder
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.residuals.answer import (
    compute_coordinates,
    coordinate_rms,
    fit_query,
    residual_moments,
    standardise,
)
from fedcdh.summaries.residuals.functions import MAX_LOG_SIZE, STEP_CENTRES, STEP_WIDTH
from fedcdh.summaries.residuals.request import SHAPE, TIES, ResidualQuery, ResidualRequest
from fedcdh.summaries.summary import Summary

MAX_RESIDUAL_RMS = 2.0
"""Largest root mean square of standardised residuals at a site; at single sites of honest studies it is 0.4 to 1.9 for
998 in 1000 regressions. Twice as large residuals resolve values twice as finely."""
MIN_RESIDUAL_DEVIATION = 0.2
"""Smallest standard deviation of standardised residuals: where most are the same, the others can be read off."""
MIN_EFFECTIVE_ROWS = 5.0
"""Smallest number of rows on which the variance of the residuals depends; honest heavy tails have more."""
MIN_COORDINATE_RMS, MAX_COORDINATE_RMS = 0.05, 10.0
"""Smallest and largest root mean square of a standardised coordinate of a continuous variable at a site."""
MAX_LOG_SIZE_RMS = MAX_LOG_SIZE / 2
"""Largest root mean square of the logarithm of the noise size: beyond it, most rows are at its bounds."""
_REACH = float(STEP_CENTRES[-1]) + STEP_WIDTH
"""Residuals up to here are between the soft steps."""


@dataclass(frozen=True)
class ResidualLimits:
    """Limits of a policy for requests about residuals.

    Parameters
    ----------
    max_residual_rms : float
        Largest root mean square of standardised residuals.
    max_coordinate_rms : float
        Largest root mean square of a coordinate.
    min_cell_count : int
        Fewest rows between the soft steps, unless there are none.
    """

    max_residual_rms: float
    max_coordinate_rms: float
    min_cell_count: int


@dataclass(frozen=True)
class ResidualRisk:
    """The risk of an answer to one query, from the rows of a site.

    Parameters
    ----------
    query : ResidualQuery
        The query.
    rms : float
        Root mean square of the standardised residuals, after division by the size of the noise if the query has one.
    deviation : float
        Their standard deviation.
    effective_rows : float
        Number of rows on which their variance depends: rows / kurtosis. If m rows differ from all others, it is m.
    log_size_rms : float, default 0.0
        Root mean square of the logarithm of the noise size.
    between_steps : int, optional
        Number of rows between the soft steps. None if the query has no steps.
    """

    query: ResidualQuery
    rms: float
    deviation: float
    effective_rows: float
    log_size_rms: float = 0.0
    between_steps: int | None = None


def assess_residual_risk(
    table: Any, plan: StudyPlan, summary: Summary, request: ResidualRequest
) -> tuple[ResidualRisk, ...]:
    """Compute the risk of every query about a density or a noise size, in one more pass over the rows.

    Parameters
    ----------
    table : table or source of rows
        The rows.
    plan : StudyPlan
        The plan of the study.
    summary : Summary
        Summary of the rows.
    request : ResidualRequest
        The request.

    Returns
    -------
    tuple of ResidualRisk
        One for every query but those about shared values.
    """
    fits = [fit_query(query, request, plan, summary) for query in request.queries if query.about != TIES]
    totals = np.zeros((len(fits), 6))
    encode = Encoder(plan, summary.clients[0])
    for block in complete_blocks(table, plan, summary.clients[0]):
        coordinates = compute_coordinates(encode(block), request, plan)
        for number, fit in enumerate(fits):
            z, _, log_size = standardise(fit, coordinates, plan)
            powers = [(z**power).sum() for power in (1, 2, 3, 4)]
            totals[number] += [*powers, (log_size**2).sum(), (np.abs(z) <= _REACH).sum()]
    return tuple(_to_risk(fit.query, total, summary.rows) for fit, total in zip(fits, totals.tolist(), strict=True))


def _to_risk(query: ResidualQuery, totals: Sequence[float], rows: int) -> ResidualRisk:
    """Return the risk from Σ z, Σ z², Σ z³, Σ z⁴, the sum of squared log sizes, and the rows between the steps."""
    mean, square, cube, fourth, log_square, _ = (total / rows for total in totals)
    variance = max(square - mean**2, 0.0)
    peak = fourth - 4 * mean * cube + 6 * mean**2 * square - 3 * mean**4
    effective = rows * variance**2 / peak if peak > 0 else 0.0
    between = int(totals[-1]) if query.about == SHAPE else None
    return ResidualRisk(query, math.sqrt(square), math.sqrt(variance), effective, math.sqrt(log_square), between)


def check_residual_risks(risks: Sequence[ResidualRisk], limits: ResidualLimits) -> Iterator[str]:
    """Find queries that no regression gives, or whose sums are about few people.

    Parameters
    ----------
    risks : sequence of ResidualRisk
        What the rows say about each query.
    limits : ResidualLimits
        Limits of the policy.

    Yields
    ------
    str
        One sentence for each finding.
    """
    for risk in risks:
        about = describe_regression(risk.query.node, *risk.query.parents)
        if not _is_regular(risk.deviation, risk.rms, limits):
            yield (
                f"the residuals of {about} have the standard deviation {risk.deviation:.3g} and the root mean square "
                f"{risk.rms:.3g} here, expected at least {MIN_RESIDUAL_DEVIATION:g} and at most "
                f"{limits.max_residual_rms:g}: these are not the residuals of a regression, and the sums could single "
                "out people; ask the coordinator why"
            )
        if not risk.effective_rows >= MIN_EFFECTIVE_ROWS:
            yield (
                f"the residuals of {about} depend on {risk.effective_rows:.1f} rows here, expected at least "
                f"{MIN_EFFECTIVE_ROWS:g}: sums would tell about these; cut extreme values, or leave the variable out"
            )
        if not risk.log_size_rms <= MAX_LOG_SIZE_RMS:
            yield (
                f"the logarithm of the noise size of {about} has the root mean square {risk.log_size_rms:.3g} here, "
                f"expected at most {MAX_LOG_SIZE_RMS:g}; ask the coordinator why"
            )
        if risk.between_steps is not None and 0 < risk.between_steps < limits.min_cell_count:
            yield (
                f"the sums of {about} are about {risk.between_steps} people here, expected none or at least "
                f"{limits.min_cell_count}: all others lie where the functions are constant; ask the coordinator why"
            )


def check_coordinates(
    request: ResidualRequest, plan: StudyPlan, summary: Summary, max_coordinate_rms: float
) -> Iterator[str]:
    """Find coordinates that are not standardised, and first coordinates that are not the value itself.

    A level that a site does not have gives a small coordinate, so those of labels have no lower limit.

    Parameters
    ----------
    request : ResidualRequest
        The request.
    plan : StudyPlan
        The plan of the study.
    summary : Summary
        Summary of the rows.
    max_coordinate_rms : float
        Largest root mean square of a coordinate.

    Yields
    ------
    str
        One sentence for each finding.
    """
    for name in request.coordinates:
        yield from _check_variable(name, request, plan, summary, max_coordinate_rms)


def _check_variable(
    name: str, request: ResidualRequest, plan: StudyPlan, summary: Summary, max_coordinate_rms: float
) -> Iterator[str]:
    continuous = plan.kinds[name] == "continuous"
    found, least = coordinate_rms(name, request, plan, summary), MIN_COORDINATE_RMS * continuous
    if not (found.min() >= least and found.max() <= max_coordinate_rms):
        yield (
            f"coordinates of {name!r} have root mean squares from {found.min():.3g} to {found.max():.3g} here, "
            f"expected {least:g} to {max_coordinate_rms:g}: they are not standardised; ask the coordinator why"
        )
    if continuous and any(request.coordinates[name].matrix[0][1:]):
        yield (
            f"the first coordinate of {name!r} is a function of its value, expected the value itself; ask the "
            "coordinator why"
        )


def find_regular_queries(
    request: ResidualRequest, plan: StudyPlan, summaries: Mapping[str, Summary], limits: ResidualLimits
) -> frozenset[ResidualQuery]:
    """Return the queries that no site refuses for its residuals, as far as their summaries tell.

    A summary does not tell on how many rows residuals depend, nor anything about a size of the noise that varies or a
    product of two parents.

    Parameters
    ----------
    request : ResidualRequest
        The request.
    plan : StudyPlan
        The plan of the study.
    summaries : mapping from str to Summary
        Summary of each client that is asked.
    limits : ResidualLimits
        Limits of the policy that is expected at the sites.

    Returns
    -------
    frozenset of ResidualQuery
        The queries within the limits at every client.
    """

    def is_regular(query: ResidualQuery, part: StudyPlan, summary: Summary) -> bool:
        fit = fit_query(query, request, part, summary)
        mean, deviation = residual_moments(fit, request, part, summary)
        return query.about == TIES or _is_regular(deviation, math.hypot(mean, deviation), limits)

    asked = [(plan.for_variables(one.missing), one) for one in summaries.values()]
    refused = {
        name
        for name in request.coordinates
        for part, one in asked
        if name in one.missing and any(_check_variable(name, request, part, one, limits.max_coordinate_rms))
    }
    return frozenset(
        query
        for query in request.queries
        if refused.isdisjoint(names := (query.node, *query.parents))
        and all(is_regular(query, part, one) for part, one in asked if part.spans_all(names))
    )


def _is_regular(deviation: float, rms: float, limits: ResidualLimits) -> bool:
    return deviation >= MIN_RESIDUAL_DEVIATION and rms <= limits.max_residual_rms
