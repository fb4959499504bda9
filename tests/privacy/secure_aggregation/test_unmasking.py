"""Recovery of masks: from any sufficient set of right shares, within a limited number of tries."""

from __future__ import annotations

import pytest
from masked_studies import Room

from fedcdh.errors import SecureAggregationError
from fedcdh.privacy.secure_aggregation import _unmasking
from fedcdh.privacy.secure_aggregation._unmasking import _recover_secret
from fedcdh.privacy.secure_aggregation.secret_sharing import split_secret

SECRET = b"s" * 32


def shares_with_false(n_false: int) -> dict[int, bytes]:
    shares = split_secret(SECRET, 3, range(1, 5))
    return {point: bytes(33) if point <= n_false else share for point, share in shares.items()}


@pytest.mark.parametrize(("n_false", "found"), [(0, True), (1, True), (2, False)])
def test_false_shares_do_no_harm_where_enough_are_right(n_false, found):
    roster = Room.of(4).roster()
    assert roster.terms.threshold == 3
    if found:
        assert _recover_secret(shares_with_false(n_false), roster, "site0", lambda _, one: one == SECRET) == SECRET
    else:
        with pytest.raises(SecureAggregationError, match="do not recover its secret"):
            _recover_secret(shares_with_false(n_false), roster, "site0", lambda _, one: one == SECRET)


@pytest.mark.parametrize(("tries", "found"), [(4, True), (3, False)])
def test_the_number_of_tries_is_limited(monkeypatch, tries, found):
    """The first share is false, so that only the last of four subsets is right."""
    monkeypatch.setattr(_unmasking, "MAX_SHARE_SUBSETS", tries)
    tried = []

    def is_right(client: str, one: bytes) -> bool:
        tried.append(one)
        return one == SECRET

    try:
        assert _recover_secret(shares_with_false(1), Room.of(4).roster(), "site0", is_right) == SECRET
    except SecureAggregationError:
        assert not found
    assert len(tried) == tries
