"""An online study from the coordinator's side: profiles, a plan, summaries, a graph; with those who are there.

The plan keeps the name of a site that fails after its profile: that has gone into locations and scales, which are
conventions; of its rows nothing is in the result. What arrives is checked exactly as files are.

Where tests may ask again, a site that does not answer is out as well: the search starts over without it, from the
answers that are there. Where summaries come under masks, their sum is all that there is (`masked`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from fedcdh._io.storage import hold_lock, write_atomically
from fedcdh._runtime.blas_threads import single_blas_thread
from fedcdh.data.sources import ColumnKind
from fedcdh.discovery.api import MAX_BYTES, MAX_ROUNDS, discover_from
from fedcdh.discovery.methods import get_method
from fedcdh.discovery.result import Discovery
from fedcdh.discovery.settings import DEFAULT_ALPHA, Settings
from fedcdh.errors import (
    DuplicateClientError,
    MessageFormatError,
    QuorumError,
    SettingsError,
    SignatureError,
    UnknownClientError,
)
from fedcdh.federation.adaptive_rounds import AdaptiveRounds, ClientsDroppedError
from fedcdh.federation.exchange import Transport, check_signature, collect_replies
from fedcdh.federation.journal import Journal, StoredFile
from fedcdh.federation.participation import Participation
from fedcdh.federation.planning.declaration import Declaration
from fedcdh.federation.planning.study_from_profiles import plan_study
from fedcdh.federation.secure_sum import SecureSumOptions, SecureSumRounds
from fedcdh.messages import profile_file, study_file
from fedcdh.messages.aggregate_file import pack_aggregate
from fedcdh.messages.envelope import MASKING, PROFILE, SUMMARY, Envelope, ProfileRequest
from fedcdh.messages.profile_file import ProfileMessage
from fedcdh.messages.signing import SigningKey, sign
from fedcdh.messages.study_file import Study
from fedcdh.messages.summary_file import max_summary_bytes, unpack_summary
from fedcdh.privacy.secure_aggregation.session import SessionFolder, run_session
from fedcdh.protocols import Progress
from fedcdh.reporting.result_files import write_result
from fedcdh.summaries.aggregation import Aggregate, Cohort, add_up
from fedcdh.summaries.summary import Summary
from fedcdh.summaries.validation import admit_summaries, validate_summary

JOURNAL_FOLDER, PARTICIPATION_FILE, LOCK_FILE, AGGREGATE_FILE = (
    "journal",
    "participation.json",
    "conducting.lock",
    "study.aggregate",
)


@dataclass(frozen=True)
class StudyTerms:
    """What the coordinator decides. Time-outs are in seconds, and for each round."""

    method: str = "auto"
    alpha: float | None = None  # as for `discover`
    max_conditioning_size: int | None = None
    seed: int = 0
    variables: tuple[str, ...] | None = None  # None: those of the declaration, or else what the sites bring along
    kinds: Mapping[str, ColumnKind] = field(default_factory=dict)
    declaration: Declaration = field(default_factory=Declaration)  # may name the clients: strangers are then refused
    accept_differences: Collection[str] = ()
    study: str = ""
    key: SigningKey | None = None  # signs requests and the plan
    site_keys: Mapping[str, str] = field(default_factory=dict)  # public keys that were agreed on beforehand
    minimum: int = 2  # sites that must be in the result
    expected: int = 0  # sites to wait for at the start; at least the minimum, and as many as were declared
    timeout: float = 600.0
    rounds: str = "one"  # or "adaptive": tests may ask sites again, within what the plan then states:
    max_rounds: int = MAX_ROUNDS  # that a site answers
    max_bytes: int = MAX_BYTES  # that a site sends in them
    masked: SecureSumOptions | None = None  # summaries come under masks, and only their sum is seen

    def __post_init__(self) -> None:
        level = DEFAULT_ALPHA if self.alpha is None else self.alpha
        Settings(self.method, level, self.declaration.knowledge, self.max_conditioning_size, self.seed, self.rounds)
        method = get_method(self.method, rounds=self.rounds)
        if self.minimum < 1 or not self.timeout > 0:
            raise SettingsError(
                f"the minimum of sites is {self.minimum} and the time-out {self.timeout:g} s; expected at least 1, and "
                "a positive number"
            )
        if self.rounds == "adaptive" and (self.max_rounds < 1 or self.max_bytes < 1):
            raise SettingsError(
                f"sites are to answer {self.max_rounds} further rounds with {self.max_bytes} bytes; expected at "
                "least 1 of each, or rounds = 'one'"
            )

        if self.masked is not None and (method.name != "evidence" or self.rounds != "one"):
            raise SettingsError(
                f"method {self.method!r} with rounds = {self.rounds!r} needs the summary of every site, which masks "
                "hide; use method = 'evidence' and rounds = 'one'"
            )

    @property
    def wanted(self) -> ProfileRequest:
        """The variables and kinds to ask for."""
        declared = self.declaration.variables
        names = self.variables or tuple(one.name for one in declared) or None
        return ProfileRequest(names, {**{one.name: one.kind for one in declared if one.kind is not None}, **self.kinds})


@dataclass(frozen=True)
class StudyOutcome:
    """What came of an online study: the result, the study as it was agreed on, and who took part."""

    result: Discovery
    study: Study
    participation: Participation

    @property
    def missing(self) -> Mapping[str, str]:
        """Sites that are not in the result, and why."""
        return self.participation.missing


def conduct_study(
    transport: Transport, terms: StudyTerms, folder: Path | str, *, progress: Progress | None = None
) -> StudyOutcome:
    """Conducts a study; the result and `participation.json` go into the folder, all that was received into a journal.

    Called again with the same folder, it goes on from there: by the same plan, asking only those who are missing.
    """
    record = Participation()
    folder = Path(folder)
    busy = f"another program conducts a study in {folder}; wait for its end, or choose another folder for the result"
    with hold_lock(folder / LOCK_FILE, if_locked=lambda: SettingsError(busy)):
        try:
            with single_blas_thread():
                return _Coordinator(transport, terms, Journal(folder / JOURNAL_FOLDER), record).conduct(
                    folder, progress
                )
        finally:
            write_atomically(folder / PARTICIPATION_FILE, record.to_json())


@dataclass(frozen=True)
class _Coordinator:
    transport: Transport
    terms: StudyTerms
    journal: Journal
    record: Participation
    research: set[str] = field(default_factory=set)  # clients whose summaries say that nothing was held back

    def conduct(self, folder: Path, progress: Progress | None) -> StudyOutcome:
        study = self._load_study() or self._plan_from_profiles()
        known = self._cohort(study) if self.terms.masked is None else self._sum(study, self.terms.masked)
        result = self._found(study, known, progress)
        write_result(result, folder, uncontrolled_clients=self.research & {*result.cohort.total.clients})
        return StudyOutcome(result, study, self.record)

    def _sum(self, study: Study, masking: SecureSumOptions) -> Aggregate:
        """The sum over those who stay, as it is opened; of single summaries nothing is seen."""
        sites = self._addresses(study)
        rounds = SecureSumRounds(
            self.transport,
            SessionFolder(self.journal.folder / f"masking-{masking.attempt}", study, self.terms.key),
            self.record,
            study,
            self._sent_plan(study),
            sites,
            self.terms.timeout,
            self._signed,
        )
        message = run_session(study, masking.terms(study), rounds)
        there = message.aggregate.total.clients
        for client in there:
            self.record.note(MASKING, sites[client], "accepted")
        self.research.update(message.without_disclosure_control)
        self._enough(there, "are in the sum")
        write_atomically(self.journal.folder / AGGREGATE_FILE, pack_aggregate(message))
        return message.aggregate

    def _found(self, study: Study, cohort: Cohort | Aggregate, progress: Progress | None) -> Discovery:
        """The result with all sites that answer what is asked on the way."""
        source = self._further(study, cohort) if self._is_adaptive and isinstance(cohort, Cohort) else None
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
                )
            except ClientsDroppedError as gone:
                left = [one for one in cohort.summaries if not {*one.clients} & {*gone.clients}]
                asked = f'answered request {gone.number} (a study with rounds = "one" asks for no answers)'
                self._enough([one.clients[0] for one in left], asked)
                cohort = add_up(left, study.plan, without=study.plan.clients)
                source = source and replace(source, cohort=cohort)

    # Profiles, and the plan

    def _plan_from_profiles(self) -> Study:
        """Asks everybody who is there for a profile, and makes the plan of those that come."""
        sites = self._stored_profiles()
        there = self.transport.sites(max(self._expected_clients, self.terms.minimum), self.terms.timeout)
        wanted = self.terms.wanted.to_bytes()
        request = Envelope(PROFILE, wanted, self._signed("request", wanted)).to_bytes()
        contested: set[str] = set()

        def accept(site: str, reply: Envelope) -> ProfileMessage:
            message = self._profile(reply.content, reply.signature)
            client = message.profile.client
            self.record.clients[site] = client
            if client in contested or sites.get(client, site) != site:
                contested.add(client)
                raise DuplicateClientError(f"{client!r} is claimed by more than one site; ask all of them who they are")
            self.journal.keep(PROFILE, client, reply.content, reply.signature)
            sites[client] = site
            self.journal.write_addresses(sites)
            return message

        def withdraw(site: str) -> None:
            client = self.record.clients[site]
            self.journal.forget(PROFILE, client)
            sites.pop(client)
            self.journal.write_addresses(sites)

        asked = {site: request for site in there if site not in sites.values()}
        collect_replies(self.transport, PROFILE, asked, self.terms.timeout, accept, self.record, withdraw=withdraw)
        for client in contested & sites.keys():
            self.record.note(PROFILE, sites[client], "refused", 0, f"{client!r} is claimed by more than one site")
            withdraw(sites[client])
        for client in self.terms.declaration.clients:
            if client not in self.record.clients.values():
                self.record.note(PROFILE, client, "missing", 0, "was never there")
        self._enough(sites, "sent a profile")
        return self._plan(sites)

    @property
    def _expected_clients(self) -> int:
        return max(self.terms.expected, len(self.terms.declaration.clients))

    def _stored_profiles(self) -> dict[str, str]:
        sites = {}
        for client, site in self.journal.sites().items():
            stored = self.journal.stored(PROFILE, client, profile_file.MAX_PROFILE_BYTES)
            if stored is not None:
                with self.journal.naming_file(PROFILE, client):
                    if self._profile(stored.content, stored.signature).profile.client != client:
                        raise MessageFormatError(f"it is not of {client!r}")
                self.record.clients[site] = client
                self.record.note(PROFILE, site, "stored")
                sites[client] = site
        return sites

    def _profile(self, content: bytes, signature: bytes) -> ProfileMessage:
        """A profile, signed by the key that it names and that the coordinator knows, if there are such keys."""
        message = profile_file.profile_from_json(content)
        client = message.profile.client
        if (declared := self.terms.declaration.clients) and client not in declared:
            raise UnknownClientError(
                f"there is a profile of {client!r}, but the declaration names {', '.join(declared)}"
            )
        known = self.terms.site_keys.get(client, message.key)
        if message.key != known:
            raise SignatureError(f"the profile of {client!r} does not name the key that is known of this client")
        check_signature("profile", content, signature, known, client)
        return message

    def _plan(self, sites: Iterable[str]) -> Study:
        messages = []
        for client in sorted(sites):
            stored = self.journal.stored(PROFILE, client, profile_file.MAX_PROFILE_BYTES)
            if stored is None:
                raise SettingsError(f"the profile of {client!r} has gone from {self.journal.folder}; begin anew")
            messages.append((f"the site of {client}", profile_file.profile_from_json(stored.content)))
        terms = self.terms
        declared = replace(terms.declaration, clients=())  # those who are not here cannot be waited for
        family = terms.declaration.family or get_method(terms.method).family(terms.seed)
        study = plan_study(messages, declared, family=family, accept_differences=terms.accept_differences)
        plan = replace(study.plan, study=terms.study)
        if self._is_adaptive:
            plan = replace(plan, max_rounds=terms.max_rounds, max_bytes=terms.max_bytes)
        study = replace(study, plan=plan)
        content = study.to_json().encode()
        self.journal.write_plan(content, self._signed("plan", content))
        return study

    def _load_study(self) -> Study | None:
        stored = self.journal.plan(study_file.MAX_STUDY_BYTES)
        if stored is None:
            return None
        study = Study.from_json(stored.content)
        if study.plan.study != self.terms.study:
            raise SettingsError(
                f"{self.journal.folder} holds the study {study.plan.study!r}, not {self.terms.study!r}; choose another "
                "folder for the result"
            )
        if self._is_adaptive and not study.plan.max_rounds:
            raise SettingsError(
                f"by the plan in {self.journal.folder}, sites answer no further rounds; choose another folder for the "
                "result, or rounds = 'one'"
            )
        for client, site in self.journal.sites().items():
            self.record.clients[site] = client
        for site in {*self.transport.sites(0, 0.0)} - self.record.clients.keys():
            self.record.note(PROFILE, site, "missing", 0, "the plan was made without it")
        return study

    # Summaries

    def _cohort(self, study: Study) -> Cohort:
        """Asks everybody in the plan whose summary is not here yet; those that came make the cohort."""
        sites, plan = self._addresses(study), self._sent_plan(study)
        found = self._stored_summaries(study, sites)

        def accept(site: str, reply: Envelope) -> Summary:
            summary = self._summary(study, self.record.clients[site], reply.content, reply.signature)
            self.journal.keep(SUMMARY, summary.clients[0], reply.content, reply.signature)
            return summary

        def withdraw(site: str) -> None:
            self.journal.forget(SUMMARY, self.record.clients[site])

        request = Envelope(SUMMARY, plan.content, plan.signature).to_bytes()
        asked = {site: request for client, site in sites.items() if client not in found}
        answers = collect_replies(
            self.transport, SUMMARY, asked, self.terms.timeout, accept, self.record, withdraw=withdraw
        )
        found |= {self.record.clients[site]: summary for site, summary in answers.items()}
        found = self._drop_duplicates(found, study, sites)
        self._enough(found, "sent a summary")
        return add_up(found.values(), study.plan, without=set(study.plan.clients) - found.keys())

    def _stored_summaries(self, study: Study, sites: Mapping[str, str]) -> dict[str, Summary]:
        found = {}
        for client, site in sites.items():
            stored = self.journal.stored(SUMMARY, client, max_summary_bytes(study.plan))
            if stored is not None:
                with self.journal.naming_file(SUMMARY, client):
                    found[client] = self._summary(study, client, stored.content, stored.signature)
                self.record.note(SUMMARY, site, "stored")
        return found

    def _summary(self, study: Study, client: str, content: bytes, signature: bytes) -> Summary:
        message = unpack_summary(content, study.plan)
        summary = message.summary
        if summary.clients != (client,) or summary.replicate:
            raise MessageFormatError(
                f"the site of {client!r} sent the summary of {summary.clients[0]!r}, or a copy of one"
            )
        check_signature("summary", content, signature, study.keys.get(client), client)
        validate_summary(summary, study.plan)
        if not message.disclosure_control:
            self.research.add(client)
        return summary

    def _drop_duplicates(
        self, found: Mapping[str, Summary], study: Study, sites: Mapping[str, str]
    ) -> dict[str, Summary]:
        """Clients with the same sums to the last digit are left out, all of them: nobody can tell whose they are."""
        alike: dict[bytes, list[str]] = {}
        for client, summary in found.items():
            alike.setdefault(hashlib.sha256(summary.moments.tobytes()).digest(), []).append(client)
        kept = dict(found)
        for clients in alike.values():
            if len(clients) == 1:
                continue
            try:
                admit_summaries([found[client] for client in clients], study.plan, without=study.plan.clients)
            except DuplicateClientError as problem:
                for client in clients:
                    self.record.note(SUMMARY, sites[client], "refused", 0, str(problem))
                    self.journal.forget(SUMMARY, client)
                    del kept[client]
        return kept

    # What all rounds need

    @property
    def _is_adaptive(self) -> bool:
        return self.terms.rounds == "adaptive"

    def _further(self, study: Study, cohort: Cohort) -> AdaptiveRounds:
        return AdaptiveRounds(
            self.transport,
            self.journal,
            self.record,
            study,
            self._sent_plan(study),
            self._addresses(study),
            self.terms.timeout,
            self._signed,
            cohort,
        )

    def _addresses(self, study: Study) -> dict[str, str]:
        return {client: site for client, site in self.journal.sites().items() if client in study.plan.clients}

    def _sent_plan(self, study: Study) -> StoredFile:
        stored = self.journal.plan(study_file.MAX_STUDY_BYTES)
        return StoredFile(study.to_json().encode(), stored.signature if stored else b"")

    def _signed(self, kind: str, content: bytes) -> bytes:
        return sign(self.terms.key, kind, content).encode() if self.terms.key else b""

    def _enough(self, clients: Collection[str], what: str) -> None:
        if len(clients) < self.terms.minimum:
            reasons = "".join(f"\n- {site}: {reason}" for site, reason in self.record.missing.items())
            raise QuorumError(
                f"{len(clients)} sites {what}, expected at least {self.terms.minimum}; start the study again in the "
                f"same folder, and only those who are missing are asked{reasons}"
            )
