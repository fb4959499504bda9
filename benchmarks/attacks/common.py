"""What the attacks have in common: features without rounding, rows that fit sums, and what chance alone would hit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from fedcdh.errors import DisclosureError
from fedcdh.privacy.disclosure.policy import Policy
from fedcdh.privacy.releases import ReleaseContext, release_summary
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.encoder import GRID
from fedcdh.summaries.features import FeatureFamily, Hermite
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.summary import Summary
from fedcdh.summaries.variables import Continuous

Array = npt.NDArray[np.float64]
Rng = np.random.Generator
Table = dict[str, npt.NDArray]

SITE = "here"
STEPS, LONGEST = 1000, 400
"""Of the attack on all rows at once: from all its starts together, and from one."""
_STEP = 1e-5
_ROUNDING = 12**-0.5  # the standard deviation of what rounding to whole steps leaves


def plan_of(table: Table, family: FeatureFamily = Hermite()) -> StudyPlan:  # noqa: B008 (a value)
    """As profiles would have it."""
    return StudyPlan.from_tables({SITE: table}, family=family)


def summary_of(table: Table, plan: StudyPlan) -> Summary:
    """Without any policy."""
    return summarize(table, plan, SITE)


def sent_summary(table: Table, plan: StudyPlan, policy: Policy = Policy()) -> Summary:  # noqa: B008 (a value)
    """Return the summary that leaves a site: rare levels are merged, and small counts of pairs are rounded."""
    return release_summary(table, plan, ReleaseContext(SITE, policy))[0]


def refusal_of(table: Table, plan: StudyPlan, policy: Policy = Policy()) -> str:  # noqa: B008 (a value)
    """The first reason why a site with the default policy keeps this summary; "" if it lets it go."""
    try:
        policy.check_plan(plan)
        release_summary(table, plan, ReleaseContext(SITE, policy))
    except DisclosureError as refused:
        return str(refused).splitlines()[1].removeprefix("- ")
    return ""


def normal_rows(n: int, d: int, rng: Rng) -> Table:
    """d numbers with standard deviation about 1 that depend on each other."""
    noise = rng.standard_normal((n, d))
    rows = noise + 0.5 * np.c_[np.zeros(n), noise[:, :-1]]
    return {f"v{j}": rows[:, j] for j in range(d)}


@dataclass(frozen=True)
class Attacker:
    """Who has the plan: rows are values of its continuous variables in scales from their locations, n × d."""

    plan: StudyPlan

    @cached_property
    def numbers(self) -> list[Continuous]:
        return [variable for variable in self.plan.variables if isinstance(variable, Continuous)]

    @cached_property
    def columns(self) -> npt.NDArray[np.intp]:
        """Of the continuous variables in the moments: the constant, then variable by variable."""
        spans = self.plan.layout.spans
        return np.array([0, *(k for v in self.numbers for k in range(spans[v.name].start, spans[v.name].stop))])

    def scaled(self, table: Table) -> Array:
        return np.stack([(table[v.name] - v.location) / v.scale for v in self.numbers], axis=-1)

    def moments(self, summary: Summary) -> Array:
        """Of the constant and the numbers, in steps of the grid."""
        return np.asarray(summary.moments[np.ix_(self.columns, self.columns)].astype(np.float64))

    def of_each(self, rows: Array) -> Array:
        """The features of every value, in steps of the grid but not rounded: (..., d, m)."""
        clip, family = self.plan.clip, self.plan.family
        z = np.clip(rows, -clip, clip)
        inside = z
        if family.compresses_tails:
            scale, shift, spread = (
                np.array(part)
                for part in zip(
                    *((v.scale, v.location - v.centre_and_spread[0], v.centre_and_spread[1]) for v in self.numbers),
                    strict=True,
                )
            )
            inside = np.arcsinh((z * scale + shift) / spread)
        linear = z / clip
        return np.asarray(GRID * np.concatenate([linear[..., None], linear[..., None] ** 2, family(inside)], axis=-1))

    def features(self, rows: Array) -> Array:
        """(..., 1 + d m), the constant first."""
        each = self.of_each(rows)
        flat = each.reshape(*each.shape[:-2], -1)
        return np.concatenate([np.full((*flat.shape[:-1], 1), float(GRID)), flat], axis=-1)

    def slopes(self, rows: Array) -> Array:
        """Derivatives of `of_each`, (..., d, m)."""
        return np.asarray((self.of_each(rows + _STEP) - self.of_each(rows - _STEP)) / (2 * _STEP))

    def guesses(self, summary: Summary, number: int, rng: Rng) -> Array:
        """Rows drawn from the normal distribution with the means and the covariance that the summary tells."""
        moments = self.moments(summary) / float(GRID) ** 2
        linear = 1 + np.arange(len(self.numbers)) * ((len(moments) - 1) // len(self.numbers))
        mean = moments[0, linear] / moments[0, 0] * self.plan.clip
        covariance = moments[np.ix_(linear, linear)] / moments[0, 0] * self.plan.clip**2 - np.outer(mean, mean)
        return rng.multivariate_normal(mean, covariance + 1e-9 * np.eye(len(mean)), number)


# One row at a time


def recover_rows_singly(messages: Sequence[tuple[Attacker, Summary]], rng: Rng, starts: int = 2000) -> Array:
    """Rows whose features lie in the row space of the moments, where rows are fewer than columns; of every plan.

    All features of the table lie there exactly, with their rounding: across, whatever is left of a true row is what
    rounding moved it by. Other points are left over with more, up to where the columns above n, of all plans, are
    fewer than the variables.
    """
    attacker, summary = messages[0]
    d, n = len(attacker.numbers), summary.rows
    across = [np.linalg.eigh(one.moments(told))[1][:, : max(len(one.columns) - n, 0)] for one, told in messages]
    if sum(plane.shape[1] for plane in across) < d:
        return np.empty((0, d))
    per_variable = [plane[1:].reshape(d, -1, plane.shape[1]) for plane in across]

    def left(rows: Array) -> Array:
        parts = [one.features(rows) @ plane for (one, _), plane in zip(messages, across, strict=True)]
        return np.concatenate(parts, axis=1)

    def slope(rows: Array) -> Array:
        parts = [
            np.einsum("sdm,dmk->skd", one.slopes(rows), plane)
            for (one, _), plane in zip(messages, per_variable, strict=True)
        ]
        return np.concatenate(parts, axis=1)

    rows = descend(1.5 * attacker.guesses(summary, starts, rng), left, slope)
    rest = np.sqrt((left(rows) ** 2).mean(axis=1))
    order = np.argsort(rest)
    found: list[Array] = []
    for k in order[rest[order] < 3 * _ROUNDING]:
        if all(np.abs(rows[k] - row).max() > 0.05 for row in found):
            found.append(rows[k])
    return np.array(found[: summary.rows]).reshape(-1, d)


def descend(rows: Array, left: Callable[[Array], Array], slope: Callable[[Array], Array], steps: int = 60) -> Array:
    """Levenberg and Marquardt's method for many starts at once."""
    damping, rest = np.full(len(rows), 1e-2), left(rows)
    for _ in range(steps):
        jacobian = slope(rows)
        square = np.einsum("ski,skj->sij", jacobian, jacobian)
        size = np.einsum("sii->si", square)
        square[:, np.arange(rows.shape[1]), np.arange(rows.shape[1])] += damping[:, None] * size + 1e-12
        move = -np.linalg.solve(square, np.einsum("ski,sk->si", jacobian, rest)[..., None])[..., 0]
        tried = np.clip(rows + np.clip(move, -1, 1), -15, 15)
        new = left(tried)
        better = (new**2).sum(axis=1) < (rest**2).sum(axis=1)
        rows, rest = np.where(better[:, None], tried, rows), np.where(better[:, None], new, rest)
        damping = np.clip(np.where(better, damping / 5, damping * 3), 1e-12, 1e6)
    return rows


