"""Federated equals pooled: the form, the order and the names of the data change nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import studies
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import fedcdh
from fedcdh.discovery.api import MAX_BYTES, MAX_ROUNDS, discover
from fedcdh.discovery.methods import METHODS
from fedcdh.evaluation.simulation import simulate
from fedcdh.protocols import DOMAIN
from fedcdh.summaries.joint import LocalAnswerSource

NAMES = sorted(METHODS)


TABLES = studies.mixed(0, sizes=(80, 60, 40))


POOLED = studies.pooled_table(TABLES)


EXPECTED = {method: studies.found(TABLES, method=method) for method in NAMES}


def lists(table: dict[str, np.ndarray]) -> dict[str, list]:
    return {name: column.tolist() for name, column in table.items()}


def as_objects(table: dict[str, np.ndarray]) -> np.ndarray:
    return np.array([column.tolist() for column in table.values()], dtype=object).T


FORMS = {
    "lists, one table": (lists(POOLED), {"domain": "site"}),
    "arrays, one table": (POOLED, {"domain": "site"}),
    "pandas, one table": (pd.DataFrame(POOLED), {"domain": "site"}),
    "polars, one table": (pl.DataFrame(lists(POOLED)), {"domain": "site"}),
    "pyarrow, one table": (pa.table(lists(POOLED)), {"domain": "site"}),
    "numpy, one table": (as_objects(POOLED), {"domain": "site", "names": list(POOLED)}),
    "lists": ({client: lists(table) for client, table in TABLES.items()}, {}),
    "pandas": ({client: pd.DataFrame(table) for client, table in TABLES.items()}, {}),
    "polars": ({client: pl.DataFrame(lists(table)) for client, table in TABLES.items()}, {}),
    "pyarrow": ({client: pa.table(lists(table)) for client, table in TABLES.items()}, {}),
    "numpy": (
        {client: as_objects(table) for client, table in TABLES.items()},
        {"names": list(next(iter(TABLES.values())))},
    ),
}


@pytest.mark.parametrize("method", NAMES)
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
def test_the_form_of_the_table_does_not_matter(form, method):
    data, settings_ = form
    result = discover(data, method=method, **settings_)
    assert studies.same_findings(result, EXPECTED[method], within=0.0)
    assert str(result) == str(EXPECTED[method])


@pytest.mark.parametrize("method", NAMES)
def test_discover_is_its_steps_in_the_open(method):
    family = METHODS[method].family(0)
    plan = fedcdh.StudyPlan.from_profiles(
        [fedcdh.profile(table, client) for client, table in TABLES.items()], family=family
    )
    plan = replace(plan, max_rounds=MAX_ROUNDS, max_bytes=MAX_BYTES)
    summaries = [fedcdh.summarize(table, plan, client) for client, table in TABLES.items()]
    source = LocalAnswerSource(TABLES, plan, fedcdh.add_up(summaries, plan))
    result = fedcdh.discover_from(summaries, fedcdh.StudyPlan.from_json(plan.to_json()), method=method, source=source)
    assert result.edges() == EXPECTED[method].edges()


@settings(deadline=None, max_examples=15)
@given(st.randoms(use_true_random=False), st.sampled_from(NAMES))
def test_order_of_rows_columns_and_clients_does_not_matter(rng, method):
    shuffled = {}
    for client in rng.sample(list(TABLES), len(TABLES)):
        table = TABLES[client]
        names, rows = rng.sample(list(table), len(table)), rng.sample(range(len(table["age"])), len(table["age"]))
        shuffled[client] = {name: table[name][rows] for name in names}
    assert studies.same_findings(discover(shuffled, method=method), EXPECTED[method])


def renamed(tables, names, clients):
    return {clients[c]: {names[name]: column for name, column in table.items()} for c, table in tables.items()}


def families_asked(result):
    record = result.search_result.residuals
    return frozenset() if record is None else frozenset(record.families)


@settings(deadline=None, max_examples=15)
@given(st.integers(0, 10**6), st.randoms(use_true_random=False))
def test_names_are_only_names(seed, rng):
    """Names may break ties between equivalent DAGs from which a search starts, and so say which families are asked
    about. Studies where they do are left out."""
    tables = studies.mixed(seed, sizes=(60, 40, 30))
    before = studies.found(tables)
    names = dict(zip(tables["clinic a"], rng.sample("ζabzé雪", 6), strict=True))
    clients = dict(zip(tables, rng.sample("321", 3), strict=True))
    after = studies.found(renamed(tables, names, clients))
    called = {**names, DOMAIN: DOMAIN}
    asked = {(called[one.node], frozenset(map(called.get, one.parents))) for one in families_asked(before)}
    assume(asked == {(one.node, one.parents) for one in families_asked(after)})
    p_values = studies.p_values(after)
    for pair, p_value in studies.p_values(before).items():
        assert p_values[frozenset(called[name] for name in pair)] == pytest.approx(p_value, abs=1e-9)
    assert after.augmented.arrows == {(called[a], called[b]) for a, b in before.augmented.arrows}
    assert after.augmented.lines == {frozenset(called[name] for name in line) for line in before.augmented.lines}


@pytest.mark.parametrize("method", NAMES)
def test_labels_are_only_names(method):
    called = {"low": "zz", "middle": "ä", "high": "0"}
    tables = {
        client: {**table, "group": np.array([called[label] for label in table["group"]])}
        for client, table in TABLES.items()
    }
    assert studies.same_findings(discover(tables, method=method), EXPECTED[method], within=1e-6)


UNITS = [(1000.0, 0.0), (1e12, 0.0), (1e-12, 0.0), (2.54, 0.0), (2.54, 100.0), (1e12, -3e12), (-1.8, 32.0)]


@pytest.mark.parametrize(("factor", "offset"), UNITS)
@pytest.mark.parametrize("model", ["linear", "general"])
def test_units_do_not_matter(model, factor, offset):
    """Not the variance, in particular: in the paper's data it alone gives most directions away."""
    study = simulate(model, variables=5, clients=4, rows=80, seed=11)
    tables = {
        client: {name: table[:, j] for j, name in enumerate(study.names)} for client, table in study.tables.items()
    }
    before = studies.found(tables)
    for changed in ([study.names[0]], [study.names[3]], list(study.names)):
        other = {
            client: {name: factor * column + offset if name in changed else column for name, column in table.items()}
            for client, table in tables.items()
        }
        assert studies.same_findings(studies.found(other), before, within=1e-6)


def test_units_do_not_matter_to_the_papers_engine():
    tables = studies.numbers(2)
    other = {
        client: {name: 1e12 * column if name == "v2" else column for name, column in table.items()}
        for client, table in tables.items()
    }
    assert studies.same_findings(discover(other, method="paper"), discover(tables, method="paper"), within=1e-6)
