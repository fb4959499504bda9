"""The sums that regressions read: those of the basis, and the same for any number of clients at a time."""

from __future__ import annotations

import numpy as np
import pytest
import studies
from hypothesis import given, settings
from hypothesis import strategies as st

from fedcdh.inference.evidence import _gaussian_moments
from fedcdh.inference.evidence._gaussian_moments import RegressionSums, StackedMoments
from fedcdh.inference.orthonormal_basis import Basis
from fedcdh.protocols import DOMAIN, Family
from fedcdh.summaries.aggregation import Aggregate


def family(node: str, parents: str = "", *, domain: bool = False) -> Family:
    return Family(node, frozenset(parents) | ({DOMAIN} if domain else frozenset()))


Rows = list[np.ndarray]


def drawn(seed: int, clients: int, rows: int, width: int, spread: float) -> tuple[Rows, Rows]:
    """Per client a design with a constant and a target; the noise differs by factors of exp(spread · normal)."""
    rng = np.random.default_rng([seed, clients, rows])
    designs = [np.column_stack([np.ones(rows), rng.standard_normal((rows, width - 1))]) for _ in range(clients)]
    noises = np.exp(spread * rng.standard_normal(clients))
    return designs, [
        design @ np.linspace(0.5, 1, width) + noise * rng.standard_normal(rows)
        for design, noise in zip(designs, noises, strict=True)
    ]


def sums_of(designs: Rows, targets: Rows) -> RegressionSums:
    """One family at all clients."""
    return RegressionSums(
        np.array([[x.T @ x for x in designs]]),
        np.array([[x.T @ y for x, y in zip(designs, targets, strict=True)]]),
        np.array([[y @ y for y in targets]]),
    )


@settings(max_examples=10, deadline=None)
@given(st.integers(1, 9), st.integers(1, 4), st.integers(1, 200))
def test_clients_in_parts_are_clients_one_at_a_time(clients, width, numbers):
    """However many of them the cache holds, and to the last digit."""
    sums = [sums_of(*drawn(seed, clients, 6, width, 0.5)) for seed in range(2)]
    both = RegressionSums(*(np.concatenate([getattr(one, n) for one in sums]) for n in ("gram", "cross", "square")))
    own = np.linspace(0.1, 2, 2 * width).reshape(2, width)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(_gaussian_moments, "_MAX_CACHED_ELEMENTS", numbers)
        found = both.with_own_weights(own)
    for family, one in enumerate(sums):
        for k in range(clients):
            alone = _gaussian_moments._integrate_deviations(
                one.gram[:, k], one.cross[:, k], one.square[:, k], 1 / own[family : family + 1]
            )
            for all_of_them, this in zip((found.gram, found.cross, found.square, found.cost), alone, strict=True):
                assert np.array_equal(all_of_them[family, k], this[0])


@pytest.mark.parametrize("known_apart", [True, False])
def test_moments_of_numbers_alone_are_those_of_the_basis(known_apart):
    cohort = studies.cohort_of(studies.numbers())
    basis = Basis.of(cohort if known_apart else Aggregate.of(cohort))
    moments = StackedMoments(basis)
    np.testing.assert_allclose(moments.by_client[:, :-1, :-1], basis.moments, rtol=1e-12, atol=1e-9)
    assert not moments.by_client[:, -1].any()
    assert not moments.by_client[:, :, -1].any()
