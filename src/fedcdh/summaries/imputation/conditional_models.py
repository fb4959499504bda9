"""Each variable given all others, at one site: regressions on curved features, and donors of what they leave.

Chained equations: gaps are filled with values of random rows, then every variable with gaps is regressed on the others
and its gaps are drawn again, a few times over. A number is the regression's value plus what the regression leaves of a
*donor*, a row with a similar value of the regression. So noise may have any shape, and a size that depends on the
causes. A number with few values, and a label, is that of the donor itself.

A row's numbers are computed column by column in a fixed order, so that they do not depend on the rows beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedcdh._runtime.array_types import Array
from fedcdh._runtime.blas_threads import single_blas_thread
from fedcdh.summaries.features import Hermite
from fedcdh.summaries.imputation.row_keys import Keys, draw_uniform
from fedcdh.summaries.imputation.row_sample import RowSample
from fedcdh.summaries.variables import Categorical, Variable

SWEEPS = 5
"""How often every gap is drawn, each time given the last values of the row's other gaps."""
DONORS = 10
"""Rows among which a donor is drawn."""
MAX_PREDICTORS = 30
"""Other variables in one regression; the most correlated ones where there are more."""
MIN_ROWS_PER_PREDICTOR = 5
MIN_DRAWN_COUNT = 10
"""Rows of the site from which a label, or a number with few values, is drawn for others: a rare one stays as rare as it
is, so that a policy counts the people who have it."""
MAX_REPEATED_SHARE = 0.2
"""A number with fewer different values than this share of its rows takes values of donors only."""
_CURVES = Hermite(4)
_PENALTIES = 10.0 ** np.arange(-1.0, 4.5, 0.5)
"""Ridge penalties of curved columns, in rows; the one with the least error on rows left out is used."""
_SAME = 1e-9
"""Values of a regression that differ by less are the same, but for rounding errors."""
_PLAIN_PENALTY = 1.0
_CLIP = 30.0
_STEP = 2.0**-24  # of a scale: imputed numbers are multiples of it, so that rounding errors do not show


@dataclass(frozen=True, eq=False)
class ConditionalModel:
    """One variable given some others.

    Attributes
    ----------
    name : str
        The variable.
    columns : tuple of (int, int)
        Predictor and number of its function, for each column.
    offsets : array
        What is subtracted from each column.
    weights : array
        Columns × outputs: one output for a number, one per level of a label.
    fitted : array
        Donors × outputs: the regression's values, those of a number in ascending order.
    values : array
        Values of the donors.
    left : array
        What the regression leaves of them; empty where the donor's own value is taken.
    before : array
        Number of rows before each donor: a donor stands for all rows with its content.
    limits : tuple of float
        Smallest and largest value.
    """

    name: str
    columns: tuple[tuple[int, int], ...]
    offsets: Array
    weights: Array
    centre: Array
    fitted: Array
    values: Array
    left: Array
    before: Array
    limits: tuple[float, float]
    step: float

    def draw(self, functions: Sequence[Array], keys: Keys, purpose: str) -> Array:
        """Return a value for every row.

        Parameters
        ----------
        functions : sequence of array
            Functions of each variable, functions × rows.
        keys : array of uint64
            Keys of the rows.
        purpose : str
            What the values are for: another purpose gives other values.

        Returns
        -------
        array
            One value per row.
        """
        uniform = draw_uniform(keys, f"{purpose}\0{self.name}")
        regression = np.repeat(self.centre[:, None], len(keys), axis=1)
        for (variable, which), offset, weights in zip(self.columns, self.offsets, self.weights, strict=True):
            column = functions[variable][which] - offset
            for out, weight in zip(regression, weights.tolist(), strict=True):
                out += weight * column
        if len(regression) == 1:
            donors = self._near_donors(regression[0], uniform)
        else:
            donors = self._nearest_donors(regression, uniform)
        if not len(self.left):
            return self.values[donors]
        drawn = np.clip(regression[0] + self.left[donors], *self.limits)
        return np.asarray(np.rint(drawn / self.step) * self.step)

    def _near_donors(self, regression: Array, uniform: Array) -> npt.NDArray[np.intp]:
        """Return a donor for each row, at random among the rows next to it in the order of the regression's values.

        Rows with the same value are all next to it: there are many of them where predictors are labels.
        """
        rows, fitted = self.before[-1], self.fitted[:, 0]
        same = _SAME * (np.abs(fitted).max() + 1e-300)
        first = self.before[np.searchsorted(fitted, regression - same, side="left")]
        last = self.before[np.searchsorted(fitted, regression + same, side="right")]
        width = np.minimum(np.maximum(float(DONORS), last - first), rows)
        start = np.clip((first + last - width) / 2, 0.0, rows - width)
        place = np.searchsorted(self.before, start + uniform * width, side="right") - 1
        return np.asarray(np.clip(place, 0, len(self.values) - 1))

    def _nearest_donors(self, regression: Array, uniform: Array) -> npt.NDArray[np.intp]:
        """Return a donor for each row, at random among the rows with the nearest values of all outputs."""
        found = np.empty(len(uniform), dtype=np.intp)
        counts = np.diff(self.before)
        for start in range(0, len(uniform), 256):
            block = slice(start, start + 256)
            apart = np.zeros((len(uniform[block]), len(self.values)))
            for own, theirs in zip(regression[:, block], self.fitted.T, strict=True):
                apart += (own[:, None] - theirs) ** 2
            order = np.argsort(apart, axis=1, kind="stable")
            enough = (np.cumsum(counts[order], axis=1) < DONORS).sum(axis=1).clip(max=len(counts) - 1)
            farthest = np.take_along_axis(apart, np.take_along_axis(order, enough[:, None], axis=1), axis=1)
            ahead = np.cumsum(counts * (apart <= farthest + _SAME), axis=1)
            wanted = uniform[block] * ahead[:, -1]
            found[block] = (ahead <= wanted[:, None]).sum(axis=1)
        return found


