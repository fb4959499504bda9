"""The messages of secure aggregation, round by round. Each has unique bytes; `codec` reads them.

The server asks with terms, a roster, a delivery of shares, a list of survivors, and confirmations. A client answers
with its public keys, its sealed shares, its masked vector, its signature of the list, and its shares for unmasking. A
client signs its messages with the key that the plan file names for it. The signature covers the session, which is the
digest of the roster: of the terms that all signed, and of keys that each client made for this session. So no message
of one session counts in another.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

from fedcdh.errors import SecureAggregationError
from fedcdh.messages.study_file import Study
from fedcdh.privacy.secure_aggregation._signed_message import FORMAT, SecAggMessage, SignedMessage
from fedcdh.privacy.secure_aggregation.masking import is_low_order
from fedcdh.privacy.secure_aggregation.terms import (
    MAX_ATTEMPTS,
    MAX_CLIENTS,
    MIN_CLIENTS,
    ClientNames,
    SecAggTerms,
    hash_study,
)
from fedcdh.summaries.integer_vectors import Words

__all__ = [
    "FORMAT",
    "MAX_ATTEMPTS",
    "MAX_CLIENTS",
    "MIN_CLIENTS",
    "REQUEST_TYPES",
    "BytesByClient",
    "ClientNames",
    "ConfirmedSurvivors",
    "MaskedVector",
    "PublicKeys",
    "Roster",
    "SealedShares",
    "SecAggMessage",
    "SecAggReply",
    "SecAggRequest",
    "SecAggTerms",
    "ShareDelivery",
    "SignedMessage",
    "SurvivorConfirmation",
    "SurvivorList",
    "UnmaskingShares",
    "hash_study",
]

BytesByClient = Mapping[str, bytes]


@dataclass(frozen=True)
class PublicKeys(SignedMessage):
    """Round 1: the public keys that a client made for this session.

    Parameters
    ----------
    client : str
        Name of the client.
    terms : str
        Digest of the terms.
    sealing : bytes
        Key with which others seal shares.
    masking : bytes
        Key from which pair masks are derived.
    signature : bytes, default b""
        Signature of the client.
    """

    kind: ClassVar[str] = "keys"

    client: str
    terms: str
    sealing: bytes
    masking: bytes
    signature: bytes = b""

    def check_points(self) -> None:
        """Refuse keys with which every agreed secret is zero.

        Raises
        ------
        SecureAggregationError
            If one of the keys is such a point.
        """
        if is_low_order(self.sealing) or is_low_order(self.masking):
            raise SecureAggregationError(
                f"{self.client} sent a public key of low order, with which every secret is known to all. Expected keys "
                f"that {self.client} made for this session. Leave {self.client} out, and ask it which program it runs"
            )


@dataclass(frozen=True)
class Roster(SecAggMessage):
    """Round 2: the clients of the session and their keys, sorted by name.

    Parameters
    ----------
    terms : SecAggTerms
        The terms.
    keys : tuple of PublicKeys
        Keys of the clients.
    """

    kind: ClassVar[str] = "roster"

    terms: SecAggTerms
    keys: tuple[PublicKeys, ...]

    @property
    def clients(self) -> ClientNames:
        """Names of the clients."""
        return tuple(one.client for one in self.keys)

    def keys_of(self, client: str) -> PublicKeys:
        """Return the keys of a client."""
        return next(one for one in self.keys if one.client == client)

    def check(self, study: Study) -> None:
        """Refuse a roster with a client that has not signed these terms, or not with keys of its own.

        Parameters
        ----------
        study : Study
            The plan file.

        Raises
        ------
        SecureAggregationError
            If the roster does not fit the plan or the terms.
        SignatureError
            If a signature is false.
        """
        self.terms.check(study)
        if list(self.clients) != sorted(set(self.clients)) or not set(self.clients) <= set(study.plan.clients):
            raise SecureAggregationError(
                "The roster names a client twice, or one that is not in the plan. Expected clients of the plan, each "
                "once. Do not go on, and ask the coordinator"
            )
        for one in self.keys:
            one.check_signature(study)
            one.check_points()
            if one.terms != self.terms.digest:
                raise SecureAggregationError(
                    f"{one.client} signed other terms than those of the roster (another threshold, other groups or an "
                    "older attempt). Expected the same terms. Do not go on, and ask the coordinator"
                )
        public = [key for one in self.keys for key in (one.sealing, one.masking)]
        if len(set(public)) != len(public):
            raise SecureAggregationError(
                "Two keys of the roster are equal. Expected keys that each client made for itself. Do not go on, and "
                "ask the coordinator"
            )
        self.terms.check_present(self.clients, "sent keys")


@dataclass(frozen=True)
class SealedShares(SignedMessage):
    """Round 2: for every other client, sealed, its shares of this client's mask seed and masking key.

    Parameters
    ----------
    client : str
        Name of the client.
    session : str
        Digest of the roster.
    commitment : str
        SHA-256 of the session and the seed: says whether shares recovered the right seed.
    sealed : mapping from str to bytes
        Sealed shares by receiver.
    signature : bytes, default b""
        Signature of the client.
    """

    kind: ClassVar[str] = "shares"

    client: str
    session: str
    commitment: str
    sealed: BytesByClient
    signature: bytes = b""

    def __post_init__(self) -> None:
        object.__setattr__(self, "sealed", MappingProxyType(dict(self.sealed)))


@dataclass(frozen=True)
class ShareDelivery(SecAggMessage):
    """Round 3: the sealed shares by sender and receiver. The senders are the clients that mask with one another.

    Parameters
    ----------
    session : str
        Digest of the roster.
    boxes : mapping from str to mapping from str to bytes
        Sealed shares by sender and receiver.
    """

    kind: ClassVar[str] = "delivery"

    session: str
    boxes: Mapping[str, BytesByClient]

    def __post_init__(self) -> None:
        boxes = {sender: MappingProxyType(dict(box)) for sender, box in self.boxes.items()}
        object.__setattr__(self, "boxes", MappingProxyType(boxes))

    @property
    def clients(self) -> ClientNames:
        """Names of the senders."""
        return tuple(sorted(self.boxes))

    def part_for(self, client: str) -> ShareDelivery:
        """Return the part of the delivery that one client needs."""
        own = {sender: {client: box[client]} if client in box else {} for sender, box in self.boxes.items()}
        return ShareDelivery(self.session, own)


@dataclass(frozen=True, eq=False)
class MaskedVector(SignedMessage):
    """Round 3: a client's vector under the masks that it shares with other clients, and one of its own.

    Parameters
    ----------
    client : str
        Name of the client.
    session : str
        Digest of the roster.
    masked_with : tuple of str
        The clients that mask with one another, this one included.
    disclosure_control : bool
        Whether the policy of this client enforced its limits.
    words : array of uint64
        The masked vector.
    signature : bytes, default b""
        Signature of the client.
    """

    kind: ClassVar[str] = "masked"

    client: str
    session: str
    masked_with: ClientNames
    disclosure_control: bool
    words: Words
    signature: bytes = b""

    def document(self) -> dict[str, Any]:
        """Return the fields; the vector follows the line of JSON, which holds its digest."""
        return {**super().document(), "words": hashlib.sha256(self._data()).hexdigest()}

    def to_bytes(self) -> bytes:
        """Return a line of JSON and the numbers, 8 bytes each, little-endian."""
        return super().to_bytes() + b"\n" + self._data()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MaskedVector) and self.to_bytes() == other.to_bytes()

    __hash__ = None  # type: ignore[assignment]

    def _data(self) -> bytes:
        return self.words.astype("<u8", copy=False).tobytes()


@dataclass(frozen=True)
class SurvivorList(SecAggMessage):
    """Round 4: the clients whose masked vectors arrived. The sum will be over these.

    Parameters
    ----------
    session : str
        Digest of the roster.
    clients : tuple of str
        Names of the clients.
    """

    kind: ClassVar[str] = "present"

    session: str
    clients: ClientNames


@dataclass(frozen=True)
class SurvivorConfirmation(SignedMessage):
    """Round 4: a client has seen this list of survivors and no other.

    Parameters
    ----------
    client : str
        Name of the client.
    session : str
        Digest of the roster.
    present : str
        Digest of the list.
    signature : bytes, default b""
        Signature of the client.
    """

    kind: ClassVar[str] = "confirmed"

    client: str
    session: str
    present: str
    signature: bytes = b""


@dataclass(frozen=True)
class ConfirmedSurvivors(SecAggMessage):
    """Round 5: the list of survivors with the signatures of those that saw it.

    Parameters
    ----------
    present : SurvivorList
        The list.
    signatures : mapping from str to bytes
        Signatures by client.
    """

    kind: ClassVar[str] = "confirmations"

    present: SurvivorList
    signatures: BytesByClient

    def __post_init__(self) -> None:
        object.__setattr__(self, "signatures", MappingProxyType(dict(self.signatures)))

    def check(self, study: Study, terms: SecAggTerms) -> None:
        """Refuse a list that fewer clients than the threshold have signed.

        Parameters
        ----------
        study : Study
            The plan file.
        terms : SecAggTerms
            The terms of the session.

        Raises
        ------
        SecureAggregationError
            If there are too few signatures, or one of a client that is not in the list.
        SignatureError
            If a signature is false.
        """
        if not set(self.signatures) <= set(self.present.clients):
            raise SecureAggregationError(
                "A client signed the list of survivors that is not in it. Expected signatures of survivors only. Do "
                "not go on, and ask the coordinator"
            )
        for client, signature in self.signatures.items():
            SurvivorConfirmation(client, self.present.session, self.present.digest, signature).check_signature(study)
        if len(self.signatures) < terms.threshold:
            raise SecureAggregationError(
                f"{len(self.signatures)} clients signed the list of survivors. Expected at least {terms.threshold}. "
                "Wait for more"
            )


@dataclass(frozen=True)
class UnmaskingShares(SignedMessage):
    """Round 5: shares of the mask seeds of survivors, and of the masking keys of those that left; never both of one.

    Parameters
    ----------
    client : str
        Name of the client.
    session : str
        Digest of the roster.
    present : str
        Digest of the list of survivors.
    seeds : mapping from str to bytes
        Shares of mask seeds, by survivor.
    keys : mapping from str to bytes
        Shares of masking keys, by client that left.
    signature : bytes, default b""
        Signature of the client.
    """

    kind: ClassVar[str] = "opened"

    client: str
    session: str
    present: str
    seeds: BytesByClient
    keys: BytesByClient
    signature: bytes = b""

    def __post_init__(self) -> None:
        object.__setattr__(self, "seeds", MappingProxyType(dict(self.seeds)))
        object.__setattr__(self, "keys", MappingProxyType(dict(self.keys)))


SecAggRequest = SecAggTerms | Roster | ShareDelivery | SurvivorList | ConfirmedSurvivors
REQUEST_TYPES = (SecAggTerms, Roster, ShareDelivery, SurvivorList, ConfirmedSurvivors)
SecAggReply = PublicKeys | SealedShares | MaskedVector | SurvivorConfirmation | UnmaskingShares
