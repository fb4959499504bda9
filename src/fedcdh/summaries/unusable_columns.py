"""Columns that are no variables: identifiers, dates and free text, which must not get into a profile.

A column is taken for an identifier if, in `MIN_IDENTIFIER_ROWS` rows or more, its values all differ and run in equal
steps, or each row has a label of its own, or its numbers are whole and too long to be measured. A column whose
kind is declared is used as it is.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Mapping

from fedcdh.data.labels import has_thousands_separators, looks_like_number
from fedcdh.errors import DataError

MIN_IDENTIFIER_ROWS = 100
"""Rows below which values that all differ prove nothing."""
MAX_MEASURED = 10.0**15
"""Whole numbers from here on have 16 digits or more; floating-point numbers hold 15 of them."""
_TOLERANCE = 1e-9
_LONG_NUMBERS = "its whole numbers have 16 digits or more, as identifiers do"
_LONG_NUMBER = re.compile(r"[+-]?\d{16,}")
_DATE = re.compile(r"\d{1,4}[-./]\d{1,2}[-./]\d{1,4}([ T].*)?")


def find_steps(count: int, low: float, high: float, mean: float, squares: float) -> float | None:
    """Return the step of values that all differ and run in equal steps, in any order; None for others.

    Of all values between two ends, those in equal steps have this mean and this sum of squared deviations. Repeated
    values in the same range deviate more, or less.

    Parameters
    ----------
    count : int
        Number of values.
    low, high : float
        Smallest and largest value.
    mean : float
        Their mean.
    squares : float
        Sum of their squared deviations from the mean.

    Returns
    -------
    float or None
        The step.

    Examples
    --------
    >>> find_steps(3, 10.0, 14.0, 12.0, 8.0)
    2.0
    >>> find_steps(3, 10.0, 14.0, 13.0, 11.0) is None
    True
    """
    width = high - low
    if count < 2 or not width > 0:
        return None
    step = width / (count - 1)
    expected = step * step * count * (count * count - 1) / 12
    if abs(mean - (low / 2 + high / 2)) > _TOLERANCE * width or abs(squares - expected) > _TOLERANCE * expected:
        return None
    return step


def describe_numbers(count: int, low: float, high: float, mean: float, squares: float, *, whole: bool) -> str | None:
    """Return why a column of numbers is no variable; None if it may be one.

    Parameters
    ----------
    count : int
        Number of values.
    low, high : float
        Smallest and largest value.
    mean : float
        Their mean.
    squares : float
        Sum of their squared deviations from the mean.
    whole : bool
        Whether all values are whole numbers.

    Returns
    -------
    str or None
        The reason.

    Examples
    --------
    >>> describe_numbers(100, 1.0, 100.0, 50.5, 83325.0, whole=True)
    'its 100 values all differ and run in steps of 1, as identifiers and row numbers do'
    """
    if whole and max(abs(low), abs(high)) >= MAX_MEASURED:
        return _LONG_NUMBERS
    if count < MIN_IDENTIFIER_ROWS or not whole:
        return None
    step = find_steps(count, low, high, mean, squares)
    if step is None:
        return None
    return f"its {count} values all differ and run in steps of {step:g}, as identifiers and row numbers do"


def describe_labels(count: int, levels: Collection[str], *, too_many: bool = False) -> str | None:
    """Return why a column of texts is no variable; None if it may be one.

    Parameters
    ----------
    count : int
        Number of rows with a value that were read.
    levels : collection of str
        Different texts among them.
    too_many : bool, default False
        Whether these are more than a categorical variable may have.

    Returns
    -------
    str or None
        The reason.

    Examples
    --------
    >>> describe_labels(3, ["a", "b"]) is None
    True
    """
    if levels and all(map(has_thousands_separators, levels)):
        return "it holds numbers with thousands separators as texts; convert it to numbers in the program it comes from"
    alone = count >= MIN_IDENTIFIER_ROWS and len(levels) == count
    if not alone and not too_many:
        return None
    if 2 * sum(_LONG_NUMBER.fullmatch(level.strip()) is not None for level in levels) > len(levels):
        return _LONG_NUMBERS
    if 2 * sum(map(looks_like_number, levels)) > len(levels):
        return None  # the reader has advice for numbers that were taken for texts
    if sum(_DATE.fullmatch(level) is not None for level in levels) > len(levels) / 2:
        return "it holds dates; use the days since a fixed day, or sort rows by it (order_by)"
    return "every row has a text of its own, as in identifiers and free text" if alone else None


def unusable_columns_error(problems: Mapping[str, str], owner: str) -> DataError:
    """Return one error about all columns that are no variables.

    Parameters
    ----------
    problems : mapping from str to str
        By column, why it is none.
    owner : str
        Who has these columns.

    Returns
    -------
    DataError
        The error.

    Examples
    --------
    >>> print(unusable_columns_error({"id": "it is an identifier"}, "client 'north'").message.splitlines()[0])
    client 'north': 1 column cannot be a variable of the study:
    """
    lines = [f"- {why}" if why.startswith("column ") else f"- column {name!r}: {why}" for name, why in problems.items()]
    options = " ".join(f"--exclude {shlex.quote(name)}" for name in problems)
    counted = f"{len(problems)} column{'s' if len(problems) > 1 else ''}"
    return DataError(
        f"{owner}: {counted} cannot be a variable of the study:\n"
        + "\n".join(lines)
        + f"\nExpected measured numbers, or texts that many rows share. Leave {'them' if len(problems) > 1 else 'it'} "
        f"out: exclude={list(problems)!r} in Python, {options} on the command line. If a column is a variable all the "
        "same, declare its kind",
        parameter="kinds",
    )
