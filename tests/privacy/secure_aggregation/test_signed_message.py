"""Messages are signed by the key that the plan file names, over all their fields."""

from __future__ import annotations

from dataclasses import replace

import pytest
from masked_studies import Room

from fedcdh.errors import SignatureError
from fedcdh.messages.study_file import Study


def test_a_signature_is_of_every_field():
    room = Room.of(3)
    keys = room.roster().keys_of("site1")
    keys.check_signature(room.study)
    for changed in ({"terms": "0" * 64}, {"sealing": bytes(32)}, {"client": "site2"}, {"signature": bytes(64)}):
        with pytest.raises(SignatureError, match="has a false signature"):
            replace(keys, **changed).check_signature(room.study)


def test_a_client_without_a_key_in_the_plan_file_is_refused():
    room = Room.of(3)
    keys = room.roster().keys_of("site1")
    with pytest.raises(SignatureError, match="for which the plan file names no key"):
        keys.check_signature(Study(room.study.plan))


def test_the_digest_is_that_of_the_bytes():
    roster = Room.of(3).roster()
    assert roster.digest != replace(roster, keys=roster.keys[:2]).digest
    assert roster.to_bytes() == replace(roster).to_bytes()
