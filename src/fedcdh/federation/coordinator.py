"""The coordinator of a federated study: profiles, plan, summaries and graph, with the clients that answer.

The plan keeps the name of a client that fails after its profile. Its profile has entered locations and scales, which
are conventions; nothing of its rows is in the result. Every message is checked exactly as a file would be.

A client that does not answer about joint features drops out as well: the search starts again without it, from the
answers that are stored. One that does not answer about residuals stays with its summary. With secure aggregation, only
the sum of the summaries, and sums of answers about residuals, are seen.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from fedcdh._io.look_alikes import describe_look_alike
from fedcdh._io.storage import hold_lock, write_atomically
from fedcdh._runtime.blas_threads import single_blas_thread
from fedcdh.discovery.api import discover_from
from fedcdh.discovery.methods import get_method
from fedcdh.discovery.result import Discovery
from fedcdh.errors import (
    DuplicateClientError,
    MessageFormatError,
    QuorumError,
    SettingsError,
    SignatureError,
    UnknownClientError,
)
from fedcdh.federation.adaptive_rounds import AdaptiveRounds, ClientsDroppedError
from fedcdh.federation.exchange import StudyConnection, Transport, check_signature, collect_replies
from fedcdh.federation.journal import Journal, StoredFile
from fedcdh.federation.masked_rounds import MaskedRounds
from fedcdh.federation.participation import Participation
from fedcdh.federation.planning.study_from_profiles import plan_study
from fedcdh.federation.secure_sum import SecureSumOptions, SecureSumRounds
from fedcdh.federation.study_terms import StudyOutcome, StudyTerms
from fedcdh.messages.aggregate_file import pack_aggregate
from fedcdh.messages.envelope import MASKING, PROFILE, SUMMARY, Envelope
from fedcdh.messages.profile_file import MAX_PROFILE_BYTES, ProfileMessage, profile_from_json
from fedcdh.messages.signing import sign
from fedcdh.messages.study_file import MAX_STUDY_BYTES, Study
from fedcdh.messages.summary_file import max_summary_bytes, unpack_summary
from fedcdh.privacy.secure_aggregation.session import SessionFolder, run_session
from fedcdh.protocols import Progress
from fedcdh.reporting.result_files import write_result
from fedcdh.summaries.aggregation import Aggregate, Cohort, add_up
from fedcdh.summaries.summary import Summary
from fedcdh.summaries.validation import admit_summaries, validate_summary

JOURNAL_FOLDER, PARTICIPATION_FILE = "journal", "participation.json"
LOCK_FILE, AGGREGATE_FILE = "conducting.lock", "study.aggregate"


def conduct_study(
    transport: Transport, terms: StudyTerms, folder: Path | str, *, progress: Progress | None = None
) -> StudyOutcome:
    """Conduct a federated study over a transport.

    The result and `participation.json` are written into the folder, everything that was received into its journal.
    A second call with the same folder continues the study: by the same plan, asking only the missing clients.

    Parameters
    ----------
    transport : Transport
        What carries messages to the clients and back.
    terms : StudyTerms
        The decisions of the coordinator.
    folder : Path or str
        The folder for the result.
    progress : callable, optional
        Called with the progress of the search, as by `fedcdh.discover`.

    Returns
    -------
    StudyOutcome
        The result, the study as it was planned, and the record of participation.

    Raises
    ------
    QuorumError
        If fewer clients than the minimum take part.
    SettingsError
        If another program uses the folder, or if it holds another study.

    Examples
    --------
    >>> import tempfile
    >>> import fedcdh
    >>> from fedcdh.federation import ClientNode, InProcessTransport
    >>> from fedcdh.privacy.disclosure.policy import Policy
    >>> study = fedcdh.simulate("linear", variables=3, clients=2, rows=300, seed=1)
    >>> policy = Policy(disclosure_control=False)
    >>> nodes = {name: ClientNode(name, lambda rows=rows: rows, policy) for name, rows in study.tables.items()}
    >>> outcome = conduct_study(InProcessTransport(nodes), StudyTerms(), tempfile.mkdtemp())
    >>> dict(outcome.missing)
    {}
    """
    participation = Participation()
    folder = Path(folder)
    with hold_lock(folder / LOCK_FILE, if_locked=lambda: _locked_error(folder)):
        (folder / PARTICIPATION_FILE).unlink(missing_ok=True)  # that of an earlier run must not pass for this one's
        try:
            with single_blas_thread():
                coordinator = _Coordinator(transport, terms, Journal(folder / JOURNAL_FOLDER), participation)
                return coordinator.conduct(folder, progress)
        finally:
            write_atomically(folder / PARTICIPATION_FILE, participation.to_json())


def _locked_error(folder: Path) -> SettingsError:
    return SettingsError(
        f"Another program conducts a study in {folder}. Expected a folder that no other program uses. Wait until it "
        "has finished, or choose another folder for the result."
    )


@dataclass(frozen=True)
class _Coordinator:
    transport: Transport
    terms: StudyTerms
    journal: Journal
    participation: Participation
    uncontrolled: set[str] = field(default_factory=set)  # clients whose summaries were made without disclosure control

    def conduct(self, folder: Path, progress: Progress | None) -> StudyOutcome:
        study = self._load_study() or self._plan_from_profiles()
        if self.terms.secure_sum is None:
            known: Cohort | Aggregate = self._collect_summaries(study)
        else:
            known = self._collect_sum(study, self.terms.secure_sum)
        result = self._discover(study, known, progress)
        uncontrolled = self.uncontrolled & {*result.cohort.total.clients}
        write_result(result, folder, without_disclosure_control=uncontrolled)
        self.participation.has_result = True
        return StudyOutcome(result, study, self.participation)

    def _collect_sum(self, study: Study, options: SecureSumOptions) -> Aggregate:
        """Return the sum over the clients that stay to the end; single summaries are never seen."""
        folder = SessionFolder(self.journal.folder / f"masking-{options.attempt}", study, self.terms.key)
        connection = self._connect(study)
        message = run_session(study, options.terms(study), SecureSumRounds(connection, folder))
        clients = message.aggregate.total.clients
        for client in clients:
            self.participation.add(MASKING, connection.addresses[client], "accepted")
        self.uncontrolled.update(message.without_disclosure_control)
        self._check_quorum(clients, "are in the sum")
        write_atomically(self.journal.folder / AGGREGATE_FILE, pack_aggregate(message))
        return message.aggregate

    def _discover(self, study: Study, cohort: Cohort | Aggregate, progress: Progress | None) -> Discovery:
        """Return the result with all clients that answer the further rounds."""
        source = self._open_rounds(study, cohort) if self.terms.asks_again and study.plan.max_rounds else None
        while True:
            try:
                return discover_from(
                    cohort,
                    study.plan,
                    method=self.terms.method,
                    alpha=self.terms.alpha,
                    knowledge=study.knowledge,
                    max_conditioning_size=self.terms.max_conditioning_size,
                    seed=self.terms.seed,
                    progress=progress,
                    source=source,
                    rounds=self.terms.rounds,
                    min_probability=self.terms.min_probability,
                    min_arrow_probability=self.terms.min_arrow_probability,
                    min_effect=self.terms.min_effect,
                )
            except ClientsDroppedError as dropped:
                assert isinstance(source, AdaptiveRounds)
                if dropped.is_about_residuals:
                    self._keep_summaries(dropped, source.connection)
                    source = replace(source, silent=source.silent | {*dropped.clients})
                    continue
                left = [one for one in cohort.summaries if not {*one.clients} & {*dropped.clients}]
                what = f'answered request {dropped.number} (a study with rounds = "one" requests no answers)'
                self._check_quorum([one.clients[0] for one in left], what)
                cohort = add_up(left, study.plan, without=study.plan.clients)
                source = replace(source, cohort=cohort)

    def _open_rounds(self, study: Study, known: Cohort | Aggregate) -> AdaptiveRounds | MaskedRounds:
        """Return the source of answers in further rounds."""
        connection, uncontrolled = self._connect(study), frozenset(self.uncontrolled)
        if isinstance(known, Cohort):
            return AdaptiveRounds(connection, self.journal, known, uncontrolled)
        options = self.terms.secure_sum or SecureSumOptions()
        return MaskedRounds(connection, self.journal, known, options, self.terms.key, uncontrolled)

    def _keep_summaries(self, dropped: ClientsDroppedError, connection: StudyConnection) -> None:
        """Record that clients which did not answer about residuals are in the result with their summaries."""
        reason = f"did not answer request {dropped.number} about residuals; its summary is in the result"
        for client in dropped.clients:
            self.participation.add(SUMMARY, connection.addresses[client], "stored", 0, reason)

    # Profiles and the plan

    def _plan_from_profiles(self) -> Study:
        """Request a profile from every connected client, and plan the study with those that arrive."""
        addresses = self._load_profiles()
        connected = self.transport.addresses(self.terms.expected_clients, self.terms.timeout)
        content = self.terms.profile_request.to_bytes()
        request = Envelope(PROFILE, content, self._sign("request", content)).to_bytes()
        requests = {address: request for address in connected if address not in addresses.values()}
        profiles = _ProfileRound(self, addresses)
        collect_replies(
            self.transport,
            PROFILE,
            requests,
            self.terms.timeout,
            profiles.accept,
            self.participation,
            withdraw=profiles.withdraw,
        )
        profiles.refuse_contested()
        for client in self.terms.declaration.clients:
            if client not in self.participation.clients.values():
                self.participation.add(PROFILE, client, "missing", 0, "never connected")
        self._check_quorum(addresses, "sent a profile")
        return self._plan(addresses)

    def _load_profiles(self) -> dict[str, str]:
        """Return the addresses of the clients whose profiles an earlier run stored."""
        addresses = {}
        for client, address in self.journal.load_addresses().items():
            stored = self.journal.load(PROFILE, client, MAX_PROFILE_BYTES)
            if stored is not None:
                with self.journal.naming_file(PROFILE, client):
                    if self.read_profile(stored).profile.client != client:
                        raise MessageFormatError(f"It is not the profile of {client!r}.")
                self.participation.clients[address] = client
                self.participation.add(PROFILE, address, "stored")
                addresses[client] = address
        return addresses

    def read_profile(self, file: StoredFile) -> ProfileMessage:
        """Return a profile that is signed by the key it names and, if keys were agreed on, by that key."""
        message = profile_from_json(file.content)
        client = message.profile.client
        if (declared := self.terms.declaration.clients) and client not in declared:
            raise UnknownClientError(
                f"There is a profile of {client!r}{describe_look_alike(client, declared)}. Expected one of "
                f"{', '.join(declared)}, which the declaration names. Add the client to the declaration, or ask "
                "the site for the name it uses."
            )
        known = self.terms.site_keys.get(client, message.key)
        if message.key != known:
            raise SignatureError(
                f"The profile of {client!r} does not name the key that is known of this client. Ask the site which "
                "key it uses."
            )
        check_signature("profile", file.content, file.signature, known, client)
        return message

    def _plan(self, clients: Iterable[str]) -> Study:
        """Plan the study with the stored profiles of these clients, and store the plan."""
        messages = []
        for client in sorted(clients):
            stored = self.journal.load(PROFILE, client, MAX_PROFILE_BYTES)
            if stored is None:
                raise SettingsError(
                    f"The profile of {client!r} is no longer in {self.journal.folder}. Choose another folder for the "
                    "result and start again."
                )
            messages.append((f"the site of {client}", profile_from_json(stored.content)))
        terms = self.terms
        declared = replace(terms.declaration, clients=())  # the plan is made without absent clients
        family = terms.declaration.family or get_method(terms.method).family(terms.seed)
        study = plan_study(
            messages, declared, family=family, accept_differences=terms.accept_differences, absent=terms.absent
        )
        plan = replace(study.plan, study=terms.study)
        if terms.asks_again:
            plan = replace(plan, max_rounds=terms.max_rounds, max_bytes=terms.max_bytes)
        study = replace(study, plan=plan)
        content = study.to_json().encode()
        self.journal.store_plan(StoredFile(content, self._sign("plan", content)))
        return study

    def _load_study(self) -> Study | None:
        """Return the study that an earlier run planned; None if there is none."""
        stored = self.journal.load_plan(MAX_STUDY_BYTES)
        if stored is None:
            return None
        study = Study.from_json(stored.content)
        if study.plan.study != self.terms.study:
            raise SettingsError(
                f"The folder {self.journal.folder} holds the study {study.plan.study!r}. Expected {self.terms.study!r}."
                " Choose another folder for the result."
            )
        if self.terms.asks_again and self.terms.rounds != "auto" and not study.plan.max_rounds:
            raise SettingsError(
                f"By the plan in {self.journal.folder}, clients answer no further rounds. Choose another folder for "
                "the result, or use rounds = 'one'."
            )
        for client, address in self.journal.load_addresses().items():
            self.participation.clients[address] = client
        for address in {*self.transport.addresses(0, 0.0)} - self.participation.clients.keys():
            self.participation.add(PROFILE, address, "missing", 0, "the plan was made without it")
        return study

    # Summaries

    def _collect_summaries(self, study: Study) -> Cohort:
        """Request the missing summaries from the clients of the plan; return the cohort of those that are there."""
        connection = self._connect(study)
        found = self._load_summaries(connection)

        def accept(address: str, reply: Envelope) -> Summary:
            client, file = connection.client_at(address), StoredFile(reply.content, reply.signature)
            summary = self._read_summary(study, client, file)
            self.journal.store(SUMMARY, client, file)
            return summary

        def withdraw(address: str) -> None:
            self.journal.remove(SUMMARY, connection.client_at(address))

        request = Envelope(SUMMARY, connection.plan.content, connection.plan.signature).to_bytes()
        requests = {address: request for client, address in connection.addresses.items() if client not in found}
        replies = collect_replies(
            self.transport, SUMMARY, requests, self.terms.timeout, accept, self.participation, withdraw=withdraw
        )
        found |= {connection.client_at(address): summary for address, summary in replies.items()}
        found = self._drop_duplicates(found, connection)
        self._check_quorum(found, "sent a summary")
        return add_up(found.values(), study.plan, without=set(study.plan.clients) - found.keys())

    def _load_summaries(self, connection: StudyConnection) -> dict[str, Summary]:
        """Return the summaries that an earlier run stored."""
        found = {}
        for client, address in connection.addresses.items():
            stored = self.journal.load(SUMMARY, client, max_summary_bytes(connection.study.plan))
            if stored is not None:
                with self.journal.naming_file(SUMMARY, client):
                    found[client] = self._read_summary(connection.study, client, stored)
                self.participation.add(SUMMARY, address, "stored")
        return found

    def _read_summary(self, study: Study, client: str, file: StoredFile) -> Summary:
        message = unpack_summary(file.content, study.plan)
        summary = message.summary
        if summary.clients != (client,) or summary.replicate:
            what = "a bootstrap replicate" if summary.replicate else "the summary"
            raise MessageFormatError(
                f"The site of {client!r} sent {what} of {summary.clients[0]!r}. Expected its own summary. Ask the site."
            )
        check_signature("summary", file.content, file.signature, study.keys.get(client), client)
        validate_summary(summary, study.plan)
        if not message.disclosure_control:
            self.uncontrolled.add(client)
        return summary

    def _drop_duplicates(self, found: Mapping[str, Summary], connection: StudyConnection) -> dict[str, Summary]:
        """Drop all clients whose sums are equal to the last digit: nobody can tell whose rows these are."""
        equal: dict[bytes, list[str]] = {}
        for client, summary in found.items():
            equal.setdefault(hashlib.sha256(summary.moments.tobytes()).digest(), []).append(client)
        kept, plan = dict(found), connection.study.plan
        for clients in equal.values():
            if len(clients) == 1:
                continue
            try:
                admit_summaries([found[client] for client in clients], plan, without=plan.clients)
            except DuplicateClientError as problem:
                for client in clients:
                    self.participation.add(SUMMARY, connection.addresses[client], "refused", 0, str(problem))
                    self.journal.remove(SUMMARY, client)
                    del kept[client]
        return kept

    # All rounds

    def _connect(self, study: Study) -> StudyConnection:
        addresses = self.journal.load_addresses().items()
        stored = self.journal.load_plan(MAX_STUDY_BYTES)
        return StudyConnection(
            self.transport,
            self.participation,
            study,
            StoredFile(study.to_json().encode(), stored.signature if stored else b""),
            {client: address for client, address in addresses if client in study.plan.clients},
            self.terms.timeout,
            self._sign,
        )

    def _sign(self, kind: str, content: bytes) -> bytes:
        return sign(self.terms.key, kind, content).encode() if self.terms.key else b""

    def _check_quorum(self, clients: Collection[str], what: str) -> None:
        if len(clients) < self.terms.minimum:
            reasons = "".join(f"\n- {name}: {reason}" for name, reason in self.participation.missing.items())
            raise QuorumError(
                f"{len(clients)} clients {what}. Expected at least {self.terms.minimum}. Start the study again in the "
                f"same folder: only the missing clients are asked.{reasons}"
            )


@dataclass(frozen=True)
class _ProfileRound:
    """The profiles that arrive in the first round; a name that two addresses claim is refused for both."""

    coordinator: _Coordinator
    addresses: dict[str, str]  # by client
    contested: set[str] = field(default_factory=set)

    def accept(self, address: str, reply: Envelope) -> ProfileMessage:
        coordinator, file = self.coordinator, StoredFile(reply.content, reply.signature)
        message = coordinator.read_profile(file)
        client = message.profile.client
        coordinator.participation.clients[address] = client
        if client in self.contested or self.addresses.get(client, address) != address:
            self.contested.add(client)
            raise DuplicateClientError(f"{_contested_reason(client)}. Ask all of them for their names.")
        coordinator.journal.store(PROFILE, client, file)
        self.addresses[client] = address
        coordinator.journal.store_addresses(self.addresses)
        return message

    def withdraw(self, address: str) -> None:
        client = self.coordinator.participation.clients[address]
        self.coordinator.journal.remove(PROFILE, client)
        self.addresses.pop(client)
        self.coordinator.journal.store_addresses(self.addresses)

    def refuse_contested(self) -> None:
        """Refuse also the first of several sites that claim one name."""
        for client in self.contested & self.addresses.keys():
            address = self.addresses[client]
            self.coordinator.participation.add(PROFILE, address, "refused", 0, _contested_reason(client))
            self.withdraw(address)


def _contested_reason(client: str) -> str:
    return f"The name {client!r} is claimed by more than one site"
