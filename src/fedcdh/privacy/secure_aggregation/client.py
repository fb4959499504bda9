"""A masked sum from a site's side: what it remembers, what it answers, and what it refuses.

A site trusts the plan file, its own disk and its own chance, and not the server. It masks once in a session, signs one
list, and of every other site opens either the seed of its own mask, if that site is in the list, or its masking key,
if it is not: with both, the server could take off all masks of that site. What is asked again is answered with the
same bytes; anything else is refused, also after a restart: the state is on disk before an answer leaves.

One sum is opened per plan file. The sums of two sets of sites differ by those who are in one of them, so a second
attempt is made only where this site has not opened anything in the one before.
"""

from __future__ import annotations

import hashlib
import secrets as chance
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from fedcdh.errors import SecureAggregationError, SignatureError
from fedcdh.messages.signing import SigningKey
from fedcdh.messages.study_file import Study
from fedcdh.privacy.differential.mechanism import add_noise, add_noise_share
from fedcdh.privacy.secure_aggregation.masking import (
    KEY_BYTES,
    NONCE_BYTES,
    agree_secret,
    derive_pair_mask_key,
    derive_public_key,
    derive_self_mask_key,
    expand_mask,
    seal,
    unseal,
)
from fedcdh.privacy.secure_aggregation.messages import (
    BytesByClient,
    ClientNames,
    ConfirmedSurvivors,
    MaskedVector,
    PublicKeys,
    Roster,
    SealedShares,
    SecAggReply,
    SecAggRequest,
    SecAggTerms,
    ShareDelivery,
    SurvivorConfirmation,
    SurvivorList,
    UnmaskingShares,
)
from fedcdh.privacy.secure_aggregation.secret_sharing import SHARE_BYTES, RandomBytes, split_secret
from fedcdh.summaries.integer_vectors import Words, encode_summary
from fedcdh.summaries.summary import Summary

SummaryProvider = Callable[[], tuple[Summary, bool]]
"""The summary of this site's rows as its policy lets it leave, and whether that was for research."""


@dataclass(frozen=True)
class ClientSecrets:
    """What nobody else may know: two private keys, the seed of the site's own mask, and what others entrusted to it."""

    sealing: bytes = field(repr=False)
    masking: bytes = field(repr=False)
    seed: bytes = field(repr=False)
    held: BytesByClient = field(default_factory=dict, repr=False)  # of every site that shared: both of its shares

    def __post_init__(self) -> None:
        object.__setattr__(self, "held", MappingProxyType(dict(self.held)))

    @classmethod
    def new(cls, random: RandomBytes) -> ClientSecrets:
        return cls(random(KEY_BYTES), random(KEY_BYTES), random(KEY_BYTES))


@dataclass(frozen=True)
class SecAggMember:
    """What a site remembers of an attempt. It holds secrets until it has opened its part; then it has none left."""

    terms: SecAggTerms
    keys: PublicKeys
    secrets: ClientSecrets | None = field(repr=False)
    roster: Roster | None = None
    shares: SealedShares | None = None
    masked: MaskedVector | None = None
    present: SurvivorList | None = None
    opened: UnmaskingShares | None = None

    @property
    def client(self) -> str:
        return self.keys.client

    @property
    def session(self) -> str:
        return "" if self.roster is None else self.roster.digest


