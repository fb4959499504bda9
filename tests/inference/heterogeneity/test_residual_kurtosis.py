"""Fourth cumulants of residuals, and wider intervals for noise with heavy tails."""

from __future__ import annotations

import numpy as np
import pytest
import studies
from scipy import stats

from fedcdh.discovery.drift import Drift, estimate_drift
from fedcdh.inference.heterogeneity.residual_kurtosis import fourth_cumulants, residual_cumulants


def by_key(drifts: tuple[Drift, ...]) -> dict[tuple[str, str, str], Drift]:
    found = {(drift.variable, drift.client, drift.quantity): drift for drift in drifts}
    assert len(found) == len(drifts)
    return found


def residual_moments(seed: int, draw, rows: int = 4000) -> tuple[float, float]:
    """The fourth cumulant of what two skewed causes leave, from moments and from the residuals themselves."""
    rng = np.random.default_rng([seed, 8])
    first = rng.exponential(1.0, rows)
    second = 0.5 * first + rng.exponential(0.7, rows)
    x = first - 0.8 * second + draw(rng, rows)
    columns = np.column_stack([x, first, second]) + 3.0  # far from zero, as a client's may be
    both = np.column_stack([columns, columns**2])
    centred = both - both.mean(axis=0)
    cumulants = fourth_cumulants(centred.T @ centred, both.mean(axis=0), rows)
    slopes = np.linalg.lstsq(centred[:, 1:3], centred[:, 0], rcond=None)[0]
    left = centred[:, 0] - centred[:, 1:3] @ slopes
    found = residual_cumulants(cumulants, slopes, rows, left.var(), (centred[:, 1:3] @ slopes).var())
    return found.fourth, float((left**4).mean() - 3 * left.var() ** 2)


def test_fourth_cumulants_of_a_column_are_those_of_its_values():
    rng = np.random.default_rng(3)
    columns = 2 + np.column_stack([rng.exponential(1, 500), rng.standard_normal(500)])
    both = np.column_stack([columns, columns**2])
    centred = both - both.mean(axis=0)
    found = fourth_cumulants(centred.T @ centred, both.mean(axis=0), 500)
    a, b = centred[:, 0], centred[:, 1]
    assert found[0, 0] == pytest.approx((a**4).mean() - 3 * a.var() ** 2)
    assert found[0, 1] == pytest.approx((a**2 * b**2).mean() - a.var() * b.var() - 2 * (a * b).mean() ** 2)


@pytest.mark.parametrize("draw", [lambda r, n: r.exponential(1, n), lambda r, n: r.standard_normal(n)])
def test_what_two_causes_contribute_to_the_tails_is_taken_out(draw):
    differences = [np.subtract(*residual_moments(seed, draw)) for seed in range(40)]
    assert np.mean(differences) == pytest.approx(0, abs=4 * np.std(differences) / 40**0.5)
    assert abs(np.mean(differences)) < 0.3  # κσ⁴ is 6 for the exponential, 0 for the normal one


def test_heavy_tails_widen_the_interval_of_the_noise_and_of_nothing_else():
    rng = np.random.default_rng(5)
    light = {f"c{k}": {"x": rng.standard_normal(400)} for k in range(3)}
    heavy = {client: {"x": rng.exponential(1.0, 400)} for client in light}
    normal, exponential = (
        by_key(estimate_drift(studies.cohort_of(t), {"x": ()}))["x", "c0", "noise"] for t in (light, heavy)
    )
    ratio = np.log(exponential.high / exponential.low) / np.log(normal.high / normal.low)
    assert ratio == pytest.approx(2, abs=0.4)  # √(1 + κ/2) with κ = 6
    level = by_key(estimate_drift(studies.cohort_of(heavy), {"x": ()}))["x", "c0", "level"]
    x = heavy["c0"]["x"]
    assert level.high - level.low == pytest.approx(2 * stats.t.isf(0.025, 399) * x.std(ddof=1) / 20, rel=1e-3)
