"""Questions about residuals that are made to read off one person who stands out, and the checks that refuse them.

The person's value of one number is known, and the attacker wants another. Each question makes that person's residual
differ from all others: by a huge weight, by the size of the noise, or by a function of the known number that is nearly
0 for everybody else. The answer is compared with answers that simulated rows would have given. Beside it stands what
the summary tells about the person by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.attacks.common import SITE, Array, Attacker, Rng, Table, plan_of, summary_of
from benchmarks.attacks.outlier import columns_of_variable, leverage_at, read_row, roots, table_with_outlier
from benchmarks.attacks.residual_sums import covariance, standardise
from fedcdh.errors import DisclosureError
from fedcdh.privacy.releases import ReleaseContext, release_answer
from fedcdh.summaries.encoder import GRID
from fedcdh.summaries.joint import DEFAULT_MAX_ROUNDS, RoundBudget
from fedcdh.summaries.residuals import SHAPE, Coordinates, ResidualQuery, ResidualRequest, answer_residuals
from fedcdh.summaries.residuals.functions import MAX_COORDINATE, MAX_LOG_SIZE, shape_bounds, shape_functions
from fedcdh.summaries.residuals.rounding import ROUNDING, rounding_units
from fedcdh.summaries.summary import Summary

KNOWN, WANTED = "v0", "v1"
FAR = 4.0
"""The known value, in standard deviations: the default policy lets such a table go."""
_SIMULATIONS = 150
_GRID = np.linspace(-4.0, 4.0, 801)


@dataclass(frozen=True)
class Hostile:
    """z = (x − shift − weight · u − peak · g(u)) / deviation · exp(−log size(u) / 2); g is 1 at the known value.

    `width` is 2 if the regression names g, whatever its weight, and 1 if not.
    """

    weight: float = 0.0
    peak: float = 0.0
    shift: float = 0.0
    deviation: float = 1.0
    size: tuple[float, ...] = ()
    width: int = 2

    def residuals(self, wanted: Array, known: Array, peak: Array) -> Array:
        z = (wanted - self.shift - self.weight * known - self.peak * peak) / self.deviation
        if not self.size:
            return np.asarray(z)
        u = np.clip(known, -MAX_COORDINATE, MAX_COORDINATE)
        logs = self.size[0] + self.size[1] * u + self.size[2] * (u**2 - 1)
        return np.asarray(z * np.exp(-np.clip(logs, -MAX_LOG_SIZE, MAX_LOG_SIZE) / 2))


@dataclass(frozen=True)
class Target:
    """A site with one person who stands out, and what an attacker knows of it. Values are in standard deviations."""

    table: Table
    attacker: Attacker
    summary: Summary

    @property
    def values(self) -> Array:
        mean, spread = standardise(self.attacker, self.summary)
        return np.asarray((self.attacker.scaled(self.table) - mean) / spread)

    def peak_weights(self) -> Array:
        """Weights of the known number's features, of mean 0, whose sum is 1 at the known value and small elsewhere."""
        columns = columns_of_variable(self.attacker, [0])
        root = roots(self.attacker.moments(self.summary)[np.ix_(columns, columns)])
        features = self.attacker.features(self.attacker.scaled(self.table)[:1])[0, columns]
        weights = root.T @ (root @ features)
        return np.asarray(weights[1:] / (weights @ features) * GRID)

    def peak(self, rows: Array) -> Array:
        """The function of the known number, in scales, at these rows."""
        features = self.attacker.features(rows)[:, columns_of_variable(self.attacker, [0])][:, 1:] / GRID
        return np.asarray((features - self._means()[0]) @ self.peak_weights())

    def _means(self) -> Array:
        found = self.attacker.moments(self.summary)[0, 1:].reshape(len(self.attacker.numbers), -1)
        return np.asarray(found / (float(GRID) ** 2 * self.summary.rows))

    def first_guess(self) -> tuple[float, float]:
        """Return the guess of the wanted value from the summary, and its likely error."""
        known = {0: float(self.attacker.scaled(self.table)[0, 0])}
        mean, spread = standardise(self.attacker, self.summary)
        leverage = leverage_at(self.attacker, self.summary, known)
        value = (read_row(self.attacker, self.summary, known)[1] - mean[1]) / spread[1]
        return float(value), float(np.sqrt(max(1 - leverage, 1e-3) / leverage))

    # What the site computes

    def request(self, question: Hostile, number: int = 1) -> ResidualRequest:
        plan, (_, spread), means = self.attacker.plan, standardise(self.attacker, self.summary), self._means()
        rest = [0.0] * (means.shape[1] - 1)
        shifted = (means[1, 0] + question.shift * spread[1] / plan.clip, *means[1, 1:])
        size = float(np.sqrt(np.mean(self.peak(self.attacker.scaled(self.table)) ** 2)))  # coordinates are standardised
        coordinates = {
            KNOWN: Coordinates(tuple(means[0]), ((plan.clip / spread[0], *rest), tuple(self.peak_weights() / size))),
            WANTED: Coordinates(tuple(shifted), ((plan.clip / spread[1], *rest),)),
        }
        alone = not (question.weight or question.peak or question.size)
        query = ResidualQuery(
            WANTED,
            () if alone else (KNOWN,),
            SHAPE,
            () if alone else (question.weight, question.peak * size)[: question.width],
            () if alone else (question.width,),
            question.deviation,
            size=question.size,
        )
        return ResidualRequest(plan.fingerprint, number, coordinates, (query,))

    def answer(self, question: Hostile) -> Array:
        """Return the answer of a site that does not check the question."""
        request = self.request(question)
        (sent,) = answer_residuals(self.table, self.attacker.plan, SITE, request, self.summary)
        return np.asarray(sent.sums[: len(shape_bounds())] / GRID * shape_bounds())

    def exact_answer(self, question: Hostile) -> Array:
        """The same without rounding."""
        values, peak = self.values, self.peak(self.attacker.scaled(self.table))
        return np.asarray(shape_functions(question.residuals(values[:, 1], values[:, 0], peak)).sum(axis=1))

    def refusals(self, questions: list[Hostile]) -> list[str]:
        """Return the refusals of one request after the other, under the default policy."""
        found, spent = list[str](), RoundBudget()
        for number, question in enumerate(questions):
            request = self.request(question, number + 1)
            try:
                _, spent = release_answer(self.table, self.attacker.plan, ReleaseContext(SITE), request, spent)
            except DisclosureError as problem:
                found += str(problem).splitlines()[1:]
        return found


