"""Sums under homomorphic encryption; `make test-encrypted` runs this where TenSEAL is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedcdh.data.table import to_table
from fedcdh.discovery.api import discover_from
from fedcdh.errors import MissingDependencyError, SecureAggregationError
from fedcdh.evaluation.simulation import simulate
from fedcdh.privacy import homomorphic
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.aggregation import Aggregate, add_up
from fedcdh.summaries.integer_vectors import encode_summary, group_clients
from fedcdh.summaries.plan import StudyPlan

WORDS = st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=50)


@given(WORDS, st.integers(1, 1000))
@settings(deadline=None)
def test_limbs_of_sums_are_sums_of_limbs(numbers, sites):
    words = np.array(numbers, dtype=np.uint64)
    limbs = np.concatenate(list(homomorphic._to_limbs(words)))
    assert np.abs(limbs).max() <= 1 << (homomorphic.LIMB_BITS - 1)
    assert np.array_equal(homomorphic._from_limbs(limbs * sites, len(words)), words * np.uint64(sites))


def test_the_largest_sum_of_limbs_is_read_without_error():
    largest = homomorphic.MAX_CLIENTS * (1 << (homomorphic.LIMB_BITS - 1)) * homomorphic.SCALE
    assert largest < 2 ** (homomorphic.MODULUS_BITS[0] - 2)


def test_what_is_no_sum_is_not_rounded():
    limbs = np.concatenate(list(homomorphic._to_limbs(np.arange(5, dtype=np.uint64))))
    with pytest.raises(SecureAggregationError, match="from integers"):
        homomorphic._from_limbs(limbs + 0.3, 5)
    with pytest.raises(SecureAggregationError, match="from integers"):
        homomorphic._from_limbs(limbs, 4)


def test_the_library_is_asked_for_by_name(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "tenseal", None)
    with pytest.raises(MissingDependencyError, match=r"fedcdh\[encrypted\]"):
        homomorphic.generate_key_pair()


@pytest.fixture(scope="module")
def keys():
    pytest.importorskip("tenseal")
    return homomorphic.generate_key_pair()


@pytest.fixture(scope="module")
def summaries():
    study = simulate("general", variables=4, clients=5, rows=60, seed=3)
    tables = {client: to_table(table, study.names) for client, table in study.tables.items()}
    plan = StudyPlan.from_tables(tables)
    return plan, [summarize(table, plan, client) for client, table in tables.items()]


def test_the_sum_is_that_of_the_summaries_integer_for_integer(keys, summaries):
    private, public = keys
    plan, parts = summaries
    sealed = homomorphic.add_encrypted((homomorphic.encrypt_summary(part, plan, public) for part in parts), public)
    found, plain = homomorphic.decrypt_sum(sealed, plan, private), Aggregate.of(add_up(parts, plan))
    assert found.total == plain.total
    assert np.array_equal(found.first_moments, plain.first_moments)
    ours, theirs = (discover_from(one, plan, method="evidence") for one in (found, plain))
    assert ours.augmented == theirs.augmented


def test_the_public_key_opens_nothing(keys, summaries):
    plan, parts = summaries
    with pytest.raises(SecureAggregationError, match="public key"):
        homomorphic.decrypt_sum(homomorphic.encrypt_summary(parts[0], plan, keys[1]), plan, keys[1])


def test_two_ciphertexts_of_the_same_numbers_have_nothing_in_common(keys, summaries):
    plan, parts = summaries
    first, second = (
        np.frombuffer(homomorphic.encrypt_summary(parts[0], plan, keys[1])[-40_000:], dtype=np.uint8) for _ in range(2)
    )
    assert (first == second).mean() < 0.02


def test_another_key_is_noticed(keys, summaries):
    plan, parts = summaries
    other = homomorphic.generate_key_pair()
    sealed = homomorphic.add_encrypted((homomorphic.encrypt_summary(part, plan, keys[1]) for part in parts), keys[1])
    with pytest.raises(SecureAggregationError):
        homomorphic.decrypt_sum(sealed, plan, other[0])


@pytest.mark.parametrize("damage", [lambda m: m[:-1], lambda m: m + b"x", lambda m: b"", lambda m: m[:50]])
def test_what_was_damaged_is_refused(keys, summaries, damage):
    plan, parts = summaries
    with pytest.raises(SecureAggregationError):
        homomorphic.add_encrypted([damage(homomorphic.encrypt_summary(parts[0], plan, keys[1]))], keys[1])


def test_nothing_is_no_sum(keys):
    with pytest.raises(SecureAggregationError, match="nothing to add"):
        homomorphic.add_encrypted([], keys[1])


def test_numbers_of_all_sites_are_needed(keys, summaries):
    """One site alone would be open to the key holder; the sum says who is in it, and here not all are."""
    plan, parts = summaries
    sealed = homomorphic.add_encrypted([homomorphic.encrypt_summary(parts[0], plan, keys[1])], keys[1])
    with pytest.raises(Exception, match=r"no rows|add up"):
        homomorphic.decrypt_sum(sealed, plan, keys[0])


def test_the_words_are_those_that_masks_hide(summaries):
    plan, parts = summaries
    words = encode_summary(parts[0], plan, group_clients({}, plan.clients))
    assert len(np.concatenate(list(homomorphic._to_limbs(words)))) == homomorphic.N_LIMBS * len(words)
