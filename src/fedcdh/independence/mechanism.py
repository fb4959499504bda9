"""Does the mechanism of x given Z differ between clients?  ℧ ⫫ x | Z, answered from the clients' second moments.

Four departures are looked for, each with the test that sees it best, and their p-values combined: other means, other
linear slopes, other functions (Chow tests), and other noise (Bartlett's test on the residual variances).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy import special

from fedcdh.basis import Basis
from fedcdh.independence.pairs import SEPARATELY, Together
from fedcdh.partial import DETERMINED, combine, net_of, net_of_common, partial, pillai, side_by_side
from fedcdh.questions import Question

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]


def shape(basis: Basis, question: Question) -> tuple[int, ...]:
    """Questions of one shape can be answered together."""
    return (
        len(basis.targets[question.y]),
        len(side_by_side(basis.predictors, question.given)),
        len(side_by_side(basis.targets, question.given)),
        len(side_by_side(basis.spans, question.given)),
        _two_valued(basis, question),
    )


def answer_mechanisms(
    basis: Basis, questions: Sequence[Question], together: Together = SEPARATELY
) -> list[tuple[float, float]]:
    """Statistic and p-value for questions ℧ ⫫ y | Z of one shape."""
    width, conditions, linear, _, two_valued = shape(basis, questions[0])
    if not width:
        return [(0.0, 1.0)] * len(questions)
    count = len(questions)
    target = np.array([basis.targets[q.y] for q in questions])
    all_given = [side_by_side(basis.predictors, q.given) for q in questions]
    slopes = np.array([side_by_side(basis.targets, q.given) for q in questions]).reshape(count, linear)
    bends = np.array([np.setdiff1d(every, flat) for every, flat in zip(all_given, slopes, strict=True)])
    bends = bends.reshape(count, conditions - linear).astype(np.intp)
    bends = np.concatenate([bends, np.tile(together.own, (count, 1))], axis=1)
    given = np.concatenate([slopes, bends], axis=1)
    rest = np.tile(together.common, (count, 1))
    everything, conditions = np.concatenate([given, rest], axis=1), given.shape[1]
    clients, rows = len(basis.rows), float(basis.rows.sum())

    common = partial(basis.total, target, everything)  # one regression for all
    shifted = partial(basis.within, target, everything)  # own means, common functions
    free = rows - clients - everything.shape[1]
    statistic, p_mean = pillai(common - shifted, common, clients - 1, free)
    parts = [p_mean]
    own = basis.can_regress(conditions)
    if conditions and own.sum() > 1:
        parts += _chow(basis, target, slopes, bends, rest, own)
    if width == 1 and not two_valued and own.sum() > 1:
        parts.append(_other_noise(basis, questions, given, rest, own))
    p_value = combine(parts)
    determined = np.trace(common, axis1=-2, axis2=-1) <= DETERMINED * width * rows
    return list(zip(statistic.tolist(), np.where(determined, 1.0, p_value).tolist(), strict=True))


def _two_valued(basis: Basis, question: Question) -> bool:
    """With two values the mean says all: noise follows it, and differs wherever Z does, mechanism or not."""
    return len(basis.spans[question.y]) == 1


def _chow(
    basis: Basis, target: Indices, slopes: Indices, bends: Indices, rest: Indices, own: npt.NDArray[np.bool_]
) -> list[Array]:
    """Own linear slopes, and own functions altogether, against own means only, among clients with rows enough.

    The rest of the columns has the same weights everywhere in each of these.
    """
    scatter, width = basis.scatter[own], target.shape[1]
    given = np.concatenate([slopes, bends], axis=1)
    freedom = float((basis.rows[own] - 1).sum()) - given.shape[1] - rest.shape[1]
    shifted = partial(scatter.sum(axis=0), target, np.concatenate([given, rest], axis=1))
    without_slopes = partial(scatter, np.concatenate([target, bends, rest], axis=1), slopes).sum(axis=0)
    more = (len(scatter) - 1) * slopes.shape[1]
    _, p_slopes = pillai(shifted - net_of(without_slopes, width), shifted, more, freedom - more)
    if not bends.shape[1]:
        return [p_slopes]
    free = net_of(partial(scatter, np.concatenate([target, rest], axis=1), given).sum(axis=0), width)
    most = (len(scatter) - 1) * given.shape[1]
    _, p_functions = pillai(shifted - free, shifted, most, freedom - most)
    return [p_slopes, p_functions]


def _other_noise(
    basis: Basis, questions: Sequence[Question], given: Indices, rest: Indices, own: npt.NDArray[np.bool_]
) -> Array:
    """Bartlett's test on the residual variances, its statistic divided by (κ − 1)/2 for noise of kurtosis κ."""
    target = np.array([basis.targets[q.y] for q in questions])
    among = partial(basis.scatter[own], np.concatenate([target, rest], axis=1), given)
    left, freedom = net_of_common(among, 1)[..., 0, 0], basis.rows[own] - 1 - given.shape[1]
    freedom = np.broadcast_to((freedom * (1 - rest.shape[1] / max(freedom.sum(), 1.0)))[:, None], left.shape)
    usable = (freedom > 2) & (left > DETERMINED * (freedom + 1))
    variances = np.where(usable, left / freedom, 1.0)
    return _bartlett(variances, np.where(usable, freedom, 0.0), _heavy_tails(basis, questions, rest))


