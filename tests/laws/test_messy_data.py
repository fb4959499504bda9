"""Data as it is: each oddity works, or is refused with the client, the variable and what to do."""

from __future__ import annotations

import datetime
import os
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import studies
from hypothesis import given, settings
from hypothesis import strategies as st

from fedcdh.discovery.api import discover
from fedcdh.errors import DataError, FedCDHError, PlanError
from fedcdh.evaluation.demo import hospital_study
from fedcdh.protocols import DOMAIN
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.aggregation import add_up
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.variables import Categorical, Continuous

METHODS = ["constraint", "paper"]
every_method = pytest.mark.parametrize("method", METHODS)


def base(seed: int = 0, sizes=(60, 50)) -> studies.Tables:
    return studies.numbers(seed, sizes, count=3)


def with_column(tables: studies.Tables, name: str, column) -> studies.Tables:
    """The same tables with one more column: a function of the client's position, its table and a generator."""
    return {
        client: {**table, name: column(k, table, np.random.default_rng(k))}
        for k, (client, table) in enumerate(tables.items())
    }


def labels(table, rng, letters: str) -> np.ndarray:
    return np.array(list(letters))[rng.integers(0, len(letters), len(table["v1"]))]


# Kinds of variables


@every_method
def test_labels_and_numbers_together(method):
    result = studies.found(studies.mixed(1), method=method)
    expected = ("contradiction", "edge stays", "few values: flag (2 values)")
    assert all(any(part in note for part in expected) for note in result.notes)


@every_method
def test_labels_only(method):
    tables = {
        client: {"a": labels(table, rng, "xy"), "b": labels(table, rng, "uvw"), "c": labels(table, rng, "pq")}
        for client, table, rng in ((c, t, np.random.default_rng(len(c))) for c, t in base().items())
    }
    studies.found(tables, method=method)


def binary_as(write) -> studies.Tables:
    def column(k, table, rng):
        return write(table["v1"] + 0.5 * k + rng.standard_normal(len(table["v1"])) > 0.8)

    return with_column(base(), "sick", column)


WRITERS = {
    "numbers": lambda sick: sick.astype(float),
    "integers": lambda sick: sick.astype(int),
    "text": lambda sick: np.where(sick, "yes", "no"),
    "turned text": lambda sick: np.where(sick, "a yes", "no"),
    "bool": lambda sick: sick,
    "other numbers": lambda sick: np.where(sick, 2.0, 17.0),
}


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS.keys())
def test_a_binary_variable_is_the_same_however_it_is_written(write):
    assert studies.same_findings(
        studies.found(binary_as(write), method="constraint"),
        studies.found(binary_as(WRITERS["text"]), method="constraint"),
        within=1e-4,
    )


@pytest.mark.parametrize("write", [WRITERS["turned text"], WRITERS["bool"]], ids=["turned text", "bool"])
def test_a_binary_label_is_the_same_however_it_is_written(write):
    assert studies.same_findings(
        studies.found(binary_as(write), method="evidence"), studies.found(binary_as(WRITERS["text"]), method="evidence")
    )


@every_method
@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS.keys())
def test_binary_variables_work(write, method):
    studies.found(binary_as(write), method=method)


@every_method
def test_twenty_levels(method):
    tables = with_column(base(), "ward", lambda k, table, rng: labels(table, rng, "abcdefghijklmnopqrst"))
    studies.found(tables, method=method)


def test_too_many_levels_are_refused():
    tables = with_column(base(sizes=(150, 150)), "id", lambda k, table, rng: [f"p{i}" for i in range(150)])
    with pytest.raises(DataError, match=r"(?s)client 'site0'.*'id': every row has a text of its own.*exclude"):
        discover(tables)


@every_method
def test_a_level_that_only_one_client_has(method):
    tables = with_column(base(), "g", lambda k, table, rng: labels(table, rng, "ab" if k else "abc"))
    result = studies.found(tables, method=method)
    assert result.cohort.plan.variables[-1] == Categorical("g", ("a", "b", "c"))


def test_clients_without_a_common_level():
    tables = with_column(base(), "g", lambda k, table, rng: labels(table, rng, "ab" if k else "cd"))
    with pytest.raises(PlanError, match="no label in common"):
        studies.found(tables)
    assert "g" in studies.found(tables, accept_differences=["g"]).changing


