"""A simulated study of five hospitals, whose truth is known.

`hospital_study` makes it; `HOSPITALS` says what is particular to each hospital.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedcdh.evaluation.simulation import keyed_generator
from fedcdh.protocols import DOMAIN

__all__ = ["HOSPITALS", "Hospital", "HospitalStudy", "hospital_study"]

ColumnArray = NDArray[Any]
HospitalTable = dict[str, ColumnArray]


@dataclass(frozen=True)
class Hospital:
    """The particulars of one hospital.

    Parameters
    ----------
    patients : int
        Number of patients.
    pressure_offset : float
        Blood pressure in mmHg that its device reads too high.
    pressure_noise : float
        Standard deviation of repeated readings, in mmHg.
    statin_threshold : float
        Cholesterol in mmol/l at which a statin becomes as likely as no drug.
    other_preference : float
        Log odds of another drug against none.

    Examples
    --------
    >>> from fedcdh.evaluation.demo import HOSPITALS
    >>> HOSPITALS["coast"].patients
    260
    """

    patients: int
    pressure_offset: float  # mmHg that its device reads too high
    pressure_noise: float  # mmHg, spread of repeated readings
    statin_threshold: float  # mmol/l of cholesterol at which a statin becomes as likely as nothing
    other_preference: float  # log odds of another drug against none


HOSPITALS: Mapping[str, Hospital] = {
    "north": Hospital(420, -9.0, 6.0, 5.2, -1.5),
    "south": Hospital(310, 6.0, 9.0, 6.4, -0.5),
    "coast": Hospital(260, 0.0, 5.0, 5.8, 0.8),
    "valley": Hospital(380, 11.0, 7.0, 6.8, -1.0),
    "city": Hospital(690, -4.0, 5.0, 5.4, 0.3),
}

ARROWS = frozenset(
    {
        ("age", "exercise"),
        ("exercise", "bmi"),
        ("age", "systolic_pressure"),
        ("bmi", "systolic_pressure"),
        ("bmi", "cholesterol"),
        ("smoker", "cholesterol"),
        ("cholesterol", "medication"),
        ("systolic_pressure", "risk_score"),
        ("cholesterol", "risk_score"),
        ("smoker", "risk_score"),
    }
)

MISSING_SHARES = {"exercise": 0.02, "bmi": 0.01, "cholesterol": 0.015, "smoker": 0.01}
"""The share of entries lost, at random: nobody wrote them down."""

DESCRIPTION = (
    "Five hospitals (north, south, coast, valley, city) follow 2060 patients: age in years, smoker, exercise in hours "
    "a week, bmi in kg/m², systolic_pressure in mmHg, cholesterol in mmol/l, medication (none, statin or other) and "
    "the risk_score a physician gives. Two things differ between them: their devices read systolic_pressure "
    "differently, and they prescribe medication by different rules. All else works alike everywhere. About one entry "
    "in seventy of exercise, bmi, cholesterol and smoker was not recorded. The patients are simulated; no one's data "
    "are in this study."
)


@dataclass(frozen=True, eq=False)
class HospitalStudy:
    """One table per hospital, and the truth that made them.

    Parameters
    ----------
    tables : mapping from str to dict of arrays
        For each hospital its columns by name. Missing numbers are nan, missing levels None.
    arrows : frozenset of (str, str)
        True arrows as (cause, effect).
    changing : frozenset of str
        Variables whose mechanism differs between hospitals.
    description : str
        The study in words.

    Examples
    --------
    >>> import fedcdh
    >>> study = fedcdh.demo.hospital_study()
    >>> sorted(study.changing)
    ['medication', 'systolic_pressure']
    """

    tables: Mapping[str, HospitalTable]  # hospital → column name → entries; missing numbers are nan, missing words None
    arrows: frozenset[tuple[str, str]]
    changing: frozenset[str]
    description: str

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the variables."""
        return tuple(next(iter(self.tables.values())))

    @property
    def augmented(self) -> frozenset[tuple[str, str]]:
        """Return the arrows, and one from the domain to every variable whose mechanism differs between hospitals."""
        return self.arrows | {(DOMAIN, name) for name in self.changing}

    def columns(self, client_column: str = "hospital") -> HospitalTable:
        """Put all patients into one table, as columns that a data frame accepts.

        Parameters
        ----------
        client_column : str, default "hospital"
            Name of the column that names the hospital.

        Returns
        -------
        dict of str to array
            The column of hospitals, and one column for every variable.
        """
        tables = self.tables.values()
        sizes = [len(table["age"]) for table in tables]
        pooled = {name: np.concatenate([table[name] for table in tables]) for name in self.names}
        return {client_column: np.repeat(list(self.tables), sizes), **pooled}


