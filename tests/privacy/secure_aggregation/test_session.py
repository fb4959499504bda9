"""Masked sums: known answers, the same sum to the last bit, sites that leave, and a server that lies."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
import studies
from hypothesis import given, settings
from hypothesis import strategies as st
from masked_studies import ROUNDS, Room, a_study, groups_of, same
from scipy.stats import chi2

from fedcdh._io.storage import write_atomically
from fedcdh._io.strict_json import to_canonical_json
from fedcdh.cli import main
from fedcdh.cli.simulate import to_csv
from fedcdh.discovery.api import discover_from
from fedcdh.errors import FedCDHError, SecureAggregationError, SettingsError, SignatureError, SummaryError
from fedcdh.federation import ClientNode as OnlineSite
from fedcdh.federation import StudyOutcome, conduct_study, read_site_config, simulate_federation
from fedcdh.federation import StudyTerms as OnlineTerms
from fedcdh.federation.secure_sum import SecureSumOptions
from fedcdh.messages.aggregate_file import AggregateMessage, max_aggregate_bytes, pack_aggregate, unpack_aggregate
from fedcdh.messages.envelope import Envelope, RoundRequest
from fedcdh.messages.signing import SigningKey
from fedcdh.messages.study_file import Study
from fedcdh.privacy.disclosure.policy import Policy
from fedcdh.privacy.ledger import ReleaseLedger
from fedcdh.privacy.secure_aggregation import codec
from fedcdh.privacy.secure_aggregation.client import SecAggClient
from fedcdh.privacy.secure_aggregation.client_state import ClientStateFile, read_state, write_state
from fedcdh.privacy.secure_aggregation.masking import (
    agree_secret,
    derive_key,
    derive_pair_mask_key,
    derive_public_key,
    derive_self_mask_key,
    expand_mask,
    seal,
    unseal,
)
from fedcdh.privacy.secure_aggregation.messages import (
    REQUEST_TYPES,
    ConfirmedSurvivors,
    MaskedVector,
    PublicKeys,
    Roster,
    SealedShares,
    SecAggTerms,
    ShareDelivery,
    SurvivorConfirmation,
    SurvivorList,
    UnmaskingShares,
    hash_study,
)
from fedcdh.privacy.secure_aggregation.secret_sharing import PRIME, join_shares, split_secret
from fedcdh.privacy.secure_aggregation.server import index_by_client
from fedcdh.privacy.secure_aggregation.session import REQUEST_FILE_NAMES
from fedcdh.reporting.result_files import render_result_json
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.aggregation import Aggregate, Cohort, add_up
from fedcdh.summaries.dp_parameters import DPParameters
from fedcdh.summaries.encoder import GRID
from fedcdh.summaries.integer_vectors import (
    MAX_ROWS_READ,
    decode_aggregate,
    encode_aggregate,
    encode_summary,
    group_clients,
)
from fedcdh.summaries.plan import Categorical, StudyPlan
from fedcdh.summaries.summary import MAX_ROWS, Summary

CLIENTS = tuple(f"site{k}" for k in range(10))


# Known answers


@pytest.mark.parametrize(
    ("private", "public", "shared"),
    [
        (
            "a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4",
            "e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c",
            "c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552",
        ),
        (
            "5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb",
            "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a",
            "4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742",
        ),
    ],
)
def test_keys_are_agreed_on_as_in_rfc_7748(private, public, shared):
    assert agree_secret(bytes.fromhex(private), bytes.fromhex(public)).hex() == shared


def test_public_keys_are_those_of_rfc_7748():
    private = bytes.fromhex("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb")
    assert derive_public_key(private).hex() == "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f"


@pytest.mark.parametrize("point", [bytes(32), bytes([1]) + bytes(31)])
def test_keys_that_nobody_can_own_are_refused(point):
    with pytest.raises(SecureAggregationError, match="public key"):
        agree_secret(b"k" * 32, point)


@pytest.mark.parametrize(
    ("salt", "info", "key"),
    [
        (
            bytes(range(13)),
            bytes(range(0xF0, 0xFA)),
            "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf",
        ),
        (b"", b"", "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d"),
    ],
)
def test_keys_are_derived_as_in_rfc_5869(salt, info, key):
    assert derive_key(b"\x0b" * 22, salt, info).hex() == key


def test_streams_are_those_of_nist_sp_800_38a():
    """F.5.5, CTR-AES256: the output blocks are ciphertext xor plaintext."""
    key = bytes.fromhex("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4")
    plain = "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51"
    cipher = "601ec313775789a5b7a7f504bbf3d228f443e3ca4d62b59aca84e990cacaf5c5"
    expected = int(plain, 16) ^ int(cipher, 16)
    assert expand_mask(key, 4, bytes(range(0xF0, 0x100))).astype("<u8").tobytes() == expected.to_bytes(32, "big")


# Shamir's sharing


def test_the_prime_is_one():
    assert all(pow(base, PRIME - 1, PRIME) == 1 for base in (2, 3, 5, 7, 11, 13))
    assert all(PRIME % small for small in range(2, 1000))


@settings(max_examples=60, deadline=None)
@given(st.data(), st.binary(min_size=32, max_size=32), st.integers(1, 12))
def test_enough_shares_give_the_secret_back_and_fewer_do_not(data, secret, number):
    threshold = data.draw(st.integers(1, number))
    shares = split_secret(secret, threshold, range(1, number + 1))
    enough = data.draw(st.sets(st.sampled_from(sorted(shares)), min_size=threshold))
    assert join_shares({point: shares[point] for point in enough}) == secret
    if threshold > 1:
        few = sorted(shares)[: threshold - 1]
        assert join_shares({point: shares[point] for point in few}) != secret


@settings(max_examples=30, deadline=None)
@given(st.binary(min_size=32, max_size=32), st.binary(min_size=32, max_size=32))
def test_with_one_share_less_every_secret_is_possible(secret, other):
    """For two shares of three needed there is a third one that makes them shares of any other secret."""
    shares = split_secret(secret, 3, [1, 2, 3])
    values = {point: int.from_bytes(share, "big") for point, share in shares.items()}
    # at 0 the secret is 3 s₁ − 3 s₂ + s₃
    third = (int.from_bytes(other, "big") - 3 * values[1] + 3 * values[2]) % PRIME
    assert join_shares({1: shares[1], 2: shares[2], 3: third.to_bytes(33, "big")}) == other


def test_the_largest_secret_fits():
    shares = split_secret(b"\xff" * 32, 2, [1, 2, 3])
    assert all(join_shares({a: shares[a], b: shares[b]}) == b"\xff" * 32 for a, b in combinations(shares, 2))


@pytest.mark.parametrize("points", [[0, 1], [1, 1], [1]])
def test_points_that_tell_the_secret_or_too_few_are_refused(points):
    with pytest.raises(SecureAggregationError):
        split_secret(b"s" * 32, 2, points)


@pytest.mark.parametrize("share", [b"", b"x" * 32, PRIME.to_bytes(33, "big")])
def test_what_is_no_share_is_refused(share):
    with pytest.raises(SecureAggregationError):
        join_shares({1: share})


# Masks


@settings(max_examples=25, deadline=None)
@given(st.binary(max_size=80), st.integers(0, 3))
def test_what_is_sealed_opens_for_that_pair_in_that_session_only(text, wrong):
    right = ["11" * 32, "north", "south"]
    box = seal(b"k" * 32, *right, text, b"n" * 12)
    assert unseal(b"k" * 32, *right, box) == text
    other = right.copy()
    if wrong < 3:
        other[wrong] = "22" * 32 if wrong == 0 else "west"
    with pytest.raises(SecureAggregationError):
        unseal((b"x" if wrong == 3 else b"k") * 32, *other, box)


def test_no_mask_is_used_twice():
    """The keys of 10,000 sessions and pairs, with the same secret, are all different; so are those of own masks."""
    sessions = [hashlib.sha256(f"{k}".encode()).hexdigest() for k in range(100)]
    pairs = list(combinations([f"s{k}" for k in range(15)], 2))[:100]
    keys = [derive_pair_mask_key(b"k" * 32, session, *pair) for session in sessions for pair in pairs]
    keys += [derive_self_mask_key(b"k" * 32, session, f"s{k}") for session in sessions for k in range(15)]
    assert len(set(keys)) == len(keys) == 11_500
    assert derive_pair_mask_key(b"k" * 32, sessions[0], "a", "b") == derive_pair_mask_key(
        b"k" * 32, sessions[0], "b", "a"
    )
    assert derive_pair_mask_key(b"k" * 32, sessions[0], "a", "bc") != derive_pair_mask_key(
        b"k" * 32, sessions[0], "ab", "c"
    )


def uniform(words: np.ndarray) -> float:
    """The p-value of chi-square for the 256 values of each byte."""
    counts = np.bincount(words.view(np.uint8), minlength=256)
    expected = counts.sum() / 256
    return float(chi2.sf(((counts - expected) ** 2 / expected).sum(), 255))


def test_masked_numbers_look_like_chance_and_plain_ones_do_not():
    room = Room.of(3, 4)
    roster = room.roster()
    room.present(roster, room.delivery(roster))
    masked = [one.words for one in room.replies["masked"].values()]
    groups = group_clients({}, room.cohort.clients)
    plain = [encode_summary(summary, room.study.plan, groups) for summary in room.cohort.summaries]
    assert all(uniform(words) > 1e-6 for words in masked)
    assert uniform(np.concatenate(masked)) > 1e-6
    assert all(uniform(words) < 1e-100 for words in plain)


def test_the_same_numbers_are_masked_otherwise_in_every_session():
    first, second = Room.of(3), Room.of(3)
    for room in (first, second):
        roster = room.roster()
        room.present(roster, room.delivery(roster))
    for client, one in first.replies["masked"].items():
        assert not (one.words == second.replies["masked"][client].words).any()


# The sum


@pytest.mark.parametrize("sites", [3, 10])
def test_the_masked_sum_is_the_plain_one(sites):
    room = Room.of(sites, 4)
    assert same(room.run(), Aggregate.of(room.cohort))


@pytest.mark.parametrize("number", [1, 2, 3])
def test_of_groups_only_sums_are_known(number):
    study = a_study(9)[0]
    room = Room.of(9, groups=groups_of(study, number))
    found = room.run()
    assert found.clients == tuple(f"group {k}" for k in range(number))
    assert same(found, room.plain(room.cohort.clients))
    assert found.total.clients == room.cohort.clients


@pytest.mark.parametrize(
    ("client", "stage"), [("site0", "keys"), *((client, stage) for client in CLIENTS for stage in ROUNDS[1:])]
)
def test_whoever_leaves_when_the_sum_is_that_of_the_others(stage, client):
    """Who has sent masked numbers is in the sum, also if it then leaves."""
    room = Room.of(10, gone={client: stage})
    there = set(CLIENTS) - ({client} if ROUNDS.index(stage) < 3 else set())
    assert same(room.run(), room.plain(there))


@pytest.mark.parametrize("stage", ROUNDS)
def test_as_many_may_leave_as_the_threshold_allows_and_no_more(stage):
    leaving = dict.fromkeys(CLIENTS[:3], stage)
    there = set(CLIENTS) - (set(leaving) if ROUNDS.index(stage) < 3 else set())
    room = Room.of(10, gone=leaving)
    assert room.terms().threshold == 7
    assert same(room.run(), room.plain(there))
    with pytest.raises(SecureAggregationError, match=r"7 are needed|at least 7"):
        Room.of(10, gone=dict.fromkeys(CLIENTS[:4], stage)).run()


def test_sites_may_leave_in_every_round():
    room = Room.of(10, gone={"site1": "shares", "site4": "masked", "site7": "confirmed"})
    assert same(room.run(), room.plain(set(CLIENTS) - {"site1", "site4"}))


@settings(max_examples=25, deadline=None)
@given(st.dictionaries(st.sampled_from(CLIENTS[:6]), st.sampled_from(ROUNDS)), st.integers(4, 6))
def test_whoever_leaves_whenever_there_is_the_exact_sum_or_none(gone, threshold):
    """The sum is that of all whose numbers came, if at least the threshold stayed to the end; else there is none."""
    room = Room.of(6, gone=gone, threshold=threshold)
    there = [client for client in room.cohort.clients if gone.get(client) not in ROUNDS[:3]]
    if len(room.cohort.clients) - len(gone) >= threshold:
        assert same(room.run(), room.plain(there))
    else:
        with pytest.raises(SecureAggregationError, match="Expected at least"):
            room.run()


def test_a_group_of_which_two_are_left_is_not_opened():
    groups = groups_of(a_study(10)[0], 3)
    with pytest.raises(SecureAggregationError, match="group"):
        Room.of(10, groups=groups, gone={"site1": "masked", "site4": "masked"}).run()


def test_a_group_that_has_left_altogether_is_not_in_the_sum():
    groups = {client: "few" if client in CLIENTS[:3] else "many" for client in CLIENTS}
    room = Room.of(10, groups=groups, gone=dict.fromkeys(CLIENTS[:3], "masked"))
    found = room.run()
    assert found.clients == ("many",)
    assert same(found, room.plain(CLIENTS[3:]))


def test_first_moments_in_the_place_of_a_group_that_has_left_are_found(monkeypatch):
    groups = {client: "few" if client in CLIENTS[:3] else "many" for client in CLIENTS}
    room = Room.of(10, groups=groups, gone=dict.fromkeys(CLIENTS[:3], "masked"))

    def elsewhere(*about):
        words = encode_summary(*about).copy()
        words[-2 * room.study.plan.layout.n_columns] += np.uint64(1)
        return words

    monkeypatch.setattr("fedcdh.privacy.secure_aggregation.client.encode_summary", elsewhere)
    with pytest.raises(SecureAggregationError, match="place of another"):
        room.run()


# With noise in the plan


@pytest.mark.parametrize("distributed", [True, False])
def test_noise_of_the_plan_is_in_the_sum_and_the_same_when_asked_again(distributed):
    tables = studies.numbers(0, (900, 800, 700, 600), 6)
    honest = {"honest": 3} if distributed else {}
    plan = replace(studies.plan_of(tables), clip=6.0, noise=DPParameters(1.0, 1e-6, distributed=distributed, **honest))
    keys = {client: SigningKey.generate() for client in tables}
    summaries = tuple(summarize(table, plan, client) for client, table in tables.items())
    room = Room(Study(plan, keys={c: key.public for c, key in keys.items()}), keys, Cohort(plan, summaries))
    room.gone = {"site3": "masked"}
    roster = room.roster()
    delivery = room.delivery(roster)
    present = room.present(roster, delivery)
    assert room.ask("site0", delivery).to_bytes() == room.replies["masked"]["site0"].to_bytes()
    found = room.opened(roster, delivery, room.confirmations(roster, present))
    assert found.clients == ("all clients",)
    assert found.total.noise == 3 * plan.noise.client_deviation**2 >= plan.noise.deviation**2
    apart = (found.total.moments - sum(one.moments for one in summaries[:3])) / found.total.noise**0.5
    assert 0.7 < np.abs(apart[1:, 1:]).mean() / np.sqrt(2 / np.pi) < 1.5
    with pytest.raises(SecureAggregationError, match="noise"):
        replace(room.terms(), groups={}).check(room.study)


# As many rows as sums are exact for


def of_rows(counts: tuple[int, ...]) -> Room:
    """Clients with so many rows, all alike."""
    clients = tuple(f"c{k}" for k in range(len(counts)))
    plan = StudyPlan((Categorical("sex", ("f", "m")),), clients)
    keys = {client: SigningKey.generate() for client in clients}
    pattern = np.array([[1, 1, 0], [1, 1, 0], [0, 0, 0]], dtype=np.int64) * GRID**2
    summaries = [
        Summary(plan.fingerprint, (client,), pattern * rows, rows, {"sex": 0})
        for client, rows in zip(clients, counts, strict=True)
    ]
    return Room(Study(plan, keys={c: key.public for c, key in keys.items()}), keys, Cohort(plan, tuple(summaries)))


@pytest.mark.parametrize("less", [1, 0])
def test_as_many_rows_as_fit_are_added(less):
    found = of_rows((MAX_ROWS - 20 - less, 10, 10)).run()
    assert found.total.rows == MAX_ROWS - less
    assert found.client_rows == (MAX_ROWS - 20 - less, 10, 10)


@pytest.mark.parametrize("counts", [(MAX_ROWS - 20, 10, 11), (MAX_ROWS,) * 3, (MAX_ROWS - 1, 1, 1)])
def test_one_row_more_is_refused_and_so_is_what_wraps_around(counts):
    """Of three times as many, the moments alone would wrap around to fewer rows."""
    with pytest.raises(SummaryError, match="exact"):
        of_rows(counts).run()


def test_more_rows_read_than_can_be_added_are_refused():
    room = of_rows((10, 10, 10))
    first = replace(room.cohort.summaries[0], rows_read=MAX_ROWS_READ + 1, missing={"sex": MAX_ROWS_READ - 9})
    with pytest.raises(SecureAggregationError, match="rows were read"):
        encode_summary(first, room.study.plan, group_clients({}, room.cohort.clients))


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(0, 4), min_size=6, max_size=6))
def test_numbers_of_sums_are_sums_of_numbers(labels):
    """The row of numbers is additive, and gives the aggregate back, for any grouping."""
    _, _, cohort = a_study(6, 2)
    groups = {client: f"g{label}" for client, label in zip(cohort.clients, labels, strict=True)}
    places = group_clients(groups, cohort.clients)
    rows = sum(encode_summary(summary, cohort.plan, places) for summary in cohort.summaries)
    plain = Aggregate.of(cohort, groups)
    assert same(decode_aggregate(rows, cohort.plan, places), plain)
    assert np.array_equal(encode_aggregate(plain), rows)


# A server that lies


@dataclass
class Course:
    """An honest course of five sites, with all that was said, for a server that says something else to one of them."""

    room: Room
    roster: Roster
    delivery: ShareDelivery | None = None
    present: SurvivorList | None = None
    confirmations: ConfirmedSurvivors | None = None

    @classmethod
    def until(cls, stage: str, sites: int = 5, **settings: object) -> Course:
        room = Room.of(sites, **settings)
        course = cls(room, room.roster())
        if stage in ROUNDS[2:]:
            course.delivery = room.delivery(course.roster)
        if stage in ROUNDS[3:]:
            course.present = room.present(course.roster, course.delivery)
        if stage in ROUNDS[4:]:
            course.confirmations = room.confirmations(course.roster, course.present)
        return course


VICTIM, PEER = "site0", "site3"


def with_keys(course: Course, client: str, keys: PublicKeys) -> Roster:
    return replace(course.roster, keys=tuple(keys if one.client == client else one for one in course.roster.keys))


def another_key(course: Course) -> Roster:
    return with_keys(
        course, PEER, replace(course.roster.keys_of(PEER), sealing=derive_public_key(b"server" + bytes(26)))
    )


def signed_by_the_server(course: Course) -> Roster:
    forged = replace(course.roster.keys_of(PEER), masking=derive_public_key(b"server" + bytes(26))).signed(
        SigningKey.generate()
    )
    return with_keys(course, PEER, forged)


def keys_of_another_study(course: Course) -> Roster:
    other = Room(replace(course.room.study, profiles={"site1": "0" * 64}), course.room.keys, course.room.cohort)
    return with_keys(course, PEER, other.roster().keys_of(PEER))


def roster_of_before(course: Course) -> Roster:
    return Room.of(5).roster()


def less_needed(course: Course) -> Roster:
    return replace(course.roster, terms=replace(course.roster.terms, threshold=3))


def less_needed_and_signed_so_by_one(course: Course) -> Roster:
    terms = replace(course.roster.terms, threshold=3)
    mine = replace(course.roster.keys_of(PEER), terms=terms.digest).signed(course.room.keys[PEER])
    return replace(with_keys(course, PEER, mine), terms=terms)


def other_groups(course: Course) -> Roster:
    groups = dict.fromkeys(course.room.study.plan.clients, "all")
    return replace(course.roster, terms=replace(course.roster.terms, groups=groups))


def somebody_unknown(course: Course) -> Roster:
    stranger = replace(course.roster.keys_of(PEER), client="stranger").signed(SigningKey.generate())
    return replace(course.roster, keys=(*course.roster.keys, stranger))


def somebody_twice(course: Course) -> Roster:
    return replace(course.roster, keys=(*course.roster.keys, course.roster.keys[-1]))


def the_same_keys_under_two_names(course: Course) -> Roster:
    copied = course.roster.keys_of(VICTIM)
    theirs = replace(course.roster.keys_of(PEER), sealing=copied.sealing).signed(course.room.keys[PEER])
    return with_keys(course, PEER, theirs)


def too_few(course: Course) -> Roster:
    return replace(course.roster, keys=course.roster.keys[:3])


def without_the_site(course: Course) -> Roster:
    return replace(course.roster, keys=course.roster.keys[1:])


def boxes(course: Course, **changed: dict[str, bytes]) -> ShareDelivery:
    return replace(course.delivery, boxes={**course.delivery.boxes, **changed})


def changed_box(course: Course) -> ShareDelivery:
    box = bytearray(course.delivery.boxes[PEER][VICTIM])
    box[20] ^= 1
    return boxes(course, **{PEER: {VICTIM: bytes(box)}})


def box_of_another_sender(course: Course) -> ShareDelivery:
    return boxes(course, **{PEER: {VICTIM: course.delivery.boxes["site2"][VICTIM]}})


def box_for_another_receiver(course: Course) -> ShareDelivery:
    return boxes(course, **{PEER: {VICTIM: course.delivery.boxes[PEER]["site2"]}})


def box_returned_to_its_sender(course: Course) -> ShareDelivery:
    return boxes(course, **{PEER: {VICTIM: course.delivery.boxes[VICTIM][PEER]}})


def no_box(course: Course) -> ShareDelivery:
    return boxes(course, **{PEER: {}})


def delivery_of_another_session(course: Course) -> ShareDelivery:
    return Course.until("masked").delivery


def boxes_of_another_session(course: Course) -> ShareDelivery:
    return replace(Course.until("masked").delivery, session=course.delivery.session)


def few_senders(course: Course) -> ShareDelivery:
    return replace(course.delivery, boxes={c: course.delivery.boxes[c] for c in ("site0", "site1", "site2")})


def senders_who_are_not_in_the_roster(course: Course) -> ShareDelivery:
    return boxes(course, stranger=course.delivery.boxes[PEER])


def another_list_of_senders(course: Course) -> ShareDelivery:
    course.room.ask(VICTIM, course.delivery)
    return replace(course.delivery, boxes={c: box for c, box in course.delivery.boxes.items() if c != PEER})


def listed(course: Course, *clients: str) -> SurvivorList:
    return SurvivorList(course.roster.digest, clients)


def list_without_the_site(course: Course) -> SurvivorList:
    return listed(course, "site1", "site2", "site3", "site4")


def list_with_a_stranger(course: Course) -> SurvivorList:
    return listed(course, *course.present.clients, "stranger")


def short_list(course: Course) -> SurvivorList:
    return listed(course, "site0", "site1", "site2")


def list_of_another_session(course: Course) -> SurvivorList:
    return replace(course.present, session="ab" * 32)


def second_list(course: Course) -> SurvivorList:
    course.room.ask(VICTIM, course.present)
    return listed(course, "site0", "site1", "site2", "site4")


def with_signatures(
    course: Course, signatures: dict[str, bytes], present: SurvivorList | None = None
) -> ConfirmedSurvivors:
    return ConfirmedSurvivors(present or course.present, signatures)


def few_signatures(course: Course) -> ConfirmedSurvivors:
    return with_signatures(course, dict(list(course.confirmations.signatures.items())[:3]))


def forged_signature(course: Course) -> ConfirmedSurvivors:
    return with_signatures(course, {**course.confirmations.signatures, PEER: b"s" * 64})


def signature_of_another_site(course: Course) -> ConfirmedSurvivors:
    theirs = course.confirmations.signatures
    return with_signatures(course, {**theirs, PEER: theirs["site1"]})


def signature_of_an_earlier_session(course: Course) -> ConfirmedSurvivors:
    return with_signatures(course, dict(Course.until("opened").confirmations.signatures))


def signatures_under_another_list(course: Course) -> ConfirmedSurvivors:
    """The list is cut after it was signed, and the site asked for the key of the one who was cut."""
    shorter = listed(course, "site0", "site1", "site2", "site4")
    theirs = {client: course.confirmations.signatures[client] for client in shorter.clients}
    return with_signatures(course, theirs, shorter)


def list_that_others_signed(course: Course) -> ConfirmedSurvivors:
    """All others have signed another list than this site: with five sites, they could open that without it."""
    shorter = listed(course, "site0", "site1", "site2", "site4")
    signed = {c: sign_list(course, c, shorter) for c in shorter.clients}
    return with_signatures(course, signed, shorter)


def sign_list(course: Course, client: str, present: SurvivorList) -> bytes:
    """What a site that colludes would sign."""
    return SurvivorConfirmation(client, present.session, present.digest).signed(course.room.keys[client]).signature


def signer_who_is_not_in_the_list(course: Course) -> ConfirmedSurvivors:
    shorter = listed(course, "site0", "site1", "site2", "site4")
    course.room.states[VICTIM] = replace(course.room.states[VICTIM], present=shorter)
    return with_signatures(course, {c: sign_list(course, c, shorter) for c in course.present.clients}, shorter)


def both_after_the_end(course: Course) -> ConfirmedSurvivors:
    """The site has opened its part, and is asked for the other half of what it held."""
    course.room.ask(VICTIM, course.confirmations)
    return list_that_others_signed(course)


def roster_after_the_end(course: Course) -> Roster:
    course.room.ask(VICTIM, course.confirmations)
    return course.roster


def another_attempt_after_the_end(course: Course) -> SecAggTerms:
    course.room.ask(VICTIM, course.confirmations)
    return replace(course.roster.terms, attempt=2)


def other_terms_under_the_same_number(course: Course) -> SecAggTerms:
    return replace(course.roster.terms, threshold=3)


def terms_of_another_plan_file(course: Course) -> SecAggTerms:
    return replace(course.roster.terms, study="ab" * 32, attempt=2)


def a_threshold_of_half(course: Course) -> SecAggTerms:
    return replace(course.roster.terms, threshold=2, attempt=2)


def a_group_of_two(course: Course) -> SecAggTerms:
    groups = dict(zip(course.room.study.plan.clients, "aaabb", strict=True))
    return replace(course.roster.terms, groups=groups, attempt=2)


def second_roster(course: Course) -> Roster:
    return replace(course.roster, keys=course.roster.keys[:-1])


LIES = {
    "shares": (
        another_key,
        signed_by_the_server,
        keys_of_another_study,
        roster_of_before,
        less_needed,
        less_needed_and_signed_so_by_one,
        other_groups,
        somebody_unknown,
        somebody_twice,
        the_same_keys_under_two_names,
        too_few,
        without_the_site,
        other_terms_under_the_same_number,
        terms_of_another_plan_file,
        a_threshold_of_half,
        a_group_of_two,
    ),
    "masked": (
        changed_box,
        box_of_another_sender,
        box_for_another_receiver,
        box_returned_to_its_sender,
        no_box,
        delivery_of_another_session,
        boxes_of_another_session,
        few_senders,
        senders_who_are_not_in_the_roster,
        another_list_of_senders,
        second_roster,
    ),
    "confirmed": (
        list_without_the_site,
        list_with_a_stranger,
        short_list,
        list_of_another_session,
        second_list,
    ),
    "opened": (
        few_signatures,
        forged_signature,
        signature_of_another_site,
        signature_of_an_earlier_session,
        signatures_under_another_list,
        list_that_others_signed,
        signer_who_is_not_in_the_list,
        both_after_the_end,
        roster_after_the_end,
        another_attempt_after_the_end,
    ),
}


@pytest.mark.parametrize(
    ("stage", "lie"),
    [(stage, lie) for stage, lies in LIES.items() for lie in lies],
    ids=lambda one: getattr(one, "__name__", one),
)
def test_a_lie_of_the_server_is_refused_and_changes_nothing(stage, lie):
    course = Course.until(stage)
    request = lie(course)
    before = course.room.states[VICTIM]
    with pytest.raises((SecureAggregationError, SignatureError)):
        course.room.ask(VICTIM, request)
    assert course.room.states[VICTIM] == before


@pytest.mark.parametrize("stage", ROUNDS[1:])
def test_without_a_lie_the_same_request_is_answered(stage):
    """So that the refusals above are refusals of the lie."""
    course = Course.until(stage)
    honest = {"shares": course.roster, "masked": course.delivery, "confirmed": course.present}
    course.room.ask(VICTIM, honest.get(stage, course.confirmations))


def test_two_lists_to_two_halves_open_neither():
    course = Course.until("confirmed", 7)
    one, other = listed(course, *course.present.clients[:5]), listed(course, *course.present.clients[2:])
    signed: dict[SurvivorList, dict[str, bytes]] = {one: {}, other: {}}
    for client in course.present.clients:
        seen = one if client < "site4" else other
        if client in seen.clients:
            signed[seen][client] = course.room.ask(client, seen).signature
    for seen, signatures in signed.items():
        for client in signatures:
            with pytest.raises(SecureAggregationError, match="Expected at least"):
                course.room.ask(client, ConfirmedSurvivors(seen, signatures))


@pytest.mark.parametrize("sites", [4, 7, 10])
@pytest.mark.parametrize("fewer", [0, 1])
def test_two_lists_are_opened_only_with_as_many_helpers_as_documented(sites, fewer):
    """With 2 × threshold − sites helpers, who sign both lists, the server gets both secrets of single sites."""
    course = Course.until("confirmed", sites)
    helping = 2 * course.room.terms().threshold - sites - fewer
    helpers, rest = course.present.clients[:helping], course.present.clients[helping:]
    opened = 0
    for half in (rest[::2], rest[1::2]):
        seen = listed(course, *sorted((*helpers, *half)))
        signatures = {
            client: SurvivorConfirmation(client, seen.session, seen.digest).signed(course.room.keys[client]).signature
            for client in seen.clients
        }
        for client in half:
            with suppress(SecureAggregationError):
                course.room.ask(client, seen)
                opened += isinstance(course.room.ask(client, ConfirmedSurvivors(seen, signatures)), UnmaskingShares)
    assert (opened == len(rest)) == (not fewer)


def test_of_no_site_both_secrets_are_opened():
    room = Room.of(10, gone={"site2": "masked", "site5": "masked"})
    room.run()
    for one in room.replies["opened"].values():
        assert one.seeds.keys() == set(CLIENTS) - {"site2", "site5"}
        assert one.keys.keys() == {"site2", "site5"}
    assert all(state.secrets is None for state in room.states.values() if state.opened)


# Sites that lie


def lying(room: Room, client: str, summary: Summary) -> Room:
    summaries = [summary if one.clients == (client,) else one for one in room.cohort.summaries]
    return replace(room, cohort=Cohort(room.cohort.plan, tuple(summaries)))


def test_numbers_that_no_rows_give_are_found_in_the_sum_but_not_whose_they_are():
    room = Room.of(4)
    honest = room.cohort.summaries[1]
    moments = honest.moments.copy()
    moments[1, 1] //= 2
    with pytest.raises(SummaryError) as caught:
        lying(room, "site1", replace(honest, moments=moments)).run()
    assert all(client in str(caught.value) for client in room.cohort.clients)


def test_numbers_of_other_rows_are_not_found():
    """Documented: what is valid may be false, masked or not."""
    room = Room.of(4)
    false = replace(room.cohort.summaries[0], clients=("site1",))
    assert lying(room, "site1", false).run().client_rows == (20, 20, 22, 23)


def test_numbers_that_were_changed_on_the_way_are_refused():
    course = Course.until("confirmed")
    honest = course.room.replies["masked"][PEER]
    words = honest.words.copy()
    words[3] += np.uint64(1)
    with pytest.raises(SignatureError):
        course.room.server.check_masked(course.roster, course.delivery, replace(honest, words=words))


def test_numbers_under_other_masks_are_refused():
    course = Course.until("confirmed")
    honest = course.room.replies["masked"][PEER]
    other = replace(honest, masked_with=honest.masked_with[:-1]).signed(course.room.keys[PEER])
    with pytest.raises(SecureAggregationError, match="masked with other clients"):
        course.room.server.check_masked(course.roster, course.delivery, other)


def false_share(room: Room, client: str, of: str) -> None:
    honest = room.replies["opened"][client]
    seeds = {**honest.seeds, of: (5).to_bytes(33, "big")}
    room.replies["opened"][client] = replace(honest, seeds=seeds).signed(room.keys[client])


def test_a_false_share_does_no_harm_where_there_are_more_and_is_found_where_not():
    course = Course.until("opened", 10)
    plain = course.room.plain(CLIENTS)
    course.room.opened(course.roster, course.delivery, course.confirmations)
    for client in CLIENTS[:3]:
        false_share(course.room, client, "site5")
    assert same(course.room.sum(course.roster, course.present), plain)
    false_share(course.room, "site4", "site5")
    with pytest.raises(SecureAggregationError, match="site5"):
        course.room.sum(course.roster, course.present)


def test_one_answer_counts_once_and_two_that_differ_are_refused():
    course = Course.until("confirmed")
    one, *others = course.room.replies["masked"].values()
    assert len(index_by_client([one, one, *others])) == 5
    with pytest.raises(SecureAggregationError, match="two different"):
        index_by_client([one, replace(one, disclosure_control=False).signed(course.room.keys[one.client])])


def test_shares_for_some_only_are_refused():
    course = Course.until("masked")
    honest = course.room.replies["shares"][PEER]
    fewer = replace(honest, sealed={c: box for c, box in honest.sealed.items() if c != VICTIM})
    with pytest.raises(SecureAggregationError, match="all other clients"):
        course.room.server.check_shares(course.roster, fewer.signed(course.room.keys[PEER]))


# What a site does twice


def test_what_is_asked_again_is_answered_with_the_same_bytes():
    course = Course.until("opened")
    for request in (course.roster.terms, course.roster, course.delivery, course.present):
        once, again = (course.room.ask(VICTIM, request).to_bytes() for _ in range(2))
        assert once == again
    once, again = (course.room.ask(VICTIM, course.confirmations).to_bytes() for _ in range(2))
    assert once == again


def test_other_rows_are_not_masked_in_the_same_session():
    """Whatever has become of the rows, the same numbers leave: they are not even looked at."""
    course = Course.until("confirmed")
    state, reply = course.room.site(VICTIM).answer(course.delivery, course.room.states[VICTIM], lambda: 1 / 0)
    assert reply.to_bytes() == course.room.replies["masked"][VICTIM].to_bytes()
    assert state == course.room.states[VICTIM]


def test_another_attempt_begins_with_other_keys_where_nothing_was_opened():
    course = Course.until("opened")
    again = course.room.ask(VICTIM, replace(course.roster.terms, attempt=2))
    before = course.roster.keys_of(VICTIM)
    assert {again.sealing, again.masking}.isdisjoint({before.sealing, before.masking})
    with pytest.raises(SecureAggregationError, match="attempt"):
        course.room.ask(VICTIM, course.roster.terms)


def test_a_site_that_the_plan_does_not_name_or_with_another_key_takes_no_part():
    room = Room.of(3)
    for site in (
        SecAggClient(room.study, "stranger", SigningKey.generate()),
        SecAggClient(room.study, "site0", room.keys["site1"]),
    ):
        with pytest.raises(SignatureError, match="another key"):
            site.answer(room.terms(), None, lambda: None)


# Studies that cannot be masked


def test_two_sites_are_too_few():
    with pytest.raises(SecureAggregationError, match="2 clients"):
        SecAggTerms.of(a_study(2)[0])


def test_every_site_needs_a_key_of_its_own():
    study, keys, _ = a_study(3)
    with pytest.raises(SignatureError, match="site2"):
        SecAggTerms.of(replace(study, keys={c: study.keys[c] for c in ("site0", "site1")}))
    with pytest.raises(SignatureError, match="same key"):
        SecAggTerms.of(replace(study, keys=dict.fromkeys(keys, keys["site0"].public)))


@pytest.mark.parametrize(("sites", "threshold"), [(3, 3), (4, 3), (5, 4), (6, 5), (9, 7), (10, 7), (100, 67)])
def test_more_than_two_thirds_open_the_sum(sites, threshold):
    clients = tuple(f"c{k}" for k in range(sites))
    keys = {client: SigningKey.generate().public for client in clients}
    study = Study(StudyPlan((Categorical("sex", ("f", "m")),), clients), keys=keys)
    assert SecAggTerms.of(study).threshold == threshold
    with pytest.raises(SecureAggregationError, match="threshold"):
        SecAggTerms.of(study, threshold=sites // 2 if sites > 5 else 2)


# Bytes


def said(course: Course) -> list[object]:
    room = course.room
    course.room.opened(course.roster, course.delivery, course.confirmations)
    replies = [next(iter(room.replies[round_].values())) for round_ in ROUNDS]
    return [course.roster.terms, course.roster, course.delivery, course.present, course.confirmations, *replies]


def test_every_message_has_one_way_to_be_written():
    course = Course.until("opened")
    for message in said(course):
        blob = message.to_bytes()
        found = codec.read_message(blob, course.room.study.plan, type(message))
        assert found.to_bytes() == blob
        assert len(blob) <= codec.max_message_bytes(course.room.study.plan, type(message))
        others = [
            kind
            for kind in (SecAggTerms, PublicKeys, Roster, SealedShares, ShareDelivery, MaskedVector, UnmaskingShares)
            if kind is not type(message)
        ]
        with pytest.raises(SecureAggregationError):
            codec.read_message(blob, course.room.study.plan, *others[:3])
        for changed in (blob[:-1], blob + b" ", blob[:1] + b" " + blob[1:], b"", b"\n", blob.replace(b'"', b"", 1)):
            with pytest.raises(SecureAggregationError):
                codec.read_message(changed, course.room.study.plan, type(message))


def test_changed_bytes_are_refused_or_no_longer_signed():
    """Whatever byte of whatever answer is changed: it does not parse, or its signature is false."""
    course = Course.until("opened")
    rng = np.random.default_rng(0)
    for message in said(course)[5:]:
        blob = message.to_bytes()
        for place in rng.integers(0, len(blob), 60):
            changed = blob[:place] + bytes([blob[place] ^ int(rng.integers(1, 256))]) + blob[place + 1 :]
            with pytest.raises(FedCDHError):
                codec.read_message(changed, course.room.study.plan, type(message)).check_signature(course.room.study)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@lru_cache
def requests_said() -> tuple[StudyPlan, tuple[Any, ...]]:
    course = Course.until("opened")
    return course.room.study.plan, (course.roster.terms, course.roster, course.delivery, course.confirmations)


@settings(max_examples=150, deadline=None)
@given(st.data(), ANYTHING)
def test_whatever_stands_in_a_field_is_taken_as_it_was_written_or_refused(data, value):
    plan, said = requests_said()
    message = data.draw(st.sampled_from(said))
    field = data.draw(st.sampled_from(sorted(message.document())))
    blob = to_canonical_json({**message.document(), field: value}).encode()
    with contextlib.suppress(SecureAggregationError):
        assert codec.read_message(blob, plan, type(message)).to_bytes() == blob


def test_a_long_message_is_refused_before_it_is_parsed():
    plan = a_study(3)[0].plan
    with pytest.raises(SecureAggregationError, match="more than this plan allows"):
        codec.read_message(b"[" * (codec.max_message_bytes(plan, SecAggTerms) + 1), plan, SecAggTerms)


# Memory


def test_a_site_that_is_killed_between_rounds_goes_on_from_its_file(tmp_path):
    """Every site is made anew for every answer; all it has is its file."""
    room = Room.of(4)
    files = {client: ClientStateFile(tmp_path / f"{client}.json") for client in room.cohort.clients}

    def ask(client, request):
        summary = room.cohort.summaries[room.cohort.clients.index(client)]
        blob = codec.read_message(request.to_bytes(), room.study.plan, type(request))
        site = SecAggClient(room.study, client, room.keys[client])
        reply = files[client].answer(site, blob, lambda: (summary, True))
        again = ClientStateFile(files[client].path).answer(site, blob, lambda: (summary, True))
        assert again.to_bytes() == reply.to_bytes()
        return codec.read_message(reply.to_bytes(), room.study.plan, type(reply))

    room.ask = ask
    assert same(room.run(), room.plain(room.cohort.clients))
    for client, file in files.items():
        text = file.path.read_text()
        assert '"secrets": null' in text
        assert file.path.stat().st_mode & 0o077 == 0
        assert client in text


def test_secrets_are_in_the_file_while_they_are_needed_and_not_shown():
    course = Course.until("opened")
    state = course.room.states[VICTIM]
    assert read_state(write_state(state).encode(), course.room.study) == state
    for secret in (state.secrets.seed, state.secrets.masking, state.secrets.sealing):
        assert repr(secret) not in repr(state)
    with pytest.raises(SecureAggregationError):
        read_state(write_state(state).replace('"masked": "', '"masked": "x').encode(), course.room.study)


def test_a_file_that_others_may_read_or_of_another_study_is_refused(tmp_path):
    room = Room.of(3)
    file = ClientStateFile(tmp_path / "state.json")
    site = room.site("site0")
    file.answer(site, room.terms(), lambda: None)
    other = replace(room.study, profiles={"site1": "0" * 64})
    with pytest.raises(SecureAggregationError, match="another study"):
        file.answer(replace(site, study=other), replace(room.terms(), study=hash_study(other)), lambda: None)
    file.path.chmod(0o644)
    with pytest.raises(SecureAggregationError, match="others may read"):
        file.answer(site, room.terms(), lambda: None)


def test_values_cannot_be_changed():
    terms = Room.of(3).terms()
    assert isinstance(terms.groups, MappingProxyType)
    with pytest.raises(AttributeError):
        terms.threshold = 2


# By file


@pytest.fixture
def by_file(tmp_path, monkeypatch):
    """A coordinator's folder, and a folder of every site, with its key and its data."""
    return Mailed.of(tmp_path, monkeypatch, studies.numbers(3, (200, 160, 180, 170), 2))


