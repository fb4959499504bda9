"""The messages of a masked sum. Each has one way to be written; `wire` reads it.

The server asks with terms, a roster, a delivery, a list of those present, and confirmations; a site answers with its
keys, its shares, its masked numbers, its signature to the list, and what it opens. What a site says it signs with the
key that the plan file names for it, together with the session, which is the digest of the roster: of terms that all
signed, and of keys that each site made anew. So nothing said in one session counts in another.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np

from fedcdh._io.strict_json import to_canonical_json
from fedcdh.errors import SecureAggregationError, SignatureError
from fedcdh.messages.signing import SigningKey, is_signed_by, key_fingerprint, sign_raw
from fedcdh.messages.study_file import Study
from fedcdh.summaries.integer_vectors import Groups, Words, group_clients

FORMAT = "fedcdh-masking-1"
MIN_CLIENTS = 3
"""Of the sum of two, each knows the other's part."""
MAX_CLIENTS = 1000
MAX_ATTEMPTS = 1_000_000

ClientNames = tuple[str, ...]
BytesByClient = Mapping[str, bytes]


class SecAggMessage:
    """What all messages have in common: one line of JSON, and data only where they are numbers."""

    kind: ClassVar[str]

    def to_bytes(self) -> bytes:
        """The one way to write it."""
        return to_canonical_json(self.document()).encode()

    def document(self) -> dict[str, Any]:
        """Its fields, and what it is."""
        said = {one.name: _to_json_value(getattr(self, one.name)) for one in fields(self)}  # type: ignore[arg-type]
        return {"format": FORMAT, "round": self.kind, **said}

    @cached_property
    def digest(self) -> str:
        return hashlib.sha256(self.to_bytes()).hexdigest()


class SignedMessage(SecAggMessage):
    """What a site says, with its signature."""

    client: str
    signature: bytes

    def signed(self, key: SigningKey) -> Self:
        """The same with a signature."""
        return replace(self, signature=sign_raw(key, "masking", self._unsigned()))  # type: ignore[type-var]

    def check_signature(self, study: Study) -> None:
        """Refuses what the key that the plan file names for this client has not signed."""
        expected = study.keys.get(self.client)
        if expected is None:
            raise SignatureError(
                f"there is a message of {self.client[:80]!r}, for whom the plan file names no key; masked sums need "
                "the keys of all sites in it"
            )
        if not is_signed_by(expected, "masking", self._unsigned(), self.signature):
            raise SignatureError(
                f"a message ({self.kind}) in the name of {self.client} is not signed by {key_fingerprint(expected)}, the "
                "key that the plan file names for it; do not go on, and ask both that site and the coordinator"
            )

    def _unsigned(self) -> bytes:
        return to_canonical_json({**self.document(), "signature": ""}).encode()