def hospital_study(seed: int = 0) -> HospitalStudy:
    """Simulate five hospitals of unequal size with eight variables, two changing mechanisms and missing values.

    Parameters
    ----------
    seed : int, default 0
        Seed of all draws.

    Returns
    -------
    HospitalStudy
        One table per hospital, and the truth that made them.

    Examples
    --------
    >>> import fedcdh
    >>> study = fedcdh.demo.hospital_study()
    >>> {name: len(table["age"]) for name, table in study.tables.items()}
    {'north': 420, 'south': 310, 'coast': 260, 'valley': 380, 'city': 690}
    """
    return HospitalStudy(
        tables={name: _draw_table(name, hospital, seed) for name, hospital in HOSPITALS.items()},
        arrows=ARROWS,
        changing=frozenset({"systolic_pressure", "medication"}),
        description=DESCRIPTION,
    )


def _draw_table(name: str, hospital: Hospital, seed: int) -> HospitalTable:
    def draw(variable: str) -> np.random.Generator:
        return keyed_generator(seed, "hospital study", name, variable)

    patients = _draw_patients(hospital, draw)
    recorded = {column: _lose_entries(patients[column], column, draw(f"missing {column}")) for column in patients}
    for column in recorded.values():
        column.setflags(write=False)
    return recorded


def _draw_patients(hospital: Hospital, draw: Callable[[str], np.random.Generator]) -> HospitalTable:
    """Draw eight variables, causes before effects, in the units of a clinic."""

    def noise(variable: str) -> NDArray[np.float64]:
        return draw(variable).standard_normal(hospital.patients)

    age = np.round(30 + 55 * draw("age").beta(2.0, 2.0, hospital.patients))
    older = (age - 57) / 12
    smokes = draw("smoker").random(hospital.patients) < 0.35
    exercise = np.maximum(6 - 1.2 * older + 1.2 * noise("exercise"), 0).round(1)
    bmi = (27 - 3 * np.tanh((exercise - 6) / 2) + 1.6 * noise("bmi")).round(1)
    heavier = (bmi - 27) / 2.4
    reading = hospital.pressure_offset + hospital.pressure_noise * noise("systolic_pressure")
    pressure = np.round(128 + 8 * older + 2 * older**2 + 7 * heavier + reading)
    cholesterol = (5.1 + 0.6 * heavier + 1.0 * smokes + 0.5 * noise("cholesterol")).round(1)
    hypertension = np.logaddexp(0, (pressure - 125) / 6)  # a smooth hinge: pressure matters from about 125 on
    risk = 10 + 1.5 * hypertension + 4 * smokes + 1.4 * (cholesterol - 4) + 2.5 * noise("risk_score")
    return {
        "age": age,
        "smoker": np.where(smokes, "yes", "no").astype(object),
        "exercise": exercise,
        "bmi": bmi,
        "systolic_pressure": pressure,
        "cholesterol": cholesterol,
        "medication": _prescribe(hospital, cholesterol, draw("medication")),
        "risk_score": risk.round(1),
    }


def _prescribe(hospital: Hospital, cholesterol: NDArray[np.float64], draw: np.random.Generator) -> ColumnArray:
    """Choose a drug by a multinomial model in which more cholesterol makes a statin likelier."""
    drugs = np.array(["none", "statin", "other"], dtype=object)
    statin = 2.5 * (cholesterol - hospital.statin_threshold)
    appeal = np.column_stack([np.zeros_like(statin), statin, np.full_like(statin, hospital.other_preference)])
    return np.asarray(drugs[np.argmax(appeal + draw.gumbel(size=appeal.shape), axis=1)])


def _lose_entries(column: ColumnArray, name: str, draw: np.random.Generator) -> ColumnArray:
    """Replace some entries at random by None (levels) or nan (numbers)."""
    lost = draw.random(len(column)) < MISSING_SHARES.get(name, 0.0)
    gap = np.array(None if column.dtype == object else np.nan, dtype=column.dtype)
    return np.where(lost, gap, column)
