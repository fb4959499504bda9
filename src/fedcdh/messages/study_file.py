"""Study files: the plan that every site gets, with background knowledge, keys, and what it was made from.

A file is canonical and carries its own digest: any changed byte is refused. The digest finds accidents; only a
signature protects against somebody who changes the file and the digest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from fedcdh._io.format_version import find_format_mismatch
from fedcdh._io.strict_json import parse_json, to_canonical_json
from fedcdh._io.text import is_digest, is_key, to_readable_json
from fedcdh.errors import FedCDHError, PlanError
from fedcdh.graphs.knowledge import NO_KNOWLEDGE, Knowledge
from fedcdh.summaries.client_changes import change_clients
from fedcdh.summaries.plan import StudyPlan

FORMAT = "fedcdh-study-2"
MAX_STUDY_BYTES = 16_000_000
MAX_VARIABLES = 10_000
MAX_CLIENTS = 10_000
MAX_KNOWLEDGE_ENTRIES = 1_000_000
"""Names in arrows and tiers, and positions of tiers: they take a second to check."""
NO_KEYS: Mapping[str, str] = MappingProxyType({})
_ADVICE = "ask the coordinator for the file again, as an attachment, because mail programs change texts"
_KEYS = {"format", "plan", "fingerprint", "knowledge", "keys", "profiles", "digest"}
_KNOWLEDGE_KEYS = ("required", "forbidden", "tiers", "forbid_within_tier")


@dataclass(frozen=True)
class Study:
    """A plan and all that belongs to it.

    Attributes
    ----------
    plan : StudyPlan
        Plan of the study.
    knowledge : Knowledge, default NO_KNOWLEDGE
        Background knowledge about directions.
    keys : mapping from str to str, default empty
        Public key of each client that has to sign its summary.
    profiles : mapping from str to str, default empty
        SHA-256 of each profile file from which the plan was made.

    Examples
    --------
    >>> from fedcdh.summaries import Continuous, StudyPlan
    >>> study = Study(StudyPlan((Continuous("age", 60, 15),), ("north", "south")))
    >>> Study.from_json(study.to_json()) == study
    True
    """

    plan: StudyPlan
    knowledge: Knowledge = NO_KNOWLEDGE
    keys: Mapping[str, str] = field(default_factory=dict)
    profiles: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "keys", MappingProxyType(dict(self.keys)))
        object.__setattr__(self, "profiles", MappingProxyType(dict(self.profiles)))
        variables, clients = len(self.plan.variables), len(self.plan.clients)
        if variables > MAX_VARIABLES or clients > MAX_CLIENTS:
            raise PlanError(
                f"a study has at most {MAX_VARIABLES} variables and {MAX_CLIENTS} clients, found {variables} "
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
        """Write the one text of a study: JSON with sorted keys, indented by two spaces, and a newline at the end.

        Returns
        -------
        str
            JSON text.
        """
        document = self._document()
        return to_readable_json({**document, "digest": _digest(document)})

    def change_clients(
        self, *, without: Iterable[str] = (), joined: Iterable[str] = (), keys: Mapping[str, str] = NO_KEYS
    ) -> Study:
        """Return the same study for other clients; see `fedcdh.summaries.change_clients`.

        Parameters
        ----------
        without : iterable of str, default ()
            Clients that leave the study.
        joined : iterable of str, default ()
            Clients that join it.
        keys : mapping from str to str, default empty
            Public keys of clients, in place of those that are known.

        Returns
        -------
        Study
            The study. Keys and profiles of clients that left are gone.

        Raises
        ------
        PlanError
            If these clients cannot leave or join.
        """
        plan = change_clients(self.plan, without=without, joined=joined)
        known = {client: key for client, key in self.keys.items() if client in plan.client_set}
        profiles = {client: digest for client, digest in self.profiles.items() if client in plan.client_set}
        return Study(plan, self.knowledge, {**known, **keys}, profiles)

    def _document(self) -> dict[str, Any]:
        known = self.knowledge
        return {
            "format": FORMAT,
            "plan": parse_json(self.plan.to_json(), refuse=_format_error),
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
        """Read a study that `to_json` wrote.

        Parameters
        ----------
        text : str or bytes
            JSON text.

        Returns
        -------
        Study
            The study.

        Raises
        ------
        PlanError
            If the text is not that of a study, or was changed.
        """
        if len(text) > MAX_STUDY_BYTES:
            raise _format_error(f"it is longer than {MAX_STUDY_BYTES} bytes")
        document = parse_json(text, refuse=_format_error)
        if mismatch := find_format_mismatch(document.get("format") if isinstance(document, dict) else None, FORMAT):
            raise _format_error(*mismatch)
        if set(document) != _KEYS or document.pop("digest") != _digest(document):
            raise _format_error("its digest is not that of its content: it was changed after it was made")
        try:
            study = _study_from_document(document)
        except (FedCDHError, LookupError, TypeError, AttributeError, ValueError) as problem:
            reason = str(problem) if isinstance(problem, FedCDHError) else repr(problem)[:200]
            raise _format_error(reason) from None
        if study.to_json().encode() != (text.encode() if isinstance(text, str) else text):
            raise _format_error("it is not written the way this program writes one: changed by hand, or on the way")
        return study


def _format_error(reason: str, advice: str = _ADVICE) -> PlanError:
    return PlanError(f"this is not a plan file as the coordinator made it ({reason}); {advice}")


def _check_size(known: Knowledge) -> None:
    names = 2 * (len(known.required) + len(known.forbidden)) + sum(map(len, known.tiers))
    if names + len(known.tiers) + len(known.forbid_within_tier) > MAX_KNOWLEDGE_ENTRIES:
        raise PlanError(
            f"the knowledge of this study names {names} variables in {len(known.required)} required and "
            f"{len(known.forbidden)} forbidden arrows and {len(known.tiers)} tiers, expected at most "
            f"{MAX_KNOWLEDGE_ENTRIES} in all; say it with tiers instead of single arrows"
        )


def _digest(document: Mapping[str, Any]) -> str:
    return hashlib.sha256(to_canonical_json(document).encode()).hexdigest()


def _study_from_document(document: Mapping[str, Any]) -> Study:
    known = document["knowledge"]
    return Study(
        StudyPlan.from_json(to_canonical_json(document["plan"])),
        Knowledge(**{key: known[key] for key in _KNOWLEDGE_KEYS}),
        dict(document["keys"]),
        dict(document["profiles"]),
    )
