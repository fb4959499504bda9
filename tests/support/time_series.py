"""Tables whose rows depend on the rows before them."""

from __future__ import annotations

import numpy as np


def series(rng: np.random.Generator, rows: int, rho: float) -> np.ndarray:
    """Return a stationary autoregressive series with autocorrelations ρ, ρ², ..."""
    noise = rng.normal(size=rows)
    found = noise.copy()
    for row in range(1, rows):
        found[row] = rho * found[row - 1] + np.sqrt(1 - rho**2) * noise[row]
    return found


def unrelated(seed: int, *, clients: int = 5, rows: int = 200, rho: float = 0.8, count: int = 4) -> dict[str, dict]:
    """Return tables of series that have nothing to do with each other, the same at all clients."""
    rng = np.random.default_rng([seed, 77])
    return {f"c{k}": {f"v{j}": series(rng, rows, rho) for j in range(count)} for k in range(clients)}
