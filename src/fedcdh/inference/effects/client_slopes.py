"""Slopes from summaries: at every client, and common to all clients within them.

With S_k the scatter of cause and adjustment set about their means at client k, s_k theirs with the outcome, and c the
contrast of coefficients that is asked for, the slopes are

    at client k    cᵀ S_k⁺ s_k            with variance   σ_k² cᵀ S_k⁺ c
    in common      cᵀ (Σ S_k)⁺ Σ s_k      with variance   cᵀ (Σ S_k)⁺ (Σ σ_k² S_k) (Σ S_k)⁺ c.

The common slope is that of ordinary least squares on all rows with an intercept for every client. Noise of different
size at the clients is allowed. Where only a sum over clients is known, σ² is that of all rows together.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedcdh._runtime.array_types import Array
from fedcdh.errors import SettingsError
from fedcdh.inference.counted_rows import variable_shares
from fedcdh.inference.effects.pooling import PooledEffect
from fedcdh.inference.orthonormal_basis import MIN_NEW_VARIANCE
from fedcdh.summaries.aggregation import Aggregate, Cohort
from fedcdh.summaries.encoder import GRID
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.summary import MAX_CONSTANT_VARIANCE
from fedcdh.summaries.variables import Categorical, Variable

MIN_FREEDOM = 2
"""Degrees of freedom from which the slope of one client has an interval."""
_ROUNDING_VARIANCE = 1 / (12 * GRID**2)
_MAX_UNIDENTIFIED_SHARE = 1e-3  # as `client_regressions`: of a contrast, what a client's rows may leave undetermined


@dataclass(frozen=True)
class Design:
    """A regression of which one contrast of coefficients is wanted, by places among the columns.

    Attributes
    ----------
    target : int
        Column of the outcome.
    columns : tuple of int
        Columns of the cause and of the adjustment set.
    contrast : tuple of float
        Weights of the coefficients.
    unit : float
        Factor that turns the contrast into the units of the study.
    rows_share : float
        Share of the rows that counts, where rows depend on each other.

    Examples
    --------
    >>> Design(1, (0,), (1.0,), 2.5, 1.0).unit
    2.5
    """

    target: int
    columns: tuple[int, ...]
    contrast: tuple[float, ...]
    unit: float
    rows_share: float


@dataclass(frozen=True, eq=False)
class Slopes:
    """The slope of one contrast at every client, and the common one.

    Attributes
    ----------
    values : array
        Slopes of clients; NaN where rows do not determine one.
    variances : array
        Their variances.
    freedom : array
        Degrees of freedom of the variances.
    rows : array
        Rows of clients.
    common : PooledEffect or None
        The common slope; None if no rows determine it.

    Examples
    --------
    >>> import fedcdh
    >>> result = fedcdh.discover(fedcdh.demo.hospital_study().columns(), domain="hospital")
    >>> scatters = ClientScatters.of(result.cohort)
    >>> round(scatters.slopes(scatters.design("age", "systolic_pressure", ())).common.value, 1)
    1.0
    """

    values: Array
    variances: Array
    freedom: Array
    rows: Array
    common: PooledEffect | None

    @property
    def known(self) -> npt.NDArray[np.bool_]:
        """Return which clients have a slope with an interval."""
        return np.isfinite(self.values) & np.isfinite(self.variances)


@dataclass(frozen=True, eq=False)
class ClientScatters:
    """The scatter of the linear columns and indicators of all variables, at every client or of all together.

    Attributes
    ----------
    variables : mapping from str to Variable
        The variables of the plan.
    places : mapping from str to tuple of int
        Columns of each variable: one of a continuous variable, one for every level that occurs of a categorical one.
    levels : mapping from str to tuple of str
        The levels that occur, of categorical variables.
    units : mapping from str to float
        Units of the study in one unit of the columns.
    shares : mapping from str to float
        Share of the rows that counts, of variables whose rows depend on each other.
    scatter : array
        (clients, columns, columns).
    rows : array
        Rows of each of them.
    intercepts : array
        Intercepts that each of them has used.
    apart : bool
        Whether clients are known apart.

    Examples
    --------
    >>> import fedcdh
    >>> cohort = fedcdh.discover(fedcdh.demo.hospital_study().columns(), domain="hospital").cohort
    >>> ClientScatters.of(cohort).scatter.shape[0]
    5
    """

    variables: Mapping[str, Variable]
    places: Mapping[str, tuple[int, ...]]
    levels: Mapping[str, tuple[str, ...]]
    units: Mapping[str, float]
    shares: Mapping[str, float]
    scatter: Array
    rows: Array
    intercepts: Array
    apart: bool

    @classmethod
    def of(
        cls, cohort: Cohort | Aggregate, names: Collection[str] | None = None, *, all_features: bool = False
    ) -> ClientScatters:
        """Collect the scatter matrices of a study.

        Parameters
        ----------
        cohort : Cohort or Aggregate
            The summaries.
        names : collection of str, optional
            The variables. Default all.
        all_features : bool, default False
            Whether all features of continuous variables are taken, or their values only.

        Returns
        -------
        ClientScatters
            The scatter matrices.

        Raises
        ------
        SettingsError
            If the summaries have noise.
        """
        if cohort.total.noise:
            raise SettingsError(
                "these summaries have noise, which moves every slope by an amount that is not known; expected exact "
                "sums; effects need a study without noise"
            )
        plan, occurs = cohort.plan, cohort.total.moments[0]
        chosen = [one for one in plan.variables if names is None or one.name in names]
        kept: list[int] = []
        places, levels = dict[str, tuple[int, ...]](), dict[str, tuple[str, ...]]()
        for variable in chosen:
            span = plan.layout.spans[variable.name]
            columns = list(range(span.start, span.stop if all_features else span.start + 1))
            if isinstance(variable, Categorical):
                columns = [column for column in range(span.start, span.stop) if occurs[column]]
                levels[variable.name] = tuple(variable.levels[column - span.start] for column in columns)
            places[variable.name] = tuple(range(len(kept), len(kept) + len(columns)))
            kept += columns
        apart = isinstance(cohort, Cohort)
        rows = np.array(cohort.client_rows if apart else [cohort.total.rows], dtype=np.float64)
        return cls(
            variables={variable.name: variable for variable in chosen},
            places=places,
            levels=levels,
            units={one.name: 1.0 if isinstance(one, Categorical) else plan.layout.unit * one.scale for one in chosen},
            shares={name: share.product for name, share in variable_shares(plan).items()},
            scatter=_cut_scatters(cohort, kept),
            rows=rows,
            intercepts=np.ones(len(rows)) if apart else np.array([float(len(cohort.clients))]),
            apart=apart,
        )

    def categorical(self, plan: StudyPlan) -> Iterator[tuple[str, Categorical, slice]]:
        """Yield the categorical variables, with their columns in the plan.

        Parameters
        ----------
        plan : StudyPlan
            The plan.

        Yields
        ------
        tuple of str, Categorical and slice
            Name, variable and columns.
        """
        for name, variable in self.variables.items():
            if isinstance(variable, Categorical):
                yield name, variable, plan.layout.spans[name]

    def design(
        self,
        cause: str,
        outcome: str,
        given: Sequence[str],
        contrast: tuple[str, str] | None = None,
        outcome_level: str | None = None,
    ) -> Design:
        """Return the regression whose contrast is the effect of one variable on another.

        Parameters
        ----------
        cause, outcome : str
            Two variables.
        given : sequence of str
            The adjustment set.
        contrast : tuple of str, optional
            Two levels of a categorical cause, from the first to the second.
        outcome_level : str, optional
            The level of a categorical outcome whose probability is compared.

        Returns
        -------
        Design
            The regression.
        """
        columns, weights = list[int](), list[float]()
        if contrast is None:
            columns, weights = [self.places[cause][0]], [1.0]
        else:
            before, after = (self.levels[cause].index(level) for level in contrast)
            others = [number for number in range(len(self.levels[cause])) if number != before]
            columns = [self.places[cause][number] for number in others]
            weights = [float(number == after) for number in others]
        for name in given:
            added = self.places[name][1:] if name in self.levels else self.places[name]
            columns += added
            weights += [0.0] * len(added)
        target = self.places[outcome][0 if outcome_level is None else self.levels[outcome].index(outcome_level)]
        own = [self.shares.get(name, 1.0) for name in (cause, outcome)]
        return Design(target, tuple(columns), tuple(weights), self.units[outcome] / self.units[cause], max(own))

    def deviation(self, name: str) -> float:
        """Return the standard deviation of a continuous variable within clients, in the units of the study.

        Parameters
        ----------
        name : str
            The variable.

        Returns
        -------
        float
            The standard deviation about the means of clients, as far as these are known.
        """
        place, freedom = self.places[name][0], float((self.rows - self.intercepts).sum())
        return self.units[name] * float(np.sqrt(self.scatter[:, place, place].sum() / max(freedom, 1.0)))

    def slopes(self, design: Design) -> Slopes:
        """Return the slope at every client, and the common one.

        Parameters
        ----------
        design : Design
            The regression.

        Returns
        -------
        Slopes
            In the units of the study.
        """
        at, y, contrast = list(design.columns), design.target, np.array(design.contrast)
        inner, cross = self.scatter[:, np.array(at)[:, None], at], self.scatter[:, at, y]
        total = self.scatter[:, y, y]
        values, spread, rank, _ = _solve(inner, cross, contrast, self.rows)
        fitted = _fit(inner, cross, self.rows)
        freedom = self.rows - self.intercepts - rank
        left = np.maximum(total - (fitted * cross).sum(axis=1), 0.0)
        with np.errstate(invalid="ignore", divide="ignore"):
            noise = np.maximum(np.where(freedom >= MIN_FREEDOM, left / freedom, np.nan), _ROUNDING_VARIANCE)
        scale = design.unit**2 / design.rows_share
        return Slopes(
            design.unit * values,
            scale * noise * spread,
            freedom,
            self.rows,
            self._common(inner, cross, total, contrast, design),
        )

    def common_contrasts(self, design: Design, contrasts: Array) -> tuple[Array, Array, Array] | None:
        """Return common contrasts of one regression, their variances and degrees of freedom.

        Parameters
        ----------
        design : Design
            The regression.
        contrasts : array
            (contrasts, columns).

        Returns
        -------
        tuple of array, or None
            None if no rows determine any of them.
        """
        at, y = list(design.columns), design.target
        inner, cross = self.scatter[:, np.array(at)[:, None], at], self.scatter[:, at, y]
        root = _root(inner.sum(axis=0), self.rows.sum())
        slopes = root @ (root.T @ cross.sum(axis=0))
        left, freedom, pooled = self._common_residuals(inner, cross, self.scatter[:, y, y], slopes, root.shape[1])
        if pooled is None:
            return None
        noise = np.where(freedom >= MIN_FREEDOM, left / np.maximum(freedom, 1.0), pooled)
        directions = contrasts @ root @ root.T
        parts = noise * np.einsum("mi,kij,mj->mk", directions, inner, directions, optimize=True)
        variance = parts.sum(axis=1)
        squares = (parts**2 / np.maximum(freedom, 1.0)).sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            satterthwaite = np.where(squares > 0, variance**2 / squares, 1.0)
        scale = design.unit**2 / design.rows_share
        return design.unit * (contrasts @ slopes), scale * variance, np.minimum(satterthwaite, freedom.sum())

    def residual_squares(self, design: Design) -> tuple[float, float]:
        """Return the sum of squares that a common regression leaves, and its degrees of freedom.

        Parameters
        ----------
        design : Design
            The regression.

        Returns
        -------
        tuple of float
            Squares, in squared units of the columns, and degrees of freedom.
        """
        at, y = list(design.columns), design.target
        whole = self.scatter.sum(axis=0)
        root = _root(whole[np.ix_(at, at)], self.rows.sum())
        explained = root.T @ whole[at, y]
        freedom = self.rows.sum() - self.intercepts.sum() - root.shape[1]
        return float(whole[y, y] - explained @ explained), float(freedom)

    def _common(self, inner: Array, cross: Array, total: Array, contrast: Array, design: Design) -> PooledEffect | None:
        """Return the common slope; clients may have noise of different size."""
        whole, rows = inner.sum(axis=0)[None], np.array([self.rows.sum()])
        value, _, rank, direction = _solve(whole, cross.sum(axis=0)[None], contrast, rows)
        if not np.isfinite(value[0]):
            return None
        slopes = _fit(whole, cross.sum(axis=0)[None], rows)[0]
        left, freedom, pooled = self._common_residuals(inner, cross, total, slopes, int(rank[0]))
        if pooled is None:
            return None
        noise = np.where(freedom >= MIN_FREEDOM, left / np.maximum(freedom, 1.0), pooled)
        parts = noise * np.einsum("i,kij,j->k", direction[0], inner, direction[0])
        variance = float(parts.sum())
        satterthwaite = variance**2 / float((parts**2 / np.maximum(freedom, 1.0)).sum()) if variance > 0 else 1.0
        scale = design.unit**2 / design.rows_share
        return PooledEffect.of(design.unit * float(value[0]), scale * variance, min(satterthwaite, freedom.sum()))

    def _common_residuals(
        self, inner: Array, cross: Array, total: Array, slopes: Array, rank: int
    ) -> tuple[Array, Array, float | None]:
        """Return the squares that common slopes leave at every client, degrees of freedom, and the variance overall."""
        left = np.maximum(total - 2 * cross @ slopes + np.einsum("i,kij,j->k", slopes, inner, slopes), 0.0)
        freedom = self.rows - self.intercepts - rank * self.rows / self.rows.sum()  # each client's part of the slopes
        if freedom.sum() < MIN_FREEDOM:
            return left, freedom, None
        left = np.maximum(left, _ROUNDING_VARIANCE * self.rows)
        return left, freedom, float(left.sum() / freedom.sum())


def _cut_scatters(cohort: Cohort | Aggregate, kept: list[int]) -> Array:
    """Return the scatter of some columns, at every client or of all together."""
    every, cut = slice(None), np.ix_(kept, kept)
    return np.array([one[cut] for one in cohort.scatters(every, every)])


def _root(inner: Array, rows: float) -> Array:
    """Return R with S⁺ = R Rᵀ, without columns of zeros."""
    identified, _, _, _ = _decompose(inner[None], np.ones(len(inner)), np.array([rows]))
    return np.asarray(identified[0][:, (identified[0] != 0).any(axis=0)])


def _solve(inner: Array, cross: Array, contrast: Array, rows: Array) -> tuple[Array, Array, Array, Array]:
    """Return cᵀS⁺s, cᵀS⁺c, the rank of S and S⁺c of every matrix; NaN where the contrast is not determined."""
    identified, rank, scaled, undetermined = _decompose(inner, contrast, rows)
    direction = (identified @ (np.swapaxes(identified, 1, 2) @ contrast)[..., None])[..., 0]
    size = np.linalg.norm(scaled, axis=1)
    known = (size > 0) & (undetermined <= _MAX_UNIDENTIFIED_SHARE * size)
    values = np.where(known, (direction * cross).sum(axis=1), np.nan)
    return values, np.where(known, direction @ contrast, np.nan), rank, direction


def _fit(inner: Array, cross: Array, rows: Array) -> Array:
    """Return all coefficients of every regression."""
    identified, _, _, _ = _decompose(inner, np.ones(inner.shape[1]), rows)
    return np.asarray((identified @ (np.swapaxes(identified, 1, 2) @ cross[..., None]))[..., 0])


def _decompose(inner: Array, contrast: Array, rows: Array) -> tuple[Array, Array, Array, Array]:
    """Return R with S⁺ = R Rᵀ, the rank of S, the standardised contrast, and the size of what S leaves open of it."""
    diagonal = np.einsum("kii->ki", inner)
    varying = diagonal > MAX_CONSTANT_VARIANCE * rows[:, None]
    spread = np.where(varying, np.sqrt(np.maximum(diagonal, 0.0)), 1.0)
    both = varying[:, :, None] & varying[:, None, :]
    values, vectors = np.linalg.eigh(np.where(both, inner / (spread[:, :, None] * spread[:, None, :]), 0.0))
    kept = values > MIN_NEW_VARIANCE
    roots = np.where(kept, 1 / np.sqrt(np.where(kept, values, 1.0)), 0.0)
    identified = vectors * roots[:, None, :] / spread[:, :, None]
    still = np.where(varying, 0.0, np.abs(contrast)).max(axis=1) > 0  # a column that is wanted, but does not vary
    scaled = np.where(varying, contrast / spread, 0.0)
    open_part = np.where(kept, 0.0, (np.swapaxes(vectors, 1, 2) @ scaled[..., None])[..., 0])
    undetermined = np.where(still, np.inf, np.linalg.norm(open_part, axis=1))
    return identified, kept.sum(axis=1), scaled, undetermined
