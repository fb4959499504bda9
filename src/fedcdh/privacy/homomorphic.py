"""The sum under homomorphic encryption, which the paper names: CKKS, by the library TenSEAL (extra `encrypted`).

A key holder makes a pair of keys and hands out the public one. Sites encrypt with it, the server adds up what it cannot
read, and the key holder opens the sum. The numbers are those that masks hide (`vectors`), and the sum is the same
integer for integer: CKKS computes with errors, so every number travels as three limbs of 22 bits, whose sums are small
enough for the errors to round away. What the key holder tells is then a function of the numbers alone: the errors, from
which a key could be computed, stay with it.

What encryption does not do: whoever has the key can open the file of every single site, so the key holder and the
server must not be one, nor talk. There is no sharing of the key in this library. Masks (`member`, `sums`) need no such
trust, send a quarter to a twelfth, and survive sites that leave: they are what we recommend.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from fedcdh._runtime.optional_imports import needing
from fedcdh.errors import MaskingError
from fedcdh.summaries.aggregation import Aggregate
from fedcdh.summaries.integer_vectors import Words, decoded, encoded, grouped, words_of
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.summary import Summary

DEGREE, MODULI, SCALE = 8192, (60, 60), 2.0**24
"""Of the scheme. 120 bits of modulus at degree 8192 are far inside the tables for 128 bits of security (218)."""
LIMB, LIMBS = 22, 3
"""A limb in [-2²¹, 2²¹), 1000 of them, times the scale, stay below half the modulus; errors stay below 0.02."""
SITES_AT_MOST = 1000
_FARTHEST = 0.25  # from a whole number: beyond, what was opened is no sum of what sites encrypt
_MAGIC = b"fedcdh-encrypted-1\n"
_LENGTH = struct.Struct("<I")


def new_keys() -> tuple[bytes, bytes]:
    """The private key, which never leaves its holder, and the public one, for sites and the server."""
    tenseal = _tenseal()
    context = tenseal.context(tenseal.SCHEME_TYPE.CKKS, DEGREE, coeff_mod_bit_sizes=list(MODULI))
    context.global_scale = SCALE
    kinds = {"save_galois_keys": False, "save_relin_keys": False}
    private = context.serialize(save_secret_key=True, **kinds)
    public = context.serialize(save_secret_key=False, **kinds)
    return private, public


def fingerprint(public: bytes) -> str:
    """For sites to compare with the key holder: whoever swaps the public key for its own can read all that follows."""
    return hashlib.sha256(public).hexdigest()


def encrypt(summary: Summary, plan: StudyPlan, public: bytes, groups: Mapping[str, str] | None = None) -> bytes:
    """A site's summary, for the server to add. It is a release: ask the policy of the site first (`taking_part`)."""
    words = encoded(summary, plan, grouped(groups or {}, plan.clients))
    tenseal, context = _tenseal(), _context(public)
    return _packed(tenseal.ckks_vector(context, slots.tolist()).serialize() for slots in _limbs(words))


def add(messages: Iterable[bytes], public: bytes) -> bytes:
    """The encrypted sum, without opening anything; TenSEAL's vectors of all sites are added one after the other."""
    tenseal, context = _tenseal(), _context(public)
    total: list[Any] = []
    sites = 0
    for sites, message in enumerate(messages, start=1):
        parts = [_vector(tenseal, context, part) for part in _unpacked(message)]
        if sites > SITES_AT_MOST or (total and len(parts) != len(total)):
            raise MaskingError(f"message {sites} has another length, or there are more than {SITES_AT_MOST} of them")
        total = [one + other for one, other in zip(total, parts, strict=True)] if total else parts
    if not sites:
        raise MaskingError("there is nothing to add; expected the encrypted summaries of all sites of the plan")
    return _packed(part.serialize() for part in total)


def opened(message: bytes, plan: StudyPlan, private: bytes, groups: Mapping[str, str] | None = None) -> Aggregate:
    """The sum over all sites of the plan, checked as a summary is; for the key holder."""
    tenseal, context = _tenseal(), _context(private)
    if not context.has_secret_key():
        raise MaskingError("this is the public key; a sum is opened with the private one, by who holds it")
    there = grouped(groups or {}, plan.clients)
    slots = [np.array(_vector(tenseal, context, part).decrypt()) for part in _unpacked(message)]
    return decoded(_words(np.concatenate(slots), words_of(plan, len(there))), plan, there)


def _limbs(words: Words) -> Iterator[npt.NDArray[np.float64]]:
    """Numbers modulo 2⁶⁴ as limbs that lie around zero, as many at a time as a ciphertext holds."""
    rest, limbs = words.view(np.int64), []
    for _ in range(LIMBS):
        low = (rest + (1 << (LIMB - 1))) % (1 << LIMB) - (1 << (LIMB - 1))
        limbs.append(low)
        rest = (rest >> LIMB) + (low < 0)  # what is left, so that low + 2²² rest is the number: no overflow
    values = np.concatenate(limbs).astype(np.float64)
    for start in range(0, len(values), DEGREE // 2):
        yield values[start : start + DEGREE // 2]


def _words(values: npt.NDArray[np.float64], count: int) -> Words:
    """The numbers again, from sums of their limbs."""
    whole = np.rint(values)
    if len(values) != LIMBS * count or not np.abs(values - whole).max(initial=0.0) < _FARTHEST:
        raise MaskingError(
            "what was opened is no sum of encrypted summaries of this plan: sites have another plan or another key, or "
            "something else was added; ask the server what it sent"
        )
    limbs = whole.astype(np.int64).view(np.uint64).reshape(LIMBS, count)
    return np.asarray(sum((limb << np.uint64(LIMB * place) for place, limb in enumerate(limbs)), np.uint64(0)))


def _packed(parts: Iterable[bytes]) -> bytes:
    return _MAGIC + b"".join(_LENGTH.pack(len(part)) + part for part in parts)


def _unpacked(message: bytes) -> list[bytes]:
    parts, start = [], len(_MAGIC)
    while message.startswith(_MAGIC) and start + _LENGTH.size <= len(message):
        (length,) = _LENGTH.unpack_from(message, start)
        parts.append(message[start + _LENGTH.size : start + _LENGTH.size + length])
        start += _LENGTH.size + length
    if start != len(message) or not parts:
        raise MaskingError("this is no encrypted summary as it was made; ask for it again")
    return parts


def _context(key: bytes) -> Any:
    tenseal = _tenseal()
    try:
        return tenseal.context_from(key)
    except (ValueError, RuntimeError):
        raise MaskingError("this is no key for encrypted sums; ask the key holder for the file again") from None


def _vector(tenseal: Any, context: Any, part: bytes) -> Any:
    try:
        return tenseal.ckks_vector_from(context, part)
    except (ValueError, RuntimeError):
        raise MaskingError("an encrypted summary was made with another key, or was damaged; ask for it again") from None


def _tenseal() -> Any:
    with needing("TenSEAL", extra="encrypted"):
        import tenseal
    return tenseal
