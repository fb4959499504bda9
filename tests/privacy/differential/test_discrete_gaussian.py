"""The sampler has the probabilities of the discrete Gaussian, exactly."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from noisy_studies import bits
from scipy import stats

from fedcdh.privacy.differential import discrete_gaussian as sampling
from fedcdh.privacy.differential.discrete_gaussian import sample_discrete_gaussian


@pytest.mark.parametrize("deviation", [1, 2, 7])
def test_draws_have_the_probabilities_of_the_discrete_gaussian(deviation):
    drawn = sample_discrete_gaussian(np.full(60_000, deviation), bits(deviation))
    reach = np.arange(-3 * deviation, 3 * deviation + 1)
    everywhere = np.arange(-50 * deviation, 50 * deviation + 1)
    expected = np.exp(-(reach**2) / (2 * deviation**2)) / np.exp(-(everywhere**2) / (2 * deviation**2)).sum()
    found = np.array([(drawn == value).sum() for value in reach])
    rest = len(drawn) - found.sum()
    p = stats.chisquare([*found, rest], [*(expected * len(drawn)), (1 - expected.sum()) * len(drawn)]).pvalue
    assert p > 1e-6


@pytest.mark.parametrize("deviation", [3 * 2**36, 2**52])
def test_draws_with_large_deviations_are_normal(deviation):
    drawn = sample_discrete_gaussian(np.full(60_000, deviation), bits()) / deviation
    assert stats.kstest(drawn, stats.norm.cdf).pvalue > 1e-6
    assert abs(drawn.mean()) < 5 / math.sqrt(60_000)
    assert abs(drawn.var() - 1) < 5 * math.sqrt(2 / 60_000)


def test_deviations_go_by_their_places():
    sizes = np.array([[1, 2**40], [2**20, 5]])
    drawn = np.array([sample_discrete_gaussian(sizes, bits(seed)) for seed in range(200)])
    assert drawn.std(axis=0) / sizes == pytest.approx(np.ones((2, 2)), abs=0.3)


@pytest.mark.parametrize(("tail", "below"), [(b"\x00", True), (b"\xff", False)])
def test_close_decisions_are_made_with_more_bits(tail, below):
    """u and exp(−1) agree in their first 53 bits; then zeros follow, or ones."""
    with localcontext() as context:
        context.prec = 60
        first = int(Decimal(-1).exp() * (1 << 53))
    words = iter([(first << 11).to_bytes(8, "little")])
    found = sampling._is_below_exp(np.ones(1), lambda i: Fraction(1), lambda count: next(words, tail * count))
    assert found.tolist() == [below]