def test_a_level_that_the_plan_does_not_know_is_refused():
    plan = StudyPlan((Categorical("g", ("a", "b")), Continuous("x")), ("north",))
    with pytest.raises(
        DataError, match=r"'g' at client 'north' holds \['c'\].*\['a', 'b'\].*add the level to the plan"
    ):
        summarize({"g": ["a", "c"], "x": [1.0, 2.0]}, plan, "north")


def test_numbers_here_and_text_there_is_refused():
    tables = with_column(
        base(), "g", lambda k, t, rng: labels(t, rng, "ab") if k else rng.standard_normal(len(t["v1"]))
    )
    with pytest.raises(
        PlanError, match=r"'g' is continuous at client 'site0' and categorical at client 'site1'; agree"
    ):
        discover(tables)
    with pytest.raises(DataError, match=r"'g' at client 'site1' should be continuous but holds text.*turn it into"):
        discover(tables, kinds={"g": "continuous"})


def test_numbers_declared_as_labels():
    tables = with_column(base(), "grade", lambda k, table, rng: rng.integers(1, 5, len(table["v1"])))
    text = with_column(base(), "grade", lambda k, table, rng: rng.integers(1, 5, len(table["v1"])).astype(str))
    assert studies.same_findings(studies.found(tables, kinds={"grade": "categorical"}), studies.found(text), within=0.0)


@pytest.mark.parametrize(
    "day",
    [
        [datetime.date(2020, 1, 1)] * 60,
        np.full(60, np.datetime64("2020-01-01")),
        pd.Series(pd.Timestamp(2020, 1, 1), range(60)),
    ],
    ids=["dates", "numpy", "pandas"],
)
def test_dates_are_refused_and_can_be_left_out(day):
    tables = base(sizes=(60, 60))
    dated = {client: {**table, "day": day} for client, table in tables.items()}
    with pytest.raises(DataError, match=r"client 'site0'.*'day' holds .*days since a fixed day.*leave it out"):
        discover(dated)
    result = studies.found(dated, variables=["v1", "v2", "v3"])
    assert studies.same_findings(result, studies.found(tables), within=0.0)
    one_table = pd.DataFrame({"site": ["a"] * 30 + ["b"] * 30, **dated["site0"]})
    assert studies.found(one_table, domain="site", variables=["v1", "v2"]).graph.nodes == ("v1", "v2")


# Missing and impossible values


def with_gaps(tables: studies.Tables, name: str, share: float, client: str = "site0") -> studies.Tables:
    column = tables[client][name].copy()
    column[: round(share * len(column))] = np.nan
    return {**tables, client: {**tables[client], name: column}}


@every_method
def test_missing_values_are_counted_and_reported(method):
    tables = with_gaps(with_gaps(base(), "v2", 0.2), "v3", 0.1)
    result = studies.found(tables, method=method)
    assert "client site0: 12 of 60 rows left out (missing: v2 12, v3 6)" in result.notes
    assert "12 of 60 rows left out" in str(result)
    (gaps, whole) = result.cohort.summaries
    assert (gaps.rows_read, gaps.rows, dict(gaps.missing)) == (60, 48, {"v1": 0, "v2": 12, "v3": 6})
    assert (whole.rows_read, whole.rows, set(whole.missing.values())) == (50, 50, {0})


def test_every_way_of_writing_nothing_is_missing():
    column = [1.0, 2.0, 3.0, 4.0]
    for nothing in (None, np.nan, pd.NA, pd.NaT):
        plan = StudyPlan((Continuous("x"), Categorical("g", ("a", "b"))), ("here",))
        found = summarize({"x": [*column, nothing], "g": ["a", "b", nothing, "a", "b"]}, plan, "here")
        assert (found.rows, dict(found.missing)) == (3, {"x": 1, "g": 1})


def test_rows_with_gaps_say_nothing_but_their_number():
    """Location and scale aside, which a plan fixes before, an incomplete row is as if it were not there."""
    tables = with_gaps(base(), "v2", 0.25)
    plan = studies.plan_of(tables)
    gone = {name: column[15:] for name, column in tables["site0"].items()}
    with_rows, without = (summarize(table, plan, "site0") for table in (tables["site0"], gone))
    assert np.array_equal(with_rows.moments, without.moments)


