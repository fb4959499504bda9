"""The mechanisms of FedDAG: every variable is predicted from all others, each of which passes a mask first.

A mechanism holds the rows of one client. For given parameters and a mask it returns the loss, half the mean squared
error summed over variables, and its gradients. Parameters are one flat vector, so that they can be averaged and sent
without knowing what they mean. `mask[i, j]` is the share of variable i that the prediction of variable j sees; its
diagonal has to be 0.
"""

from __future__ import annotations

from itertools import pairwise
from math import prod
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from fedcdh._runtime.array_types import Array

_LEAKY_SLOPE = 0.05  # slope of a rectifier below 0


class MechanismGradient(NamedTuple):
    """The loss at a point, and its gradients with respect to the parameters and to the mask."""

    loss: float
    parameters: npt.NDArray[Any]
    mask: Array


class MaskedMechanism(Protocol):
    """The predictor of all variables at one client."""

    def initial(self, generator: np.random.Generator) -> npt.NDArray[Any]: ...

    def slopes(self, parameters: npt.NDArray[Any], mask: Array) -> MechanismGradient: ...


class LinearMechanism:
    """Predict x_j from Σ_i mask_ij w_ij x_i, with rows centred at their client in place of an intercept.

    Second moments are all that is needed of the rows, so a step costs the same for any number of rows.
    """

    def __init__(self, rows: Array) -> None:
        self._variables = rows.shape[1]
        centred = rows - rows.mean(axis=0)
        self._moments = centred.T @ centred / len(rows)

    def initial(self, generator: np.random.Generator) -> Array:
        """Return zeros: nothing is predicted from anything yet, and nothing is random."""
        return np.zeros(self._variables**2)

    def slopes(self, parameters: Array, mask: Array) -> MechanismGradient:
        strengths = parameters.reshape(mask.shape)
        left = np.identity(len(mask)) - mask * strengths
        steepest = self._moments @ left
        return MechanismGradient(
            0.5 * float(np.vdot(left, steepest)), -(steepest * mask).ravel(), -steepest * strengths
        )


class WeightsMechanism(LinearMechanism):
    """Predict x_j from Σ_i mask_ij x_i, without parameters other than the mask."""

    def initial(self, generator: np.random.Generator) -> Array:
        return np.zeros(0)

    def slopes(self, parameters: Array, mask: Array) -> MechanismGradient:
        loss, _, steepest = super().slopes(np.ones(mask.size), mask)
        return MechanismGradient(loss, parameters, steepest)


class NetworkMechanism:
    """Predict each x_j by its own network: layers of leaky rectifiers on the masked variables, and a linear output.

    The networks of all variables are computed side by side, as stacks of matrices. Single precision, the default and
    what the method's authors use, takes half the time of double.
    """

    def __init__(self, rows: Array, layers: int, width: int, precision: npt.DTypeLike = np.float32) -> None:
        self._inputs = np.ascontiguousarray(rows.T, dtype=precision)
        widths = (rows.shape[1], *[width] * layers, 1)
        self._shapes = [(rows.shape[1], after, before) for before, after in pairwise(widths)]

    def initial(self, generator: np.random.Generator) -> npt.NDArray[Any]:
        """Draw weights by Glorot's rule, uniformly within ±√(6 / (inputs + outputs)); offsets are 0."""
        parts = []
        for shape in self._shapes:
            bound = np.sqrt(6 / (shape[1] + shape[2]))
            parts += [generator.uniform(-bound, bound, shape).ravel(), np.zeros(shape[0] * shape[1])]
        return np.concatenate(parts).astype(self._inputs.dtype)

    def slopes(self, parameters: npt.NDArray[Any], mask: Array) -> MechanismGradient:
        shown = np.ascontiguousarray(mask.T, dtype=self._inputs.dtype)[:, None, :]  # networks × 1 × inputs
        layers = self._layers(parameters)
        weights = [layers[0][0] * shown, *(weight for weight, _ in layers[1:])]
        values, rectified = self._forward(weights, [offset for _, offset in layers])
        off = values.pop()[:, 0] - self._inputs
        count = off.shape[1]
        gradient = np.empty_like(parameters)
        into = self._layers(gradient)
        down, ones = (off / count)[:, None, :], np.ones((count, 1), dtype=off.dtype)
        for at in range(len(layers) - 1, 0, -1):
            np.matmul(down, values[at].swapaxes(1, 2), out=into[at][0])
            np.matmul(down, ones, out=into[at][1])
            down = weights[at].swapaxes(1, 2) @ down
            down *= rectified[at - 1]
        np.matmul(down, ones, out=into[0][1])
        first = (down.reshape(-1, count) @ self._inputs.T).reshape(weights[0].shape)
        np.multiply(first, shown, out=into[0][0])
        seen = np.einsum("jhi,jhi->ij", first, layers[0][0])
        return MechanismGradient(0.5 * float(np.vdot(off, off)) / count, gradient, seen.astype(np.float64))

    def _forward(
        self, weights: list[npt.NDArray[Any]], offsets: list[npt.NDArray[Any]]
    ) -> tuple[list[npt.NDArray[Any]], list[npt.NDArray[Any]]]:
        """Return what enters every layer, then the output, and the slopes of the rectifiers."""
        values, rectified = [self._inputs], []
        for at, (weight, offset) in enumerate(zip(weights, offsets, strict=True)):
            if at:
                after = weight @ values[-1]
            else:  # all networks have the same inputs: one product
                after = (weight.reshape(-1, weight.shape[2]) @ self._inputs).reshape(*weight.shape[:2], -1)
            after += offset
            if at < len(weights) - 1:
                slope = (after > 0).astype(after.dtype)
                slope *= 1 - _LEAKY_SLOPE
                slope += _LEAKY_SLOPE
                after *= slope
                rectified.append(slope)
            values.append(after)
        return values, rectified

    def _layers(self, parameters: npt.NDArray[Any]) -> list[tuple[npt.NDArray[Any], npt.NDArray[Any]]]:
        """Return the weights and offsets of every layer, as views into the flat vector."""
        found, start = [], 0
        for shape in self._shapes:
            middle = start + prod(shape)
            end = middle + shape[0] * shape[1]
            found.append((parameters[start:middle].reshape(shape), parameters[middle:end].reshape(*shape[:2], 1)))
            start = end
        return found