def make_target(n: int, seed: int) -> Target:
    """Return normal rows, the first of which stands out by one number."""
    table = table_with_outlier(n, 6, [FAR], np.random.default_rng([seed, n, 21]))
    plan = replace(plan_of(table), max_rounds=DEFAULT_MAX_ROUNDS, max_bytes=10**6)
    return Target(table, Attacker(plan), summary_of(table, plan))


def _by_weight(target: Target) -> list[Hostile]:
    known = float(target.values[0, 0])
    return [Hostile(weight=-20.0, shift=target.first_guess()[0] + 20.0 * known)]


def _by_size(target: Target) -> list[Hostile]:
    """Log sizes of 8 for everybody else, and of 0 for the person."""
    known = min(float(target.values[0, 0]), MAX_COORDINATE)
    return [Hostile(shift=target.first_guess()[0], size=(8.0 * known / 0.5, -8.0 / 0.5, 0.0))]


def _by_two_weights(target: Target) -> list[Hostile]:
    return [Hostile(weight=0.3, peak=0.0), Hostile(weight=0.3, peak=1.0)]


def _by_two_widths(target: Target) -> list[Hostile]:
    """Another form of the same regression is another question."""
    return [Hostile(weight=0.3, width=1), Hostile(weight=0.3, peak=1.0)]