@dataclass(frozen=True)
class SecAggClient:
    """Who answers: a client of this study, with its key. `random` is for tests only."""

    study: Study
    client: str
    key: SigningKey
    random: RandomBytes = field(default=chance.token_bytes, repr=False)

    def answer(
        self, request: SecAggRequest, state: SecAggMember | None, rows: SummaryProvider
    ) -> tuple[SecAggMember, SecAggReply]:
        """The answer to what the server asks, and what has to be remembered before it leaves."""
        if isinstance(request, SecAggTerms):
            return self._begin(request, state)
        if state is None or state.secrets is None:
            return self._over(request, state)
        if isinstance(request, Roster):
            return self._share(request, state)
        if isinstance(request, ShareDelivery):
            return self._mask(request, state, rows)
        if isinstance(request, SurvivorList):
            return self._confirm(request, state)
        return self._open(request, state)

    # Keys

    def _begin(self, terms: SecAggTerms, state: SecAggMember | None) -> tuple[SecAggMember, PublicKeys]:
        terms.check(self.study)
        if self.study.keys.get(self.client) != self.key.public:
            raise SignatureError(
                f"the plan file names another key for {self.client} than the one here, or does not name this site; use "
                "the key that it names, or ask for a plan with the new one"
            )
        if state is not None and terms == state.terms:
            return state, state.keys
        if state is not None and terms.attempt <= state.terms.attempt:
            raise SecureAggregationError(
                f"this site has agreed to other terms for attempt {state.terms.attempt}; found attempt "
                f"{terms.attempt}: a new one has a higher number"
            )
        if state is not None and state.opened is not None:
            raise SecureAggregationError(
                "this site has opened its part of a sum of this study already. The sums of two sets of sites differ by "
                "single sites, so there is no second one: make a new plan if there has to be, after asking who is "
                "responsible for data protection"
            )
        secrets = ClientSecrets.new(self.random)
        keys = PublicKeys(
            self.client, terms.digest, derive_public_key(secrets.sealing), derive_public_key(secrets.masking)
        )
        keys = keys.signed(self.key)
        return SecAggMember(terms, keys, secrets), keys

    # Shares of two secrets

    def _share(self, roster: Roster, state: SecAggMember) -> tuple[SecAggMember, SealedShares]:
        if state.roster is not None and state.shares is not None:
            if roster != state.roster:
                raise SecureAggregationError(
                    "this site has answered another roster of this attempt; there is but one: ask why"
                )
            return state, state.shares
        roster.check(self.study)
        if roster.terms != state.terms or state.keys not in roster.keys:
            raise SecureAggregationError(
                "the roster is of another attempt, or does not hold the keys that this site has sent; do not go on, "
                "and ask the coordinator"
            )
        secrets = _require_secrets(state)
        parts = self._parts(roster, secrets)
        boxes = {client: self._box(roster, secrets, client, part) for client, part in parts.items()}
        seal = commit_to_seed(secrets.seed, roster.digest)
        shares = SealedShares(self.client, roster.digest, seal, _drop_client(boxes, self.client)).signed(self.key)
        holding = replace(secrets, held={self.client: parts[self.client]})
        return replace(state, secrets=holding, roster=roster, shares=shares), shares

    def _parts(self, roster: Roster, secrets: ClientSecrets) -> dict[str, bytes]:
        """For every site of the roster, this one included: its share of the seed, then that of the masking key."""
        places = {client: point for client, point in share_points(self.study).items() if client in roster.clients}
        threshold = roster.terms.threshold
        seeds = split_secret(secrets.seed, threshold, places.values(), self.random)
        keys = split_secret(secrets.masking, threshold, places.values(), self.random)
        return {client: seeds[point] + keys[point] for client, point in places.items()}

    def _box(self, roster: Roster, secrets: ClientSecrets, client: str, part: bytes) -> bytes:
        secret = agree_secret(secrets.sealing, roster.of(client).sealing)
        return seal(secret, roster.digest, self.client, client, part, self.random(NONCE_BYTES))

    # The masked numbers

    def _mask(
        self, delivery: ShareDelivery, state: SecAggMember, rows: SummaryProvider
    ) -> tuple[SecAggMember, MaskedVector]:
        roster, secrets = _require_roster(state, delivery.session), _require_secrets(state)
        clients = delivery.clients
        if state.masked is not None:
            if clients != state.masked.masked_with:
                raise SecureAggregationError(
                    f"this site has masked its numbers with {', '.join(state.masked.masked_with)} in this session; "
                    "found another list of sites: do not go on, and ask the coordinator"
                )
            return state, state.masked
        if self.client not in clients or not set(clients) <= set(roster.clients):
            raise SecureAggregationError(
                "sites that sent shares are not those of the roster, or this site is not among them"
            )
        roster.terms.check_present(clients, "sent shares")
        held = {
            sender: self._received(roster, secrets, sender, delivery) for sender in clients if sender != self.client
        }
        summary, research = rows()
        words = encode_summary(self._with_noise(summary), self.study.plan, roster.terms.groups_of(roster.clients))
        masked = words + self._masks(roster, secrets, clients, len(words))
        message = MaskedVector(self.client, roster.digest, clients, research, masked).signed(self.key)
        return replace(state, secrets=replace(secrets, held={**secrets.held, **held}), masked=message), message

    def _with_noise(self, summary: Summary) -> Summary:
        """What the plan asks for, unless it is in there already."""
        noise = self.study.plan.noise
        if noise is None or summary.noise:
            return summary
        return (add_noise if not noise.distributed else add_noise_share)(summary, self.study.plan, self.random)

    def _received(self, roster: Roster, secrets: ClientSecrets, sender: str, delivery: ShareDelivery) -> bytes:
        box = delivery.boxes[sender].get(self.client)
        if box is None:
            raise SecureAggregationError(
                f"there is nothing from {sender} for {self.client} among what was sent; ask for it again"
            )
        part = unseal(agree_secret(secrets.sealing, roster.of(sender).sealing), roster.digest, sender, self.client, box)
        if len(part) != 2 * SHARE_BYTES:
            raise SecureAggregationError(
                f"what {sender} sealed for {self.client} are not two shares; ask {sender} what it runs"
            )
        return part

    def _masks(self, roster: Roster, secrets: ClientSecrets, clients: ClientNames, count: int) -> Words:
        """Own mask and pair masks: of two sites, the first by name adds theirs and the other takes it away."""
        total = expand_mask(derive_self_mask_key(secrets.seed, roster.digest, self.client), count).copy()
        for other in clients:
            if other != self.client:
                secret = agree_secret(secrets.masking, roster.of(other).masking)
                mask = expand_mask(derive_pair_mask_key(secret, roster.digest, self.client, other), count)
                total = total + mask if self.client < other else total - mask
        return total

    # The list, and what is opened

    def _confirm(self, present: SurvivorList, state: SecAggMember) -> tuple[SecAggMember, SurvivorConfirmation]:
        roster = _require_roster(state, present.session)
        if state.present is not None and present != state.present:
            raise SecureAggregationError(
                "this site has signed another list of those present in this session; two lists would open two sums: do "
                "not go on, and ask the coordinator"
            )
        if self.client not in present.clients or not set(present.clients) <= set(_mask_partners(state)):
            raise SecureAggregationError(
                "the list names sites that this one has no masks with, or does not name this site; then it has no part "
                "in opening the sum"
            )
        roster.terms.check_present(present.clients, "sent masked numbers")
        confirmed = SurvivorConfirmation(self.client, roster.digest, present.digest).signed(self.key)
        return replace(state, present=present), confirmed

    def _open(self, confirmations: ConfirmedSurvivors, state: SecAggMember) -> tuple[SecAggMember, UnmaskingShares]:
        roster, secrets, present = (
            _require_roster(state, confirmations.present.session),
            _require_secrets(state),
            confirmations.present,
        )
        if present != state.present:
            raise SecureAggregationError(
                "this is not the list that this site has signed; do not go on, and ask the coordinator"
            )
        confirmations.check(self.study, roster.terms)
        seeds = {client: secrets.held[client][:SHARE_BYTES] for client in present.clients}
        absent = set(_mask_partners(state)) - set(present.clients)
        keys = {client: secrets.held[client][SHARE_BYTES:] for client in sorted(absent)}
        message = UnmaskingShares(self.client, roster.digest, present.digest, seeds, keys).signed(self.key)
        return replace(state, secrets=None, masked=None, opened=message), message

    def _over(self, request: SecAggRequest, state: SecAggMember | None) -> tuple[SecAggMember, SecAggReply]:
        """The last answer once more, if it is the same that is asked; there is nothing left for any other."""
        if state is None:
            raise SecureAggregationError(
                "this site has sent no keys for a masked sum of this study; begin with the terms"
            )
        if isinstance(request, ConfirmedSurvivors) and request.present == state.present and state.opened is not None:
            return state, state.opened
        raise SecureAggregationError(
            "this site has opened its part, and has forgotten all secrets of this session: it is over"
        )


def share_points(study: Study) -> dict[str, int]:
    """Where on the polynomials the shares of every client are."""
    return {client: place for place, client in enumerate(study.plan.clients, start=1)}


def commit_to_seed(seed: bytes, session: str) -> str:
    """Tells a seed from others, and nothing about it."""
    return hashlib.sha256(bytes.fromhex(session) + seed).hexdigest()


def _require_secrets(state: SecAggMember) -> ClientSecrets:
    if state.secrets is None:
        raise SecureAggregationError("this session is over, and its secrets are gone")
    return state.secrets


def _mask_partners(state: SecAggMember) -> ClientNames:
    return () if state.masked is None else state.masked.masked_with


def _require_roster(state: SecAggMember, session: str) -> Roster:
    if state.roster is None or session != state.session:
        raise SecureAggregationError(
            f"this is of the session {session[:12]}, and this site is in "
            + (f"{state.session[:12]}" if state.roster else "none yet")
            + "; do not go on with it, and ask the coordinator"
        )
    return state.roster


def _drop_client(boxes: Mapping[str, bytes], client: str) -> dict[str, bytes]:
    return {other: box for other, box in boxes.items() if other != client}
