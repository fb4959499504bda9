"""Computations of an attacker with a summary and sums of residuals: sums of assumed rows, slopes, and rows that fit.

The attacker knows the plan, the summary, every query and every answer, and some columns of all rows. Two measures: a
solver that moves the hidden values until all sums fit, and the share of values that the sums determine, as a perfect
solver would find them (`determined_share`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import numpy as np
import numpy.typing as npt

from benchmarks.attacks.common import SITE, Array, Attacker, Rng, Table
from fedcdh.privacy.disclosure.thresholds import count_numbers_about
from fedcdh.summaries.encoder import GRID
from fedcdh.summaries.features import Hermite
from fedcdh.summaries.residuals import (
    PRODUCTS,
    SHAPE,
    SIZE,
    Coordinates,
    ResidualQuery,
    ResidualRequest,
    answer_residuals,
)
from fedcdh.summaries.residuals.functions import (
    LOG_SQUARE_OFFSET,
    MAX_COORDINATE,
    MAX_LARGE_RESIDUAL,
    MAX_RESIDUAL,
    PRODUCT_BOUND,
    STEP_CENTRES,
    STEP_WIDTH,
    product_functions,
    product_of,
    shape_bounds,
    shape_functions,
    size_bounds,
    size_functions,
    size_terms,
)
from fedcdh.summaries.residuals.rounding import (
    LOG_UNITS,
    PRODUCT_UNIT,
    ROUNDING,
    STEP_UNIT,
    TAIL_UNIT,
    choose_coarseness,
)
from fedcdh.summaries.summary import Summary

Columns = Sequence[int]
_ROUNDING = 12**-0.5  # the standard deviation of what rounding to whole steps leaves
PRIOR, NEAR = 0.3, 0.1
"""Standard deviations of a value: what a good start leaves open, and what counts as found."""
WITH_PRODUCT = "shape with a product"
"""A question about a shape whose regression has the product of the first two parents."""
PRODUCT_WEIGHT = 0.3


def all_families(column: int, d: int, max_parents: int) -> list[tuple[int, tuple[int, ...]]]:
    """Every node with its parents in which a column takes part."""
    found = []
    for node in range(d):
        others = [j for j in range(d) if j != node]
        for size in range(max_parents + 1):
            found += [(node, some) for some in combinations(others, size) if column == node or column in some]
    return found


@dataclass(frozen=True)
class Question:
    """A straight regression, as both sides compute it: z = (x_node − weights · x_parents) / deviation.

    With a product, z is less a weight times the product of the first two parents.
    """

    node: int
    parents: tuple[int, ...]
    weights: Array
    deviation: float
    about: str

    def residuals(self, x: Array) -> Array:
        z = (x[:, self.node] - x[:, list(self.parents)] @ self.weights) / self.deviation
        return np.asarray(z - PRODUCT_WEIGHT * self.products(x)[0] if self.about == WITH_PRODUCT else z)

    @property
    def pairs(self) -> list[tuple[int, ...]]:
        return list(combinations(self.parents, 2))

    def products(self, x: Array) -> Array:
        """(pairs, rows)."""
        return np.stack([product_of(x[:, one], x[:, other]) for one, other in self.pairs])

    def product_slopes(self, x: Array, column: int) -> Array:
        """Derivatives of the products of a row by its value of a parent."""
        inside, within = np.clip(x, -MAX_COORDINATE, MAX_COORDINATE), np.abs(x[:, column]) < MAX_COORDINATE
        return np.stack([within * (inside[:, sum(pair) - column] if column in pair else 0.0) for pair in self.pairs])

    def functions(self, x: Array) -> Array:
        """(functions, rows), not divided by their bounds."""
        z = self.residuals(x)
        if self.about == PRODUCTS:
            return product_functions(z, self.products(x))
        if self.about == SIZE:
            return size_functions(z, size_terms(x[:, list(self.parents)].T))
        large = [np.clip(z, -MAX_LARGE_RESIDUAL, MAX_LARGE_RESIDUAL) ** 2] if self.about == WITH_PRODUCT else []
        return np.concatenate([shape_functions(z), *(one[None] for one in large)])

    def slopes(self, x: Array, column: int) -> Array:
        """Derivatives of the functions of a row by its value of a column."""
        z, turn = self.residuals(x), np.full(len(x), 1 / self.deviation)
        if column in self.parents:
            turn *= -self.weights[self.parents.index(column)]
            turn -= PRODUCT_WEIGHT * self.product_slopes(x, column)[0] if self.about == WITH_PRODUCT else 0.0
        elif column != self.node:
            return np.zeros((self.n_functions, len(x)))
        if self.about == SHAPE:
            return np.asarray(shape_slopes(z) * turn)
        if self.about == WITH_PRODUCT:
            large = 2 * z * (np.abs(z) < MAX_LARGE_RESIDUAL)
            return np.asarray(np.concatenate([shape_slopes(z), large[None]]) * turn)
        if self.about == PRODUCTS:
            found = self.products(x) * turn * (np.abs(z) < MAX_RESIDUAL)
            return np.asarray(found + z * self.product_slopes(x, column) if column in self.parents else found)
        inside = np.abs(z) < MAX_LARGE_RESIDUAL
        logs, steep = np.log(z**2 + LOG_SQUARE_OFFSET), inside * 2 * z / (z**2 + LOG_SQUARE_OFFSET)
        terms = np.concatenate([np.ones((1, len(x))), size_terms(x[:, list(self.parents)].T)])
        found = terms * steep * turn
        if column in self.parents:
            place, within = 1 + 2 * self.parents.index(column), np.abs(x[:, column]) < MAX_COORDINATE
            found[place] += logs * within
            found[place + 1] += logs * within * 2 * x[:, column]
        return np.asarray(found)

    @property
    def bounds(self) -> Array:
        if self.about == PRODUCTS:
            return np.full(len(self.pairs), PRODUCT_BOUND)
        if self.about == SIZE:
            return size_bounds(len(self.parents))
        return np.append(shape_bounds(), [MAX_LARGE_RESIDUAL**2] if self.about == WITH_PRODUCT else [])

    @property
    def scales(self) -> Array:
        """Units of rounding."""
        if self.about == SIZE:
            return np.array([LOG_UNITS[0], *LOG_UNITS[1:] * len(self.parents)])
        if self.about == PRODUCTS:
            return np.full(len(self.pairs), PRODUCT_UNIT)
        shape = np.concatenate([np.full(4, TAIL_UNIT), np.full(len(STEP_CENTRES), STEP_UNIT)])
        return np.append(shape, TAIL_UNIT) if self.about == WITH_PRODUCT else shape

    @property
    def n_functions(self) -> int:
        return len(self.bounds)


def shape_slopes(z: Array) -> Array:
    """Derivatives of the `shape_functions`."""
    within = np.abs(z) < MAX_RESIDUAL
    steps = (1 - np.tanh((z - STEP_CENTRES[:, None]) / STEP_WIDTH) ** 2) / STEP_WIDTH
    return (
        np.concatenate([np.stack([np.ones_like(z), 2 * z, z / np.sqrt(1 + z**2), 2 * z / (1 + z**2)]), steps]) * within
    )


@dataclass(frozen=True)
class Messages:
    """All that an attacker has of one site: the summary, and answers rounded to multiples of `step`."""

    attacker: Attacker
    summary: Summary
    questions: tuple[Question, ...]
    answers: tuple[Array, ...]
    step: float

    @cached_property
    def centre(self) -> Array:
        return self._standard[0]

    @cached_property
    def spread(self) -> Array:
        return self._standard[1]

    @cached_property
    def _standard(self) -> tuple[Array, Array]:
        return standardise(self.attacker, self.summary)

    def count_about(self, column: int) -> int:
        """Number of sums about a column: of the summary, and of answers."""
        sent = sum(q.n_functions for q in self.questions if column == q.node or column in q.parents)
        return count_numbers_about(self.attacker.plan, self.attacker.numbers[column].name) + sent

    @cached_property
    def _told(self) -> Array:
        return self.attacker.moments(self.summary) / float(GRID) ** 2

    def rest(self, rows: Array, floor: float = 0.0) -> Array:
        """Sums of assumed rows less the true ones, in standard deviations of rounding, at least `floor` √n."""
        features = self.attacker.features(rows) / GRID
        upper, least = np.triu_indices(features.shape[1]), floor * np.sqrt(len(rows))
        parts = [((features.T @ features - self._told)[upper] / np.hypot(self._summary_errors(upper), least))]
        x = (rows - self.centre) / self.spread
        for question, answer in zip(self.questions, self.answers, strict=True):
            parts.append((question.functions(x).sum(axis=1) - answer) / np.hypot(self._errors(question), least))
        return np.concatenate(parts)

    def slopes(self, rows: Array, hidden: Columns, floor: float = 0.0) -> Array:
        """Derivatives of `rest` by the hidden values in standard deviations: sums × (hidden columns × rows)."""
        features, least = self.attacker.features(rows) / GRID, floor * np.sqrt(len(rows))
        each = analytic_slopes(self.attacker, rows)
        m, x = each.shape[2], (rows - self.centre) / self.spread
        i, k = upper = np.triu_indices(features.shape[1])
        weight, parts = 1 / np.hypot(self._summary_errors(upper), least), []
        for j in hidden:
            full = np.zeros_like(features)
            full[:, 1 + j * m : 1 + (j + 1) * m] = each[:, j] * self.spread[j]
            sent = [(full[:, i] * features[:, k] + full[:, k] * features[:, i]).T * weight[:, None]]
            sent += [q.slopes(x, j) / np.hypot(self._errors(q), least)[:, None] for q in self.questions]
            parts.append(np.concatenate(sent))
        return np.concatenate(parts, axis=1)

    def _summary_errors(self, upper: tuple[npt.NDArray[np.intp], ...]) -> Array:
        squares = self._told.diagonal()
        return np.asarray(_ROUNDING / GRID * np.sqrt(np.maximum(np.add.outer(squares, squares)[upper], 1e-6)))

    def _errors(self, question: Question) -> Array:
        """Features are rounded before functions, which have slopes of up to 1/`STEP_WIDTH`, and 10 for logarithms."""
        grid = np.sqrt(self.summary.rows) * (question.bounds + 10 * self.attacker.plan.clip) / GRID
        return np.asarray(_ROUNDING * np.hypot(grid, self.step * question.scales))


def analytic_slopes(attacker: Attacker, rows: Array) -> Array:
    """Derivatives of the features of every value, (rows, d, m), not in steps of the grid."""
    plan, family = attacker.plan, attacker.plan.family
    assert isinstance(family, Hermite)
    fall, rises = family.derivative_recurrence
    found = []
    for j, variable in enumerate(attacker.numbers):
        z, (centre, spread) = rows[:, j], variable.centre_and_spread
        bent = (z * variable.scale + variable.location - centre) / spread
        inside, inner = np.arcsinh(bent), variable.scale / spread / np.sqrt(1 + bent**2)
        values = family(inside)
        before = np.concatenate([np.zeros((len(z), 1)), values[:, :-1]], axis=1)
        hermite = (-fall * inside[:, None] * values + rises * before) * inner[:, None]
        powers = np.stack([np.full_like(z, 1 / plan.clip), 2 * z / plan.clip**2], axis=1)
        found.append(np.concatenate([powers, hermite], axis=1) * (np.abs(z) < plan.clip)[:, None])
    return np.stack(found, axis=1)


def standardise(attacker: Attacker, summary: Summary) -> tuple[Array, Array]:
    """Means and standard deviations of the numbers, in scales, from the summary."""
    moments, clip = attacker.moments(summary) / float(GRID) ** 2, attacker.plan.clip
    linear = 1 + np.arange(len(attacker.numbers)) * ((len(moments) - 1) // len(attacker.numbers))
    mean = moments[0, linear] / moments[0, 0]
    return mean * clip, np.sqrt(moments[linear, linear] / moments[0, 0] - mean**2) * clip


def covariance(attacker: Attacker, summary: Summary) -> Array:
    """Correlations of the numbers, from the summary."""
    moments = attacker.moments(summary) / float(GRID) ** 2
    linear = 1 + np.arange(len(attacker.numbers)) * ((len(moments) - 1) // len(attacker.numbers))
    mean = moments[0, linear] / moments[0, 0]
    found = moments[np.ix_(linear, linear)] / moments[0, 0] - np.outer(mean, mean)
    return np.asarray(found / np.sqrt(np.outer(found.diagonal(), found.diagonal())))


_LEAST_PARENTS = {SHAPE: 0, SIZE: 1, PRODUCTS: 2, WITH_PRODUCT: 2}


def make_questions(
    attacker: Attacker,
    summary: Summary,
    families: Sequence[tuple[int, tuple[int, ...]]],
    kinds: Sequence[str],
    sharper: float = 1.0,
) -> tuple[Question, ...]:
    """Return the questions of a coordinator about these families: regressions by the summary."""
    correlations, found = covariance(attacker, summary), []
    for node, parents in families:
        inner, cross = correlations[np.ix_(parents, parents)], correlations[list(parents), node]
        weights: Array = np.asarray(np.linalg.solve(inner + 1e-5 * np.eye(len(parents)), cross), dtype=np.float64)
        left = float(1 - 2 * weights @ cross + weights @ inner @ weights)
        deviation = float(np.sqrt(max(left, 1e-7)))
        found += [
            Question(node, parents, weights, deviation / sharper, about)
            for about in kinds
            if len(parents) >= _LEAST_PARENTS[about]
        ]
    return tuple(found)


def ask(
    table: Table,
    attacker: Attacker,
    summary: Summary,
    questions: Sequence[Question],
    rounding: float,
    *,
    coarse: bool = False,
) -> Messages:
    """Return what a site answers, also if asked for coarse sums; or sums that are exact or rounded in another way."""
    if coarse:
        rounding = ROUNDING * choose_coarseness(attacker.plan, summary.rows)
    step, mean_spread = rounding * np.sqrt(summary.rows), standardise(attacker, summary)
    if coarse or rounding == ROUNDING:
        answers = _ask_site(table, attacker, summary, questions, coarse=coarse)
    else:
        x = (attacker.scaled(table) - mean_spread[0]) / mean_spread[1]
        exact = [question.functions(x).sum(axis=1) for question in questions]
        steps = [step * question.scales for question in questions]
        answers = [np.rint(one / by) * by if step else one for one, by in zip(exact, steps, strict=True)]
    return Messages(attacker, summary, tuple(questions), tuple(answers), step)


def _ask_site(
    table: Table, attacker: Attacker, summary: Summary, questions: Sequence[Question], *, coarse: bool
) -> list[Array]:
    """Return the answers of the site."""
    if not questions:
        return []
    queries = [to_query(question, attacker) for question in questions]
    request = replace(make_request(queries, attacker, summary), coarse=coarse)
    sent = {one.query: one.sums / GRID for one in answer_residuals(table, attacker.plan, SITE, request, summary)}
    return [sent[query] * question.bounds for query, question in zip(queries, questions, strict=True)]


def to_query(question: Question, attacker: Attacker) -> ResidualQuery:
    """Return a question as a site is asked."""
    names, parents = [v.name for v in attacker.numbers], question.parents
    about = SHAPE if question.about == WITH_PRODUCT else question.about
    shape = (about, tuple(question.weights), (1,) * len(parents), question.deviation)
    query = ResidualQuery(names[question.node], tuple(names[p] for p in parents), *shape)
    if question.about != WITH_PRODUCT:
        return query
    product = tuple(names[p] for p in parents[:2])
    return replace(query, product=product, product_weights=(PRODUCT_WEIGHT, 0.0, 0.0, 0.0))


def make_request(queries: Sequence[ResidualQuery], attacker: Attacker, summary: Summary) -> ResidualRequest:
    """Return a request with the standardised values as coordinates."""
    _, spread = standardise(attacker, summary)
    plan, rows = attacker.plan, float(GRID) ** 2 * summary.rows
    means = attacker.moments(summary)[0, 1:].reshape(len(spread), -1) / rows
    coordinates = {
        variable.name: Coordinates(tuple(mean), ((plan.clip / own, *[0.0] * (len(mean) - 1)),))
        for variable, mean, own in zip(attacker.numbers, means.tolist(), spread.tolist(), strict=True)
    }
    return ResidualRequest(plan.fingerprint, 1, coordinates, tuple(sorted(queries, key=lambda query: query.key)))


# What a perfect solver would find


def determined_share(messages: Messages, rows: Array, hidden: Columns) -> float:
    """Share of hidden values with a posterior standard deviation below 0.1, linearised at the truth; prior 0.3."""
    return float((posterior_deviations(messages.slopes(rows, hidden)) < NEAR).mean())


def posterior_deviations(slopes: Array) -> Array:
    """Return the posterior deviation of every value, given sums with unit errors and independent priors."""
    sent = slopes[np.any(slopes != 0, axis=1)]
    if len(sent) < sent.shape[1]:
        sizes, vectors = np.linalg.eigh(sent @ sent.T)
        known = PRIOR**4 * ((vectors.T @ sent) ** 2 / (1 + np.maximum(sizes, 0)[:, None] * PRIOR**2)).sum(axis=0)
        return np.asarray(np.sqrt(np.maximum(PRIOR**2 - known, 0.0)))
    sizes, vectors = np.linalg.eigh(sent.T @ sent)
    return np.asarray(np.sqrt(vectors**2 @ (1 / (np.maximum(sizes, 0) + PRIOR**-2))))


# A solver


TOLERANCE = 1e-4
FLOORS = (0.1, 0.05, 0.03, 0.02, 0.01, 5e-3, 3e-3, 1e-3, 3e-4, 1e-4)
"""Errors of sums that the solver allows for, one after the other, in roots of the rows: it starts on a smooth slope."""


def guess(messages: Messages, rows: Array, hidden: Columns) -> tuple[Array, Array]:
    """Regressions of the hidden on the known columns: values, and the root of their covariance, in scales."""
    correlations = covariance(messages.attacker, messages.summary)
    known = [j for j in range(len(correlations)) if j not in hidden]
    x = (rows - messages.centre) / messages.spread
    weights = np.linalg.solve(correlations[np.ix_(known, known)], correlations[np.ix_(known, hidden)])
    left = correlations[np.ix_(hidden, hidden)] - correlations[np.ix_(hidden, known)] @ weights
    root = np.linalg.cholesky(left + 1e-9 * np.eye(len(left)))
    return np.asarray(x[:, known] @ weights), np.asarray(root, dtype=np.float64)


def recover_values(
    messages: Messages, rows: Array, hidden: Columns, rng: Rng, *, starts: int = 3, steps: int = 60
) -> Array:
    """Hidden values, in standard deviations, whose sums are those of the messages: the best of several starts.

    `rows` are used for their known columns only. Levenberg and Marquardt's method, with the regression on the known
    columns as the prior; the errors that sums may have shrink to those of rounding.
    """
    centre, root = guess(messages, rows, hidden)
    spread = np.sqrt((root**2).sum(axis=1))
    blind = len(hidden) == rows.shape[1]  # equal rows would stay equal
    found = []
    for start in range(starts):
        x = centre + (rng.standard_normal(centre.shape) @ root.T if start or blind else 0.0)
        found.append(_descend(messages, rows, hidden, (x, centre, spread), FLOORS, steps))
    return min(found, key=lambda one: one[1])[0]


def refine_values(messages: Messages, rows: Array, hidden: Columns, near: Array, steps: int = 60) -> Array:
    """The same from values that are known to `PRIOR` standard deviations from elsewhere."""
    prior = (near, near, np.full(len(hidden), PRIOR))
    return _descend(messages, rows, hidden, prior, FLOORS[2:], steps)[0]


def _descend(
    messages: Messages,
    rows: Array,
    hidden: Columns,
    prior: tuple[Array, Array, Array],
    floors: Sequence[float],
    steps: int,
) -> tuple[Array, float]:
    x, centre, spread = prior
    cost = np.inf
    for floor in floors:
        x, cost = _fit(messages, rows, hidden, (x, centre, spread), floor, steps)
    return x, cost


def _fit(
    messages: Messages, rows: Array, hidden: Columns, prior: tuple[Array, Array, Array], floor: float, steps: int
) -> tuple[Array, float]:
    x, centre, spread = prior
    scale = np.repeat(spread, len(rows))

    def place(values: Array) -> Array:
        found = rows.copy()
        found[:, list(hidden)] = messages.centre[list(hidden)] + messages.spread[list(hidden)] * values
        return found

    def cost_of(values: Array, rest: Array) -> float:
        return float(rest @ rest + (((values - centre) / spread) ** 2).sum())

    rest = messages.rest(place(x), floor)
    cost, damping = cost_of(x, rest), 0.1
    for _ in range(steps):
        slopes = messages.slopes(place(x), hidden, floor) * scale
        concerned = np.any(slopes != 0, axis=1)
        slopes = slopes[concerned]
        away = ((centre - x) / spread).T.ravel()
        decompose = np.linalg.eigh(slopes @ slopes.T if slopes.shape[0] < slopes.shape[1] else slopes.T @ slopes)
        for _ in range(6):
            move = (_step(slopes, rest[concerned], away, damping, decompose) * scale).reshape(len(spread), -1).T
            tried = x + np.clip(move, -1, 1)
            new = messages.rest(place(tried), floor)
            if (now := cost_of(tried, new)) < cost:
                break
            damping *= 5
        else:
            break
        done = now > cost * (1 - TOLERANCE)
        x, rest, cost, damping = tried, new, now, max(damping / 10, 1e-6)
        if done:
            break
    return x, cost


def _step(slopes: Array, rest: Array, away: Array, damping: float, decompose: tuple[Array, Array]) -> Array:
    """Minimise |slopes δ + rest|² + |δ − away|² + damping |δ|² in the smaller of the two spaces."""
    first, (sizes, vectors) = away / (1 + damping), decompose
    aim = -rest - slopes @ first
    if slopes.shape[0] < slopes.shape[1]:
        inverse = 1 / (1 + damping + np.maximum(sizes, 0))
        return np.asarray(first + slopes.T @ (vectors @ (inverse * (vectors.T @ aim))))
    inverse = 1 / (1 + damping + np.maximum(sizes, 0))
    return np.asarray(first + vectors @ (inverse * (vectors.T @ (slopes.T @ aim))))
