"""One mechanism, fitted at every client separately: level, effects and noise, from the client's own moments.

At client k the node x (the linear column of a continuous variable, the indicator of a level) is regressed on the linear
columns of its continuous parents and the indicators of its categorical ones, each level against the first that occurs:

    slopes b = S⁺ s,   noise s² = (Σ(x − x̄)² − bᵀs) / (n − 1 − rank S),   level = x̄ + bᵀ(z₀ − z̄),

with S the scatter of the parents about their means at this client, s theirs with x, and z₀ the means of the parents in
all rows of the study. These are the values of ordinary least squares on the client's rows, each clipped as the plan
says and rounded to the grid.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedcdh._runtime.array_types import Array
from fedcdh.inference.heterogeneity.deviations import Estimates, ResidualVariance, WeightedEstimates
from fedcdh.inference.heterogeneity.residual_kurtosis import (
    ResidualCumulants,
    excess_kurtosis,
    fourth_cumulants,
    residual_cumulants,
)
from fedcdh.inference.orthonormal_basis import MIN_NEW_VARIANCE
from fedcdh.summaries.aggregation import Cohort
from fedcdh.summaries.encoder import GRID
from fedcdh.summaries.summary import MAX_CONSTANT_VARIANCE
from fedcdh.summaries.variables import Categorical, Variable

ROUNDING_VARIANCE = 1 / (12 * GRID**2)
"""Variance that rounding to the grid adds to a value: no noise is taken to be smaller."""
_MAX_UNIDENTIFIED_SHARE = (
    1e-3  # largest share of a combination of parents that the client's rows may leave unidentified
)


@dataclass(frozen=True)
class _RegressionColumn:
    """A column of a regression: its place, its unit in the units of the study, and the variable it belongs to."""

    place: int
    unit: float
    parent: str
    level: str | None = None
    baseline: tuple[str, int] | None = None  # the level it is compared with, and the place of its indicator

    @property
    def effect(self) -> str:
        against = f": {self.level} against {self.baseline[0]}" if self.baseline else ""
        return f"effect of {self.parent}{against}"


@dataclass(frozen=True)
class _Target:
    """The target of a regression: a continuous variable, or the indicator of one level."""

    place: int
    location: float
    unit: float
    level: str | None = None


@dataclass(frozen=True)
class _ClientMoments:
    """The rows of a client, the means of its columns, and their scatter about them."""

    rows: int
    means: Array
    scatter: Array

    def cumulants(self, at: list[int]) -> Array:
        """Return the fourth cumulants of these columns; their squares follow after all columns, in the same order."""
        both = [*at, *(len(self.means) // 2 + place for place in at)]
        return fourth_cumulants(self.scatter[np.ix_(both, both)], self.means[both], self.rows)


@dataclass(frozen=True)
class _ParentScatter:
    """The parents' scatter at one client, split into the slopes that its rows identify and those they do not."""

    varying: npt.NDArray[np.bool_]
    identified: Array  # (columns, rank): S⁺ = identified · identifiedᵀ
    unidentified: Array  # (columns, rest): orthonormal combinations of standardised columns that do not vary here
    spread: Array

    @classmethod
    def of(cls, scatter: Array, rows: int) -> _ParentScatter:
        varying = scatter.diagonal() > MAX_CONSTANT_VARIANCE * rows
        spread = np.where(varying, np.sqrt(np.maximum(scatter.diagonal(), 0.0)), 1.0)
        scaled = np.where(np.multiply.outer(varying, varying), scatter / np.multiply.outer(spread, spread), 0.0)
        values, vectors = np.linalg.eigh(scaled)
        kept = values > MIN_NEW_VARIANCE
        return cls(varying, vectors[:, kept] / np.sqrt(values[kept]) / spread[:, None], vectors[:, ~kept], spread)

    @property
    def rank(self) -> int:
        return int(self.identified.shape[1])

    def knows(self, combination: Array) -> bool:
        """Return whether this combination of slopes follows from the client's rows."""
        still = np.where(self.varying, 0.0, np.abs(combination))
        scaled = np.where(self.varying, combination / self.spread, 0.0)
        return bool(
            (still <= np.sqrt(MAX_CONSTANT_VARIANCE)).all()
            and np.linalg.norm(self.unidentified.T @ scaled) <= _MAX_UNIDENTIFIED_SHARE * np.linalg.norm(scaled)
        )

    def known_part(self, combination: Array) -> Array:
        """Return the nearest combination that does."""
        scaled = np.where(self.varying, combination, 0.0) / self.spread
        return np.asarray((scaled - self.unidentified @ (self.unidentified.T @ scaled)) * self.spread)


