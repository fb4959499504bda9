"""Small studies on which baselines are known to find a certain graph."""

from __future__ import annotations

import numpy as np

NAMES = ("a", "b", "z", "w")


TRUE = frozenset({("a", "z"), ("b", "z"), ("z", "w")})


def collider(clients: int = 3, rows: int = 400) -> dict[str, np.ndarray]:
    """a → z ← b, z → w; the mean of w differs between clients."""
    tables = {}
    for k in range(clients):
        a, b, e, f = np.random.default_rng([7, k]).standard_normal((4, rows))
        z = a + b + 0.5 * e
        tables[f"c{k}"] = np.column_stack([a, b, z, z + 2 * k + f])
    return tables


CHAIN = ("a", "b", "c", "d")


def chain_tables(rows: tuple[int, ...], seed: int = 5) -> dict[str, np.ndarray]:
    """a → b → c → d, linear and Gaussian, the same at all clients."""
    tables = {}
    for k, count in enumerate(rows):
        noise = np.random.default_rng([seed, k]).standard_normal((4, count))
        columns = [noise[0]]
        for strength, fresh in zip((1.0, -0.8, 1.2), noise[1:], strict=True):
            columns.append(strength * columns[-1] + fresh)
        tables[f"c{k}"] = np.column_stack(columns)
    return tables
