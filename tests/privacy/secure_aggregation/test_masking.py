"""Masks and keys: known answers of the standards, and masks that look random."""

from __future__ import annotations

import hashlib
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from masked_studies import Room
from scipy.stats import chi2

from fedcdh.errors import SecureAggregationError
from fedcdh.privacy.secure_aggregation.masking import (
    agree_secret,
    derive_key,
    derive_pair_mask_key,
    derive_public_key,
    derive_self_mask_key,
    expand_mask,
    is_low_order,
    seal,
    unseal,
)
from fedcdh.summaries.integer_vectors import (
    encode_summary,
    group_clients,
)


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


_FIELD = 2**255 - 19
LOW_ORDER = [number.to_bytes(32, "little") for number in (0, 1, _FIELD - 1, _FIELD, _FIELD + 1)]


@pytest.mark.parametrize("point", LOW_ORDER)
def test_keys_that_nobody_can_own_are_refused(point):
    assert is_low_order(point)
    with pytest.raises(SecureAggregationError, match="public key"):
        agree_secret(b"k" * 32, point)


@given(st.binary(min_size=32, max_size=32))
def test_keys_that_somebody_made_are_not_of_low_order(private):
    assert not is_low_order(derive_public_key(private))


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
