"""The Gaussian mechanism for summaries: integer noise in every entry of the moments.

The plan's `DPParameters` say how large the noise has to be. Sums stay multiples of the grid, and counts stay whole, as
they are without noise.
"""

from __future__ import annotations

import secrets
from dataclasses import replace

import numpy as np

from fedcdh.errors import PlanError, PlanMismatchError, SummaryError
from fedcdh.privacy.differential.discrete_gaussian import RandomBytes, sample_discrete_gaussian
from fedcdh.summaries.dp_parameters import CONSTANT_VARIANCE_RATIO, DPParameters, ceil_sqrt
from fedcdh.summaries.encoder import GRID
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.summary import Integers, Summary

MIN_ROWS_DEVIATION = 2
"""Smallest standard deviation of the noise in the number of rows, in rows; then rounding to whole rows is harmless."""


def add_noise(summary: Summary, plan: StudyPlan, random: RandomBytes = secrets.token_bytes) -> Summary:
    """Return the summary with all of the noise that the plan asks for: the only one that may leave.

    The summary is that of one client, if each adds its own noise; or the sum over several clients, at the party that is
    trusted with that sum. Counts of incomplete rows and of missing values would need noise of their own, so they are
    set to zero.

    Parameters
    ----------
    summary : Summary
        Exact summary.
    plan : StudyPlan
        Plan with noise.
    random : callable, optional
        Returns the given number of random bytes. Default: the operating system's generator.

    Returns
    -------
    Summary
        Noisy summary, with at least one row.

    Raises
    ------
    PlanError
        If the plan asks for no noise, or for noise that clients add together.
    PlanMismatchError
        If the summary follows another plan.
    SummaryError
        If the summary has noise already, or is a bootstrap replicate.

    Examples
    --------
    >>> from fedcdh import Continuous, summarize
    >>> plan = StudyPlan((Continuous("age", 60, 15),), ("north",), clip=6, noise=DPParameters(1, 1e-6))
    >>> message = add_noise(summarize({"age": [50, 61, 72]}, plan, "north"), plan)
    >>> message.noise == plan.noise.deviation ** 2
    True
    """
    noise = _require_noise(summary, plan)
    if noise.distributed and len(summary.clients) == 1:
        raise PlanError(
            "In this plan clients add noise together, so that the summary of one client alone has too little. Expected "
            "a plan with distributed=False, or the sum over clients. Use add_noise_share(), and let only masked sums "
            "leave"
        )
    return clip_noisy_rows(_add_discrete_noise(summary, noise.deviation, random))


def add_noise_share(summary: Summary, plan: StudyPlan, random: RandomBytes = secrets.token_bytes) -> Summary:
    """Return a client's summary with its share of noise that clients add together.

    It is for secure aggregation only, and must not leave without masks.

    Parameters
    ----------
    summary : Summary
        Exact summary of one client.
    plan : StudyPlan
        Plan with noise of `distributed=True`.
    random : callable, optional
        Returns the given number of random bytes. Default: the operating system's generator.

    Returns
    -------
    Summary
        Summary with a share of the noise.

    Raises
    ------
    PlanError
        If the plan does not let clients add noise together, or the summary is of several clients.

    Examples
    --------
    >>> from fedcdh import Continuous, summarize
    >>> noise = DPParameters(1, 1e-6, distributed=True, honest=2)
    >>> plan = StudyPlan((Continuous("age", 60, 15),), ("north", "south", "west"), clip=6, noise=noise)
    >>> part = add_noise_share(summarize({"age": [50, 61, 72]}, plan, "north"), plan)
    >>> part.noise == noise.client_deviation**2
    True
    """
    noise = _require_noise(summary, plan)
    if not noise.distributed or len(summary.clients) != 1:
        raise PlanError(
            f"The plan has noise of distributed={noise.distributed}, and the summary is of {len(summary.clients)} "
            "clients. Expected distributed=True and one client. Use add_noise() otherwise"
        )
    return _add_discrete_noise(summary, noise.client_deviation, random)


