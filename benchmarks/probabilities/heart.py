"""Arrows into age and sex in a study of four hospitals: nothing causes either, and no knowledge says so here.

The data are those of the folder `heart_4hospitals` beside the other real data; a truth is not known. Switzerland has no
cholesterol, and few values of fasting blood sugar. So there are three studies: without both variables, with blood sugar
although most rows of Switzerland are left out, and with all variables but without Switzerland.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from fedcdh import discover
from fedcdh.evaluation.experiments.real_data import DOMAIN_COLUMN, data_folder

SOURCE = "heart_4hospitals"
ROOTS = ("age", "sex")
MAX_PROBABILITY = 0.6
"""The goal: no arrow into age or sex is likelier."""
COMMON = ("age", "sex", "cp", "trestbps", "restecg", "thalach", "exang", "oldpeak", "num")
LABELS = ("sex", "cp", "fbs", "restecg", "exang", "num")


class HeartStudy(NamedTuple):
    """Some variables of some hospitals."""

    title: str
    variables: tuple[str, ...] = COMMON
    without: str = ""
    max_missing_share: float = 0.5


STUDIES = (
    HeartStudy("nine variables"),
    HeartStudy("with blood sugar", (*COMMON, "fbs"), max_missing_share=0.7),
    HeartStudy("three hospitals", (*COMMON, "fbs", "chol"), "switzerland", 0.7),
)


class Likeliest(NamedTuple):
    """The likeliest arrow into one of some variables."""

    tail: str
    head: str
    probability: float


def read_columns() -> dict[str, np.ndarray] | None:
    """Return the columns of the study, NaN where a value is missing; None if the data are not here."""
    path = data_folder() / SOURCE / "data.csv"
    if not path.exists():
        return None
    with path.open(newline="", encoding="utf-8") as lines:
        header, *rows = csv.reader(lines)
    columns = dict(zip(header, zip(*rows, strict=True), strict=True))
    return {
        name: np.array(values) if name == DOMAIN_COLUMN else np.array([float(value or "nan") for value in values])
        for name, values in columns.items()
    }


def likeliest_arrow(arrows: Mapping[tuple[str, str], float], heads: Sequence[str]) -> Likeliest:
    """Return the likeliest arrow into one of these variables.

    Parameters
    ----------
    arrows : mapping from (str, str) to float
        Probabilities of arrows.
    heads : sequence of str
        The variables.

    Returns
    -------
    Likeliest
        The arrow; the first by name among equals.

    Examples
    --------
    >>> likeliest_arrow({("bmi", "age"): 0.3, ("age", "bmi"): 0.6, ("sex", "age"): 0.2}, ("age", "sex"))
    Likeliest(tail='bmi', head='age', probability=0.3)
    """
    into = [Likeliest(*arrow, value) for arrow, value in arrows.items() if arrow[1] in heads]
    return min(into, key=lambda one: (-one.probability, one.tail, one.head))


def run_heart(study: HeartStudy, columns: Mapping[str, np.ndarray], options: Mapping[str, Any]) -> Likeliest:
    """Return the likeliest arrow into age or sex, without knowledge."""
    kept = columns[DOMAIN_COLUMN] != study.without
    result = discover(
        {name: columns[name][kept] for name in (*study.variables, DOMAIN_COLUMN)},
        domain=DOMAIN_COLUMN,
        kinds={name: "categorical" for name in LABELS if name in study.variables},
        max_missing_share=study.max_missing_share,
        **options,
    )
    both = {
        arrow: value
        for edge in result.edges()
        if edge.probability is not None and edge.probability_forward is not None
        for arrow, value in (
            ((edge.source, edge.target), edge.probability_forward),
            ((edge.target, edge.source), edge.probability - edge.probability_forward),
        )
        if arrow[0] in study.variables and arrow[1] in study.variables
    }
    return likeliest_arrow(both, ROOTS)


def show_heart(methods: Mapping[str, Mapping[str, Any]]) -> None:
    """Print the likeliest arrow into age or sex, for every study and method."""
    columns = read_columns()
    if columns is None:
        folder = data_folder() / SOURCE
        print(f"{SOURCE}: {folder} not found, skipped (FEDCDH_SHARED names the folder that holds data/)")
        return
    print(f"the likeliest arrow into {' or '.join(ROOTS)}, without knowledge; the goal is {MAX_PROBABILITY} at most")
    for study in STUDIES:
        for method, options in methods.items():
            found = run_heart(study, columns, options)
            above = "  above the goal" if found.probability > MAX_PROBABILITY else ""
            arrow = f"{found.tail} → {found.head}"
            print(f"{study.title:20}{method:26}{arrow:20}{found.probability:6.3f}{above}", flush=True)
