"""Masks and keys: secrets that two clients share and the server does not know, and streams of pseudorandom numbers.

Every key serves one purpose in one session: the session, the purpose and the names it concerns enter its derivation
(HKDF-SHA256). So the counter of a stream (AES-256-CTR) may begin at zero, and no mask occurs twice.
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
    """Return the public key of a private X25519 key, which is any 32 random bytes."""
    return X25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()


def is_low_order(public: bytes) -> bool:
    """Return whether a public X25519 key is one of the few points with which every secret is zero.

    Any private key shows it: multiplication by a private key, a multiple of 8, takes exactly these points to zero.
    """
    try:
        X25519PrivateKey.from_private_bytes(bytes(KEY_BYTES)).exchange(X25519PublicKey.from_public_bytes(public))
    except ValueError:
        return True
    return False


def agree_secret(private: bytes, public: bytes) -> bytes:
    """Return the secret that only the owners of these two keys can compute (X25519).

    Parameters
    ----------
    private : bytes
        Private key of one of them.
    public : bytes
        Public key of the other.

    Returns
    -------
    bytes
        32 bytes.

    Raises
    ------
    SecureAggregationError
        If the public key is a point that no private key has.
    """
    try:
        return X25519PrivateKey.from_private_bytes(private).exchange(X25519PublicKey.from_public_bytes(public))
    except ValueError:
        raise SecureAggregationError(
            "A public key is one that nobody can own. Expected a key of X25519. Do not go on with its sender"
        ) from None


def derive_key(secret: bytes, salt: bytes, info: bytes) -> bytes:
    """Return a key of 32 bytes (HKDF-SHA256, RFC 5869)."""
    return HKDF(hashes.SHA256(), KEY_BYTES, salt, info).derive(secret)


def expand_mask(key: bytes, count: int, counter: bytes = bytes(16)) -> Words:
    """Expand a key to a mask: numbers modulo 2⁶⁴ that look random without the key (AES-256-CTR).

    Parameters
    ----------
    key : bytes
        32 bytes.
    count : int
        Number of numbers.
    counter : bytes, optional
        First counter. Default: zero.

    Returns
    -------
    array of uint64
        The mask.
    """
    encryptor = Cipher(algorithms.AES256(key), modes.CTR(counter)).encryptor()
    return np.frombuffer(encryptor.update(bytes(8 * count)), dtype="<u8").astype(np.uint64, copy=False)


def derive_self_mask_key(seed: bytes, session: str, client: str) -> bytes:
    """Return the key of the mask that only one client knows."""
    return derive_key(seed, bytes.fromhex(session), _encode_purpose("self", client))


def derive_pair_mask_key(secret: bytes, session: str, one: str, other: str) -> bytes:
    """Return the key of the mask that two clients share, in either order of their names."""
    return derive_key(secret, bytes.fromhex(session), _encode_purpose("pair", *sorted((one, other))))


def seal(secret: bytes, session: str, sender: str, receiver: str, text: bytes, nonce: bytes) -> bytes:
    """Encrypt a text so that only the receiver can read it (AES-256-GCM).

    It is bound to the sender, the receiver and the session.

    Parameters
    ----------
    secret : bytes
        Secret that sender and receiver share.
    session : str
        Digest of the session, in hexadecimal digits.
    sender, receiver : str
        Names of the clients.
    text : bytes
        What to encrypt.
    nonce : bytes
        12 random bytes.

    Returns
    -------
    bytes
        Nonce and ciphertext.
    """
    purpose = _encode_purpose("shares", sender, receiver)
    key = derive_key(secret, bytes.fromhex(session), purpose)
    return nonce + AESGCM(key).encrypt(nonce, text, bytes.fromhex(session) + purpose)


def unseal(secret: bytes, session: str, sender: str, receiver: str, box: bytes) -> bytes:
    """Decrypt what `seal` encrypted.

    Parameters
    ----------
    secret : bytes
        Secret that sender and receiver share.
    session : str
        Digest of the session, in hexadecimal digits.
    sender, receiver : str
        Names of the clients.
    box : bytes
        Nonce and ciphertext.

    Returns
    -------
    bytes
        The text.

    Raises
    ------
    SecureAggregationError
        If it was changed, or is of another pair of clients or another session.
    """
    purpose = _encode_purpose("shares", sender, receiver)
    key = derive_key(secret, bytes.fromhex(session), purpose)
    try:
        return AESGCM(key).decrypt(box[:NONCE_BYTES], box[NONCE_BYTES:], bytes.fromhex(session) + purpose)
    except (InvalidTag, ValueError):
        raise SecureAggregationError(
            f"The sealed shares of {sender} for {receiver} were changed on the way, or are of another session. "
            "Expected them as they were sent. Do not go on, and ask the coordinator what happened"
        ) from None


def _encode_purpose(*words: str) -> bytes:
    """Return bytes that are different for different lists of words."""
    return json.dumps([_FORMAT, *words], separators=(",", ":"), ensure_ascii=False).encode()
