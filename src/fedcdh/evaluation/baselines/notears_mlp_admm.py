"""NOTEARS-MLP-ADMM: the nonlinear method of Ng & Zhang (2022), with the rounds of `admm`.

Every variable has a small network that predicts it from all variables: one layer of sigmoids, one linear sum. The
weight of i → j is the length of what the first layer of j's network takes from i; these weights have to be a DAG.
All parameters of all networks go back and forth in every round.

First penalty 0.1, l1 = 0.001, ten hidden units, at most 200 rounds, threshold 0.3 and initial weights are those of the
authors' program; FedCDH's authors set the threshold to 0.1. As in the program, columns are neither centred nor scaled.
Two properties matter. At the start an arrow weighs about √(hidden / 3 variables), 0.75 for six variables. Before the
growing penalties freeze it, l1 takes at most 50 · l1 / clients off each of its parameters. Arrows that no network needs
may therefore keep their initial weight, well above the threshold where variables are few, and their direction depends
on the seed.

This module differs from the program in two points:

- The program's l1 term is the sum of the first layer's weights, not of their absolute values (a slip: the code it comes
  from has only weights ≥ 0 there), and so rewards large negative weights. Here it is that of their absolute values.
  Its l2 = 0.01 is declared but never used; here there is none.
- The other deviations are those of `notears_admm`: unequal clients, the end of the rounds, cycles.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy import optimize, special

from fedcdh._runtime.array_types import Array
from fedcdh.evaluation.baselines.admm import (
    AdmmClient,
    AdmmServer,
    acyclicity_of_strengths,
    count_all_rows,
    penalty_schedule,
    run_rounds,
)
from fedcdh.evaluation.baselines.fitted_weights import FittedWeights
from fedcdh.evaluation.baselines.interface import BaselineResult, CountingChannel
from fedcdh.evaluation.simulation import keyed_generator

_INITIAL_PENALTY = 0.1


def run_notears_mlp_admm(
    tables: Mapping[str, Array],
    names: Sequence[str],
    seed: int = 0,
    *,
    threshold: float = 0.3,
    hidden: int = 10,
    l1: float = 0.001,
    rounds: int = 200,
) -> BaselineResult:
    """Return the arrows with a weight above the threshold; `seed` draws the networks the search starts from.

    >>> draw = np.random.default_rng(0)
    >>> dose, noise = draw.normal(size=(2, 200)), draw.normal(size=(2, 200))
    >>> effect = 6 * special.expit(4 * dose) + noise / 2
    >>> tables = {client: np.column_stack([dose[k], effect[k]]) for k, client in enumerate(("north", "south"))}
    >>> print(run_notears_mlp_admm(tables, ("dose", "effect"), hidden=4).graph)
    dose → effect
    """
    fitted = fit_notears_mlp_admm(tables, names, seed, hidden=hidden, l1=l1, rounds=rounds)
    return fitted.apply_threshold(names, threshold)


def fit_notears_mlp_admm(
    tables: Mapping[str, Array],
    names: Sequence[str],
    seed: int = 0,
    *,
    hidden: int = 10,
    l1: float = 0.001,
    rounds: int = 200,
) -> FittedWeights:
    """Return the weights before the threshold."""
    channel = CountingChannel(len(tables))
    weights = fit_shared_weights(tables, channel, seed, hidden, l1, rounds)
    return FittedWeights(weights, channel.traffic)


def fit_shared_weights(
    tables: Mapping[str, Array], channel: CountingChannel, seed: int, hidden: int, l1: float, rounds: int
) -> Array:
    """Return the length of what j's network takes from i after all rounds, at [i, j]."""
    networks = NetworkLayout(next(iter(tables.values())).shape[1], hidden)
    total = count_all_rows(tables, channel)
    starts = {name: networks.draw_parameters(keyed_generator(seed, "client", name)) for name in sorted(tables)}
    clients = [_NetworkClient(tables[name], total, networks, start) for name, start in starts.items()]
    server = AdmmServer(
        networks.draw_parameters(keyed_generator(seed, "server")), networks.weights, l1, networks.acyclicity
    )
    shared = run_rounds(clients, server, channel, penalty_schedule(_INITIAL_PENALTY, rounds))
    return np.sqrt(networks.strengths(shared[: networks.weights]))


class NetworkLayout(NamedTuple):
    """One network per variable, with all parameters in one flat array.

    The array has the first layer, its offsets, the second layer and its offsets. The first layer has an entry for every
    network j, unit m and input i, in this order.
    """

    variables: int
    hidden: int

    @property
    def units(self) -> int:
        return self.variables * self.hidden

    @property
    def weights(self) -> int:
        """Return the number of parameters of the first layer, which come first."""
        return self.units * self.variables

    @property
    def size(self) -> int:
        return self.weights + 2 * self.units + self.variables

    def draw_parameters(self, generator: np.random.Generator) -> Array:
        """Draw parameters uniformly within ±1/√inputs of each layer."""
        spread = np.full(self.size, self.hidden**-0.5)
        spread[: self.weights + self.units] = self.variables**-0.5
        return spread * generator.uniform(-1, 1, self.size)

    def loss(self, parameters: Array, rows: Array, total: int) -> tuple[float, Array]:
        """Return half the squared errors of all networks over the number of all clients' rows, and the gradient."""
        first, offsets, second, level = np.split(
            parameters, [self.weights, self.weights + self.units, self.weights + 2 * self.units]
        )
        shape = (len(rows), self.variables, self.hidden)
        second = second.reshape(shape[1:])
        lit = special.expit(rows @ first.reshape(self.units, -1).T + offsets).reshape(shape)
        errors = np.einsum("njm,jm->nj", lit, second) + level - rows
        slope = errors / total
        inner = (slope[:, :, None] * second * lit * (1 - lit)).reshape(len(rows), -1)
        gradient = (inner.T @ rows, inner.sum(axis=0), np.einsum("njm,nj->jm", lit, slope), slope.sum(axis=0))
        return float((errors * errors).sum()) / (2 * total), np.concatenate([part.ravel() for part in gradient])

    def strengths(self, first: Array) -> Array:
        """Return the squared length of what network j takes from i, at [i, j]."""
        return np.asarray((self._of_first(first) ** 2).sum(axis=1).T)

    def acyclicity(self, first: Array) -> tuple[float, Array]:
        """Return h of the strengths, and its gradient."""
        value, slope = acyclicity_of_strengths(self.strengths(first))
        return value, (2 * slope.T[:, None, :] * self._of_first(first)).ravel()

    def _of_first(self, first: Array) -> Array:
        return first.reshape(self.variables, self.hidden, self.variables)


class _NetworkClient(AdmmClient):
    """Fit all networks to the rows of one client by L-BFGS-B."""

    def __init__(self, rows: Array, total: int, networks: NetworkLayout, start: Array) -> None:
        super().__init__(start)
        self._rows, self._total, self._networks = rows, total, networks

    def proximal_step(self, target: Array, penalty: float, start: Array) -> Array:
        def cost(parameters: Array) -> tuple[float, Array]:
            loss, slope = self._networks.loss(parameters, self._rows, self._total)
            off = parameters - target
            return loss + penalty / 2 * float(off @ off), slope + penalty * off

        return np.asarray(optimize.minimize(cost, start, jac=True, method="L-BFGS-B").x)
