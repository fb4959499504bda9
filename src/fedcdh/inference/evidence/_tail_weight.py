"""How heavy the tails of noise are, for many families at once, and what "noise differs between clients" then weighs.

The variance of a sample variance is σ⁴ (2 + κ)/n, κ being the excess kurtosis. Heavy-tailed noise of one size therefore
has clients' variances that spread as if noise were normal and differed. What the n rows of a client say about its noise
counts as that of 2n/(2 + κ) normal rows. Such counting would weaken real differences as well, and in proportion to
their evidence, so that a wrong family with nearly normal residuals would win over the true one. Hence no more is
subtracted than a constant mechanism gains by its tails in 19 of 20 studies: κ/4 times a quantile of chi-square with as
many degrees of freedom as clients less one.

The formula of κ is that of `fedcdh.inference.heterogeneity.residual_kurtosis`. Residuals are those of the linear form
with slopes that all clients share, about the clients' own means. Of cumulants, their sums over clients are then enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import sparse, special

from fedcdh._runtime.array_types import Array, Indices
from fedcdh.inference.batched_regression import JITTER
from fedcdh.inference.evidence._gaussian_moments import RegressionSums
from fedcdh.inference.orthonormal_basis import Basis, Chosen

MIN_STANDARD_ERRORS = 3.0
"""κ counts from this many standard errors on, so that normal noise is hardly ever tempered. With 1, the direction F1 on
10 clients of 25 rows is 0.011 lower; with 3 it is as without tempering (`benchmarks.bench_real_data --parts simulated
--seeds 0:20`)."""
CHANCE_GAIN_PROBABILITY = 0.05
"""How often a constant mechanism gains more by its tails than is subtracted at most. Linear, curved and quadratic cells
of `benchmarks.bench_noise_shapes`, seeds 0..19: false changes of 3840, and right arrows of 5760, are 688 and 5027
without tempering, 417 and 5019 with 0.5, 346 and 5010 with 0.05, and 432 and 4775 without a limit."""
_MIN_NOISE_SHARE = 1e-7  # of a variable's variance, as in the regressions
_SCALE_STEPS = 12  # of a fixed point that converges by a factor of about ν/(n + ν)


@dataclass(frozen=True, eq=False)
class TailWeights:
    """Fourth cumulants of all linear columns, summed over clients, and the kurtosis of a family's residuals.

    Attributes
    ----------
    basis : Basis
        The moments in orthonormal coordinates, with the scatter of every client.
    """

    basis: Basis

    def effective_share(self, sums: RegressionSums, targets: Indices, columns: Indices, straight: Chosen) -> Array:
        """Return 2/(2 + κ) of every family: the share of a client's rows that counts where its noise is compared.

        Parameters
        ----------
        sums : RegressionSums
            Sums per family and client. The first column is the constant.
        targets : array of int
            The place of each target among [1, coordinates, …].
        columns : array of int
            The places of each family's columns; −1 for a column of zeros.
        straight : array of bool
            Which columns belong to the linear form.

        Returns
        -------
        array
            One share per family, 1 for tails that are not heavier than normal ones.
        """
        fit = _fit_linear_form(sums, self.basis.rows, straight)
        places, cumulants = self._fourth_cumulants
        targets = np.where(targets < len(places), targets, -1)  # normal scores have no heavy tails
        y, x, q = places[targets], places[columns], fit.slopes**2
        among, with_y = cumulants[x[:, :, None], x[:, None, :]], cumulants[y[:, None], x]
        own = np.diagonal(among, axis1=1, axis2=2)
        explained = (q * ((among @ q[..., None])[..., 0] + 2 * with_y - 2 * q * own)).sum(axis=1)
        kurtosis = _shrink_kurtosis(cumulants[y, y] - explained, fit, self.basis.rows)
        return np.asarray(np.where(y < len(cumulants) - 1, 2 / (2 + kurtosis), 1.0))

    @cached_property
    def _fourth_cumulants(self) -> tuple[Indices, Array]:
        """Return the place of each of [1, coordinates, …] here, and Σ n k(iijj) about the clients' means.

        The last place is that of all columns whose cumulants are not known, or not needed; they count as zero.
        """
        linear, squares = _square_coefficients(self.basis)
        width, count = self.basis.means.shape[1], len(linear)
        found = np.zeros((count + 1, count + 1))
        for rows, means, scatter in zip(self.basis.rows, self.basis.means, self.basis.scatter, strict=True):
            centred = squares - sparse.csr_array((2 * means[linear], (np.arange(count), linear)), (count, width))
            found[:count, :count] += centred @ (centred @ scatter).T - 2 / rows * scatter[np.ix_(linear, linear)] ** 2
        places = np.full(2 + width + sum(map(len, self.basis.levels.values())), count)
        places[1 + linear] = np.arange(count)
        return places, found


class _LinearFit(NamedTuple):
    """Common slopes, and per family and client the variances of what is left and of what they explain."""

    slopes: Array
    noise: Array
    signal: Array


def _fit_linear_form(sums: RegressionSums, rows: Array, straight: Chosen) -> _LinearFit:
    """Regress on the linear columns about the clients' own means, with slopes that all clients share."""
    means, level = np.where(straight[:, None, :], sums.gram[:, :, 0, :], 0.0), sums.cross[:, :, 0]
    gram = sums.gram.sum(axis=1) - np.swapaxes(means, 1, 2) @ (means / rows[:, None])
    gram = np.where(straight[:, :, None] & straight[:, None, :], gram, 0.0)
    cross = np.where(straight, sums.cross.sum(axis=1) - (means * (level / rows)[..., None]).sum(axis=1), 0.0)
    size = gram.diagonal(axis1=1, axis2=2)
    jitter = np.where(size > 0, JITTER * size, 1.0)
    inner = gram + jitter[..., None] * np.eye(gram.shape[-1])
    slopes: Array = np.asarray(np.linalg.solve(inner, cross[..., None])[..., 0], dtype=np.float64)
    flat = sums.gram.reshape(*sums.gram.shape[:2], -1)
    pairs = (slopes[:, :, None] * slopes[:, None, :]).reshape(len(slopes), -1, 1)
    fitted = (means @ slopes[..., None])[..., 0]
    signal = (flat @ pairs)[..., 0] - fitted**2 / rows
    shared = (sums.cross @ slopes[..., None])[..., 0] - fitted * level / rows
    noise = np.maximum((sums.square - level**2 / rows - 2 * shared + signal) / rows, _MIN_NOISE_SHARE)
    return _LinearFit(slopes, noise, np.maximum(signal, 0.0) / rows)