def _heavy_tails(basis: Basis, questions: Sequence[Question], rest: Indices) -> Array:
    """(κ − 1)/2 of the noise r in x = m(Z) + r, one standard error above its estimate and at least 1, as if Gaussian.

    Var(x² | Z) = 4 m² σ² + Var(r²) on average over Z, for centred x and symmetric r; all but the last is a second
    moment of features, so Var(r²) = (κ − 1) σ⁴ follows. The clients' fourth moments are never needed. E[x² | Z] bends
    even where E[x | Z] does not, hence all columns of Z; what it holds of products of several Z counts as kurtosis.
    """
    rows = basis.rows.sum()
    given = np.array([side_by_side(basis.spans, q.given) for q in questions]).reshape(len(questions), -1)
    given = np.concatenate([given, rest], axis=1)
    columns = np.array([basis.spans[q.y][:2] for q in questions])
    left = partial(basis.total, columns, given) / max(rows - 1 - given.shape[1], 1.0)
    noise = np.maximum(left[:, 0, 0], DETERMINED)
    square = np.array([basis.squares[q.y] for q in questions])[:, None, :]
    about_square = (square @ left @ np.swapaxes(square, 1, 2))[:, 0, 0]
    error = about_square * np.sqrt(10 / rows)  # of a variance whose own kurtosis is about that of squares, 11 or so
    kurtosis = (about_square + error - 4 * noise * np.maximum(1 - noise, 0.0)) / noise**2  # κ − 1
    return np.asarray(np.maximum(kurtosis / 2, 1.0))


def _bartlett(variances: Array, freedom: Array, inflation: Array) -> Array:
    """p-values of equal variances, (clients, questions) in; clients without degrees of freedom are left out."""
    groups, total = (freedom > 0).sum(axis=0), np.maximum(freedom.sum(axis=0), 1.0)
    pooled = (freedom * variances).sum(axis=0) / total
    spread = total * np.log(np.maximum(pooled, np.finfo(float).tiny)) - (freedom * np.log(variances)).sum(axis=0)
    inverse = (np.where(freedom > 0, 1 / np.maximum(freedom, 1.0), 0.0)).sum(axis=0) - 1 / total
    correction = (1 + inverse / (3 * np.maximum(groups - 1, 1))) * inflation
    return np.where(groups > 1, special.chdtrc(np.maximum(groups - 1, 1), np.maximum(spread / correction, 0.0)), 1.0)
