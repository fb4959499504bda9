"""The ledger of a site as a file: one line of JSON for each release, chained by digests.

Three files lie side by side, readable by their owner only:

- `releases.jsonl`: the first line names the format and holds the secret of the sketches. Every further line is a
  release with its number, its time, the SHA-256 of the line before and, if the site has a key, its signature.
- `releases.jsonl.head`: the number of releases, the number of bytes, and the SHA-256 of the last line. A ledger that
  was cut or removed does not agree with it.
- `releases.jsonl.lock`: held by the one process that appends.

A line, and then the head, are on disk before anything leaves. After a crash there is therefore at most one line more
than the head counts, whole or partial. A partial line was never sent and is removed; a whole one counts. Any other
disagreement is not repaired, and nothing leaves until somebody has looked at it.

Limit: if somebody with write access deletes all three files, or restores older copies of all, nobody notices.
"""

from __future__ import annotations

import base64
import os
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from fedcdh._io.storage import hold_lock, read_regular_file, write_atomically
from fedcdh._io.strict_json import parse_json, to_canonical_json
from fedcdh.errors import LedgerError
from fedcdh.messages.signing import SigningKey
from fedcdh.privacy.ledger._ledger_lines import (
    LedgerContent,
    hash_line,
    is_signature_valid,
    sign_line,
    to_line,
    write_all,
)
from fedcdh.privacy.ledger.record import WITHDRAWN, LedgerEntry, Release

FORMAT = "fedcdh-releases-3"
EARLIER_FORMATS = ("fedcdh-releases-1", "fedcdh-releases-2")
LEDGER_FILE_NAME = "releases.jsonl"
MAX_LEDGER_BYTES = 1 << 28
"""Room for about eight thousand releases of ten variables."""
WITHDRAWABLE_KINDS = ("profile", "summary")
"""Releases of which a person can know that they never left. Answers and masked summaries are sent by a program."""
MAX_REASON_LENGTH = 500
_RESTORE_ADVICE = (
    "Find out who changed it, and restore a backup of both files (the ledger and its head). Nothing leaves before that"
)
_ARCHIVE_ADVICE = (
    "Ask the person responsible for data protection; then keep the ledger and its head in an archive, and name a new "
    "file with --ledger or FEDCDH_LEDGER"
)
_PARSE_ERRORS = (ValueError, LookupError, TypeError, AttributeError)

LedgerCheck = Callable[[tuple[LedgerEntry, ...]], None]
"""Called with the active entries of a ledger; raises an error to refuse a release."""