@dataclass(frozen=True)
class SecAggTerms(SecAggMessage):
    """What the coordinator proposes, and each site agrees to by signing its keys with it."""

    kind: ClassVar[str] = "terms"

    plan: str  # fingerprint
    study: str  # SHA-256 of the plan file, which names the keys of the sites
    threshold: int  # so many sites must be there at the end, and open the sum
    groups: Mapping[str, str] = field(default_factory=dict)  # group of every client; empty: each site by itself
    attempt: int = 1  # counts, where one attempt failed

    def __post_init__(self) -> None:
        object.__setattr__(self, "groups", MappingProxyType(dict(self.groups)))

    @classmethod
    def of(
        cls,
        study: Study,
        *,
        threshold: int | None = None,
        groups: Mapping[str, str] | None = None,
        attempt: int = 1,
    ) -> SecAggTerms:
        """Terms for this study: unless told otherwise, more than two thirds of the sites open the sum."""
        clients = study.plan.clients
        needed = 2 * len(clients) // 3 + 1 if threshold is None else threshold
        if not groups and study.plan.noise is not None:
            groups = dict.fromkeys(clients, "all clients")
        terms = cls(study.plan.fingerprint, hash_study(study), needed, groups or {}, attempt)
        terms.check(study)
        return terms

    def check(self, study: Study) -> None:
        """Refuses terms of another study, or under which too few sites would see too much."""
        clients = study.plan.clients
        if self.plan != study.plan.fingerprint or self.study != hash_study(study):
            raise SecureAggregationError(
                "these terms are of another plan file than the one here, or of one with other keys; compare the plan "
                "files of all sites"
            )
        if not MIN_CLIENTS <= len(clients) <= MAX_CLIENTS:
            raise SecureAggregationError(
                f"the plan names {len(clients)} sites; a masked sum is of {MIN_CLIENTS} to {MAX_CLIENTS}: of the "
                "sum of two, each knows the other's part"
            )
        if not max(len(clients) // 2 + 1, MIN_CLIENTS) <= self.threshold <= len(clients):
            raise SecureAggregationError(
                f"the threshold is {self.threshold} of {len(clients)} sites; expected more than half of them and at "
                f"least {MIN_CLIENTS}, so that the server cannot open the sum of two different sets of sites"
            )
        if lacking := [client for client in clients if client not in study.keys]:
            raise SignatureError(
                f"the plan file names no key for {', '.join(lacking)}; without it the server could speak in that "
                "site's name: make the plan with the keys of all sites (fedcdh plan --site-key)"
            )
        if len(set(study.keys.values())) != len(study.keys):
            raise SignatureError("two sites have the same key in the plan file; each needs one of its own")
        if self.groups:
            _check_groups(self.groups, clients)
        noise = study.plan.noise
        if noise is not None and (len(set(self.groups.values())) != 1 or self.threshold < noise.honest):
            raise SecureAggregationError(
                f"by this plan there is noise in the sum, of {noise.honest} sites at least, and nothing is told of "
                "single ones; put all sites into one group, and have at least so many open the sum"
            )

    def check_present(self, clients: ClientNames, what: str) -> None:
        """Refuses to go on with fewer sites than the terms say, in all or in a group."""
        if len(clients) < max(self.threshold, MIN_CLIENTS):
            raise SecureAggregationError(
                f"{len(clients)} sites {what} ({', '.join(clients)}), and at least {self.threshold} are needed, or "
                "nothing can be opened; wait for more, or begin another attempt"
            )
        for name, members in self.groups_of(clients) if self.groups else ():
            if len(members) < MIN_CLIENTS:
                raise SecureAggregationError(
                    f"of the group {name!r} only {' and '.join(members)} {what}, and the sum of fewer than "
                    f"{MIN_CLIENTS} sites tells too much of each; wait for more, or begin another attempt with "
                    "other groups"
                )

    def groups_of(self, clients: ClientNames) -> Groups:
        """The groups that these clients are in."""
        return group_clients(self.groups, clients)


def hash_study(study: Study) -> str:
    """Of the plan file, keys and all. Sites compare it, by telephone say: then they all know the same keys."""
    return hashlib.sha256(study.to_json().encode()).hexdigest()


def _check_groups(groups: Mapping[str, str], clients: ClientNames) -> None:
    if groups.keys() != set(clients):
        raise SecureAggregationError("the groups do not name every site of the plan once; put each site into one group")
    for name, members in group_clients(groups, clients):
        if len(members) < MIN_CLIENTS:
            raise SecureAggregationError(
                f"the group {name!r} is of {', '.join(members)}; a group needs at least {MIN_CLIENTS} sites, for "
                "its rows and means become known"
            )


# What sites and server say, round by round


@dataclass(frozen=True)
class PublicKeys(SignedMessage):
    """The public keys that a site made for this attempt."""

    kind: ClassVar[str] = "keys"

    client: str
    terms: str  # digest
    sealing: bytes  # others seal shares with it
    masking: bytes  # masks come from it
    signature: bytes = b""


@dataclass(frozen=True)
class Roster(SecAggMessage):
    """Who takes part, with which keys."""

    kind: ClassVar[str] = "roster"

    terms: SecAggTerms
    keys: tuple[PublicKeys, ...]  # sorted by client

    @property
    def clients(self) -> ClientNames:
        return tuple(one.client for one in self.keys)

    def of(self, client: str) -> PublicKeys:
        """The keys of a client."""
        return next(one for one in self.keys if one.client == client)

    def check(self, study: Study) -> None:
        """Refuses a roster with anybody in it who has not signed these very terms, or not with keys of its own."""
        self.terms.check(study)
        if list(self.clients) != sorted(set(self.clients)) or not set(self.clients) <= set(study.plan.clients):
            raise SecureAggregationError("the roster names a site twice, or one that is not in the plan; do not go on")
        for one in self.keys:
            one.check_signature(study)
            if one.terms != self.terms.digest:
                raise SecureAggregationError(
                    f"{one.client} signed other terms than those of the roster (another threshold, other groups or an "
                    "older attempt); do not go on, and ask the coordinator"
                )
        public = [key for one in self.keys for key in (one.sealing, one.masking)]
        if len(set(public)) != len(public):
            raise SecureAggregationError("two keys of the roster are the same; each site makes its own: do not go on")
        self.terms.check_present(self.clients, "sent keys")


@dataclass(frozen=True)
class SealedShares(SignedMessage):
    """For every other site, sealed: its shares of the seed of this site's own mask, and of its masking key."""

    kind: ClassVar[str] = "shares"

    client: str
    session: str
    commitment: str  # SHA-256 of the seed and the session: tells whether shares gave the right seed back
    sealed: BytesByClient
    signature: bytes = b""

    def __post_init__(self) -> None:
        object.__setattr__(self, "sealed", MappingProxyType(dict(self.sealed)))


@dataclass(frozen=True)
class ShareDelivery(SecAggMessage):
    """What sites sealed for others: sender → receiver → box. Whoever is a sender here is masked with."""

    kind: ClassVar[str] = "delivery"

    session: str
    boxes: Mapping[str, BytesByClient]

    def __post_init__(self) -> None:
        boxes = {sender: MappingProxyType(dict(box)) for sender, box in self.boxes.items()}
        object.__setattr__(self, "boxes", MappingProxyType(boxes))

    @property
    def clients(self) -> ClientNames:
        return tuple(sorted(self.boxes))

    def to(self, client: str) -> ShareDelivery:
        """The part of it that concerns one site."""
        own = {sender: {client: box[client]} if client in box else {} for sender, box in self.boxes.items()}
        return ShareDelivery(self.session, own)


@dataclass(frozen=True, eq=False)
class MaskedVector(SignedMessage):
    """A site's numbers under masks that it shares with these sites, and one of its own."""

    kind: ClassVar[str] = "masked"

    client: str
    session: str
    masked_with: ClientNames
    research: bool
    words: Words
    signature: bytes = b""

    def document(self) -> dict[str, Any]:
        """The numbers stand behind the line, their digest in it."""
        return {**super().document(), "words": hashlib.sha256(self._data()).hexdigest()}

    def to_bytes(self) -> bytes:
        """A line, and the numbers, 8 bytes each, the lowest first."""
        return super().to_bytes() + b"\n" + self._data()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MaskedVector) and self.to_bytes() == other.to_bytes()

    __hash__ = None  # type: ignore[assignment]

    def _data(self) -> bytes:
        return self.words.astype("<u8", copy=False).tobytes()


