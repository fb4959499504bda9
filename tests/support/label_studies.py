"""Small studies of labels whose graph is known."""

from __future__ import annotations

import numpy as np

CHAIN = ("a", "b", "c", "d")


def label_chain(rows: tuple[int, ...], seed: int = 5) -> dict[str, np.ndarray]:
    """a → b → c → d with 3, 2, 3 and 4 levels, the same at all clients: a level is passed on, or drawn afresh."""
    tables = {}
    for k, count in enumerate(rows):
        draw = np.random.default_rng([seed, k])
        columns = [draw.choice(3, count, p=(0.5, 0.3, 0.2))]
        for levels in (2, 3, 4):
            fresh = draw.choice(levels, count, p=np.arange(1, levels + 1) / (levels * (levels + 1) / 2))
            columns.append(np.where(draw.random(count) < 0.6, columns[-1] % levels, fresh))
        tables[f"c{k}"] = np.column_stack(columns).astype(float)
    return tables


def random_labels(seed: int, clients: int = 3, rows: int = 90, variables: int = 5) -> dict[str, np.ndarray]:
    """Every variable mixes two before it and noise, differently at each client; levels are not consecutive."""
    tables = {}
    structure = np.random.default_rng([seed, 99])
    causes = [structure.choice(place, min(place, 2), replace=False) for place in range(variables)]
    levels = structure.integers(2, 4, variables)
    for k in range(clients):
        draw = np.random.default_rng([seed, k])
        table = np.zeros((rows + 7 * k, variables), dtype=int)
        for place in range(variables):
            noise = draw.integers(0, levels[place], len(table))
            strong = draw.random(len(table)) < 0.7
            mixed = table[:, causes[place]].sum(axis=1) if len(causes[place]) else noise
            table[:, place] = np.where(strong, mixed, noise) % levels[place]
        tables[f"c{k}"] = 2.0 * table + 1
    return tables