OWN = ("--ledger", "releases.jsonl")


@dataclass
class Mailed:
    """People who run commands and mail files."""

    root: Path
    monkeypatch: pytest.MonkeyPatch
    tables: studies.Tables
    study: Study

    @classmethod
    def of(cls, root: Path, monkeypatch: pytest.MonkeyPatch, tables: studies.Tables) -> Mailed:
        keys = {client: SigningKey.generate() for client in tables}
        study = Study(studies.plan_of(tables), keys={client: key.public for client, key in keys.items()})
        for client, table in tables.items():
            rows = zip(*(column.tolist() for column in table.values()), strict=True)
            write_atomically(root / client / "data.csv", to_csv(table, rows))
            write_atomically(root / client / "site.key", keys[client].to_pem(), private=True)
        write_atomically(root / "study.plan.json", study.to_json())
        return cls(root, monkeypatch, tables, study)

    def site(self, client: str, request: str, *arguments: str, code: int = 0) -> None:
        """A site answers a round; its answer goes to the coordinator's folder."""
        self.monkeypatch.chdir(self.root / client)
        asked = self.root / "rounds" / request
        assert (
            main(
                [
                    "secure-sum",
                    "join",
                    "../study.plan.json",
                    str(asked),
                    "data.csv",
                    "--client",
                    client,
                    *OWN,
                    *arguments,
                ]
            )
            == code
        )
        for answer in Path().glob(f"{client}.*"):
            if answer.suffix in {f".{round_}" for round_ in ROUNDS}:
                (self.root / "rounds" / answer.name).write_bytes(answer.read_bytes())

    def coordinator(self, *arguments: str, code: int = 0) -> None:
        self.monkeypatch.chdir(self.root)
        assert main(["secure-sum", "run", "study.plan.json", "rounds", *arguments]) == code

    def run(self, gone: dict[str, str], *arguments: str) -> Aggregate:
        self.coordinator(*arguments)
        for place, (request, round_) in enumerate(zip(REQUEST_FILE_NAMES.values(), ROUNDS, strict=True)):
            for client in self.tables:
                if ROUNDS.index(gone.get(client, "opened")) > place or client not in gone:
                    self.site(client, request)
            self.coordinator(*(["--go-on"] if round_ in gone.values() else []))
        blob = (self.root / "study.aggregate").read_bytes()
        return unpack_aggregate(blob, self.study.plan).aggregate