def settings_folder() -> Path:
    """Return the folder of this user's settings."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "fedcdh"


def default_ledger() -> ReleaseLedger:
    """Return this user's ledger: one for all folders, so that changing the folder does not evade it.

    The environment variable FEDCDH_LEDGER names another file.

    Returns
    -------
    ReleaseLedger
        The ledger in `releases.jsonl` of the user's settings folder.

    Examples
    --------
    >>> default_ledger().path.name
    'releases.jsonl'
    """
    return ReleaseLedger(Path(os.environ.get("FEDCDH_LEDGER") or settings_folder() / LEDGER_FILE_NAME))


@dataclass(frozen=True)
class ReleaseLedger:
    """The ledger of a site: everything that left it, in an append-only file.

    The file is created when it is first needed.

    Parameters
    ----------
    path : Path
        Where the ledger is, or will be.

    Examples
    --------
    >>> import tempfile
    >>> ledger = ReleaseLedger(Path(tempfile.mkdtemp()) / "releases.jsonl")
    >>> ledger.record(Release("noisy", "north", "", "0" * 64, 500, 0, epsilon=0.5, delta=1e-6))
    1
    >>> [(entry.number, entry.release.kind, entry.release.epsilon) for entry in ledger.entries()]
    [(1, 'noisy', 0.5)]
    """

    path: Path

    def secret(self) -> bytes:
        """Return the secret key of this ledger's sketches.

        Returns
        -------
        bytes
            32 random bytes, made together with the ledger.

        Raises
        ------
        LedgerError
            If the ledger cannot be read, or was changed.
        """
        with self._locked():
            return self._read().secret

    def entries(self) -> tuple[LedgerEntry, ...]:
        """Return all entries, oldest first.

        Returns
        -------
        tuple of LedgerEntry
            The releases, and the withdrawals among them; see `find_active_entries`.

        Raises
        ------
        LedgerError
            If the ledger cannot be read, or was changed.
        """
        if not os.path.lexists(self.path) and not os.path.lexists(self.head):
            return ()
        with self._locked():
            return self._read().entries

    def record(
        self,
        release: Release,
        check: LedgerCheck | None = None,
        key: SigningKey | None = None,
        *,
        check_repeats: LedgerCheck | None = None,
    ) -> int:
        """Record a release on disk, before it leaves.

        A release that repeats an earlier one adds nothing. By the same plan it is not recorded a second time; by
        another plan it is recorded with a load of zero.

        Parameters
        ----------
        release : Release
            What is to leave.
        check : callable, optional
            Called with the active entries, unless the release repeats one of them; refuses the release by raising.
        key : SigningKey, optional
            Signs the entry.
        check_repeats : callable, optional
            Called with the active entries in any case; refuses the release by raising.

        Returns
        -------
        int
            Number of the entry.

        Raises
        ------
        LedgerError
            If the ledger cannot be read or written, or was changed.
        """
        with self._locked():
            content = self._read()
            repeated = _check_new_release(content, release, check, check_repeats)
            if same := [entry.number for entry in repeated if entry.release.plan == release.plan]:
                return same[0]
            self._append(content, release.without_load() if repeated else release, key)
            return len(content.entries) + 1

    def check(
        self, release: Release, check: LedgerCheck | None = None, *, check_repeats: LedgerCheck | None = None
    ) -> None:
        """Refuse what `record` would refuse, and record nothing.

        Parameters
        ----------
        release : Release
            What would leave.
        check, check_repeats : callable, optional
            As in `record`.

        Raises
        ------
        LedgerError
            If the ledger cannot be read, or was changed.
        """
        with self._locked():
            _check_new_release(self._read(), release, check, check_repeats)

    def withdraw(self, number: int, reason: str, key: SigningKey | None = None) -> int:
        """Record that a profile or a summary was never sent, so that it no longer counts.

        Both lines stay in the ledger.

        Parameters
        ----------
        number : int
            Number of the entry.
        reason : str
            Why it was never sent, in 1 to 500 characters.
        key : SigningKey, optional
            Signs the withdrawal.

        Returns
        -------
        int
            Number of the entry that withdraws the release.

        Raises
        ------
        LedgerError
            If there is no such profile or summary, or no reason is given.
        """
        with self._locked():
            content = self._read()
            found = {entry.number: entry.release for entry in find_active_entries(content.entries)}.get(number)
            if found is None or found.kind not in WITHDRAWABLE_KINDS:
                raise LedgerError(
                    f"Release {number} cannot be withdrawn. Expected the number of a profile or a summary that is in "
                    f"{self.path} and was not withdrawn before. List the releases with: fedcdh ledger show"
                )
            if not reason.strip() or len(reason) > MAX_REASON_LENGTH:
                raise LedgerError(
                    f"The reason has {len(reason.strip())} characters, expected 1 to {MAX_REASON_LENGTH}. Say why "
                    f"release {number} never left",
                    parameter="reason",
                )
            details = {"number": number, "reason": reason.strip()}
            withdrawal = Release(WITHDRAWN, found.client, found.plan, found.digest, 0, 0, details=details)
            self._append(content, withdrawal, key)
            return len(content.entries) + 1

    @property
    def head(self) -> Path:
        """Path of the file that knows how long the ledger is."""
        return self.path.with_name(f"{self.path.name}.head")

    def _append(self, content: LedgerContent, release: Release, key: SigningKey | None) -> None:
        document = {
            "number": len(content.entries) + 1,
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
            "previous": content.last,
            **release.to_document(),
        }
        line = to_line(sign_line(document, key))
        if content.size + len(line) > MAX_LEDGER_BYTES:
            raise self._unusable(
                f"With this release it would have {content.size + len(line)} bytes, expected at most "
                f"{MAX_LEDGER_BYTES}",
                _ARCHIVE_ADVICE,
            )
        with self.path.open("ab", buffering=0) as file:
            write_all(file.fileno(), line)
            os.fsync(file.fileno())
        self._write_head(len(content.entries) + 1, content.size + len(line), hash_line(line))

    def _write_head(self, n_releases: int, size: int, last: str) -> None:
        document = {"format": FORMAT, "releases": n_releases, "bytes": size, "last": last}
        write_atomically(self.head, to_canonical_json(document), private=True)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the lock of the ledger, so that of two releases at once each sees the other."""
        try:
            with hold_lock(self.path.with_name(f"{self.path.name}.lock")):
                yield
        except OSError as problem:
            raise LedgerError(
                f"The ledger {self.path} cannot be read or written ({problem.strerror or problem}), so nothing "
                "leaves. Expected a folder with room that this user may write to. Delete other files there, change its "
                "permissions, or name another place with --ledger or FEDCDH_LEDGER"
            ) from None

    def _read(self) -> LedgerContent:
        """Read the ledger; create it if there is none, and repair what a crash may leave."""
        if not os.path.lexists(self.path):
            self._create()
        content = read_regular_file(self.path, MAX_LEDGER_BYTES, "the ledger of releases", refuse=self._foreign)
        known = self._parse(content)
        if not self.head.exists() and not known.entries and not known.rest:
            self._write_head(0, known.size, known.last)  # created, and interrupted before anything left
        n_releases, size, last = self._read_head()
        if n_releases > len(known.entries) or size > known.size:
            raise self._unusable(
                f"It has {len(known.entries)} releases, expected the {n_releases} that its head counts: it was cut",
                _RESTORE_ADVICE,
            )
        at_head = known.up_to(n_releases)
        if (at_head.size, at_head.last) != (size, last) or len(known.entries) > n_releases + 1:
            raise self._unusable("Its lines do not agree with its head", _RESTORE_ADVICE)
        if known.rest and len(known.entries) > n_releases:
            raise self._unusable("It has more lines than one interrupted release can have left", _RESTORE_ADVICE)
        if known.rest:
            os.truncate(self.path, known.size)
        if len(known.entries) > n_releases:
            self._write_head(len(known.entries), known.size, known.last)
        return known

    def _create(self) -> None:
        if self.head.exists():
            raise self._unusable("It is missing, but its head is still there", _RESTORE_ADVICE)
        secret = base64.b64encode(secrets.token_bytes(32)).decode("ascii")
        write_atomically(self.path, to_line({"format": FORMAT, "secret": secret}), private=True)

    def _read_head(self) -> tuple[int, int, str]:
        if not self.head.exists():
            raise self._unusable(f"Its head, {self.head.name}, is missing", _RESTORE_ADVICE)

        def refuse(reason: str) -> LedgerError:
            return self._unusable(f"{self.head.name} is not its head ({reason})", _RESTORE_ADVICE)

        found = parse_json(read_regular_file(self.head, 1024, "the head of a ledger", refuse=refuse), refuse=refuse)
        if type(found) is not dict or set(found) != {"format", "releases", "bytes", "last"}:
            raise refuse("its fields are not those of a head")
        is_whole = type(found["releases"]) is type(found["bytes"]) is int and found["releases"] >= 0
        if found["format"] != FORMAT or not is_whole:
            raise refuse("its format or its numbers are not those of a head")
        return found["releases"], found["bytes"], str(found["last"])

    def _parse(self, content: bytes) -> LedgerContent:
        *lines, rest = content.split(b"\n")
        if not lines:
            raise self._foreign("its first line has no end")
        secret = self._parse_first_line(lines[0])
        entries, marks = list[LedgerEntry](), [(len(lines[0]) + 1, hash_line(lines[0] + b"\n"))]
        for number, line in enumerate(lines[1:], start=1):
            size, previous = marks[-1]
            entries.append(self._parse_entry(line, number, previous))
            marks.append((size + len(line) + 1, hash_line(line + b"\n")))
        return LedgerContent(secret, tuple(entries), tuple(marks), rest)

    def _parse_first_line(self, line: bytes) -> bytes:
        found = parse_json(line, refuse=self._foreign)
        if type(found) is dict and found.get("format") in EARLIER_FORMATS:
            raise self._outdated(found["format"])
        if type(found) is not dict or found.get("format") != FORMAT or set(found) != {"format", "secret"}:
            raise self._foreign(f"it does not say that its format is {FORMAT!r}")
        try:
            return base64.b64decode(found["secret"], validate=True)
        except _PARSE_ERRORS:
            raise self._foreign("its first line holds no secret") from None

    def _parse_entry(self, line: bytes, number: int, previous: str) -> LedgerEntry:
        def refuse(reason: str) -> LedgerError:
            return self._unusable(f"Line {number + 1} was changed ({reason})", _RESTORE_ADVICE)

        found = parse_json(line, refuse=refuse)
        try:
            if to_canonical_json(found).encode("utf-8") != line:
                raise refuse("it is not in canonical form")
            if (found["number"], found["previous"]) != (number, previous):
                raise refuse("it does not follow the line before it")
            if not is_signature_valid(found):
                raise refuse("its signature is false")
            return LedgerEntry(number, str(found["time"]), Release.from_document(found), str(found.get("key", "")))
        except _PARSE_ERRORS:
            raise refuse("it is not a release") from None

    def _outdated(self, found: str) -> LedgerError:
        """Refuse a ledger of an earlier format without changing it: it still knows what left."""
        return LedgerError(
            f"The ledger {self.path} has the format {found!r} of an earlier version of fedcdh. Expected {FORMAT!r}. "
            "Nothing was changed, and nothing leaves. Move the ledger, its head and its lock to an archive and keep "
            "them: they are the only record of what left. This version cannot compare new releases with them. So "
            "begin a new ledger only for rows that were never released, or after the person responsible for data "
            "protection has agreed; otherwise go on with the earlier version of fedcdh"
        )

    def _foreign(self, reason: str) -> LedgerError:
        """Refuse a file that is not a ledger. Where there is a head it was one, and must not be replaced."""
        advice = _RESTORE_ADVICE if self.head.exists() else "Name the right file with --ledger"
        return self._unusable(f"It is not a ledger of fedcdh: {reason}", advice)

    def _unusable(self, reason: str, advice: str) -> LedgerError:
        return LedgerError(f"The ledger {self.path} cannot be used, so nothing leaves. {reason}. {advice}")


