"""The test of DC-FNCD (2026): characteristic functions of residuals, with permutations inside the clients.

Each client regresses x and y on Z, here one variable or more, by kernel ridge regression on its own rows. At common
random frequencies (u, v) it sends its empirical characteristic functions of (r_x, r_y), r_x and r_y. The server
averages each over clients, with rows as weights. The statistic is n times the mean squared modulus of the joint one
minus the product of the marginal ones. For the p-value each client permutes its residuals of y, as often as agreed,
and sends the joint function again; marginal ones do not change.

The authors' text permutes inside clients, as here. Their program pools the rows. Width and ridge of the regression and
the law of the frequencies are ours: residuals are scaled to variance 1 over all clients, frequencies are standard
normal.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.spatial.distance import cdist, pdist

from fedcdh._runtime.array_types import Array

FREQUENCIES = 30
PERMUTATIONS = 500
RIDGE = 0.1
"""The ridge of the regression, for a Gaussian kernel with the median distance as width and columns of variance 1."""
_MAX_CENTRES = 200  # rows that serve as centres of the regression at a client with more


def characteristic_p_value(
    tables: Sequence[tuple[Array, Array, Array]], seed: int = 0, *, permutations: int = PERMUTATIONS
) -> float:
    """Return the p-value of x ⫫ y | Z for clients that hold (x, y, Z); rows of Z are those of x and y.

    >>> draw = np.random.default_rng(1)
    >>> z, e, f = draw.standard_normal((3, 120, 1))
    >>> related, unrelated = (z[:, 0] + e[:, 0], z[:, 0] + e[:, 0] ** 2, z), (z[:, 0] + e[:, 0], z[:, 0] + f[:, 0], z)
    >>> characteristic_p_value([related]) < 0.05 < characteristic_p_value([unrelated])
    True
    """
    draw = np.random.default_rng([seed, 37])
    u, v = draw.standard_normal((2, FREQUENCIES))
    residuals = [(_residuals(x, given), _residuals(y, given)) for x, y, given in tables]
    rows = sum(len(x) for x, _ in residuals)
    x_scale, y_scale = (np.sqrt(sum(float(sides[i] @ sides[i]) for sides in residuals) / rows) for i in (0, 1))
    waves = [(_waves(x, u / max(x_scale, 1e-12)), _waves(y, v / max(y_scale, 1e-12))) for x, y in residuals]
    margins = [np.sum([sides[i].sum(axis=0) for sides in waves], axis=0) / rows for i in (0, 1)]
    product = margins[0] * margins[1]
    observed = np.sum([(x * y).sum(axis=0) for x, y in waves], axis=0) / rows
    null = np.sum([_permuted_sums(x, y, permutations, draw) for x, y in waves], axis=0) / rows
    statistic = _distance(observed, product)
    return float((1 + np.count_nonzero(_distance(null, product) >= statistic)) / (1 + permutations))


def _distance(joint: Array, product: Array) -> Array:
    """Return the mean squared modulus of the difference, over frequencies."""
    return np.asarray((np.abs(joint - product) ** 2).mean(axis=-1))


def _waves(values: Array, frequencies: Array) -> Array:
    return np.asarray(np.exp(1j * np.outer(values, frequencies)))


def _permuted_sums(x: Array, y: Array, permutations: int, draw: np.random.Generator) -> Array:
    """Return Σ_t exp(i u x_t) exp(i v y_π(t)) of a client for each permutation: one row for each."""
    shuffled = draw.permuted(np.tile(np.arange(len(y)), (permutations, 1)), axis=1)
    return np.stack([(x * y[order]).sum(axis=0) for order in shuffled])


def _residuals(values: Array, given: Array) -> Array:
    """Return what kernel ridge regression on Z leaves of a column, after centring."""
    centred = values - values.mean()
    if not given.shape[1] or len(values) < 3:
        return np.asarray(centred)
    spread = given.std(axis=0)
    scaled = (given - given.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    centres = scaled[np.linspace(0, len(scaled) - 1, min(len(scaled), _MAX_CENTRES)).astype(int)]
    apart = pdist(centres, "sqeuclidean")
    width = float(np.median(apart)) if len(apart) else 0.0
    kernel = np.exp(-cdist(scaled, centres, "sqeuclidean") / max(width, 1e-12))
    inner = np.exp(-cdist(centres, centres, "sqeuclidean") / max(width, 1e-12))
    left = kernel.T @ kernel + RIDGE * inner + 1e-9 * len(values) * np.eye(len(centres))
    fitted = kernel @ np.linalg.solve(left, kernel.T @ centred)
    return np.asarray(centred - fitted)