def test_by_file_the_sum_and_the_result_are_the_plain_ones(by_file, capsys):
    found = by_file.run({})
    cohort = add_up(
        [summarize(table, by_file.study.plan, client) for client, table in by_file.tables.items()], by_file.study.plan
    )
    assert same(found, Aggregate.of(cohort))
    assert main(["discover", "study.plan.json", "study.aggregate", "-o", "masked"]) == 0
    said = capsys.readouterr().out
    assert "rows and the means of every client" in said
    assert Path("masked/result.json").read_text() == render_result_json(
        discover_from(Aggregate.of(cohort), cohort.plan)
    )
    for client in by_file.tables:
        assert '"secrets": null' in (by_file.root / client / f"masking-state-{client}.json").read_text()


def test_by_file_a_site_may_leave(by_file):
    found = by_file.run({"site2": "masked"})
    assert found.clients == ("site0", "site1", "site3")
    summaries = [summarize(t, by_file.study.plan, c) for c, t in by_file.tables.items() if c != "site2"]
    assert same(found, Aggregate.of(add_up(summaries, by_file.study.plan, without=("site2",))))


def test_by_file_the_coordinator_says_who_is_missing_and_goes_on_only_when_told(by_file, capsys):
    by_file.coordinator()
    for client in ("site0", "site1", "site3"):
        by_file.site(client, "1-terms.json")
    capsys.readouterr()
    by_file.coordinator()
    assert "Answers of site2" in capsys.readouterr().out
    assert not (by_file.root / "rounds" / "2-roster.json").exists()
    by_file.coordinator("--go-on")
    assert (by_file.root / "rounds" / "2-roster.json").exists()


