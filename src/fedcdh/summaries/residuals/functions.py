"""Bounded functions of a standardised residual whose sums describe its density, and its size given the parents.

A density on the real line is described by few sums: of ten soft steps, whose differences follow edges and bumps, and of
two functions that follow the tails. Every function is bounded and rounded to the grid of the summary. Sums are
therefore exact integers, and no single row moves a sum by more than one unit.
"""

from __future__ import annotations

import numpy as np

from fedcdh._runtime.array_types import Array

MAX_RESIDUAL = 9.0
"""Standard deviations at which a residual is clipped before its density is described."""
MAX_LARGE_RESIDUAL = 30.0
"""Standard deviations at which it is clipped where its size is described."""
MAX_COORDINATE = 4.0
"""Standard deviations at which a parent is clipped where the size of the noise depends on it."""
MAX_LOG_SIZE = 8.0
"""Largest logarithm of the ratio between a row's noise variance and the typical one."""
STEP_CENTRES = np.linspace(-1.9, 1.9, 10)
"""Places of the soft steps."""
STEP_WIDTH = 0.35 * float(STEP_CENTRES[1] - STEP_CENTRES[0])
LOG_SQUARE_OFFSET = 0.01
"""Added to a squared residual before its logarithm: tiny residuals count no more than a tenth of a deviation."""

SHAPE_FUNCTIONS = 4 + len(STEP_CENTRES)
"""Number of sums that describe a density: z, z², two tails and the steps."""

PRODUCT_BOUND = MAX_COORDINATE**2 * MAX_RESIDUAL
"""Largest absolute value of a product of two parents times a residual."""

_LOG_BOUND = float(np.log(MAX_LARGE_RESIDUAL**2 + LOG_SQUARE_OFFSET))
_SQUARE_BOUND = MAX_COORDINATE**2 - 1


def shape_functions(z: Array) -> Array:
    """Return z, z², √(1 + z²), log(1 + z²) and the soft steps, of residuals clipped at `MAX_RESIDUAL`.

    Parameters
    ----------
    z : array
        Standardised residuals.

    Returns
    -------
    array
        (functions, *shape of z).

    Examples
    --------
    >>> shape_functions(np.array([0.0]))[:4, 0]
    array([0., 0., 1., 0.])
    """
    inside = np.clip(z, -MAX_RESIDUAL, MAX_RESIDUAL)
    square = inside**2
    centres = STEP_CENTRES.reshape(-1, *[1] * inside.ndim)
    steps = np.tanh((inside - centres) / STEP_WIDTH)
    return np.concatenate([np.stack([inside, square, np.sqrt(1 + square), np.log1p(square)]), steps])


def shape_bounds() -> Array:
    """Return the largest absolute value of each of the `shape_functions`."""
    square = MAX_RESIDUAL**2
    tails = [MAX_RESIDUAL, square, np.sqrt(1 + square), np.log1p(square)]
    return np.concatenate([tails, np.ones(len(STEP_CENTRES))])


def size_terms(coordinates: Array) -> Array:
    """Return the functions of the parents on which the size of the noise may depend: x and x² − 1 of each.

    Parameters
    ----------
    coordinates : array
        (parents, rows): standardised values of the parents.

    Returns
    -------
    array
        (two per parent, rows).

    Examples
    --------
    >>> size_terms(np.array([[2.0]])).ravel()
    array([2., 3.])
    """
    inside = np.clip(coordinates, -MAX_COORDINATE, MAX_COORDINATE)
    return np.stack([inside, inside**2 - 1], axis=1).reshape(-1, coordinates.shape[-1])


def product_of(first: Array, second: Array) -> Array:
    """Return the product of two parents, each clipped at `MAX_COORDINATE`.

    Parameters
    ----------
    first, second : array
        Standardised values of the parents.

    Returns
    -------
    array
        The products.

    Examples
    --------
    >>> product_of(np.array([2.0, 5.0]), np.array([-1.0, 3.0]))
    array([-2., 12.])
    """
    inside = (np.clip(one, -MAX_COORDINATE, MAX_COORDINATE) for one in (first, second))
    return np.asarray(np.prod(list(inside), axis=0))


def product_functions(z: Array, products: Array) -> Array:
    """Return the residual, clipped at `MAX_RESIDUAL`, times each product of two parents.

    Parameters
    ----------
    z : array
        Standardised residuals.
    products : array
        (pairs, rows): products of two parents.

    Returns
    -------
    array
        (pairs, rows).

    Examples
    --------
    >>> product_functions(np.array([0.5, 20.0]), np.array([[2.0, 1.0]]))
    array([[1., 9.]])
    """
    return np.asarray(products * np.clip(z, -MAX_RESIDUAL, MAX_RESIDUAL))


def size_functions(z: Array, terms: Array) -> Array:
    """Return log(z² + 0.01) times 1 and the `size_terms`, from which the size of the noise is estimated.

    Parameters
    ----------
    z : array
        Standardised residuals.
    terms : array
        (two per parent, rows): functions of the parents.

    Returns
    -------
    array
        (1 + two per parent, rows).
    """
    inside = np.clip(z, -MAX_LARGE_RESIDUAL, MAX_LARGE_RESIDUAL)
    logs = np.log(inside**2 + LOG_SQUARE_OFFSET)
    return np.concatenate([logs[None], logs * terms])


def size_bounds(parents: int) -> Array:
    """Return the largest absolute value of each of the `size_functions` of this number of parents."""
    return _LOG_BOUND * np.concatenate([[1.0], np.tile([MAX_COORDINATE, _SQUARE_BOUND], parents)])
