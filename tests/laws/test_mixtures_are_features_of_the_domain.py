"""A sum with mixtures of the clients gives "paper" what a cohort with the same features of the domain gives."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import studies

from fedcdh.discovery.api import discover, discover_from
from fedcdh.discovery.methods import METHODS
from fedcdh.evaluation.simulation import simulate
from fedcdh.inference.independence import kernel_test
from fedcdh.inference.independence.kernel_test import (
    FeatureSpace,
    KernelTest,
    add_features,
    mixture_domain_features,
)
from fedcdh.inference.independent_change import PrintedChange
from fedcdh.protocols import DOMAIN, Query
from fedcdh.summaries.aggregation import Aggregate
from fedcdh.summaries.domain_mixtures import DomainMixtures
from fedcdh.summaries.features import Fourier

SIZES = (60, 45, 52, 48, 66, 40, 57)


def both(seed: int, mixtures: int):
    cohort = studies.cohort_of(studies.numbers(seed, SIZES), Fourier(5))
    found = DomainMixtures.of(cohort.summaries, cohort.plan, mixtures)
    return cohort, Aggregate.from_total(cohort.total, cohort.plan, found)


@pytest.mark.parametrize("mixtures", [1, 2, 3])
@pytest.mark.parametrize("seed", [0, 1])
def test_p_values_and_changes_are_equal(seed, mixtures):
    cohort, summed = both(seed, mixtures)
    space = FeatureSpace.of(cohort, lambda known: mixture_domain_features(known, mixtures))
    apart, together = KernelTest(space, add_features, kernel_test.PAPER_RIDGE), KernelTest.of_paper(summed)
    np.testing.assert_allclose(together.space.covariance, space.covariance, rtol=0, atol=1e-12)
    names = (DOMAIN, *cohort.plan.names)
    queries = [Query(x, y) for x, y in combinations(names, 2)]
    queries += [Query(x, y, frozenset({z})) for x, y in combinations(names, 2) for z in names if z not in (x, y)]
    for one, other in zip(apart(queries), together(queries), strict=True):
        assert one.p_value == pytest.approx(other.p_value, rel=1e-6, abs=1e-12)
    pairs = list(combinations(cohort.plan.names, 2))
    changes = [[(one.forward, one.backward) for one in PrintedChange(of)(pairs)] for of in (space, together.space)]
    np.testing.assert_allclose(*changes, rtol=1e-6)


@pytest.mark.parametrize(("seed", "changing"), [(1, "v4"), (3, "v6")])
def test_the_graph_is_equal(seed, changing, monkeypatch):
    mixtures = 4
    cohort = discover(simulate(seed=seed).columns("site"), domain="site", method="paper").cohort
    mixed = DomainMixtures.of(cohort.summaries, cohort.plan, mixtures)
    summed = Aggregate.from_total(cohort.total, cohort.plan, mixed)
    found = discover_from(summed, cohort.plan, method="paper")
    monkeypatch.setattr(
        kernel_test, "random_domain_features", lambda known, seed=0: mixture_domain_features(known, mixtures)
    )
    expected = discover_from(cohort, cohort.plan, method="paper")
    assert found.augmented == expected.augmented
    assert found.changing == expected.changing
    assert changing in found.changing  # as with the paper's own features
    assert "10 clients" in str(found)
    assert any(f"{mixtures} mixture" in note for note in found.notes)


@pytest.mark.parametrize("method", ["evidence", "constraint"])
def test_other_methods_use_the_total_and_say_so(method):
    cohort = studies.cohort_of(studies.numbers(3, SIZES), METHODS[method].family(0))
    mixtures = DomainMixtures.of(cohort.summaries, cohort.plan, 2)
    mixed = Aggregate.from_total(cohort.total, cohort.plan, mixtures)
    found = discover_from(mixed, cohort.plan, method=method, rounds="one")
    expected = discover_from(Aggregate.from_total(cohort.total, cohort.plan), cohort.plan, method=method, rounds="one")
    assert found.graph == expected.graph
    assert not found.changing
    assert "unknown" in found.no_change_reason
    assert any("does not use" in note for note in found.notes)
    assert not any("mean, the standard deviation" in note for note in found.notes)
