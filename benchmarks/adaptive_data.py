"""Data for the tests with joint features: x ⫫ y | Z where the members of Z act together, are labels, or clients differ.

As in `calibration_data`, x = a_k m(z) + ε_x and y = b_k m(z) + ε_y + dependence · c(ε_x); what is new are the
mechanisms m, labels among Z, and clients k that differ in the distribution of Z and in how strongly, and with which
sign, m acts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedcdh._runtime.array_types import Array
from fedcdh.evaluation.simulation import Function, identity, keyed_generator, name_clients
from fedcdh.protocols import Query

Mechanism = Callable[[Array], Array]

MECHANISMS: Mapping[str, Mechanism] = {
    "linear": lambda z: z.sum(axis=1),
    "sin": lambda z: np.sin(z).sum(axis=1),
    "square": lambda z: (z**2).sum(axis=1),
    "product": lambda z: z.prod(axis=1),
    "sin of sum": lambda z: 1.5 * np.sin(z.sum(axis=1)),
    "z1 sin 2z2": lambda z: z[:, 0] * np.sin(2 * z[:, min(1, z.shape[1] - 1)]),
    "bump": lambda z: 3 * np.exp(-(z**2).sum(axis=1) / 2),
    "distance": lambda z: 2 * np.abs(z[:, 0] - z[:, -1]),
}
LEVELS = np.array(["a", "b", "c"])
_WORTH = np.array([-1.2, 0.1, 1.1])  # what a label counts in a mechanism


@dataclass(frozen=True, eq=False)
class Draw:
    """One table per client, the question asked of it, and all rows as numbers for programs that know no labels."""

    tables: Mapping[str, Mapping[str, Any]]
    query: Query
    numbers: Array  # rows × (x, y, z1, ...)


def adaptive_pair(
    mechanism: str = "product",
    *,
    conditioning: int = 2,
    labels: int = 0,
    differing: bool = False,
    rows: int = 100,
    clients: int = 10,
    seed: int = 0,
    dependence: float = 0.0,
    coupling: Function = identity,
) -> Draw:
    """The first `labels` members of Z are labels of three levels; with `differing`, clients are not alike."""
    names = ("x", "y", *(f"z{i}" for i in range(1, conditioning + 1)))
    tables, numbers = {}, []
    for client in name_clients(clients):
        draw = keyed_generator(seed, "adaptive pair", client)
        noise_x, noise_y, *causes = draw.standard_normal((2 + conditioning, rows))
        z = np.array(causes).T
        strengths = np.ones(2)
        if differing:
            shift, spread = draw.standard_normal((2, conditioning))
            z = 0.7 * shift + np.exp(spread / 4) * z
            strengths = draw.standard_normal(2)
        codes = np.digitize(z[:, :labels], [-0.5, 0.5])
        z[:, :labels] = _WORTH[codes]
        effect = MECHANISMS[mechanism](z)
        x = strengths[0] * effect + noise_x
        y = strengths[1] * effect + noise_y + dependence * coupling(noise_x)
        columns: list[Any] = [x, y, *(LEVELS[codes[:, i]] for i in range(labels)), *z[:, labels:].T]
        tables[client] = dict(zip(names, columns, strict=True))
        numbers.append(np.column_stack([x, y, z]))
    return Draw(tables, Query("x", "y", frozenset(names[2:])), np.concatenate(numbers))
