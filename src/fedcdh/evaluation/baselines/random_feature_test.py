"""The independence tests of the FedCDH authors' program: RIT and RCIT with random Fourier features of all rows.

x ⫫ y uses 5 features of each variable. x ⫫ y | Z uses 25 features of x, 25 joint features of (y, Z) and 100 joint
features of Z. The statistic is n times the squared norm of the partial covariance of the features. Under the null
hypothesis it is a mixture of χ² variables. Its weights are the eigenvalues of M, the second moments of the products of
residuals. A gamma distribution with the mean tr M and the variance 2 tr M² stands for the mixture.

tr M² needs no eigenvalues: n² tr M² = Σ_st (r_s·r_t)² (q_s·q_t)² for residuals r of x and q of (y, Z). That is one
product of two n × n matrices entry by entry, or with more rows the norm of Σ_s (r_s r_sᵀ) ⊗ (q_s q_sᵀ).

Strobl, Zhang and Visweswaran (2019) describe the tests. x and y play different parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from scipy import linalg, special
from scipy.spatial.distance import pdist

from fedcdh._runtime.array_types import Array
from fedcdh.inference.independence.kernel_test import gamma_tail

OrderedQuery = tuple[int, int, tuple[int, ...]]
"""x ⫫ y | Z by column; x comes first."""

MARGINAL_FEATURES, CONDITIONAL_FEATURES, GIVEN_FEATURES = 5, 25, 100
RIDGE = 1e-10
FEATURE_SEED = 42
"""The numbers of the authors' program."""
_BANDWIDTH_ROWS = 500
_MAX_GRAM_ROWS = 1500  # beyond this, products of 25 features take less time than n × n matrices