@dataclass(frozen=True, eq=False)
class ClientRegressions:
    """The linear columns and indicators of all variables at every client, from which mechanisms are fitted.

    Attributes
    ----------
    variables : mapping from str to Variable
        The variables of the plan.
    clip : float
        The plan's limit, in scales.
    starts : mapping from str to int
        The first column of each variable.
    means : array
        Means over all rows of the study.
    clients : tuple
        The moments of each client.

    Examples
    --------
    >>> import fedcdh
    >>> cohort = fedcdh.discover(fedcdh.demo.hospital_study().columns(), domain="hospital").cohort
    >>> estimates = ClientRegressions.of(cohort).estimates("systolic_pressure", ["age"])
    >>> [estimate.quantity for estimate in estimates]
    ['level', 'effect of age', 'noise']
    """

    variables: Mapping[str, Variable]
    clip: float
    starts: Mapping[str, int]
    means: Array
    clients: tuple[_ClientMoments, ...]

    @classmethod
    def of(cls, cohort: Cohort) -> ClientRegressions:
        """Collect the moments of a cohort.

        Parameters
        ----------
        cohort : Cohort
            The summaries of the clients.

        Returns
        -------
        ClientRegressions
            Their linear columns and indicators.
        """
        places: list[int] = []
        squares: list[int] = []
        starts = {}
        for variable in cohort.plan.variables:
            span = cohort.plan.layout.spans[variable.name]
            starts[variable.name] = len(places)
            if isinstance(variable, Categorical):  # an indicator is its own square
                squares += range(span.start, span.stop)
            else:
                squares.append(span.start + 1)
            places += range(span.start, span.start + len(squares) - len(places))
        clients, kept = [], [*places, *squares]
        for summary in cohort.summaries:
            means, scatter = summary.means_and_scatter()
            clients.append(_ClientMoments(summary.rows, means[kept], scatter[np.ix_(kept, kept)]))
        variables = {variable.name: variable for variable in cohort.plan.variables}
        means = cohort.total.moments[0][places] / cohort.total.moments[0, 0]
        return cls(variables, cohort.plan.clip, starts, means, tuple(clients))

    def estimates(self, node: str, parents: Iterable[str]) -> Iterator[Estimates]:
        """Estimate the quantities of one mechanism at every client.

        Parameters
        ----------
        node : str
            The variable.
        parents : iterable of str
            Its causes.

        Yields
        ------
        Estimates
            Level, effects and noise of a continuous node; share and effects for every level of a categorical one.
        """
        columns = tuple(self._columns(sorted(parents)))
        centre = self.means[[column.place for column in columns]]
        for target in self._targets(node):
            yield from _Mechanism(target, columns, centre, self.clients).estimates()

    def _present_levels(self, variable: Categorical) -> list[tuple[str, int]]:
        """Return the levels that occur in the study, and the places of their indicators."""
        start = self.starts[variable.name]
        return [(level, start + code) for code, level in enumerate(variable.levels) if self.means[start + code]]

    def _columns(self, parents: list[str]) -> Iterator[_RegressionColumn]:
        for name in parents:
            variable = self.variables[name]
            if isinstance(variable, Categorical):
                first, *others = self._present_levels(variable)
                yield from (_RegressionColumn(place, 1.0, name, level, first) for level, place in others)
            else:
                yield _RegressionColumn(self.starts[name], self.clip * variable.scale, name)

    def _targets(self, node: str) -> Iterator[_Target]:
        variable = self.variables[node]
        if isinstance(variable, Categorical):
            yield from (_Target(place, 0.0, 1.0, level) for level, place in self._present_levels(variable))
        else:
            yield _Target(self.starts[node], variable.location, self.clip * variable.scale)


@dataclass(frozen=True)
class _ClientFit:
    """The regression at one client."""

    client: _ClientMoments
    parents: _ParentScatter
    slopes: Array
    mean: float
    noise: float  # variance of the residuals
    freedom: int


