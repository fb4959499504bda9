"""Tests of the evidence of clients' mean squares, which a secure sum leaves visible."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import fedcdh
from fedcdh.inference.evidence import gaussian
from fedcdh.inference.evidence.client_spreads import (
    EXPECTED_ERROR,
    LEVEL_VARIANCE,
    SPREAD_VARIANCES,
    ClientSpreads,
)
from fedcdh.inference.evidence.family_score import FamilyScore
from fedcdh.inference.evidence.gaussian import GaussianScore
from fedcdh.inference.orthonormal_basis import Basis
from fedcdh.protocols import DOMAIN, Family
from fedcdh.summaries import StudyPlan, add_up, summarize
from fedcdh.summaries.aggregation import Aggregate


def sum_of(tables):
    plan = StudyPlan.from_tables(tables)
    return Aggregate.of(add_up([summarize(rows, plan, name) for name, rows in tables.items()], plan))


def pair_tables(seed, *, scales=(1.0,) * 6, slopes=(1.0,) * 6, noise=(1.0,) * 6, rows=150):
    """Return x with these scales, and y = slope · x + noise, at six clients."""
    rng = np.random.default_rng(seed)
    tables = {}
    for client, (scale, slope, size) in enumerate(zip(scales, slopes, noise, strict=True)):
        x = scale * rng.standard_normal(rows)
        tables[f"c{client}"] = {"x": x, "y": slope * x + size * rng.standard_normal(rows)}
    return tables


def gain(aggregate, node, *parents):
    (found,) = ClientSpreads(Basis.of(aggregate))([Family(node, frozenset(parents))], curved=False)
    return found.differing - found.same


SPREAD = (0.6, 0.8, 1.0, 1.4, 1.8, 2.4)


@pytest.mark.parametrize("change", ["slopes", "noise"])
def test_a_changed_effect_and_changed_noise_are_seen_without_any_covariance_of_a_client(change):
    for seed in range(10):
        assert gain(sum_of(pair_tables(seed, **{change: SPREAD})), "y", "x") > 3.0


def test_a_shared_mechanism_is_not_said_to_change_though_its_cause_does():
    gains = [gain(sum_of(pair_tables(seed, scales=SPREAD)), "y", "x") for seed in range(20)]
    assert np.mean(np.array(gains) < 0) >= 0.9
    assert all(gain(sum_of(pair_tables(seed, scales=SPREAD)), "x") > 3.0 for seed in range(5))


def test_a_wrong_direction_has_to_explain_one_change_by_two():
    for seed in range(10):
        aggregate = sum_of(pair_tables(seed, slopes=SPREAD))
        score = FamilyScore.of(aggregate, Basis.of(aggregate)).linear
        x, x_of_y = Family("x"), Family("x", frozenset({"y", DOMAIN}))
        y, y_of_x = Family("y", frozenset({DOMAIN})), Family("y", frozenset({"x", DOMAIN}))
        assert sum(score([x, y_of_x])) > sum(score([y, x_of_y]))


def test_a_weak_quadratic_effect_in_a_mechanism_that_differs_is_worth_an_edge():
    """The price of bending is for mixtures of linear mechanisms: without a linear effect there is none to pay."""
    for seed in range(10):
        tables = pair_tables(seed, slopes=(0.0,) * 6, noise=SPREAD)
        for rows in tables.values():
            rows["y"] = rows["y"] + 0.45 * rows["x"] ** 2
        aggregate = sum_of(tables)
        (_, alone), (_, caused) = GaussianScore(Basis.of(aggregate))([Family("y"), Family("y", frozenset("x"))])
        assert caused > alone + 3.0


def test_curvature_of_a_mixture_of_linear_mechanisms_has_its_price(monkeypatch):
    families = [Family("y", frozenset("x"))]
    tables = pair_tables(1, scales=SPREAD, slopes=SPREAD)
    basis = Basis.of(sum_of(tables))
    basis.predictors["x"] = basis.spans["x"]  # bent, whatever the screening says
    ((_, priced),) = GaussianScore(basis)(families)
    ((_, linear),) = GaussianScore(basis, curved=False)(families)
    monkeypatch.setattr(gaussian, "MIXED_CURVATURE_PRICE", 0.0)
    ((_, free),) = GaussianScore(basis)(families)
    assert free > linear + 10.0
    assert linear - np.log(2) - 1e-9 <= priced < free - 10.0


def test_the_density_is_that_of_the_normal_distribution_it_describes():
    aggregate = sum_of(pair_tables(3, scales=SPREAD, rows=80))
    basis = Basis.of(aggregate)
    (found,) = ClientSpreads(basis)([Family("y", frozenset({"x"}))], curved=False)
    b, c = basis.squares["y"]
    target, used = basis.spans["y"][:2], basis.spans["x"][:2]
    weights, n = np.array([b, c]), basis.rows
    inner = basis.within[np.ix_(used, used)] + 0.01 * np.eye(2)
    cross = basis.within[np.ix_(used, target)] @ weights
    slopes = np.linalg.solve(inner, cross)
    total = weights @ basis.within[np.ix_(target, target)] @ weights
    variance = (total - slopes @ cross) / (n.sum() - len(n) - 2)
    with_y = basis.within[used, target[0]]
    noise = (basis.within[target[0], target[0]] - with_y @ np.linalg.solve(inner, with_y)) / n.sum()
    expected = np.maximum(1 + basis.means[:, used] @ slopes, noise)
    growth = 2 * expected - noise
    ratios = np.log((1 + basis.means[:, target] @ weights) / expected)
    chance = variance * growth * n.sum() / (growth @ n) / expected**2 / n
    chance += (EXPECTED_ERROR * np.maximum(1, 1 / expected)) ** 2
    moves = basis.means[:, used] / expected[:, None]
    common = LEVEL_VARIANCE + moves @ np.linalg.inv(inner) @ moves.T * variance

    def density(deviation):
        return multivariate_normal(np.zeros(len(n)), np.diag(chance + deviation) + common).logpdf(ratios)

    assert found.same == pytest.approx(density(0.0), abs=1e-6)
    several = [density(one) for one in SPREAD_VARIANCES]
    assert found.differing == pytest.approx(np.logaddexp.reduce(several) - np.log(len(several)), abs=1e-6)


def test_the_order_of_clients_and_families_changes_nothing():
    basis = Basis.of(sum_of(pair_tables(1, slopes=SPREAD)))
    other = replace(basis, rows=basis.rows[::-1], means=basis.means[::-1])
    families = [Family("x"), Family("y", frozenset({"x"})), Family("y")]
    found = ClientSpreads(basis)(families, curved=True)
    assert np.allclose(found, ClientSpreads(other)(families, curved=True), rtol=1e-9)
    assert np.allclose(found[::-1], ClientSpreads(basis)(families[::-1], curved=True), rtol=1e-9)


def test_two_values_labels_and_a_single_group_say_nothing_about_spreads():
    rng = np.random.default_rng(0)
    tables = {
        f"c{k}": {"bit": rng.integers(0, 2, 60).astype(float), "kind": rng.choice(["a", "b"], 60), "z": rng.random(60)}
        for k in range(4)
    }
    aggregate = sum_of(tables)
    families = [Family("bit"), Family("kind"), Family("bit", frozenset({"z"}))]
    assert all(one == (0.0, 0.0) for one in ClientSpreads(Basis.of(aggregate))(families, curved=False))
    together = Basis.of(Aggregate.from_total(aggregate.total, aggregate.plan))
    assert ClientSpreads(together)([Family("z")], curved=False) == [(0.0, 0.0)]


def test_evidence_from_all_summaries_is_untouched():
    study = fedcdh.simulate(seed=1)
    cohort = fedcdh.discover(study.columns("site"), domain="site").cohort
    assert FamilyScore.of(cohort, Basis.of(cohort)).continuous._spreads is None


@pytest.mark.slow
@pytest.mark.parametrize("model", ["linear", "general"])
def test_most_changes_of_the_papers_studies_are_found_from_a_sum_and_few_others(model):
    """Seeds 200 to 219, which no number was chosen on; the wanted figures are 0.8 and 0.9."""
    right = found = true = 0
    for seed in range(200, 220):
        study = fedcdh.simulate(model, seed=seed)
        aggregate = sum_of({c: dict(zip(study.names, rows.T, strict=True)) for c, rows in study.tables.items()})
        changing = fedcdh.discover_from(aggregate, aggregate.plan).changing
        right, found, true = right + len(changing & study.changing), found + len(changing), true + len(study.changing)
    assert right / true >= 0.8
    assert right / found >= 0.85
