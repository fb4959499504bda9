"""Entries of the registry: thresholds that share a fit."""

from __future__ import annotations

from itertools import groupby

import numpy as np
import pytest
from chain_studies import CHAIN, chain_rows, split

from fedcdh.errors import DataError, SettingsError
from fedcdh.evaluation.baselines import BASELINES, BaselineEntry, find_baseline


def test_a_fit_serves_every_threshold():
    tables = split(chain_rows(60), 30, 30)
    shared = sorted((entry for entry in BASELINES.values() if entry.fit_name), key=lambda entry: entry.fit_name)
    for _, group in groupby(shared, key=lambda entry: entry.fit_name):
        entries = list(group)
        fitted = entries[0].fit(tables, CHAIN, 3)
        assert len({entry.options["threshold"] for entry in entries}) == len(entries) > 1
        for entry in entries:
            assert entry.apply_threshold(fitted, CHAIN) == entry(tables, CHAIN, 3), entry.name


def test_the_name_of_a_fit_has_all_options_but_the_threshold():
    admm = find_baseline("notears-admm")

    def name_with(options):
        return BaselineEntry("x", "X", admm.import_path, admm.assumptions, "", options, fit_path=admm.fit_path).fit_name

    assert name_with({"threshold": 0.1, "l1": 0.5}) == name_with({"threshold": 0.9, "l1": 0.5})
    assert name_with({"threshold": 0.1, "l1": 0.5}) != name_with({"threshold": 0.1, "l1": 0.6}) != admm.fit_name


def test_a_method_in_one_step_has_no_fit():
    assert find_baseline("fedpc").fit_name == ""
    with pytest.raises(SettingsError, match="in one step"):
        find_baseline("fedpc").fit(split(chain_rows(60), 30, 30), CHAIN)


def mixed_tables():
    """Return tables of two numbers and a label, as people read them from a file, and the same with codes."""
    rows = {client: np.random.default_rng(seed).standard_normal((40, 3)) for seed, client in enumerate("ab")}
    coded = {client: np.column_stack([table[:, :2], table[:, 2] > 0]) for client, table in rows.items()}
    texts = {}
    for client, table in coded.items():
        texts[client] = table.astype(object)
        texts[client][:, 2] = np.where(table[:, 2] > 0, "yes", "no")
    return texts, coded


@pytest.mark.parametrize("name", BASELINES)
def test_labels_beside_numbers_are_refused_with_their_column(name):
    texts, _ = mixed_tables()
    with pytest.raises(DataError, match=r"'smoker' .*replace the labels by codes"):
        BASELINES[name](texts, ("age", "bmi", "smoker"))


@pytest.mark.parametrize("name", [name for name, entry in BASELINES.items() if entry.data != "mixed"])
def test_codes_beside_numbers_are_refused_with_their_column(name):
    _, coded = mixed_tables()
    with pytest.raises(DataError, match="'smoker'"):
        BASELINES[name](coded, ("age", "bmi", "smoker"), kinds={"smoker": "categorical"})


def test_a_table_of_columns_is_refused_with_its_type():
    with pytest.raises(DataError, match="of type dict"):
        BASELINES["fedpc"]({"a": {"age": [1, 2]}}, ("age",))