@dataclass(frozen=True, eq=False)
class RowModel:
    """All variables of a site, each given the others: it fills the gaps of a row.

    Attributes
    ----------
    variables : tuple of Variable
        Variables of the study.
    marginals : mapping from int to (array, array)
        For each variable, its values and how many rows there are up to each.
    conditionals : mapping from int to ConditionalModel
        Models of the variables with gaps, by place, in the order in which they are drawn.
    """

    variables: tuple[Variable, ...]
    marginals: Mapping[int, tuple[Array, Array]]
    conditionals: Mapping[int, ConditionalModel]

    def fill(self, values: Array, keys: Keys) -> Array:
        """Return rows without gaps.

        Parameters
        ----------
        values : array
            Variables × rows, nan where a value is missing.
        keys : array of uint64
            Keys of the rows.

        Returns
        -------
        array
            The same rows; what was there is as it was.
        """
        chain = _Chain(self.variables, values, keys, self.marginals)
        for sweep in range(SWEEPS):
            for place, model in self.conditionals.items():
                chain.draw(place, model, f"fill {sweep}")
        return chain.values


class _Chain:
    """Rows whose gaps are drawn variable by variable."""

    def __init__(
        self,
        variables: Sequence[Variable],
        values: Array,
        keys: Keys,
        marginals: Mapping[int, tuple[Array, Array]],
    ) -> None:
        self.variables, self.values, self.keys = variables, values.copy(), keys
        self.gaps = np.isnan(values)
        for place, (found, up_to) in marginals.items():
            gaps = self.gaps[place]
            wanted = draw_uniform(keys[gaps], f"first\0{variables[place].name}") * up_to[-1]
            self.values[place, gaps] = found[np.searchsorted(up_to, wanted, side="right")]
        self.functions = [_functions(one, column) for one, column in zip(variables, self.values, strict=True)]

    def draw(self, place: int, model: ConditionalModel, purpose: str) -> None:
        """Draw the gaps of one variable."""
        gaps = self.gaps[place]
        if gaps.any():
            here = [found[:, gaps] for found in self.functions]
            self.values[place, gaps] = drawn = model.draw(here, self.keys[gaps], purpose)
            self.functions[place][:, gaps] = _functions(self.variables[place], drawn)


