"""Thresholds: how many rows and people a message needs, by counting its numbers against the values they are about.

The policy of a site (`policy`) and its ledger use these limits; docs/command-line.md has examples.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass

from fedcdh.summaries.feature_layout import POWER_COLUMNS
from fedcdh.summaries.joint import joint_terms
from fedcdh.summaries.joint.request import VariableSet, count_entries
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.variables import Categorical, Continuous

MIN_ROWS = 100
MIN_CELL_COUNT = 8
"""The smallest count that OpenSAFELY releases; OHDSI uses 5, DataSHIELD 3."""
MIN_PAIR_COUNT = 8
"""Smallest number of people with two levels that is sent exactly, by that convention: nothing else is sent of them."""
MAX_COLUMNS_PER_ROW = 0.33
"""DataSHIELD's limit for a matrix of sums of products."""
SAFETY_FACTOR = 2
"""Multiple of the number of rows at which counting equations alone no longer rules out an attack."""


@dataclass(frozen=True)
class DifferencingLimits:
    """Limits of a policy for a release beside earlier ones.

    Parameters
    ----------
    rows : int
        If any rows changed, at least this many.
    cell_count : int
        If any people with a level changed, at least this many.
    profile_rows : int
        If a profile covers any rows that a summary or another profile does not, at least this many.
    strictness : float, default 1.0
        How many times more rows the policy demands than the plan needs.
    """

    rows: int
    cell_count: int
    profile_rows: int
    strictness: float = 1.0


def required_rows(plan: StudyPlan, sets: Collection[VariableSet] = (), sums: int = 0) -> int:
    """Return the smallest number of rows whose summary may leave: max(100, ⌈(p−1)/0.33⌉, ⌈2 F/d⌉).

    Parameters
    ----------
    plan : StudyPlan
        The plan of the summary.
    sets : collection of tuple of str, optional
        Sets of variables that were answered in adaptive rounds. They add their columns to p and their numbers to F.
    sums : int, default 0
        Number of sums of residuals that were answered. They add to F.

    Returns
    -------
    int
        Number of rows.

    Notes
    -----
    There are p−1 columns besides the constant and d continuous variables. F counts the numbers that the summary holds
    about their n·d unknown values. With n > F/d rows there are more unknowns than equations; twice as many are
    required.

    A continuous variable has m columns: m sums and m(m+1)/2 sums of products, but Σ x·x is Σ x²·1, so
    m + m(m+1)/2 − 1 numbers. The columns of a variable with L levels add up to the constant, so L − 1 are free. Pairs
    of variables add the product of their free columns. Sums over levels alone are counts and do not concern continuous
    values; in turn, levels do not count among the unknowns.

    Examples
    --------
    >>> required_rows(StudyPlan((Continuous("age"),), ("north",)))
    100
    """
    columns = plan.layout.n_columns - 1 + sum(len(joint_terms(plan, names)) for names in sets)
    minimum = max(MIN_ROWS, math.ceil(columns / MAX_COLUMNS_PER_ROW))
    continuous = sum(isinstance(variable, Continuous) for variable in plan.variables)
    if not continuous:
        return minimum
    return max(minimum, math.ceil(SAFETY_FACTOR * count_released_numbers(plan, sets, sums) / continuous))


def count_released_numbers(plan: StudyPlan, sets: Collection[VariableSet] = (), sums: int = 0) -> int:
    """Return F of `required_rows`: the count of released numbers about continuous values.

    Parameters
    ----------
    plan : StudyPlan
        The plan of the summary.
    sets : collection of tuple of str, optional
        Sets of variables that were answered in adaptive rounds.
    sums : int, default 0
        Number of sums of residuals that were answered.

    Returns
    -------
    int
        Count of numbers in the summary and these answers.

    Examples
    --------
    >>> plan = StudyPlan((Categorical("sex", ("f", "m")),), ("north",))
    >>> count_released_numbers(plan)
    0
    """
    widths = {variable.name: plan.layout.width(variable.name) for variable in plan.variables}
    continuous = [widths[v.name] for v in plan.variables if isinstance(v, Continuous)]
    free_levels = sum(widths[v.name] - 1 for v in plan.variables if isinstance(v, Categorical))
    own = sum(m + m * (m + 1) // 2 - 1 for m in continuous)
    pairs = (sum(continuous) ** 2 - sum(m * m for m in continuous)) // 2
    return own + pairs + sum(continuous) * free_levels + sum(count_entries(plan, names) for names in sets) + sums


def count_numbers_about(plan: StudyPlan, name: str) -> int:
    """Return how many numbers of a summary are about a continuous variable: its own, and those with all others.

    Parameters
    ----------
    plan : StudyPlan
        The plan of the summary.
    name : str
        A continuous variable of the plan.

    Returns
    -------
    int
        Count of numbers.

    Examples
    --------
    >>> count_numbers_about(StudyPlan((Continuous("age"), Continuous("bmi")), ("north",)), "age")
    62
    """
    free = {v.name: plan.layout.width(v.name) - isinstance(v, Categorical) for v in plan.variables}
    width = free[name]
    return width + width * (width + 1) // 2 - 1 + width * (sum(free.values()) - width)


def information_loads(plan: StudyPlan, rows: int, *, replicates: int = 0) -> dict[str, float]:
    """Return the load of every continuous variable: the share 2 F/(d n) of the rows that a summary uses up.

    The numbers about one variable are its own, half of those about it and another variable, and those about it within
    each level. All variables have equally many columns, so each has F/d. `required_rows` demands a load of at most 1.
    Loads of several releases of the same rows add up.

    Parameters
    ----------
    plan : StudyPlan
        The plan of the summary.
    rows : int
        Number of rows.
    replicates : int, default 0
        Number of bootstrap replicates that leave with the summary.

    Returns
    -------
    dict from str to float
        Load of every continuous variable.

    Examples
    --------
    >>> plan = StudyPlan((Continuous("age"), Continuous("bmi")), ("north",))
    >>> loads = information_loads(plan, required_rows(plan))
    >>> max(loads.values()) <= 1
    True
    """
    return answer_loads(plan, rows, count_released_numbers(plan) * (replicates + 1))


def answer_loads(plan: StudyPlan, rows: int, numbers: int) -> dict[str, float]:
    """Return the loads of an answer in a further round, whose numbers count for all variables alike.

    Parameters
    ----------
    plan : StudyPlan
        The plan of the answers.
    rows : int
        Number of rows.
    numbers : int
        Number of entries of the answer.

    Returns
    -------
    dict from str to float
        Load of every continuous variable.
    """
    continuous = [variable.name for variable in plan.variables if isinstance(variable, Continuous)]
    load = SAFETY_FACTOR * numbers / (len(continuous) * rows) if continuous else 0.0
    return dict.fromkeys(continuous, load)


def required_cell_count(plan: StudyPlan) -> int:
    """Return the minimum cell count: the fewest people who may share a level, max(8, 2 m).

    For every level, the summary holds the sums of a continuous variable's m columns over the people who have it: m
    numbers, which can be solved for up to m people. Without continuous variables the minimum is 8.

    Parameters
    ----------
    plan : StudyPlan
        The plan of the summary.

    Returns
    -------
    int
        Number of people.

    Examples
    --------
    >>> required_cell_count(StudyPlan((Categorical("sex", ("f", "m")),), ("north",)))
    8
    """
    if not any(isinstance(variable, Continuous) for variable in plan.variables):
        return MIN_CELL_COUNT
    return max(MIN_CELL_COUNT, SAFETY_FACTOR * (POWER_COLUMNS + plan.family.width))
