"""What a coordinator has received, on disk: the files of a study by file, so that its commands open them.

A server that is started again goes on from here. A file comes after its signature, and the address of a site after
its profile: what is complete counts, and nothing else does.
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
from fedcdh.summaries.joint import JointRequest
from fedcdh.summaries.plan import StudyPlan

PLAN_FILE = "study.plan.json"
ADDRESSES_FILE = "sites.json"
ROUNDS_FOLDER = "rounds"
SUFFIXES = {"profile": ".profile.json", "summary": ".summary", "answer": ANSWER_SUFFIX}
_MAX_FILE_NAME = 100  # letters of a file's name that any file system takes, with endings


@dataclass(frozen=True)
class StoredFile:
    """A file and its signature document, which is empty where there is none."""

    content: bytes
    signature: bytes = b""


@dataclass(frozen=True)
class Journal:
    """The folder of one study."""

    folder: Path

    def sites(self) -> dict[str, str]:
        """The address of every client whose profile is here."""
        path = self.folder / ADDRESSES_FILE
        if not path.exists():
            return {}
        found: Any = parse_json(read_regular_file(path, 1 << 24, "the addresses of sites"), refuse=self._refuse)
        if not isinstance(found, dict) or not all(isinstance(address, str) for address in found.values()):
            raise self._refuse(f"{ADDRESSES_FILE} does not hold addresses")
        return found

    def write_addresses(self, sites: dict[str, str]) -> None:
        """Writes all addresses anew."""
        write_atomically(self.folder / ADDRESSES_FILE, to_readable_json(sites))

    def path(self, kind: str, client: str, number: int = 0) -> Path:
        """Where the file of a client is: never out of this folder, whatever it calls itself.

        Where there are several of a kind, answers, they have the numbers of requests.
        """
        folder = self.folder / ROUNDS_FOLDER if number else self.folder
        return folder / f"{safe_file_name(client)}{SUFFIXES[kind].format(number)}"

    def stored(self, kind: str, client: str, at_most: int, number: int = 0) -> StoredFile | None:
        """What a client sent, if it is here."""
        return self._stored(self.path(kind, client, number), at_most)

    def keep(self, kind: str, client: str, content: bytes, signature: bytes, number: int = 0) -> None:
        """Writes what a client sent."""
        self._keep(self.path(kind, client, number), StoredFile(content, signature))

    @contextmanager
    def naming_file(self, kind: str, client: str, number: int = 0) -> Iterator[None]:
        """What was stored is checked as if it came now."""
        try:
            yield
        except FedCDHError as problem:
            path = self.path(kind, client, number)
            raise type(problem)(f"{path}, which was stored, is no good ({problem}); remove it to ask again") from None

    def forget(self, kind: str, client: str, number: int = 0) -> None:
        """Removes what a client sent."""
        path = self.path(kind, client, number)
        path.unlink(missing_ok=True)
        _signature_path(path).unlink(missing_ok=True)

    def plan(self, at_most: int) -> StoredFile | None:
        """The plan that the sites were sent, if there is one yet."""
        return self._stored(self.folder / PLAN_FILE, at_most)

    def write_plan(self, content: bytes, signature: bytes) -> None:
        """Writes the plan before any site sees it."""
        self._keep(self.folder / PLAN_FILE, StoredFile(content, signature))

    def requests(self, plan: StudyPlan) -> tuple[JointRequest, ...]:
        """All that was asked in further rounds."""
        return read_requests(self.folder / ROUNDS_FOLDER, plan)

    def request(self, number: int) -> StoredFile | None:
        """A request of a further round as it was sent."""
        return self._stored(self.folder / ROUNDS_FOLDER / REQUEST_FILE_NAME.format(number), MAX_TEXT_BYTES)

    def keep_request(self, number: int, content: bytes, signature: bytes) -> StoredFile:
        """Writes a request before any site sees it."""
        self._keep(
            self.folder / ROUNDS_FOLDER / REQUEST_FILE_NAME.format(number), stored := StoredFile(content, signature)
        )
        return stored

    def _stored(self, path: Path, at_most: int) -> StoredFile | None:
        if not path.exists():
            return None
        beside = _signature_path(path)
        signature = read_regular_file(beside, MAX_SIGNATURE_BYTES, "a signature") if beside.exists() else b""
        return StoredFile(read_regular_file(path, at_most, "a file of this study"), signature)

    def _keep(self, path: Path, stored: StoredFile) -> None:
        path.unlink(missing_ok=True)
        if stored.signature:
            write_atomically(_signature_path(path), stored.signature)
        else:
            _signature_path(path).unlink(missing_ok=True)
        write_atomically(path, stored.content)

    def _refuse(self, reason: str) -> SettingsError:
        return SettingsError(f"{self.folder} cannot be continued ({reason}); choose another folder for the result")


def safe_file_name(client: str) -> str:
    """A name that any file system takes, and that leads nowhere else, for whatever a client calls itself."""
    name = quote(client, safe=" ").replace(".", "%2E")
    return name if len(name) <= _MAX_FILE_NAME else hashlib.sha256(client.encode()).hexdigest()


def _signature_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.sig")
