"""Shamir's secret sharing: enough shares recover the secret, and fewer do not."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedcdh.errors import SecureAggregationError
from fedcdh.privacy.secure_aggregation.secret_sharing import PRIME, join_shares, split_secret


def test_the_prime_is_one():
    assert all(pow(base, PRIME - 1, PRIME) == 1 for base in (2, 3, 5, 7, 11, 13))
    assert all(PRIME % small for small in range(2, 1000))


@settings(max_examples=60, deadline=None)
@given(st.data(), st.binary(min_size=32, max_size=32), st.integers(1, 12))
def test_enough_shares_give_the_secret_back_and_fewer_do_not(data, secret, number):
    threshold = data.draw(st.integers(1, number))
    shares = split_secret(secret, threshold, range(1, number + 1))
    enough = data.draw(st.sets(st.sampled_from(sorted(shares)), min_size=threshold))
    assert join_shares({point: shares[point] for point in enough}) == secret
    if threshold > 1:
        few = sorted(shares)[: threshold - 1]
        assert join_shares({point: shares[point] for point in few}) != secret


@settings(max_examples=30, deadline=None)
@given(st.binary(min_size=32, max_size=32), st.binary(min_size=32, max_size=32))
def test_with_one_share_less_every_secret_is_possible(secret, other):
    """For two shares of three needed there is a third one that makes them shares of any other secret."""
    shares = split_secret(secret, 3, [1, 2, 3])
    values = {point: int.from_bytes(share, "big") for point, share in shares.items()}
    # at 0 the secret is 3 s₁ − 3 s₂ + s₃
    third = (int.from_bytes(other, "big") - 3 * values[1] + 3 * values[2]) % PRIME
    assert join_shares({1: shares[1], 2: shares[2], 3: third.to_bytes(33, "big")}) == other


def test_the_largest_secret_fits():
    shares = split_secret(b"\xff" * 32, 2, [1, 2, 3])
    assert all(join_shares({a: shares[a], b: shares[b]}) == b"\xff" * 32 for a, b in combinations(shares, 2))


@pytest.mark.parametrize("points", [[0, 1], [1, 1], [1]])
def test_points_that_tell_the_secret_or_too_few_are_refused(points):
    with pytest.raises(SecureAggregationError):
        split_secret(b"s" * 32, 2, points)


@pytest.mark.parametrize("share", [b"", b"x" * 32, PRIME.to_bytes(33, "big")])
def test_what_is_no_share_is_refused(share):
    with pytest.raises(SecureAggregationError):
        join_shares({1: share})
