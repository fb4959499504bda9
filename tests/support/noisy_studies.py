"""Plans with noise and chains of variables for tests."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fedcdh.privacy.differential.mechanism import (
    add_noise,
)
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.dp_parameters import (
    DPParameters,
)
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.summary import Summary
from fedcdh.summaries.variables import Continuous

CLIENTS = ("east", "north", "south")


USUAL = DPParameters(1, 1e-6)


def bits(seed: int = 0) -> Callable[[int], bytes]:
    return np.random.default_rng(seed).bytes


def a_plan(noise: DPParameters | None = USUAL, names: str = "abc", clients: tuple[str, ...] = CLIENTS) -> StudyPlan:
    return StudyPlan(tuple(Continuous(name) for name in names), clients, clip=6, noise=noise)


def chain(rows: int, seed: int = 0) -> dict[str, np.ndarray]:
    """a → b → c."""
    a, b, c = np.random.default_rng(seed).standard_normal((3, rows))
    b = 0.6 * a + 0.8 * b
    return {"a": a, "b": b, "c": 0.6 * b + 0.8 * c}


def noisy_chains(plan: StudyPlan, rows: int, seed: int = 0) -> list[Summary]:
    draw = bits(seed)
    return [add_noise(summarize(chain(rows, 100 * seed + k), plan, c), plan, draw) for k, c in enumerate(plan.clients)]
