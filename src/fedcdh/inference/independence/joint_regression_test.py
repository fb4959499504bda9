"""Regression tests with joint features of the conditioning variables, which adaptive rounds make possible.

x ⫫ y | Z is tested by regressions as in `partial_f_tests` and `mechanism_tests`, but on functions of all of Z, not on
sums of functions of its members. The moments of joint features of Z are requested from the clients, at most once for
every set and with at most one request for every batch of queries. For one conditioning variable, the summary holds all
that is needed.

Columns cost degrees of freedom, so joint features are used only where they help to predict x or y. If neither needs
them, the test is that of the first summaries; a joint effect too small to be found there is too small to matter.
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
from fedcdh.inference.counted_rows import observed_shares, variable_shares
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
"""A joint feature is kept if those before it leave at least this share of its variance unexplained."""
JOINT_EFFECT_ALPHA = 0.05
"""Significance level at which a variable counts as depending on joint features, or differently at each client."""
SEPARATE, PLAIN, CURVED, DIFFERENT = range(4)
"""How a variable may depend on a set: on each member by itself; on products of values; on all joint features; on these
with different weights at each client."""
_NO_COLUMNS = np.zeros(0, dtype=np.intp)
SQUARES_ONLY = JointColumns(with_squares=True)


class JointRegressionTest:
    """A test that asks the clients for joint features of conditioning sets, one request for each batch of queries.

    Beyond the plan's limits on rounds and bytes, or `max_sets`, nothing is requested, and the first summaries answer.

    Parameters
    ----------
    cohort : Cohort
        The first summaries.
    basis : Basis
        Their moments in orthonormal coordinates.
    source : AnswerSource
        Asks the clients.
    max_sets : int
        The largest number of conditioning sets to ask about.

    Examples
    --------
    >>> import fedcdh
    >>> study = fedcdh.simulate(seed=1)
    >>> result = fedcdh.discover(study.columns("site"), domain="site", method="constraint", rounds="adaptive")
    >>> result.search_result.spent.rounds >= 0
    True
    """

    def __init__(self, cohort: Cohort, basis: Basis, source: AnswerSource, max_sets: int) -> None:
        self._cohort, self._basis, self._source = cohort, _add_client_curvature(basis), source
        self._first_test = RegressionTest(
            self._basis, SQUARES_ONLY, shares=variable_shares(cohort.plan), observed=observed_shares(cohort)
        )
        self._received: dict[VariableSet, tuple[JointSummary, ...]] = {}  # in the order of the cohort's clients
        self._not_requested: set[VariableSet] = set()
        self._max_sets = max_sets
        self._budget, self._bytes = RoundBudget(), 0

    def __call__(self, queries: Sequence[Query], /) -> list[Answer]:
        """Answer the queries, in their order."""
        self._request_sets(queries)
        by_set: dict[VariableSet, list[Query]] = defaultdict(list)
        for query in dict.fromkeys(queries):
            by_set[_conditioning_set(query)].append(query)
        found: dict[Query, Answer] = {}
        plain = [query for names, members in by_set.items() if names not in self._received for query in members]
        found.update(zip(plain, self._first_test(plain), strict=True))
        rows = int(self._basis.rows.sum())
        for names in by_set.keys() & self._received.keys():
            results = _answer_queries(self._basis, self._cohort, self._received[names], by_set[names])
            found.update({query: Answer(query, *result, rows) for query, result in results.items()})
        return [found[query] for query in queries]

    @property
    def spent(self) -> Spent:
        """Return the adaptive rounds that were used so far, and the bytes that they took."""
        return Spent(self._budget.rounds, len(self._received), self._bytes, len(self._not_requested))

    def _request_sets(self, queries: Sequence[Query]) -> None:
        """Request the sets of this batch that are not known yet, within the limits, small sets first."""
        wanted = {_conditioning_set(query) for query in queries}
        new = {names for names in wanted if len(names) > 1} - self._received.keys() - self._not_requested
        plan, rows, found = self._cohort.plan, self._cohort.client_rows, dict[VariableSet, tuple[JointSummary, ...]]()
        if chosen := self._budget.select_affordable(new, plan, max(rows), self._max_sets):
            request = JointRequest(plan.fingerprint, self._budget.rounds + 1, chosen)
            found = _check_answers(self._source.ask(request), request, self._cohort)
        if found:
            self._budget = self._budget.charge(replace(request, sets=tuple(found)), plan, max(rows))
            self._bytes += sum(payload_bytes(plan, found, own) for own in rows)
        self._received |= found
        self._not_requested |= new - found.keys()


def _conditioning_set(query: Query) -> VariableSet:
    return to_variable_set(query.given - {DOMAIN})


def _check_answers(
    answers: Mapping[str, Sequence[JointSummary]], request: JointRequest, cohort: Cohort
) -> dict[VariableSet, tuple[JointSummary, ...]]:
    """Return the answers by set, each checked against the summary of its client; all clients answer the same sets."""
    answered_sets = {answer.names for parts in answers.values() for answer in parts}
    found: dict[VariableSet, list[JointSummary]] = {names: [] for names in request.sets if names in answered_sets}
    for client, summary in zip(cohort.clients, cohort.summaries, strict=True):
        answered = {answer.names: answer for answer in answers.get(client, ())}
        if answered.keys() != found.keys() or any(answer.client != client for answer in answered.values()):
            raise SummaryError(
                f"client {client!r} answered only a part of request {request.number}; expected one for every set; "
                "wait for its answer, or start the study again without it"
            )
        for names, answer in answered.items():
            answer.check(cohort.plan, summary)
            found[names].append(answer)
    return {names: tuple(parts) for names, parts in found.items()}


def _answer_queries(
    basis: Basis, cohort: Cohort, parts: Sequence[JointSummary], queries: Sequence[Query]
) -> dict[Query, tuple[float, float]]:
    """Return statistic and p-value of queries that share their conditioning set."""
    wide = _AugmentedBasis.of(
        basis, cohort, parts
    )  # with all variables: an answer must not depend on the other queries
    needs = {name: wide.need(name) for name in {name for q in queries for name in q.pair} - {DOMAIN}}
    by_level: dict[int, list[Query]] = defaultdict(list)
    for query in queries:
        by_level[max(needs[name] for name in query.pair - {DOMAIN})].append(query)
    found: dict[Query, tuple[float, float]] = {}
    for level, members in by_level.items():
        test = RegressionTest(
            wide.basis, wide.joint_columns(level), shares=variable_shares(cohort.plan), observed=observed_shares(cohort)
        )
        answers = test(members)
        found.update({answer.query: (answer.statistic, answer.p_value) for answer in answers})
    return found


@dataclass(frozen=True, eq=False)
class _AugmentedBasis:
    """The basis with joint features of a set besides its own columns."""

    basis: Basis
    given: Indices  # columns of the members of the set, each on its own
    plain: Indices  # products of values and indicators
    curved: tuple[Indices, ...]  # all others, up to one degree after the other

    @classmethod
    def of(cls, basis: Basis, cohort: Cohort, parts: Sequence[JointSummary]) -> _AugmentedBasis:
        """Append the joint features whose moments the clients sent."""
        given = concatenate_columns(basis.predictors, parts[0].names)
        means, cross, inner = _joint_moments(basis, cohort, parts)
        known = np.concatenate([basis.means[:, given], means], axis=1)
        before, between = basis.scatter[:, given[:, None], given], cross[..., given]
        among = np.block([[before, np.swapaxes(between, 1, 2)], [between, inner]])
        total = among.sum(axis=0) + (known.T * basis.rows) @ known
        new, which = _orthonormalize_joint(total / basis.rows.sum(), len(given))
        cross_scatter = new @ np.concatenate([basis.scatter[:, given], cross], axis=1)
        scatter = np.block([[basis.scatter, np.swapaxes(cross_scatter, 1, 2)], [cross_scatter, new @ among @ new.T]])
        wider = replace(basis, scatter=scatter, means=np.concatenate([basis.means, known @ new.T], axis=1))
        terms = [joint_terms(cohort.plan, parts[0].names)[term] for term in which]
        at = np.arange(basis.scatter.shape[-1], scatter.shape[-1])
        plain = np.array([term.plain for term in terms], dtype=np.bool_)
        degrees = np.array([term.degree for term in terms])
        steps = sorted({int(degree) for degree in degrees[~plain]})
        return cls(wider, given, at[plain], tuple(at[~plain & (degrees <= step)] for step in steps))

    def joint_columns(self, level: int) -> JointColumns:
        """Return the columns for a kind of dependence.

        Clients have weights of their own on no more columns than they have rows for; the others have the same weights
        everywhere.
        """
        if level == SEPARATE:
            return SQUARES_ONLY
        every = self.curved[-1] if self.curved and level >= CURVED else _NO_COLUMNS
        own = self._own_curved[-1] if self._own_curved and level == DIFFERENT else _NO_COLUMNS
        return JointColumns(np.concatenate([self.plain, own]), np.setdiff1d(every, own), with_squares=True)

    def need(self, name: str) -> int:
        """Return the kind of dependence that is needed to predict the mean of this variable."""
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
    """Return the p-value of the F test that these columns, with common weights, do not help to predict the target."""
    if not len(more):
        return np.ones(1)
    left = partial_covariance(basis.within, np.concatenate([target, more])[None], given[None])
    width, freedom = len(target), basis.total_rows - len(basis.rows) - len(given) - len(more)
    return pillai_test(explained_scatter(left, width), left[..., :width, :width], len(more), freedom)[1]


def _heterogeneity_p_value(basis: Basis, target: Indices, given: Indices, more: Indices) -> Array:
    """Return the p-value of the F test that the weights of these columns do not differ between clients."""
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
    """Use all columns of variables whose effects are nonlinear at single clients, though not on average."""
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
    """Return, per client, the means of the joint features less the pooled ones, and their scatter.

    The scatter is that with the columns of the basis, and that among each other.
    """
    rows = basis.rows
    own = np.array([part.own for part in parts]) / float(GRID**2)
    cross = np.array([part.cross for part in parts]) / float(GRID**2)
    sums, known = cross[:, :, 0], np.array([summary.moments[0] for summary in cohort.summaries]) / float(GRID**2)
    inner = own - sums[:, :, None] * sums[:, None, :] / rows[:, None, None]
    between = (cross - sums[:, :, None] * known[:, None, :] / rows[:, None, None]) @ basis.transform.T
    return sums / rows[:, None] - sums.sum(axis=0) / rows.sum(), between, inner


def _orthonormalize_joint(covariance: Array, known: int) -> tuple[Array, list[int]]:
    """Orthonormalise joint features, each less what the known columns and the features before it explain.

    Rows are the new coordinates in terms of all columns; besides them, the number of the feature of each row.
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