def _by_two_families(target: Target) -> list[Hostile]:
    """The same residuals but for the person, of two regressions that may both be asked about."""
    return [Hostile(), Hostile(peak=1.0)]


def _by_sharp_families(target: Target) -> list[Hostile]:
    """The same with residuals as large as the checks let pass."""
    return [replace(question, deviation=0.55) for question in _by_two_families(target)]


def _by_far_families(target: Target) -> list[Hostile]:
    """The same with the person farther out than anybody else."""
    return [Hostile(), Hostile(peak=-4.0)]


QUESTIONS: dict[str, Callable[[Target], list[Hostile]]] = {
    "a huge weight": _by_weight,
    "a size of noise": _by_size,
    "the same twice": _by_two_weights,
    "two forms": _by_two_widths,
    "two regressions": _by_two_families,
    "two, sharper": _by_sharp_families,
    "two, farther": _by_far_families,
}


def read_person(target: Target, questions: list[Hostile], rng: Rng, *, rounded: bool) -> float:
    """Return the wanted value of the person that explains the answers best, given the summary."""
    sent = np.concatenate([target.answer(q) if rounded else target.exact_answer(q) for q in questions])
    mean, error = target.first_guess()
    known = float(target.values[0, 0])
    others = np.array([_simulate(target, questions, (mean, known), rng) for _ in range(_SIMULATIONS)])
    (query,) = target.request(questions[0]).queries
    units = np.tile(rounding_units(replace(query, size=()), target.attacker.plan)[0], len(questions))
    steps = ROUNDING * np.sqrt(target.summary.rows) * units if rounded else 1e-3 * units
    spread = np.cov(others.T) + np.diag(steps**2 / 12 + 1e-6)
    at = [shape_functions(q.residuals(_GRID, np.array(known), np.array(1.0))) for q in questions]
    left = sent[:, None] - others.mean(axis=0)[:, None] - np.concatenate(at)
    fit = -0.5 * (left * np.linalg.solve(spread, left)).sum(axis=0) - 0.5 * ((_GRID - mean) / error) ** 2
    weights = np.exp(fit - fit.max())
    return float(weights @ _GRID / weights.sum())


def _simulate(target: Target, questions: list[Hostile], person: tuple[float, float], rng: Rng) -> Array:
    """Return sums over all rows but the person's, from simulated rows with the means and covariances of the summary."""
    n, correlations = target.summary.rows, covariance(target.attacker, target.summary)[:2, :2]
    own = np.array([person[1], person[0]])
    wanted = (n * correlations - np.outer(own, own)) / (n - 1) - np.outer(own, own) / (n - 1) ** 2
    drawn = rng.standard_normal((n - 1, 2))
    drawn -= drawn.mean(axis=0)
    root = np.linalg.cholesky(wanted) @ np.linalg.inv(np.linalg.cholesky(drawn.T @ drawn / (n - 1)))
    x = drawn @ root.T - own / (n - 1)
    mean, spread = standardise(target.attacker, target.summary)
    rows = np.tile(mean, (n - 1, 1))
    rows[:, :2] += x * spread[:2]
    peak = target.peak(rows)
    return np.concatenate([shape_functions(q.residuals(x[:, 1], x[:, 0], peak)).sum(axis=1) for q in questions])


def attack_person(name: str, n: int, seed: int) -> tuple[Array, list[str]]:
    """Errors: by the summary alone, with exact answers, with rounded answers; and what the checks say."""
    target, rng = make_target(n, seed), np.random.default_rng([seed, n, 22])
    questions, true = QUESTIONS[name](target), float(target.values[0, 1])
    found = [target.first_guess()[0], *(read_person(target, questions, rng, rounded=r) for r in (False, True))]
    return np.abs(np.array(found) - true), target.refusals(questions)
