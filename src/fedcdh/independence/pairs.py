"""Partial F tests: does y help to predict x, or x to predict y, once the conditioning variables are known?

x ⫫ y | Z is tested as E[x | φ(Z), φ(y)] = E[x | φ(Z)] and the other way round, with additive nonlinear functions of all
predictors and the linear feature (or the level indicators) as target. E[x | Z] additive in Z is something a matrix of
pairwise moments can estimate; E[cos(wx) | Z], which the kernel test of the paper needs, is not, for |Z| > 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from scipy import special

from fedcdh.basis import Basis
from fedcdh.partial import DETERMINED, combine, fitted, net_of, net_of_common, partial, pillai, side_by_side
from fedcdh.questions import DOMAIN, Question

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Together:
    """Columns of the basis that say how the conditioning variables act together, besides each on its own."""

    own: Indices = field(default_factory=lambda: np.zeros(0, dtype=np.intp))  # clients may differ in their weights
    common: Indices = field(default_factory=lambda: np.zeros(0, dtype=np.intp))  # they may not: there are too many
    closely: bool = False  # the squares of x and y are asked about too, whether or not curvature was seen before

    def side(self, basis: Basis, name: str) -> Indices:
        """The columns with which a variable predicts another."""
        columns = basis.predictors[name]
        value_alone = len(columns) == len(basis.targets[name]) == 1
        return basis.spans[name][:2] if self.closely and value_alone else columns


SEPARATELY = Together()


def narrow_first(basis: Basis, question: Question) -> Question:
    """The same question with its variable of fewer columns first: fewer shapes, and the test is symmetric."""
    if len(basis.predictors[question.x]) <= len(basis.predictors[question.y]):
        return question
    return Question(question.y, question.x, question.given)


def shape(basis: Basis, question: Question, together: Together = SEPARATELY) -> tuple[int, ...]:
    """Questions of one shape can be answered together."""
    names = question.x, question.y
    sides = ((together.side(basis, name), basis.predictors[name], basis.targets[name]) for name in names)
    conditions = sum(len(basis.predictors[name]) for name in question.given if name != DOMAIN)
    return (*(len(columns) for side in sides for columns in side), conditions, DOMAIN in question.given)


def answer_pairs(
    basis: Basis, questions: Sequence[Question], together: Together = SEPARATELY
) -> list[tuple[float, float]]:
    """Statistic and p-value for questions of one shape about two variables."""
    whole_x, wide_x, mean_x, whole_y, wide_y, mean_y, conditions, within = shape(basis, questions[0], together)
    if not (wide_x and wide_y):  # a constant is independent of everything
        return [(0.0, 1.0)] * len(questions)
    sides = [np.concatenate([together.side(basis, q.x), together.side(basis, q.y), together.common]) for q in questions]
    conditions += len(together.own)
    given = np.array(
        [np.concatenate([side_by_side(basis.predictors, q.given - {DOMAIN}), together.own]) for q in questions]
    ).reshape(len(questions), conditions)
    strata, freedom = _strata(basis, conditions) if within else (basis.total[None], np.array([basis.rows.sum() - 1.0]))
    left = partial(strata, np.array(sides), given)  # (strata, questions, columns, columns)
    freedom = freedom - conditions
    x, y, rest = np.split(np.arange(left.shape[-1]), [whole_x, whole_x + whole_y])
    f_x, p_x = _predict(left, freedom, x[:mean_x], y[:wide_y], rest)
    f_y, p_y = _predict(left, freedom, y[:mean_y], x[:wide_x], rest)
    # the strata's weights are those of the target: both ways, so that neither name comes first
    p_linear = [
        p_x if wide_y == mean_y else _predict(left, freedom, x[:mean_x], y[:mean_y], rest)[1],
        p_y if wide_x == mean_x else _predict(left, freedom, y[:mean_y], x[:mean_x], rest)[1],
    ]
    parts = [p_x, p_y, combine(p_linear)]
    if together.closely:
        squares = [
            _predict(left, freedom, target[:mean], side[1:2], np.append(rest, side[0]))[1]
            for target, mean, side, alone in ((x, mean_x, y, mean_y), (y, mean_y, x, mean_x))
            if alone == 1 and len(side) > 1
        ]
        parts += [combine(squares)] if squares else []  # one part of five: it must not drown what is seen by values
    if within and len(freedom) > 1 and mean_x == mean_y == 1:  # of several labels, none comes first
        share = 1 - len(together.common) / max(freedom.sum(), 1.0)
        parts.append(_differing_slopes(net_of_common(left, whole_x + whole_y), freedom * share, x[0], y[0]))
    return list(zip(np.maximum(f_x, f_y).tolist(), combine(parts).tolist(), strict=True))


def _strata(basis: Basis, conditions: int) -> tuple[Array, Array]:
    """Scatter and degrees of freedom per client, for regressions that may differ between clients.

    Clients with too few rows for regressions of their own form one stratum, in which only their means differ.
    """
    freedom = basis.rows - 1
    own = basis.can_regress(conditions)
    if own.all():
        return basis.scatter, freedom
    strata, sizes = list(basis.scatter[own]), list(freedom[own])
    if freedom[~own].sum() > conditions:
        strata.append(basis.scatter[~own].sum(axis=0))
        sizes.append(freedom[~own].sum())
    return np.array(strata).reshape(len(strata), *basis.within.shape), np.array(sizes)


def _predict(
    left: Array, freedom: Array, targets: Indices, predictors: Indices, common: Indices
) -> tuple[Array, Array]:
    """F test of common coefficients of the predictors, strata weighted by the precision of a single target.

    The common columns are regressed out with the same weights in all strata.
    """
    size = np.trace(left[..., targets[:, None], targets], axis1=-2, axis2=-1)
    determined = size <= DETERMINED * len(targets) * (freedom[:, None] + 1)
    weights = np.where(determined | (freedom[:, None] <= 0), 0.0, 1.0)
    if len(targets) == 1:
        weights = weights * freedom[:, None] / np.where(weights > 0, size, 1.0)
    joint = np.concatenate([targets, predictors, common])
    pooled = (left[..., joint[:, None], joint] * weights[..., None, None]).sum(axis=0)
    pooled = net_of(pooled, len(joint) - len(common)) if len(common) else pooled
    rows_left = (freedom[:, None] * (weights > 0)).sum(axis=0) - len(common)
    explained, total = fitted(pooled, len(targets)), pooled[..., : len(targets), : len(targets)]
    return pillai(explained, total, len(predictors), rows_left - len(predictors))


def _differing_slopes(left: Array, freedom: Array, x: int, y: int) -> Array:
    """χ² test of the correlations within strata, each by Fisher's z: sees slopes that differ in sign."""
    scale = np.sqrt(np.maximum(left[..., x, x] * left[..., y, y], np.finfo(float).tiny))
    correlation = np.clip(left[..., x, y] / scale, -1 + 1e-12, 1 - 1e-12)
    determined = np.minimum(left[..., x, x], left[..., y, y]) <= DETERMINED * (freedom[:, None] + 1)
    usable = ~determined & (freedom[:, None] > 3)
    squares = np.where(usable, np.arctanh(correlation) ** 2 * (freedom[:, None] - 2), 0.0)
    return np.asarray(special.chdtrc(np.maximum(usable.sum(axis=0), 1), squares.sum(axis=0)))
