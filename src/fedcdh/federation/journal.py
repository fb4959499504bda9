"""The files that a coordinator has received, in the formats of a study by file, so that its commands open them.

A coordinator that is started again continues from these files. A file is written after its signature, and the address
of a client after its profile, so an interrupted write leaves nothing that counts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from fedcdh._io.storage import read_regular_file, write_atomically
from fedcdh._io.strict_json import parse_json
from fedcdh._io.text import to_readable_json
from fedcdh.errors import FedCDHError, SettingsError
from fedcdh.messages.round_files import ANSWER_SUFFIX, MAX_TEXT_BYTES, REQUEST_FILE_NAME, read_requests
from fedcdh.messages.signing import MAX_SIGNATURE_BYTES
from fedcdh.summaries.joint.round_budget import FurtherRequest
from fedcdh.summaries.plan import StudyPlan

PLAN_FILE = "study.plan.json"
ADDRESSES_FILE = "sites.json"
ROUNDS_FOLDER = "rounds"
SUFFIXES = {"profile": ".profile.json", "summary": ".summary", "answer": ANSWER_SUFFIX}
MAX_ADDRESSES_BYTES = 1 << 24
_MAX_FILE_NAME = 100
"""Length of a file name that every file system accepts, with suffixes added."""


@dataclass(frozen=True)
class StoredFile:
    """A file and its signature document, which is empty if there is none."""

    content: bytes
    signature: bytes = b""


@dataclass(frozen=True)
class Journal:
    """The folder of one study."""

    folder: Path

    def load_addresses(self) -> dict[str, str]:
        """Return the address of every client whose profile is here."""
        path = self.folder / ADDRESSES_FILE
        if not path.exists():
            return {}
        text = read_regular_file(path, MAX_ADDRESSES_BYTES, "the addresses of clients")
        found: Any = parse_json(text, refuse=self._error)
        if not isinstance(found, dict) or not all(isinstance(address, str) for address in found.values()):
            raise self._error(f"{ADDRESSES_FILE} does not hold addresses")
        return found

    def store_addresses(self, addresses: dict[str, str]) -> None:
        """Replace all addresses."""
        write_atomically(self.folder / ADDRESSES_FILE, to_readable_json(addresses))

    def path(self, kind: str, client: str, number: int = 0) -> Path:
        """Return the path of a client's file, which is inside the folder whatever the name of the client.

        The answers of further rounds carry the number of their request.
        """
        folder = self.folder / ROUNDS_FOLDER if number else self.folder
        return folder / f"{safe_file_name(client)}{SUFFIXES[kind].format(number)}"

    def load(self, kind: str, client: str, max_bytes: int, number: int = 0) -> StoredFile | None:
        """Return the file that a client sent; None if it is not here."""
        return self._load(self.path(kind, client, number), max_bytes)

    def store(self, kind: str, client: str, file: StoredFile, number: int = 0) -> None:
        """Write the file that a client sent."""
        self._store(self.path(kind, client, number), file)

    @contextmanager
    def naming_file(self, kind: str, client: str, number: int = 0) -> Iterator[None]:
        """Name the stored file in every error raised inside the context."""
        try:
            yield
        except FedCDHError as problem:
            path = self.path(kind, client, number)
            raise type(problem)(
                f"The stored file {path} cannot be used. {problem} Remove the file to request it again."
            ) from None

    def remove(self, kind: str, client: str, number: int = 0) -> None:
        """Remove the file that a client sent."""
        path = self.path(kind, client, number)
        path.unlink(missing_ok=True)
        _signature_path(path).unlink(missing_ok=True)

    def load_plan(self, max_bytes: int) -> StoredFile | None:
        """Return the plan that was sent to the clients; None if there is none yet."""
        return self._load(self.folder / PLAN_FILE, max_bytes)

    def store_plan(self, file: StoredFile) -> None:
        """Write the plan before any client receives it."""
        self._store(self.folder / PLAN_FILE, file)

    def load_requests(self, plan: StudyPlan) -> tuple[FurtherRequest, ...]:
        """Return all requests of further rounds."""
        return read_requests(self.folder / ROUNDS_FOLDER, plan)

    def load_request(self, number: int) -> StoredFile | None:
        """Return the request of a further round as it was sent; None if there is none."""
        return self._load(self.folder / ROUNDS_FOLDER / REQUEST_FILE_NAME.format(number), MAX_TEXT_BYTES)

    def store_request(self, number: int, file: StoredFile) -> None:
        """Write a request before any client receives it."""
        self._store(self.folder / ROUNDS_FOLDER / REQUEST_FILE_NAME.format(number), file)

    def _load(self, path: Path, max_bytes: int) -> StoredFile | None:
        if not path.exists():
            return None
        beside = _signature_path(path)
        signature = read_regular_file(beside, MAX_SIGNATURE_BYTES, "a signature") if beside.exists() else b""
        return StoredFile(read_regular_file(path, max_bytes, "a file of this study"), signature)

    def _store(self, path: Path, file: StoredFile) -> None:
        path.unlink(missing_ok=True)
        if file.signature:
            write_atomically(_signature_path(path), file.signature)
        else:
            _signature_path(path).unlink(missing_ok=True)
        write_atomically(path, file.content)

    def _error(self, reason: str) -> SettingsError:
        return SettingsError(
            f"The study in {self.folder} cannot be continued: {reason}. Expected the folder as the coordinator left "
            "it. Choose another folder for the result."
        )


def safe_file_name(client: str) -> str:
    """Return a file name for a client that every file system accepts and that stays in its folder.

    >>> safe_file_name("../north")
    '%2E%2E%2Fnorth'
    """
    name = quote(client, safe=" ").replace(".", "%2E")
    return name if len(name) <= _MAX_FILE_NAME else hashlib.sha256(client.encode()).hexdigest()


def _signature_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.sig")
