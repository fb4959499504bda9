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

from fedcdh._runtime.optional_imports import optional_import
from fedcdh.errors import SecureAggregationError
from fedcdh.summaries.aggregation import Aggregate
from fedcdh.summaries.integer_vectors import Words, decode_aggregate, encode_summary, group_clients, vector_length
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.summary import Summary

POLYNOMIAL_DEGREE, MODULUS_BITS, SCALE = 8192, (60, 60), 2.0**24
"""Of the scheme. 120 bits of modulus at degree 8192 are far inside the tables for 128 bits of security (218)."""
LIMB_BITS, N_LIMBS = 22, 3
"""A limb in [-2²¹, 2²¹), 1000 of them, times the scale, stay below half the modulus; errors stay below 0.02."""
MAX_CLIENTS = 1000
_MAX_ROUNDING_ERROR = 0.25  # from a whole number: beyond, what was opened is no sum of what sites encrypt
_MAGIC = b"fedcdh-encrypted-1\n"
_LENGTH = struct.Struct("<I")


def generate_key_pair() -> tuple[bytes, bytes]:
    """The private key, which never leaves its holder, and the public one, for sites and the server."""
    tenseal = _import_tenseal()
    context = tenseal.context(tenseal.SCHEME_TYPE.CKKS, POLYNOMIAL_DEGREE, coeff_mod_bit_sizes=list(MODULUS_BITS))
    context.global_scale = SCALE
    kinds = {"save_galois_keys": False, "save_relin_keys": False}
    private = context.serialize(save_secret_key=True, **kinds)
    public = context.serialize(save_secret_key=False, **kinds)
    return private, public


def public_key_fingerprint(public: bytes) -> str:
    """For sites to compare with the key holder: whoever swaps the public key for its own can read all that follows."""
    return hashlib.sha256(public).hexdigest()


def encrypt_summary(summary: Summary, plan: StudyPlan, public: bytes, groups: Mapping[str, str] | None = None) -> bytes:
    """A site's summary, for the server to add. It is a release: ask the policy of the site first (`taking_part`)."""
    words = encode_summary(summary, plan, group_clients(groups or {}, plan.clients))
    tenseal, context = _import_tenseal(), _load_context(public)
    return _pack_parts(tenseal.ckks_vector(context, slots.tolist()).serialize() for slots in _to_limbs(words))


def add_encrypted(messages: Iterable[bytes], public: bytes) -> bytes:
    """The encrypted sum, without opening anything; TenSEAL's vectors of all sites are added one after the other."""
    tenseal, context = _import_tenseal(), _load_context(public)
    total: list[Any] = []
    sites = 0
    for sites, message in enumerate(messages, start=1):
        parts = [_load_vector(tenseal, context, part) for part in _unpack_parts(message)]
        if sites > MAX_CLIENTS or (total and len(parts) != len(total)):
            raise SecureAggregationError(
                f"message {sites} has another length, or there are more than {MAX_CLIENTS} of them"
            )
        total = [one + other for one, other in zip(total, parts, strict=True)] if total else parts
    if not sites:
        raise SecureAggregationError(
            "there is nothing to add; expected the encrypted summaries of all sites of the plan"
        )
    return _pack_parts(part.serialize() for part in total)


def decrypt_sum(message: bytes, plan: StudyPlan, private: bytes, groups: Mapping[str, str] | None = None) -> Aggregate:
    """The sum over all sites of the plan, checked as a summary is; for the key holder."""
    tenseal, context = _import_tenseal(), _load_context(private)
    if not context.has_secret_key():
        raise SecureAggregationError("this is the public key; a sum is opened with the private one, by who holds it")
    there = group_clients(groups or {}, plan.clients)
    slots = [np.array(_load_vector(tenseal, context, part).decrypt()) for part in _unpack_parts(message)]
    return decode_aggregate(_from_limbs(np.concatenate(slots), vector_length(plan, len(there))), plan, there)


def _to_limbs(words: Words) -> Iterator[npt.NDArray[np.float64]]:
    """Numbers modulo 2⁶⁴ as limbs that lie around zero, as many at a time as a ciphertext holds."""
    rest, limbs = words.view(np.int64), []
    for _ in range(N_LIMBS):
        low = (rest + (1 << (LIMB_BITS - 1))) % (1 << LIMB_BITS) - (1 << (LIMB_BITS - 1))
        limbs.append(low)
        rest = (rest >> LIMB_BITS) + (low < 0)  # what is left, so that low + 2²² rest is the number: no overflow
    values = np.concatenate(limbs).astype(np.float64)
    for start in range(0, len(values), POLYNOMIAL_DEGREE // 2):
        yield values[start : start + POLYNOMIAL_DEGREE // 2]


def _from_limbs(values: npt.NDArray[np.float64], count: int) -> Words:
    """The numbers again, from sums of their limbs."""
    whole = np.rint(values)
    if len(values) != N_LIMBS * count or not np.abs(values - whole).max(initial=0.0) < _MAX_ROUNDING_ERROR:
        raise SecureAggregationError(
            "what was opened is no sum of encrypted summaries of this plan: sites have another plan or another key, or "
            "something else was added; ask the server what it sent"
        )
    limbs = whole.astype(np.int64).view(np.uint64).reshape(N_LIMBS, count)
    return np.asarray(sum((limb << np.uint64(LIMB_BITS * place) for place, limb in enumerate(limbs)), np.uint64(0)))


def _pack_parts(parts: Iterable[bytes]) -> bytes:
    return _MAGIC + b"".join(_LENGTH.pack(len(part)) + part for part in parts)


def _unpack_parts(message: bytes) -> list[bytes]:
    parts, start = [], len(_MAGIC)
    while message.startswith(_MAGIC) and start + _LENGTH.size <= len(message):
        (length,) = _LENGTH.unpack_from(message, start)
        parts.append(message[start + _LENGTH.size : start + _LENGTH.size + length])
        start += _LENGTH.size + length
    if start != len(message) or not parts:
        raise SecureAggregationError("this is no encrypted summary as it was made; ask for it again")
    return parts


def _load_context(key: bytes) -> Any:
    tenseal = _import_tenseal()
    try:
        return tenseal.context_from(key)
    except (ValueError, RuntimeError):
        raise SecureAggregationError(
            "this is no key for encrypted sums; ask the key holder for the file again"
        ) from None


def _load_vector(tenseal: Any, context: Any, part: bytes) -> Any:
    try:
        return tenseal.ckks_vector_from(context, part)
    except (ValueError, RuntimeError):
        raise SecureAggregationError(
            "an encrypted summary was made with another key, or was damaged; ask for it again"
        ) from None


def _import_tenseal() -> Any:
    with optional_import("TenSEAL", extra="encrypted"):
        import tenseal
    return tenseal
