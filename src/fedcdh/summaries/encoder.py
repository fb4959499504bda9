"""Encoding of rows as features on the grid: the last step that uses single rows, at the client."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from fedcdh._runtime.array_types import Array, Indices
from fedcdh.data.columns import Codes, Column, NumericColumn
from fedcdh.data.labels import strip_zero_decimals
from fedcdh.data.table import Table
from fedcdh.errors import DataError
from fedcdh.summaries.column_profiles import check_finite
from fedcdh.summaries.feature_layout import POWER_COLUMNS
from fedcdh.summaries.features import bounded
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.variables import Categorical, Continuous

GRID = 1 << 18
"""Steps of the grid in [0, 1]. Rounding changes a feature by at most 2⁻¹⁹, far below what n rows can resolve."""

_MAX_ARGUMENT = 1e150  # every feature is 0 there already; infinity would give NaN
_TIE_TOLERANCE = 1e-7  # of a step: so near the middle between two steps, numpy's own arcsinh decides
_MIN_SMOOTH_BANDWIDTH = 0.25  # below, a change in the last place may move features by more
_MAX_SMOOTH_WIDTH = 16  # above, the same


class Encoder:
    """Computes the features of complete rows of a client, in whole steps of the grid.

    Parameters
    ----------
    plan : StudyPlan
        Plan of the study.
    client : str
        Name of the client, for errors.
    unit : float, optional
        With noise in the plan, another unit than that of the plan's layout: that of a plan that this one is a part of.

    Examples
    --------
    >>> from fedcdh.data.table import to_table
    >>> from fedcdh.summaries import Categorical, StudyPlan
    >>> encode = Encoder(StudyPlan((Categorical("sex", ("f", "m")),), ("north",)), "north")
    >>> encode(to_table({"sex": ["m"]})) / GRID
    array([[1.],
           [0.],
           [1.]])
    """

    def __init__(self, plan: StudyPlan, client: str, *, unit: float | None = None) -> None:
        self._plan, self._client, self._spans = plan, client, plan.layout.spans
        self._unit = plan.layout.unit if unit is None else unit
        self._continuous = [variable for variable in plan.variables if isinstance(variable, Continuous)]
        self._categorical = [variable for variable in plan.variables if isinstance(variable, Categorical)]
        places = [np.arange(plan.layout.n_columns)[self._spans[variable.name]] for variable in self._continuous]
        # feature by feature, each for all variables: the order in which they are computed
        width = plan.layout.width(self._continuous[0].name) if self._continuous else POWER_COLUMNS
        self._places = np.array(places, dtype=np.intp).reshape(len(places), width).T
        self._location = _as_column(variable.location for variable in self._continuous)
        self._scale = _as_column(variable.scale for variable in self._continuous)
        self._shift = _as_column(variable.location - variable.centre_and_spread[0] for variable in self._continuous)
        self._spread = _as_column(variable.centre_and_spread[1] for variable in self._continuous)
        self._smooth = plan.family.bandwidth >= _MIN_SMOOTH_BANDWIDTH and plan.family.width <= _MAX_SMOOTH_WIDTH

    def __call__(self, table: Table, numbers: Array | None = None) -> Array:
        """Return the features, columns × rows, with the constant first.

        The values of one feature lie side by side in memory, where they are computed fastest. `numbers` are the
        values of the continuous variables, if they are known already.
        """
        numbers = self.values(table) if numbers is None else numbers
        block = np.empty((self._plan.layout.n_columns, table.rows))
        block[0] = GRID
        if self._plan.noise is not None:
            self._encode_bounded(table, numbers, block[1:], self._plan.noise.degree)
            return block
        if self._continuous:
            self._encode_continuous(numbers, block)
        for variable in self._categorical:
            codes = encode_levels(variable, self._client, table.columns[variable.name])
            levels = np.arange(len(variable.levels))
            np.multiply(codes == levels[:, None], float(GRID), out=block[self._spans[variable.name]])
        return block

    def values(self, table: Table) -> Array:
        """Return the values of the continuous variables, variables × rows; they have to be finite numbers.

        Parameters
        ----------
        table : Table
            Complete rows.

        Returns
        -------
        array
            One row per continuous variable.

        Raises
        ------
        DataError
            If a column holds text, or a value is not finite.
        """
        values = np.empty((len(self._continuous), table.rows))
        for place, variable in enumerate(self._continuous):
            values[place] = _numeric_values(variable, self._client, table)
        if not np.abs(values).max(initial=0.0) < _MAX_ARGUMENT:
            for variable, column in zip(self._continuous, values, strict=True):
                check_finite(column, variable.name, self._client)
        return values

    def _encode_bounded(self, table: Table, numbers: Array, block: Array, degree: int) -> None:
        """Compute features whose squares add up to at most G² in every row, exactly.

        Sums of squares are whole numbers, so that below G² + 1 they are at most G², and rounding towards zero
        lengthens no row.
        """
        if self._continuous:
            for places, feature in zip(
                self._places, bounded.power_features(self._standardise(numbers), degree), strict=True
            ):
                block[places - 1] = feature
        for variable in self._categorical:
            codes, span = (
                encode_levels(variable, self._client, table.columns[variable.name]),
                self._spans[variable.name],
            )
            indicators = codes == np.arange(len(variable.levels))[:, None]
            np.multiply(indicators, bounded.INDICATOR_WEIGHT, out=block[span.start - 1 : span.stop - 1])
        block /= self._unit
        bounded.project_into_ball(block)
        block *= GRID
        np.trunc(block, out=block)

    def _standardise(self, numbers: Array) -> Array:
        values = numbers - self._location
        values /= self._scale
        return np.clip(values, -self._plan.clip, self._plan.clip, out=values)

    def _encode_continuous(self, numbers: Array, block: Array) -> None:
        values, family = self._standardise(numbers), self._plan.family
        powers, further = self._places[:POWER_COLUMNS], self._places[POWER_COLUMNS:]
        if not family.compresses_tails:
            _round_to_grid(family.iter_columns(values), further, block)
        elif not (
            self._smooth
            and _round_to_grid(
                family.iter_columns(self._compress_tails(values, _arcsinh)), further, block, _TIE_TOLERANCE
            )
        ):
            _round_to_grid(family.iter_columns(self._compress_tails(values, np.arcsinh)), further, block)
        linear = values / self._plan.clip
        _round_to_grid((linear, linear**2), powers, block)

    def _compress_tails(self, values: Array, arcsinh: Callable[[Array], Array]) -> Array:
        """Return the values with compressed tails: linear in the bulk, logarithmic in the tails."""
        bent = values * self._scale
        bent += self._shift
        with np.errstate(over="ignore"):  # a plan made by hand may have a tiny spread
            bent /= self._spread
        np.clip(bent, -_MAX_ARGUMENT, _MAX_ARGUMENT, out=bent)
        return arcsinh(bent)


def _round_to_grid(features: Iterable[Array], places: Indices, block: Array, tie: float = 0.0) -> bool:
    """Round features to the grid; return False as soon as one of them lies next to the middle between two steps."""
    for place, feature in zip(places, features, strict=True):
        feature *= GRID
        block[place] = rounded = np.rint(feature)
        if tie:
            feature -= rounded
            if max(feature.max(initial=0.0), -feature.min(initial=0.0)) > 0.5 - tie:
                return False
    return True


def _arcsinh(values: Array) -> Array:
    """Compute arcsinh at a third of the time of numpy's, to within a few units in the last place.

    Features then differ by some 10⁻⁹ of a step, a few hundredths of `_TIE_TOLERANCE`: on the grid they are those of
    numpy's own.
    """
    size = np.abs(values)
    root = size * size
    root += 1.0
    np.sqrt(root, out=root)
    root += size
    np.log(root, out=root)
    np.copysign(root, values, out=root)
    return root


def _as_column(numbers: Iterable[float]) -> Array:
    return np.array(list(numbers), dtype=np.float64)[:, None]


def continuous_values(variable: Continuous, client: str, table: Table) -> Array:
    """Return the values of a continuous variable, which have to be finite numbers."""
    values = _numeric_values(variable, client, table)
    check_finite(values, variable.name, client)
    return values


def _numeric_values(variable: Continuous, client: str, table: Table) -> Array:
    column = table.columns[variable.name]
    if not isinstance(column, NumericColumn):
        raise DataError(
            f"column {variable.name!r} at client {client!r} holds text, but the plan says continuous; turn the texts "
            "into numbers"
        )
    return column.values


def encode_levels(variable: Categorical, client: str, column: Column) -> Codes:
    """Return the positions of the rows' levels among the plan's levels."""
    texts = column.to_categorical(f"column {variable.name!r} at client {client!r}")
    position = {level: code for code, level in enumerate(variable.levels)}
    places = [position.get(level, position.get(strip_zero_decimals(level), -1)) for level in texts.levels]
    codes = np.array(places, dtype=np.int64)[texts.codes]
    if len(codes) and codes.min() < 0:
        unknown = sorted({texts.levels[code] for code in texts.codes[codes < 0]})
        raise DataError(
            f"column {variable.name!r} at client {client!r} holds {unknown[:3]}, not among the plan's levels "
            f"{list(variable.levels)}; correct the values, or add the level to the plan for all clients"
        )
    return codes
