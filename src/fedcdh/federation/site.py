"""A site that is online: it answers bytes with bytes, under its own policy, and says of its troubles only a code."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from fedcdh._io.strict_json import to_canonical_json
from fedcdh._runtime.cpu_count import default_workers
from fedcdh.errors import DisclosureError, ExitCode, MessageFormatError, SignatureError, exit_code_of
from fedcdh.federation.site_memory import Answered
from fedcdh.messages.envelope import (
    ANSWER,
    MASKING,
    PROFILE,
    REFUSAL,
    SUMMARY,
    Envelope,
    ProfileRequest,
    RoundRequest,
    sha256_hex,
)
from fedcdh.messages.profile_file import profile_to_json
from fedcdh.messages.round_files import AnswerMessage, pack_answer, request_from_json
from fedcdh.messages.signing import SigningKey, key_fingerprint, sign, verify
from fedcdh.messages.study_file import Study
from fedcdh.messages.summary_file import SummaryMessage, pack_summary
from fedcdh.privacy.disclosure.policy import Policy
from fedcdh.privacy.ledger.gate import ReleaseGate, spent_round_budget
from fedcdh.privacy.releases import ReleaseContext, check_invitation, release_answer, release_profile, release_summary
from fedcdh.privacy.secure_aggregation import codec
from fedcdh.privacy.secure_aggregation.client import SecAggClient as Member
from fedcdh.privacy.secure_aggregation.client_state import ClientStateFile
from fedcdh.privacy.secure_aggregation.messages import REQUEST_TYPES, SecAggTerms
from fedcdh.summaries.joint import JointSummary, RoundBudget
from fedcdh.summaries.profiles import Profile
from fedcdh.summaries.summary import Summary

_LOG = logging.getLogger("fedcdh.site")


@dataclass(frozen=True)
class ClientNode:
    """What a site is, for as long as it takes part; all of it is settled at the site, nothing by the coordinator.

    `rows` opens the rows anew for every answer; `own` leads from the study's names to the site's, where they differ.
    """

    client: str
    rows: Callable[[], Any]
    policy: Policy = field(default_factory=Policy)
    own: Mapping[str, str] = field(default_factory=dict)
    variables: Sequence[str] | None = None  # brought along where the coordinator names none; None: all
    key: SigningKey | None = None
    max_missing_share: float = 0.5
    workers: int | None = 1  # threads that share the work on a summary; None: as many as processors and memory allow
    complete: bool = False  # the profile, too, is of rows without a missing value only
    answered: Answered | None = None  # of what was told; research has nothing to hide, and needs none
    gate: ReleaseGate | None = None  # the ledger of all that leaves this site, by whichever way
    memory: Path | None = None  # the folder for what it remembers of masked sums; without one it takes part in none
    masked_only: bool = False  # no summary leaves but under masks
    peers: Mapping[str, str] | None = None  # public keys of clients, agreed on without the server; None: as planned

    def answer(self, request: bytes) -> bytes:
        """The reply to a request, whatever it is. No text of an error leaves, nor its name: they are in the log."""
        about = sha256_hex(request)
        try:
            return self._answered(Envelope.from_bytes(request), about).to_bytes()
        except Exception as problem:
            return refusal_reply(problem, about)

    def _answered(self, asked: Envelope, about: str) -> Envelope:
        answers = {
            PROFILE: self._profile,
            SUMMARY: self._summary,
            ANSWER: self._answer,
            MASKING: self._masked,
        }
        if asked.kind not in answers or asked.in_reply_to or asked.code:
            raise MessageFormatError(
                f"asked for {asked.kind[:40]!r}, but known are {', '.join(answers)}; update fedcdh"
            )
        content = answers[asked.kind](asked)
        signature = sign(self.key, asked.kind, content).encode() if self.key else b""
        _LOG.info("%s: %s of %d bytes leaves", self.client, asked.kind, len(content))
        return Envelope(asked.kind, content, signature, about)

    def _profile(self, asked: Envelope) -> bytes:
        self.policy.check_request(_verify_signer("request", asked.content, asked.signature))
        wanted = ProfileRequest.from_bytes(asked.content)
        names = self.variables if wanted.variables is None else wanted.variables
        message = release_profile(
            self.rows(),
            self._context(),
            variables=names,
            kinds=wanted.kinds,
            key=self.key,
            complete=self.complete,
            look=self._note_columns,
        )
        return profile_to_json(message).encode()

    def _summary(self, asked: Envelope) -> bytes:
        study = self._invited(asked.content, asked.signature)
        self._check_unmasked(study)
        return pack_summary(SummaryMessage(self._summarized(study), self.policy.disclosure_control), study.plan)

    def _summarized(self, study: Study, *, masked: bool = False) -> Summary:
        """The summary of the rows, held to the policy, to what was answered and to what left before."""
        summary, _ = release_summary(
            self.rows(),
            study.plan,
            self._context(self.workers or default_workers(study.plan.layout.n_columns)),
            masked=masked,
            look=self._note_plan,
        )
        return summary

    def _context(self, workers: int = 1) -> ReleaseContext:
        """Return the rules that every release of this client is held to."""
        return ReleaseContext(self.client, self.policy, self.own, self.gate, self.max_missing_share, workers)

    def _note_plan(self, summary: Summary) -> None:
        if self.answered is not None and self.policy.disclosure_control:
            self.answered.plan(summary.plan, _summary_digest(summary))

    def _note_columns(self, profile: Profile) -> None:
        if self.answered is not None and self.policy.disclosure_control:
            self.answered.columns(_column_digests(profile))

    def _answer(self, asked: Envelope) -> bytes:
        """In a further round: within the budget of the plan, and about the rows that its summary was of."""
        further = RoundRequest.from_bytes(asked.content)
        study = self._invited(further.plan, further.plan_signature)
        self._check_unmasked(study)
        self.policy.check_request(_verify_signer("request", further.request, asked.signature))
        plan, request = study.plan, request_from_json(further.request, study.plan)

        if self.answered is None and self.policy.disclosure_control:
            raise DisclosureError("this site keeps no list of what it has told, so it answers no further questions")

        def same_rows(summary: Summary) -> None:
            if self.answered is not None and self.policy.disclosure_control:
                self.answered.check_plan(plan.fingerprint, _summary_digest(summary))

        def answer(spent: RoundBudget) -> tuple[tuple[JointSummary, ...], RoundBudget]:
            if self.gate is not None:
                spent = spent_round_budget(self.gate.ledger.entries(), plan)
            return release_answer(self.rows(), plan, self._context(), request, spent, look=same_rows)

        answers = answer(RoundBudget())[0] if self.answered is None else self.answered.further(plan, answer)
        return pack_answer(AnswerMessage(request.digest, answers, self.policy.disclosure_control), plan)

    def _masked(self, asked: Envelope) -> bytes:
        """In a round of a masked sum, of which only the sum over sites is ever seen."""
        further = RoundRequest.from_bytes(asked.content)
        study = self._invited(further.plan, further.plan_signature)
        self.policy.check_request(_verify_signer(MASKING, further.request, asked.signature))
        if self.key is None or self.memory is None:
            raise DisclosureError("a masked sum needs a key of this site, and a folder for what it must not forget")
        self._check_peers(study)
        request: Any = codec.read_message(further.request, study.plan, *REQUEST_TYPES)
        if self.gate is not None and isinstance(request, SecAggTerms):
            self.gate.check_secure_sum_state(study.plan, self.client, self._remembered(study))

        def rows() -> tuple[Summary, bool]:
            return self._summarized(study, masked=True), self.policy.disclosure_control

        member = Member(study, self.client, self.key)
        return ClientStateFile(self._remembered(study)).answer(member, request, rows).to_bytes()

    def _check_peers(self, study: Study) -> None:
        """Keys come with the plan, by way of the server, who might have put its own in their place."""
        if self.peers is None:
            return
        if wrong := [client for client, key in study.keys.items() if self.peers.get(client) != key]:
            raise SignatureError(
                f"the plan names keys of {', '.join(wrong)} that this site does not know as theirs; ask them, by "
                "another way than through the server, and correct the list of peers or do not take part"
            )

    def _check_unmasked(self, study: Study) -> None:
        """Whoever learned a sum, and then all summaries but one, would know that one."""
        if self.masked_only or (self.memory is not None and self._remembered(study).exists()):
            raise DisclosureError(
                "this site sends no summary by this plan but under masks, and answers nothing further"
            )

    def _remembered(self, study: Study) -> Path:
        return (self.memory or Path()) / f"{study.plan.fingerprint}.masking-state.json"

    def _invited(self, content: bytes, signature: bytes) -> Study:
        """The study of a plan that this site follows."""
        study, signer = Study.from_json(content), _verify_signer("plan", content, signature)
        by = f"signed by {key_fingerprint(signer)}" if signer else "not signed"
        _LOG.info("%s: asked to follow plan %s, %s", self.client, study.plan.fingerprint[:12], by)
        check_invitation(study, signer, self._context(), self.key)
        return study


def refusal_reply(problem: Exception, about: str) -> bytes:
    """The code of a problem as a reply; its text stays here, in the log."""
    code = exit_code_of(problem)
    trace = problem if code == ExitCode.INTERNAL else None
    _LOG.error("refused with code %d: %s: %s", code, type(problem).__name__, problem, exc_info=trace)
    return Envelope(REFUSAL, in_reply_to=about, code=code).to_bytes()


def _verify_signer(kind: str, content: bytes, signature: bytes) -> str | None:
    return verify(kind, content, signature) if signature else None


def _column_digests(profile: Profile) -> dict[str, str]:
    """One digest for every column as it is described, and so for every way of describing it."""
    return {
        f"{name} as {column.kind}": hashlib.sha256(to_canonical_json(asdict(column)).encode()).hexdigest()
        for name, column in profile.columns.items()
    }


def _summary_digest(summary: Summary) -> str:
    """The same for the same rows, whichever version of this program adds them up."""
    counts = to_canonical_json([summary.rows_read, dict(summary.missing)]).encode()
    return hashlib.sha256(counts + summary.moments.tobytes()).hexdigest()
