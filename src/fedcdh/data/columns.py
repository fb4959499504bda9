"""Numeric and categorical columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fedcdh._runtime.array_types import Array
from fedcdh.errors import DataError

Codes = npt.NDArray[np.int64]
_MAX_EXACT_INTEGER = 2**53  # beyond it, not every whole number is a float


@dataclass(frozen=True)
class NumericColumn:
    """A column of numbers.

    Attributes
    ----------
    values : array of float
        One number per row; NaN where the value is missing.

    Examples
    --------
    >>> column = NumericColumn(np.array([1.5, np.nan]))
    >>> column.missing.tolist()
    [False, True]
    """

    values: Array

    def __len__(self) -> int:
        return len(self.values)

    @property
    def missing(self) -> npt.NDArray[np.bool_]:
        """Return for every row whether the value is missing."""
        return np.isnan(self.values)

    def slice_rows(self, rows: slice) -> NumericColumn:
        """Return the column of a range of rows.

        Parameters
        ----------
        rows : slice
            The rows.

        Returns
        -------
        NumericColumn
            These rows; nothing is copied.
        """
        return NumericColumn(self.values[rows])

    def take(self, rows: npt.NDArray[Any]) -> NumericColumn:
        """Return the column of selected rows.

        Parameters
        ----------
        rows : array of bool or int
            The rows, as a mask or as positions.

        Returns
        -------
        NumericColumn
            These rows.
        """
        return NumericColumn(self.values[rows])

    def to_categorical(self, what: str = "a categorical column") -> CategoricalColumn:
        """Return the same column with its numbers as levels: 3.0 and 3 are the level "3".

        Parameters
        ----------
        what : str
            Name of the column for error messages.

        Returns
        -------
        CategoricalColumn
            The same rows.

        Raises
        ------
        DataError
            If a number is too large to be exact as a float.
        """
        present = ~self.missing
        values, codes = np.unique(self.values[present], return_inverse=True)
        if (np.isfinite(values) & (np.abs(values) >= _MAX_EXACT_INTEGER)).any():
            raise DataError(
                f"{what} holds numbers of 16 digits and more; expected numbers that are exact: otherwise two levels "
                "may become one. Turn the column into text (in pandas, astype(str)), and read it again"
            )
        labels = CategoricalColumn.of([to_level(value) for value in values.tolist()])
        places = np.full(len(self), -1, dtype=np.int64)
        places[present] = labels.codes[codes]
        return CategoricalColumn(labels.levels, places)


@dataclass(frozen=True)
class CategoricalColumn:
    """A column of levels.

    Attributes
    ----------
    levels : tuple of str
        The levels, sorted.
    codes : array of int
        The position of each row's level in `levels`; -1 where the value is missing.

    Examples
    --------
    >>> column = CategoricalColumn.of(["yes", None, "no"])
    >>> column.levels, column.codes.tolist()
    (('no', 'yes'), [1, -1, 0])
    """

    levels: tuple[str, ...]
    codes: Codes

    @classmethod
    def of(cls, labels: Sequence[str | None]) -> CategoricalColumn:
        """Return the column of these levels.

        Parameters
        ----------
        labels : sequence of str or None
            The level of each row; None where it is missing.

        Returns
        -------
        CategoricalColumn
            A column with the levels that occur.
        """
        levels = tuple(sorted({label for label in labels if label is not None}))
        position: dict[str | None, int] = {level: i for i, level in enumerate(levels)}
        return cls(levels, np.fromiter((position.get(label, -1) for label in labels), np.int64, len(labels)))

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def missing(self) -> npt.NDArray[np.bool_]:
        """Return for every row whether the value is missing."""
        return np.asarray(self.codes < 0)

    def slice_rows(self, rows: slice) -> CategoricalColumn:
        """Return the column of a range of rows, with all levels.

        Parameters
        ----------
        rows : slice
            The rows.

        Returns
        -------
        CategoricalColumn
            These rows; nothing is copied.
        """
        return CategoricalColumn(self.levels, self.codes[rows])

    def take(self, rows: npt.NDArray[Any]) -> CategoricalColumn:
        """Return the column of selected rows, with the levels that occur in them.

        Parameters
        ----------
        rows : array of bool or int
            The rows, as a mask or as positions.

        Returns
        -------
        CategoricalColumn
            These rows.
        """
        codes = self.codes[rows]
        present = np.flatnonzero(np.bincount(codes + 1, minlength=len(self.levels) + 1)[1:])
        place = np.full(len(self.levels) + 1, -1, dtype=np.int64)  # the last is for missing values
        place[present] = np.arange(len(present))
        return CategoricalColumn(tuple(self.levels[code] for code in present), place[codes])

    def to_categorical(self, what: str = "") -> CategoricalColumn:
        """Return the column itself.

        Parameters
        ----------
        what : str
            Not used; `NumericColumn.to_categorical` has it too.

        Returns
        -------
        CategoricalColumn
            The same column.
        """
        return self


Column = NumericColumn | CategoricalColumn


def to_level(value: object) -> str:
    """Return the level of a value: 3.0 and 3 are the level "3"."""
    if isinstance(value, (float, np.floating)) and value.is_integer():
        return str(int(value))
    return str(value)
