"""The ledger of a site as a file: one line of JSON for everything that left, each bound to the line before.

Three files lie beside each other, readable by their owner only:

- `releases.jsonl`: the first line says what it is and holds the secret of the sketches; every further line is a
  release, with its number, the time, the SHA-256 of the line before and, where the site has a key, its signature.
- `releases.jsonl.head`: how many lines there are, how many bytes, and the SHA-256 of the last. A ledger that was cut,
  or taken away, does not fit it.
- `releases.jsonl.lock`: whoever appends is alone.

A line is on disk, and the head after it, before anything leaves. So after a crash there is at most one line more than
the head knows of, whole or half. Half a line has no end, and nothing was sent: it is taken away. A whole one counts.
Everything else that does not fit is not repaired, and nothing leaves until people have looked at it.

Who may write to these files and deletes all of them, or puts older copies of all in their place, is not noticed.
"""

from __future__ import annotations

import base64
import hashlib
import os
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fedcdh._io.storage import hold_lock, read_regular_file, write_atomically
from fedcdh._io.strict_json import parse_json, to_canonical_json
from fedcdh.errors import LedgerError, SignatureError
from fedcdh.messages.signing import SigningKey, is_signed_by, sign_raw
from fedcdh.privacy.ledger.record import WITHDRAWN, Release

FORMAT = "fedcdh-releases-1"
LEDGER_FILE_NAME = "releases.jsonl"
MAX_LEDGER_BYTES = 1 << 28
"""Some eight thousand releases of ten variables."""
WITHDRAWABLE_KINDS = ("profile", "summary")
"""What a person can know never to have left. Answers and masked numbers have a memory of their own."""
MAX_REASON_LENGTH = 500
_RESTORE_ADVICE = "find out who changed it, and put a saved copy of both files back; nothing leaves before"
_PARSE_ERRORS = (ValueError, LookupError, TypeError, AttributeError)

LedgerCheck = Callable[[tuple["LedgerEntry", ...]], None]


