"""Family scores with free shape and size of the noise, from sums of residuals that the clients are asked for.

The score of a family is the Gaussian evidence of the summaries (`family_score`), plus the log Bayes factor of a free
density of the standardised residuals (`noise_shape`). The size of the noise may also depend on the parents
(`noise_size`), and the product of two parents may be in the regression (`product_terms`). Each family has one form,
linear or nonlinear, whichever has more Gaussian evidence.

Families with a categorical node, or with a node of which many rows share one value, have no density; their score stays
Gaussian.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from fedcdh._runtime.array_types import Array
from fedcdh.inference.counted_rows import counted_shares
from fedcdh.inference.evidence.family_forms import FamilyForm, FamilyForms, shorten
from fedcdh.inference.evidence.family_score import FamilyScore
from fedcdh.inference.evidence.noise_size import SizeFit, fit_size, term_products
from fedcdh.inference.evidence.product_terms import ProductFit, fit_product
from fedcdh.inference.evidence.residual_factors import NOT_ASKED, SIZE_PRICE, noise_factors, shape_factors
from fedcdh.inference.evidence.residual_record import AskedForm, KnownScore, ResidualRecord, add_clients
from fedcdh.inference.orthonormal_basis import Basis
from fedcdh.protocols import DOMAIN, Family
from fedcdh.summaries.aggregation import Aggregate, Cohort
from fedcdh.summaries.encoder import GRID
from fedcdh.summaries.joint import AnswerSource
from fedcdh.summaries.residuals import PRODUCTS, SHAPE, SIZE, TIES, ResidualQuery, ResidualRequest, ResidualSums
from fedcdh.summaries.residuals.functions import PRODUCT_BOUND, size_bounds

MIN_SCORE_LEAD = 20.0
"""Expected log Bayes factor of normal scores against values from which both are asked about at once. Values gain more
by the shape of their noise."""
SCORE_REACH = 10.0
"""How much the shape of the noise may add to the Gaussian evidence of normal scores, before these are asked about."""
GAIN_REACH = (1.5, 30.0)
"""The gain by a varying size of the noise, or by a product, is at most this multiple of the expected one, plus this.
The shape of the noise shows only once its size and the mechanism are known, which adds to the gain."""
MAX_TIED_SHARE = 0.08
"""Share of rows with the most frequent value at their client, from which a variable counts as having no density."""


@dataclass(eq=False)
class ResidualScore:
    """A local score that asks the clients about the residuals of families.

    A request may hold three kinds of questions about a family: first the shape of its noise and, if it has causes, the
    size and products of two causes; then the shape with a varying size or with a product, if the answers call for it;
    and the same of normal scores, where these may explain the node better than its values do.

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
    _found: dict[Family, tuple[FamilyForm, ...]] = field(default_factory=dict, init=False)
    _scores: dict[Family, KnownScore] = field(default_factory=dict, init=False)
    _tied: dict[str, bool] = field(default_factory=dict, init=False)
    _factors: dict[ResidualQuery, float] = field(default_factory=dict, init=False)
    _answers: dict[ResidualQuery, dict[str, ResidualSums]] = field(default_factory=dict, init=False)
    _rounds: int = field(default=0, init=False)

    def __call__(self, families: Sequence[Family], /) -> list[float]:
        """Return the log score of each family, in their order; `NOT_ASKED` beyond the limits of the plan.

        All families of a call are asked about together, in at most two rounds.
        """
        wanted = dict.fromkeys(sorted(families, key=lambda family: (family.node, sorted(family.parents))))
        if self.ask(wanted):
            self.ask(wanted)
        return self.known_only(families)

    def known_only(self, families: Sequence[Family], /) -> list[float]:
        """Return the scores of families that were asked about, and `NOT_ASKED` for others.

        Parameters
        ----------
        families : sequence of Family
            Nodes with their parents.

        Returns
        -------
        list of float
            The scores, from what was answered so far.
        """
        return [self._scores[family].value if family in self._scores else NOT_ASKED for family in families]

    def expect(self, families: Mapping[Family, Family | None], /) -> list[float]:
        """Return how high the scores may be, without asking.

        Parameters
        ----------
        families : mapping from Family to Family or None
            Families, each with a family of the same node that may be known.

        Returns
        -------
        list of float
            For a family that was asked about, a limit of what further answers may add. For another one, its Gaussian
            evidence and what the noise adds to the known family.
        """
        self._find_forms(family for family in families if family not in self._scores)
        return [
            self._scores[family].limit if family in self._scores else max(self._predict(family, other))
            for family, other in families.items()
        ]

    def gaussian(self, families: Sequence[Family], /) -> list[float]:
        """Return the part of the scores that the summaries give: Gaussian noise of constant size.

        Parameters
        ----------
        families : sequence of Family
            Nodes with their parents, which were scored before.

        Returns
        -------
        list of float
            The Gaussian evidence of the best form that was asked about.
        """
        return [self._scores[family].gaussian for family in families]

    def prefers_normal_score(self, family: Family) -> bool:
        """Return whether normal scores explain a node better than its values do: its mechanism is not additive.

        Parameters
        ----------
        family : Family
            A node with its parents, which was scored before.

        Returns
        -------
        bool
            False for a family without parents, and where only one of the two was asked about.
        """
        factors = self._scores[family].factors if family in self._scores else {}
        if not family.parents or len(factors) < 2:
            return False
        value = {
            form.scored: form.evidence + factors[form.scored] for form in self._found[family] if form.scored in factors
        }
        return value[True] > value[False]

    def best_form(self, family: Family) -> tuple[FamilyForm, ResidualQuery] | None:
        """Return the form of a family with the highest score, and the query about the noise that scores highest.

        Parameters
        ----------
        family : Family
            A node with its parents.

        Returns
        -------
        tuple of FamilyForm and ResidualQuery, or None
            None where the clients were not asked about the noise of the family.
        """
        known = self._scores.get(family)
        if known is None or not known.factors:
            return None
        forms = {form.scored: form for form in self._found[family]}
        asked = max(known.forms, key=lambda one: forms[one.scored].evidence + known.factors[one.scored])
        queries = [query for query in asked[2:] if query is not None and query in self._factors]
        return forms[asked.scored], max(queries, key=lambda query: self._factors[query])

    def answers(self, query: ResidualQuery) -> Mapping[str, ResidualSums]:
        """Return the answers to a query by client.

        Parameters
        ----------
        query : ResidualQuery
            A query that was answered.

        Returns
        -------
        mapping from str to ResidualSums
            The answers.
        """
        return self._answers[query]

    @property
    def record(self) -> ResidualRecord:
        """Return what was asked and answered so far."""
        entries = sum(query.count_entries(self.known.plan) for query in self._answers)
        asked = {family: one.forms for family, one in self._scores.items() if one.value != NOT_ASKED}
        left_out = len(self._scores) - len(asked)
        return ResidualRecord(asked, self._answers, self._rounds, entries, left_out, self.forms.coordinates)

    @property
    def without_density(self) -> frozenset[str]:
        """Return the variables of which many rows share one value."""
        return frozenset(name for name, tied in self._tied.items() if tied)

    def ask(self, families: Mapping[Family, Family | None], /) -> bool:
        """Send one request for what is open about these families.

        Parameters
        ----------
        families : mapping from Family to Family or None
            Families, each with a family of the same node that may be known.

        Returns
        -------
        bool
            Whether anything new is known.
        """
        new, rounds = families.keys() - self._scores.keys(), self._rounds
        self._find_forms(families)
        ties = self._tie_queries(families)
        ordered = sorted(families, key=self._implausibility(families))
        self._ask([*ties.values(), *(query for family in ordered for query in self._open(family, families[family]))])
        self._read_ties(ties)
        self._find_forms(families)
        asked = {family: self._asked_forms(family) for family in families}
        self._compute_factors(query for forms in asked.values() for form in forms for query in form[2:])
        self._scores.update({family: self._judge(family, asked[family]) for family in families})
        return bool(new) or self._rounds > rounds

    def _find_forms(self, families: Iterable[Family]) -> None:
        """Find the forms of families, from the summaries."""
        new = sorted({*families} - self._found.keys(), key=lambda family: (family.node, sorted(family.parents)))
        if new:
            self._found.update(self.forms.find(new, self.without_density))

    def _compute_factors(self, queries: Iterable[ResidualQuery | None]) -> None:
        """Compute the log Bayes factors of shape and size for answered queries, in one batch."""
        new = [query for query in dict.fromkeys(queries) if query in self._answers and query not in self._factors]
        answers = [add_clients(self._answers[query]) for query in new]
        self._factors.update(zip(new, shape_factors(answers, self.counted_share), strict=True))

    def _asked_forms(self, family: Family) -> tuple[AskedForm, ...]:
        """Return the forms of a family that were asked about; its value if none was."""
        if not self._has_density(family.node):
            return tuple(AskedForm(form.curved, form.scored) for form in self._found[family][:1])
        planned = [self._plan_form(family, form) for form in self._found[family]]
        return tuple(form for form in planned if form.plain in self._answers) or (planned[0],)

    def _judge(self, family: Family, asked: tuple[AskedForm, ...]) -> KnownScore:
        """Return the score of a family from what was answered, and how high it may be."""
        forms = {form.scored: form for form in self._found[family]}
        factors = {one.scored: factor for one, factor in zip(asked, noise_factors(asked, self._factors), strict=True)}
        value = float(np.logaddexp.reduce([forms[scored].evidence + factors[scored] for scored in factors]))
        gaussian = max(self._gaussian_evidence(family, forms[one.scored], one) for one in asked)
        if value == NOT_ASKED or asked[0].plain is None:
            return KnownScore(value, value, gaussian, asked, {})
        reached = [self._limit(family, forms[one.scored], one) for one in asked]
        others = [form.evidence + SCORE_REACH for scored, form in forms.items() if scored not in factors]
        return KnownScore(value, max(value, *reached, *others), gaussian, asked, factors)

    def _limit(self, family: Family, form: FamilyForm, asked: AskedForm) -> float:
        """Return how high the score may be once the clients are asked about varying size, or about a product."""
        gains = []
        if asked.sized is not None and asked.sized not in self._factors:
            gains.append(self._size_gain(family, form))
        if asked.with_product is not None and asked.with_product not in self._factors:
            gains.append(self._product_fit(family, form).gain)
        if not gains or asked.plain is None:
            return NOT_ASKED
        times, more = GAIN_REACH
        return form.evidence + self._factors[asked.plain] + times * max(gains) + more

    def _gaussian_evidence(self, family: Family, form: FamilyForm, asked: AskedForm) -> float:
        """Return the Gaussian evidence of a form, with the product of two parents if that was asked about."""
        known = asked.with_product in self._factors
        return form.evidence + (self._product_fit(family, form).gain if known else 0.0)

    def _predict(self, family: Family, other: Family | None) -> list[float]:
        """Return the Gaussian evidence of each form, and what the noise adds to that form of another family."""
        gains = self._scores[other].factors if other in self._scores else {}
        return [form.evidence + gains.get(form.scored, 0.0) for form in self._found[family]]

    def _plan_form(self, family: Family, form: FamilyForm) -> AskedForm:
        """Return the queries about the shape of the noise: as it is, with a varying size, and with a product."""
        plain, sized, with_product, gain = self._query(family, form, SHAPE), None, None, 0.0
        if self._has_products(form) and self._query(family, form, PRODUCTS) in self._answers:
            fit = self._product_fit(family, form)
            if fit.gain > 0:
                weights, gain = tuple(map(shorten, fit.weights)), fit.gain
                with_product = replace(plain, product=fit.pair, product_weights=weights)
        if self._query(family, form, SIZE) in self._answers and self._size_gain(family, form) > gain:
            coefficients = self._size_fit(family, form).coefficients
            sized = self._query(family, form, SHAPE, tuple(map(shorten, coefficients)))
        return AskedForm(form.curved, form.scored, plain, sized, with_product)

    def _size_fit(self, family: Family, form: FamilyForm) -> SizeFit:
        """Return the size of the noise that the answers give."""
        return self._fit_size(form, add_clients(self._answers[self._query(family, form, SIZE)]))

    def _size_gain(self, family: Family, form: FamilyForm) -> float:
        """Return the expected gain in evidence by a varying size of the noise."""
        rows = add_clients(self._answers[self._query(family, form, SIZE)]).rows
        return self._size_fit(family, form).expected_gain(SIZE_PRICE, rows, self.counted_share)

    def _product_fit(self, family: Family, form: FamilyForm) -> ProductFit:
        """Return the product of two parents that explains most, by the answers."""
        answer = add_clients(self._answers[self._query(family, form, PRODUCTS)])
        pairs = answer.query.pairs(self.known.plan)
        regressions = {pair: self.forms.regress_product(pair, answer.query.differs) for pair in pairs}
        return fit_product(answer.sums / GRID * PRODUCT_BOUND, regressions, answer.rows, self.counted_share)

    @cached_property
    def counted_share(self) -> float:
        """Return the share of the rows that counts, where rows depend on each other."""
        return counted_shares(self.known).product

    @cached_property
    def linear(self) -> FamilyScore:
        """Return the Gaussian score with linear mechanisms."""
        return self.score.linear

    @cached_property
    def forms(self) -> FamilyForms:
        """Return the forms of families, from the summaries."""
        return FamilyForms(self.known, self.basis, self.score)

    # Requests

    def _has_density(self, node: str) -> bool:
        """Return whether a node is a number of which not too many rows share one value, as far as is known."""
        return node in self.forms.dense_nodes and not self._tied.get(node, False)

    def _open(self, family: Family, other: Family | None) -> Iterator[ResidualQuery]:
        """Yield the queries about a family that are open, given another family of the same node that may be known."""
        if not self._has_density(family.node):
            return
        value, *scores = (self._plan_form(family, form) for form in self._found[family])
        if value.plain in self._answers:
            wanted = [form for form in scores if self._found[family][1].evidence + SCORE_REACH > self._value(family)]
        else:
            yield from self._first_queries(family)
            predicted = self._predict(family, other)
            wanted = [form for form in scores if predicted[1] > predicted[0] + MIN_SCORE_LEAD]
        yield from (form.plain for form in wanted if form.plain is not None)
        yield from (query for query in (value.sized, value.with_product) if query is not None)

    def _first_queries(self, family: Family) -> Iterator[ResidualQuery]:
        """Yield the query about the shape of the noise; before the last round, also those about size and products."""
        form = self._found[family][0]
        yield self._query(family, form, SHAPE)
        if self._rounds + 1 < self.known.plan.max_rounds:
            if self._sized_parents(form):
                yield self._query(family, form, SIZE)
            if self._has_products(form):
                yield self._query(family, form, PRODUCTS)

    def _value(self, family: Family) -> float:
        return self._scores[family].value if family in self._scores else NOT_ASKED

    def _implausibility(self, families: Iterable[Family]) -> Callable[[Family], float]:
        """Return how far the Gaussian evidence of a family is below the best of its node."""
        evidence = {family: max(form.evidence for form in self._found[family]) for family in families}
        best: dict[str, float] = {}
        for family, value in evidence.items():
            best[family.node] = max(value, best.get(family.node, value))
        return lambda family: best[family.node] - evidence[family]

    def _tie_queries(self, families: Iterable[Family]) -> dict[str, ResidualQuery]:
        """Return queries about nodes of which many rows may share one value."""
        nodes = sorted(({family.node for family in families} & self.forms.dense_nodes) - self._tied.keys())
        return {name: ResidualQuery(name, (), TIES, (), (), 1.0) for name in nodes}

    def _read_ties(self, ties: Mapping[str, ResidualQuery]) -> None:
        for name, query in ties.items():
            share = 1.0
            if query in self._answers:
                total = add_clients(self._answers[query])
                share = total.sums[0] / (GRID * total.rows)
            self._tied[name] = bool(share > MAX_TIED_SHARE)
            if self._tied[name]:
                self._found = {family: forms for family, forms in self._found.items() if family.node != name}

    def _sized_parents(self, form: FamilyForm) -> list[str]:
        """Return the parents on which the size of the noise may depend: the continuous ones."""
        return [name for name in form.parents if name not in self.basis.levels]

    def _has_products(self, form: FamilyForm) -> bool:
        """Return whether two parents may act by their product: on values, not on normal scores, to save sums."""
        return len(self._sized_parents(form)) > 1 and not form.scored

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
        coordinates = {name: self.forms.coordinates[name] for name in names}
        wanted = sorted(self.source.select_affordable(wanted, coordinates), key=lambda query: query.key)
        if not wanted:
            return
        self._rounds += 1
        used = {name for query in wanted for name in (query.node, *query.parents)}
        coordinates = {name: one for name, one in coordinates.items() if name in used}
        request = ResidualRequest(self.known.plan.fingerprint, self._rounds, coordinates, tuple(wanted))
        squares = {query: self.forms.mean_squares(query) for query in wanted}
        for client, answers in self.source.ask_residuals(request).items():
            for one in answers:
                square = squares[one.query].get(client) if one.mean_square is None else one.mean_square
                self._answers.setdefault(one.query, {})[client] = replace(one, mean_square=square)

    @cached_property
    def _moments(self) -> Array:
        return np.asarray(self.basis.moments.sum(axis=0))
