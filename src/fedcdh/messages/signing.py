"""Signatures of files: detached Ed25519 signatures, one canonical document per file and key.

The digest of the file is signed together with its kind, so that a summary's signature cannot be passed off as a plan's.
A signature proves which key made it; whose key that is, the participants of the study settle among themselves, by
comparing fingerprints.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import secrets
import stat
from dataclasses import dataclass, field
from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from fedcdh._io.format_version import find_format_mismatch
from fedcdh._io.strict_json import parse_json, to_canonical_json
from fedcdh.errors import SignatureError

FORMAT = "fedcdh-signature-2"
SIGNED_KINDS = ("summary", "plan", "profile", "result", "request", "answer", "masking", "aggregate", "release")
MAX_SIGNATURE_BYTES = 1024
"""Bytes of a signature document; a longer one is refused."""
_ADVICE = "ask the sender for the signature file again"
_SCHEME = "ed25519:"
_FIELDS = {"format", "kind", "key", "digest", "signature"}
_PRIME = (1 << 255) - 19
_SMALL_ORDER = {
    0,
    1,
    _PRIME - 1,
    *(
        int.from_bytes(bytes.fromhex(y), "little")
        for y in (
            "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
            "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
        )
    ),
}
"""The y of the eight points for which anyone can make signatures, the same one for most files."""


@dataclass(frozen=True)
class SigningKey:  # numpydoc ignore=PR01
    """A private key, which only `to_pem` reveals.

    Examples
    --------
    >>> key = SigningKey.generate()
    >>> SigningKey.from_pem(key.to_pem()).public == key.public
    True
    """

    _key: Ed25519PrivateKey = field(repr=False)

    @classmethod
    def generate(cls) -> SigningKey:
        """Make a new key from the random numbers of the operating system.

        Returns
        -------
        SigningKey
            The key.
        """
        return cls(Ed25519PrivateKey.from_private_bytes(secrets.token_bytes(32)))

    @classmethod
    def from_pem(cls, pem: bytes, passphrase: str | None = None) -> SigningKey:
        """Read a key from a PKCS8 file in PEM.

        Parameters
        ----------
        pem : bytes
            Content of the file.
        passphrase : str, optional
            Passphrase of an encrypted key.

        Returns
        -------
        SigningKey
            The key.

        Raises
        ------
        SignatureError
            If this is not an Ed25519 key, or the passphrase is wrong, missing or superfluous.
        """
        secret = None if passphrase is None else passphrase.encode("utf-8")
        try:
            key = load_pem_private_key(pem, secret)
        except TypeError:
            raise SignatureError(
                "this private key is encrypted; give its passphrase"
                if secret is None
                else "a passphrase was given, but this private key is not encrypted; leave the passphrase out"
            ) from None
        except (ValueError, UnsupportedAlgorithm):
            raise SignatureError(
                "this is not a private key in PEM, or the passphrase is wrong; expected PKCS8 with an Ed25519 key"
            ) from None
        if not isinstance(key, Ed25519PrivateKey):
            raise SignatureError(
                "this private key is not an Ed25519 key, and only those are used; make one with fedcdh keys new"
            )
        return cls(key)

    def to_pem(self, passphrase: str | None = None) -> bytes:
        """Write the key as PKCS8 in PEM.

        Parameters
        ----------
        passphrase : str, optional
            Passphrase to encrypt the key with. Default: the key is not encrypted.

        Returns
        -------
        bytes
            Content of a key file.

        Raises
        ------
        SignatureError
            If the passphrase is empty.
        """
        encryption: KeySerializationEncryption = NoEncryption()
        if passphrase is not None:
            if not passphrase:
                raise SignatureError("the passphrase is empty; give one, or None for a key that is not encrypted")
            encryption = BestAvailableEncryption(passphrase.encode("utf-8"))
        return self._key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)

    @property
    def public(self) -> str:
        """Return the public key: "ed25519:" and the base64 of its 32 bytes."""
        return _SCHEME + base64.b64encode(self._key.public_key().public_bytes_raw()).decode("ascii")


def sign(key: SigningKey, kind: str, blob: bytes) -> str:
    """Sign a file as one of some kind.

    Parameters
    ----------
    key : SigningKey
        Private key.
    kind : str
        Kind of the file, such as "summary" or "plan".
    blob : bytes
        The file.

    Returns
    -------
    str
        Signature document, canonical JSON.

    Raises
    ------
    SignatureError
        If files of this kind are not signed.

    Examples
    --------
    >>> key = SigningKey.generate()
    >>> verify("summary", b"bytes", sign(key, "summary", b"bytes")) == key.public
    True
    """
    if kind not in SIGNED_KINDS:
        raise SignatureError(
            f"the kind of the file is {kind!r}; expected one of {', '.join(SIGNED_KINDS)}; name the kind of the file"
        )
    signature = base64.b64encode(sign_raw(key, kind, blob)).decode("ascii")
    return _to_document(kind, key.public, hashlib.sha256(blob).hexdigest(), signature)


def sign_raw(key: SigningKey, kind: str, blob: bytes) -> bytes:
    """Return the 64 bytes of a signature, for messages that carry it themselves."""
    return key._key.sign(_signed_bytes(kind, hashlib.sha256(blob).digest()))


def is_signed_by(public: str, kind: str, blob: bytes, signature: bytes) -> bool:
    """Return whether these 64 bytes are the signature of this key."""
    return _is_valid(public, kind, hashlib.sha256(blob).digest(), signature)


def _is_valid(public: str, kind: str, digest: bytes, signature: bytes) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(_public_key_bytes(public)).verify(signature, _signed_bytes(kind, digest))
    except InvalidSignature:
        return False
    return True


def verify(kind: str, blob: bytes, document: str | bytes) -> str:
    """Verify a signature, and return the public key that made it. The caller decides whether it is the right one.

    Parameters
    ----------
    kind : str
        Kind of the file, such as "summary" or "plan".
    blob : bytes
        The file.
    document : str or bytes
        Signature document.

    Returns
    -------
    str
        Public key.

    Raises
    ------
    SignatureError
        If the signature is damaged, false, or that of another file or kind.

    Examples
    --------
    >>> verify("summary", b"bytes", "")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    fedcdh.errors.SignatureError: ...
    """
    found = _parse_document(document)
    if found["kind"] != kind:
        raise SignatureError(
            f"this is the signature of a {found['kind'][:40]!r} file, expected that of a {kind!r} file; pass the "
            "signature that came with the file"
        )
    digest = hashlib.sha256(blob).digest()
    if found["digest"] != digest.hex():
        raise SignatureError(
            "this signature belongs to another file, or the file was changed after it was signed; ask the sender for "
            "the file and its signature again"
        )
    if not _is_valid(found["key"], kind, digest, _decode_base64(found["signature"], 64, "signature")):
        raise SignatureError(
            f"the signature is false: the key {key_fingerprint(found['key'])} did not sign this file; do not use the "
            "file, and ask the sender"
        )
    return found["key"]


def key_fingerprint(public: str) -> str:
    """Return a short form of a public key that people can compare, for example by telephone.

    Parameters
    ----------
    public : str
        Public key.

    Returns
    -------
    str
        128 bits of the SHA-256 of the key, in groups of four hexadecimal digits.

    Examples
    --------
    >>> len(key_fingerprint(SigningKey.generate().public).split())
    8
    """
    digest = hashlib.sha256(_public_key_bytes(public)).hexdigest()
    return " ".join(digest[start : start + 4] for start in range(0, 32, 4))


def is_private_file(path: Path) -> bool:
    """Return whether nobody but its owner may read or write this file; always True on Windows."""
    return os.name == "nt" or not stat.S_IMODE(path.stat().st_mode) & 0o077


def _signed_bytes(kind: str, digest: bytes) -> bytes:
    return b"\0".join((FORMAT.encode("ascii"), kind.encode("ascii"), digest))


def _to_document(kind: str, key: str, digest: str, signature: str) -> str:
    return to_canonical_json({"format": FORMAT, "kind": kind, "key": key, "digest": digest, "signature": signature})


def _parse_document(document: str | bytes) -> dict[str, str]:
    """Return the fields of a signature document, which are all texts; it has but one spelling."""
    if len(document) > MAX_SIGNATURE_BYTES:
        raise _format_error(f"it has {len(document)} bytes, and at most {MAX_SIGNATURE_BYTES} were expected")
    found = parse_json(document, refuse=_format_error)
    if type(found) is not dict or found.keys() != _FIELDS or not all(type(value) is str for value in found.values()):
        raise _format_error(f"expected the texts {', '.join(sorted(_FIELDS))} and nothing else")
    if mismatch := find_format_mismatch(found["format"], FORMAT):
        raise _format_error(*mismatch)
    text = document if isinstance(document, str) else document.decode("utf-8")
    if text != to_canonical_json(found):
        raise _format_error("it was written again by some other program, with other spaces or in another order")
    return found


def _format_error(reason: str, advice: str = _ADVICE) -> SignatureError:
    return SignatureError(f"this is not a signature of fedcdh: {reason}; {advice}")


def _public_key_bytes(public: str) -> bytes:
    """Return the 32 bytes of a public key; refuse a second spelling of a point, and points without a secret key."""
    if not public.startswith(_SCHEME):
        raise _format_error(f"a public key starts with {_SCHEME!r}")
    raw = _decode_base64(public.removeprefix(_SCHEME), 32, "public key")
    y = int.from_bytes(raw, "little") & ((1 << 255) - 1)
    if y >= _PRIME or y in _SMALL_ORDER:
        raise _format_error("its public key is one that nobody can own")
    return raw


def _decode_base64(text: str, length: int, what: str) -> bytes:
    try:
        raw = base64.b64decode(text.encode("ascii"), validate=True)
    except (UnicodeEncodeError, binascii.Error):
        raw = b""
    if len(raw) != length or base64.b64encode(raw).decode("ascii") != text:  # the last digit has bits to spare
        raise _format_error(f"its {what} is not the base64 of {length} bytes")
    return raw
