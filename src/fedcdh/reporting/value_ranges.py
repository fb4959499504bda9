"""The position of a site's values in words for its own reader: rounded means, standard deviations and shares."""

from __future__ import annotations

from math import floor, isfinite, log10
from typing import Any

from fedcdh.summaries.descriptives import descriptive_statistics, level_counts
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.summary import Summary

SHARE_DIGITS = 2
"""Digits of shares of levels: whole per cents."""


def describe_values(summary: Summary, plan: StudyPlan) -> dict[str, dict[str, Any]]:
    """Return mean and standard deviation of every number, and the share of every level, rounded.

    Means and deviations have two digits of the deviation, shares are whole per cents. A row that is added to a hundred
    others moves a mean by a hundredth of its distance, so results with and without it rarely differ.

    Parameters
    ----------
    summary : Summary
        The summary of one client, without noise.
    plan : StudyPlan
        Its plan.

    Returns
    -------
    dict from str to dict
        For a continuous variable "mean" and "deviation", for a categorical one "shares" by level.

    Examples
    --------
    >>> import fedcdh
    >>> plan = fedcdh.StudyPlan((fedcdh.Continuous("age", 60, 15), fedcdh.Categorical("sex", ("f", "m"))), ("north",))
    >>> describe_values(fedcdh.summarize({"age": [50, 61, 70], "sex": ["f", "m", "f"]}, plan, "north"), plan)
    {'age': {'mean': 60.3, 'deviation': 8.2}, 'sex': {'shares': {'f': 0.67, 'm': 0.33}}}
    """
    numbers: dict[str, dict[str, Any]] = {
        name: {"mean": round_to_two_digits(mean, spread), "deviation": round_to_two_digits(spread, spread)}
        for name, (mean, spread) in descriptive_statistics(summary, plan).items()
    }
    shares: dict[str, dict[str, Any]] = {
        name: {"shares": {level: round(count / summary.rows, SHARE_DIGITS) for level, count in counts.items()}}
        for name, counts in level_counts(summary, plan).items()
    }
    return {name: (numbers | shares)[name] for name in plan.names}


def round_to_two_digits(value: float, scale: float) -> float:
    """Return a value rounded to the second digit of a scale; as it is where the scale is zero.

    >>> round_to_two_digits(121.234, 9.87), round_to_two_digits(0.123456, 0.0123)
    (121.2, 0.123)
    """
    if not scale > 0 or not isfinite(scale):
        return value
    digits = 1 - floor(log10(scale))
    return round(value, digits)
