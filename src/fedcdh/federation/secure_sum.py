"""A masked sum of an online study: its rounds as messages, with those who are there.

Files are those of a sum by file (`fedcdh secure-sum run`), in a folder of the journal; a server that is started again goes on
from them, and asks only those whose answers are missing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fedcdh._io.storage import write_atomically
from fedcdh.errors import MessageFormatError
from fedcdh.federation.exchange import Transport, collect_replies
from fedcdh.federation.journal import StoredFile, safe_file_name
from fedcdh.federation.participation import Participation
from fedcdh.messages.envelope import MASKING, Envelope, RoundRequest
from fedcdh.messages.study_file import Study
from fedcdh.privacy.secure_aggregation.codec import read_message
from fedcdh.privacy.secure_aggregation.messages import SecAggRequest, SecAggTerms, ShareDelivery
from fedcdh.privacy.secure_aggregation.session import ReplyCheck, ReplyT, SessionFolder


@dataclass(frozen=True)
class SecureSumOptions:
    """How a masked sum is to be made: who has to open it, what stays together in it, and how often it was tried."""

    threshold: int | None = None  # None: more than two thirds of the sites
    groups: Mapping[str, str] = field(default_factory=dict)  # group of every client; empty: each by itself
    attempt: int = 1

    def terms(self, study: Study) -> SecAggTerms:
        """What the sites of this study are to agree to."""
        groups = {client: group for client, group in self.groups.items() if client in study.plan.clients}
        return SecAggTerms.of(study, threshold=self.threshold, groups=groups, attempt=self.attempt)


@dataclass(frozen=True)
class SecureSumRounds:
    """The sites of a study, by messages; who does not answer a round is not waited for in the next."""

    transport: Transport
    folder: SessionFolder
    record: Participation
    study: Study
    plan: StoredFile  # as it was sent
    sites: Mapping[str, str]  # addresses of clients
    timeout: float
    sign: Callable[[str, bytes], bytes]

    def announce(self, path: Path) -> None:
        """Nothing to be said: it is sent right away."""

    def answers(
        self, kind: type[ReplyT], request: SecAggRequest, clients: Collection[str], check: ReplyCheck
    ) -> dict[str, ReplyT]:
        """What was stored, and what those say who are asked now."""
        name = f"{MASKING} {request.kind}"
        found = {client: one for client, one in self.folder.replies(kind, check).items() if client in clients}
        for client in found:
            self.record.note(name, self.sites[client], "stored")

        def accept(site: str, reply: Envelope) -> ReplyT:
            answer = read_message(reply.content, self.study.plan, kind)
            if answer.client != self.record.clients[site]:
                raise MessageFormatError(f"the site of {self.record.clients[site]!r} answered as {answer.client!r}")
            check(answer)
            write_atomically(self._path(answer.client, kind), reply.content)
            return answer

        def withdraw(site: str) -> None:
            self._path(self.record.clients[site], kind).unlink(missing_ok=True)

        lacking = [client for client in clients if client not in found and client in self.sites]
        asked = {self.sites[client]: self._envelope(request, client) for client in lacking}
        got = collect_replies(
            self.transport, MASKING, asked, self.timeout, accept, self.record, withdraw=withdraw, round_=name
        )
        return found | {self.record.clients[site]: answer for site, answer in got.items()}

    def _envelope(self, request: SecAggRequest, client: str) -> bytes:
        """Each site gets the shares that are for it, and no others'."""
        own: Any = request.part_for(client) if isinstance(request, ShareDelivery) else request
        content = RoundRequest(own.to_bytes(), self.plan.content, self.plan.signature).to_bytes()
        return Envelope(MASKING, content, self.sign(MASKING, own.to_bytes())).to_bytes()

    def _path(self, client: str, kind: type[Any]) -> Path:
        return self.folder.folder / f"{safe_file_name(client)}.{kind.kind}"
