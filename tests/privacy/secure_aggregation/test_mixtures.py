"""Secure sums with mixtures of clients: exact under masks, and refused where they would open too little a sum."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from masked_studies import Room, a_study

from fedcdh.errors import DisclosureError, SecureAggregationError
from fedcdh.privacy.secure_aggregation.client import SecAggClient
from fedcdh.privacy.secure_aggregation.codec import read_message
from fedcdh.privacy.secure_aggregation.limits import SecureSumLimits
from fedcdh.privacy.secure_aggregation.terms import SecAggTerms
from fedcdh.summaries.aggregation import Aggregate, add_up
from fedcdh.summaries.domain_mixtures import (
    MAX_MIXTURES,
    DomainMixtures,
    find_smallest_row_sum,
    find_smallest_sum,
)
from fedcdh.summaries.integer_vectors import encode_aggregate


def expected_sum(room: Room, gone: tuple[str, ...] = ()) -> Aggregate:
    there = [one for one in room.cohort.summaries if one.clients[0] not in gone]
    cohort = add_up(there, room.cohort.plan, without=gone)
    mixtures = DomainMixtures.of(there, room.cohort.plan, room.mixtures)
    return Aggregate.from_total(cohort.total, cohort.plan, mixtures)


@pytest.mark.parametrize(("sites", "mixtures"), [(6, 1), (7, 3)])
def test_the_sum_under_masks_is_the_plain_one(sites, mixtures):
    room = Room.of(sites, count=2, mixtures=mixtures)
    found = room.run()
    assert np.array_equal(encode_aggregate(found), encode_aggregate(expected_sum(room)))
    assert found.mixtures is not None
    assert found.mixtures.sums.shape == (mixtures, found.plan.layout.n_columns)


def test_a_client_may_leave_where_the_rest_is_still_hidden():
    room = Room.of(8, mixtures=2, gone={"site3": "masked"})
    assert np.array_equal(encode_aggregate(room.run()), encode_aggregate(expected_sum(room, ("site3",))))


def test_clients_sign_no_list_on_which_the_rest_is_not_hidden():
    room = Room.of(6, mixtures=1, threshold=5, gone={"site3": "masked"})
    roster = room.roster()
    delivery = room.delivery(roster)
    present = room.present(roster, delivery)
    with pytest.raises(DisclosureError, match="sums of features over 2 clients can be computed"):
        room.confirmations(roster, present)


@pytest.mark.parametrize(("sites", "most"), [(4, 0), (5, 0), (6, 1), (7, 3), (8, 4), (10, 5)])
def test_terms_admit_the_most_mixtures_that_hide_clients_and_no_more(sites, most):
    study, _, _ = a_study(sites)
    for mixtures in range(1, most + 1):
        assert SecAggTerms.of(study, mixtures=mixtures).mixtures == mixtures
    refusal = "can be computed. Expected at least 3" if most < MAX_MIXTURES else "Expected 1 to 5"
    with pytest.raises(SecureAggregationError, match=refusal):
        SecAggTerms.of(study, mixtures=most + 1)


def test_mixtures_stand_alone():
    study, _, _ = a_study(6)
    groups = dict.fromkeys(study.plan.clients, "all")
    with pytest.raises(SecureAggregationError, match="with groups"):
        SecAggTerms.of(study, groups=groups, mixtures=1)


def test_a_client_checks_the_terms_by_its_own_policy():
    study, keys, _ = a_study(8)
    terms = SecAggTerms.of(study, mixtures=2)
    signs = terms.signs_of(study.plan.clients, study.plan.clients)
    assert (find_smallest_sum(signs), find_smallest_row_sum(signs)) == (4, 2)

    def answer(least: int, asked: SecAggTerms = terms) -> str:
        limits = SecureSumLimits(min_group_sites=least)
        client = SecAggClient(study, "site0", keys["site0"], limits=limits)
        return client.answer(asked, None, lambda: (None, True))[1].kind

    assert answer(2) == "keys"
    with pytest.raises(DisclosureError, match="number of rows of 2 clients"):
        answer(3)
    with pytest.raises(DisclosureError, match="sums of features over 4 clients"):
        answer(5)
    with pytest.raises(SecureAggregationError, match="mixtures"):
        answer(1, replace(terms, mixtures=5))  # a server that does not check its own terms
    assert read_message(terms.to_bytes(), study.plan, SecAggTerms) == terms
    assert "mixtures" not in SecAggTerms.of(study).document()  # the terms of other sums are as they were
