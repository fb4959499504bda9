"""How often tests reject: post-nonlinear data, as in the paper's comparison of its test with KCI.

X = g(f(W) + ε_X), Y = g(f(W) + ε_Y), with f and g from {linear, square, sin, tan}, and all noise, W and Z uniform on
(−0.5, 0.5) or standard normal. "dependent" asks whether X ⫫ Y | Z with Z a bystander, which is false: rejections are
power. "independent" asks it of a common cause Z, X = g(f(Z) + ε_X) and Y likewise, where it is true: rejections are
errors of the first kind, which the paper does not show. The rows are spread evenly over the clients.

Parameters: hypothesis, rows (in total), clients, simulations (per seed).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from fedcdh._runtime.optional_imports import needing
from fedcdh.data.table import as_table
from fedcdh.errors import SettingsError
from fedcdh.evaluation.experiments.definition import Case
from fedcdh.evaluation.simulation import Array, client_names, generator
from fedcdh.inference.independence.kernel_test import KernelTest
from fedcdh.inference.independence.regression_test import RegressionTest
from fedcdh.inference.orthonormal_basis import Basis
from fedcdh.protocols import DOMAIN, Question
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.aggregation import Cohort, add_up
from fedcdh.summaries.features import FeatureFamily, Fourier, Hermite
from fedcdh.summaries.plan import StudyPlan

ALPHA = 0.05
FUNCTIONS: tuple[Callable[[Array], Array], ...] = (lambda x: x, np.square, np.sin, np.tan)
NAMES = ("x", "y", "z")


class Rejections:
    """The share of simulations whose p-value is below 0.05."""

    measures = ("rejected",)

    def ready(self, name: str) -> None:
        if name not in TESTS:
            raise SettingsError(f"there is no test {name!r}; choose one of {', '.join(TESTS)}")
        TESTS[name](np.random.default_rng(0).standard_normal((30, 3)), 2, 0)

    def prepare(self, case: Case, seed: int) -> list[Array]:
        return [_drawn(case, seed, number) for number in range(case["simulations"])]

    def measure(self, prepared: list[Array], case: Case, name: str, seed: int) -> dict[str, Any]:
        p_values = [TESTS[name](table, case["clients"], seed) for table in prepared]
        return {"rejected": float(np.mean(np.array(p_values) < ALPHA))}

    def failed(self, prepared: list[Array]) -> dict[str, Any]:
        return {"rejected": None}


def _drawn(case: Case, seed: int, number: int) -> Array:
    """Columns x, y, z."""
    draw = generator(seed, "post-nonlinear", str(number))
    f, g = (FUNCTIONS[i] for i in draw.integers(len(FUNCTIONS), size=2))
    w, z, noise_x, noise_y = _sources(draw, case["rows"])
    cause = {"dependent": w, "independent": z}[case["hypothesis"]]
    return np.column_stack([g(f(cause) + noise_x), g(f(cause) + noise_y), z])


def _sources(draw: np.random.Generator, rows: int) -> Iterator[Array]:
    for _ in range(4):
        yield draw.uniform(-0.5, 0.5, rows) if draw.integers(2) else draw.standard_normal(rows)


def _cohort(table: Array, clients: int, family: FeatureFamily) -> Cohort:
    parts = {
        client: as_table(part, NAMES)
        for client, part in zip(client_names(clients), np.array_split(table, clients), strict=True)
    }
    plan = StudyPlan.from_tables(parts, family=family)
    return add_up((summarize(part, plan, client) for client, part in parts.items()), plan)


def _default(table: Array, clients: int, seed: int) -> float:
    """The test of `constraint`, as that engine asks it: within clients."""
    return _asked(RegressionTest(Basis.of(_cohort(table, clients, Hermite()))), ("z", DOMAIN))


def _paper(table: Array, clients: int, seed: int) -> float:
    """The paper's, with h = 5."""
    return _asked(KernelTest.of_paper(_cohort(table, clients, Fourier(5, seed=seed)), seed=seed), ("z",))


def _asked(test: Any, given: Sequence[str]) -> float:
    (answer,) = test([Question("x", "y", frozenset(given))])
    return float(answer.p_value)


def _causal_learn(name: str) -> Callable[[Array, int, int], float]:
    def p_value(table: Array, clients: int, seed: int) -> float:
        with needing("causal-learn", extra="peers"):
            from causallearn.utils.cit import CIT
        np.random.seed(seed)  # noqa: NPY002 (it draws from there and takes no generator)
        return float(CIT(table, name)(0, 1, [2]))

    return p_value


TESTS: dict[str, Callable[[Array, int, int], float]] = {
    "fedcdh-constraint": _default,
    "fedcdh-paper": _paper,
    "kci": _causal_learn("kci"),
    "rcit": _causal_learn("rcit"),
    "fisherz": _causal_learn("fisherz"),
}
REJECTIONS = Rejections()