def fit_row_model(variables: Sequence[Variable], sample: RowSample) -> RowModel:
    """Fit the models of a site to a sample of its rows.

    Parameters
    ----------
    variables : sequence of Variable
        Variables of the study.
    sample : RowSample
        Rows; at least one has a value of each variable.

    Returns
    -------
    RowModel
        The models.
    """
    gaps = np.isnan(sample.values)
    marginals = {place: _marginal(sample, place) for place in np.flatnonzero(gaps.any(axis=1)).tolist()}
    order = sorted(marginals, key=lambda place: (int((gaps[place] * sample.counts).sum()), place))
    chain = _Chain(tuple(variables), sample.values, sample.keys, marginals)
    models: dict[int, ConditionalModel] = {}
    with single_blas_thread():
        for sweep in range(SWEEPS):
            for place in order:
                models[place] = _fit(chain, place, sample.counts)
                chain.draw(place, models[place], f"fit {sweep}")
    return RowModel(tuple(variables), marginals, models)


def _marginal(sample: RowSample, place: int) -> tuple[Array, Array]:
    """Return the values of a variable, sorted, and how many rows there are up to each."""
    values, counts = sample.values[place], sample.counts
    present = np.flatnonzero(~np.isnan(values))
    if _takes_values_of_donors(values[present], counts[present]):
        present = present[_is_common(values[present], counts[present])]
    order = present[np.argsort(values[present], kind="stable")]
    return values[order], np.cumsum(counts[order]).astype(np.float64)


def _takes_values_of_donors(values: Array, counts: npt.NDArray[np.int64]) -> bool:
    """Return whether a variable has few values, as labels have: then none is drawn that no row has."""
    return bool(len(np.unique(values)) <= MAX_REPEATED_SHARE * counts.sum())