@dataclass(frozen=True)
class AbsentLedger(ReleaseLedger):
    """A ledger that does not exist yet, for dry runs: nothing has left, and no file is made.

    Parameters
    ----------
    path : Path
        Where the ledger would be.

    Examples
    --------
    >>> AbsentLedger(Path("releases.jsonl")).entries()
    ()
    """

    drawn: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)

    def secret(self) -> bytes:
        """Return a secret key, which is not kept.

        Returns
        -------
        bytes
            32 random bytes.
        """
        return self.drawn

    def entries(self) -> tuple[LedgerEntry, ...]:
        """Return no entries.

        Returns
        -------
        tuple of LedgerEntry
            None of them.
        """
        return ()

    def check(
        self, release: Release, check: LedgerCheck | None = None, *, check_repeats: LedgerCheck | None = None
    ) -> None:
        """Refuse what a new ledger would refuse.

        Parameters
        ----------
        release : Release
            What would leave.
        check, check_repeats : callable, optional
            As in `record`.
        """
        for one in (check_repeats, check):
            if one is not None:
                one(())


def find_active_entries(entries: Iterable[LedgerEntry]) -> tuple[LedgerEntry, ...]:
    """Return the releases that count: neither withdrawn nor a withdrawal.

    Parameters
    ----------
    entries : iterable of LedgerEntry
        Entries of one ledger.

    Returns
    -------
    tuple of LedgerEntry
        The active entries, in their order.

    Examples
    --------
    >>> entry = LedgerEntry(1, "2026-01-01", Release("profile", "north", "", "0" * 64, 500, 12))
    >>> gone = LedgerEntry(2, "2026-01-02", Release("withdrawn", "north", "", "0" * 64, 0, 0, details={"number": 1}))
    >>> find_active_entries([entry]) == (entry,)
    True
    >>> find_active_entries([entry, gone])
    ()
    """
    entries = tuple(entries)
    withdrawn = {entry.release.details["number"] for entry in entries if entry.release.kind == WITHDRAWN}
    return tuple(entry for entry in entries if entry.release.kind != WITHDRAWN and entry.number not in withdrawn)


def _check_new_release(
    content: LedgerContent, release: Release, check: LedgerCheck | None, check_repeats: LedgerCheck | None
) -> list[LedgerEntry]:
    """Return the entries that the release repeats; call the checks that apply."""
    active = find_active_entries(content.entries)
    if check_repeats is not None:
        check_repeats(active)
    repeated = [entry for entry in active if release.repeats(entry.release)]
    if not repeated and check is not None:
        check(active)
    return repeated
