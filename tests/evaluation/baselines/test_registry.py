"""Laws of all federated methods, and the registry by which they are found."""

from __future__ import annotations

import inspect
import pickle
from pathlib import Path

import numpy as np
import pytest
from baseline_studies import NAMES, collider

import fedcdh
from fedcdh.errors import DataError, SettingsError
from fedcdh.evaluation.baselines import BASELINES, find_baseline, to_markdown_table
from fedcdh.evaluation.baselines.fedpc import (
    run_fedpc,
)
from fedcdh.evaluation.simulation import simulate
from fedcdh.protocols import DOMAIN

FEDERATED = ("fedpc", "fedpc-veto", "fedpc-kernel", "fedpc-regression", "sort-by-variance", "fedcdh-constraint")


@pytest.mark.parametrize("name", FEDERATED)
def test_the_order_of_clients_makes_no_difference(name):
    study = simulate(clients=4, rows=[60, 70, 80, 90], seed=3)
    turned = dict(reversed(study.tables.items()))
    assert BASELINES[name](turned, study.names) == BASELINES[name](study.tables, study.names)


@pytest.mark.parametrize("name", FEDERATED)
def test_variables_may_have_other_names_and_places(name):
    study = simulate(clients=3, rows=80, seed=4)
    order = [3, 0, 5, 1, 4, 2]
    other = {old: f"n{place}" for place, old in enumerate(study.names)}
    moved = {client: table[:, order] for client, table in study.tables.items()}
    found = BASELINES[name](study.tables, study.names).augmented
    again = BASELINES[name](moved, [other[study.names[i]] for i in order]).augmented
    renamed = {**other, DOMAIN: DOMAIN}
    assert again.arrows == {(renamed[tail], renamed[head]) for tail, head in found.arrows}
    assert again.lines == {frozenset(renamed[end] for end in line) for line in found.lines}


@pytest.mark.parametrize("entry", BASELINES.values(), ids=BASELINES)
def test_every_entry_loads_and_is_a_method(entry):
    inspect.signature(entry.load()).bind({}, (), 0)
    assert pickle.loads(pickle.dumps(entry)) == entry


def test_the_page_shows_all_methods():
    page = Path(fedcdh.__file__).parents[2] / "docs" / "rivals.md"
    assert to_markdown_table() in page.read_text(encoding="utf-8")


def test_unknown_methods_and_unusable_tables_are_refused():
    with pytest.raises(SettingsError, match="fedpc-veto"):
        find_baseline("fed-pc")
    right = collider(2, 20)
    for tables, names in (
        ({}, NAMES),
        (right, ("a", "b", "z", "z")),
        (right, NAMES[:3]),
        ({**right, "c2": np.full((5, 4), np.nan)}, NAMES),
        ({**right, "c2": np.zeros((0, 4))}, NAMES),
    ):
        with pytest.raises(DataError, match=r"found|shape"):
            BASELINES["fedpc"](tables, names)
    with pytest.raises(SettingsError, match="regression"):
        run_fedpc(right, NAMES, test="chi2")
    with pytest.raises(SettingsError, match="veto"):
        run_fedpc(right, NAMES, voting="majority")
