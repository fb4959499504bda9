"""The same tests with the conditioning variables acting together: what a further round of messages makes possible.

x ⫫ y | Z is tested by regressions as in `pairs` and `mechanism`, but on functions of all of Z, not on sums of functions
of its members: the moments of joint features of Z are asked for, at most once for every set and at most one request
for every batch of questions. With one conditioning variable, the summary already holds all there is.

Columns cost degrees of freedom, so joint features are used only where they help to predict x or y. Should neither
need them, the test is that of the one message; a joint effect too small to be seen there is too small to matter.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import linalg

from fedcdh._runtime.array_types import Array, Indices
from fedcdh.errors import SummaryError
from fedcdh.inference.batched_regression import (
    combine_p_values,
    concatenate_columns,
    explained_scatter,
    partial_covariance,
    pillai_test,
    residual_scatter,
)
from fedcdh.inference.independence.query_batch import JointColumns
from fedcdh.inference.independence.regression_test import RegressionTest
from fedcdh.inference.orthonormal_basis import Basis
from fedcdh.protocols import DOMAIN, Answer, Query
from fedcdh.summaries.aggregation import Cohort
from fedcdh.summaries.encoder import GRID
from fedcdh.summaries.joint import (
    AnswerSource,
    JointRequest,
    JointSummary,
    RoundBudget,
    Spent,
    joint_terms,
    to_variable_set,
)
from fedcdh.summaries.joint.request import VariableSet, payload_bytes
from fedcdh.summaries.summary import MAX_CONSTANT_VARIANCE

MIN_NEW_JOINT_VARIANCE = 1e-5
"""A joint feature is kept if at least this share of its variance is not explained by those before it."""
JOINT_EFFECT_ALPHA = 0.05
"""Level at which a variable counts as one on which others act together, or in another way at each client."""
SEPARATE, PLAIN, CURVED, DIFFERENT = range(4)
"""How a variable may depend on several: one by one; on plain products; on all joint features; on these in another way
at each client."""
_NO_COLUMNS = np.zeros(0, dtype=np.intp)
SQUARES_ONLY = JointColumns(with_squares=True)


class JointRegressionTest:
    """Answers from the one message where it suffices, and else asks the source for joint features, one request a batch.

    Beyond the plan's budget of rounds and bytes, or `most_sets`, nothing is asked: the one message has to do.
    """

    def __init__(self, cohort: Cohort, basis: Basis, source: AnswerSource, max_sets: int) -> None:
        self._cohort, self._basis, self._source = cohort, _add_client_curvature(basis), source
        self._one_message = RegressionTest(self._basis, SQUARES_ONLY)
        self._known: dict[VariableSet, tuple[JointSummary, ...]] = {}  # in the order of the cohort's clients
        self._not_asked: set[VariableSet] = set()
        self._most_sets = max_sets
        self._asked, self._bytes = RoundBudget(), 0

    def __call__(self, questions: Sequence[Query], /) -> list[Answer]:
        """Answers in the order of the questions."""
        self._learn(questions)
        by_set: dict[VariableSet, list[Query]] = defaultdict(list)
        for question in dict.fromkeys(questions):
            by_set[_conditioning_set(question)].append(question)
        found: dict[Query, Answer] = {}
        plain = [question for names, asked in by_set.items() if names not in self._known for question in asked]
        found.update(zip(plain, self._one_message(plain), strict=True))
        rows = int(self._basis.rows.sum())
        for names in by_set.keys() & self._known.keys():
            results = _answer_queries(self._basis, self._cohort, self._known[names], by_set[names])
            found.update({question: Answer(question, *result, rows) for question, result in results.items()})
        return [found[question] for question in questions]

    @property
    def spent(self) -> Spent:
        """What was asked in further rounds so far."""
        return Spent(self._asked.rounds, len(self._known), self._bytes, len(self._not_asked))

    def _learn(self, questions: Sequence[Query]) -> None:
        """Asks for the sets of this batch that are not known yet, as far as the budget goes, small sets first."""
        wanted = {_conditioning_set(question) for question in questions}
        new = {names for names in wanted if len(names) > 1} - self._known.keys() - self._not_asked
        plan, rows, found = self._cohort.plan, self._cohort.client_rows, dict[VariableSet, tuple[JointSummary, ...]]()
        if chosen := self._asked.select_affordable(new, plan, max(rows), self._most_sets):
            request = JointRequest(plan.fingerprint, self._asked.rounds + 1, chosen)
            found = _check_answers(self._source.ask(request), request, self._cohort)
        if found:
            self._asked = self._asked.charge(replace(request, sets=tuple(found)), plan, max(rows))
            self._bytes += sum(payload_bytes(plan, found, own) for own in rows)
        self._known |= found
        self._not_asked |= new - found.keys()


def _conditioning_set(question: Query) -> VariableSet:
    return to_variable_set(question.given - {DOMAIN})


def _check_answers(
    answers: Mapping[str, Sequence[JointSummary]], request: JointRequest, cohort: Cohort
) -> dict[VariableSet, tuple[JointSummary, ...]]:
    """The answers by set, each checked against the summary of its client; of the same sets from every client."""
    told = {answer.names for parts in answers.values() for answer in parts}
    found: dict[VariableSet, list[JointSummary]] = {names: [] for names in request.sets if names in told}
    for client, summary in zip(cohort.clients, cohort.summaries, strict=True):
        answered = {answer.names: answer for answer in answers.get(client, ())}
        if answered.keys() != found.keys() or any(answer.client != client for answer in answered.values()):
            raise SummaryError(
                f"client {client!r} did not answer request {request.number} as a whole; wait for its answer, or start "
                "the study over without it"
            )
        for names, answer in answered.items():
            answer.check(cohort.plan, summary)
            found[names].append(answer)
    return {names: tuple(parts) for names, parts in found.items()}


def _answer_queries(
    basis: Basis, cohort: Cohort, parts: Sequence[JointSummary], questions: Sequence[Query]
) -> dict[Query, tuple[float, float]]:
    """Statistic and p-value of questions that share their conditioning set."""
    wide = _AugmentedBasis.of(basis, cohort, parts)  # of all variables: an answer must not hang on what else was asked
    needs = {name: wide.need(name) for name in {name for q in questions for name in q.pair} - {DOMAIN}}
    by_level: dict[int, list[Query]] = defaultdict(list)
    for question in questions:
        by_level[max(needs[name] for name in question.pair - {DOMAIN})].append(question)
    found: dict[Query, tuple[float, float]] = {}
    for level, asked in by_level.items():
        answers = RegressionTest(wide.basis, wide.together(level))(asked)
        found.update({answer.query: (answer.statistic, answer.p_value) for answer in answers})
    return found


@dataclass(frozen=True, eq=False)
class _AugmentedBasis:
    """The basis with joint features of a set beside its columns."""

    basis: Basis
    given: Indices  # columns of the members of the set, each on its own
    plain: Indices  # products of values and indicators
    curved: tuple[Indices, ...]  # all others, up to one degree after the other

    @classmethod
    def of(cls, basis: Basis, cohort: Cohort, parts: Sequence[JointSummary]) -> _AugmentedBasis:
        given = concatenate_columns(basis.predictors, parts[0].names)
        means, cross, inner = _joint_moments(basis, cohort, parts)
        known = np.concatenate([basis.means[:, given], means], axis=1)
        before, between = basis.scatter[:, given[:, None], given], cross[..., given]
        among = np.block([[before, np.swapaxes(between, 1, 2)], [between, inner]])
        total = among.sum(axis=0) + (known.T * basis.rows) @ known
        new, which = _orthonormalize_joint(total / basis.rows.sum(), len(given))
        beside = new @ np.concatenate([basis.scatter[:, given], cross], axis=1)
        scatter = np.block([[basis.scatter, np.swapaxes(beside, 1, 2)], [beside, new @ among @ new.T]])
        wider = replace(basis, scatter=scatter, means=np.concatenate([basis.means, known @ new.T], axis=1))
        terms = [joint_terms(cohort.plan, parts[0].names)[term] for term in which]
        at = np.arange(basis.scatter.shape[-1], scatter.shape[-1])
        plain = np.array([term.plain for term in terms], dtype=np.bool_)
        degrees = np.array([term.degree for term in terms])
        steps = sorted({int(degree) for degree in degrees[~plain]})
        return cls(wider, given, at[plain], tuple(at[~plain & (degrees <= step)] for step in steps))

    def together(self, level: int) -> JointColumns:
        """The columns of a level. Where clients have their own weights, on no more columns than they have rows for.

        The rest then has the same weights everywhere.
        """
        if level == SEPARATE:
            return SQUARES_ONLY
        every = self.curved[-1] if self.curved and level >= CURVED else _NO_COLUMNS
        own = self._own_curved[-1] if self._own_curved and level == DIFFERENT else _NO_COLUMNS
        return JointColumns(np.concatenate([self.plain, own]), np.setdiff1d(every, own), with_squares=True)

    def need(self, name: str) -> int:
        """Which level it takes to predict the mean of this variable."""
        basis, target = self.basis, self.basis.targets[name]
        if not len(target) or not len(self.plain) + len(self.curved):
            return SEPARATE
        given = np.concatenate([self.given, self.plain])
        differ = [_heterogeneity_p_value(basis, target, given, columns) for columns in self._own_curved]
        if differ and combine_p_values(differ)[0] < JOINT_EFFECT_ALPHA:
            return DIFFERENT
        curved = [_gain_p_value(basis, target, given, columns) for columns in self.curved]
        if curved and combine_p_values(curved)[0] < JOINT_EFFECT_ALPHA:
            return CURVED
        plain = [
            _gain_p_value(basis, target, self.given, self.plain),
            _heterogeneity_p_value(basis, target, self.given, self.plain),
        ]
        return PLAIN if combine_p_values(plain)[0] < JOINT_EFFECT_ALPHA else SEPARATE

    @cached_property
    def _own_curved(self) -> tuple[Indices, ...]:
        before = len(self.given) + len(self.plain)
        return tuple(columns for columns in self.curved if self.basis.can_regress(before + len(columns)).all())


def _gain_p_value(basis: Basis, target: Indices, given: Indices, more: Indices) -> Array:
    """p-value of the F test that these columns, with the same weights everywhere, tell nothing more of the target."""
    if not len(more):
        return np.ones(1)
    left = partial_covariance(basis.within, np.concatenate([target, more])[None], given[None])
    width, freedom = len(target), basis.total_rows - len(basis.rows) - len(given) - len(more)
    return pillai_test(explained_scatter(left, width), left[..., :width, :width], len(more), freedom)[1]


def _heterogeneity_p_value(basis: Basis, target: Indices, given: Indices, more: Indices) -> Array:
    """p-value of the F test that clients do not differ in the weights of these columns, given their own of others."""
    own = basis.can_regress(len(given) + len(more))
    if own.sum() < 2 or not len(more):
        return np.ones(1)
    scatter, width = basis.scatter[own], len(target)
    common = residual_scatter(
        partial_covariance(scatter, np.concatenate([target, more])[None], given[None]).sum(axis=0), width
    )
    apart = partial_covariance(scatter, target[None], np.concatenate([given, more])[None]).sum(axis=0)
    further = (len(scatter) - 1) * len(more)
    left = float((basis.rows[own] - 1 - len(given) - len(more)).sum())
    return pillai_test(common - apart, common, further, left)[1]


def _add_client_curvature(basis: Basis) -> Basis:
    """The basis with all columns for variables whose effects bend at single clients, though not in the mean of them."""
    chosen = dict(basis.predictors)
    names = [name for name, columns in basis.spans.items() if len(columns)]
    for name in names:
        straight, bends = basis.predictors[name], np.setdiff1d(basis.spans[name], basis.predictors[name])
        others = [basis.targets[other] for other in names if other != name]
        if len(bends) and others:
            found = [_heterogeneity_p_value(basis, target, straight, bends)[0] for target in others]
            chosen[name] = basis.spans[name] if min(found) * len(found) < JOINT_EFFECT_ALPHA else straight
    return replace(basis, predictors=chosen)


def _joint_moments(basis: Basis, cohort: Cohort, parts: Sequence[JointSummary]) -> tuple[Array, Array, Array]:
    """Of the joint features, per client: their means, less the pooled ones, and their scatter with the columns of the
    basis and with each other."""
    rows = basis.rows
    own = np.array([part.own for part in parts]) / float(GRID**2)
    cross = np.array([part.cross for part in parts]) / float(GRID**2)
    sums, known = cross[:, :, 0], np.array([summary.moments[0] for summary in cohort.summaries]) / float(GRID**2)
    inner = own - sums[:, :, None] * sums[:, None, :] / rows[:, None, None]
    between = (cross - sums[:, :, None] * known[:, None, :] / rows[:, None, None]) @ basis.change.T
    return sums / rows[:, None] - sums.sum(axis=0) / rows.sum(), between, inner


def _orthonormalize_joint(covariance: Array, known: int) -> tuple[Array, list[int]]:
    """Joint features made orthonormal, each less what the columns before all of them, and the features before it, say.

    Rows are the new coordinates in terms of all columns; beside them, which feature each stands for.
    """
    sizes = covariance.diagonal()[known:]
    weights = np.linalg.lstsq(covariance[:known, :known], covariance[:known, known:], rcond=None)[0]
    left = covariance[known:, known:] - covariance[known:, :known] @ weights
    kept, rest = list[int](), left.copy()
    for j, size in enumerate(sizes):
        if size > MAX_CONSTANT_VARIANCE and rest[j, j] > MIN_NEW_JOINT_VARIANCE * size:
            kept.append(j)
            rest = rest - np.outer(rest[:, j], rest[j]) / rest[j, j]
    raw = np.concatenate([-weights[:, kept].T, np.eye(len(sizes))[kept]], axis=1)
    if not kept:
        return raw, kept
    return linalg.solve_triangular(np.linalg.cholesky(left[np.ix_(kept, kept)]), raw, lower=True), kept
