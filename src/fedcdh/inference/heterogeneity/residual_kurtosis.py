"""The excess kurtosis of a mechanism's noise, as far as moments determine it: heavy tails make a spread less certain.

The variance of a sample variance is σ⁴ (2 + κ)/n, κ being the excess kurtosis: chi-square intervals hold for κ = 0.
Moments of squares give the fourth cumulants k(xxxx), k(xxzz) and k(zzzz) about the client's means. With
x = Σ b_j z_j + e and e independent of z, the contribution of z to k(xxxx) is, with q_j = b_j²,

    qᵀPq + 2 qᵀT − 2 Σ q_j² P_jj,   P_ij = k(z_i z_i z_j z_j),   T_j = k(x x z_j z_j):

exact for one or two parents. For three or more, fourth cumulants of three different ones are left out (they vanish for
independent and for jointly normal parents). The rest is k(eeee) = κσ⁴. Written with T, chance correlations of e with
z³ cancel, which would otherwise hide κ where z explains much of x.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedcdh._runtime.array_types import Array


@dataclass(frozen=True)
class ResidualCumulants:
    """The shape of the noise of a regression at one client."""

    rows: int
    noise: float  # σ²
    signal: float  # variance of what the parents explain
    fourth: float  # k(eeee)


def fourth_cumulants(scatter: Array, means: Array, rows: int) -> Array:
    """Return k(i i j j) of columns, from means and scatter of the columns followed by their squares.

    With c = l − mean, squares s = l² have s − mean(s) = c² − mean(c²) + 2 mean(l) c.
    """
    width = len(means) // 2
    straight, crossed, squares = scatter[:width, :width], scatter[:width, width:], scatter[width:, width:]
    twice = 2 * means[:width]
    covariance = squares - twice[:, None] * crossed - crossed.T * twice + np.multiply.outer(twice, twice) * straight
    return np.asarray(covariance / rows - 2 * (straight / rows) ** 2)


def residual_cumulants(cumulants: Array, slopes: Array, rows: int, noise: float, signal: float) -> ResidualCumulants:
    """Return the cumulants of the first column's residuals, regressed on the others with these slopes."""
    q, among, with_x = slopes**2, cumulants[1:, 1:], cumulants[0, 1:]
    explained = q @ among @ q + 2 * q @ with_x - 2 * q**2 @ among.diagonal()
    return ResidualCumulants(rows, noise, signal, float(cumulants[0, 0] - explained))


def excess_kurtosis(clients: Sequence[ResidualCumulants]) -> float:
    """Return κ of the noise, of one shape at all clients: Σ n k(eeee) / Σ n σ⁴, shrunk to 0 by its chance variation.

    Its variance for normal noise is about (64 r² + 96 r + 24)/n, where the parents explain r times the variance of the
    noise; κ is multiplied by 1 − variance/κ², as by James and Stein, and is never below 0.
    """
    rows, noise, signal, fourth = (
        np.array([getattr(one, name) for one in clients]) for name in ("rows", "noise", "signal", "fourth")
    )
    if not len(clients):
        return 0.0
    weight = rows * (noise / noise.max()) ** 2
    found = float((rows * (fourth / noise.max() ** 2)).sum() / weight.sum())
    ratio = signal / noise
    variance = float((weight**2 * (64 * ratio**2 + 96 * ratio + 24) / rows).sum() / weight.sum() ** 2)
    return max(0.0, found - variance / found) if found > 0 else 0.0