@pytest.mark.parametrize(("share", "allowed"), [(0.6, 0.5), (0.3, 0.2), (0.1, 0.0)])
def test_too_many_missing_values_are_refused(share, allowed):
    tables = with_gaps(base(sizes=(60, 50)), "v2", share)
    lost = round(share * 60)
    with pytest.raises(DataError, match=rf"'site0' would lose {lost} of 60 rows.*'v2' \({lost} missing\)"):
        discover(tables, max_missing_share=allowed)
    assert studies.found(tables, max_missing_share=share + 0.01).cohort.total.rows == 110 - lost


@every_method
def test_a_variable_that_one_client_never_measured(method):
    tables = with_gaps(base(), "v2", 1.0)
    with pytest.raises(
        DataError, match=r"'site0' would lose 60 of 60 rows.*'v2'.*leave that variable or this client out"
    ):
        discover(tables, method=method)
    studies.found(tables, method=method, variables=["v1", "v3"])


def test_labels_that_one_client_never_wrote_down():
    tables = with_column(base(), "g", lambda k, t, rng: labels(t, rng, "ab") if k else [None] * len(t["v1"]))
    with pytest.raises(DataError, match=r"'site0' would lose 60 of 60 rows.*'g'"):
        discover(tables)
    frames = {client: pl.DataFrame({n: list(c) for n, c in table.items()}) for client, table in tables.items()}
    with pytest.raises(DataError, match=r"'site0' would lose 60 of 60 rows.*'g'"):
        discover(frames)


def test_a_variable_nobody_measured():
    tables = with_gaps(with_gaps(base(), "v2", 1.0), "v2", 1.0, "site1")
    with pytest.raises(PlanError, match=r"'v2' has no value at any client; leave it out"):
        discover(tables)


@pytest.mark.parametrize("client", ["site0", "site1"])
def test_a_column_that_one_client_lacks(client):
    tables = base()
    del tables[client]["v2"]
    with pytest.raises(PlanError, match=rf"client '{client}' has no column 'v2', which others have; add or"):
        discover(tables)
    with pytest.raises(DataError, match=rf"client '{client}': there is no column 'v2' \(there are 'v1', 'v3'\)"):
        discover(tables, variables=["v1", "v2"])
    studies.found(tables, variables=["v1", "v3"])


@every_method
@pytest.mark.parametrize("value", [np.inf, -np.inf, 1e300])
def test_infinite_values_are_refused(value, method):
    tables = base()
    tables["site1"]["v3"][7] = value
    with pytest.raises(
        DataError, match=r"'v3' at client 'site1' has 1 infinite or absurdly large values; .*replace them"
    ):
        discover(tables, method=method)


# Columns without information, or with the same


@every_method
@pytest.mark.parametrize("value", [0.0, 7.0, 1e12, "same"])
def test_a_constant_has_no_edges(value, method):
    tables = with_column(base(), "c", lambda k, table, rng: np.full(len(table["v1"]), value))
    result = studies.found(tables, method=method)
    assert "variable c is constant: it has no edges but required ones" in result.notes
    assert not result.augmented.neighbours("c")
    others = studies.found(base(), method=method)
    assert result.augmented.skeleton == others.augmented.skeleton


@every_method
def test_constant_at_one_client_only(method):
    tables = with_column(
        base(), "c", lambda k, t, rng: np.ones(len(t["v1"])) if k else t["v1"] + rng.standard_normal(60)
    )
    result = studies.found(tables, method=method)
    assert not any("constant" in note for note in result.notes)
    assert "c" in result.changing


@every_method
def test_constant_at_each_client(method):
    tables = with_column(base(), "c", lambda k, table, rng: np.full(len(table["v1"]), float(k)))
    assert "c" in studies.found(tables, method=method).changing


@every_method
@pytest.mark.parametrize("copy", [lambda v: v.copy(), lambda v: -3 * v + 5, lambda v: v + 1e-9 * np.arange(len(v))])
def test_duplicate_columns_are_adjacent(copy, method):
    tables = with_column(base(), "twin", lambda k, table, rng: copy(table["v2"]))
    assert studies.found(tables, method=method).graph.is_adjacent("v2", "twin")


