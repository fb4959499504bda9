"""Scale bounds: a plan's scale and spread beside the spread that a variable has at the site.

Features are rounded to a grid of 2¹⁸ steps. If the plan's scale is much larger than the standard deviation of the
values, they round to a few steps: first the square, then other features, at last the value itself. A rounded column
with two values is a label, and the author of the plan decides where its step lies. So the scale is bounded from above;
`check_feature_resolution` and `check_location` bound it from below.

Sites differ, so the spread of a site may be much smaller than the scale of the plan; a variable that is constant at the
site has no spread, and discloses nobody. Where the square alone is a label of a few people, `group_leverage` finds it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from fedcdh.summaries.encoder import GRID
from fedcdh.summaries.plan import DEFAULT_CLIP, StudyPlan
from fedcdh.summaries.summary import Summary
from fedcdh.summaries.variables import Continuous

MAX_SCALE_RATIO = 300.0
"""Largest ratio of a plan's scale, or spread, to the standard deviation at the site.

Honest sites pass up to it, and from 500 on features other than the square may become labels, by `python -m
benchmarks.attacks.oversized_scale honest` on seeds below 1000.
"""


def scale_ratios(summary: Summary, plan: StudyPlan) -> dict[str, float]:
    """Return, for each continuous variable, how many standard deviations of the site the plan's scale is.

    The standard deviation is that of the clipped and rounded values. The ratio is that of the scale or the spread,
    whichever is larger, and counts a clip above the default as a larger scale. It is 0 for a constant, and infinite if
    all values round to one while their features differ.

    Parameters
    ----------
    summary : Summary
        The summary that is to leave.
    plan : StudyPlan
        The plan that it follows.

    Returns
    -------
    dict from str to float
        Ratio by variable.

    Examples
    --------
    >>> from fedcdh import summarize
    >>> plan = StudyPlan((Continuous("age", 60, 1500),), ("north",))
    >>> summary = summarize({"age": [45, 60, 75] * 100}, plan, "north")
    >>> {name: round(ratio) for name, ratio in scale_ratios(summary, plan).items()}
    {'age': 123}
    """
    return {
        variable.name: _scale_ratio(summary, plan, variable)
        for variable in plan.variables
        if isinstance(variable, Continuous) and summary.rows
    }


def _scale_ratio(summary: Summary, plan: StudyPlan, variable: Continuous) -> float:
    value, *others = range(summary.moments.shape[0])[plan.layout.spans[variable.name]]
    deviation = _deviation(summary, value) * plan.clip  # in scales
    if not deviation:
        return math.inf if any(_deviation(summary, column) for column in others) else 0.0
    return max(plan.clip / DEFAULT_CLIP, variable.centre_and_spread[1] / variable.scale, 1.0) / deviation


def _deviation(summary: Summary, column: int) -> float:
    """Return the standard deviation of a column, from exact integers."""
    total, square = int(summary.moments[0, column]) // GRID, int(summary.moments[column, column])
    return math.sqrt(summary.rows * square - total * total) / summary.rows / GRID


def check_scales(ratios: Mapping[str, float], max_scale_ratio: float) -> Iterator[str]:
    """Find variables for which the plan's scale is too large: one sentence for all of them.

    Parameters
    ----------
    ratios : mapping from str to float
        From `scale_ratios`.
    max_scale_ratio : float
        Largest ratio of the scale to the standard deviation.

    Yields
    ------
    str
        One sentence, if there is such a variable.
    """
    wide = {name: ratio for name, ratio in ratios.items() if ratio > max_scale_ratio}
    if wide:
        named = ", ".join(
            f"{name!r} ({ratio:.3g} times)" if ratio < math.inf else f"{name!r} (all values round to one)"
            for name, ratio in wide.items()
        )
        yield (
            f"the plan's scale is much larger than the standard deviation here, of {named}, expected at most "
            f"{max_scale_ratio:g} times: rounding would turn the numbers into labels of a few people; ask the "
            "coordinator for a plan made from profiles, check the units, or leave the variable out"
        )