# All rows at once


def recover_rows_jointly(
    messages: Sequence[tuple[Attacker, Summary]],
    rng: Rng,
    *,
    known: Array | None = None,
    restarts: int = 3,
    steps: int = STEPS,
) -> Array:
    """Rows whose sums are those of all these summaries of the same rows, as nearly as rounding lets them be.

    Levenberg and Marquardt's method on all n d values; each sum counts by what rounding may have moved it. Rows that
    are known, or were guessed by other means, are where it starts. The steps of all restarts together are counted, and
    not the time: on every machine, however busy, the attack is the same.
    """
    attacker, summary = messages[0]
    best, least = attacker.guesses(summary, summary.rows, rng), np.inf
    for _ in range(restarts):
        start = attacker.guesses(summary, summary.rows, rng)
        if known is not None:
            start[: len(known)] = known
        rows, rest, taken = _fit_rows(messages, start, min(steps, LONGEST))
        steps -= taken
        if rest < least:
            best, least = rows, rest
        if least < 1.5 or not steps:
            break
    return best


def _fit_rows(messages: Sequence[tuple[Attacker, Summary]], rows: Array, steps: int) -> tuple[Array, float, int]:
    """Rows, the root mean square of what they leave, in standard deviations of rounding, and how many steps it took."""
    damping, taken = 1e-2, 0
    rest, slopes = _residuals(messages, rows)
    while taken < steps and damping <= 1e10 and (rest**2).mean() >= 0.5:
        taken += 1
        tried = rows + np.clip(_step(slopes, rest, damping).reshape(rows.shape), -1, 1)
        new, new_slopes = _residuals(messages, tried)
        if (new**2).sum() < (rest**2).sum():
            rows, rest, slopes, damping = tried, new, new_slopes, max(damping / 4, 1e-14)
        else:
            damping *= 4
    return rows, float(np.sqrt((rest**2).mean())), taken


