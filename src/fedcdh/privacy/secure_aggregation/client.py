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

from fedcdh.errors import MaskingError, SignatureError
from fedcdh.messages.signing import SigningKey
from fedcdh.messages.study_file import Study
from fedcdh.privacy.differential.mechanism import noisy, share
from fedcdh.privacy.secure_aggregation.masking import (
    KEY,
    NONCE,
    agreed,
    opened,
    pair_key,
    public_of,
    sealed,
    self_key,
    stream,
)
from fedcdh.privacy.secure_aggregation.messages import (
    Boxes,
    Confirmations,
    Confirmed,
    Delivery,
    Keys,
    Masked,
    Names,
    Opened,
    Present,
    Reply,
    Request,
    Roster,
    Shares,
    Terms,
)
from fedcdh.privacy.secure_aggregation.secret_sharing import SHARE, Random, split
from fedcdh.summaries.integer_vectors import Words, encoded
from fedcdh.summaries.summary import Summary

Rows = Callable[[], tuple[Summary, bool]]
"""The summary of this site's rows as its policy lets it leave, and whether that was for research."""


@dataclass(frozen=True)
class Secrets:
    """What nobody else may know: two private keys, the seed of the site's own mask, and what others entrusted to it."""

    sealing: bytes = field(repr=False)
    masking: bytes = field(repr=False)
    seed: bytes = field(repr=False)
    held: Boxes = field(default_factory=dict, repr=False)  # of every site that shared: both of its shares

    def __post_init__(self) -> None:
        object.__setattr__(self, "held", MappingProxyType(dict(self.held)))

    @classmethod
    def new(cls, random: Random) -> Secrets:
        return cls(random(KEY), random(KEY), random(KEY))


@dataclass(frozen=True)
class Member:
    """What a site remembers of an attempt. It holds secrets until it has opened its part; then it has none left."""

    terms: Terms
    keys: Keys
    secrets: Secrets | None = field(repr=False)
    roster: Roster | None = None
    shares: Shares | None = None
    masked: Masked | None = None
    present: Present | None = None
    opened: Opened | None = None

    @property
    def client(self) -> str:
        return self.keys.client

    @property
    def session(self) -> str:
        return "" if self.roster is None else self.roster.digest