def test_by_file_refusals_have_exit_codes_and_leave_no_answer(by_file, capsys):
    by_file.coordinator()
    by_file.site("site0", "1-terms.json", "--policy", "nowhere.toml", code=7)
    for client in by_file.tables:
        by_file.site(client, "1-terms.json")
    by_file.coordinator()
    roster = by_file.root / "rounds" / "2-roster.json"
    text = roster.read_bytes()
    other = Roster(*(getattr(codec.read_message(text, by_file.study.plan, Roster), name) for name in ("terms", "keys")))
    cut = replace(other, keys=other.keys[:-1])
    roster.write_bytes(replace(cut, keys=cut.keys[1:]).to_bytes())
    capsys.readouterr()
    by_file.site("site1", "2-roster.json", code=1)
    assert "Expected at least 3" in capsys.readouterr().err
    assert not (by_file.root / "site1" / "site1.shares").exists()
    roster.write_bytes(text)
    by_file.site("site1", "2-roster.json")
    by_file.coordinator("--group", "site0=a", code=1)


def test_by_file_the_policy_of_a_site_holds(by_file, capsys):
    (by_file.root / "site1" / "policy.toml").write_text("min_rows = 161\n")
    by_file.coordinator()
    for request in ("1-terms.json", "2-roster.json", "3-delivery.json"):
        for client in by_file.tables:
            refused = client == "site1" and request == "3-delivery.json"
            by_file.site(client, request, code=7 if refused else 0)
        by_file.coordinator()
    assert "161" in capsys.readouterr().err
    assert not (by_file.root / "site1" / "site1.masked").exists()