def _step(slopes: Array, rest: Array, damping: float) -> Array:
    """In the smaller of the two spaces, that of sums or that of values."""
    if slopes.shape[0] < slopes.shape[1]:
        square = slopes @ slopes.T
        square[np.diag_indices(len(square))] += damping * square.diagonal().mean()
        return np.asarray(-slopes.T @ np.linalg.solve(square, rest))
    square = slopes.T @ slopes
    square[np.diag_indices(len(square))] += damping * (square.diagonal() + 1e-6 * square.diagonal().mean())
    return np.asarray(-np.linalg.solve(square, slopes.T @ rest))


def _residuals(messages: Sequence[tuple[Attacker, Summary]], rows: Array) -> tuple[Array, Array]:
    parts = [_residual(attacker, summary, rows) for attacker, summary in messages]
    return np.concatenate([rest for rest, _ in parts]), np.concatenate([slopes for _, slopes in parts])


def _residual(attacker: Attacker, summary: Summary, rows: Array) -> tuple[Array, Array]:
    told, features, slopes = attacker.moments(summary), attacker.features(rows), attacker.slopes(rows)
    n, d, m = slopes.shape
    upper = np.triu_indices(len(told))
    squares = told.diagonal()
    weight = 1 / (_ROUNDING * np.sqrt(np.maximum(np.add.outer(squares, squares)[upper], 1.0)))
    weight[0] = 0.0  # the number of rows is known
    full = np.zeros((n, d, len(told)))
    for j in range(d):
        full[:, j, 1 + j * m : 1 + (j + 1) * m] = slopes[:, j]
    i, k = upper
    jacobian = full[:, :, i] * features[:, None, k] + full[:, :, k] * features[:, None, i]
    rest = (features.T @ features - told)[upper] * weight
    return rest, np.asarray((jacobian.reshape(n * d, -1) * weight).T)


# The balance


def share_within(true: Array, found: Array, tolerance: float, spread: Array | None = None) -> float:
    """Of the true rows, those with a found row next to them: no value farther off than this, in standard deviations."""
    if not len(found):
        return 0.0
    return float(is_within(true, found, tolerance, spread).mean())


def is_within(true: Array, found: Array, tolerance: float, spread: Array | None = None) -> npt.NDArray[np.bool_]:
    scale = true.std(axis=0) if spread is None else spread
    scale = np.where(scale > 0, scale, 1.0)
    apart = np.abs(true[:, None] - found[None]) / scale
    return np.asarray((apart.max(axis=-1) <= tolerance).any(axis=1))
