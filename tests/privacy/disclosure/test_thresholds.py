"""How many rows and people a message needs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedcdh.privacy.disclosure.thresholds import (
    count_released_numbers,
    information_loads,
    required_cell_count,
    required_rows,
)
from fedcdh.summaries.features import Fourier, Hermite
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.variables import Categorical, Continuous


def free_numbers(plan: StudyPlan, rows: int = 400) -> int:
    """How many of the numbers of a summary bear on continuous values: the rank of how they move with the values."""
    rng = np.random.default_rng(0)
    numbers = [v.name for v in plan.variables if isinstance(v, Continuous)]
    values = rng.standard_normal((rows, len(numbers)))
    spans, labels = plan.layout.spans, {}
    for v in plan.variables:
        if isinstance(v, Categorical):
            labels[v.name] = np.eye(len(v.levels))[rng.integers(0, len(v.levels), rows)]

    def features(values):
        block = np.ones((rows, plan.layout.n_columns))
        for j, name in enumerate(numbers):
            z = values[:, j] / plan.clip
            block[:, spans[name]] = np.column_stack([z, z**2, plan.family(np.arcsinh(values[:, j]))])
        for name, one_hot in labels.items():
            block[:, spans[name]] = one_hot
        return block

    base, upper, step = features(values), np.triu_indices(plan.layout.n_columns), 1e-6
    jacobian = []
    for j in range(len(numbers)):
        moved = values.copy()
        moved[:, j] += step
        slope = (features(moved) - base) / step
        for row in range(rows):
            jacobian.append((np.outer(slope[row], base[row]) + np.outer(base[row], slope[row]))[upper])
    matrix = np.array(jacobian)
    norms = np.linalg.norm(matrix, axis=0)
    scaled = matrix[:, norms > 1e-9] / norms[norms > 1e-9]
    return int(np.linalg.matrix_rank(scaled, tol=1e-5 * np.linalg.norm(scaled, 2)))


@pytest.mark.parametrize(
    ("variables", "free"),
    [
        ((Continuous("x"),), 4 + 10 - 1),
        ((Continuous("x"), Categorical("g", ("a", "b", "c"))), 13 + 4 * 2),
        ((Continuous("x"), Continuous("y"), Categorical("g", ("a", "b"))), 2 * 13 + 16 + 8),
    ],
)
def test_the_count_of_numbers_is_that_of_the_jacobian(variables, free):
    plan = StudyPlan(variables, ("north",), Hermite(2))
    assert free_numbers(plan) <= free
    assert free_numbers(plan) >= 0.7 * free  # a few are nearly dependent, and lost in rounding
    count = sum(isinstance(v, Continuous) for v in variables)
    wide = StudyPlan(tuple(replace(v, name=f"{v.name}{k}") for k in range(12) for v in variables), ("n",), Hermite(2))
    assert required_rows(wide) >= 2 * 12 * free / (12 * count)


def test_required_rows_are_those_of_the_documentation():
    """Six variables of five columns: h(dh + 3) − 2 = 163 from counting (one sum per variable comes twice)."""
    plan = StudyPlan(tuple(Continuous(f"x{k}") for k in range(6)), ("north",), Fourier(3))
    assert required_rows(plan) == 5 * (6 * 5 + 3) - 2
    assert required_rows(StudyPlan((Categorical("g", ("a", "b")),), ("north",))) == 100
    labels = tuple(Categorical(f"g{k}", tuple("abcde")) for k in range(10))
    assert required_rows(StudyPlan(labels, ("north",))) == 152  # 50 columns / 0.33


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 8), st.integers(0, 4), st.integers(2, 20))
def test_more_to_tell_needs_more_rows(numbers, labels, width):
    def plan(numbers, labels, width):
        variables = [Continuous(f"x{k}") for k in range(numbers)] + [Categorical(f"g{k}", "abc") for k in range(labels)]
        return StudyPlan(tuple(variables), ("north",), Hermite(width))

    needed = required_rows(plan(numbers, labels, width))
    assert 100 <= needed <= required_rows(plan(numbers + 1, labels, width))
    assert needed <= required_rows(plan(numbers, labels + 1, width))
    assert needed <= required_rows(plan(numbers, labels, width + 1))
    assert required_cell_count(plan(numbers, labels, width)) == max(8, 2 * (2 + width))
    assert required_cell_count(plan(0, labels + 1, width)) == 8


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 12), st.integers(0, 3), st.integers(1, 4000))
def test_loads_are_the_rule_of_rows_in_another_form(numbers, labels, rows):
    """Up to 1 where there are as many rows as unknowns need; the other parts of the rule are about one message."""
    variables = [Continuous(f"x{k}") for k in range(numbers)] + [
        Categorical(f"g{k}", ("a", "b")) for k in range(labels)
    ]
    plan = StudyPlan(tuple(variables), ("north",))
    load = max(information_loads(plan, rows).values())
    assert (load <= 1) == (rows >= 2 * count_released_numbers(plan) / numbers)
    assert load <= 1 or rows < required_rows(plan)
    assert information_loads(plan, rows, replicates=4)["x0"] == pytest.approx(5 * load)
