"""PC with the fedCI test: its p-values, mixed types, and shifts between clients that do not matter."""

from __future__ import annotations

import numpy as np
import pytest
from baseline_studies import NAMES, TRUE, collider
from scipy import stats

from fedcdh.evaluation.baselines import BASELINES
from fedcdh.evaluation.baselines.fedci_pc import FedCiTest, run_fedci_pc
from fedcdh.evaluation.baselines.federated_glm import Design, GlmClient, GlmServer
from fedcdh.evaluation.baselines.interface import CountingChannel
from fedcdh.protocols import Query


def make_test(tables, names, levels=None):
    design = Design.of(len(names), levels or {})
    server = GlmServer([GlmClient(table, design) for table in tables], CountingChannel(len(tables)), design, 1000)
    return FedCiTest(server, names, sum(map(len, tables)))


def test_between_numbers_the_p_value_is_that_of_the_partial_correlation():
    for seed in range(4):
        x, y, z = np.random.default_rng(seed).standard_normal((3, 90))
        rows = np.column_stack([x + 0.4 * z, y + 0.4 * z + 0.2 * x, z])
        tables = [rows[:50] + 3, rows[50:] - 2]
        (answer,) = make_test(tables, "xyz")([Query("x", "y", frozenset("z"))])
        within = np.concatenate([table - table.mean(axis=0) for table in tables])
        precision = np.linalg.inv(within.T @ within)
        r = precision[0, 1] / np.sqrt(precision[0, 0] * precision[1, 1])
        assert answer.p_value == pytest.approx(stats.chi2.sf(-90 * np.log(1 - r**2), 1), abs=1e-6)


def test_shifts_between_clients_change_nothing():
    tables = collider(3, 100)
    shifted = {client: table + 10 * k for k, (client, table) in enumerate(tables.items())}
    found, again = (BASELINES["fedci-pc"](given, NAMES) for given in (tables, shifted))
    assert found == again
    assert found.changing is None


def test_it_finds_a_collider():
    found = BASELINES["fedci-pc"](collider(3), NAMES)
    assert found.graph.arrows == TRUE


def test_a_collider_of_labels_and_numbers():
    tables = {}
    for k in range(4):
        draw = np.random.default_rng([3, k])
        group, dose = draw.integers(0, 3, 250).astype(float), draw.standard_normal(250) + k
        chance = 1 / (1 + np.exp(-(1.2 * (group == 2) - 0.9 * (group == 1) + 1.1 * (dose - k) + 0.3 * k)))
        outcome = (draw.uniform(size=250) < chance).astype(float)
        tables[f"c{k}"] = np.column_stack([group, dose, outcome])
    kinds = {"group": "categorical", "outcome": "categorical"}
    found = run_fedci_pc(tables, ("group", "dose", "outcome"), kinds=kinds)
    assert found.graph.arrows == {("group", "outcome"), ("dose", "outcome")}


def test_true_nulls_of_every_kind_are_rejected_about_as_often_as_the_level_says():
    rejected = dict.fromkeys(["ab", "ac", "cd"], 0)
    for seed in range(60):
        draw = np.random.default_rng([9, seed])
        shared = draw.standard_normal(120)
        columns = [
            shared + draw.standard_normal(120),
            shared + draw.standard_normal(120),
            (shared + draw.logistic(size=120) > 0).astype(float),
            (shared[:, None] * [0, 1, -1] + draw.gumbel(size=(120, 3))).argmax(axis=1).astype(float),
            shared,
        ]
        rows = np.column_stack(columns)
        levels = {2: np.array([0.0, 1.0]), 3: np.array([0.0, 1.0, 2.0])}
        test = make_test([rows[:70], rows[70:]], "abcdz", levels)
        for pair, answer in zip(rejected, test([Query(*pair, frozenset("z")) for pair in rejected]), strict=True):
            rejected[pair] += answer.p_value < 0.05
    assert all(count <= 9 for count in rejected.values()), rejected


def test_what_is_explained_already_has_no_further_cause():
    x, e = np.random.default_rng(1).standard_normal((2, 100))
    rows = np.column_stack([x, 2 * x, x + e, np.ones(100)])
    test = make_test([rows[:40], rows[40:]], "abcd")
    answers = test([Query("a", "c", frozenset("b")), Query("a", "d"), Query("a", "b")])
    assert [answer.p_value > 0.05 for answer in answers] == [True, True, False]