def test_a_column_of_sums():
    tables = with_column(base(), "sum", lambda k, table, rng: table["v1"] + table["v2"] + table["v3"])
    studies.found(tables)


@every_method
def test_many_duplicates(method):
    tables = base()
    for twin in range(5):
        tables = with_column(tables, f"twin{twin}", lambda k, table, rng: table["v1"])
    studies.found(tables, method=method)


# Few clients, few rows


@every_method
def test_one_client_only(method):
    result = studies.found({"here": base()["site0"]}, method=method)
    assert DOMAIN not in result.augmented.nodes
    assert result.changing == frozenset()
    assert result.notes[0] == "there is only one client: the result cannot say which mechanisms differ between clients"
    for shown in (str(result), result._repr_html_()):
        assert "differ between clients: unknown, because there is only one client" in shown
        assert "none found" not in shown
    one_site = {"site": ["here"] * 60, **base()["site0"]}
    assert studies.same_findings(studies.found(one_site, domain="site", method=method), result, within=0.0)


@every_method
@pytest.mark.parametrize(
    "sizes", [(60, 50), (60, 3), (60, 1), (60, 50, 3, 3, 1, 1), (3, 3, 3), (1, 1), (5, 5), (2, 8), (1,) * 10]
)
def test_small_clients(sizes, method):
    result = studies.found(base(3, sizes), method=method)
    assert result.cohort.total.rows == sum(sizes)
    assert len(result.cohort.clients) == len(sizes)


def test_a_tiny_client_hardly_matters():
    large = studies.found(base(4, (200, 200)))
    both = studies.found(
        {**base(4, (200, 200)), "tiny": {name: column[:3] for name, column in base(9)["site0"].items()}}
    )
    assert both.graph.skeleton == large.graph.skeleton


def test_a_client_without_rows_is_refused():
    with pytest.raises(DataError, match=r"client 'site1' has no rows; expected one or more"):
        discover(base(sizes=(60, 0)))


@every_method
def test_more_columns_than_rows(method):
    studies.found(studies.numbers(5, sizes=(8, 9), count=12), method=method, max_conditioning_size=2)


@every_method
def test_ten_rows_of_everything(method):
    studies.found(studies.mixed(1, sizes=(6, 4)), method=method)


# Names and units


@every_method
def test_units_of_any_size(method):
    scales = {"v1": 1e12, "v2": 1e-12, "v3": 1.0}
    tables = {c: {name: scales[name] * column for name, column in t.items()} for c, t in base().items()}
    assert studies.same_findings(
        studies.found(tables, method=method), studies.found(base(), method=method), within=1e-6
    )


def test_a_small_spread_around_a_large_value():
    """Years since the birth of the universe: a difference of 1 in 1e10 is still a difference."""
    tables = {c: {name: column + 1.4e10 for name, column in t.items()} for c, t in base().items()}
    assert studies.same_findings(studies.found(tables), studies.found(base()), within=1e-2)


@every_method
def test_names_in_any_script(method):
    names = {"v1": "血圧", "v2": "größe (cm) → ☃", "v3": " "}
    clients = {"site0": "Δ北", "site1": "Ω, südlich"}
    tables = {clients[c]: {names[n]: column for n, column in t.items()} for c, t in base().items()}
    result = studies.found(tables, method=method)
    assert set(result.graph.nodes) == set(names.values())
    assert "血圧" in str(result)


def test_the_domains_name_is_taken():
    tables = with_column(base(), DOMAIN, lambda k, table, rng: table["v1"])
    with pytest.raises(PlanError, match=rf"a variable is called '{DOMAIN}', which is the name of the client index"):
        discover(tables)
    pooled = studies.pooled_table(base(), site=DOMAIN)  # but it may well be the name of the column of clients
    assert studies.same_findings(studies.found(pooled, domain=DOMAIN), studies.found(base()), within=0.0)


def test_clients_may_be_numbers():
    tables = dict(enumerate(base().values()))
    assert studies.found(tables).cohort.clients == ("0", "1")
    pooled = studies.pooled_table(base())
    pooled["site"] = np.repeat([1.0, 2.0], [60, 50])
    assert studies.found(pooled, domain="site").cohort.clients == ("1", "2")


# Anything at all