def clip_noisy_rows(summary: Summary) -> Summary:
    """Return a noisy summary with at least one row, and with no more rows read than used.

    This depends on released numbers only, and so discloses nothing more.

    Parameters
    ----------
    summary : Summary
        Noisy summary.

    Returns
    -------
    Summary
        The summary as it is used.

    Examples
    --------
    >>> from fedcdh import Continuous, summarize
    >>> plan = StudyPlan((Continuous("age", 60, 15),), ("north",))
    >>> clip_noisy_rows(summarize({"age": [50, 61, None]}, plan, "north")).rows_read
    2
    """
    moments = np.array(summary.moments)
    moments[0, 0] = max(int(moments[0, 0]), GRID**2)
    rows = int(moments[0, 0]) // GRID**2
    return replace(summary, moments=moments, rows_read=rows, missing=dict.fromkeys(summary.missing, 0))


def noise_deviations(columns: int, deviation: int) -> Integers:
    """Return the standard deviation of the noise in every entry of the moments, rounded up to integers.

    It is σ in general, √2 σ on the diagonal, √3 σ in the sums, and larger in the number of rows.

    Parameters
    ----------
    columns : int
        Number of columns of the summary.
    deviation : int
        The standard deviation σ, in steps of the grid.

    Returns
    -------
    array of int
        Columns × columns.

    Examples
    --------
    >>> noise_deviations(3, 100)[1:, 1:]
    array([[142, 100],
           [100, 142]])
    """
    found = np.full((columns, columns), deviation, dtype=np.int64)
    first = round(CONSTANT_VARIANCE_RATIO)
    np.fill_diagonal(found, ceil_sqrt(2 * deviation**2))
    found[0] = found[:, 0] = ceil_sqrt(first * deviation**2)
    found[0, 0] = max(ceil_sqrt(2 * first**2 * deviation**2), MIN_ROWS_DEVIATION * GRID**2)
    return found


def _require_noise(summary: Summary, plan: StudyPlan) -> DPParameters:
    """Return the plan's noise, if it has to be added to this summary."""
    if summary.plan != plan.fingerprint:
        raise PlanMismatchError(
            f"This summary follows plan {summary.plan[:12]}, expected {plan.fingerprint[:12]}. Make it again"
        )
    if plan.noise is None:
        raise PlanError(
            "This plan asks for no noise. Expected one with noise. Make it with noise=DPParameters(epsilon=1, "
            "delta=1e-6)"
        )
    if summary.noise or summary.replicate:
        found = "has its noise already" if summary.noise else "is a bootstrap replicate"
        raise SummaryError(
            f"The summary of {', '.join(summary.clients)} {found}. Expected an exact summary. Pass what summarize() "
            "returned"
        )
    return plan.noise


def _add_discrete_noise(summary: Summary, deviation: int, random: RandomBytes) -> Summary:
    """Add noise to every entry. That of sums is rounded to the grid, that of the rows to whole rows."""
    size = len(summary.moments)
    upper = np.triu_indices(size)
    drawn = np.zeros((size, size), dtype=np.int64)
    drawn[upper] = sample_discrete_gaussian(noise_deviations(size, deviation)[upper], random)
    drawn[0] = _round_to_multiple(drawn[0], GRID)
    drawn[0, 0] = _round_to_multiple(drawn[0, :1], GRID**2)[0]
    drawn += np.triu(drawn, 1).T
    moments = summary.moments + drawn
    return replace(
        summary,
        moments=moments,
        rows_read=int(moments[0, 0]) // GRID**2,
        missing=dict.fromkeys(summary.missing, 0),
        noise=deviation**2,
    )


def _round_to_multiple(drawn: Integers, unit: int) -> Integers:
    """Round to multiples of the unit, halves upwards."""
    return (drawn + unit // 2) // unit * unit
