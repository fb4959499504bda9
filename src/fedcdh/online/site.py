"""A site that is online: it answers bytes with bytes, under its own policy, and says of its troubles only a code."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fedcdh.codes import INTERNAL, code_of
from fedcdh.errors import NotAMessage
from fedcdh.files.profiles import ProfileMessage, to_text
from fedcdh.files.signing import SigningKey, fingerprint, sign, verify
from fedcdh.files.strict_json import canonical
from fedcdh.files.studies import Study
from fedcdh.files.summaries import SummaryMessage, pack
from fedcdh.online.answered import Answered
from fedcdh.online.messages import PROFILE, REFUSAL, SUMMARY, Envelope, Wanted, digest
from fedcdh.policy import Policy
from fedcdh.summary import Summary
from fedcdh.taking_part import check_invitation, checked_profile, checked_summary

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
    answered: Answered | None = None  # of what was told; research has nothing to hide, and needs none

    def answer(self, request: bytes) -> bytes:
        """The reply to a request, whatever it is. No text of an error leaves, nor its name: they are in the log."""
        about = digest(request)
        try:
            return self._answered(Envelope.from_bytes(request), about).to_bytes()
        except Exception as problem:
            return refusal(problem, about)

    def _answered(self, asked: Envelope, about: str) -> Envelope:
        answers = {PROFILE: self._profile, SUMMARY: self._summary}
        if asked.kind not in answers or asked.about or asked.code:
            raise NotAMessage(f"asked for {asked.kind[:40]!r}, but known are {', '.join(answers)}; update fedcdh")
        content = answers[asked.kind](asked)
        signature = sign(self.key, asked.kind, content).encode() if self.key else b""
        _LOG.info("%s: %s of %d bytes leaves", self.client, asked.kind, len(content))
        return Envelope(asked.kind, content, signature, about)

    def _profile(self, asked: Envelope) -> bytes:
        self.policy.check_request(_signer("request", asked))
        wanted = Wanted.from_bytes(asked.content)
        names = self.variables if wanted.variables is None else wanted.variables
        message = checked_profile(
            self.rows(), self.client, self.policy, self.own, variables=names, kinds=wanted.kinds, key=self.key
        )
        if self.answered is not None and not self.policy.research:
            self.answered.columns(_told_of_columns(message))
        return to_text(message).encode()

    def _summary(self, asked: Envelope) -> bytes:
        study, signer = Study.from_json(asked.content), _signer("plan", asked)
        by = f"signed by {fingerprint(signer)}" if signer else "not signed"
        _LOG.info("%s: asked to follow plan %s, %s", self.client, study.plan.fingerprint[:12], by)
        check_invitation(study, signer, self.client, self.policy, self.own, self.key)
        summary, _ = checked_summary(
            self.rows(), study.plan, self.client, self.policy, self.own, max_dropped=self.max_dropped
        )
        if self.answered is not None and not self.policy.research:
            self.answered.plan(study.plan.fingerprint, _told_of_rows(summary))
        return pack(SummaryMessage(summary, self.policy.research), study.plan)


def refusal(problem: Exception, about: str) -> bytes:
    """The code of a problem as a reply; its text stays here, in the log."""
    code = code_of(problem)
    trace = problem if code == INTERNAL else None
    _LOG.error("refused with code %d: %s: %s", code, type(problem).__name__, problem, exc_info=trace)
    return Envelope(REFUSAL, about=about, code=code).to_bytes()


def _signer(kind: str, asked: Envelope) -> str | None:
    return verify(kind, asked.content, asked.signature) if asked.signature else None


def _told_of_columns(message: ProfileMessage) -> dict[str, str]:
    """One digest for every column as it is described, and so for every way of describing it."""
    return {
        f"{name} as {column.kind}": hashlib.sha256(repr(column).encode()).hexdigest()
        for name, column in message.profile.columns.items()
    }


def _told_of_rows(summary: Summary) -> str:
    """The same for the same rows, whichever version of this program adds them up."""
    counts = canonical([summary.rows_read, dict(summary.missing)]).encode()
    return hashlib.sha256(counts + summary.moments.tobytes()).hexdigest()