@dataclass(frozen=True)
class Site:
    """Who answers: a client of this study, with its key. `random` is for tests only."""

    study: Study
    client: str
    key: SigningKey
    random: Random = field(default=chance.token_bytes, repr=False)

    def answer(self, request: Request, state: Member | None, rows: Rows) -> tuple[Member, Reply]:
        """The answer to what the server asks, and what has to be remembered before it leaves."""
        if isinstance(request, Terms):
            return self._begin(request, state)
        if state is None or state.secrets is None:
            return self._over(request, state)
        if isinstance(request, Roster):
            return self._share(request, state)
        if isinstance(request, Delivery):
            return self._mask(request, state, rows)
        if isinstance(request, Present):
            return self._confirm(request, state)
        return self._open(request, state)

    # Keys

    def _begin(self, terms: Terms, state: Member | None) -> tuple[Member, Keys]:
        terms.check(self.study)
        if self.study.keys.get(self.client) != self.key.public:
            raise SignatureError(
                f"the plan file names another key for {self.client} than the one here, or does not name this site; use "
                "the key that it names, or ask for a plan with the new one"
            )
        if state is not None and terms == state.terms:
            return state, state.keys
        if state is not None and terms.attempt <= state.terms.attempt:
            raise MaskingError(
                f"this site has agreed to other terms for attempt {state.terms.attempt}; found attempt "
                f"{terms.attempt}: a new one has a higher number"
            )
        if state is not None and state.opened is not None:
            raise MaskingError(
                "this site has opened its part of a sum of this study already. The sums of two sets of sites differ by "
                "single sites, so there is no second one: make a new plan if there has to be, after asking who is "
                "responsible for data protection"
            )
        secrets = Secrets.new(self.random)
        keys = Keys(self.client, terms.digest, public_of(secrets.sealing), public_of(secrets.masking))
        keys = keys.signed(self.key)
        return Member(terms, keys, secrets), keys

    # Shares of two secrets

    def _share(self, roster: Roster, state: Member) -> tuple[Member, Shares]:
        if state.roster is not None and state.shares is not None:
            if roster != state.roster:
                raise MaskingError("this site has answered another roster of this attempt; there is but one: ask why")
            return state, state.shares
        roster.check(self.study)
        if roster.terms != state.terms or state.keys not in roster.keys:
            raise MaskingError(
                "the roster is of another attempt, or does not hold the keys that this site has sent; do not go on, "
                "and ask the coordinator"
            )
        secrets = _kept(state)
        parts = self._parts(roster, secrets)
        boxes = {client: self._box(roster, secrets, client, part) for client, part in parts.items()}
        seal = commitment(secrets.seed, roster.digest)
        shares = Shares(self.client, roster.digest, seal, _without(boxes, self.client)).signed(self.key)
        holding = replace(secrets, held={self.client: parts[self.client]})
        return replace(state, secrets=holding, roster=roster, shares=shares), shares

    def _parts(self, roster: Roster, secrets: Secrets) -> dict[str, bytes]:
        """For every site of the roster, this one included: its share of the seed, then that of the masking key."""
        places = {client: point for client, point in points(self.study).items() if client in roster.clients}
        threshold = roster.terms.threshold
        seeds = split(secrets.seed, threshold, places.values(), self.random)
        keys = split(secrets.masking, threshold, places.values(), self.random)
        return {client: seeds[point] + keys[point] for client, point in places.items()}

    def _box(self, roster: Roster, secrets: Secrets, client: str, part: bytes) -> bytes:
        secret = agreed(secrets.sealing, roster.of(client).sealing)
        return sealed(secret, roster.digest, self.client, client, part, self.random(NONCE))

    # The masked numbers

    def _mask(self, delivery: Delivery, state: Member, rows: Rows) -> tuple[Member, Masked]:
        roster, secrets = _roster(state, delivery.session), _kept(state)
        clients = delivery.clients
        if state.masked is not None:
            if clients != state.masked.masked_with:
                raise MaskingError(
                    f"this site has masked its numbers with {', '.join(state.masked.masked_with)} in this session; "
                    "found another list of sites: do not go on, and ask the coordinator"
                )
            return state, state.masked
        if self.client not in clients or not set(clients) <= set(roster.clients):
            raise MaskingError("sites that sent shares are not those of the roster, or this site is not among them")
        roster.terms.check_present(clients, "sent shares")
        held = {
            sender: self._received(roster, secrets, sender, delivery) for sender in clients if sender != self.client
        }
        summary, research = rows()
        words = encoded(self._with_noise(summary), self.study.plan, roster.terms.groups_of(roster.clients))
        masked = words + self._masks(roster, secrets, clients, len(words))
        message = Masked(self.client, roster.digest, clients, research, masked).signed(self.key)
        return replace(state, secrets=replace(secrets, held={**secrets.held, **held}), masked=message), message

    def _with_noise(self, summary: Summary) -> Summary:
        """What the plan asks for, unless it is in there already."""
        noise = self.study.plan.noise
        if noise is None or summary.noise:
            return summary
        return (noisy if noise.shared == "each" else share)(summary, self.study.plan, self.random)

    def _received(self, roster: Roster, secrets: Secrets, sender: str, delivery: Delivery) -> bytes:
        box = delivery.boxes[sender].get(self.client)
        if box is None:
            raise MaskingError(
                f"there is nothing from {sender} for {self.client} among what was sent; ask for it again"
            )
        part = opened(agreed(secrets.sealing, roster.of(sender).sealing), roster.digest, sender, self.client, box)
        if len(part) != 2 * SHARE:
            raise MaskingError(f"what {sender} sealed for {self.client} are not two shares; ask {sender} what it runs")
        return part

    def _masks(self, roster: Roster, secrets: Secrets, clients: Names, count: int) -> Words:
        """Own mask and pair masks: of two sites, the first by name adds theirs and the other takes it away."""
        total = stream(self_key(secrets.seed, roster.digest, self.client), count).copy()
        for other in clients:
            if other != self.client:
                secret = agreed(secrets.masking, roster.of(other).masking)
                mask = stream(pair_key(secret, roster.digest, self.client, other), count)
                total = total + mask if self.client < other else total - mask
        return total

    # The list, and what is opened

    def _confirm(self, present: Present, state: Member) -> tuple[Member, Confirmed]:
        roster = _roster(state, present.session)
        if state.present is not None and present != state.present:
            raise MaskingError(
                "this site has signed another list of those present in this session; two lists would open two sums: do "
                "not go on, and ask the coordinator"
            )
        if self.client not in present.clients or not set(present.clients) <= set(_masked_with(state)):
            raise MaskingError(
                "the list names sites that this one has no masks with, or does not name this site; then it has no part "
                "in opening the sum"
            )
        roster.terms.check_present(present.clients, "sent masked numbers")
        confirmed = Confirmed(self.client, roster.digest, present.digest).signed(self.key)
        return replace(state, present=present), confirmed

    def _open(self, confirmations: Confirmations, state: Member) -> tuple[Member, Opened]:
        roster, secrets, present = _roster(state, confirmations.present.session), _kept(state), confirmations.present
        if present != state.present:
            raise MaskingError("this is not the list that this site has signed; do not go on, and ask the coordinator")
        confirmations.check(self.study, roster.terms)
        seeds = {client: secrets.held[client][:SHARE] for client in present.clients}
        absent = set(_masked_with(state)) - set(present.clients)
        keys = {client: secrets.held[client][SHARE:] for client in sorted(absent)}
        message = Opened(self.client, roster.digest, present.digest, seeds, keys).signed(self.key)
        return replace(state, secrets=None, masked=None, opened=message), message

    def _over(self, request: Request, state: Member | None) -> tuple[Member, Reply]:
        """The last answer once more, if it is the same that is asked; there is nothing left for any other."""
        if state is None:
            raise MaskingError("this site has sent no keys for a masked sum of this study; begin with the terms")
        if isinstance(request, Confirmations) and request.present == state.present and state.opened is not None:
            return state, state.opened
        raise MaskingError("this site has opened its part, and has forgotten all secrets of this session: it is over")


def points(study: Study) -> dict[str, int]:
    """Where on the polynomials the shares of every client are."""
    return {client: place for place, client in enumerate(study.plan.clients, start=1)}


def commitment(seed: bytes, session: str) -> str:
    """Tells a seed from others, and nothing about it."""
    return hashlib.sha256(bytes.fromhex(session) + seed).hexdigest()


def _kept(state: Member) -> Secrets:
    if state.secrets is None:
        raise MaskingError("this session is over, and its secrets are gone")
    return state.secrets


def _masked_with(state: Member) -> Names:
    return () if state.masked is None else state.masked.masked_with


def _roster(state: Member, session: str) -> Roster:
    if state.roster is None or session != state.session:
        raise MaskingError(
            f"this is of the session {session[:12]}, and this site is in "
            + (f"{state.session[:12]}" if state.roster else "none yet")
            + "; do not go on with it, and ask the coordinator"
        )
    return state.roster


def _without(boxes: Mapping[str, bytes], client: str) -> dict[str, bytes]:
    return {other: box for other, box in boxes.items() if other != client}
