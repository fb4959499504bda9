"""The true effects of a simulated study, from its mechanisms."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from fedcdh._runtime.array_types import Array

EFFECT_ROWS = 1 << 16
"""Rows over which the effect of a nonlinear mechanism is averaged."""


class StructuralModel(Protocol):
    """Mechanisms of which rows can be drawn."""

    def weights(self, client: str) -> Array | None:
        """Return the strengths of all arrows at a client, (from, to); None where functions are not linear."""

    def shifted_table(self, client: str, rows: int, shifted: int, by: float) -> Array:
        """Return rows in which one variable is larger by some number, whatever its causes say."""


@dataclass(frozen=True, eq=False)
class Mechanisms:
    """The mechanisms of a simulated study, in the units of its tables.

    Attributes
    ----------
    model : StructuralModel
        The mechanisms, in the units in which rows are drawn.
    scale : array
        What one unit of each variable in the tables is in these units.

    Examples
    --------
    >>> from fedcdh import simulate
    >>> study = simulate(variables=3, edges=0, clients=2, rows=5, seed=1)
    >>> study.effect("v1", "v2")
    0.0
    """

    model: StructuralModel
    scale: Array

    def rescale(self, scale: Array) -> Mechanisms:
        """Return the mechanisms of tables that were divided by these numbers.

        Parameters
        ----------
        scale : array
            One number for each variable.

        Returns
        -------
        Mechanisms
            The mechanisms.
        """
        return replace(self, scale=self.scale * scale)

    def effect(self, client: str, cause: int, outcome: int) -> float:
        """Return the mean change of an outcome at a client if the cause of every row is one unit larger.

        Parameters
        ----------
        client : str
            The client.
        cause, outcome : int
            Places of the variables.

        Returns
        -------
        float
            The total effect.
        """
        weights = self.model.weights(client)
        if weights is not None:
            paths = np.linalg.inv(np.eye(len(weights)) - weights)
            return float(paths[cause, outcome] * self.scale[cause] / self.scale[outcome])
        before, after = (
            self.model.shifted_table(client, EFFECT_ROWS, cause, by)[:, outcome].mean()
            for by in (0.0, float(self.scale[cause]))
        )
        return float((after - before) / self.scale[outcome])
