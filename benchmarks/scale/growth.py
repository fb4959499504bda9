"""Growth curves: one size varies, all others stand still; time beside that of the smallest size, and its exponent.

The exponent is the slope of log time on log size by least squares, over the larger half of the sizes: what small ones
take is mostly the same whatever the size. Beside it stands the exponent that the work itself has: each row is looked at
once, products of features are quadratic in their number, pairs of variables quadratic in theirs. Tests have one level
whatever the size: pairs which chance leaves are then quadratic, too, and questions given one of their neighbours cubic.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.scale.measure import Measured, measure_job

JOBS = "benchmarks.scale.jobs"


@dataclass(frozen=True)
class Curve:
    """A job whose cost is followed while one of its sizes grows."""

    name: str
    job: str
    varied: str
    values: tuple[int, ...]
    fixed: Mapping[str, Any]
    work: str  # the exponent the work has, in words

    def quick(self) -> Curve:
        """The three smallest sizes."""
        return Curve(self.name, self.job, self.varied, self.values[:3], self.fixed, self.work)


@dataclass(frozen=True)
class Point:
    """One size of one curve."""

    curve: str
    varied: str
    value: int
    cost: Measured


def double_from(first: int, times: int) -> tuple[int, ...]:
    return tuple(first << i for i in range(times))


STUDY = {"variables": 20, "clients": 10, "rows": 200}
CURVES = (
    Curve("client", "client", "rows", double_from(1 << 15, 7), {"variables": 20}, "1"),
    Curve("client", "client", "variables", double_from(5, 6), {"rows": 1 << 15}, "1 to 2"),
    Curve("client", "client", "width", double_from(2, 6), {"rows": 1 << 15, "variables": 10}, "1 to 2"),
    Curve("arrival", "arrival", "clients", double_from(16, 6), {"variables": 6, "rows": 100}, "1"),
    *(
        Curve(f"server, {method}", "server", varied, values, {"method": method, **STUDY}, work)
        for method, most, pairs in (("constraint", 6, "2 to 3"), ("evidence", 5, "2"))
        for varied, values, work in (
            ("rows", double_from(200, 6), "0"),
            ("variables", double_from(10, most), pairs),
            ("clients", double_from(4, 6), "at most 1"),
        )
    ),
    Curve("server, constraint", "server", "width", double_from(2, 5), {"method": "constraint", **STUDY}, "at most 3"),
    Curve("cdnod, Fisher's z", "peer", "rows", double_from(200, 6), {"program": "cdnod-fisherz", **STUDY}, "–"),
    Curve("cdnod, Fisher's z", "peer", "variables", double_from(10, 4), {"program": "cdnod-fisherz", **STUDY}, "–"),
    Curve(
        "cdnod, KCI",
        "peer",
        "rows",
        double_from(10, 5),
        {"program": "cdnod-kci", "variables": 3, "clients": 10},
        "3",
    ),
)


def measure_curve(curves: Iterable[Curve]) -> Iterator[Point]:
    """One point after the other, each in a process of its own."""
    for curve in curves:
        for value in curve.values:
            yield Point(
                curve.name, curve.varied, value, measure_job(JOBS, curve.job, {**curve.fixed, curve.varied: value})
            )


def fit_exponent(values: Sequence[float], costs: Sequence[float]) -> float:
    """The slope of log cost on log size over the larger half of the sizes, three of them at least."""
    half = max(3, -(-len(values) // 2))
    sizes, found = np.log(np.array(values[-half:])), np.log(np.maximum(costs[-half:], 1e-9))
    return float(np.polyfit(sizes, found, 1)[0])
