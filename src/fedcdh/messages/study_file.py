"""Study files: the plan that every site gets, with what is known, who has to sign, and what it was made from.

A file is canonical and carries its own digest: any changed byte is refused. The digest finds accidents; against
somebody who changes the file and the digest helps only a signature.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from fedcdh._io.strict_json import canonical, parse
from fedcdh._io.text import is_digest, is_key, readable
from fedcdh.errors import FedCDHError, PlanError
from fedcdh.graphs.knowledge import NOTHING_KNOWN, Knowledge
from fedcdh.summaries.plan import StudyPlan

FORMAT = "fedcdh-study-1"
BYTES_AT_MOST = 16_000_000
VARIABLES_AT_MOST = 10_000
CLIENTS_AT_MOST = 10_000
KNOWN_AT_MOST = 1_000_000
"""Names in arrows and tiers, and positions of tiers: a second's work to check."""
_FIELDS = {"format", "plan", "fingerprint", "knowledge", "keys", "profiles", "digest"}
_KNOWN = ("required", "forbidden", "tiers", "forbid_within_tier")


@dataclass(frozen=True)
class Study:
    """A plan and all that belongs to it.

    >>> from fedcdh.summaries.plan import Continuous
    >>> study = Study(StudyPlan((Continuous("age", 60, 15),), ("north", "south")))
    >>> Study.from_json(study.to_json()) == study
    True
    """

    plan: StudyPlan
    knowledge: Knowledge = NOTHING_KNOWN
    keys: Mapping[str, str] = field(default_factory=dict)  # client → public key that must have signed its summary
    profiles: Mapping[str, str] = field(default_factory=dict)  # client → SHA-256 of the profile file it was made from

    def __post_init__(self) -> None:
        object.__setattr__(self, "keys", MappingProxyType(dict(self.keys)))
        object.__setattr__(self, "profiles", MappingProxyType(dict(self.profiles)))
        variables, clients = len(self.plan.variables), len(self.plan.clients)
        if variables > VARIABLES_AT_MOST or clients > CLIENTS_AT_MOST:
            raise PlanError(
                f"a study has at most {VARIABLES_AT_MOST} variables and {CLIENTS_AT_MOST} clients, found {variables} "
                f"and {clients}; leave variables out, or put small clients together"
            )
        _check_size(self.knowledge)
        self.knowledge.check(self.plan.names)
        named = frozenset(self.plan.clients)
        for what, found, right in (("key", self.keys, is_key), ("profile", self.profiles, is_digest)):
            for client, value in found.items():
                if client not in named or not right(value):
                    raise PlanError(
                        f"the study has a {what} of client {str(client)[:80]!r} that is none, or the plan does not "
                        "name this client; make the study again from the profiles"
                    )

    def to_json(self) -> str:
        """The one text of a study: JSON with sorted keys, two spaces a level and a newline at the end."""
        document = self._document()
        return readable({**document, "digest": _digest(document)})

    def _document(self) -> dict[str, Any]:
        known = self.knowledge
        return {
            "format": FORMAT,
            "plan": parse(self.plan.to_json(), refuse=_not_a_study),
            "fingerprint": self.plan.fingerprint,
            "knowledge": {
                "required": sorted(map(list, known.required)),
                "forbidden": sorted(map(list, known.forbidden)),
                "tiers": [list(tier) for tier in known.tiers],
                "forbid_within_tier": sorted(known.forbid_within_tier),
            },
            "keys": dict(self.keys),
            "profiles": dict(self.profiles),
        }

    @classmethod
    def from_json(cls, text: str | bytes) -> Study:
        """The study that `to_json` wrote; PlanError for anything else."""
        if len(text) > BYTES_AT_MOST:
            raise _not_a_study(f"it is longer than {BYTES_AT_MOST} bytes")
        document = parse(text, refuse=_not_a_study)
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            raise _not_a_study(f"it does not say that its format is {FORMAT!r}")
        if set(document) != _FIELDS or document.pop("digest") != _digest(document):
            raise _not_a_study("its digest is not that of its content: it was changed after it was made")
        try:
            study = _read(document)
        except (FedCDHError, LookupError, TypeError, AttributeError, ValueError) as problem:
            reason = str(problem) if isinstance(problem, FedCDHError) else repr(problem)[:200]
            raise _not_a_study(reason) from None
        if study.to_json().encode() != (text.encode() if isinstance(text, str) else text):
            raise _not_a_study("it is not written the way this program writes one: changed by hand, or on the way")
        return study


def _not_a_study(reason: str) -> PlanError:
    return PlanError(
        f"this is not a plan file as the coordinator made it ({reason}); ask the coordinator for the file again, as "
        "an attachment: mail programs change texts"
    )


def _check_size(known: Knowledge) -> None:
    names = 2 * (len(known.required) + len(known.forbidden)) + sum(map(len, known.tiers))
    if names + len(known.tiers) + len(known.forbid_within_tier) > KNOWN_AT_MOST:
        raise PlanError(
            f"the knowledge of this study names {names} variables in {len(known.required)} required and "
            f"{len(known.forbidden)} forbidden arrows and {len(known.tiers)} tiers, expected at most {KNOWN_AT_MOST} "
            "in all; say it with tiers instead of single arrows"
        )


def _digest(document: Mapping[str, Any]) -> str:
    return hashlib.sha256(canonical(document).encode()).hexdigest()


def _read(document: Mapping[str, Any]) -> Study:
    known = document["knowledge"]
    return Study(
        StudyPlan.from_json(canonical(document["plan"])),
        Knowledge(**{key: known[key] for key in _KNOWN}),
        dict(document["keys"]),
        dict(document["profiles"]),
    )
