"""Masks and keys: what two sites know and the server does not, and streams of numbers that look like chance.

Every key is used for one purpose in one session: the session and the purpose, with the names it concerns, go into its
derivation (HKDF-SHA256). So the counter of a stream (AES-256-CTR) may begin at zero, and no mask occurs twice.
"""

from __future__ import annotations

import json

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from fedcdh.errors import SecureAggregationError
from fedcdh.summaries.integer_vectors import Words

KEY_BYTES = 32
NONCE_BYTES, TAG_BYTES = 12, 16
_FORMAT = "fedcdh-masking-1"


def derive_public_key(private: bytes) -> bytes:
    """The public key of a private X25519 key, which is any 32 random bytes."""
    return X25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()


def agree_secret(private: bytes, public: bytes) -> bytes:
    """What only the two owners of these keys can compute (X25519)."""
    try:
        return X25519PrivateKey.from_private_bytes(private).exchange(X25519PublicKey.from_public_bytes(public))
    except ValueError:
        raise SecureAggregationError(
            "a public key is none that anyone can own; do not go on with whoever sent it"
        ) from None


def derive_key(secret: bytes, salt: bytes, info: bytes) -> bytes:
    """A key of 32 bytes (HKDF-SHA256, RFC 5869)."""
    return HKDF(hashes.SHA256(), KEY_BYTES, salt, info).derive(secret)


def expand_mask(key: bytes, count: int, counter: bytes = bytes(16)) -> Words:
    """So many numbers modulo 2⁶⁴ that nobody without the key can tell from chance (AES-256-CTR)."""
    encryptor = Cipher(algorithms.AES256(key), modes.CTR(counter)).encryptor()
    return np.frombuffer(encryptor.update(bytes(8 * count)), dtype="<u8").astype(np.uint64, copy=False)


def derive_self_mask_key(seed: bytes, session: str, client: str) -> bytes:
    """Of the mask that a site alone knows."""
    return derive_key(seed, bytes.fromhex(session), _encode_purpose("self", client))


def derive_pair_mask_key(secret: bytes, session: str, one: str, other: str) -> bytes:
    """Of the mask that two sites share, whoever of them asks."""
    return derive_key(secret, bytes.fromhex(session), _encode_purpose("pair", *sorted((one, other))))


def seal(secret: bytes, session: str, sender: str, receiver: str, text: bytes, nonce: bytes) -> bytes:
    """A text that only these two can read, and nobody can pass off as another's, or of another session."""
    purpose = _encode_purpose("shares", sender, receiver)
    key = derive_key(secret, bytes.fromhex(session), purpose)
    return nonce + AESGCM(key).encrypt(nonce, text, bytes.fromhex(session) + purpose)


def unseal(secret: bytes, session: str, sender: str, receiver: str, box: bytes) -> bytes:
    """What `seal` closed; SecureAggregationError for anything else."""
    purpose = _encode_purpose("shares", sender, receiver)
    key = derive_key(secret, bytes.fromhex(session), purpose)
    try:
        return AESGCM(key).decrypt(box[:NONCE_BYTES], box[NONCE_BYTES:], bytes.fromhex(session) + purpose)
    except (InvalidTag, ValueError):
        raise SecureAggregationError(
            f"what {sender} is said to have sent to {receiver} was changed on the way, or is of another session; do "
            "not go on, and ask the coordinator what happened"
        ) from None


def _encode_purpose(*words: str) -> bytes:
    """One text for one list of words, whatever they hold."""
    return json.dumps([_FORMAT, *words], separators=(",", ":"), ensure_ascii=False).encode()
