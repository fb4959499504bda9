"""Where keys, policies and signatures are looked for, and how files that came from others are opened."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from getpass import getpass
from glob import glob, has_magic
from pathlib import Path

from fedcdh._io.storage import read_regular_file, write_atomically
from fedcdh.cli._console import Output, to_single_line
from fedcdh.errors import FedCDHError, PlanError, SettingsError, SignatureError, SummaryFormatError
from fedcdh.messages.signing import MAX_SIGNATURE_BYTES, SigningKey, is_private_file, key_fingerprint, sign, verify
from fedcdh.messages.study_file import MAX_STUDY_BYTES, Study
from fedcdh.messages.summary_header import LENGTH_PREFIX
from fedcdh.privacy.disclosure.policy import Policy
from fedcdh.privacy.ledger import ReleaseLedger, default_ledger, settings_folder
from fedcdh.privacy.ledger.gate import ReleaseGate

MAX_HEAD_BYTES = 1 << 24
"""Bytes in which a file of ours says what it is: the formats of JSON files stand after other keys."""
MAX_SMALL_FILE_BYTES = 1 << 20
"""Bytes of files that people write: keys, policies, declarations."""


def _find_file(given: Path | None, variable: str, name: str) -> Path | None:
    """The file that was named, or the first of the usual places where there is one.

    What the user has set up comes before what lies in the folder: that may have come with somebody's files. What is
    there is meant, also where it is a link to nothing.
    """
    if given is not None:
        return given
    if os.environ.get(variable):
        return Path(os.environ[variable])
    return next((path for path in (settings_folder() / name, Path(name)) if os.path.lexists(path)), None)


def load_policy(given: Path | None, research: bool, output: Output) -> Policy:
    """The site's policy; without one, the safe defaults."""
    path = _find_file(given, "FEDCDH_POLICY", "policy.toml")
    policy = Policy()
    if path is not None:
        policy = Policy.from_file(path)
        output.say(f"Policy: {path}")
    if research or not policy.disclosure_control:
        output.warn("research, no privacy: no smallest numbers of rows or people; a summary says so", always=True)
    return replace(policy, disclosure_control=False) if research else policy


def load_signing_key(given: Path | None, output: Output) -> SigningKey | None:
    """The key to sign with, if there is one."""
    path = _find_file(given, "FEDCDH_KEY", "site.key")
    return None if path is None else read_private_key(path, output)


def open_gate(
    given: Path | None, key: SigningKey | None, output: Output | None = None, *, dry_run: bool = False
) -> ReleaseGate:
    """Where this site notes what leaves; the first time, it says where that is."""
    ledger = open_ledger(given)
    if dry_run:
        return ReleaseGate(ledger, key, dry_run=True)
    if output is not None and not os.path.lexists(ledger.path):
        output.say(f"From now on, what leaves this site is noted in {ledger.path}")
    return ReleaseGate(ledger, key)


def open_ledger(given: Path | None) -> ReleaseLedger:
    """The list of what has left this site."""
    return default_ledger() if given is None else ReleaseLedger(given)


def read_private_key(path: Path, output: Output) -> SigningKey:
    """The private key in a file; its passphrase comes from FEDCDH_PASSPHRASE or is asked for."""
    pem = read_regular_file(path, MAX_SMALL_FILE_BYTES, "a private key", refuse=SignatureError)
    if not is_private_file(path):
        output.warn(f"others may read the private key {path}; take their rights away (chmod 600 {path})")
    if b"ENCRYPTED" not in pem:
        return SigningKey.from_pem(pem)
    passphrase = os.environ.get("FEDCDH_PASSPHRASE")
    if passphrase is None and sys.stdin.isatty():
        passphrase = getpass(f"Passphrase of {path}: ")
    return SigningKey.from_pem(pem, passphrase)


def read_public_key(given: str) -> str:
    """A public key, or the one in a file."""
    if not given.startswith("ed25519:"):
        content = read_regular_file(Path(given), MAX_SMALL_FILE_BYTES, "a public key", refuse=SignatureError)
        given = content.decode("utf-8", "replace").strip()
    key_fingerprint(given)  # refuses what is no key
    return given


@contextmanager
def naming_file(path: Path) -> Iterator[None]:
    """Says which file a refusal is about."""
    try:
        yield
    except FedCDHError as problem:
        raise (
            problem if str(path) in str(problem) else type(problem)(f"{to_single_line(str(path))}: {problem}")
        ) from None


FORMAT_MARKERS = {
    "summary": b"fedcdh-summary-",
    "profile": b"fedcdh-profile-",
    "plan": b"fedcdh-study-",
    "report": b"fedcdh-report-",
    "request": b"fedcdh-request-",
    "answer": b"fedcdh-answer-",
    "masking": b'"format":"fedcdh-masking-1"',  # not what a site remembers, in which messages stand as texts
    "aggregate": b"fedcdh-aggregate-",
}

_RUNNING_SUM_PREFIX = b'{"__metadata__":{"fedcdh":"{\\"added\\":['
"""How the header of a sum in the making begins; what it is called stands behind a list of any length."""