def odd_column(kind: int, size: int, client: int, first: np.ndarray | None, rng: np.random.Generator) -> np.ndarray:
    earlier = rng.standard_normal(size) if first is None or first.dtype != float else first
    return [
        rng.standard_normal(size),
        rng.integers(0, 2, size).astype(float),
        np.array(list("abc"))[rng.integers(0, 3, size)],
        np.full(size, 3.0),
        np.full(size, float(client)),
        earlier.copy(),
        2 * earlier + 1e-7 * rng.standard_normal(size),
        rng.standard_cauchy(size) * 1e9,
        np.where(rng.random(size) < 0.2, np.nan, rng.standard_normal(size)),
    ][kind]


@st.composite
def oddities(draw) -> studies.Tables:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    kinds = draw(st.lists(st.integers(0, 8), min_size=1, max_size=5))
    tables: studies.Tables = {}
    for k, size in enumerate(draw(st.lists(st.sampled_from([1, 2, 3, 5, 8, 13, 40]), min_size=1, max_size=5))):
        table: studies.Table = {}
        for j, kind in enumerate(kinds):
            table[f"v{j}"] = odd_column(kind, size, k, table.get("v0"), rng)
        tables[f"c{k}"] = table
    return tables


@settings(deadline=None, max_examples=80)
@given(oddities(), st.sampled_from(METHODS))
def test_whatever_the_data_there_is_a_result_or_a_reason(tables, method):
    reason = ""
    try:
        studies.found(tables, method=method)
    except FedCDHError as refusal:
        reason = str(refusal)
    assert not reason or any(name in reason for table in tables.values() for name in table)


# Real studies

SHARED = Path(os.environ.get("FEDCDH_SHARED") or Path(__file__).resolve().parents[3] / "shared") / "data"


def read(study: str) -> pd.DataFrame:
    path = SHARED / study / "data.csv"
    if not path.exists():
        pytest.skip(f"{path} is not here; set FEDCDH_SHARED to the folder that holds data/{study}")
    return pd.read_csv(path)


HEART = ["age", "sex", "cp", "trestbps", "restecg", "thalach", "exang", "oldpeak", "num"]
KINDS = dict.fromkeys(["sex", "cp", "restecg", "exang", "num"], "categorical")


@every_method
def test_four_hospitals(method):
    frame = read("heart_4hospitals")
    with pytest.raises(DataError, match=r"'switzerland' would lose 123 of 123 rows.*'chol' \(123 missing\)"):
        discover(frame, domain="domain", method=method)
    with pytest.raises(DataError, match=r"'switzerland' would lose 77 of 123 rows.*'fbs' \(75 missing\)"):
        discover(frame, domain="domain", method=method, variables=[*HEART, "fbs"], kinds=KINDS)
    result = studies.found(frame, domain="domain", method=method, variables=HEART, kinds=KINDS)
    assert result.cohort.clients == ("cleveland", "hungary", "switzerland", "va_longbeach")
    assert result.cohort.total.rows == 851
    assert any("va_longbeach: 60 of 200 rows left out" in note for note in result.notes)
    assert studies.found(frame, domain="domain", method=method, variables=[*HEART, "fbs"], max_missing_share=0.7)
    parts = {hospital: part.drop(columns="domain") for hospital, part in frame.groupby("domain")}
    assert studies.same_findings(studies.found(parts, variables=HEART, kinds=KINDS, method=method), result, within=0.0)


@every_method
def test_nine_experiments_on_cells(method):
    frame = read("sachs")
    proteins = [name for name in frame.columns if name != "domain"]
    frame[proteins] = np.log(frame[proteins])
    result = studies.found(frame, domain="domain", method=method, max_conditioning_size=2)
    assert result.cohort.total.rows == 7466
    assert len(result.cohort.clients) == 9
    assert result.changing  # inhibitors were given
    assert result.graph.is_adjacent("raf", "mek")


def test_the_demo_study_in_pieces():
    study = hospital_study()
    whole = studies.found(study.columns(), domain="hospital")
    plan = whole.cohort.plan
    pieces = [
        summarize({name: column[k::3] for name, column in table.items()}, plan, client)
        for client, table in study.tables.items()
        for k in range(3)
    ]
    assert add_up(pieces, plan).summaries == whole.cohort.summaries
