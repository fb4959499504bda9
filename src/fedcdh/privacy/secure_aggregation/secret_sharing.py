"""Shamir's secret sharing: any `threshold` of the shares recover the secret, and fewer reveal nothing at all.

A secret of 32 bytes is the value at 0 of a random polynomial over a prime field; a share is its value elsewhere. With
fewer values than coefficients, every secret is equally likely.

References
----------
A. Shamir: How to share a secret. Communications of the ACM 22 (1979).
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache, reduce

from fedcdh.errors import SecureAggregationError

RandomBytes = Callable[[int], bytes]
"""Returns the given number of random bytes. Only tests pass their own: anything else gives secrets away."""
PRIME = (1 << 256) + 297
"""The smallest prime above every number of 32 bytes."""
SECRET_BYTES, SHARE_BYTES = 32, 33


def split_secret(
    secret: bytes, threshold: int, points: Iterable[int], random: RandomBytes = secrets.token_bytes
) -> dict[int, bytes]:
    """Split a secret into one share for every point.

    Parameters
    ----------
    secret : bytes
        32 bytes.
    threshold : int
        Number of shares that recover the secret.
    points : iterable of int
        Distinct numbers from 1 upwards, at least `threshold` of them.
    random : callable, optional
        Returns the given number of random bytes. Default: the operating system's generator.

    Returns
    -------
    dict from int to bytes
        The share of every point, 33 bytes each.

    Raises
    ------
    SecureAggregationError
        If the secret, the threshold or the points are out of range.

    Examples
    --------
    >>> shares = split_secret(b"s" * 32, 2, [1, 2, 3])
    >>> join_shares({1: shares[1], 3: shares[3]}) == b"s" * 32
    True
    """
    places = list(points)
    if len(secret) != SECRET_BYTES or not 1 <= threshold <= len(places) or len({*places, 0}) != len(places) + 1:
        raise SecureAggregationError(
            f"The secret has {len(secret)} bytes, there are {len(places)} points and the threshold is {threshold}. "
            f"Expected {SECRET_BYTES} bytes, and at least as many distinct points from 1 upwards as the threshold. "
            "Correct the call of split_secret"
        )
    # 64 bytes modulo the prime are uniform up to an error of 2⁻²⁵⁵
    random_coefficients = [int.from_bytes(random(64), "big") % PRIME for _ in range(threshold - 1)]
    coefficients = [*random_coefficients, int.from_bytes(secret, "big")]
    return {x: _evaluate_polynomial(coefficients, x).to_bytes(SHARE_BYTES, "big") for x in places}


def join_shares(shares: Mapping[int, bytes]) -> bytes:
    """Recover the secret from its shares.

    Parameters
    ----------
    shares : mapping from int to bytes
        Shares by point.

    Returns
    -------
    bytes
        The secret, if there are enough shares and all are correct; other bytes otherwise.

    Raises
    ------
    SecureAggregationError
        If something is not a share.

    Examples
    --------
    >>> shares = split_secret(b"s" * 32, 2, [1, 2, 3])
    >>> join_shares({2: shares[2], 3: shares[3]})[:4]
    b'ssss'
    """
    values = {x: int.from_bytes(share, "big") for x, share in shares.items()}
    if any(len(share) != SHARE_BYTES for share in shares.values()) or any(value >= PRIME for value in values.values()):
        raise SecureAggregationError(
            f"A share has the wrong length, or is too large. Expected {SHARE_BYTES} bytes that are a number below the "
            "prime. Ask the client that sent it which version of fedcdh it runs"
        )
    found = sum(weight * values[x] for x, weight in _lagrange_weights(tuple(sorted(values)))) % PRIME
    return (found % (1 << 8 * SECRET_BYTES)).to_bytes(SECRET_BYTES, "big")  # larger only if a share is false


def _evaluate_polynomial(coefficients: list[int], x: int) -> int:
    return reduce(lambda value, coefficient: (value * x + coefficient) % PRIME, coefficients, 0)


@lru_cache(maxsize=16)
def _lagrange_weights(points: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    """Return Lagrange's weights at 0, which are the same for all secrets with shares at these points."""
    found = []
    for x in points:
        numerator = denominator = 1
        for other in points:
            if other != x:
                numerator, denominator = numerator * other % PRIME, denominator * (other - x) % PRIME
        found.append((x, numerator * pow(denominator, -1, PRIME) % PRIME))
    return tuple(found)
