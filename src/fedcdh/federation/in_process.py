"""A federation in one process: real sites, real messages, no network; to try a study, and to see who says what.

Sites may be made to fail as sites do, so that one can see what becomes of the study.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal, Unpack, get_args

from fedcdh.data.sources import ColumnKind
from fedcdh.data.table import Table, split_by_client
from fedcdh.discovery.settings import SearchOptions
from fedcdh.errors import ExitCode, SettingsError
from fedcdh.federation.coordinator import StudyOutcome, StudyTerms, conduct_study
from fedcdh.federation.journal import safe_file_name
from fedcdh.federation.planning.declaration import Declaration
from fedcdh.federation.secure_sum import SecureSumOptions
from fedcdh.federation.site import ClientNode
from fedcdh.federation.site_memory import Answered
from fedcdh.graphs.knowledge import NO_KNOWLEDGE, Knowledge
from fedcdh.messages.envelope import ANSWER, MASKING, PROFILE, REFUSAL, SUMMARY, Envelope, describe_round, sha256_hex
from fedcdh.messages.signing import SigningKey
from fedcdh.privacy.disclosure.policy import Policy
from fedcdh.privacy.secure_aggregation.messages import REQUEST_TYPES
from fedcdh.protocols import Progress

Fault = Literal["silent", "late", "repeated", "contradicting", "failed", "crashed", "garbled"]
"""Never answers; answers in the next round; the same twice; twice, not the same; with an error code; the network says
that it failed; with bytes that were changed on the way."""


@dataclass
class InProcessTransport:
    """A transport to sites in this process, one after the other; a fault belongs to a site and a round.

    Rounds are "profile", "summary", "answer" (all further ones) and "answer 1", "answer 2", ...
    """

    members: Mapping[str, ClientNode]
    faults: Mapping[tuple[str, str], Fault] = field(default_factory=dict)
    _late: list[tuple[str, bytes]] = field(default_factory=list)

    def sites(self, expected: int, timeout: float) -> Sequence[str]:
        """All of them are there from the start."""
        return list(self.members)

    def ask(self, requests: Mapping[str, bytes], timeout: float) -> Iterator[tuple[str, bytes | None]]:
        """What is late from the round before, then the answers, each made when it is fetched."""
        late, self._late = self._late, []
        yield from late
        for site, request in requests.items():
            asked = Envelope.from_bytes(request)
            fault = self.faults.get((site, describe_round(asked)), self.faults.get((site, asked.kind)))
            if fault == "silent":
                continue
            reply = self.members[site].answer(request)
            if fault == "late":
                self._late.append((site, reply))
            else:
                yield from ((site, one) for one in _deliver(reply, request, fault))


def _deliver(reply: bytes, request: bytes, fault: Fault | None) -> Iterator[bytes | None]:
    if fault == "failed":
        yield Envelope(REFUSAL, in_reply_to=sha256_hex(request), code=ExitCode.INTERNAL).to_bytes()
    elif fault == "crashed":
        yield None
    elif fault == "garbled":
        middle = len(reply) // 2
        yield reply[:middle] + bytes([reply[middle] ^ 1]) + reply[middle + 1 :]
    else:
        yield reply
    if fault == "repeated":
        yield reply
    elif fault == "contradicting":
        yield Envelope(REFUSAL, in_reply_to=sha256_hex(request), code=ExitCode.INTERNAL).to_bytes()


def simulate_federation(
    data: Any,
    *,
    domain: str | None = None,
    names: Sequence[str] | None = None,
    variables: Sequence[str] | None = None,
    kinds: Mapping[str, ColumnKind] | None = None,
    knowledge: Knowledge | None = None,
    max_missing_share: float = 0.5,
    accept_differences: Collection[str] = (),
    policy: Policy | Mapping[str, Policy] | None = None,
    faults: Mapping[tuple[str, str], Fault] | None = None,
    minimum: int = 1,
    masked: SecureSumOptions | None = None,
    folder: Path | str | None = None,
    progress: Progress | None = None,
    **search: Unpack[SearchOptions],
) -> StudyOutcome:
    """The same result as `discover`, byte for byte, by way of all the messages of an online study.

    Data and settings (method, alpha, knowledge, max_conditioning_size, seed, rounds) are those of `discover`. Besides,

    - `policy`: of all sites, or of each; without one, research: nothing is held back;
    - `faults`: what goes wrong, as {("north", "summary"): "silent"}; rounds are "profile", "summary", "answer" (all
      further ones) and "answer 1", "answer 2", ...; faults are silent, late, repeated, contradicting, failed, crashed
      and garbled;
    - `masked`: summaries come under masks, with keys made for this; then rounds are "masking terms", "masking roster",
      "masking delivery", "masking present" and "masking confirmations" in the place of "summary";
    - `minimum`: sites without which there is no result; `accept_differences`: variables whose units need not be doubted;
    - `folder`: where the result, the journal, the record of participation and, in `sites`, what each site remembers go;
      else they are not kept.

    >>> from fedcdh.evaluation.demo import hospital_study
    >>> study = hospital_study().columns()
    >>> outcome = simulate_federation(study, domain="hospital", faults={("coast", "summary"): "silent"})
    >>> dict(outcome.missing)
    {'coast': 'summary: did not answer in time'}
    >>> len([event for event in outcome.participation.events if event.what == "accepted"])
    9
    """
    declaration, kinds = Declaration(knowledge=knowledge or NO_KNOWLEDGE), kinds or {}
    terms = StudyTerms(
        declaration=declaration,
        kinds=kinds,
        accept_differences=accept_differences,
        minimum=minimum,
        masked=masked,
        **search,
    )
    tables = split_by_client(data, domain, names, variables)
    _check_faults(faults or {}, tables)
    with nullcontext(folder) if folder else tempfile.TemporaryDirectory(prefix="fedcdh-") as place:
        members = {
            client: ClientNode(
                client,
                partial(_return_table, table),
                _client_policy(policy, client),
                max_missing_share=max_missing_share,
                key=SigningKey.generate() if masked else None,
                memory=Path(place, "sites", safe_file_name(client)),
                answered=Answered(Path(place, "sites", safe_file_name(client), "answered.json")),
            )
            for client, table in tables.items()
        }
        return conduct_study(InProcessTransport(members, faults or {}), terms, place, progress=progress)


def _return_table(table: Table) -> Table:
    return table


def _client_policy(policy: Policy | Mapping[str, Policy] | None, client: str) -> Policy:
    if isinstance(policy, Policy):
        return policy
    return (policy or {}).get(client, Policy(disclosure_control=False))


def _check_faults(faults: Mapping[tuple[str, str], Fault], clients: Collection[str]) -> None:
    for (client, round_), fault in faults.items():
        known = round_ in (
            PROFILE,
            SUMMARY,
            ANSWER,
            MASKING,
            *(f"{MASKING} {one.kind}" for one in REQUEST_TYPES),
        ) or re.fullmatch(f"{ANSWER} [1-9][0-9]*", round_)
        if client not in clients or not known or fault not in get_args(Fault):
            raise SettingsError(
                f"faults has {(client, round_)!r}: {fault!r}; expected one of {', '.join(clients)} with {PROFILE!r}, "
                f"{SUMMARY!r}, {ANSWER!r} or '{ANSWER} 1', and one of {', '.join(get_args(Fault))}"
            )