def settings_folder() -> Path:
    """Where a user's own settings live."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "fedcdh"


def default_ledger() -> ReleaseLedger:
    """That of this user: one for all folders, so that no folder is a way around it, unless FEDCDH_LEDGER names one."""
    return ReleaseLedger(Path(os.environ.get("FEDCDH_LEDGER") or settings_folder() / LEDGER_FILE_NAME))


@dataclass(frozen=True)
class LedgerEntry:
    """A release as it stands in the ledger."""

    number: int
    time: str  # UTC
    release: Release
    key: str = ""  # the public key that signed it; "" if none did


@dataclass(frozen=True)
class ReleaseLedger:
    """The ledger in a file of this site; made when it is first needed.

    >>> import tempfile
    >>> ledger = ReleaseLedger(Path(tempfile.mkdtemp()) / "releases.jsonl")
    >>> ledger.record(Release("noisy", "north", "", "0" * 64, 500, 0, epsilon=0.5, delta=1e-6))
    1
    >>> [(entry.number, entry.release.kind, entry.release.epsilon) for entry in ledger.entries()]
    [(1, 'noisy', 0.5)]
    """

    path: Path

    def secret(self) -> bytes:
        """What the sketches of this ledger are made with."""
        with self._alone():
            return self._read().secret

    def entries(self) -> tuple[LedgerEntry, ...]:
        """All that left, oldest first; LedgerError if the ledger is not as it was written."""
        if not os.path.lexists(self.path) and not os.path.lexists(self.head):
            return ()
        with self._alone():
            return self._read().entries

    def record(self, release: Release, check: LedgerCheck | None = None, key: SigningKey | None = None) -> int:
        """Notes a release, on disk and for good, before it leaves; its number in the ledger.

        `check` is called with all earlier entries and refuses by raising. What left before may leave again, unchecked:
        by the same plan it is not noted a second time, by another one it is, and counts for nothing.
        """
        with self._alone():
            known = self._read()
            again = _check_new_release(known, release, check)
            if same := [entry.number for entry in again if entry.release.plan == release.plan]:
                return same[0]
            self._append(known, release.without_load() if again else release, key)
            return len(known.entries) + 1

    def ask(self, release: Release, check: LedgerCheck | None = None) -> None:
        """Refuses what `record` would refuse, and notes nothing."""
        with self._alone():
            _check_new_release(self._read(), release, check)

    def withdraw(self, number: int, reason: str, key: SigningKey | None = None) -> int:
        """Notes that a profile or a summary never left: it counts no more, and both lines stay."""
        with self._alone():
            known = self._read()
            found = {entry.number: entry.release for entry in find_active_entries(known.entries)}.get(number)
            if found is None or found.kind not in WITHDRAWABLE_KINDS:
                raise LedgerError(
                    f"release {number} cannot be withdrawn: expected the number of a profile or a summary that is in "
                    f"{self.path} and was not withdrawn before (fedcdh ledger show)"
                )
            if not reason.strip() or len(reason) > MAX_REASON_LENGTH:
                raise LedgerError(f"say in 1 to {MAX_REASON_LENGTH} letters why release {number} never left")
            about = {"number": number, "reason": reason.strip()}
            self._append(known, Release(WITHDRAWN, found.client, found.plan, found.digest, 0, 0, about=about), key)
            return len(known.entries) + 1

    @property
    def head(self) -> Path:
        """The file that knows how far the ledger goes."""
        return self.path.with_name(f"{self.path.name}.head")

    def _append(self, known: _LedgerContent, release: Release, key: SigningKey | None) -> None:
        said = {
            "number": len(known.entries) + 1,
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
            "before": known.last,
            **release.to_document(),
        }
        line = _to_line(_sign_line(said, key))
        if known.size + len(line) > MAX_LEDGER_BYTES:
            raise self._broken(f"with this release it would have more than {MAX_LEDGER_BYTES} bytes", _ARCHIVE_ADVICE)
        with self.path.open("ab", buffering=0) as file:
            _write_all(file.fileno(), line)
            os.fsync(file.fileno())
        self._write_head(len(known.entries) + 1, known.size + len(line), _hash_line(line))

    def _write_head(self, lines: int, size: int, last: str) -> None:
        document = {"format": FORMAT, "releases": lines, "bytes": size, "last": last}
        write_atomically(self.head, to_canonical_json(document), private=True)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Two releases at once must not both be the last one allowed; what the disk refuses, nothing leaves for."""
        try:
            with hold_lock(self.path.with_name(f"{self.path.name}.lock")):
                yield
        except OSError as problem:
            raise LedgerError(
                f"the ledger {self.path} cannot be read or written ({problem.strerror or problem}), so nothing leaves; "
                "make its folder writable, or name another place with --ledger or FEDCDH_LEDGER"
            ) from None

    def _read(self) -> _LedgerContent:
        """The ledger as it is, made or mended if it has to be and may be."""
        if not os.path.lexists(self.path):
            self._begin()
        content = read_regular_file(self.path, MAX_LEDGER_BYTES, "the ledger of what left", refuse=self._foreign)
        known = self._parsed(content)
        if not self.head.exists() and not known.entries and not known.rest:
            self._write_head(0, known.size, known.last)  # begun, and interrupted before anything left
        lines, size, last = self._read_head()
        if lines > len(known.entries) or size > known.size:
            raise self._broken(
                f"{lines} releases were noted, and {len(known.entries)} are there: it was cut", _RESTORE_ADVICE
            )
        at_head = known.up_to(lines)
        if (at_head.size, at_head.last) != (size, last) or len(known.entries) > lines + 1:
            raise self._broken("its lines are not those that its head knows", _RESTORE_ADVICE)
        if known.rest and len(known.entries) > lines:
            raise self._broken("there is more in it than one interrupted release can have left", _RESTORE_ADVICE)
        if known.rest:
            os.truncate(self.path, known.size)
        if len(known.entries) > lines:
            self._write_head(len(known.entries), known.size, known.last)
        return known

    def _begin(self) -> None:
        if self.head.exists():
            raise self._broken("it is gone, but its head is still there", _RESTORE_ADVICE)
        secret = base64.b64encode(secrets.token_bytes(32)).decode("ascii")
        write_atomically(self.path, _to_line({"format": FORMAT, "secret": secret}), private=True)

    def _read_head(self) -> tuple[int, int, str]:
        if not self.head.exists():
            raise self._broken(f"{self.head.name}, which tells whether it is whole, is gone", _RESTORE_ADVICE)

        def refuse(reason: str) -> LedgerError:
            return self._broken(f"{self.head.name} is not its head ({reason})", _RESTORE_ADVICE)

        found = parse_json(read_regular_file(self.head, 1024, "the head of a ledger", refuse=refuse), refuse=refuse)
        if type(found) is not dict or set(found) != {"format", "releases", "bytes", "last"}:
            raise refuse("it says something else")
        whole = type(found["releases"]) is type(found["bytes"]) is int and found["releases"] >= 0
        if found["format"] != FORMAT or not whole:
            raise refuse("it says something else")
        return found["releases"], found["bytes"], str(found["last"])

    def _parsed(self, content: bytes) -> _LedgerContent:
        *lines, rest = content.split(b"\n")
        if not lines:
            raise self._foreign("its first line has no end")
        secret = self._secret_in(lines[0])
        entries, marks = list[LedgerEntry](), [(len(lines[0]) + 1, _hash_line(lines[0] + b"\n"))]
        for number, line in enumerate(lines[1:], start=1):
            size, before = marks[-1]
            entries.append(self._entry(line, number, before))
            marks.append((size + len(line) + 1, _hash_line(line + b"\n")))
        return _LedgerContent(secret, tuple(entries), tuple(marks), rest)

    def _secret_in(self, line: bytes) -> bytes:
        found = parse_json(line, refuse=self._foreign)
        if type(found) is not dict or found.get("format") != FORMAT or set(found) != {"format", "secret"}:
            raise self._foreign(f"it does not say that its format is {FORMAT!r}")
        try:
            return base64.b64decode(found["secret"], validate=True)
        except _PARSE_ERRORS:
            raise self._foreign("its first line holds no secret") from None

    def _entry(self, line: bytes, number: int, before: str) -> LedgerEntry:
        def refuse(reason: str) -> LedgerError:
            return self._broken(f"line {number + 1} was changed ({reason})", _RESTORE_ADVICE)

        found = parse_json(line, refuse=refuse)
        try:
            if to_canonical_json(found).encode("utf-8") != line:
                raise refuse("it is not written the way this program writes one")
            if (found["number"], found["before"]) != (number, before):
                raise refuse("it does not follow the line before it")
            if not _is_signature_valid(found):
                raise refuse("its signature is false")
            return LedgerEntry(number, str(found["time"]), Release.from_document(found), str(found.get("key", "")))
        except _PARSE_ERRORS:
            raise refuse("it is no release") from None

    def _foreign(self, reason: str) -> LedgerError:
        """Where there is a head, it was a ledger: another one in its place would know of nothing that left."""
        advice = _RESTORE_ADVICE if self.head.exists() else "name the right file with --ledger"
        return self._broken(f"it is not a ledger of fedcdh: {reason}", advice)

    def _broken(self, reason: str, advice: str) -> LedgerError:
        return LedgerError(f"the ledger {self.path} cannot be used, so nothing leaves: {reason}; {advice}")


