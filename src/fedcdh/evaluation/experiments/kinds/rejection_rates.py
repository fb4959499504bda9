"""Rejection rates of independence tests on post-nonlinear data, as in the paper's comparison of its test with KCI.

X = g(f(W) + ε_X), Y = g(f(W) + ε_Y), with f and g from {linear, square, sin, tan}, and all noise, W and Z uniform on
(−0.5, 0.5) or standard normal. "dependent" tests X ⫫ Y | Z with an unrelated Z, which is false: rejections are power.
"independent" tests it for a common cause Z, X = g(f(Z) + ε_X) and Y likewise, where it is true: rejections are errors
of the first kind, which the paper does not show. The rows are spread evenly over the clients.

Parameters: hypothesis, rows (in total), clients, simulations (per seed).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from fedcdh._runtime.array_types import Array
from fedcdh._runtime.optional_imports import optional_import
from fedcdh.data.table import to_table
from fedcdh.errors import SettingsError
from fedcdh.evaluation.baselines.characteristic_test import characteristic_p_value
from fedcdh.evaluation.experiments.definition import ExperimentCase
from fedcdh.evaluation.experiments.kinds.single_step import SingleStepKind
from fedcdh.evaluation.simulation import keyed_generator, name_clients
from fedcdh.inference.independence.kernel_test import KernelTest
from fedcdh.inference.independence.regression_test import RegressionTest
from fedcdh.inference.orthonormal_basis import Basis
from fedcdh.protocols import DOMAIN, Query
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.aggregation import Cohort, add_up
from fedcdh.summaries.features import FeatureFamily, Fourier, Hermite
from fedcdh.summaries.plan import StudyPlan

ALPHA = 0.05
POST_NONLINEAR_FUNCTIONS: tuple[Callable[[Array], Array], ...] = (lambda x: x, np.square, np.sin, np.tan)
VARIABLE_NAMES = ("x", "y", "z")


class RejectionRate(SingleStepKind):
    """The share of simulations whose p-value is below 0.05."""

    measures = ("rejected",)

    def prepare_method(self, name: str) -> None:
        if name not in COMPARED_TESTS:
            raise SettingsError(
                f"found no test {name!r}; expected one of {', '.join(COMPARED_TESTS)}; choose one of these"
            )
        COMPARED_TESTS[name](np.random.default_rng(0).standard_normal((30, 3)), 2, 0)

    def prepare_instance(self, case: ExperimentCase, seed: int) -> list[Array]:
        return [_draw_sample(case, seed, number) for number in range(case["simulations"])]

    def measure(
        self, prepared: list[Array], case: ExperimentCase, name: str, seed: int, fitted: None = None
    ) -> dict[str, Any]:
        p_values = [COMPARED_TESTS[name](table, case["clients"], seed) for table in prepared]
        return {"rejected": float(np.mean(np.array(p_values) < ALPHA))}

    def failure_measures(self, prepared: list[Array]) -> dict[str, Any]:
        return {"rejected": None}


def _draw_sample(case: ExperimentCase, seed: int, number: int) -> Array:
    """Draw the columns x, y and z."""
    draw = keyed_generator(seed, "post-nonlinear", str(number))
    f, g = (POST_NONLINEAR_FUNCTIONS[i] for i in draw.integers(len(POST_NONLINEAR_FUNCTIONS), size=2))
    w, z, noise_x, noise_y = _draw_sources(draw, case["rows"])
    cause = {"dependent": w, "independent": z}[case["hypothesis"]]
    return np.column_stack([g(f(cause) + noise_x), g(f(cause) + noise_y), z])


def _draw_sources(draw: np.random.Generator, rows: int) -> Iterator[Array]:
    for _ in range(4):
        yield draw.uniform(-0.5, 0.5, rows) if draw.integers(2) else draw.standard_normal(rows)


def _pool_table(table: Array, clients: int, family: FeatureFamily) -> Cohort:
    parts = {
        client: to_table(part, VARIABLE_NAMES)
        for client, part in zip(name_clients(clients), np.array_split(table, clients), strict=True)
    }
    plan = StudyPlan.from_tables(parts, family=family)
    return add_up((summarize(part, plan, client) for client, part in parts.items()), plan)


def _regression_p_value(table: Array, clients: int, seed: int) -> float:
    """Return the p-value of the test of `constraint`, asked as that method asks it: within clients."""
    return _ask_test(RegressionTest(Basis.of(_pool_table(table, clients, Hermite()))), ("z", DOMAIN))


def _kernel_p_value(table: Array, clients: int, seed: int) -> float:
    """Return the p-value of the paper's test, with h = 5."""
    return _ask_test(KernelTest.of_paper(_pool_table(table, clients, Fourier(5, seed=seed)), seed=seed), ("z",))


def _characteristic_p_value(table: Array, clients: int, seed: int) -> float:
    """Return the p-value of the test by characteristic functions of residuals, with permutations inside clients."""
    parts = np.array_split(table, clients)
    return characteristic_p_value([(part[:, 0], part[:, 1], part[:, 2:]) for part in parts], seed)


def _ask_test(test: Any, given: Sequence[str]) -> float:
    (answer,) = test([Query("x", "y", frozenset(given))])
    return float(answer.p_value)


def _causal_learn_test(name: str) -> Callable[[Array, int, int], float]:
    def p_value(table: Array, clients: int, seed: int) -> float:
        with optional_import("causal-learn", extra="experiments"):
            from causallearn.utils.cit import CIT
        np.random.seed(seed)  # noqa: NPY002 (it draws from there and takes no generator)
        return float(CIT(table, name)(0, 1, [2]))

    return p_value


COMPARED_TESTS: dict[str, Callable[[Array, int, int], float]] = {
    "fedcdh-constraint": _regression_p_value,
    "fedcdh-paper": _kernel_p_value,
    "cf-residual": _characteristic_p_value,
    "kci": _causal_learn_test("kci"),
    "rcit": _causal_learn_test("rcit"),
    "fisherz": _causal_learn_test("fisherz"),
}
REJECTION_RATE = RejectionRate()