def _is_common(values: Array, counts: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Return for every row whether its value may be drawn for others; all may where every value is rare."""
    _, place = np.unique(values, return_inverse=True)
    common = np.bincount(place, counts)[place] >= MIN_DRAWN_COUNT
    return common if common.any() else np.ones(len(values), dtype=np.bool_)


def _functions(variable: Variable, values: Array) -> Array:
    """Return the functions of a variable, functions × rows: the plain ones first."""
    if isinstance(variable, Categorical):
        return np.asarray(values == np.arange(1.0, len(variable.levels))[:, None], dtype=np.float64)
    plain = np.clip((values - variable.location) / variable.scale, -_CLIP, _CLIP)
    centre, spread = variable.centre_and_spread
    with np.errstate(over="ignore"):
        inside = np.clip((values - centre) / spread, -1e150, 1e150)
    return np.stack([plain, *_CURVES.iter_columns(np.arcsinh(inside))])


def _plain_count(variable: Variable) -> int:
    return len(variable.levels) - 1 if isinstance(variable, Categorical) else 1


def _fit(chain: _Chain, place: int, counts: npt.NDArray[np.int64]) -> ConditionalModel:
    """Regress a variable on the others, at the rows that have it."""
    present = ~chain.gaps[place]
    variable, values, weights = chain.variables[place], chain.values[place, present], counts[present].astype(np.float64)
    outputs = _outputs(variable, values)
    centre = np.average(outputs, axis=0, weights=weights)
    functions = [found[:, present] for found in chain.functions]
    others = _choose_predictors(functions, place, outputs - centre, weights)
    columns, plain = _list_columns(chain.variables, others)
    matrix = np.array([functions[other][which] for other, which in columns]).reshape(len(columns), len(values)).T
    offsets = np.average(matrix, axis=0, weights=weights)
    fit = _ridge(matrix - offsets, outputs - centre, weights, plain)
    fitted = centre + (matrix - offsets) @ fit.weights
    own = not isinstance(variable, Categorical) and not _takes_values_of_donors(values, counts[present])
    left = (outputs - fitted)[:, 0] * fit.inflation if own else np.zeros(0)
    order = np.argsort(fitted[:, 0], kind="stable")
    if not own:
        order = order[_is_common(values, counts[present])[order]]
    return ConditionalModel(
        variable.name,
        tuple(columns),
        offsets,
        fit.weights,
        centre,
        fitted[order],
        values[order],
        left[order] if own else left,
        np.concatenate([[0.0], np.cumsum(weights[order])]),
        (float(values.min()), float(values.max())),
        1.0 if isinstance(variable, Categorical) else _step_of(values, variable.scale),
    )


def _step_of(values: Array, scale: float) -> float:
    """Return the step on which imputed numbers lie: that of whole numbers if all are."""
    return 1.0 if (values == np.rint(values)).all() else 2.0 ** np.floor(np.log2(scale)) * _STEP


def _outputs(variable: Variable, values: Array) -> Array:
    """Return what is regressed, rows × outputs."""
    if isinstance(variable, Categorical):
        return np.asarray(values[:, None] == np.arange(len(variable.levels)), dtype=np.float64)
    return values[:, None]


def _choose_predictors(functions: Sequence[Array], place: int, outputs: Array, weights: Array) -> list[int]:
    """Return the other variables, or the most correlated ones where there are many."""
    others = [other for other in range(len(functions)) if other != place and len(functions[other])]
    most = int(min(MAX_PREDICTORS, max(1.0, weights.sum() / MIN_ROWS_PER_PREDICTOR)))
    if len(others) <= most:
        return others
    strengths = [_correlation(functions[other], outputs, weights) for other in others]
    chosen = np.argsort(-np.array(strengths), kind="stable")[:most]
    return sorted(others[at] for at in chosen)


def _correlation(functions: Array, outputs: Array, weights: Array) -> float:
    """Return the largest squared correlation of a function of one variable with an output."""
    apart = functions - np.average(functions, axis=1, weights=weights)[:, None]
    cross = ((apart * weights) @ outputs) ** 2
    sizes = np.outer((apart**2 * weights).sum(axis=1), (outputs**2 * weights[:, None]).sum(axis=0))
    return float((cross / np.maximum(sizes, 1e-300)).max(initial=0.0))


def _list_columns(variables: Sequence[Variable], others: Sequence[int]) -> tuple[list[tuple[int, int]], int]:
    """Return the columns of a regression, the plain ones first, and the number of these."""
    plain = [(other, which) for other in others for which in range(_plain_count(variables[other]))]
    curved = [
        (other, 1 + which)
        for other in others
        if not isinstance(variables[other], Categorical)
        for which in range(_CURVES.width)
    ]
    return plain + curved, len(plain)


@dataclass(frozen=True)
class _Ridge:
    weights: Array
    inflation: float  # of residuals, for the freedom that the regression takes


def _ridge(matrix: Array, outputs: Array, weights: Array, plain: int) -> _Ridge:
    """Regress with a small penalty of plain columns, and one of curved columns by generalised cross-validation.

    Curved columns are first regressed on the plain ones: they are penalised for what is curved only.
    """
    rows, root = weights.sum(), np.sqrt(weights)[:, None]
    if not matrix.shape[1]:
        return _Ridge(np.zeros((0, outputs.shape[1])), 1.0)
    scaled, target = matrix * root, outputs * root
    sizes = np.sqrt((scaled**2).sum(axis=0) / rows)
    sizes = np.where(sizes > 1e-9, sizes, np.inf)
    straight, bent = scaled[:, :plain] / sizes[:plain], scaled[:, plain:] / sizes[plain:]
    inner = straight.T @ straight + _PLAIN_PENALTY * np.eye(plain)
    ahead = np.linalg.solve(inner, straight.T @ np.hstack([bent, target]))
    slopes, first = ahead[:, : bent.shape[1]], ahead[:, bent.shape[1] :]
    bent = bent - straight @ slopes
    rest = target - straight @ first
    used = float(np.trace(np.linalg.solve(inner, straight.T @ straight)))
    u, s, vt = np.linalg.svd(bent, full_matrices=False)
    cross = u.T @ rest
    best = min(
        ((_cross_validated(rest, cross, s**2 / (s**2 + penalty), used, rows), penalty) for penalty in _PENALTIES),
    )[1]
    curved = vt.T @ ((s / (s**2 + best))[:, None] * cross)
    freedom = used + float((s**2 / (s**2 + best)).sum())
    together = np.vstack([first - slopes @ curved, curved]) / sizes[:, None]
    return _Ridge(together, float(np.sqrt(rows / max(rows - 1 - freedom, rows / 4))))


def _cross_validated(rest: Array, cross: Array, shrunk: Array, used: float, rows: float) -> float:
    """Return the generalised cross-validation error of a penalty."""
    left = float((rest**2).sum() - ((1 - (1 - shrunk[:, None]) ** 2) * cross**2).sum())
    return left / max(rows - 1 - used - float(shrunk.sum()), 1e-3 * rows) ** 2