def _shrink_kurtosis(fourth: Array, fit: _LinearFit, rows: Array) -> Array:
    """Return Σ n k(eeee) / Σ n σ⁴, shrunk to 0 where its chance variation explains it; never below 0."""
    weight = rows * fit.noise**2
    total = weight.sum(axis=1)
    found = fourth / total
    ratio = fit.signal / fit.noise
    variance = (weight**2 * (64 * ratio**2 + 96 * ratio + 24) / rows).sum(axis=1) / total**2
    limit = MIN_STANDARD_ERRORS * np.sqrt(variance)
    kept = np.maximum(found, limit)
    return np.asarray(np.where(found > limit, kept - limit**2 / kept, 0.0))


def _square_coefficients(basis: Basis) -> tuple[Indices, sparse.csr_array]:
    """Return the linear columns, and the coefficients of their squares on all coordinates, up to a constant."""
    linear, blocks = [np.zeros(0, dtype=np.intp)], [sparse.csr_array((0, basis.means.shape[1]))]
    for name, columns in basis.targets.items():
        if not len(columns):
            continue
        if name in basis.levels:
            at, values = basis.spans[name], basis.level_squares[name]
        else:
            at = basis.spans[name][:2]
            values = np.array([basis.squares[name][: len(at)]])
        places = np.repeat(np.arange(len(columns)), len(at)), np.tile(at, len(columns))
        linear.append(columns)
        blocks.append(sparse.csr_array((values.ravel(), places), (len(columns), basis.means.shape[1])))
    return np.concatenate(linear), sparse.csr_array(sparse.vstack(blocks))


def temper_noise_factor(left: Array, rows: Array, freedom: float, share: Array) -> Array:
    """Return what is added to the evidence of noise per client, 0 or less, if only a share of the rows counts.

    Parameters
    ----------
    left : array
        Residual sums of squares, per family and client.
    rows : array
        Rows of each client.
    freedom : float
        Degrees of freedom ν of the clients' noise variances.
    share : array
        The share of rows that counts in each family; 1 changes nothing.

    Returns
    -------
    array
        Nothing to add, or a negative number, for every family.
    """
    found, some = np.zeros(len(share)), np.flatnonzero(share < 1)
    if len(some) and len(rows) > 1:
        counted, left = share[some, None], left[some]
        loss = _log_noise_factor(counted * left, counted * rows, freedom)
        loss -= _log_noise_factor(left, np.ones_like(counted) * rows, freedom)
        most = special.chdtri(len(rows) - 1, CHANCE_GAIN_PROBABILITY) * (1 / share[some] - 1) / 2
        found[some] = np.clip(loss, -most, 0.0)
    return found


def _log_noise_factor(left: Array, rows: Array, freedom: float) -> Array:
    """Return the log Bayes factor of noise per client against common noise, given residual sums of squares."""
    total = rows.sum(axis=1)
    scale = left.sum(axis=1) / total
    for _ in range(_SCALE_STEPS):
        scale = rows.shape[1] / ((rows + freedom) / (freedom * scale[:, None] + left)).sum(axis=1)
    common = freedom * scale[:, None]
    student = (
        special.gammaln((rows + freedom) / 2)
        - special.gammaln(freedom / 2)
        + freedom / 2 * np.log(common)
        - (rows + freedom) / 2 * np.log(common + left)
    ).sum(axis=1)
    curvature = ((rows + freedom) / 2 * common * left / (common + left) ** 2).sum(axis=1)
    alike = special.gammaln(total / 2) - total / 2 * np.log(left.sum(axis=1))
    return np.asarray(student + np.log(2 * np.pi / curvature) / 2 - alike)