@dataclass(frozen=True)
class SurvivorList(SecAggMessage):
    """The sites whose masked numbers came: the sum will be of these."""

    kind: ClassVar[str] = "present"

    session: str
    clients: ClientNames


@dataclass(frozen=True)
class SurvivorConfirmation(SignedMessage):
    """A site has seen this list and no other."""

    kind: ClassVar[str] = "confirmed"

    client: str
    session: str
    present: str  # digest of the list
    signature: bytes = b""


@dataclass(frozen=True)
class ConfirmedSurvivors(SecAggMessage):
    """The list once more, with the signatures of those who saw it."""

    kind: ClassVar[str] = "confirmations"

    present: SurvivorList
    signatures: BytesByClient

    def __post_init__(self) -> None:
        object.__setattr__(self, "signatures", MappingProxyType(dict(self.signatures)))

    def check(self, study: Study, terms: SecAggTerms) -> None:
        """Refuses if fewer sites than the terms say have signed this list."""
        if not set(self.signatures) <= set(self.present.clients):
            raise SecureAggregationError(
                "a site signed the list that is not in it; do not go on, and ask the coordinator"
            )
        for client, signature in self.signatures.items():
            SurvivorConfirmation(client, self.present.session, self.present.digest, signature).check_signature(study)
        if len(self.signatures) < terms.threshold:
            raise SecureAggregationError(
                f"{len(self.signatures)} sites signed the list, and {terms.threshold} are needed; wait for more"
            )


@dataclass(frozen=True)
class UnmaskingShares(SignedMessage):
    """A site's shares of the seeds of those present, and of the masking keys of those who left. Never both of one."""

    kind: ClassVar[str] = "opened"

    client: str
    session: str
    present: str  # digest of the list
    seeds: BytesByClient
    keys: BytesByClient
    signature: bytes = b""

    def __post_init__(self) -> None:
        object.__setattr__(self, "seeds", MappingProxyType(dict(self.seeds)))
        object.__setattr__(self, "keys", MappingProxyType(dict(self.keys)))


SecAggRequest = SecAggTerms | Roster | ShareDelivery | SurvivorList | ConfirmedSurvivors
REQUEST_TYPES = (SecAggTerms, Roster, ShareDelivery, SurvivorList, ConfirmedSurvivors)
SecAggReply = PublicKeys | SealedShares | MaskedVector | SurvivorConfirmation | UnmaskingShares


def _to_json_value(value: Any) -> Any:
    """A field as JSON."""
    if isinstance(value, SecAggMessage):
        return value.document()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, Mapping):
        return {name: _to_json_value(one) for name, one in value.items()}
    if isinstance(value, tuple):
        return [_to_json_value(one) for one in value]
    return None if isinstance(value, np.ndarray) else value
