"""Groups of methods on the page of results, and how each is drawn: the same look in every figure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from fedcdh.evaluation.experiments.row_files import ResultRow

ORACLE_METHOD = "oracle"
REFERENCE_METHOD = "fedcdh"
OWN_METHODS = (
    REFERENCE_METHOD,
    "fedcdh-one-message",
    "fedcdh-constraint",
    "fedcdh-constraint-one-message",
    "fedcdh-rounds",
)
PAPER_METHODS = ("fedcdh-paper", "fedcdh-program", "fedpc", "notears-admm", "notears-mlp-admm", "feddag")
"""FedCDH as published, and the rivals of the paper's figures."""
MAX_CURVES = 12
"""Curves of one figure; the tables have all methods."""


class CurveStyle(NamedTuple):
    """Colour, marker and line of a method."""

    colour: str
    marker: str
    line: str


_FIXED_STYLES = {
    ORACLE_METHOD: CurveStyle("#000000", "_", ":"),
    "fedcdh": CurveStyle("#0057B7", "o", "-"),
    "fedcdh-one-message": CurveStyle("#5AA9FF", "s", "-"),
    "fedcdh-constraint": CurveStyle("#007A3D", "D", "-"),
    "fedcdh-constraint-one-message": CurveStyle("#66C28A", "d", "-"),
    "fedcdh-rounds": CurveStyle("#00B3B3", "h", "-"),
    "fedcdh-paper": CurveStyle("#D00000", "^", "--"),
    "fedcdh-program": CurveStyle("#FF7F50", "v", "--"),
    "fedpc": CurveStyle("#8E44AD", "P", "--"),
    "notears-admm": CurveStyle("#E69F00", "X", "--"),
    "notears-mlp-admm": CurveStyle("#8C5A00", "*", "--"),
    "feddag": CurveStyle("#E0479E", "p", "--"),
    "sort-by-variance": CurveStyle("#7F7F7F", ">", "-."),
}
_FURTHER_STYLES = (
    CurveStyle("#4B4B8F", "<", "-."),
    CurveStyle("#6B8E23", "1", "-."),
    CurveStyle("#B8860B", "2", "-."),
    CurveStyle("#2F4F4F", "3", "-."),
    CurveStyle("#9370DB", "4", "-."),
    CurveStyle("#A52A2A", "x", "-."),
    CurveStyle("#20B2AA", "+", "-."),
    CurveStyle("#C71585", "|", "-."),
    CurveStyle("#556B2F", "H", "-."),
    CurveStyle("#1E90FF", "8", "-."),
    CurveStyle("#CD853F", "s", "-."),
    CurveStyle("#708090", ".", "-."),
)


def curve_styles(methods: Sequence[str]) -> dict[str, CurveStyle]:
    """Return the style of every method of a figure; no two are alike.

    >>> styles = curve_styles(["fedcdh", "fedpc", "some-rival"])
    >>> len({*styles.values()}), styles["fedcdh"] == curve_styles(["fedcdh"])["fedcdh"]
    (3, True)
    """
    further = iter(_FURTHER_STYLES)
    return {method: _FIXED_STYLES.get(method) or next(further) for method in methods}


def is_rival(method: str) -> bool:
    """Return whether a method is neither one of ours nor the oracle."""
    return method != ORACLE_METHOD and method not in OWN_METHODS


def choose_curves(rows: Iterable[ResultRow], methods: Sequence[str], measure: str) -> list[str]:
    """Return the methods to draw: the oracle, ours, those of the paper, and the strongest of the others.

    Strength is the mean of the measure over the instances that the reference has. A rival with half as many or fewer is
    not drawn: its curve would be of other instances than the rest.
    """
    scores: dict[str, list[float]] = {}
    for row in rows:
        if row[measure]:
            scores.setdefault(row["method"], []).append(float(row[measure]))
    most = max(map(len, scores.values()), default=0)
    first = [m for m in methods if m in scores and (m in (ORACLE_METHOD, *OWN_METHODS, *PAPER_METHODS))]
    others = [m for m in methods if m in scores and m not in first and 2 * len(scores[m]) > most]
    sign = 1 if measure.endswith("shd") else -1
    others.sort(key=lambda method: sign * sum(scores[method]) / len(scores[method]))
    chosen = {*first, *others[: max(0, MAX_CURVES - len(first))]}
    return [method for method in methods if method in chosen]
