"""Recovery of the masks in a sum from the shares that clients revealed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations, islice

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
from fedcdh.privacy.secure_aggregation.messages import Roster, SealedShares, SurvivorList, UnmaskingShares
from fedcdh.privacy.secure_aggregation.secret_sharing import join_shares
from fedcdh.summaries.integer_vectors import Groups, Words

MAX_SHARE_SUBSETS = 2000
"""Number of subsets of shares that are tried where some shares are false."""


def recover_masks(
    study: Study,
    roster: Roster,
    shares: Mapping[str, SealedShares],
    survivors: SurvivorList,
    unmasking: Sequence[UnmaskingShares],
    count: int,
) -> Words:
    """Return the masks in the sum: own masks of survivors, and pair masks whose other half never arrived."""
    place, session = share_points(study), roster.digest

    def is_seed(client: str, found: bytes) -> bool:
        return commit_to_seed(found, session) == shares[client].commitment

    def is_key(client: str, found: bytes) -> bool:
        return derive_public_key(found) == roster.keys_of(client).masking

    hidden = np.zeros(count, dtype=np.uint64)
    for client in survivors.clients:
        known = {place[one.client]: one.seeds[client] for one in unmasking}
        seed = _recover_secret(known, roster, client, is_seed)
        hidden += expand_mask(derive_self_mask_key(seed, session, client), count)
    for gone in sorted(unmasking[0].keys):
        known = {place[one.client]: one.keys[gone] for one in unmasking}
        private = _recover_secret(known, roster, gone, is_key)
        for client in survivors.clients:
            secret = agree_secret(private, roster.keys_of(client).masking)
            mask = expand_mask(derive_pair_mask_key(secret, session, client, gone), count)
            hidden = hidden + mask if client < gone else hidden - mask
    return hidden


def drop_absent_groups(study: Study, total: Words, everybody: Groups, present: Groups) -> Words:
    """Remove the first moments of groups without survivors; they are zeros, if all clients are honest."""
    columns = study.plan.layout.n_columns
    size = len(everybody) * columns
    places = total[len(total) - size :].reshape(len(everybody), columns)
    known = np.isin([name for name, _ in everybody], [name for name, _ in present])
    if places[~known].any():
        raise SecureAggregationError(
            "A client put first moments into the place of another group. Expected zeros there. Begin another attempt"
        )
    return np.concatenate([total[: len(total) - size], places[known].ravel()])


def _recover_secret(
    known: Mapping[int, bytes], roster: Roster, client: str, is_right: Callable[[str, bytes], bool]
) -> bytes:
    """Return the secret of a client from the first subset of its shares that gives the right one."""
    for chosen in islice(combinations(known, roster.terms.threshold), MAX_SHARE_SUBSETS):
        if is_right(client, found := join_shares({place: known[place] for place in chosen})):
            return found
    raise SecureAggregationError(
        f"The shares of {client} do not recover its secret. Expected shares of one secret: {client} shared something "
        "else, or others revealed false shares. Begin another attempt without the client that breaks the rounds"
    )
