"""Family scores with free shape and size of the noise, from sums of residuals that the clients are asked for.

The score of a family is the Gaussian evidence of the summaries (`family_score`), plus the log Bayes factor of a free
density of the standardised residuals (`noise_shape`). The size of the noise may also depend on the parents
(`noise_size`). Each family has one form, linear or nonlinear, whichever has more Gaussian evidence.

Families with a categorical node, or with a node of which many rows share one value, have no density; their score stays
Gaussian.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from fedcdh._runtime.array_types import Array
from fedcdh.inference.evidence.family_score import FamilyScore
from fedcdh.inference.evidence.noise_shape import ShapeMoments, shape_evidence
from fedcdh.inference.evidence.noise_size import SizeFit, fit_size, term_products
from fedcdh.inference.normal_scores import NormalScore, find_normal_scores
from fedcdh.inference.orthonormal_basis import Basis
from fedcdh.protocols import DOMAIN, Family
from fedcdh.summaries.aggregation import Aggregate, Cohort
from fedcdh.summaries.encoder import GRID
from fedcdh.summaries.joint import AnswerSource
from fedcdh.summaries.residuals import SHAPE, SIZE, TIES, Coordinates, ResidualQuery, ResidualRequest, ResidualSums
from fedcdh.summaries.residuals.functions import (
    MAX_LARGE_RESIDUAL,
    MAX_LOG_SIZE,
    SHAPE_FUNCTIONS,
    shape_bounds,
    size_bounds,
)

CURVATURE_PRICE = 5.0
"""Log prior odds against nonlinear effects of the parents."""
SCORE_PRICE = 15.0
"""Log prior odds against a mechanism that is additive on normal scores instead of values."""
SIZE_PRICE = 5.0
"""Log prior odds against a size of the noise that depends on the parents."""
MIN_FORM_LEAD = 10.0
"""Log Bayes factor of values against normal scores from which the scores of a node are not asked about again."""
RIDGE = 0.01
"""Precision of the prior of a weight, in rows: keeps collinear columns solvable."""
MAX_TIED_SHARE = 0.08
"""Share of rows with the most frequent value at their client, from which a variable counts as having no density."""
NOT_ASKED = float("-inf")
"""Score of a family about which the clients could not be asked."""
_MIN_VARIANCE = 1e-6


class _Form(NamedTuple):
    """A form of a family: linear or nonlinear, of values or normal scores, with its Gaussian evidence."""

    evidence: float
    curved: bool = False
    scored: bool = False
    parents: tuple[str, ...] = ()
    widths: tuple[int, ...] = ()
    weights: tuple[float, ...] = ()
    deviation: float = 1.0


class AskedForm(NamedTuple):
    """The queries about one form of a family.

    Attributes
    ----------
    curved : bool
        Whether the parents act nonlinearly.
    scored : bool
        Whether the normal score of the node is explained, instead of its value.
    plain : ResidualQuery, optional
        The query with noise of constant size; None for a family without a density.
    sized : ResidualQuery, optional
        The query with a size that depends on the parents, if that was considered.

    Examples
    --------
    >>> AskedForm(curved=False, scored=False).plain is None
    True
    """

    curved: bool
    scored: bool
    plain: ResidualQuery | None = None
    sized: ResidualQuery | None = None


@dataclass(frozen=True)
class ResidualRecord:
    """All that the clients answered about residuals.

    Attributes
    ----------
    families : dict from Family to tuple of AskedForm
        The queries about each family.
    answers : dict from ResidualQuery to dict from str to ResidualSums
        The answers by client.
    rounds : int
        Number of requests.
    entries : int
        Number of sums that each client sent.
    left_out : int
        Number of families beyond the limits, about which nobody was asked.
    coordinates : mapping from str to Coordinates
        The coordinates of the variables in these queries.

    Examples
    --------
    >>> print(ResidualRecord({}, {}, rounds=2, entries=300, left_out=0))
    residuals: 0 regressions in 2 further rounds; 300 sums per client
    """

    families: dict[Family, tuple[AskedForm, ...]]
    answers: dict[ResidualQuery, dict[str, ResidualSums]]
    rounds: int
    entries: int
    left_out: int
    coordinates: Mapping[str, Coordinates] = field(default_factory=dict)

    def __str__(self) -> str:
        asked = sum(form.plain is not None for forms in self.families.values() for form in forms)
        rounds = f"{self.rounds} further round{'s' if self.rounds != 1 else ''}"
        text = f"residuals: {asked} regressions in {rounds}; {self.entries} sums per client"
        if self.left_out:
            text += f"; {self.left_out} further regressions were beyond the limits"
        return text


@dataclass(eq=False)
class ResidualScore:
    """A local score that asks the clients about the residuals of every family it is called with.

    All families of one call are asked about together: one round about the size of the noise, one about its shape.

    Attributes
    ----------
    known : Cohort or Aggregate
        The summaries, or their sum.
    basis : Basis
        Their moments in orthonormal coordinates.
    score : FamilyScore
        The Gaussian score.
    source : AnswerSource
        Asks the clients.

    Examples
    --------
    >>> import fedcdh
    >>> study = fedcdh.simulate(seed=1)
    >>> result = fedcdh.discover(study.columns("site"), domain="site")
    >>> result.search_result.residuals.rounds > 0
    True
    """

    known: Cohort | Aggregate
    basis: Basis
    score: FamilyScore
    source: AnswerSource
    _values: dict[Family, float] = field(default_factory=dict, init=False)
    _gaussian: dict[Family, float] = field(default_factory=dict, init=False)
    _tied: dict[str, bool] = field(default_factory=dict, init=False)
    _asked: dict[Family, tuple[AskedForm, ...]] = field(default_factory=dict, init=False)
    _by_value: set[str] = field(default_factory=set, init=False)
    _factors: dict[ResidualQuery, float] = field(default_factory=dict, init=False)
    _answers: dict[ResidualQuery, dict[str, ResidualSums]] = field(default_factory=dict, init=False)
    _rounds: int = field(default=0, init=False)

    def __call__(self, families: Sequence[Family], /) -> list[float]:
        """Return the log score of each family, in their order; `NOT_ASKED` beyond the limits of the plan."""
        new = {family for family in families if family not in self._values}
        if new:
            self._score_new(sorted(new, key=lambda family: (family.node, sorted(family.parents))))
        return [self._values[family] for family in families]

    def known_only(self, families: Sequence[Family], /) -> list[float]:
        """Return the scores of families that were asked about, and `NOT_ASKED` for others.

        Parameters
        ----------
        families : sequence of Family
            Nodes with their parents.

        Returns
        -------
        list of float
            The scores.
        """
        return [self._values.get(family, NOT_ASKED) for family in families]

    def gaussian(self, families: Sequence[Family], /) -> list[float]:
        """Return the part of the scores that the summaries give: Gaussian noise of constant size.

        Parameters
        ----------
        families : sequence of Family
            Nodes with their parents, which were scored before.

        Returns
        -------
        list of float
            The Gaussian evidence of the form that each family has.
        """
        return [self._gaussian[family] for family in families]

    @property
    def record(self) -> ResidualRecord:
        """Return what was asked and answered so far."""
        entries = sum(query.count_entries(self.known.plan) for query in self._answers)
        left_out = sum(value == NOT_ASKED for value in self._values.values())
        asked = {family: one for family, one in self._asked.items() if self._values[family] != NOT_ASKED}
        return ResidualRecord(asked, self._answers, self._rounds, entries, left_out, self._coordinates)

    @property
    def without_density(self) -> frozenset[str]:
        """Return the variables of which many rows share one value."""
        return frozenset(name for name, tied in self._tied.items() if tied)

    def _score_new(self, new: list[Family]) -> None:
        """Ask about ties, size and shape in one round, and about the shape of noise of varying size in another."""
        ties = self._tie_queries(new)
        forms = self._find_forms(new)
        self._ask([*ties.values(), *self._first_queries(forms)])
        self._read_ties(ties)
        if not self.without_density.isdisjoint(ties):
            forms = self._find_forms(new)
        self._gaussian.update({family: max(form.evidence for form in forms[family]) for family in new})
        for family in new:
            self._asked[family] = tuple(self._plan_form(family, form) for form in forms[family])
        self._ask(form.sized for family in new for form in self._asked[family] if form.sized is not None)
        self._compute_factors(query for family in new for form in self._asked[family] for query in form[2:])
        for family in new:
            factors = noise_factors(self._asked[family], self._factors)
            values = [form.evidence + factor for form, factor in zip(forms[family], factors, strict=True)]
            self._values[family] = float(np.logaddexp.reduce(values))
            self._note_form(family, values)

    def _compute_factors(self, queries: Iterable[ResidualQuery | None]) -> None:
        """Compute the log Bayes factors of shape and size for answered queries, in one batch."""
        new = [query for query in dict.fromkeys(queries) if query in self._answers and query not in self._factors]
        answers = [add_clients(self._answers[query]) for query in new]
        self._factors.update(zip(new, shape_factors(answers), strict=True))

    def _note_form(self, family: Family, values: Sequence[float]) -> None:
        """Remember a node that clearly prefers its value to its normal score: its scores are not asked about again."""
        if len(values) == 2 and family.parents - {DOMAIN} and values[0] > values[1] + MIN_FORM_LEAD:
            self._by_value.add(family.node)

    def _plan_form(self, family: Family, form: _Form) -> AskedForm:
        """Return the queries about the shape of the noise of one form, with constant and with varying size."""
        if not self._has_density(family.node):
            return AskedForm(form.curved, form.scored)
        plain, sizes, sized = self._query(family, form, SHAPE), self._query(family, form, SIZE), None
        if self._sized_parents(form) and sizes in self._answers:
            answer = add_clients(self._answers[sizes])
            fit = self._fit_size(form, answer)
            if fit.may_pay(SIZE_PRICE, answer.rows):
                sized = self._query(family, form, SHAPE, tuple(map(_short, fit.coefficients)))
        return AskedForm(form.curved, form.scored, plain, sized)

    # The forms of a family

    @cached_property
    def linear(self) -> FamilyScore:
        """Return the Gaussian score with linear mechanisms."""
        return self.score.linear

    @cached_property
    def _scores(self) -> dict[str, NormalScore]:
        return find_normal_scores(self.known)

    @cached_property
    def _score_weights(self) -> dict[str, Array]:
        """Return the normal scores in terms of their variables' coordinates, standardised."""
        found = {}
        for name, one in self._scores.items():
            block = self.basis.transforms[name]
            covariance = self.known.total.scatter(block.features, block.features) / self.known.total.rows
            weights = block.weights @ covariance @ one.weights
            found[name] = weights / np.sqrt(weights @ weights)
        return found

    @cached_property
    def _scored(self) -> FamilyScore:
        return FamilyScore.of(self.known, self.basis, scores=self._score_weights)

    @cached_property
    def _scored_linear(self) -> FamilyScore:
        return self._scored.linear

    @cached_property
    def _dense_nodes(self) -> frozenset[str]:
        """Return the continuous variables that are not constant."""
        names = self.basis.targets.items()
        return frozenset(name for name, columns in names if name not in self.basis.levels and len(columns))

    def _find_forms(self, families: Sequence[Family]) -> dict[Family, tuple[_Form, ...]]:
        """Return the better of the linear and the nonlinear form; the same of normal scores, where there are any."""
        straight, both = self.linear(families), self.score(families)
        found: dict[Family, tuple[_Form, ...]] = {
            family: (self._better_form(family, one, mean),)
            for family, one, mean in zip(families, straight, both, strict=True)
        }
        scored = [family for family in families if family.node in self._scores.keys() - self._by_value]
        scored = [family for family in scored if self._has_density(family.node)]
        straight, both = self._scored_linear(scored), self._scored(scored)
        for family, one, mean in zip(scored, straight, both, strict=True):
            price = SCORE_PRICE - self._scores[family.node].log_jacobian
            found[family] += (self._better_form(family, one - price, mean - price, scored=True),)
        return found

    def _better_form(self, family: Family, straight: float, both: float, *, scored: bool = False) -> _Form:
        """Return the linear or the nonlinear form, whichever has more Gaussian evidence."""
        parents = tuple(name for name in sorted(family.parents - {DOMAIN}) if len(self.basis.spans[name]))
        bends = any(len(self.basis.predictors[name]) > len(self.basis.targets[name]) for name in parents)
        bends = bends and not self._tied.get(family.node, False)
        curved = _log_other_half(straight, both) - CURVATURE_PRICE if bends else -np.inf
        if family.node not in self._dense_nodes:
            return _Form(max(straight, curved))
        columns = self.basis.predictors if curved > straight else self.basis.targets
        used = [int(column) for name in parents for column in columns[name]]
        weights, variance = self._regress(self._target(family.node, scored), used, DOMAIN in family.parents)
        widths, numbers = tuple(len(columns[name]) for name in parents), tuple(map(_short, weights))
        shape = (parents, widths, numbers, _short(variance**0.5))
        return _Form(max(straight, curved), curved > straight, scored, *shape)

    def _target(self, node: str, scored: bool) -> Array:
        """Return the explained value of a node in terms of all coordinates."""
        target = np.zeros(self.basis.means.shape[1])
        if scored:
            target[self.basis.spans[node]] = self._score_weights[node]
        else:
            target[self.basis.targets[node][0]] = 1.0
        return target

    def _regress(self, target: Array, columns: list[int], differs: bool) -> tuple[Array, float]:
        """Return the common weights and the variance of the residuals, in coordinates of the basis."""
        scatter = self.basis.within if differs else self.basis.total
        with_target = scatter @ target
        inner, cross = scatter[np.ix_(columns, columns)], with_target[columns]
        weights = np.linalg.solve(inner + RIDGE * np.eye(len(columns)), cross) if columns else np.zeros(0)
        left = target @ with_target - 2 * weights @ cross + weights @ inner @ weights
        return np.asarray(weights, dtype=np.float64), max(float(left) / self.basis.total_rows, _MIN_VARIANCE)

    # Requests

    def _has_density(self, node: str) -> bool:
        """Return whether a node is a number of which not too many rows share one value, as far as is known."""
        return node in self._dense_nodes and not self._tied.get(node, False)

    def _first_queries(self, forms: Mapping[Family, Sequence[_Form]]) -> Iterator[ResidualQuery]:
        """Yield the queries about the size of the noise and about its shape with constant size, likely ones first."""
        for family, several in sorted(forms.items(), key=lambda item: self._implausibility(item[0], forms)):
            for form in several if self._has_density(family.node) else ():
                yield self._query(family, form, SHAPE)
                if self._sized_parents(form):
                    yield self._query(family, form, SIZE)

    def _implausibility(self, family: Family, forms: Mapping[Family, Sequence[_Form]]) -> float:
        """Return how far the Gaussian evidence of a family is below the best of its node."""
        best = max(form.evidence for other in forms if other.node == family.node for form in forms[other])
        return best - max(form.evidence for form in forms[family])

    def _tie_queries(self, families: Sequence[Family]) -> dict[str, ResidualQuery]:
        """Return queries about nodes of which many rows may share one value."""
        nodes = sorted(({family.node for family in families} & self._dense_nodes) - self._tied.keys())
        return {name: ResidualQuery(name, (), TIES, (), (), 1.0) for name in nodes}

    def _read_ties(self, ties: Mapping[str, ResidualQuery]) -> None:
        for name, query in ties.items():
            share = 1.0
            if query in self._answers:
                total = add_clients(self._answers[query])
                share = total.sums[0] / (GRID * total.rows)
            self._tied[name] = bool(share > MAX_TIED_SHARE)

    def _sized_parents(self, form: _Form) -> list[str]:
        """Return the parents on which the size of the noise may depend: the continuous ones."""
        return [name for name in form.parents if name not in self.basis.levels]

    def _fit_size(self, form: _Form, answer: ResidualSums) -> SizeFit:
        parents, basis = self._sized_parents(form), self.basis
        sums = answer.sums / GRID * size_bounds(len(parents))
        first = np.array([1 + basis.targets[name][0] for name in parents])
        second = np.array([1 + basis.spans[name][min(1, len(basis.spans[name]) - 1)] for name in parents])
        products = term_products(self._moments, first, [basis.squares[name] for name in parents], second)
        return fit_size(sums, products * answer.rows / basis.total_rows, answer.rows)

    def _query(self, family: Family, form: _Form, about: str, size: tuple[float, ...] = ()) -> ResidualQuery:
        differs = DOMAIN in family.parents
        return ResidualQuery(
            family.node,
            form.parents,
            about,
            form.weights,
            form.widths,
            form.deviation,
            differs,
            form.scored,
            size,
        )

    def _ask(self, queries: Iterable[ResidualQuery]) -> None:
        """Send one request for queries that were not answered before, the most wanted first, and keep the answers."""
        wanted = list(dict.fromkeys(query for query in queries if query not in self._answers))
        names = sorted({name for query in wanted for name in (query.node, *query.parents)})
        coordinates = {name: self._coordinates[name] for name in names}
        wanted = sorted(self.source.select_affordable(wanted, coordinates), key=lambda query: query.key)
        if not wanted:
            return
        self._rounds += 1
        used = {name for query in wanted for name in (query.node, *query.parents)}
        coordinates = {name: one for name, one in coordinates.items() if name in used}
        request = ResidualRequest(self.known.plan.fingerprint, self._rounds, coordinates, tuple(wanted))
        squares = {query: self._mean_squares(query) for query in wanted}
        for client, answers in self.source.ask_residuals(request).items():
            for one in answers:
                square = squares[one.query].get(client) if one.mean_square is None else one.mean_square
                self._answers.setdefault(one.query, {})[client] = replace(one, mean_square=square)

    def _mean_squares(self, query: ResidualQuery) -> dict[str, float]:
        """Return the mean of z² over the rows of each client, for a mechanism that all share.

        It is 1 over all rows. If some clients do not answer, it differs from 1 over the rows of the others.
        """
        if query.about != SHAPE or query.differs or not self.basis.has_client_scatter:
            return {}
        basis, residual = self.basis, self._target(query.node, query.scored)
        columns = [basis.spans[name][:width] for name, width in zip(query.parents, query.widths, strict=True)]
        if columns:
            residual[np.concatenate(columns)] -= query.weights
        used = np.flatnonzero(residual)
        residual = residual[used] / query.deviation
        within = basis.scatter[:, used[:, None], used] @ residual @ residual / basis.rows
        found = within + (basis.means[:, used] @ residual) ** 2
        return dict(zip(self.known.clients, found.tolist(), strict=True))

    @cached_property
    def _coordinates(self) -> dict[str, Coordinates]:
        means, found = self.known.total.means, {}
        for name, block in self.basis.transforms.items():
            if len(block.weights):
                scores = self._score_weights[name] @ block.weights if name in self._score_weights else ()
                matrix = tuple(tuple(map(_short, row)) for row in block.weights)
                found[name] = Coordinates(tuple(map(_short, means[block.features])), matrix, tuple(map(_short, scores)))
        return found

    @cached_property
    def _moments(self) -> Array:
        return np.asarray(self.basis.moments.sum(axis=0))


