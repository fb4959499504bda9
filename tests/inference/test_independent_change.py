"""Independent change: both measures from sums equal those of the rows, and the right one points the right way."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import numpy as np
import pooled
import pytest
import studies

from fedcdh.inference import independent_change
from fedcdh.inference.independence.kernel_test import FeatureSpace, one_hot_domain, random_domain_features
from fedcdh.inference.independent_change import OperatorChange, PrintedChange
from fedcdh.inference.orthonormal_basis import Basis
from fedcdh.summaries.features import Fourier, Hermite


def study(family, seed: int = 6):
    tables = studies.mixed(seed, sizes=(60, 50, 40, 30, 20))
    cohort = studies.cohort_of(tables, family)
    return cohort, pooled.Rows.of(tables, cohort.plan), list(permutations(cohort.plan.names, 2))


def agree(measured, direct) -> None:
    for value in measured:
        assert value.forward == pytest.approx(direct(value.tail, value.head), abs=1e-9), value
        assert value.backward == pytest.approx(direct(value.head, value.tail), abs=1e-9), value
        assert -1e-12 <= value.forward <= 1 + 1e-12


def test_the_operator_form_equals_that_of_the_pooled_rows():
    cohort, rows, pairs = study(Hermite())
    agree(OperatorChange(Basis.of(cohort))(pairs), lambda cause, effect: pooled.operator_change(rows, cause, effect))


@pytest.mark.parametrize("domain", [one_hot_domain, random_domain_features], ids=["one hot", "random"])
def test_the_printed_form_equals_that_of_the_pooled_rows(domain):
    cohort, rows, pairs = study(Fourier())
    index = domain(cohort)
    agree(
        PrintedChange(FeatureSpace.of(cohort, domain))(pairs),
        lambda cause, effect: pooled.printed_change(rows, cause, effect, index),
    )


@pytest.mark.parametrize(
    "measure_of", [lambda c: OperatorChange(Basis.of(c)), lambda c: PrintedChange(FeatureSpace.of(c, one_hot_domain))]
)
def test_a_pair_may_be_given_either_way_round(measure_of):
    cohort, _, pairs = study(Hermite())
    measure = measure_of(cohort)
    for value, turned in zip(measure(pairs), measure([(y, x) for x, y in pairs]), strict=True):
        assert (value.tail, value.head) == (turned.head, turned.tail)
        assert value.forward == turned.backward
        assert value.backward == turned.forward
    assert measure([]) == []


def test_the_operator_form_points_from_cause_to_effect():
    """The cause's mean and the effect's slope change independently; in the wrong direction they change together."""
    right = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        tables = {}
        for k in range(40):
            x = 2 * rng.standard_normal() + rng.standard_normal(150)
            y = rng.uniform(-2, 2) * x + rng.standard_normal(150)
            tables[f"c{k:02d}"] = {"x": x, "y": y}
        (value,) = OperatorChange(Basis.of(studies.cohort_of(tables)))([("x", "y")])
        right += value.forward < value.backward
    assert right >= 16  # by chance with probability 0.006


def test_of_many_clients_the_traces_of_groups_are_added_up(monkeypatch):
    """Twins in two groups say what one of each pair says alone."""
    cohort, _, pairs = study(Hermite())
    basis = Basis.of(cohort)
    clients = len(basis.rows)
    monkeypatch.setattr(independent_change, "MAX_CLIENTS_PER_KERNEL", clients)
    places = np.argsort(np.concatenate(independent_change._client_groups(2 * clients))) % clients
    twins = replace(basis, **{name: getattr(basis, name)[places] for name in ("rows", "scatter", "means")})
    alone = OperatorChange(basis)(pairs)
    for value, expected in zip(OperatorChange(twins)(pairs), alone, strict=True):
        assert value.forward == pytest.approx(expected.forward, rel=1e-12)


def test_many_clients_whose_kind_takes_turns_are_seen_to_change(monkeypatch):
    """As of "A men", "A women", "B men", ...: were every other client in a group, nothing would change in any."""
    rng, tables = np.random.default_rng(0), {}
    for k in range(120):
        x = rng.standard_normal(60) + k % 2
        tables[f"client {k:03}"] = {"x": x, "y": (0.5 + 0.8 * (k % 2)) * x + rng.standard_normal(60)}
    basis = Basis.of(studies.cohort_of(tables))
    (together,) = OperatorChange(basis)([("x", "y")])
    monkeypatch.setattr(independent_change, "MAX_CLIENTS_PER_KERNEL", 60)
    (in_groups,) = OperatorChange(basis)([("x", "y")])
    assert in_groups.forward == pytest.approx(together.forward, abs=0.05)
    assert together.forward > 0.5


def test_constants_have_no_say():
    tables = {f"c{k}": {"x": np.arange(5.0) + k, "y": np.ones(5)} for k in range(3)}
    (value,) = OperatorChange(Basis.of(studies.cohort_of(tables)))([("x", "y")])
    assert np.isfinite([value.forward, value.backward]).all()
    (value,) = PrintedChange(FeatureSpace.of(studies.cohort_of(tables), one_hot_domain))([("x", "y")])
    assert np.isfinite([value.forward, value.backward]).all()