@dataclass(frozen=True)
class _Mechanism:
    """The regressions of one target on its parents at all clients."""

    target: _Target
    columns: tuple[_RegressionColumn, ...]
    centre: Array  # means of the parents' columns in all rows
    clients: tuple[_ClientMoments, ...]

    @property
    def _places(self) -> list[int]:
        return [column.place for column in self.columns]

    def estimates(self) -> Iterator[Estimates]:
        fits = [self._fit(client) for client in self.clients]
        yield self._level(fits)
        for j in range(len(self.columns)):
            yield self._effect(fits, j)
        if self.target.level is None:
            yield self._noise(fits)

    def _fit(self, client: _ClientMoments) -> _ClientFit:
        at, y = self._places, self.target.place
        parents = _ParentScatter.of(client.scatter[np.ix_(at, at)], client.rows)
        crossed = client.scatter[at, y]
        slopes = parents.identified @ (parents.identified.T @ crossed)
        freedom = client.rows - 1 - parents.rank
        left = float(client.scatter[y, y] - slopes @ crossed)
        noise = max(left / freedom if freedom > 0 else np.nan, self._min_variance(client.rows))
        return _ClientFit(client, parents, slopes, float(client.means[y]), noise, freedom)

    def _min_variance(self, rows: int) -> float:
        """Return the smallest noise: rounding, or for a level that all or no rows have, half a row in one more."""
        if self.target.level is None:
            return ROUNDING_VARIANCE
        share = 0.5 / (rows + 1)
        return share * (1 - share)

    def _level(self, fits: list[_ClientFit]) -> Estimates:
        values, design, notes = [], [], []
        for fit in fits:
            away = self.centre - fit.client.means[self._places]
            known = fit.parents.knows(away)
            away = away if known else fit.parents.known_part(away)
            values.append(self.target.location + self.target.unit * (fit.mean + float(away @ fit.slopes)))
            design.append(
                self.target.unit**2 * (1 / fit.client.rows + float(((away @ fit.parents.identified) ** 2).sum()))
            )
            notes.append("" if known else "not comparable: " + self._describe_unidentified(fit))
        name = "level" if self.target.level is None else f"share of {self.target.level}"
        return self._weigh(name, fits, values, design, notes, within=self.target.level is not None)

    def _describe_unidentified(self, fit: _ClientFit) -> str:
        """Return why the level is not that at the means of all rows: the parents' effects that are not known here."""
        return "; ".join(dict.fromkeys(why for j in range(len(self.columns)) if (why := self._reason(fit, j))))

    def _reason(self, fit: _ClientFit, j: int) -> str:
        """Return why the effect of a column is not known at a client; an empty text if it is."""
        column, means = self.columns[j], fit.client.means
        if fit.parents.knows(np.eye(len(self.columns))[j]):
            return ""
        for level, place in ((column.level, column.place), column.baseline or (None, 0)):
            if level is not None and means[place] == 0:
                return f"no row here has {column.parent} = {level}"
        if not fit.parents.varying[j]:
            return f"{column.parent} does not vary here"
        return f"{column.parent} cannot be distinguished from the other causes here"

    def _effect(self, fits: list[_ClientFit], j: int) -> Estimates:
        unit = self.target.unit / self.columns[j].unit
        values = [unit * float(fit.slopes[j]) for fit in fits]
        design = [unit**2 * float((fit.parents.identified[j] ** 2).sum()) for fit in fits]
        notes = [self._reason(fit, j) for fit in fits]
        values = [np.nan if note else value for value, note in zip(values, notes, strict=True)]
        on = "" if self.target.level is None else f" on {self.target.level}"
        return self._weigh(self.columns[j].effect + on, fits, values, design, notes)

    def _noise(self, fits: list[_ClientFit]) -> Estimates:
        """Return the noise; Var s² = σ⁴ (2/freedom + κ/n), so heavy tails reduce the degrees of freedom."""
        kurtosis = excess_kurtosis([self._residuals(fit) for fit in fits if fit.freedom > 0])
        freedom = np.array([fit.freedom / (1 + kurtosis * fit.freedom / (2 * fit.client.rows)) for fit in fits])
        variances = np.array([fit.noise if fit.freedom > 0 else np.nan for fit in fits])
        return ResidualVariance(
            "noise", self.target.unit * np.sqrt(variances), freedom, tuple(map(self._too_few, fits))
        )

    def _residuals(self, fit: _ClientFit) -> ResidualCumulants:
        cumulants = fit.client.cumulants([self.target.place, *self._places])
        signal = float(fit.slopes @ fit.client.scatter[self._places, self.target.place]) / fit.client.rows
        return residual_cumulants(cumulants, fit.slopes, fit.client.rows, fit.noise, max(signal, 0.0))

    def _too_few(self, fit: _ClientFit) -> str:
        count = 1 + len(self.columns)
        return "" if fit.freedom > 0 else f"too few rows ({fit.client.rows}) for a regression with {count} coefficients"

    def _weigh(
        self,
        name: str,
        fits: list[_ClientFit],
        values: list[float],
        design: list[float],
        notes: list[str],
        within: bool = False,
    ) -> WeightedEstimates:
        few = [self._too_few(fit) for fit in fits]
        return WeightedEstimates(
            name,
            np.array([np.nan if note else value for value, note in zip(values, few, strict=True)]),
            np.array(design),
            np.array([fit.noise for fit in fits]),
            np.array([fit.freedom for fit in fits], dtype=np.float64),
            np.array([not note and not less for note, less in zip(notes, few, strict=True)]),
            tuple(less or note for note, less in zip(notes, few, strict=True)),
            within,
        )
