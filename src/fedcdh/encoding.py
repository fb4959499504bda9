"""From rows to features on the grid: the last thing that happens to single rows, and it happens at the client."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fedcdh.errors import DataError
from fedcdh.features import Indicator
from fedcdh.plan import Categorical, Continuous, StudyPlan
from fedcdh.profile import check_finite
from fedcdh.tables import Codes, Column, Table, Texts

Array = npt.NDArray[np.float64]

GRID = 1 << 18
"""Steps of the grid in [0, 1]. Rounding moves a feature by at most 2⁻¹⁹, far below what n rows can resolve."""


class Encoder:
    """The features of a client's complete rows, in the order of the plan's columns, as whole steps of the grid."""

    def __init__(self, plan: StudyPlan, client: str, table: Table) -> None:
        self._plan = plan
        numbers, insides, self._labels, places = [], [], [], []
        columns, spans = np.arange(plan.columns), plan.spans()
        for variable in plan.variables:
            place, column = columns[spans[variable.name]], table.columns[variable.name]
            if isinstance(variable, Categorical):
                self._labels.append((place, Indicator(variable.levels), _level_codes(variable, client, column)))
            else:
                places.append(place)
                numbers.append(_standardised(variable, plan.clip, client, column))
                insides.append(_bent(variable, numbers[-1]) if plan.family.bent else numbers[-1])
        # one array for all variables: one call per block of rows
        self._numbers = np.array(numbers).T.reshape(table.rows, len(numbers))
        self._insides = np.array(insides).T.reshape(table.rows, len(numbers))
        self._place = np.concatenate([np.zeros(0, dtype=np.intp), *places])

    def __call__(self, rows: slice) -> Array:
        """Rows × columns; the constant comes first."""
        values = self._numbers[rows]
        block = np.empty((len(values), self._plan.columns))
        block[:, 0] = GRID
        linear = values / self._plan.clip
        features = np.concatenate(
            [np.stack([linear, linear**2], axis=-1), self._plan.family(self._insides[rows])], axis=-1
        )
        block[:, self._place] = np.rint(features * GRID).reshape(len(values), -1)
        for place, indicator, codes in self._labels:
            block[:, place] = indicator(codes[rows]) * GRID
        return block


def _standardised(variable: Continuous, clip: float, client: str, column: Column) -> Array:
    if isinstance(column, Texts):
        raise DataError(
            f"column {variable.name!r} at client {client!r} holds text such as {column.levels[:3]}, but the plan says "
            "continuous; turn it into numbers"
        )
    check_finite(column.values, variable.name, client)
    return np.clip((column.values - variable.location) / variable.scale, -clip, clip)


def _bent(variable: Continuous, values: Array) -> Array:
    """Straight in the bulk of the values, logarithmic in the tails: features see both, however heavy the tails are."""
    centre, spread = variable.bulk
    return np.asarray(np.arcsinh((values * variable.scale + (variable.location - centre)) / spread))


def _level_codes(variable: Categorical, client: str, column: Column) -> Codes:
    texts = column.as_texts()
    position = {level: code for code, level in enumerate(variable.levels)}
    codes = np.array([position.get(level, -1) for level in texts.levels], dtype=np.int64)[texts.codes]
    if len(codes) and codes.min() < 0:
        unknown = sorted({texts.levels[code] for code in texts.codes[codes < 0]})
        raise DataError(
            f"column {variable.name!r} at client {client!r} holds {unknown[:3]}, not among the plan's levels "
            f"{list(variable.levels)}; correct the labels, or add the level to the plan for all clients"
        )
    return codes
