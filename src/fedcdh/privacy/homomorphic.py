"""Sums under homomorphic encryption, which the paper mentions: CKKS, by the library TenSEAL (extra `encrypted`).

A key holder makes a pair of keys and distributes the public one. Clients encrypt with it, the server adds ciphertexts
it cannot read, and the key holder decrypts the sum. The numbers are those of secure aggregation (`integer_vectors`),
and the sum is the same integers. CKKS computes with errors, so every number travels as three limbs of 22 bits, whose
sums are small enough for the errors to round away. What the key holder publishes is then a function of the numbers
alone; the errors, from which a key could be computed, stay with the key holder.

Limits: the key holder can decrypt the file of every single client, so key holder and server must be different parties
that do not cooperate. This library does not split the key. Secure aggregation (`secure_aggregation`) needs no such
trust, sends a quarter to a twelfth of the bytes, and survives clients that leave; it is what we recommend.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from fedcdh._runtime.array_types import Array
from fedcdh._runtime.optional_imports import optional_import
from fedcdh.errors import SecureAggregationError
from fedcdh.summaries.aggregation import Aggregate
from fedcdh.summaries.integer_vectors import Words, decode_aggregate, encode_summary, group_clients, vector_length
from fedcdh.summaries.plan import StudyPlan, check_equal_columns
from fedcdh.summaries.summary import Summary

__all__ = ["add_encrypted", "decrypt_sum", "encrypt_summary", "generate_key_pair", "public_key_fingerprint"]

POLYNOMIAL_DEGREE, MODULUS_BITS, SCALE = 8192, (60, 60), 2.0**24
"""Parameters of CKKS. A modulus of 120 bits at degree 8192 is far inside the tables for 128 bits of security (218)."""
LIMB_BITS, N_LIMBS = 22, 3
"""1000 limbs in [-2²¹, 2²¹), times the scale, stay below half the modulus; errors stay below 0.02."""
MAX_CLIENTS = 1000
_MAX_ROUNDING_ERROR = 0.25  # distance from an integer beyond which a decrypted number is not a sum of limbs
_MAGIC = b"fedcdh-encrypted-1\n"
_LENGTH = struct.Struct("<I")


def generate_key_pair() -> tuple[bytes, bytes]:
    """Generate a pair of keys, for the key holder.

    Returns
    -------
    private : bytes
        The private key, which never leaves the key holder.
    public : bytes
        The public key, for clients and the server.
    """
    tenseal = _import_tenseal()
    context = tenseal.context(tenseal.SCHEME_TYPE.CKKS, POLYNOMIAL_DEGREE, coeff_mod_bit_sizes=list(MODULUS_BITS))
    context.global_scale = SCALE
    kinds = {"save_galois_keys": False, "save_relin_keys": False}
    private = context.serialize(save_secret_key=True, **kinds)
    public = context.serialize(save_secret_key=False, **kinds)
    return private, public


def public_key_fingerprint(public: bytes) -> str:
    """Return the fingerprint of a public key, which clients compare with the key holder.

    A party that replaces the public key by its own can read everything that follows.

    Parameters
    ----------
    public : bytes
        The public key.

    Returns
    -------
    str
        SHA-256 in hexadecimal digits.

    Examples
    --------
    >>> public_key_fingerprint(b"key")[:8]
    '2c70e12b'
    """
    return hashlib.sha256(public).hexdigest()


def encrypt_summary(summary: Summary, plan: StudyPlan, public: bytes, groups: Mapping[str, str] | None = None) -> bytes:
    """Encrypt a client's summary, for the server to add. It is a release: ask the site's policy first (`releases`).

    Parameters
    ----------
    summary : Summary
        Summary of one client.
    plan : StudyPlan
        The plan that it follows.
    public : bytes
        The public key.
    groups : mapping from str to str, optional
        Group of every client. Default: each by itself.

    Returns
    -------
    bytes
        The encrypted summary.

    Raises
    ------
    SecureAggregationError
        If the key cannot be read.
    """
    check_equal_columns(plan, "an encrypted sum")
    words = encode_summary(summary, plan, group_clients(groups or {}, plan.clients))
    tenseal, context = _import_tenseal(), _load_context(public)
    return _pack_parts(tenseal.ckks_vector(context, slots.tolist()).serialize() for slots in _to_limbs(words))


def add_encrypted(messages: Iterable[bytes], public: bytes) -> bytes:
    """Add encrypted summaries without decrypting any, one after the other.

    Parameters
    ----------
    messages : iterable of bytes
        Encrypted summaries of all clients.
    public : bytes
        The public key.

    Returns
    -------
    bytes
        The encrypted sum.

    Raises
    ------
    SecureAggregationError
        If there is nothing to add, or a message cannot be read or has another length.
    """
    tenseal, context = _import_tenseal(), _load_context(public)
    total: list[Any] = []
    clients = 0
    for clients, message in enumerate(messages, start=1):
        parts = [_load_vector(tenseal, context, part) for part in _unpack_parts(message)]
        if clients > MAX_CLIENTS or (total and len(parts) != len(total)):
            raise SecureAggregationError(
                f"Message {clients} has {len(parts)} parts. Expected as many as the others have, and at most "
                f"{MAX_CLIENTS} messages. Ask that client which plan it follows"
            )
        total = [one + other for one, other in zip(total, parts, strict=True)] if total else parts
    if not clients:
        raise SecureAggregationError(
            "There is nothing to add. Expected the encrypted summaries of all clients of the plan. Name their files"
        )
    return _pack_parts(part.serialize() for part in total)


def decrypt_sum(message: bytes, plan: StudyPlan, private: bytes, groups: Mapping[str, str] | None = None) -> Aggregate:
    """Decrypt the sum over all clients of the plan, and validate it as a summary is; for the key holder.

    Parameters
    ----------
    message : bytes
        The encrypted sum.
    plan : StudyPlan
        The plan of the study.
    private : bytes
        The private key.
    groups : mapping from str to str, optional
        Group of every client. Default: each by itself.

    Returns
    -------
    Aggregate
        The sum.

    Raises
    ------
    SecureAggregationError
        If the key is the public one, or the message is not a sum of summaries of this plan.
    """
    tenseal, context = _import_tenseal(), _load_context(private)
    if not context.has_secret_key():
        raise SecureAggregationError(
            "This is the public key. Expected the private one, which decrypts a sum. Ask the key holder to decrypt it"
        )
    found = group_clients(groups or {}, plan.clients)
    slots = [np.array(_load_vector(tenseal, context, part).decrypt()) for part in _unpack_parts(message)]
    return decode_aggregate(_from_limbs(np.concatenate(slots), vector_length(plan, len(found))), plan, found)


def _to_limbs(words: Words) -> Iterator[Array]:
    """Yield numbers modulo 2⁶⁴ as limbs around zero, as many at a time as a ciphertext holds."""
    rest, limbs = words.view(np.int64), []
    for _ in range(N_LIMBS):
        low = (rest + (1 << (LIMB_BITS - 1))) % (1 << LIMB_BITS) - (1 << (LIMB_BITS - 1))
        limbs.append(low)
        rest = (rest >> LIMB_BITS) + (low < 0)  # low + 2²² rest is the number, without overflow
    values = np.concatenate(limbs).astype(np.float64)
    for start in range(0, len(values), POLYNOMIAL_DEGREE // 2):
        yield values[start : start + POLYNOMIAL_DEGREE // 2]


def _from_limbs(values: Array, count: int) -> Words:
    """Return the numbers again, from sums of their limbs."""
    rounded = np.rint(values)
    error = np.abs(values - rounded).max(initial=0.0)
    if len(values) != N_LIMBS * count or not error < _MAX_ROUNDING_ERROR:
        raise SecureAggregationError(
            f"The decrypted message has {len(values)} numbers, up to {error:.3g} from integers. Expected "
            f"{N_LIMBS * count} integers, a sum of encrypted summaries of this plan: clients have another plan or "
            "another key, or something else was added. Ask the server what it sent"
        )
    limbs = rounded.astype(np.int64).view(np.uint64).reshape(N_LIMBS, count)
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
        raise SecureAggregationError(
            "The message is damaged, or is not an encrypted summary. Expected the bytes that fedcdh wrote. Ask for it "
            "again"
        )
    return parts


def _load_context(key: bytes) -> Any:
    tenseal = _import_tenseal()
    try:
        return tenseal.context_from(key)
    except (ValueError, RuntimeError):
        raise SecureAggregationError(
            "The key cannot be read. Expected a key for encrypted sums. Ask the key holder for the file again"
        ) from None


def _load_vector(tenseal: Any, context: Any, part: bytes) -> Any:
    try:
        return tenseal.ckks_vector_from(context, part)
    except (ValueError, RuntimeError):
        raise SecureAggregationError(
            "An encrypted summary was made with another key, or was damaged. Expected one under this key. Ask for it "
            "again"
        ) from None


def _import_tenseal() -> Any:
    with optional_import("TenSEAL", extra="encrypted"):
        import tenseal
    return tenseal
