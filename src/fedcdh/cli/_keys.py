"""Keys and signatures in files: where they are looked for, and who signed what."""

from __future__ import annotations

import os
import sys
from getpass import getpass
from pathlib import Path

from fedcdh._io.storage import read_regular_file
from fedcdh.cli._console import Output, to_single_line
from fedcdh.cli._site_settings import KEY_FILE_NAME, find_in_current_folder, find_settings_file
from fedcdh.errors import SignatureError
from fedcdh.messages.signing import MAX_SIGNATURE_BYTES, SigningKey, is_private_file, key_fingerprint, verify
from fedcdh.privacy.ledger.ledger_file import settings_folder

MAX_KEY_BYTES = 1 << 20


def load_signing_key(given: Path | None, output: Output) -> SigningKey | None:
    """Return the key to sign with, if there is one.

    A key in the current folder is not used: the person who put it there may sign in this site's name.
    """
    found = find_settings_file(given, "--key", "FEDCDH_KEY", KEY_FILE_NAME)
    if (near := find_in_current_folder(KEY_FILE_NAME, found)) is not None:
        output.warn(
            f"{near} in this folder is not used, since files in a folder may have come from somebody else; if it is "
            f"yours, move it to {settings_folder() / KEY_FILE_NAME}, or name it with --key {near}",
            always=True,
        )
    return None if found is None else read_private_key(found.path, output)


def read_private_key(path: Path, output: Output) -> SigningKey:
    """Read a private key; its passphrase comes from FEDCDH_PASSPHRASE or from the terminal."""
    pem = read_regular_file(path, MAX_KEY_BYTES, "a private key", refuse=SignatureError)
    if not is_private_file(path):
        output.warn(f"other users may read the private key {path}; remove their rights with chmod 600 {path}")
    if b"ENCRYPTED" not in pem:
        return SigningKey.from_pem(pem)
    passphrase = os.environ.get("FEDCDH_PASSPHRASE")
    if passphrase is None and sys.stdin.isatty():
        passphrase = getpass(f"Passphrase of {path}: ")
    return SigningKey.from_pem(pem, passphrase)


def read_public_key(given: str) -> str:
    """Return a public key that was given as text or as a file."""
    if not given.startswith("ed25519:"):
        content = read_regular_file(Path(given), MAX_KEY_BYTES, "a public key", refuse=SignatureError)
        given = content.decode("utf-8", "replace").strip()
    key_fingerprint(given)  # refuses what is no key
    return given


def signature_path(path: Path) -> Path:
    """Return the place of a file's signature: beside it."""
    return path.with_name(path.name + ".sig")


def find_signer(path: Path, content: bytes, kind: str) -> str | None:
    """Return the public key that signed a file, or None if there is no signature beside it."""
    beside = signature_path(path)
    if not beside.exists():
        return None
    document = read_regular_file(beside, MAX_SIGNATURE_BYTES, "a signature", refuse=SignatureError)
    try:
        return verify(kind, content, document)
    except SignatureError as problem:
        raise SignatureError(f"{to_single_line(str(beside))}: {problem}") from None


def check_signer(path: Path, content: bytes, kind: str, expected: str | None) -> str | None:
    """Return the signer of a file; if the plan names a key for its sender, it has to be that one."""
    signer, shown = find_signer(path, content, kind), to_single_line(str(path))
    if expected is not None and signer is None:
        raise SignatureError(
            f"{shown} is not signed, but the plan names a key for its sender ({key_fingerprint(expected)}). "
            f"Ask the sender for {to_single_line(signature_path(path).name)} and put it beside the file."
        )
    if expected is not None and signer is not None and signer != expected:
        raise SignatureError(
            f"{shown} is signed by the key {key_fingerprint(signer)}. The plan names {key_fingerprint(expected)} for "
            "its sender. Ask the sender whether the key has changed, and make the plan again if so."
        )
    return signer


def describe_signature(signer: str | None) -> str:
    """Return "signed by ..." or "not signed"."""
    return "not signed" if signer is None else f"signed by {key_fingerprint(signer)}"
