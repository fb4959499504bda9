"""Family scores with free shape and size of the noise, from sums of residuals that the clients are asked for.

The score of a family is the Gaussian evidence of the summaries (`family_score`), plus the log Bayes factor of a free
density of the standardised residuals (`noise_shape`). The size of the noise may also depend on the parents
(`noise_size`), and the product of two parents may be in the regression (`product_terms`). Each family has one form,
linear or nonlinear, whichever has more Gaussian evidence.

Families with a categorical node, or with a node of which many rows share one value, have no density; their score stays
Gaussian.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from fedcdh._runtime.array_types import Array
from fedcdh.inference.evidence.family_forms import FamilyForm, FamilyForms, shorten
from fedcdh.inference.evidence.family_score import FamilyScore
from fedcdh.inference.evidence.noise_size import SizeFit, fit_size, term_products
from fedcdh.inference.evidence.product_terms import ProductFit, fit_product
from fedcdh.inference.evidence.residual_factors import NOT_ASKED, SIZE_PRICE, noise_factors, shape_factors
from fedcdh.inference.evidence.residual_record import AskedForm, ResidualRecord, add_clients
from fedcdh.inference.orthonormal_basis import Basis
from fedcdh.protocols import DOMAIN, Family
from fedcdh.summaries.aggregation import Aggregate, Cohort
from fedcdh.summaries.encoder import GRID
from fedcdh.summaries.joint import AnswerSource
from fedcdh.summaries.residuals import PRODUCTS, SHAPE, SIZE, TIES, ResidualQuery, ResidualRequest, ResidualSums
from fedcdh.summaries.residuals.functions import PRODUCT_BOUND, size_bounds

MIN_FORM_LEAD = 10.0
"""Log Bayes factor of values against normal scores from which the scores of a node are not asked about again."""
MAX_TIED_SHARE = 0.08
"""Share of rows with the most frequent value at their client, from which a variable counts as having no density."""


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
    _product_gains: dict[ResidualQuery, float] = field(default_factory=dict, init=False)
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
        return ResidualRecord(asked, self._answers, self._rounds, entries, left_out, self._forms.coordinates)

    @property
    def without_density(self) -> frozenset[str]:
        """Return the variables of which many rows share one value."""
        return frozenset(name for name, tied in self._tied.items() if tied)

    def _score_new(self, new: list[Family]) -> None:
        """Ask about ties, size and shape in one round, and about the shape of noise of varying size in another."""
        ties = self._tie_queries(new)
        forms = self._forms.find(new, self.without_density, self._by_value)
        self._ask([*ties.values(), *self._first_queries(forms)])
        self._read_ties(ties)
        if not self.without_density.isdisjoint(ties):
            forms = self._forms.find(new, self.without_density, self._by_value)
        for family in new:
            self._asked[family] = tuple(self._plan_form(family, form) for form in forms[family])
        later = [query for family in new for form in self._asked[family] for query in form[3:] if query is not None]
        self._ask(later)
        self._compute_factors(query for family in new for form in self._asked[family] for query in form[2:])
        for family in new:
            factors = noise_factors(self._asked[family], self._factors)
            values = [form.evidence + factor for form, factor in zip(forms[family], factors, strict=True)]
            self._gaussian[family] = max(map(self._gaussian_evidence, forms[family], self._asked[family]))
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

    def _plan_form(self, family: Family, form: FamilyForm) -> AskedForm:
        """Return the queries about the shape of the noise of one form, with constant and with varying size."""
        if not self._has_density(family.node):
            return AskedForm(form.curved, form.scored)
        plain, sizes, sized = self._query(family, form, SHAPE), self._query(family, form, SIZE), None
        product, gain = self._plan_product(family, form, plain)
        if self._sized_parents(form) and sizes in self._answers:
            answer = add_clients(self._answers[sizes])
            fit = self._fit_size(form, answer)
            if fit.may_pay(SIZE_PRICE, answer.rows) and fit.expected_gain(SIZE_PRICE, answer.rows) >= gain:
                sized = self._query(family, form, SHAPE, tuple(map(shorten, fit.coefficients)))
        return AskedForm(form.curved, form.scored, plain, sized, product)

    def _plan_product(
        self, family: Family, form: FamilyForm, plain: ResidualQuery
    ) -> tuple[ResidualQuery | None, float]:
        """Return the query with the product of two parents, if it may pay, and its expected gain in evidence."""
        products = self._query(family, form, PRODUCTS)
        if not self._has_products(form) or products not in self._answers:
            return None, 0.0
        fit = self._fit_product(add_clients(self._answers[products]))
        if fit.gain <= 0:
            return None, 0.0
        query = replace(plain, product=fit.pair, product_weights=tuple(map(shorten, fit.weights)))
        self._product_gains[query] = fit.gain
        return query, fit.gain

    def _gaussian_evidence(self, form: FamilyForm, asked: AskedForm) -> float:
        """Return the Gaussian evidence of a form, with the product of two parents if that is likely."""
        query = asked.with_product
        return form.evidence + (self._product_gains[query] if query is not None and query in self._factors else 0.0)

    @cached_property
    def linear(self) -> FamilyScore:
        """Return the Gaussian score with linear mechanisms."""
        return self.score.linear

    @cached_property
    def _forms(self) -> FamilyForms:
        return FamilyForms(self.known, self.basis, self.score)

    # Requests

    def _has_density(self, node: str) -> bool:
        """Return whether a node is a number of which not too many rows share one value, as far as is known."""
        return node in self._forms.dense_nodes and not self._tied.get(node, False)

    def _first_queries(self, forms: Mapping[Family, Sequence[FamilyForm]]) -> Iterator[ResidualQuery]:
        """Yield the queries about the size of the noise and about its shape with constant size, likely ones first."""
        for family, several in sorted(forms.items(), key=lambda item: self._implausibility(item[0], forms)):
            for form in several if self._has_density(family.node) else ():
                yield self._query(family, form, SHAPE)
                if self._sized_parents(form):
                    yield self._query(family, form, SIZE)
                if self._has_products(form):
                    yield self._query(family, form, PRODUCTS)

    def _implausibility(self, family: Family, forms: Mapping[Family, Sequence[FamilyForm]]) -> float:
        """Return how far the Gaussian evidence of a family is below the best of its node."""
        best = max(form.evidence for other in forms if other.node == family.node for form in forms[other])
        return best - max(form.evidence for form in forms[family])

    def _tie_queries(self, families: Sequence[Family]) -> dict[str, ResidualQuery]:
        """Return queries about nodes of which many rows may share one value."""
        nodes = sorted(({family.node for family in families} & self._forms.dense_nodes) - self._tied.keys())
        return {name: ResidualQuery(name, (), TIES, (), (), 1.0) for name in nodes}

    def _read_ties(self, ties: Mapping[str, ResidualQuery]) -> None:
        for name, query in ties.items():
            share = 1.0
            if query in self._answers:
                total = add_clients(self._answers[query])
                share = total.sums[0] / (GRID * total.rows)
            self._tied[name] = bool(share > MAX_TIED_SHARE)

    def _sized_parents(self, form: FamilyForm) -> list[str]:
        """Return the parents on which the size of the noise may depend: the continuous ones."""
        return [name for name in form.parents if name not in self.basis.levels]

    def _has_products(self, form: FamilyForm) -> bool:
        """Return whether two parents may act by their product: on values, not on normal scores, to save sums."""
        return len(self._sized_parents(form)) > 1 and not form.scored

    def _fit_product(self, answer: ResidualSums) -> ProductFit:
        query = answer.query
        regressions = {pair: self._forms.regress_product(pair, query.differs) for pair in query.pairs(self.known.plan)}
        return fit_product(answer.sums / GRID * PRODUCT_BOUND, regressions, answer.rows)

    def _fit_size(self, form: FamilyForm, answer: ResidualSums) -> SizeFit:
        parents, basis = self._sized_parents(form), self.basis
        sums = answer.sums / GRID * size_bounds(len(parents))
        first = np.array([1 + basis.targets[name][0] for name in parents])
        second = np.array([1 + basis.spans[name][min(1, len(basis.spans[name]) - 1)] for name in parents])
        products = term_products(self._moments, first, [basis.squares[name] for name in parents], second)
        return fit_size(sums, products * answer.rows / basis.total_rows, answer.rows)

    def _query(self, family: Family, form: FamilyForm, about: str, size: tuple[float, ...] = ()) -> ResidualQuery:
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
        coordinates = {name: self._forms.coordinates[name] for name in names}
        wanted = sorted(self.source.select_affordable(wanted, coordinates), key=lambda query: query.key)
        if not wanted:
            return
        self._rounds += 1
        used = {name for query in wanted for name in (query.node, *query.parents)}
        coordinates = {name: one for name, one in coordinates.items() if name in used}
        request = ResidualRequest(self.known.plan.fingerprint, self._rounds, coordinates, tuple(wanted))
        squares = {query: self._forms.mean_squares(query) for query in wanted}
        for client, answers in self.source.ask_residuals(request).items():
            for one in answers:
                square = squares[one.query].get(client) if one.mean_square is None else one.mean_square
                self._answers.setdefault(one.query, {})[client] = replace(one, mean_square=square)

    @cached_property
    def _moments(self) -> Array:
        return np.asarray(self.basis.moments.sum(axis=0))
