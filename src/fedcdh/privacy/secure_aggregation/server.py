"""A masked sum from the server's side: each round from the answers of the one before, and in the end the sum.

The server keeps no secret. It sees masked numbers, seeds of those present and masking keys of those who left, and
learns the sum over those present. What it puts together is checked as a summary is: it can find that some site lied,
and not which. Messages are checked as they come: signature, session, and that they are one of each site.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations, islice
from typing import TypeVar

import numpy as np

from fedcdh.errors import SecureAggregationError
from fedcdh.messages.study_file import Study
from fedcdh.privacy.secure_aggregation.client import commit_to_seed, share_points
from fedcdh.privacy.secure_aggregation.masking import (
    agree_secret,
    derive_pair_mask_key,
    derive_public_key,
    derive_self_mask_key,
    expand_mask,
)
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
from fedcdh.privacy.secure_aggregation.secret_sharing import join_shares
from fedcdh.summaries.aggregation import Aggregate
from fedcdh.summaries.integer_vectors import Groups, Words, decode_aggregate, vector_length

MAX_SHARE_SUBSETS = 2000
"""Sets of shares that are tried where some are false."""

ReplyT = TypeVar("ReplyT", bound=SignedMessage)


def check_keys(study: Study, terms: SecAggTerms, keys: PublicKeys) -> None:
    """Refuses keys that were not signed for these terms."""
    keys.check_signature(study)
    if keys.terms != terms.digest:
        raise SecureAggregationError(f"the keys of {keys.client} are for other terms; ask the site to answer these")


def build_roster(study: Study, terms: SecAggTerms, keys: Iterable[PublicKeys]) -> Roster:
    """Who takes part: those whose keys came."""
    roster = Roster(terms, tuple(sorted(keys, key=lambda one: one.client)))
    roster.check(study)
    return roster


def check_shares(study: Study, roster: Roster, shares: SealedShares) -> None:
    """Refuses shares that are not for all the others of the roster."""
    _check_session(study, roster, shares)
    if shares.sealed.keys() != set(roster.clients) - {shares.client}:
        raise SecureAggregationError(
            f"{shares.client} did not send shares for all other sites of the roster; ask it again"
        )


def build_delivery(roster: Roster, shares: Iterable[SealedShares]) -> ShareDelivery:
    """The sealed shares for those who will mask with one another."""
    sent = {one.client: one for one in shares}
    roster.terms.check_present(tuple(sorted(sent)), "sent shares")
    boxes = {
        sender: {client: box for client, box in one.sealed.items() if client in sent} for sender, one in sent.items()
    }
    return ShareDelivery(roster.digest, boxes)


def check_masked(study: Study, roster: Roster, delivery: ShareDelivery, masked: MaskedVector) -> None:
    """Refuses numbers that are under other masks, or of another length."""
    _check_session(study, roster, masked)
    groups = len(roster.terms.groups_of(roster.clients))
    if masked.masked_with != delivery.clients or len(masked.words) != vector_length(study.plan, groups):
        raise SecureAggregationError(
            f"the numbers of {masked.client} are masked with other sites than those that sent shares, or are not "
            f"{vector_length(study.plan, groups)}; ask the site to answer this delivery"
        )


def list_survivors(roster: Roster, clients: Iterable[str]) -> SurvivorList:
    """The list of those whose numbers came; from now on, the sum is of these or there is none."""
    present = SurvivorList(roster.digest, tuple(sorted(clients)))
    roster.terms.check_present(present.clients, "sent masked numbers")
    return present


def check_confirmed(study: Study, roster: Roster, present: SurvivorList, confirmed: SurvivorConfirmation) -> None:
    """Refuses a signature to another list, or of somebody who is not in it."""
    _check_session(study, roster, confirmed)
    if confirmed.present != present.digest or confirmed.client not in present.clients:
        raise SecureAggregationError(
            f"{confirmed.client} signed another list, or is not in it; ask the site to answer this one"
        )


def collect_confirmations(
    study: Study, roster: Roster, present: SurvivorList, confirmed: Iterable[SurvivorConfirmation]
) -> ConfirmedSurvivors:
    """The list with the signatures under it."""
    confirmations = ConfirmedSurvivors(present, {one.client: one.signature for one in confirmed})
    confirmations.check(study, roster.terms)
    return confirmations


def check_opened(
    study: Study, roster: Roster, delivery: ShareDelivery, present: SurvivorList, opened: UnmaskingShares
) -> None:
    """Refuses shares that are not of the seeds of those present and of the keys of those who left."""
    _check_session(study, roster, opened)
    right = opened.present == present.digest and opened.client in present.clients
    left = set(delivery.clients) - set(present.clients)
    if not right or opened.seeds.keys() != set(present.clients) or opened.keys.keys() != left:
        raise SecureAggregationError(
            f"what {opened.client} opens is not what was asked for; ask the site to answer again"
        )


def unmask_sum(
    study: Study,
    roster: Roster,
    shares: Mapping[str, SealedShares],
    masked: Iterable[MaskedVector],
    present: SurvivorList,
    opened: Sequence[UnmaskingShares],
) -> Aggregate:
    """The sum over those present, integer for integer that of their summaries, whatever was added to hide them."""
    if len(opened) < roster.terms.threshold:
        raise SecureAggregationError(
            f"{len(opened)} sites have opened their part ({', '.join(sorted(one.client for one in opened))}), and "
            f"{roster.terms.threshold} are needed; wait for more"
        )
    total: Words | None = None
    for one in masked:
        total = one.words.copy() if total is None else total + one.words
    if total is None:
        raise SecureAggregationError("there are no masked numbers; expected those of all who are present")
    total = total - _recover_masks(study, roster, shares, present, opened, len(total))
    everybody = roster.terms.groups_of(roster.clients)
    there = roster.terms.groups_of(present.clients)
    return decode_aggregate(_drop_absent_groups(total, study, everybody, there), study.plan, there)


def _recover_masks(
    study: Study,
    roster: Roster,
    shares: Mapping[str, SealedShares],
    present: SurvivorList,
    opened: Sequence[UnmaskingShares],
    count: int,
) -> Words:
    """All that hides the sum: own masks of those present, and pair masks whose other half never came."""
    place, session = share_points(study), roster.digest

    def seed_of(client: str, found: bytes) -> bool:
        return commit_to_seed(found, session) == shares[client].commitment

    def key_of(client: str, found: bytes) -> bool:
        return derive_public_key(found) == roster.of(client).masking

    hidden = np.zeros(count, dtype=np.uint64)
    for client in present.clients:
        known = {place[one.client]: one.seeds[client] for one in opened}
        seed = _recover_secret(known, roster, client, seed_of)
        hidden += expand_mask(derive_self_mask_key(seed, session, client), count)
    for gone in sorted(opened[0].keys):
        known = {place[one.client]: one.keys[gone] for one in opened}
        private = _recover_secret(known, roster, gone, key_of)
        for client in present.clients:
            mask = expand_mask(
                derive_pair_mask_key(agree_secret(private, roster.of(client).masking), session, client, gone), count
            )
            hidden = hidden + mask if client < gone else hidden - mask
    return hidden


def _recover_secret(
    known: Mapping[int, bytes], roster: Roster, client: str, right: Callable[[str, bytes], bool]
) -> bytes:
    """The secret of a client, from some of its shares: the first set of them that gives the right one."""
    for chosen in islice(combinations(known, roster.terms.threshold), MAX_SHARE_SUBSETS):
        if right(client, found := join_shares({place: known[place] for place in chosen})):
            return found
    raise SecureAggregationError(
        f"the shares of {client} do not give its secret back: {client} shared something else, or others opened false "
        "shares; begin another attempt, without the site that does not follow the rounds"
    )


def _drop_absent_groups(total: Words, study: Study, everybody: Groups, there: Groups) -> Words:
    """Without the places of groups of which nobody is there; these hold zeros, if all sites are honest."""
    firsts = len(everybody) * study.plan.layout.n_columns
    places = total[len(total) - firsts :].reshape(len(everybody), study.plan.layout.n_columns)
    known = np.isin([name for name, _ in everybody], [name for name, _ in there])
    if places[~known].any():
        raise SecureAggregationError("a site put first moments into the place of another; begin another attempt")
    return np.concatenate([total[: len(total) - firsts], places[known].ravel()])


def _check_session(
    study: Study, roster: Roster, message: SealedShares | MaskedVector | SurvivorConfirmation | UnmaskingShares
) -> None:
    message.check_signature(study)
    if message.session != roster.digest or message.client not in roster.clients:
        raise SecureAggregationError(
            f"there is a message of {message.client} of another session, or it is not in the roster; ask the site to "
            "answer this one"
        )


def index_by_client(replies: Iterable[ReplyT]) -> dict[str, ReplyT]:
    """The replies by client; refuses two of one client that differ."""
    found: dict[str, ReplyT] = {}
    for reply in replies:
        if found.setdefault(reply.client, reply).to_bytes() != reply.to_bytes():
            raise SecureAggregationError(
                f"there are two different answers of {reply.client} in one round; ask it which holds"
            )
    return found
