"""The state of a client survives a kill, and is private."""

from __future__ import annotations

from dataclasses import replace

import pytest
from masked_studies import Room, same
from secure_sum_studies import VICTIM, Course

from fedcdh.errors import SecureAggregationError
from fedcdh.privacy.secure_aggregation import codec
from fedcdh.privacy.secure_aggregation.client import SecAggClient
from fedcdh.privacy.secure_aggregation.client_state import ClientStateFile, read_state, write_state
from fedcdh.privacy.secure_aggregation.messages import (
    hash_study,
)


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
