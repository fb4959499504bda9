"""What a client asks of a secure sum, at its limits."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from masked_studies import Room, a_study, groups_of

from fedcdh.errors import DisclosureError, SettingsError
from fedcdh.privacy.disclosure.policy import Policy
from fedcdh.privacy.secure_aggregation.client import SecAggClient
from fedcdh.privacy.secure_aggregation.limits import MIN_THRESHOLD_SHARE, SecureSumLimits
from fedcdh.privacy.secure_aggregation.terms import SecAggTerms

NAMES = tuple(f"c{k}" for k in range(1000))


def check(limits: SecureSumLimits, sites: int, threshold: int, present: int | None = None) -> None:
    terms = SecAggTerms("plan", "study", threshold)
    limits.check(terms, "c0", NAMES[:sites], NAMES[: sites if present is None else present])


@given(st.integers(3, 1000))
def test_the_coordinators_default_passes_the_default_limits(sites):
    check(SecureSumLimits(), sites, 2 * sites // 3 + 1)


@pytest.mark.parametrize(("sites", "least"), [(3, 2), (4, 3), (6, 4), (10, 7), (50, 33), (100, 66)])
def test_the_threshold_at_its_limit(sites, least):
    check(SecureSumLimits(), sites, least)
    with pytest.raises(DisclosureError, match=f"threshold of the secure sum is {least - 1} of {sites}"):
        check(SecureSumLimits(), sites, least - 1)
    assert least >= MIN_THRESHOLD_SHARE * sites


def test_the_number_of_clients_at_its_limit():
    limits = SecureSumLimits(min_sum_sites=5)
    check(limits, 6, 6, present=5)
    with pytest.raises(DisclosureError, match="is of 4 clients"):
        check(limits, 6, 6, present=4)


def test_the_size_of_a_group_at_its_limit():
    study = a_study(6)[0]
    alone, grouped = SecAggTerms.of(study), SecAggTerms.of(study, groups=groups_of(study, 2))
    clients = study.plan.clients
    limits = SecureSumLimits(min_group_sites=3)
    limits.check(grouped, clients[0], clients, clients)
    with pytest.raises(DisclosureError, match="sums of features of 1 clients"):
        limits.check(alone, clients[0], clients, clients)
    with pytest.raises(DisclosureError, match="sums of features of 2 clients"):
        limits.check(grouped, clients[0], clients, clients[:4])
    with pytest.raises(DisclosureError, match="sums of features of 3 clients"):
        replace(limits, min_group_sites=4).check(grouped, clients[0], clients, clients)


def test_a_client_makes_no_key_for_terms_that_its_policy_does_not_admit():
    room = Room.of(6, threshold=4)
    strict = Policy(min_threshold_share=0.7).secure_sum_limits()
    client = SecAggClient(room.study, "site0", room.keys["site0"], limits=strict)
    with pytest.raises(DisclosureError, match="min_threshold_share in the policy"):
        client.answer(room.terms(), None, lambda: 1 / 0)
    room.ask("site0", room.terms())


@pytest.mark.parametrize("round_", ["shares", "masked", "confirmed"])
def test_a_client_stops_where_too_few_others_are_left(round_):
    """Terms that all six sign, then one or two are silent; the client that wants six does not go on."""
    room = Room.of(
        6, threshold=4, gone={"site5": {"shares": "keys", "masked": "shares", "confirmed": "masked"}[round_]}
    )
    strict = SecureSumLimits(min_sum_sites=6)
    request = room.roster()
    if round_ != "shares":
        request = room.delivery(roster := request)
    if round_ == "confirmed":
        request = room.present(roster, request)
    client = SecAggClient(room.study, "site0", room.keys["site0"], limits=strict)
    with pytest.raises(DisclosureError, match="is of 5 clients"):
        client.answer(request, room.states["site0"], lambda: 1 / 0)


def test_shares_of_thresholds_are_from_a_half_to_all():
    for share in (0.5, 1.0):
        Policy(min_threshold_share=share)
    for share in (0.49, 1.01):
        with pytest.raises(SettingsError, match="min_threshold_share"):
            Policy(min_threshold_share=share)
    with pytest.raises(SettingsError, match="min_sum_sites"):
        Policy(min_sum_sites=0)
