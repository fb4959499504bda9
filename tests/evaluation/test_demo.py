from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats

from fedcdh.evaluation.demo import HOSPITALS, MISSING_SHARES, hospital_study
from fedcdh.protocols import DOMAIN

NAMES = ("age", "smoker", "exercise", "bmi", "systolic_pressure", "cholesterol", "medication", "risk_score")
STUDY = hospital_study()


@pytest.fixture(scope="module")
def patients() -> pd.DataFrame:
    return pd.DataFrame(STUDY.columns())


def test_same_seed_same_study():
    first, again, other = hospital_study(1), hospital_study(1), hospital_study(2)
    for name in HOSPITALS:
        for column in NAMES:
            same = pd.Series(first.tables[name][column]).equals(pd.Series(again.tables[name][column]))
            assert same, (name, column)
    assert not np.array_equal(first.tables["north"]["age"], other.tables["north"]["age"])


def test_five_hospitals_of_unequal_size():
    sizes = {name: len(table["age"]) for name, table in STUDY.tables.items()}
    assert sizes == {"north": 420, "south": 310, "coast": 260, "valley": 380, "city": 690}
    assert STUDY.names == NAMES
    assert f"{sum(sizes.values())} patients" in STUDY.description
    assert all(name in STUDY.description for name in (*NAMES, *HOSPITALS))


def test_the_truth_speaks_of_the_columns():
    assert {end for arrow in STUDY.arrows for end in arrow} == set(NAMES)
    assert STUDY.changing == {"systolic_pressure", "medication"}
    assert STUDY.augmented - STUDY.arrows == {(DOMAIN, "systolic_pressure"), (DOMAIN, "medication")}
    order = {name: place for place, name in enumerate(NAMES)}
    assert all(order[tail] < order[head] for tail, head in STUDY.arrows)


def test_gaps_are_few_and_where_they_are_announced(patients: pd.DataFrame):
    for name in NAMES:
        share = patients[name].isna().mean()
        assert share == pytest.approx(MISSING_SHARES.get(name, 0.0), abs=0.01)
        assert (share > 0) == (name in MISSING_SHARES)


def test_frames_of_both_kinds_and_columns_of_both_kinds(patients: pd.DataFrame):
    polars = pl.DataFrame(STUDY.columns())
    assert polars.columns == ["hospital", *NAMES] == list(patients.columns)
    assert polars["smoker"].dtype == pl.String
    assert polars["bmi"].dtype == pl.Float64
    assert set(polars["medication"]) == {"none", "statin", "other"}
    assert set(polars["smoker"].drop_nulls()) == {"yes", "no"}
    assert polars["smoker"].null_count() == patients["smoker"].isna().sum() > 0


def test_values_a_clinic_could_have_seen(patients: pd.DataFrame):
    limits = {
        "age": (30, 85),
        "exercise": (0, 15),
        "bmi": (15, 40),
        "systolic_pressure": (80, 200),
        "cholesterol": (2, 10),
        "risk_score": (0, 45),
    }
    for name, (low, high) in limits.items():
        assert patients[name].min() >= low
        assert patients[name].max() <= high


def test_tables_are_read_only():
    with pytest.raises(ValueError, match="read-only"):
        STUDY.tables["north"]["age"][0] = 1.0


def residuals(patients: pd.DataFrame, effect: str) -> pd.Series:
    """What is left of a variable after its causes, fitted alike at all hospitals with terms up to the third power."""
    causes = [tail for tail, head in STUDY.arrows if head == effect]
    kept = patients.dropna(subset=[effect, *causes])
    design = [np.ones(len(kept))]
    for cause in causes:
        coded = (kept[cause] == "yes").astype(float) if cause == "smoker" else stats.zscore(kept[cause])
        design += [coded] if cause == "smoker" else [coded, coded**2, coded**3]
    matrix = np.column_stack(design)
    left = kept[effect] - matrix @ np.linalg.lstsq(matrix, kept[effect], rcond=None)[0]
    return left.groupby(kept["hospital"]).apply(np.asarray)


@pytest.mark.parametrize("effect", ["age", "exercise", "bmi", "systolic_pressure", "cholesterol", "risk_score"])
def test_given_its_causes_only_what_is_said_to_change_differs(patients: pd.DataFrame, effect: str):
    p_value = stats.f_oneway(*residuals(patients, effect)).pvalue
    assert (p_value < 1e-6) == (effect in STUDY.changing)
    assert p_value < 1e-6 or p_value > 1e-3


def test_hospitals_prescribe_differently_at_the_same_cholesterol(patients: pd.DataFrame):
    alike = patients[patients["cholesterol"].between(5, 6)]
    assert stats.chi2_contingency(pd.crosstab(alike["hospital"], alike["medication"])).pvalue < 1e-6


@pytest.mark.parametrize("smoker", ["yes", "no"])
def test_causes_move_their_effects_upwards(patients: pd.DataFrame, smoker: str):
    """Signs a physician expects, within smokers and within others."""
    group = patients[patients["smoker"] == smoker]
    for cause, effect, sign in [
        ("age", "exercise", -1),
        ("exercise", "bmi", -1),
        ("age", "systolic_pressure", 1),
        ("bmi", "systolic_pressure", 1),
        ("bmi", "cholesterol", 1),
        ("systolic_pressure", "risk_score", 1),
        ("cholesterol", "risk_score", 1),
    ]:
        both = group[[cause, effect]].dropna()
        assert sign * stats.spearmanr(both[cause], both[effect]).statistic > 0.3