def find_active_entries(entries: Iterable[LedgerEntry]) -> tuple[LedgerEntry, ...]:
    """The releases that count: without those that were withdrawn, and without the lines that say so."""
    entries = tuple(entries)
    gone = {entry.release.about["number"] for entry in entries if entry.release.kind == WITHDRAWN}
    return tuple(entry for entry in entries if entry.release.kind != WITHDRAWN and entry.number not in gone)


def _check_new_release(known: _LedgerContent, release: Release, check: LedgerCheck | None) -> list[LedgerEntry]:
    """Entries that told the same already; where there are none, `check` may refuse."""
    counted = find_active_entries(known.entries)
    again = [entry for entry in counted if release.repeats(entry.release)]
    if not again and check is not None:
        check(counted)
    return again


_ARCHIVE_ADVICE = (
    "after asking who is responsible for data protection, keep it and its head in an archive, and name another file "
    "with --ledger"
)


@dataclass(frozen=True)
class _LedgerContent:
    """What was read: after the first line and after every release, how many bytes there were, and their digest."""

    secret: bytes
    entries: tuple[LedgerEntry, ...]
    marks: tuple[tuple[int, str], ...]
    rest: bytes  # what follows the last end of a line

    @property
    def size(self) -> int:
        return self.marks[-1][0]

    @property
    def last(self) -> str:
        return self.marks[-1][1]

    def up_to(self, releases: int) -> _LedgerContent:
        return _LedgerContent(self.secret, self.entries[:releases], self.marks[: releases + 1], b"")


def _sign_line(said: dict[str, Any], key: SigningKey | None) -> dict[str, Any]:
    if key is None:
        return said
    said = {**said, "key": key.public}
    signature = sign_raw(key, "release", to_canonical_json(said).encode("utf-8"))
    return {**said, "signature": base64.b64encode(signature).decode("ascii")}


def _is_signature_valid(found: dict[str, Any]) -> bool:
    """Whether the line is signed by the key it names, or names none."""
    if "key" not in found and "signature" not in found:
        return True
    said = {name: value for name, value in found.items() if name != "signature"}
    signature = base64.b64decode(found["signature"], validate=True)
    try:
        return is_signed_by(found["key"], "release", to_canonical_json(said).encode("utf-8"), signature)
    except SignatureError:  # what it names is no key
        return False


def _to_line(document: dict[str, Any]) -> bytes:
    return to_canonical_json(document).encode("utf-8") + b"\n"


def _hash_line(line: bytes) -> str:
    return hashlib.sha256(line).hexdigest()


def _write_all(handle: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(handle, rest) :]
