"""A site that is online: it answers bytes with bytes, under its own policy, and says of its troubles only a code."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from fedcdh._io.strict_json import canonical
from fedcdh._runtime.cpu_count import usual_workers
from fedcdh.errors import ExitCode, NotAMessage, PolicyRefusal, SignatureError, exit_code_of
from fedcdh.federation.site_memory import Answered
from fedcdh.messages.envelope import ANSWER, MASKING, PROFILE, REFUSAL, SUMMARY, Envelope, Further, Wanted, digest
from fedcdh.messages.profile_file import to_text
from fedcdh.messages.round_files import AnswerMessage, pack_answer, read_request
from fedcdh.messages.signing import SigningKey, fingerprint, sign, verify
from fedcdh.messages.study_file import Study
from fedcdh.messages.summary_file import SummaryMessage, pack
from fedcdh.privacy.disclosure.policy import Policy
from fedcdh.privacy.ledger.gate import Gate, told_in_rounds
from fedcdh.privacy.releases import check_invitation, checked_answer, checked_profile, checked_summary
from fedcdh.privacy.secure_aggregation import codec
from fedcdh.privacy.secure_aggregation.client import Site as Member
from fedcdh.privacy.secure_aggregation.client_state import StateFile
from fedcdh.privacy.secure_aggregation.messages import REQUESTS, Terms
from fedcdh.summaries.joint import JointSummary, Ledger
from fedcdh.summaries.profiles import Profile
from fedcdh.summaries.summary import Summary

_LOG = logging.getLogger("fedcdh.site")


@dataclass(frozen=True)
class Site:
    """What a site is, for as long as it takes part; all of it is settled at the site, nothing by the coordinator.

    `rows` opens the rows anew for every answer; `own` leads from the study's names to the site's, where they differ.
    """

    client: str
    rows: Callable[[], Any]
    policy: Policy = field(default_factory=Policy)
    own: Mapping[str, str] = field(default_factory=dict)
    variables: Sequence[str] | None = None  # brought along where the coordinator names none; None: all
    key: SigningKey | None = None
    max_dropped: float = 0.5
    workers: int | None = 1  # threads that share the work on a summary; None: as many as processors and memory allow
    complete: bool = False  # the profile, too, is of rows without a missing value only
    answered: Answered | None = None  # of what was told; research has nothing to hide, and needs none
    gate: Gate | None = None  # the ledger of all that leaves this site, by whichever way
    memory: Path | None = None  # the folder for what it remembers of masked sums; without one it takes part in none
    masked_only: bool = False  # no summary leaves but under masks
    peers: Mapping[str, str] | None = None  # public keys of clients, agreed on without the server; None: as planned

    def answer(self, request: bytes) -> bytes:
        """The reply to a request, whatever it is. No text of an error leaves, nor its name: they are in the log."""
        about = digest(request)
        try:
            return self._answered(Envelope.from_bytes(request), about).to_bytes()
        except Exception as problem:
            return refusal(problem, about)

    def _answered(self, asked: Envelope, about: str) -> Envelope:
        answers = {
            PROFILE: self._profile,
            SUMMARY: self._summary,
            ANSWER: self._answer,
            MASKING: self._masked,
        }
        if asked.kind not in answers or asked.about or asked.code:
            raise NotAMessage(f"asked for {asked.kind[:40]!r}, but known are {', '.join(answers)}; update fedcdh")
        content = answers[asked.kind](asked)
        signature = sign(self.key, asked.kind, content).encode() if self.key else b""
        _LOG.info("%s: %s of %d bytes leaves", self.client, asked.kind, len(content))
        return Envelope(asked.kind, content, signature, about)

    def _profile(self, asked: Envelope) -> bytes:
        self.policy.check_request(_signer("request", asked.content, asked.signature))
        wanted = Wanted.from_bytes(asked.content)
        names = self.variables if wanted.variables is None else wanted.variables
        message = checked_profile(
            self.rows(),
            self.client,
            self.policy,
            self.own,
            variables=names,
            kinds=wanted.kinds,
            key=self.key,
            complete=self.complete,
            look=self._note_columns,
            gate=self.gate,
        )
        return to_text(message).encode()

    def _summary(self, asked: Envelope) -> bytes:
        study = self._invited(asked.content, asked.signature)
        self._check_unmasked(study)
        return pack(SummaryMessage(self._summarized(study), self.policy.research), study.plan)

    def _summarized(self, study: Study, *, masked: bool = False) -> Summary:
        """The summary of the rows, held to the policy, to what was answered and to what left before."""
        summary, _ = checked_summary(
            self.rows(),
            study.plan,
            self.client,
            self.policy,
            self.own,
            max_dropped=self.max_dropped,
            masked=masked,
            look=self._note_plan,
            gate=self.gate,
            workers=self.workers or usual_workers(study.plan.columns),
        )
        return summary

    def _note_plan(self, summary: Summary) -> None:
        if self.answered is not None and not self.policy.research:
            self.answered.plan(summary.plan, _told_of_rows(summary))

    def _note_columns(self, profile: Profile) -> None:
        if self.answered is not None and not self.policy.research:
            self.answered.columns(_told_of_columns(profile))

    def _answer(self, asked: Envelope) -> bytes:
        """In a further round: within the budget of the plan, and about the rows that its summary was of."""
        further = Further.from_bytes(asked.content)
        study = self._invited(further.plan, further.plan_signature)
        self._check_unmasked(study)
        self.policy.check_request(_signer("request", further.request, asked.signature))
        plan, request = study.plan, read_request(further.request, study.plan)

        if self.answered is None and not self.policy.research:
            raise PolicyRefusal("this site keeps no list of what it has told, so it answers no further questions")

        def same_rows(summary: Summary) -> None:
            if self.answered is not None and not self.policy.research:
                self.answered.check_plan(plan.fingerprint, _told_of_rows(summary))

        def answer(spent: Ledger) -> tuple[tuple[JointSummary, ...], Ledger]:
            if self.gate is not None:
                spent = told_in_rounds(self.gate.ledger.entries(), plan)
            return checked_answer(
                self.rows(), plan, self.client, self.policy, request, spent, self.own, look=same_rows, gate=self.gate
            )

        answers = answer(Ledger())[0] if self.answered is None else self.answered.further(plan, answer)
        return pack_answer(AnswerMessage(request.digest, answers, self.policy.research), plan)

    def _masked(self, asked: Envelope) -> bytes:
        """In a round of a masked sum, of which only the sum over sites is ever seen."""
        further = Further.from_bytes(asked.content)
        study = self._invited(further.plan, further.plan_signature)
        self.policy.check_request(_signer(MASKING, further.request, asked.signature))
        if self.key is None or self.memory is None:
            raise PolicyRefusal("a masked sum needs a key of this site, and a folder for what it must not forget")
        self._check_peers(study)
        request: Any = codec.read(further.request, study.plan, *REQUESTS)
        if self.gate is not None and isinstance(request, Terms):
            self.gate.check_remembered(study.plan, self.client, self._remembered(study))

        def rows() -> tuple[Summary, bool]:
            return self._summarized(study, masked=True), self.policy.research

        member = Member(study, self.client, self.key)
        return StateFile(self._remembered(study)).answer(member, request, rows).to_bytes()

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
            raise PolicyRefusal("this site sends no summary by this plan but under masks, and answers nothing further")

    def _remembered(self, study: Study) -> Path:
        return (self.memory or Path()) / f"{study.plan.fingerprint}.masking-state.json"

    def _invited(self, content: bytes, signature: bytes) -> Study:
        """The study of a plan that this site follows."""
        study, signer = Study.from_json(content), _signer("plan", content, signature)
        by = f"signed by {fingerprint(signer)}" if signer else "not signed"
        _LOG.info("%s: asked to follow plan %s, %s", self.client, study.plan.fingerprint[:12], by)
        check_invitation(study, signer, self.client, self.policy, self.own, self.key)
        return study


def refusal(problem: Exception, about: str) -> bytes:
    """The code of a problem as a reply; its text stays here, in the log."""
    code = exit_code_of(problem)
    trace = problem if code == ExitCode.INTERNAL else None
    _LOG.error("refused with code %d: %s: %s", code, type(problem).__name__, problem, exc_info=trace)
    return Envelope(REFUSAL, about=about, code=code).to_bytes()


def _signer(kind: str, content: bytes, signature: bytes) -> str | None:
    return verify(kind, content, signature) if signature else None


def _told_of_columns(profile: Profile) -> dict[str, str]:
    """One digest for every column as it is described, and so for every way of describing it."""
    return {
        f"{name} as {column.kind}": hashlib.sha256(canonical(asdict(column)).encode()).hexdigest()
        for name, column in profile.columns.items()
    }


def _told_of_rows(summary: Summary) -> str:
    """The same for the same rows, whichever version of this program adds them up."""
    counts = canonical([summary.rows_read, dict(summary.missing)]).encode()
    return hashlib.sha256(counts + summary.moments.tobytes()).hexdigest()
