"""How many rows and people a message takes: its numbers about values, counted against the values.

The rules of a site (`policy`) and its ledger (`releasing`) go by these figures; docs/command-line.md has examples.
"""

from __future__ import annotations

import math
from collections.abc import Collection

from fedcdh.summaries.joint import joint_terms
from fedcdh.summaries.joint.request import VariableSet, count_entries
from fedcdh.summaries.plan import POWER_COLUMNS, Categorical, Continuous, StudyPlan

MIN_ROWS = 100
MIN_CELL_COUNT = 8
"""The first number of people that OpenSAFELY lets out; OHDSI's figure is 5, DataSHIELD's 3."""
MAX_COLUMNS_PER_ROW = 0.33
"""DataSHIELD's limit for a matrix of sums of products."""
SAFETY_FACTOR = 2
"""Times the limit at which counting alone no longer rules an attack out."""


def required_rows(plan: StudyPlan, sets: Collection[VariableSet] = ()) -> int:
    """The fewest rows whose summary may leave: max(100, ⌈(p−1)/0.33⌉, ⌈2 F/d⌉).

    Answers about sets of variables (`rounds`) add their columns to p and their numbers to F.

    p−1 columns besides the constant, d continuous variables. F is how many numbers the summary says about their n·d
    unknown values; n > F/d rows are more unknowns than equations, and we ask for twice as many.

    A continuous variable has m columns: m sums, m(m+1)/2 sums of products, but Σ x·x is Σ x²·1: m + m(m+1)/2 − 1. The
    columns of a variable with L levels add up to the constant: L − 1 are free. Pairs of variables add the product of
    their free columns. Sums of labels alone are counts and bear on no continuous value; but labels are not counted
    among the unknowns, either: they are few, and their counts are in the summary.
    """
    columns = plan.columns - 1 + sum(len(joint_terms(plan, names)) for names in sets)
    least = max(MIN_ROWS, math.ceil(columns / MAX_COLUMNS_PER_ROW))
    continuous = sum(isinstance(variable, Continuous) for variable in plan.variables)
    return (
        max(least, math.ceil(SAFETY_FACTOR * count_released_numbers(plan, sets) / continuous)) if continuous else least
    )


def count_released_numbers(plan: StudyPlan, sets: Collection[VariableSet] = ()) -> int:
    """F of `required_rows`: how many numbers a summary, and answers about these sets, say about continuous values."""
    widths = {variable.name: plan.width(variable) for variable in plan.variables}
    numbers = [widths[v.name] for v in plan.variables if isinstance(v, Continuous)]
    labels = sum(widths[v.name] - 1 for v in plan.variables if isinstance(v, Categorical))
    own = sum(m + m * (m + 1) // 2 - 1 for m in numbers)
    pairs = (sum(numbers) ** 2 - sum(m * m for m in numbers)) // 2
    return own + pairs + sum(numbers) * labels + sum(count_entries(plan, names) for names in sets)


def information_loads(plan: StudyPlan, rows: int, *, copies: int = 0) -> dict[str, float]:
    """For every continuous variable, which share of the rows a summary and its copies use up: 2 F/(d n).

    Numbers about one variable are its own, and half of those about it and another, and those about it among the people
    with a label. All variables have as many columns, so each has F/d. Loads up to 1 are what `required_rows` asks for;
    loads of several releases of the same rows add up.
    """
    continuous = [variable.name for variable in plan.variables if isinstance(variable, Continuous)]
    each = SAFETY_FACTOR * count_released_numbers(plan) * (copies + 1) / (len(continuous) * rows) if continuous else 0.0
    return dict.fromkeys(continuous, each)


def joint_information_loads(plan: StudyPlan, rows: int, sets: Collection[VariableSet]) -> dict[str, float]:
    """The same for answers about these sets, whose numbers are about all variables alike."""
    continuous = [variable.name for variable in plan.variables if isinstance(variable, Continuous)]
    told = sum(count_entries(plan, names) for names in sets)
    each = SAFETY_FACTOR * told / (len(continuous) * rows) if continuous else 0.0
    return dict.fromkeys(continuous, each)


def required_cell_count(plan: StudyPlan) -> int:
    """The fewest people who may share a label, or a pair of labels: max(8, 2 m).

    The summary holds, for every label, the sums of a continuous variable's m columns over those who have it: m numbers
    about as many values as there are people, which up to m people can be solved. Without continuous variables, 8.
    """
    continuous = any(isinstance(variable, Continuous) for variable in plan.variables)
    return max(MIN_CELL_COUNT, SAFETY_FACTOR * (POWER_COLUMNS + plan.family.width)) if continuous else MIN_CELL_COUNT
