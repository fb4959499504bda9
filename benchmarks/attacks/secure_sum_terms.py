"""A server that proposes weak terms of a secure sum, with helpers: python -m benchmarks.attacks.secure_sum_terms --help

With n sites and the threshold t, a server shows two halves of the honest sites two lists of who is present. Helpers
sign both. With 2t − n helpers both lists have t signatures. Each half then opens the seeds of its own list and the
masking keys of the other, and the server has both secrets of every honest site: its summary lies open. The lower the
threshold, the fewer helpers it takes. For every proposal the table shows whether sites under the default policy agree,
and whether the server reads a summary if they do. It ends with an error if it does so with fewer helpers than the
smallest threshold of the default policy asks for.
"""

from __future__ import annotations

import argparse
import math

import numpy as np

from fedcdh.errors import DisclosureError, SecureAggregationError
from fedcdh.messages.signing import SigningKey
from fedcdh.messages.study_file import Study
from fedcdh.privacy.disclosure.policy import Policy
from fedcdh.privacy.secure_aggregation.client import SecAggClient, SecAggMember, share_points
from fedcdh.privacy.secure_aggregation.limits import SecureSumLimits
from fedcdh.privacy.secure_aggregation.masking import (
    agree_secret,
    derive_pair_mask_key,
    derive_self_mask_key,
    expand_mask,
)
from fedcdh.privacy.secure_aggregation.messages import (
    ConfirmedSurvivors,
    MaskedVector,
    Roster,
    SurvivorConfirmation,
    SurvivorList,
    UnmaskingShares,
)
from fedcdh.privacy.secure_aggregation.secret_sharing import SHARE_BYTES, join_shares
from fedcdh.privacy.secure_aggregation.server import SecAggServer
from fedcdh.privacy.secure_aggregation.terms import SecAggTerms
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.integer_vectors import Words, encode_summary
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.variables import Continuous

ANY_TERMS = SecureSumLimits(min_threshold_share=0.5)
"""What terms alone ask for: sites without a minimum of their own."""


class Federation:
    """Sites that keep to the rounds, some of which also tell the server all they know."""

    def __init__(self, sites: int, limits: SecureSumLimits, seed: int) -> None:
        rng = np.random.default_rng([seed, sites, 21])
        names = tuple(f"s{k:02}" for k in range(sites))
        self.keys = {name: SigningKey.generate() for name in names}
        plan = StudyPlan((Continuous("x"),), names)
        self.study = Study(plan, keys={name: key.public for name, key in self.keys.items()})
        self.summaries = {name: summarize({"x": rng.standard_normal(30)}, plan, name) for name in names}
        self.clients = {name: SecAggClient(self.study, name, key, limits=limits) for name, key in self.keys.items()}
        self.states: dict[str, SecAggMember | None] = dict.fromkeys(names)
        self.server = SecAggServer(self.study)

    def ask(self, name: str, request: object) -> object:
        answered = self.clients[name].answer(request, self.states[name], lambda: (self.summaries[name], True))  # type: ignore[arg-type]
        self.states[name], reply = answered
        return reply

    def ask_all(self, request: object) -> list[object]:
        return [self.ask(name, request) for name in self.study.plan.clients]

    def sign(self, name: str, present: SurvivorList) -> bytes:
        """What a helper signs, list by list."""
        return SurvivorConfirmation(name, present.session, present.digest).signed(self.keys[name]).signature


def attack_threshold(sites: int, threshold: int, limits: SecureSumLimits, helpers: int, seed: int = 0) -> bool:
    """Return whether the server reads the summary of an honest site; DisclosureError if sites refuse its terms."""
    room = Federation(sites, limits, seed)
    terms = SecAggTerms.of(room.study, threshold=threshold)
    roster = room.server.build_roster(terms, room.ask_all(terms))  # type: ignore[arg-type]
    delivery = room.server.build_delivery(roster, room.ask_all(roster))  # type: ignore[arg-type]
    masked = {one.client: one for one in room.ask_all(delivery)}  # type: ignore[attr-defined]
    names = room.study.plan.clients
    helping, honest = names[:helpers], names[helpers:]
    opened: list[UnmaskingShares] = []
    for half in (honest[::2], honest[1::2]):
        present = SurvivorList(roster.digest, tuple(sorted((*helping, *half))))
        signatures = {name: room.sign(name, present) for name in helping}
        try:
            signatures |= {name: room.ask(name, present).signature for name in half}  # type: ignore[attr-defined]
            opened += [room.ask(name, ConfirmedSurvivors(present, signatures)) for name in half]  # type: ignore[misc]
        except SecureAggregationError:
            return False
    victim = honest[0]
    found = unmask_alone(room, roster, masked[victim], opened, helping)
    groups = roster.terms.groups_of(roster.clients)
    return found is not None and bool((found == encode_summary(room.summaries[victim], room.study.plan, groups)).all())


def unmask_alone(
    room: Federation, roster: Roster, masked: MaskedVector, opened: list[UnmaskingShares], helping: tuple[str, ...]
) -> Words | None:
    """Take all masks off one site's numbers, from what others opened and helpers hold."""
    places, victim = share_points(room.study), masked.client
    seeds = {places[one.client]: one.seeds[victim] for one in opened if victim in one.seeds}
    keys = {places[one.client]: one.keys[victim] for one in opened if victim in one.keys}
    for name in helping:
        state = room.states[name]
        held = state.secrets.held[victim] if state is not None and state.secrets is not None else b""
        seeds[places[name]], keys[places[name]] = held[:SHARE_BYTES], held[SHARE_BYTES:]
    if min(len(seeds), len(keys)) < roster.terms.threshold:
        return None
    seed, private = (join_shares(dict(list(one.items())[: roster.terms.threshold])) for one in (seeds, keys))
    words = masked.words - expand_mask(derive_self_mask_key(seed, roster.digest, victim), len(masked.words))
    for other in masked.masked_with:
        if other != victim:
            secret = agree_secret(private, roster.keys_of(other).masking)
            mask = expand_mask(derive_pair_mask_key(secret, roster.digest, victim, other), len(words))
            words = words - mask if victim < other else words + mask
    return words


def try_terms(sites: int, threshold: int, limits: SecureSumLimits, helpers: int) -> str:
    """Return "refused", "read" or "hidden"."""
    try:
        return "read" if attack_threshold(sites, threshold, limits, helpers) else "hidden"
    except DisclosureError:
        return "refused"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sites", type=int, nargs="+", default=[4, 7, 10, 20])
    options = parser.parse_args()
    own, failures = Policy().secure_sum_limits(), []
    print(f"{'sites':>6}{'threshold':>11}{'helpers':>9}{'no minimum':>13}{'default policy':>16}")
    for sites in options.sites:
        least = max(math.ceil(own.min_threshold_share * sites), 3)
        for threshold in sorted({max(sites // 2 + 1, 3), least, 2 * sites // 3 + 1}):
            for helpers in (2 * threshold - sites - 1, 2 * threshold - sites):
                results = [try_terms(sites, threshold, limits, helpers) for limits in (ANY_TERMS, own)]
                print(f"{sites:6}{threshold:11}{helpers:9}{results[0]:>13}{results[1]:>16}")
                if results[1] == "read" and helpers < 2 * least - sites:
                    failures.append(f"{helpers} helpers of {sites} sites, threshold {threshold}")
    if failures:
        raise SystemExit("a single summary is read with:\n- " + "\n- ".join(failures))


if __name__ == "__main__":
    main()