def test_by_file_what_left_under_masks_does_not_leave_plainly_by_the_same_plan(by_file, capsys):
    by_file.run({})
    by_file.monkeypatch.chdir(by_file.root / "site0")
    told = [entry.release.kind for entry in ReleaseLedger(Path(OWN[1])).entries()]
    assert told == ["masked"]
    capsys.readouterr()
    assert main(["summarize", "../study.plan.json", "data.csv", "--client", "site0", *OWN]) == 7
    assert "left under masks" in capsys.readouterr().err
    assert not Path("site0.summary").exists()
    renamed = replace(by_file.study, plan=replace(by_file.study.plan, study="without masks"))
    Path("renamed.plan.json").write_text(renamed.to_json())
    assert main(["summarize", "renamed.plan.json", "data.csv", "--client", "site0", *OWN]) == 0


def test_by_file_masks_over_what_left_plainly_hide_nothing_and_are_free(by_file):
    by_file.monkeypatch.chdir(by_file.root / "site0")
    assert main(["summarize", "../study.plan.json", "data.csv", "--client", "site0", *OWN]) == 0
    by_file.run({})
    by_file.monkeypatch.chdir(by_file.root / "site0")
    assert main(["summarize", "../study.plan.json", "data.csv", "--client", "site0", *OWN]) == 0
    assert [entry.release.kind for entry in ReleaseLedger(Path(OWN[1])).entries()] == ["summary"]


