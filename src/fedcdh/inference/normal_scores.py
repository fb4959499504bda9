"""Normal scores of variables, from the summaries alone.

A variable that was measured on another scale than the one on which its causes act (a concentration that nobody logged)
is a monotone function of a sum of effects and noise: a post-nonlinear mechanism. On its normal scores Φ⁻¹(F(x)) such a
mechanism is additive again.

The summaries hold the means of a variable's features, and of products of these. The density of maximum entropy with
these means is an exponential family; its log likelihood needs the same sums only. Its distribution function F gives the
normal scores, and these lie very nearly in the span of the features. Regressions of the scores on other variables
therefore need no further message.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np
from scipy.special import logsumexp
from scipy.stats import norm

from fedcdh._runtime.array_types import Array
from fedcdh.data.table import to_table
from fedcdh.summaries.aggregation import Aggregate, Cohort
from fedcdh.summaries.encoder import GRID, Encoder
from fedcdh.summaries.feature_layout import POWER_COLUMNS
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.variables import Continuous

MIN_FIT = 0.98
"""Share of the variance of the exact scores that the features have to explain."""
MIN_LOG_BAYES = 10.0
"""Log Bayes factor of the density against a normal one from which scores are made."""
PRIOR_SPREAD = 2.0
"""Prior standard deviation of the parameters, in units of the features' spread under the normal density."""
_REACH, _POINTS = 6.0, 1501
_MAX_NEWTON_STEPS = 60


@dataclass(frozen=True, eq=False)
class NormalScore:
    """The normal score of a variable, as a combination of its features.

    Attributes
    ----------
    weights : array
        Weights of the variable's features in the plan, without a constant.
    log_jacobian : float
        Sum over all rows of the log derivative of the score by the standardised value, less the price of the density's
        parameters.
    """

    weights: Array
    log_jacobian: float


def find_normal_scores(known: Cohort | Aggregate) -> dict[str, NormalScore]:
    """Return the normal scores of the continuous variables that are clearly not normal.

    Parameters
    ----------
    known : Cohort or Aggregate
        The summaries, or their sum.

    Returns
    -------
    dict from str to NormalScore
        Scores by name. Variables whose scores are not a smooth function of the features are left out.

    Examples
    --------
    >>> import fedcdh
    >>> rng = np.random.default_rng(0)
    >>> tables = {"north": {"crp": np.exp(rng.normal(size=400)), "age": rng.normal(60, 9, 400)}}
    >>> plan = fedcdh.StudyPlan.from_tables(tables)
    >>> cohort = fedcdh.add_up([fedcdh.summarize(tables["north"], plan, "north")], plan)
    >>> list(find_normal_scores(cohort))
    ['crp']
    """
    found = {}
    for variable in known.plan.variables:
        if isinstance(variable, Continuous):
            score = _find_score(known, variable)
            if score is not None:
                found[variable.name] = score
    return found


def _find_score(known: Cohort | Aggregate, variable: Continuous) -> NormalScore | None:
    span = known.plan.layout.spans[variable.name]
    places = range(span.start, span.stop)
    moments = known.total.moments[np.ix_([0, *places], places)] / (float(GRID) ** 2 * known.total.rows)
    clip = known.plan.clip
    mean = variable.location + variable.scale * clip * moments[0, 0]
    spread = variable.scale * clip * float(np.sqrt(max(moments[1, 0] - moments[0, 0] ** 2, 0.0)))
    if spread <= 0:
        return None
    values, features = _grid_features(known.plan, variable, mean, spread)
    fit = _MaximumEntropy(values, features, mean, spread)
    density, factor = fit(moments, known.total.rows)
    if factor < MIN_LOG_BAYES:
        return None
    exact = norm.ppf(np.clip(np.cumsum(density) - density / 2, 1e-12, 1 - 1e-12))
    root = np.sqrt(density)
    design = np.concatenate([np.ones((1, len(values))), features])
    weights = np.linalg.lstsq((design * root).T, exact * root, rcond=1e-10)[0]
    unexplained = float(((exact - weights @ design) ** 2) @ density)
    return NormalScore(weights[1:], factor) if unexplained < 1 - MIN_FIT else None


def _grid_features(plan: StudyPlan, variable: Continuous, mean: float, spread: float) -> tuple[Array, Array]:
    """Return values that are dense in the bulk, and the features of each."""
    centre, width = variable.centre_and_spread
    bent = np.sinh(np.linspace(-_REACH, _REACH, _POINTS))
    values = np.unique(np.concatenate([centre + width * bent, mean + spread * np.linspace(-8, 8, 401)]))
    alone = StudyPlan((variable,), plan.clients[:1], family=plan.family, clip=plan.clip)
    return values, Encoder(alone, plan.clients[0])(to_table({variable.name: values}))[1:] / GRID


class _MaximumEntropy:
    """The exponential family of a variable's features and products of its nonlinear ones, about the normal density."""

    def __init__(self, values: Array, features: Array, mean: float, spread: float) -> None:
        self._pairs = list(combinations_with_replacement(range(POWER_COLUMNS, len(features)), 2))
        functions = np.concatenate([features, [features[i] * features[j] for i, j in self._pairs]])
        base = np.log(np.gradient(values)) + norm.logpdf(values, mean, spread)
        self._base = base - logsumexp(base)
        p = np.exp(self._base)
        self._centre = functions @ p
        self._scale = np.sqrt(((functions - self._centre[:, None]) ** 2) @ p) + 1e-9
        self._functions = (functions - self._centre[:, None]) / self._scale[:, None]

    def __call__(self, moments: Array, rows: int) -> tuple[Array, float]:
        """Return the density at the grid, and its log Bayes factor against the normal one."""
        means = np.concatenate([moments[0], [moments[1 + i, j] for i, j in self._pairs]])
        target = (means - self._centre) / self._scale
        precision = 1 / (rows * PRIOR_SPREAD**2)

        def gain(theta: Array) -> float:
            free = theta @ target - logsumexp(theta @ self._functions + self._base)
            return float(free - precision / 2 * theta @ theta)

        theta = _maximise(gain, lambda theta: self._newton_step(theta, target, precision), len(target))
        density, _, hessian = self._expectations(theta, precision)
        volume = 0.5 * np.linalg.slogdet(hessian / precision)[1]
        return density, float(rows * gain(theta) - volume)

    def _newton_step(self, theta: Array, target: Array, precision: float) -> Array:
        _, mean, hessian = self._expectations(theta, precision)
        return np.asarray(np.linalg.solve(hessian, target - mean - precision * theta))

    def _expectations(self, theta: Array, precision: float) -> tuple[Array, Array, Array]:
        log_p = theta @ self._functions + self._base
        p = np.exp(log_p - logsumexp(log_p))
        mean = self._functions @ p
        covariance = (self._functions * p) @ self._functions.T - np.outer(mean, mean)
        return p, mean, covariance + precision * np.eye(len(theta))


def _maximise(gain: Callable[[Array], float], step: Callable[[Array], Array], width: int) -> Array:
    """Return the maximum of a concave function by Newton's method with halved steps."""
    theta = np.zeros(width)
    value = gain(theta)
    for _ in range(_MAX_NEWTON_STEPS):
        move, length = step(theta), 1.0
        while length > 1e-6 and not gain(theta + length * move) >= value:
            length /= 2
        new = gain(theta + length * move)
        if not new > value:
            break
        theta, rise, value = theta + length * move, new - value, new
        if rise < 1e-10:
            break
    return theta
