"""A client of a federated study: it answers bytes with bytes under its own policy, and reports errors only as codes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fedcdh._runtime.cpu_count import default_workers
from fedcdh.errors import DisclosureError, ExitCode, MessageFormatError, SignatureError, exit_code_of
from fedcdh.messages.answer_file import AnswerMessage, pack_answer
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
from fedcdh.messages.round_files import request_from_json
from fedcdh.messages.signing import SigningKey, key_fingerprint, sign, verify
from fedcdh.messages.study_file import Study
from fedcdh.messages.summary_file import SummaryMessage, pack_summary
from fedcdh.privacy.disclosure.policy import Policy
from fedcdh.privacy.ledger.gate import ReleaseGate, spent_round_budget
from fedcdh.privacy.releases import ReleaseContext, check_invitation, release_answer, release_profile, release_summary
from fedcdh.privacy.secure_aggregation.client import ResidualPart, SecAggClient
from fedcdh.privacy.secure_aggregation.client_states import ClientStates
from fedcdh.privacy.secure_aggregation.codec import read_message
from fedcdh.privacy.secure_aggregation.messages import REQUEST_TYPES, SecAggTerms
from fedcdh.summaries.joint import JointSummary, RoundBudget
from fedcdh.summaries.joint.round_budget import FurtherRequest
from fedcdh.summaries.residuals import ResidualSums
from fedcdh.summaries.summary import Summary

_LOG = logging.getLogger("fedcdh.site")


@dataclass(frozen=True)
class ClientNode:
    """A client that answers requests. Everything is decided at the site, nothing by the coordinator.

    Parameters
    ----------
    client : str
        Name of the client.
    rows : callable
        Opens the rows; called for every answer.
    policy : Policy
        The rules of disclosure control.
    local_names : mapping of str
        From the names of the study to the column names of the site, where they differ.
    variables : sequence of str, optional
        Variables offered if the coordinator names none. By default all columns.
    key : SigningKey, optional
        Signs every message.
    max_missing_share : float
        Largest share of rows with missing values that a summary may leave out.
    workers : int, optional
        Threads that share the work on a summary; None for as many as processors and memory allow.
    complete : bool
        Describe in the profile, as in the summary, only rows without missing values.
    order_by : str, optional
        Column with the time of each row, see `fedcdh.summaries.profile`. By default rows keep their order.
    gate : ReleaseGate, optional
        The ledger of everything that leaves the site. Adaptive rounds need one, unless disclosure control is off.
    memory : Path, optional
        Folder for the state of secure sums. Without one, the client takes part in none.
    masked_only : bool
        Let no summary leave except in a secure sum.
    peers : mapping of str, optional
        Public keys of the other clients, agreed on without the coordinator. By default those of the plan are used.

    Examples
    --------
    >>> node = ClientNode("north", lambda: {"age": [50.0, 61.0, 70.0]})
    >>> Envelope.from_bytes(node.answer(b"no request")).kind
    'refusal'
    """

    client: str
    rows: Callable[[], Any]
    policy: Policy = field(default_factory=Policy)
    local_names: Mapping[str, str] = field(default_factory=dict)
    variables: Sequence[str] | None = None
    key: SigningKey | None = None
    max_missing_share: float = 0.5
    workers: int | None = 1
    complete: bool = False
    gate: ReleaseGate | None = None
    memory: Path | None = None
    masked_only: bool = False
    peers: Mapping[str, str] | None = None
    order_by: str | None = None

    def answer(self, request: bytes) -> bytes:
        """Return the reply to a request.

        No text of an error leaves the site, only its code; the text is in the site's log.

        Parameters
        ----------
        request : bytes
            The request, whatever its content.

        Returns
        -------
        bytes
            The reply, or a refusal with a code.
        """
        digest = sha256_hex(request)
        try:
            return self._reply(Envelope.from_bytes(request), digest).to_bytes()
        except Exception as problem:
            return refusal_reply(problem, digest)

    def _reply(self, envelope: Envelope, digest: str) -> Envelope:
        handlers = {
            PROFILE: self._send_profile,
            SUMMARY: self._send_summary,
            ANSWER: self._send_answer,
            MASKING: self._send_masked,
        }
        if envelope.kind not in handlers or envelope.in_reply_to or envelope.code:
            raise MessageFormatError(
                f"The request is of the kind {envelope.kind[:40]!r}. Expected one of {', '.join(handlers)}. Update "
                "fedcdh at the site or at the coordinator."
            )
        content = handlers[envelope.kind](envelope)
        signature = sign(self.key, envelope.kind, content).encode() if self.key else b""
        _LOG.info("%s: a %s of %d bytes leaves", self.client, envelope.kind, len(content))
        return Envelope(envelope.kind, content, signature, digest)

    def _send_profile(self, envelope: Envelope) -> bytes:
        self.policy.check_request(_verify_signer("request", envelope.content, envelope.signature))
        request = ProfileRequest.from_bytes(envelope.content)
        message = release_profile(
            self.rows(),
            self._context(),
            variables=self.variables if request.variables is None else request.variables,
            kinds=request.kinds,
            recipes=request.recipes,
            key=self.key,
            complete=self.complete,
            order_by=self.order_by,
        )
        return profile_to_json(message).encode()

    def _send_summary(self, envelope: Envelope) -> bytes:
        study = self._accept_plan(envelope.content, envelope.signature)
        self._check_unmasked(study)
        return pack_summary(SummaryMessage(self._summarize(study), self.policy.disclosure_control), study.plan)

    def _summarize(self, study: Study, *, masked: bool = False) -> Summary:
        """Return the summary of the rows, if the policy and the ledger let it leave."""
        context = self._context(self.workers or default_workers(study.plan.layout.n_columns))
        summary, _ = release_summary(self.rows(), study.plan, context, masked=masked)
        return summary

    def _context(self, workers: int = 1) -> ReleaseContext:
        """Return the rules for every release of this client."""
        return ReleaseContext(self.client, self.policy, self.local_names, self.gate, self.max_missing_share, workers)

    def _send_answer(self, envelope: Envelope) -> bytes:
        """Answer a further round, within the budget of the plan and about the rows of its summary."""
        request_and_plan = RoundRequest.from_bytes(envelope.content)
        study = self._accept_plan(request_and_plan.plan, request_and_plan.plan_signature)
        self._check_unmasked(study)
        self.policy.check_request(_verify_signer("request", request_and_plan.request, envelope.signature))
        plan, request = study.plan, request_from_json(request_and_plan.request, study.plan)
        answers = self._answer(study, request)
        return pack_answer(AnswerMessage(request.digest, self.client, answers, self.policy.disclosure_control), plan)

    def _answer(
        self, study: Study, request: FurtherRequest, masked_with: int = 0
    ) -> tuple[JointSummary | ResidualSums, ...]:
        """Return the answers to a request, if plan, policy and ledger let them leave."""
        plan = study.plan
        if self.gate is None and self.policy.disclosure_control:
            raise DisclosureError(
                "This site has no release ledger. Expected a ledger before it answers further rounds. Give the client "
                "a gate with a ledger."
            )

        spent = RoundBudget() if self.gate is None else spent_round_budget(self.gate.ledger.entries(), plan)
        answers, _ = release_answer(
            self.rows(), plan, self._context(), request, spent, require_summary=True, masked_with=masked_with
        )
        return answers

    def _send_masked(self, envelope: Envelope) -> bytes:
        """Answer a round of a secure sum, of which the coordinator only ever sees the sum over clients."""
        request_and_plan = RoundRequest.from_bytes(envelope.content)
        study = self._accept_plan(request_and_plan.plan, request_and_plan.plan_signature)
        self.policy.check_request(_verify_signer(MASKING, request_and_plan.request, envelope.signature))
        if self.key is None or self.memory is None:
            raise DisclosureError(
                "This site has no key, or no folder for the state of secure sums. Expected both. Set key in site.toml "
                "to take part in a secure sum."
            )
        self._check_peers(study)
        request: Any = read_message(request_and_plan.request, study.plan, *REQUEST_TYPES)
        states = ClientStates(self._state_path(study))
        if isinstance(request, SecAggTerms):
            states.check_terms(study, self.client, request, self.gate)

        def provide_summary() -> tuple[Summary, bool]:
            return self._summarize(study, masked=True), self.policy.disclosure_control

        def provide_answers(terms: SecAggTerms) -> tuple[Any, bool]:
            assert terms.residuals is not None
            return self._answer(study, terms.residuals, terms.threshold - 1), self.policy.disclosure_control

        residuals = ResidualPart(states.of_summaries.read(study, self.client), provide_answers)
        limits = self.policy.secure_sum_limits()
        member = SecAggClient(study, self.client, self.key, residuals=residuals, limits=limits)
        state = states.find(study, self.client, request)
        return state.answer(member, request, provide_summary, self.gate).to_bytes()

    def _check_peers(self, study: Study) -> None:
        """Check the keys in the plan, which the coordinator might have replaced by its own."""
        if self.peers is None:
            return
        if unknown := [client for client, key in study.keys.items() if self.peers.get(client) != key]:
            raise SignatureError(
                f"The plan names keys of {', '.join(unknown)} that differ from the list of peers of this site. "
                "Expected the same keys. Ask these sites for their keys, not through the coordinator, and correct the "
                "list; otherwise do not take part."
            )

    def _check_unmasked(self, study: Study) -> None:
        """Refuse an open summary after a secure sum: a sum and all summaries but one would reveal that one."""
        if self.masked_only or (self.memory is not None and self._state_path(study).exists()):
            raise DisclosureError(
                "The coordinator requests an open message by this plan. This site takes part in it only by secure "
                "aggregation. Ask the coordinator for a secure sum."
            )

    def _state_path(self, study: Study) -> Path:
        return (self.memory or Path()) / f"{study.plan.fingerprint}.masking-state.json"

    def _accept_plan(self, content: bytes, signature: bytes) -> Study:
        """Return the study of a plan, if the policy accepts it."""
        study, signer = Study.from_json(content), _verify_signer("plan", content, signature)
        by = f"signed by {key_fingerprint(signer)}" if signer else "not signed"
        _LOG.info("%s: asked to follow plan %s, %s", self.client, study.plan.fingerprint[:12], by)
        check_invitation(study, signer, self._context(), self.key)
        return study


def refusal_reply(problem: Exception, digest: str) -> bytes:
    """Return the code of an error as the reply to a request; the text of the error goes to the log only."""
    code = exit_code_of(problem)
    trace = problem if code == ExitCode.INTERNAL else None
    _LOG.error("refused with code %d: %s: %s", code, type(problem).__name__, problem, exc_info=trace)
    return Envelope(REFUSAL, in_reply_to=digest, code=code).to_bytes()


def _verify_signer(kind: str, content: bytes, signature: bytes) -> str | None:
    return verify(kind, content, signature) if signature else None
