"""Linear Gaussian models on a DAG, in which effects and asymptotic variances are known without any criterion."""

from __future__ import annotations

import numpy as np

from fedcdh.graphs.partial_graph import PartialGraph


def random_weights(dag: PartialGraph, seed: int) -> np.ndarray:
    """Generic weights, (from, to) in the order of the nodes."""
    rng, number = np.random.default_rng(seed), {name: i for i, name in enumerate(dag.nodes)}
    weights = np.zeros((len(dag.nodes), len(dag.nodes)))
    for tail, head in sorted(dag.arrows):
        weights[number[tail], number[head]] = rng.uniform(0.3, 1.5) * rng.choice([-1.0, 1.0])
    return weights


def total_effects(weights: np.ndarray) -> np.ndarray:
    """The sum over directed paths of the products of their weights, (cause, outcome)."""
    return np.linalg.inv(np.eye(len(weights)) - weights)


def covariance(weights: np.ndarray, seed: int) -> np.ndarray:
    """The covariance of the variables, with noise of random size."""
    noise = np.random.default_rng([seed, 1]).uniform(0.5, 2.0, len(weights))
    paths = total_effects(weights)
    return np.asarray(paths.T @ np.diag(noise) @ paths)


def regress(found: np.ndarray, outcome: int, on: list[int]) -> np.ndarray:
    """The coefficients of a regression in the population."""
    return np.linalg.solve(found[np.ix_(on, on)], found[on, outcome])


def asymptotic_variance(found: np.ndarray, cause: int, outcome: int, given: list[int]) -> float:
    """The variance of the coefficient of the cause times the rows: that of the residuals of both regressions."""
    outcome_left = found[outcome, outcome] - regress(found, outcome, [cause, *given]) @ found[[cause, *given], outcome]
    cause_left = found[cause, cause] - (regress(found, cause, given) @ found[given, cause] if given else 0.0)
    return float(outcome_left / cause_left)