def test_by_file_a_site_that_lost_its_memory_begins_no_second_sum(by_file, capsys):
    by_file.run({"site2": "masked"})
    memory = by_file.root / "site0" / "masking-state-site0.json"
    memory.rename(memory.with_name("elsewhere.json"))
    capsys.readouterr()
    by_file.site("site0", "1-terms.json", code=1)
    assert "--state" in capsys.readouterr().err
    by_file.site("site0", "1-terms.json", "--state", "elsewhere.json")
    assert not memory.exists()


# The file of a sum


def test_a_sum_has_one_file(tmp_path):
    room = Room.of(6, groups=groups_of(a_study(6)[0], 2))
    message = AggregateMessage(room.plain(room.cohort.clients), "ab" * 32, 5, ("site1",))
    blob = pack_aggregate(message)
    found = unpack_aggregate(blob, room.study.plan)
    assert pack_aggregate(found) == blob
    assert same(found.aggregate, message.aggregate)
    assert len(blob) <= max_aggregate_bytes(room.study.plan)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_a_sum_that_was_changed_is_refused(data):
    room = Room.of(3)
    blob = pack_aggregate(AggregateMessage(room.plain(room.cohort.clients), "ab" * 32, 3))
    place = data.draw(st.integers(0, len(blob) - 1))
    changed = blob[:place] + bytes([blob[place] ^ data.draw(st.integers(1, 255))]) + blob[place + 1 :]
    for damaged in (changed, blob[:place], blob + b"\0"):
        with pytest.raises(FedCDHError):
            unpack_aggregate(damaged, room.study.plan)


