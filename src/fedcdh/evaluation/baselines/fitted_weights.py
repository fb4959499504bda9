"""Weights of arrows before a threshold: methods that differ only by their threshold share one fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fedcdh._runtime.array_types import Array
from fedcdh.evaluation.baselines.interface import BaselineResult, Traffic, dag_of_weights


@dataclass(frozen=True, eq=False)
class FittedWeights:
    """The weights that a method fitted, with weights[i, j] for the arrow from i to j, and what it sent to fit them."""

    weights: Array
    traffic: Traffic

    def apply_threshold(self, names: Sequence[str], threshold: float) -> BaselineResult:
        """Return the arrows with a weight above the threshold.

        >>> import numpy as np
        >>> fitted = FittedWeights(np.array([[0, 0.2], [0, 0]]), Traffic())
        >>> [len(fitted.apply_threshold(("x", "y"), threshold).directed) for threshold in (0.1, 0.3)]
        [1, 0]
        """
        return BaselineResult(dag_of_weights(self.weights, names, threshold), self.traffic)
