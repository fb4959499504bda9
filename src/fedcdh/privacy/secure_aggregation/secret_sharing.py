"""Shamir's sharing of a secret: any `threshold` of the shares give it back, fewer tell nothing at all.

A secret of 32 bytes is the value at 0 of a random polynomial over a prime field; a share is its value elsewhere. With
fewer values than coefficients, every secret is as possible as every other.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache, reduce

from fedcdh.errors import SecureAggregationError

RandomBytes = Callable[[int], bytes]
"""So many random bytes. Tests bring their own; whoever else does gives secrets away."""
PRIME = (1 << 256) + 297
"""The first prime that holds every 32 bytes."""
SECRET_BYTES, SHARE_BYTES = 32, 33
"""Bytes of a secret and of a share."""


def split_secret(
    secret: bytes, threshold: int, points: Iterable[int], random: RandomBytes = secrets.token_bytes
) -> dict[int, bytes]:
    """The share of every point, which is a number from 1 on.

    >>> shares = split_secret(b"s" * 32, 2, [1, 2, 3])
    >>> join_shares({1: shares[1], 3: shares[3]}) == b"s" * 32
    True
    """
    places = list(points)
    if len(secret) != SECRET_BYTES or not 1 <= threshold <= len(places) or len({*places, 0}) != len(places) + 1:
        raise SecureAggregationError(
            f"a secret of {SECRET_BYTES} bytes is shared between different points from 1 on, at least as many as give it "
            f"back; found {len(secret)} bytes, {len(places)} points and a threshold of {threshold}"
        )
    # 64 bytes modulo the prime: uniform but for 1 in 2²⁵⁵
    above = [int.from_bytes(random(64), "big") % PRIME for _ in range(threshold - 1)]
    coefficients = [*above, int.from_bytes(secret, "big")]
    return {x: _evaluate_polynomial(coefficients, x).to_bytes(SHARE_BYTES, "big") for x in places}


def join_shares(shares: Mapping[int, bytes]) -> bytes:
    """The secret that these shares are of, if they are enough; else, or if one is false, some other bytes."""
    values = {x: int.from_bytes(share, "big") for x, share in shares.items()}
    if any(len(share) != SHARE_BYTES for share in shares.values()) or any(value >= PRIME for value in values.values()):
        raise SecureAggregationError(
            f"this is no share of a secret; expected {SHARE_BYTES} bytes, a number below the prime"
        )
    found = sum(weight * values[x] for x, weight in _lagrange_weights(tuple(sorted(values)))) % PRIME
    return (found % (1 << 8 * SECRET_BYTES)).to_bytes(SECRET_BYTES, "big")  # too large only where a share is false


def _evaluate_polynomial(coefficients: list[int], x: int) -> int:
    return reduce(lambda value, coefficient: (value * x + coefficient) % PRIME, coefficients, 0)


@lru_cache(maxsize=16)
def _lagrange_weights(points: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    """Lagrange's, at 0; the same for all secrets that the same sites give back."""
    found = []
    for x in points:
        above = below = 1
        for other in points:
            if other != x:
                above, below = above * other % PRIME, below * (other - x) % PRIME
        found.append((x, above * pow(below, -1, PRIME) % PRIME))
    return tuple(found)