# Online


TABLES = studies.numbers(3, (60, 50, 40, 55), 2)


def online(folder: Path, faults: Mapping[tuple[str, str], str] | None = None, **given: Any) -> StudyOutcome:
    return simulate_federation(
        TABLES, secure_sum=given.pop("secure_sum", SecureSumOptions()), folder=folder, faults=faults or {}, **given
    )


def sum_in(folder: Path, study: Study) -> Aggregate:
    return unpack_aggregate((folder / "journal" / "study.aggregate").read_bytes(), study.plan).aggregate


def plain_sum(plan: StudyPlan, clients: Collection[str], groups: Mapping[str, str] | None = None) -> Aggregate:
    summaries = [summarize(TABLES[client], plan, client) for client in clients]
    return Aggregate.of(add_up(summaries, plan, without=set(plan.clients) - set(clients)), groups)


def test_online_the_sum_and_the_result_are_the_plain_ones(tmp_path):
    outcome = online(tmp_path)
    plain = plain_sum(outcome.study.plan, TABLES)
    assert same(sum_in(tmp_path, outcome.study), plain)
    assert outcome.result.cohort.first_moments.tobytes() == plain.first_moments.tobytes()
    expected = render_result_json(discover_from(plain, plain.plan), without_disclosure_control=TABLES)
    assert (tmp_path / "result.json").read_text() == expected
    assert not outcome.missing
    assert not list((tmp_path / "journal").glob("*.summary"))
    assert all('"secrets": null' in path.read_text() for path in (tmp_path / "sites").rglob("*.masking-state.json"))


