"""A room of sites and a server for tests of masked sums: rounds by value, with sites that leave."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import studies

from fedcdh.messages.signing import SigningKey
from fedcdh.messages.study_file import Study
from fedcdh.privacy.secure_aggregation.client import SecAggClient, SecAggMember
from fedcdh.privacy.secure_aggregation.messages import (
    ConfirmedSurvivors,
    MaskedVector,
    PublicKeys,
    Roster,
    SealedShares,
    SecAggTerms,
    ShareDelivery,
    SignedMessage,
    SurvivorConfirmation,
    SurvivorList,
    UnmaskingShares,
)
from fedcdh.privacy.secure_aggregation.server import SecAggServer
from fedcdh.summaries.aggregation import Aggregate, Cohort, add_up

ROUNDS = ("keys", "shares", "masked", "confirmed", "opened")


def chance(seed: object):
    """Bytes that are the same in every run: for tests only."""
    count = 0

    def some(length: int) -> bytes:
        nonlocal count
        count += 1
        return hashlib.shake_256(f"{seed} {count}".encode()).digest(length)

    return some


@lru_cache
def a_study(sites: int, count: int = 1) -> tuple[Study, dict[str, SigningKey], Cohort]:
    """A small study with the keys of all its sites."""
    cohort = studies.cohort_of(studies.numbers(0, [20 + k for k in range(sites)], count))
    keys = {client: SigningKey.generate() for client in cohort.clients}
    return Study(cohort.plan, keys={client: key.public for client, key in keys.items()}), keys, cohort


def groups_of(study: Study, number: int) -> dict[str, str]:
    """So many groups of nearly equal size."""
    return {client: f"group {k % number}" for k, client in enumerate(study.plan.clients)}


@dataclass
class Room:
    """All sites and an honest server; `gone` are those who are silent from a round on."""

    study: Study
    keys: Mapping[str, SigningKey]
    cohort: Cohort
    groups: Mapping[str, str] = field(default_factory=dict)
    threshold: int | None = None
    seed: object = None
    gone: Mapping[str, str] = field(default_factory=dict)
    mixtures: int = 0
    states: dict[str, SecAggMember | None] = field(default_factory=dict)
    replies: dict[str, dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, sites: int, count: int = 1, **settings: Any) -> Room:
        return cls(*a_study(sites, count), **settings)

    @property
    def server(self) -> SecAggServer:
        return SecAggServer(self.study)

    def site(self, client: str) -> SecAggClient:
        given = {} if self.seed is None else {"random": chance((self.seed, client))}
        return SecAggClient(self.study, client, self.keys[client], **given)

    def ask(self, client: str, request: Any) -> SignedMessage:
        """One site's answer; it remembers."""
        summary = self.cohort.summaries[self.cohort.clients.index(client)]
        state, reply = self.site(client).answer(request, self.states.get(client), lambda: (summary, True))
        self.states[client] = state
        return reply

    def all(self, request: Any, clients: Collection[str], round_: str) -> dict[str, Any]:
        """The answers of those who have not left."""
        there = [c for c in clients if c not in self.gone or ROUNDS.index(self.gone[c]) > ROUNDS.index(round_)]
        self.replies[round_] = {client: self.ask(client, request) for client in there}
        return self.replies[round_]

    # round by round, as far as a test wants

    def terms(self) -> SecAggTerms:
        return SecAggTerms.of(self.study, threshold=self.threshold, groups=self.groups, mixtures=self.mixtures)

    def roster(self, terms: SecAggTerms | None = None) -> Roster:
        terms = terms or self.terms()
        keys: dict[str, PublicKeys] = self.all(terms, self.study.plan.clients, "keys")
        return self.server.build_roster(terms, keys.values())

    def delivery(self, roster: Roster) -> ShareDelivery:
        shares: dict[str, SealedShares] = self.all(roster, roster.clients, "shares")
        for one in shares.values():
            self.server.check_shares(roster, one)
        return self.server.build_delivery(roster, shares.values())

    def present(self, roster: Roster, delivery: ShareDelivery) -> SurvivorList:
        masked: dict[str, MaskedVector] = self.all(delivery, delivery.clients, "masked")
        for one in masked.values():
            self.server.check_masked(roster, delivery, one)
        return self.server.list_survivors(roster, masked)

    def confirmations(self, roster: Roster, present: SurvivorList) -> ConfirmedSurvivors:
        confirmed: dict[str, SurvivorConfirmation] = self.all(present, present.clients, "confirmed")
        for one in confirmed.values():
            self.server.check_confirmation(roster, present, one)
        return self.server.collect_confirmations(roster, present, confirmed.values())

    def opened(self, roster: Roster, delivery: ShareDelivery, confirmations: ConfirmedSurvivors) -> Aggregate:
        opened: dict[str, UnmaskingShares] = self.all(confirmations, confirmations.present.clients, "opened")
        for one in opened.values():
            self.server.check_unmasking(roster, delivery, confirmations.present, one)
        return self.sum(roster, confirmations.present)

    def sum(self, roster: Roster, present: SurvivorList) -> Aggregate:
        masked, shares, opened = (self.replies[round_] for round_ in ("masked", "shares", "opened"))
        return self.server.unmask_sum(roster, shares, masked.values(), present, list(opened.values()))

    def run(self) -> Aggregate:
        """All rounds."""
        roster = self.roster()
        delivery = self.delivery(roster)
        return self.opened(roster, delivery, self.confirmations(roster, self.present(roster, delivery)))

    def plain(self, clients: Collection[str]) -> Aggregate:
        """What the sum should be, from the summaries themselves."""
        there = [one for one in self.cohort.summaries if one.clients[0] in clients]
        cohort = add_up(there, self.cohort.plan, without=set(self.cohort.plan.clients) - set(clients))
        return Aggregate.of(cohort, self.groups or None)


def same(one: Aggregate, other: Aggregate) -> bool:
    """Bit for bit."""
    assert one.total == other.total
    assert one.total.moments.tobytes() == other.total.moments.tobytes()
    assert one.first_moments.tobytes() == other.first_moments.tobytes()
    assert one.groups == other.groups
    return one.total.digest == other.total.digest