class RandomFeatureTest:
    """The p-values of RIT and RCIT, from all rows in one place.

    >>> x, e = np.random.default_rng(1).standard_normal((2, 300))
    >>> test = RandomFeatureTest(np.column_stack([x, np.tanh(x) + e, e]))
    >>> p_related, p_unrelated = test([(0, 1, ()), (0, 2, ())])
    >>> p_related < 0.01 < p_unrelated
    True
    """

    def __init__(self, rows: Array) -> None:
        self._columns = _standardise(rows)
        self._varies: list[bool] = self._columns.astype(bool).max(axis=0).tolist()

    def __call__(self, queries: Sequence[OrderedQuery]) -> list[float]:
        """Return the p-value of each query; queries with the same Z share its features."""
        found = dict.fromkeys(queries, 1.0)
        for given in sorted({self._drop_constant(query[2]) for query in queries}):
            space = _ConditionalSpace(self._columns, given)
            for query in found:
                x, y, _ = query
                if self._drop_constant(query[2]) == given and self._varies[x] and self._varies[y]:
                    found[query] = space.p_value(x, y)
        return [found[query] for query in queries]

    def _drop_constant(self, given: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(sorted(z for z in given if self._varies[z]))


@dataclass(frozen=True, eq=False)
class _Residuals:
    """The features of one side, their residuals given Z, and what tr M² needs of them."""

    features: Array
    residuals: Array

    @cached_property
    def sizes(self) -> Array:
        """Return the squared length of each row."""
        return np.asarray((self.residuals**2).sum(axis=1))

    @cached_property
    def squared_gram(self) -> Array:
        """Return (r_s · r_t)² of all pairs of rows."""
        return np.asarray((self.residuals @ self.residuals.T) ** 2)

    @cached_property
    def products(self) -> Array:
        """Return r_s r_sᵀ of each row without its lower half; the upper half counts twice in a norm."""
        i, j = np.triu_indices(self.residuals.shape[1])
        return np.asarray(self.residuals[:, i] * self.residuals[:, j] * np.where(i == j, 1.0, np.sqrt(2)))


class _ConditionalSpace:
    """The features given one set Z; sides are kept, since several queries share them."""

    def __init__(self, columns: Array, given: tuple[int, ...]) -> None:
        self._columns, self._given = columns, given
        self._width = CONDITIONAL_FEATURES if given else MARGINAL_FEATURES
        self._sides: dict[tuple[int, ...], _Residuals] = {}

    def p_value(self, x: int, y: int) -> float:
        first, second = self._side((x,)), self._side((y, *self._given))
        rows = len(first.features)
        covariance = first.features.T @ second.residuals / (rows - 1)
        mean = float(first.sizes @ second.sizes) / rows
        spread = 2 * _squared_norm(first, second) / rows**2
        return float(gamma_tail(rows * (covariance**2).sum(), np.asarray(mean), np.asarray(spread)))

    def _side(self, columns: tuple[int, ...]) -> _Residuals:
        if columns not in self._sides:
            features = draw_features(self._columns[:, columns], self._width)
            self._sides[columns] = _Residuals(features, features - self._explained(features))
        return self._sides[columns]

    def _explained(self, features: Array) -> Array:
        if not self._given:
            return np.zeros_like(features)
        weights = linalg.cho_solve(self._factor, self._features.T @ features / (len(features) - 1), check_finite=False)
        return np.asarray(self._features @ weights)

    @cached_property
    def _features(self) -> Array:
        return draw_features(self._columns[:, self._given], GIVEN_FEATURES)

    @cached_property
    def _factor(self) -> tuple[Array, bool]:
        """Return the Cholesky factor of C_ZZ + 10⁻¹⁰ I; few rows may need a larger ridge, where R would stop."""
        covariance = self._features.T @ self._features / (len(self._features) - 1)
        ridge = RIDGE
        while True:
            try:
                factor, lower = linalg.cho_factor(covariance + ridge * np.eye(len(covariance)), check_finite=False)
            except linalg.LinAlgError:
                ridge *= 10
            else:
                return factor, bool(lower)


def _squared_norm(first: _Residuals, second: _Residuals) -> float:
    """Return n² tr M²."""
    rows, width = first.residuals.shape
    if width <= MARGINAL_FEATURES or rows > _MAX_GRAM_ROWS:
        return float(((first.products.T @ second.products) ** 2).sum())
    return float(np.vdot(first.squared_gram, second.squared_gram))


def draw_features(columns: Array, width: int) -> Array:
    """Return standardised features √2 cos(w·x + b), with the median distance of the first 500 rows as bandwidth.

    Every call draws from the same seed, as in the authors' program: sides with as many columns share their draws.
    """
    normal, uniform = _draw_like_r(columns.shape[1] * width)
    frequencies, phases = normal.reshape(columns.shape[1], width), 2 * np.pi * uniform[:width]
    apart = pdist(columns[:_BANDWIDTH_ROWS])
    bandwidth = float(np.median(apart)) if len(apart) else 0.0
    return _standardise(np.sqrt(2) * np.cos(columns @ frequencies / (bandwidth or 1.0) + phases))


@lru_cache
def _draw_like_r(count: int) -> tuple[Array, Array]:
    """Return what `rnorm` and `runif` give in R, each after `set.seed(42)`.

    The test uses the same few draws for all its questions, so that other draws would be another program. R fills the
    state of the Mersenne Twister by a congruential generator, and inverts the normal distribution at 59 random bits.
    """
    seed, state = FEATURE_SEED, []
    for step in range(50 + 1 + 624):
        seed = (69069 * seed + 1) % 2**32
        if step > 50:  # the first are skipped, and one more is the place in the state
            state.append(seed)
    generator = np.random.MT19937()
    generator.state = {"bit_generator": "MT19937", "state": {"key": np.array(state, dtype=np.uint32), "pos": 624}}
    uniform = np.clip(generator.random_raw(2 * count) * 2.3283064365386963e-10, 2.0**-33, 1 - 2.0**-33)
    coarse, fine = uniform[::2], uniform[1::2]
    return special.ndtri((np.floor(2.0**27 * coarse) + fine) / 2.0**27), uniform[:count]


def _standardise(columns: Array) -> Array:
    """Scale columns to mean 0 and variance 1; constant ones become 0."""
    centred = columns - columns.mean(axis=0)
    spread = np.sqrt((centred**2).sum(axis=0) / max(len(columns) - 1, 1))
    constant = spread <= 1e-12 * np.abs(columns).max(axis=0, initial=0.0)
    return np.where(constant, 0.0, centred / np.where(constant, 1.0, spread))