def test_online_groups_stand_together(tmp_path):
    groups = dict.fromkeys(TABLES, "all")
    outcome = online(tmp_path, secure_sum=SecureSumOptions(groups=groups))
    assert same(sum_in(tmp_path, outcome.study), plain_sum(outcome.study.plan, TABLES, groups))


@pytest.mark.parametrize(
    ("request_", "fault"),
    [
        *((one.kind, "silent") for one in REQUEST_TYPES),
        *(("delivery", fault) for fault in ("garbled", "repeated")),
    ],
)
def test_online_a_site_may_fail_in_every_round(request_, fault, tmp_path):
    """Four sites, of which three have to stay: whoever fails before its numbers came is not in the sum, and named."""
    outcome = online(tmp_path, {("site2", f"masking {request_}"): fault})
    out = fault != "repeated" and request_ in ("terms", "roster", "delivery")
    there = [client for client in TABLES if client != "site2" or not out]
    assert same(sum_in(tmp_path, outcome.study), plain_sum(outcome.study.plan, there))
    assert set(outcome.missing) == ({"site2"} if out else set())


def test_online_too_few_are_no_sum(tmp_path):
    silent = {(client, "masking confirmations"): "silent" for client in ("site1", "site2")}
    with pytest.raises(SecureAggregationError, match="Expected at least 3"):
        online(tmp_path, silent)
    assert not (tmp_path / "result.json").exists()


def test_online_a_server_that_stops_in_any_round_goes_on_where_it_was(tmp_path):
    keys = {client: SigningKey.generate() for client in TABLES}
    sites = {
        client: OnlineSite(
            client,
            lambda client=client: TABLES[client],
            Policy(disclosure_control=False),
            key=keys[client],
            memory=tmp_path / "sites" / client,
        )
        for client in TABLES
    }
    runs = 0
    while True:
        runs += 1
        with contextlib.suppress(KeyboardInterrupt):
            outcome = conduct_study(Stopping(sites, 1), OnlineTerms(secure_sum=SecureSumOptions()), tmp_path / "out")
            break
    assert runs > 20
    plain = plain_sum(outcome.study.plan, TABLES)
    assert same(sum_in(tmp_path / "out", outcome.study), plain)


@dataclass
class Stopping:
    """A transport to sites in this process; the server is stopped after so many answers."""

    sites_: Mapping[str, OnlineSite]
    left: int

    def addresses(self, expected: int, timeout: float) -> list[str]:
        return list(self.sites_)

    def exchange(self, requests: Mapping[str, bytes], timeout: float) -> Iterator[tuple[str, bytes | None]]:
        for site, request in requests.items():
            if not self.left:
                raise KeyboardInterrupt
            self.left -= 1
            yield site, self.sites_[site].answer(request)


def asked_online(site: OnlineSite, study: Study, message: Any) -> Envelope:
    content = RoundRequest(message.to_bytes(), study.to_json().encode()).to_bytes()
    return Envelope.from_bytes(site.answer(Envelope("masking", content).to_bytes()))


def test_online_a_site_that_masks_sends_no_plain_summary_of_the_same_plan(tmp_path):
    room = Room.of(3)
    table = {"v1": np.linspace(-1, 1, 50)}
    site = OnlineSite("site0", lambda: table, Policy(disclosure_control=False), key=room.keys["site0"], memory=tmp_path)
    plan = Envelope("summary", room.study.to_json().encode())
    assert Envelope.from_bytes(site.answer(plan.to_bytes())).kind == "summary"
    assert asked_online(site, room.study, room.terms()).kind == "masking"
    assert Envelope.from_bytes(site.answer(plan.to_bytes())).code == 7
    never = replace(site, memory=tmp_path / "other", masked_only=True)
    assert Envelope.from_bytes(never.answer(plan.to_bytes())).code == 7
    assert asked_online(never, room.study, room.terms()).kind == "masking"
    for lacking in (replace(site, memory=None), replace(site, key=None)):
        assert asked_online(lacking, room.study, room.terms()).code in (6, 7)


def test_online_keys_that_a_site_does_not_know_are_refused(tmp_path):
    room = Room.of(3)
    site = OnlineSite("site0", lambda: None, Policy(disclosure_control=False), key=room.keys["site0"], memory=tmp_path)
    known = dict(room.study.keys)
    assert asked_online(replace(site, peers=known), room.study, room.terms()).kind == "masking"
    for peers in ({**known, "site2": SigningKey.generate().public}, {"site0": known["site0"]}, {}):
        assert asked_online(replace(site, peers=peers), room.study, room.terms()).code == 6


def test_online_settings_of_a_site(tmp_path):
    key = SigningKey.generate()
    (tmp_path / "peers.toml").write_text(f'north = "{key.public}"\n')
    (tmp_path / "site.toml").write_text(
        'client = "north"\ndata = "x.csv"\nmasked_only = true\npeers = "peers.toml"\nmasking = "kept"\n'
    )
    site = read_site_config(tmp_path / "site.toml")
    assert (site.masked_only, site.peers, site.memory) == (True, {"north": key.public}, tmp_path / "kept")
    (tmp_path / "peers.toml").write_text('north = "none"\n')
    with pytest.raises(SettingsError, match="peers"):
        read_site_config(tmp_path / "site.toml")


@pytest.mark.parametrize("given", [{"method": "constraint"}, {"rounds": "adaptive", "method": "constraint"}])
def test_online_methods_that_need_single_summaries_are_refused(given):
    with pytest.raises(SettingsError, match="every client"):
        OnlineTerms(secure_sum=SecureSumOptions(), **given)