def check_replaceable(path: Path, kind: str) -> None:
    """Refuses to write over anything but an older file of the same kind: a key, say, would be gone for good."""
    for place, mark in ((path, FORMAT_MARKERS[kind]), (signature_path(path), b"fedcdh-signature-")):
        if not os.path.lexists(place):
            continue
        if not place.is_file():
            raise SettingsError(f"{place} is there already and is not a file; choose another name with -o")
        with place.open("rb") as file:
            if mark not in file.read(MAX_HEAD_BYTES):
                raise SettingsError(f"{place} is something else and is not overwritten; choose another name with -o")


def refuse_running_sum(content: bytes) -> None:
    """Refuses a sum in the making, in place of what may be made of it."""
    if content.startswith(_RUNNING_SUM_PREFIX, LENGTH_PREFIX.size):
        raise SummaryFormatError(
            "this is a sum in the making, from which fedcdh add goes on; run that again, with --go-on to do without "
            "those who are missing, and use the sum that it writes"
        )


def default_file_name(client: str, ending: str) -> Path:
    """Where a client's file goes unless it is named: never out of this folder."""
    if Path(client).name != client or not client.isprintable() or client.strip(". ") == "":
        raise SettingsError(f"the client {client!r} is no name for a file; name the file with -o")
    return Path(client + ending)


def signature_path(path: Path) -> Path:
    """The signature stands beside its file."""
    return path.with_name(path.name + ".sig")


def write_signed(path: Path, content: bytes, kind: str, key: SigningKey | None) -> list[Path]:
    """Writes a file and, with a key, its signature; an older signature goes first, so that no wrong pair is left."""
    beside = signature_path(path)
    with naming_output(path):
        beside.unlink(missing_ok=True)
        write_atomically(path, content)
        if key is None:
            return [path]
        write_atomically(beside, sign(key, kind, content))
        return [path, beside]


@contextmanager
def naming_output(path: Path) -> Iterator[None]:
    """Says what could not be written: on a full disk the system names no file, elsewhere the draft of one."""
    try:
        yield
    except OSError as problem:
        problem.filename = str(path)
        raise


def find_signer(path: Path, content: bytes, kind: str) -> str | None:
    """The public key that signed this file, or None if there is no signature beside it."""
    beside = signature_path(path)
    if not beside.exists():
        return None
    document = read_regular_file(beside, MAX_SIGNATURE_BYTES, "a signature", refuse=SignatureError)
    try:
        return verify(kind, content, document)
    except SignatureError as problem:
        raise SignatureError(f"{to_single_line(str(beside))}: {problem}") from None


def check_signer(path: Path, content: bytes, kind: str, expected: str | None) -> str | None:
    """The signer, who has to be the expected one where one is expected."""
    signer, shown = find_signer(path, content, kind), to_single_line(str(path))
    if expected is not None and signer is None:
        raise SignatureError(
            f"{shown} is not signed, but the plan names a key for its sender ({key_fingerprint(expected)}); ask for "
            f"{to_single_line(signature_path(path).name)} and put it beside the file"
        )
    if expected is not None and signer is not None and signer != expected:
        raise SignatureError(
            f"{shown} is signed by the key {key_fingerprint(signer)}, not by {key_fingerprint(expected)}, which the plan names "
            "for its sender; ask the sender whether the key has changed, and make the plan again if so"
        )
    return signer


def read_study(path: Path) -> tuple[Study, str | None]:
    """The plan file, and the public key that signed it."""
    content = read_regular_file(path, MAX_STUDY_BYTES, "a plan file", refuse=PlanError)
    with naming_file(path):
        return Study.from_json(content), find_signer(path, content, "plan")


def read_trusted_study(path: Path, key: str | None, output: Output) -> Study:
    """The plan file, which has to be signed by this key if one is given; says who signed it."""
    study, signer = read_study(path)
    if key is not None and signer != (expected := read_public_key(key)):
        raise SignatureError(f"{path} is not signed by {key_fingerprint(expected)}; ask who made it")
    output.say(
        f"Plan {study.plan.fingerprint[:12]}, " + (f"signed by {key_fingerprint(signer)}." if signer else "not signed.")
    )
    return study


def expand_paths(patterns: list[Path], within: str = "") -> list[Path]:
    """The files that were named; patterns are resolved here where the shell does not, folders to what is `within`.

    As in a shell, hidden files are those that are named one by one: systems leave their own beside what they copy.
    """
    return [path for pattern in patterns for path in _expand_path(pattern, within)]


def _expand_path(pattern: Path, within: str) -> list[Path]:
    shown = to_single_line(str(pattern))
    if within and pattern.is_dir():
        found = sorted(path for path in pattern.glob(within) if not path.name.startswith("."))
        if not found:
            raise SettingsError(f"the folder {shown} holds no {within}; name another one, or single files")
        return found
    if pattern.exists() or not has_magic(str(pattern)):
        return [pattern]
    found = [Path(path) for path in sorted(glob(str(pattern), recursive=True))]  # noqa: PTH207 (may be absolute)
    if not found:
        raise SettingsError(f"no file fits {shown}; name files that are there, or their folder")
    return found