def noise_factors(forms: Sequence[AskedForm], factors: Mapping[ResidualQuery, float]) -> list[float]:
    """Return the log Bayes factor of free shape and size against normal noise of constant size, for every form.

    Parameters
    ----------
    forms : sequence of AskedForm
        The queries about each form.
    factors : mapping from ResidualQuery to float
        The `shape_factors` of the answers.

    Returns
    -------
    list of float
        0 for a form without a density, `NOT_ASKED` for a form without an answer.

    Examples
    --------
    >>> noise_factors([AskedForm(curved=False, scored=False)], {})
    [0.0]
    """
    found = []
    for form in forms:
        factor = 0.0 if form.plain is None else factors.get(form.plain, NOT_ASKED)
        if form.sized is not None and form.sized in factors and factor != NOT_ASKED:
            factor = float(np.logaddexp(factor, factors[form.sized] - SIZE_PRICE))
        found.append(factor)
    return found


def add_clients(answers: Mapping[str, ResidualSums]) -> ResidualSums:
    """Return the sum of the clients' answers to one query."""
    first, *others = (answers[client] for client in sorted(answers))
    return sum(others, start=first)


def shape_factors(answers: Sequence[ResidualSums]) -> list[float]:
    """Return the log Bayes factors of shape and size in these answers against normal noise of constant size.

    Parameters
    ----------
    answers : sequence of ResidualSums
        Answers of all clients together, about shapes.

    Returns
    -------
    list of float
        One factor per answer.
    """
    if not answers:
        return []
    rows = np.array([one.rows for one in answers], dtype=np.float64)
    means = np.array([one.sums[:SHAPE_FUNCTIONS] for one in answers]) / (GRID * rows[:, None]) * shape_bounds()
    squares = np.array([1.0 if one.mean_square is None else one.mean_square for one in answers])
    gains = np.zeros(len(answers))
    for number, one in enumerate(answers):
        if one.deviation is not None:  # residuals of other weights than the best: their variance is larger
            growth = max(squares[number], _MIN_VARIANCE) * (one.deviation / one.query.deviation) ** 2
            gains[number] = min(0.0, -one.rows / 2 * np.log(growth))
        if one.query.size:
            large, log_size = one.sums[SHAPE_FUNCTIONS:] / (GRID * one.rows)
            constant, squares[number] = max(squares[number], _MIN_VARIANCE), large * MAX_LARGE_RESIDUAL**2
            variance = max(squares[number] - means[number, 0] ** 2, _MIN_VARIANCE)
            gains[number] -= one.rows / 2 * (np.log(variance / constant) + log_size * MAX_LOG_SIZE)
            gains[number] -= (len(one.query.size) - 1) / 2 * np.log(one.rows)
    return [float(value) for value in shape_evidence(ShapeMoments(means, squares, rows)) + gains]


def _short(number: float) -> float:
    """Return a number with twelve digits: no computer's last digit enters a request."""
    return float(f"{number:.12g}")


def _log_other_half(first: float, mean: float) -> float:
    """Return the log of the second of two numbers, given the logs of the first and of their mean."""
    rest = 2.0 - np.exp(min(first - mean, 50.0))
    return float(mean + np.log(max(rest, 1e-300)))
