"""Descriptive statistics in a summary, in the units of the study: what its receiver can read off at once."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from fedcdh._io.csv_cells import escape_cell
from fedcdh.summaries.encoder import GRID
from fedcdh.summaries.features import bounded
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.summary import Summary
from fedcdh.summaries.variables import Categorical, Continuous


def descriptive_statistics(summary: Summary, plan: StudyPlan) -> dict[str, tuple[float, float]]:
    """Return the mean and standard deviation of every continuous variable, clipped as in the plan.

    Parameters
    ----------
    summary : Summary
        Summary of one or more clients.
    plan : StudyPlan
        Its plan.

    Returns
    -------
    dict from str to tuple of float
        Mean and standard deviation of each variable.

    Examples
    --------
    >>> from fedcdh.summaries import Continuous, StudyPlan, summarize
    >>> plan = StudyPlan((Continuous("age", 60, 15),), ("north",))
    >>> round(descriptive_statistics(summarize({"age": [50, 70]}, plan, "north"), plan)["age"][0], 3)
    60.0
    """
    means, found, spans = summary.means, {}, plan.layout.spans
    for variable in plan.variables:
        if isinstance(variable, Continuous):
            column, unit = spans[variable.name].start, plan.layout.unit * variable.scale
            own = slice(column, column + 1)  # the whole scatter matrix may be large
            deviation = (max(float(summary.scatter(own, own)[0, 0]), 0.0) / summary.rows) ** 0.5
            found[variable.name] = variable.location + unit * float(means[column]), unit * deviation
    return found


def level_counts(summary: Summary, plan: StudyPlan) -> dict[str, dict[str, int]]:
    """Return the number of rows with each level of every categorical variable.

    Parameters
    ----------
    summary : Summary
        Summary of one or more clients.
    plan : StudyPlan
        Its plan.

    Returns
    -------
    dict from str to dict from str to int
        Counts of each variable's levels. With noise they are approximate, as projected rows count for less.

    Examples
    --------
    >>> from fedcdh.summaries import Categorical, StudyPlan, summarize
    >>> plan = StudyPlan((Categorical("sex", ("f", "m")),), ("north",))
    >>> level_counts(summarize({"sex": ["f", "m", "f"]}, plan, "north"), plan)
    {'sex': {'f': 2, 'm': 1}}
    """
    one = GRID**2 if plan.noise is None else GRID**2 * bounded.INDICATOR_WEIGHT / plan.layout.unit
    rows, spans = [round(sum_ / one) for sum_ in summary.moments[0].tolist()], plan.layout.spans
    return {
        variable.name: dict(zip(variable.levels, rows[spans[variable.name]], strict=True))
        for variable in plan.variables
        if isinstance(variable, Categorical)
    }


def summary_to_csv(summary: Summary, plan: StudyPlan) -> str:
    """Write every sum of a summary as CSV, with the two features whose products it adds up.

    Parameters
    ----------
    summary : Summary
        Summary of one or more clients.
    plan : StudyPlan
        Its plan.

    Returns
    -------
    str
        CSV text with the columns feature, times, sum and sum_as_sent.

    Examples
    --------
    >>> from fedcdh.summaries import Categorical, StudyPlan, summarize
    >>> plan = StudyPlan((Categorical("sex", ("f", "m")),), ("north",))
    >>> summary_to_csv(summarize({"sex": ["f", "m"]}, plan, "north"), plan).splitlines()[1]
    '1,1,2.0,137438953472'
    """
    names = list(_feature_names(plan))
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(("feature", "times", "sum", "sum_as_sent"))
    for i, first in enumerate(names):
        for second, whole in zip(names[i:], summary.moments[i, i:].tolist(), strict=True):
            writer.writerow((escape_cell(first), escape_cell(second), whole / GRID**2, whole))
    return out.getvalue()


def _feature_names(plan: StudyPlan) -> Iterator[str]:
    yield "1"
    for variable in plan.variables:
        if isinstance(variable, Categorical):
            yield from (f"{variable.name} is {level}" for level in variable.levels)
        else:
            yield variable.name
            if plan.noise is not None:
                yield from (f"{variable.name} {power}" for power in ("squared", "cubed")[: plan.noise.degree - 1])
                continue
            yield f"{variable.name} squared"
            yield from (f"{variable.name} feature {number}" for number in range(1, plan.family.width + 1))
