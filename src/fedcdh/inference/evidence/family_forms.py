"""The forms of a family: linear or nonlinear, of values or of normal scores, with their Gaussian evidence."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from fedcdh._runtime.array_types import Array
from fedcdh.inference.evidence.family_score import FamilyScore
from fedcdh.inference.normal_scores import NormalScore, find_normal_scores
from fedcdh.inference.orthonormal_basis import Basis
from fedcdh.protocols import DOMAIN, Family
from fedcdh.summaries.aggregation import Aggregate, Cohort
from fedcdh.summaries.residuals import SHAPE, Coordinates, ResidualQuery
from fedcdh.summaries.residuals.products import ProductRegression, regress_product

CURVATURE_PRICE = 5.0
"""Log prior odds against nonlinear effects of the parents."""
SCORE_PRICE = 15.0
"""Log prior odds against a mechanism that is additive on normal scores instead of values."""
RIDGE = 0.01
"""Precision of the prior of a weight, in rows: keeps collinear columns solvable."""
_MIN_VARIANCE = 1e-6


class FamilyForm(NamedTuple):
    """A form of a family: linear or nonlinear, of values or normal scores, with its Gaussian evidence.

    Attributes
    ----------
    evidence : float
        Gaussian evidence, with the log prior odds of the form.
    curved : bool
        Whether the parents act nonlinearly.
    scored : bool
        Whether the normal score of the node is explained, instead of its value.
    parents : tuple of str
        The parents, sorted.
    widths : tuple of int
        Number of coordinates of each parent.
    weights : tuple of float
        Weights of these coordinates.
    deviation : float
        Standard deviation of the residuals.

    Examples
    --------
    >>> FamilyForm(evidence=-10.0).curved
    False
    """

    evidence: float
    curved: bool = False
    scored: bool = False
    parents: tuple[str, ...] = ()
    widths: tuple[int, ...] = ()
    weights: tuple[float, ...] = ()
    deviation: float = 1.0


@dataclass(frozen=True, eq=False)
class FamilyForms:
    """Finds the forms of families, from the summaries alone.

    Attributes
    ----------
    known : Cohort or Aggregate
        The summaries, or their sum.
    basis : Basis
        Their moments in orthonormal coordinates.
    score : FamilyScore
        The Gaussian score.

    Examples
    --------
    >>> import fedcdh
    >>> from fedcdh.summaries.aggregation import add_up
    >>> study = fedcdh.simulate(seed=1)
    >>> plan = fedcdh.StudyPlan.from_profiles([fedcdh.profile(rows, name) for name, rows in study.tables.items()])
    >>> known = add_up([fedcdh.summarize(rows, plan, name) for name, rows in study.tables.items()], plan)
    >>> basis = Basis.of(known)
    >>> forms = FamilyForms(known, basis, FamilyScore.of(known, basis))
    >>> len(forms.find([Family(plan.names[0])]))
    1
    """

    known: Cohort | Aggregate
    basis: Basis
    score: FamilyScore

    @cached_property
    def scores(self) -> dict[str, NormalScore]:
        return find_normal_scores(self.known)

    @cached_property
    def _score_weights(self) -> dict[str, Array]:
        """Return the normal scores in terms of their variables' coordinates, standardised."""
        found = {}
        for name, one in self.scores.items():
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
    def dense_nodes(self) -> frozenset[str]:
        """Return the continuous variables that are not constant."""
        names = self.basis.targets.items()
        return frozenset(name for name, columns in names if name not in self.basis.levels and len(columns))

    def find(
        self, families: Sequence[Family], few_values: Collection[str] = ()
    ) -> dict[Family, tuple[FamilyForm, ...]]:
        """Return the better of the linear and the nonlinear form; the same of normal scores, where there are any.

        Parameters
        ----------
        families : sequence of Family
            Nodes with their parents.
        few_values : collection of str
            Variables without a density: their form is linear.

        Returns
        -------
        dict from Family to tuple of FamilyForm
            One or two forms of each family.
        """
        straight, both = self.score.linear(families), self.score(families)
        found: dict[Family, tuple[FamilyForm, ...]] = {
            family: (self._better_form(family, (one, mean), family.node in few_values),)
            for family, one, mean in zip(families, straight, both, strict=True)
        }
        usable = (self.scores.keys() & self.dense_nodes) - {*few_values}
        scored = [family for family in families if family.node in usable]
        straight, both = self._scored_linear(scored), self._scored(scored)
        for family, one, mean in zip(scored, straight, both, strict=True):
            price = SCORE_PRICE - self.scores[family.node].log_jacobian
            found[family] += (self._better_form(family, (one - price, mean - price), scored=True),)
        return found

    def _better_form(
        self, family: Family, evidence: tuple[float, float], few_values: bool = False, *, scored: bool = False
    ) -> FamilyForm:
        """Return the linear or the nonlinear form, whichever has more Gaussian evidence."""
        straight, both = evidence
        parents = tuple(name for name in sorted(family.parents - {DOMAIN}) if len(self.basis.spans[name]))
        bends = any(len(self.basis.predictors[name]) > len(self.basis.targets[name]) for name in parents)
        bends = bends and not few_values
        curved = _log_other_half(straight, both) - CURVATURE_PRICE if bends else -np.inf
        if family.node not in self.dense_nodes:
            return FamilyForm(max(straight, curved))
        columns = self.basis.predictors if curved > straight else self.basis.targets
        used = [int(column) for name in parents for column in columns[name]]
        weights, variance = self._regress(self.target(family.node, scored), used, DOMAIN in family.parents)
        widths, numbers = tuple(len(columns[name]) for name in parents), tuple(map(shorten, weights))
        shape = (parents, widths, numbers, shorten(variance**0.5))
        return FamilyForm(max(straight, curved), curved > straight, scored, *shape)

    def target(self, node: str, scored: bool) -> Array:
        """Return the explained value of a node in terms of all coordinates."""
        target = np.zeros(self.basis.means.shape[1])
        if scored:
            target[self.basis.spans[node]] = self._score_weights[node]
        else:
            target[self.basis.targets[node][0]] = 1.0
        return target

    def has_curvature_of_scale_only(self, cause: str, effect: str) -> bool:
        """Return whether the effect of one variable on another is linear once both are normal scores.

        Curvature then says on which scales the variables were measured, and nothing about the direction: if x causes
        y = g(a x + noise), x is a nonlinear function of y plus noise.

        Parameters
        ----------
        cause, effect : str
            Names of two variables.

        Returns
        -------
        bool
            False where neither variable has normal scores, or one of them is categorical.
        """
        if not self.dense_nodes.issuperset((cause, effect)) or self.scores.keys().isdisjoint((cause, effect)):
            return False
        x, y = (self.target(name, name in self.scores) for name in (cause, effect))
        scatter, used = self.basis.within, self.basis.spans[cause]
        cross, inner = scatter[used] @ y, scatter[np.ix_(used, used)] + RIDGE * np.eye(len(used))
        total, linear = y @ scatter @ y, (x @ scatter @ y) ** 2 / (x @ scatter @ x)
        left = max(float(total - cross @ np.linalg.solve(inner, cross)), _MIN_VARIANCE)
        return bool(self.basis.total_rows / 2 * np.log((total - linear) / left) < CURVATURE_PRICE)

    def _regress(self, target: Array, columns: list[int], differs: bool) -> tuple[Array, float]:
        """Return the common weights and the variance of the residuals, in coordinates of the basis."""
        scatter = self.basis.within if differs else self.basis.total
        with_target = scatter @ target
        inner, cross = scatter[np.ix_(columns, columns)], with_target[columns]
        weights = np.linalg.solve(inner + RIDGE * np.eye(len(columns)), cross) if columns else np.zeros(0)
        left = target @ with_target - 2 * weights @ cross + weights @ inner @ weights
        return np.asarray(weights, dtype=np.float64), max(float(left) / self.basis.total_rows, _MIN_VARIANCE)

    def mean_squares(self, query: ResidualQuery) -> dict[str, float]:
        """Return the mean of z² over the rows of each client, for a mechanism that all share.

        It is 1 over all rows. If some clients do not answer, it differs from 1 over the rows of the others.

        Parameters
        ----------
        query : ResidualQuery
            A query that was made from a form.

        Returns
        -------
        dict from str to float
            Empty where the summaries do not tell.
        """
        if query.about != SHAPE or query.differs or not self.basis.has_client_scatter:
            return {}
        basis, residual = self.basis, self.target(query.node, query.scored)
        columns = [basis.spans[name][:width] for name, width in zip(query.parents, query.widths, strict=True)]
        if columns:
            residual[np.concatenate(columns)] -= query.weights
        used = np.flatnonzero(residual)
        residual = residual[used] / query.deviation
        within = basis.scatter[:, used[:, None], used] @ residual @ residual / basis.rows
        found = within + (basis.means[:, used] @ residual) ** 2
        return dict(zip(self.known.clients, found.tolist(), strict=True))

    def regress_product(self, pair: tuple[str, str], differs: bool) -> ProductRegression:
        """Return the regression of the product of two variables on these variables, over all rows.

        Parameters
        ----------
        pair : tuple of two str
            Two continuous variables.
        differs : bool
            Whether each client regresses by itself; the variance that is left is then that within clients.

        Returns
        -------
        ProductRegression
            The regression.
        """
        if (pair, differs) not in self._products:
            found = regress_product(pair, self.coordinates, self.known.plan, self.known.total)
            if differs:
                parts = [
                    (one.rows, regress_product(pair, self.coordinates, self.known.plan, one).variance)
                    for one in self.known.summaries
                ]
                total = sum(rows * variance for rows, variance in parts) / self.known.total.rows
                found = found._replace(variance=total)
            self._products[pair, differs] = found
        return self._products[pair, differs]

    @cached_property
    def _products(self) -> dict[tuple[tuple[str, str], bool], ProductRegression]:
        """Return the cache of `regress_product`."""
        return {}

    @cached_property
    def coordinates(self) -> dict[str, Coordinates]:
        """Return the coordinates of every variable, as requests state them."""
        means, found = self.known.total.means, {}
        for name, block in self.basis.transforms.items():
            if len(block.weights):
                scores = self._score_weights[name] @ block.weights if name in self._score_weights else ()
                matrix = tuple(tuple(map(shorten, row)) for row in block.weights)
                found[name] = Coordinates(
                    tuple(map(shorten, means[block.features])), matrix, tuple(map(shorten, scores))
                )
        return found


def shorten(number: float) -> float:
    """Return a number with twelve digits: no computer's last digit enters a request."""
    return float(f"{number:.12g}")


def _log_other_half(first: float, mean: float) -> float:
    """Return the log of the second of two numbers, given the logs of the first and of their mean."""
    rest = 2.0 - np.exp(min(first - mean, 50.0))
    return float(mean + np.log(max(rest, 1e-300)))
