"""Checks for one quantity in different units, which only the profiles of several clients reveal.

Clients may differ in location and in spread. Different units differ in both at once, by a known factor. Reported are
groups of clients whose central ranges (5 to 95 %) do not overlap, and which a known conversion brings together: every
quantile to within `MAX_QUANTILE_DISTANCE` central ranges, and `MIN_IMPROVEMENT` times closer than before.

Both limits were chosen on simulated studies with seeds below 1000. `benchmarks.bench_units` prints, on other seeds,
how often they report a difference without reason and how often they find a wrong unit (docs/units.md).

Quantities that really differ by such a factor in location and spread look the same. Units of a variable whose values
spread around 0 or over powers of ten are not found, because there the ranges overlap.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from fedcdh.summaries.column_profiles import ColumnProfile

MIN_VALUES = 20
"""Number of values below which the outer quantiles of a client are too uncertain for this check."""
MAX_QUANTILE_DISTANCE = 0.6
"""Largest distance of converted quantiles, in central ranges."""
MIN_IMPROVEMENT = 8.0
"""Smallest factor by which a conversion brings the quantiles closer."""
_MAX_NAMES_SHOWN = 5

Quantiles = Sequence[float]


@dataclass(frozen=True)
class Conversion:
    """A conversion of units: larger = factor · smaller + offset."""

    factor: float
    offset: float
    units: str

    def __call__(self, quantiles: Quantiles) -> Quantiles:
        return [self.factor * value + self.offset for value in quantiles]


CONVERSIONS = (
    Conversion(1.8, 32.0, "°C and °F"),
    Conversion(10.93, -23.5, "HbA1c in % and in mmol/mol"),
    Conversion(2.2046, 0.0, "kg and lb"),
    Conversion(2.54, 0.0, "inch and cm"),
    Conversion(4.184, 0.0, "kcal and kJ"),
    Conversion(7.5006, 0.0, "kPa and mmHg"),
    Conversion(12.0, 0.0, "years and months"),
    Conversion(18.02, 0.0, "mmol/l and mg/dl of glucose"),
    Conversion(24.0, 0.0, "days and hours"),
    Conversion(38.67, 0.0, "mmol/l and mg/dl of cholesterol"),
    Conversion(60.0, 0.0, "hours and minutes, or minutes and seconds"),
    Conversion(88.5, 0.0, "mmol/l and mg/dl of triglycerides, or mg/dl and µmol/l of creatinine"),
    Conversion(365.25, 0.0, "years and days"),
    Conversion(10.0, 0.0, "cm and mm, or g/dl and g/l"),
    Conversion(100.0, 0.0, "m and cm, or shares and per cent"),
    Conversion(1000.0, 0.0, "kg and g, or g and mg"),
    *(Conversion(10.0**k, 0.0, f"a prefix of 10^{k}") for k in range(4, 10)),
)


@dataclass(frozen=True)
class UnitMismatch:
    """Two groups of clients that seem to use different units for one variable.

    Parameters
    ----------
    variable : str
        Name of the variable.
    low, high : tuple of str
        Clients with the smaller and with the larger values.
    low_median, high_median : float
        Median of a typical client of each group.
    conversion : Conversion
        The conversion that explains the difference best.

    Examples
    --------
    >>> str(UnitMismatch("weight", ("a",), ("b",), 70.0, 154.0, CONVERSIONS[2]))[:60]
    "The variable 'weight' has a median of about 70 at 'a' and of"
    """

    variable: str
    low: tuple[str, ...]
    high: tuple[str, ...]
    low_median: float
    high_median: float
    conversion: Conversion

    def __str__(self) -> str:
        ratio = f" ({self.high_median / self.low_median:.3g} times)" if self.low_median else ""
        return (
            f"The variable {self.variable!r} has a median of about {self.low_median:.4g} at {_join_names(self.low)} "
            f"and of about {self.high_median:.4g}{ratio} at {_join_names(self.high)}, and their ranges do not overlap. "
            f"Expected the same unit at all sites; these look like {self.conversion.units} (about "
            f"{self.conversion.factor:g} times). Convert the column at the site and make its profile again, or "
            "write the factor into a recipe (docs/command-line.md). If the "
            f"values really differ, accept the difference with --accept-differences {shlex.quote(self.variable)} "
            f"(in Python accept_differences=[{self.variable!r}])"
        )


def find_unit_mismatch(variable: str, columns: Mapping[str, ColumnProfile]) -> UnitMismatch | None:
    """Return the conversion of units that best explains how the columns of clients differ.

    Parameters
    ----------
    variable : str
        Name of the variable.
    columns : mapping of str to ColumnProfile
        The profile of its column at every client.

    Returns
    -------
    UnitMismatch or None
        The two groups of clients and the conversion; None if there is no sign of different units.

    Examples
    --------
    >>> import fedcdh
    >>> import numpy as np
    >>> kilograms = np.random.default_rng(0).normal(70, 8, 200)
    >>> weights = {"a": kilograms, "b": kilograms, "c": 2.2046 * kilograms}
    >>> profiles = {client: fedcdh.profile({"weight": rows}, client) for client, rows in weights.items()}
    >>> found = find_unit_mismatch("weight", {client: one.columns["weight"] for client, one in profiles.items()})
    >>> found.high, found.conversion.units
    (('c',), 'kg and lb')
    """
    clients = sorted(
        (client for client, column in columns.items() if _is_usable(column)),
        key=lambda client: (columns[client].centre, client),
    )
    quantiles = [columns[client].quantiles for client in clients]
    found: list[tuple[float, int, Conversion]] = []
    for gap in _find_gaps(quantiles):
        # the middle client represents its group
        low, high = quantiles[(gap - 1) // 2], quantiles[gap + (len(quantiles) - gap - 1) // 2]
        limit = min(MAX_QUANTILE_DISTANCE, _quantile_distance(low, high) / MIN_IMPROVEMENT)
        for conversion in CONVERSIONS:
            # for negative values, the conversion runs the other way
            after = min(_quantile_distance(conversion(low), high), _quantile_distance(conversion(high), low))
            if after <= limit:
                found.append((after, gap, conversion))
    if not found:
        return None
    _, gap, conversion = min(found, key=lambda one: one[0])
    low, high = quantiles[(gap - 1) // 2], quantiles[gap + (len(quantiles) - gap - 1) // 2]
    return UnitMismatch(variable, tuple(clients[:gap]), tuple(clients[gap:]), low[2], high[2], conversion)


def _join_names(clients: Sequence[str]) -> str:
    more = f" and {len(clients) - _MAX_NAMES_SHOWN} more" if len(clients) > _MAX_NAMES_SHOWN else ""
    return ", ".join(map(repr, clients[:_MAX_NAMES_SHOWN])) + more


def _is_usable(column: ColumnProfile) -> bool:
    enough = column.kind == "continuous" and column.count >= MIN_VALUES
    return enough and column.quantiles[-1] > column.quantiles[0]


def _find_gaps(quantiles: Sequence[Quantiles]) -> Iterator[int]:
    """Yield the number of clients below each gap, where all their central ranges end before all others begin."""
    ends = list(accumulate((one[-1] for one in quantiles), max))
    begins = list(accumulate((one[0] for one in reversed(quantiles)), min))[::-1]
    for below in range(1, len(quantiles)):
        if ends[below - 1] < begins[below]:
            yield below


def _quantile_distance(one: Quantiles, other: Quantiles) -> float:
    """Return the largest distance between equal quantiles, in central ranges (their geometric mean)."""
    width = math.sqrt(one[-1] - one[0]) * math.sqrt(other[-1] - other[0])
    return max(abs(a - b) for a, b in zip(one, other, strict=True)) / width
