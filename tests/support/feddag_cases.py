"""Rows, masks and mechanisms at which the gradients of FedDAG are checked."""

from __future__ import annotations

import numpy as np

from fedcdh.evaluation.baselines import feddag
from fedcdh.evaluation.baselines.feddag_networks import LinearMechanism, NetworkMechanism, WeightsMechanism

KINDS = ("mlp", "linear", "weights")


def mask_of(logits: np.ndarray, noise: np.ndarray | float, temperature: float) -> np.ndarray:
    return feddag._ConcreteMask(temperature).mask(logits, noise)


def rows(seed: int = 0, count: int = 30, variables: int = 4) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((count, variables)) + 0.3


def steepest(function, point: np.ndarray) -> np.ndarray:
    """Central differences."""
    found = np.empty(point.size)
    for i in range(point.size):
        aside = np.zeros(point.size)
        aside[i] = 1e-6
        aside = aside.reshape(point.shape)
        found[i] = (function(point + aside) - function(point - aside)) / 2e-6
    return found.reshape(point.shape)


def mechanism_of(kind: str):
    return {
        "linear": LinearMechanism,
        "weights": WeightsMechanism,
        "mlp": lambda table: NetworkMechanism(table, 3, 5, np.float64),
    }[kind](rows())


def point(mechanism, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Parameters and a mask off the beaten track."""
    draw = np.random.default_rng(seed)
    parameters = mechanism.initial(draw)
    noise = draw.logistic(size=(4, 4))
    return parameters + 0.3 * draw.standard_normal(parameters.shape), mask_of(np.zeros((4, 4)), noise, 1.0)
