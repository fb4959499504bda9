"""Does the mechanism of x given Z differ between clients?  ℧ ⫫ x | Z, answered from the clients' second moments.

Four departures are looked for, each with the test that sees it best, and their p-values combined: other means, other
linear slopes, other functions (Chow tests), and other noise (Bartlett's test on the residual variances).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import special

from fedcdh.inference.batched_regression import DETERMINED, combine, in_turn, net_of, net_of_common, partial, pillai
from fedcdh.inference.independence.query_batch import Asked, Shape, Sheet, Together, repeated
from fedcdh.inference.orthonormal_basis import Basis

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]


def domain_first(sheet: Sheet, asked: Asked) -> Asked:
    """The same questions with the domain as x."""
    return asked.turned(asked.y == len(sheet.squares))


def shapes(basis: Basis, sheet: Sheet, asked: Asked) -> Indices:
    """Questions with equal rows can be answered together."""
    conditions = (columns.counts(asked) for columns in (sheet.predictors, sheet.targets, sheet.spans))
    return np.stack([sheet.targets.widths[asked.y], *conditions, sheet.spans.widths[asked.y] == 1], axis=1)


def elements(basis: Basis, shape: Shape) -> int:
    """How many numbers a question of this shape takes."""
    width, conditions, _, every, _ = shape
    return max(len(basis.rows) * (width + conditions) ** 2, (width + every) ** 2)


def answer_mechanisms(
    basis: Basis, sheet: Sheet, together: Together, asked: Asked, shape: Shape
) -> tuple[Array, Array]:
    """Statistics and p-values for questions ℧ ⫫ y | Z of one shape."""
    # With two values the mean says all: noise follows it, and differs wherever Z does, mechanism or not.
    width, _, _, _, two_valued = shape
    count = len(asked)
    if not width:
        return np.zeros(count), np.ones(count)
    target, slopes = sheet.targets.of(asked.y[:, None]), sheet.targets.of(asked.given)
    bends = np.concatenate([sheet.bends.of(asked.given), repeated(together.own, count)], axis=1)
    given = np.concatenate([slopes, bends], axis=1)
    rest = repeated(together.common, count)
    everything, conditions = np.concatenate([given, rest], axis=1), given.shape[1]
    clients, rows = len(basis.rows), float(basis.rows.sum())

    common = partial(basis.total, target, everything)  # one regression for all
    shifted = partial(basis.within, target, everything)  # own means, common functions
    free = rows - clients - everything.shape[1]
    statistic, p_mean = pillai(common - shifted, common, clients - 1, free)
    parts = [p_mean]
    own = basis.can_regress(conditions)
    if own.sum() > 1:
        apart = partial(basis.each(own), np.concatenate([target, rest], axis=1), given)  # own functions
        if conditions:
            parts += _chow(basis, target, slopes, bends, rest, own, apart)
        if width == 1 and not two_valued:
            parts.append(_other_noise(basis.rows[own] - 1 - conditions, apart, _heavy_tails(basis, sheet, asked, rest)))
    p_value = combine(parts)
    determined = np.trace(common, axis1=-2, axis2=-1) <= DETERMINED * width * rows
    return statistic, np.where(determined, 1.0, p_value)


def _chow(
    basis: Basis,
    target: Indices,
    slopes: Indices,
    bends: Indices,
    rest: Indices,
    own: npt.NDArray[np.bool_],
    apart: Array,
) -> list[Array]:
    """Own linear slopes, and own functions altogether, against own means only, among clients with rows enough.

    The rest of the columns has the same weights everywhere in each of these.
    """
    clients, width = int(own.sum()), target.shape[1]
    given = np.concatenate([slopes, bends], axis=1)
    freedom = float((basis.rows[own] - 1).sum()) - given.shape[1] - rest.shape[1]
    shifted = partial(basis.all_of(own), target, np.concatenate([given, rest], axis=1))
    free = net_of(in_turn(apart), width)
    most = (clients - 1) * given.shape[1]
    _, p_functions = pillai(shifted - free, shifted, most, freedom - most)
    if not bends.shape[1]:
        return [p_functions]
    without_slopes = in_turn(partial(basis.each(own), np.concatenate([target, bends, rest], axis=1), slopes))
    more = (clients - 1) * slopes.shape[1]
    _, p_slopes = pillai(shifted - net_of(without_slopes, width), shifted, more, freedom - more)
    return [p_slopes, p_functions]


def _other_noise(freedom: Array, apart: Array, heavy: Array) -> Array:
    """Bartlett's test on the residual variances, its statistic divided by (κ − 1)/2 for noise of kurtosis κ."""
    left, rest = net_of_common(apart, 1)[..., 0, 0], apart.shape[-1] - 1
    freedom = np.broadcast_to((freedom * (1 - rest / max(freedom.sum(), 1.0)))[:, None], left.shape)
    usable = (freedom > 2) & (left > DETERMINED * (freedom + 1))
    variances = np.where(usable, left / freedom, 1.0)
    return _bartlett(variances, np.where(usable, freedom, 0.0), heavy)


def _heavy_tails(basis: Basis, sheet: Sheet, asked: Asked, rest: Indices) -> Array:
    """(κ − 1)/2 of the noise r in x = m(Z) + r, one standard error above its estimate and at least 1, as if Gaussian.

    Var(x² | Z) = 4 m² σ² + Var(r²) on average over Z, for centred x and symmetric r; all but the last is a second
    moment of features, so Var(r²) = (κ − 1) σ⁴ follows. The clients' fourth moments are never needed. E[x² | Z] bends
    even where E[x | Z] does not, hence all columns of Z; what it holds of products of several Z counts as kurtosis.
    """
    rows = basis.rows.sum()
    given = np.concatenate([sheet.spans.of(asked.given), rest], axis=1)
    columns = sheet.leading.of(asked.y[:, None])
    left = partial(basis.total, columns, given) / max(rows - 1 - given.shape[1], 1.0)
    noise = np.maximum(left[:, 0, 0], DETERMINED)
    square = sheet.squares[asked.y][:, None, :]
    about_square = (square @ left @ np.swapaxes(square, 1, 2))[:, 0, 0]
    error = about_square * np.sqrt(10 / rows)  # of a variance whose own kurtosis is about that of squares, 11 or so
    kurtosis = (about_square + error - 4 * noise * np.maximum(1 - noise, 0.0)) / noise**2  # κ − 1
    return np.asarray(np.maximum(kurtosis / 2, 1.0))


def _bartlett(variances: Array, freedom: Array, inflation: Array) -> Array:
    """p-values of equal variances, (clients, questions) in; clients without degrees of freedom are left out."""
    groups, total = (freedom > 0).sum(axis=0), np.maximum(freedom.sum(axis=0), 1.0)
    pooled = in_turn(freedom * variances) / total
    spread = total * np.log(np.maximum(pooled, np.finfo(float).tiny)) - in_turn(freedom * np.log(variances))
    inverse = in_turn(np.where(freedom > 0, 1 / np.maximum(freedom, 1.0), 0.0)) - 1 / total
    correction = (1 + inverse / (3 * np.maximum(groups - 1, 1))) * inflation
    return np.where(groups > 1, special.chdtrc(np.maximum(groups - 1, 1), np.maximum(spread / correction, 0.0)), 1.0)
