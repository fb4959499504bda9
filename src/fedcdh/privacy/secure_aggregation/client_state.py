"""What a site remembers of a masked sum between its answers, in a file that only its owner may read.

The file is written before an answer leaves. While a sum is under way it holds private keys and others' shares; when
this site has opened its part, it holds none of them, but stays: so that nothing is opened twice.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedcdh._io.storage import locked, read_regular, write_whole
from fedcdh._io.strict_json import parse
from fedcdh._io.text import readable
from fedcdh.errors import MaskingError
from fedcdh.messages.signing import private_enough
from fedcdh.messages.study_file import Study
from fedcdh.privacy.secure_aggregation.client import Member, Rows, Secrets, Site
from fedcdh.privacy.secure_aggregation.codec import bytes_at_most, read
from fedcdh.privacy.secure_aggregation.messages import (
    Keys,
    Masked,
    Opened,
    Present,
    Reply,
    Request,
    Roster,
    Shares,
    Terms,
    digest_of,
)

FORMAT = "fedcdh-masking-state-1"
_MESSAGES = {"terms": Terms, "keys": Keys, "roster": Roster, "shares": Shares, "present": Present, "opened": Opened}
_SECRETS = ("sealing", "masking", "seed")


@dataclass(frozen=True)
class StateFile:
    """The memory of one site in one study."""

    path: Path

    def answer(self, site: Site, request: Request, rows: Rows) -> Reply:
        """The site's answer; when it is out of here, what it has to remember is on disk."""
        with locked(self.path.with_name(f"{self.path.name}.lock")):
            before = self._read(site.study, site.client)
            after, reply = site.answer(request, before, rows)
            if after != before:
                write_whole(self.path, state_text(after), private=True)
            return reply

    def _read(self, study: Study, client: str) -> Member | None:
        if not self.path.exists():
            return None
        kinds = (*_MESSAGES.values(), Masked)
        most = 1000 * len(study.plan.clients) + 2 * sum(bytes_at_most(study.plan, kind) for kind in kinds)
        content = read_regular(self.path, most, "what this site remembers of a masked sum", refuse=MaskingError)
        if not private_enough(self.path):
            raise self._refuse(
                f"others may read it, and it holds secrets; take their rights away (chmod 600 {self.path})"
            )
        state = read_state(content, study, self._refuse)
        if state.client != client or state.terms.study != digest_of(study):
            raise self._refuse("it is of another study or another client; name another file with --state")
        return state

    def _refuse(self, reason: str) -> MaskingError:
        return MaskingError(f"{self.path} cannot be used: {reason}")


def state_text(state: Member) -> str:
    """The text of a state."""
    messages = {name: getattr(state, name) for name in _MESSAGES}
    return readable(
        {
            "format": FORMAT,
            **{name: one and one.to_bytes().decode() for name, one in messages.items()},
            "secrets": _written(state.secrets),
            "masked": state.masked and _text(state.masked.to_bytes()),
        }
    )


def read_state(content: bytes, study: Study, refuse: Any = MaskingError) -> Member:
    """The state that `state_text` wrote."""
    found = parse(content, refuse=refuse)
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise refuse(f"it does not say that its format is {FORMAT!r}")
    try:
        messages: dict[str, Any] = {
            name: None if found[name] is None else read(found[name].encode(), study.plan, kind)
            for name, kind in _MESSAGES.items()
        }
        numbers = found["masked"] and base64.b64decode(found["masked"])
        masked = None if numbers is None else read(numbers, study.plan, Masked)
        state = Member(**messages, secrets=_read(found["secrets"]), masked=masked)
        same = state_text(state).encode() == content
    except (LookupError, TypeError, AttributeError, ValueError):
        same = False
    if not same:
        raise refuse("it is not written the way this program writes one; if it was lost, begin another attempt")
    return state


def _written(secrets: Secrets | None) -> dict[str, Any] | None:
    if secrets is None:
        return None
    held = {client: _text(part) for client, part in secrets.held.items()}
    return {**{name: _text(getattr(secrets, name)) for name in _SECRETS}, "held": held}


def _read(found: Any) -> Secrets | None:
    if found is None:
        return None
    held = {client: base64.b64decode(part) for client, part in found["held"].items()}
    return Secrets(**{name: base64.b64decode(found[name]) for name in _SECRETS}, held=held)


def _text(secret: bytes) -> str:
    return base64.b64encode(secret).decode("ascii")
