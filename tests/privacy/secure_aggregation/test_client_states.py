"""The states of a client: one file for the summaries, one for each request, and no query twice."""

from __future__ import annotations

from dataclasses import replace

import pytest
import residual_studies
from masked_answers import AnswerRoom
from masked_studies import Room

from fedcdh.errors import SecureAggregationError
from fedcdh.privacy.secure_aggregation.client_states import ClientStates
from fedcdh.privacy.secure_aggregation.messages import SecAggTerms, ShareDelivery, SurvivorList


@pytest.fixture
def room() -> AnswerRoom:
    return AnswerRoom.after_sum(3)


def test_a_message_finds_the_state_of_its_session(room, tmp_path):
    """Also where a session is known by its digest only."""
    states = ClientStates(tmp_path / "masking-state-[site0].json")
    first = Room(room.study, room.keys, room.cohort)
    summary = first.cohort.summaries[0]
    rosters = []
    for one in (first, room):
        roster = one.roster()
        site = one.site("site0")
        file = states.find(room.study, "site0", one.terms())
        keys = file.answer(site, one.terms(), lambda: (summary, True))
        roster = one.server.build_roster(one.terms(), [keys, *(key for key in roster.keys if key.client != "site0")])
        assert states.find(room.study, "site0", roster) == file
        file.answer(site, roster, lambda: (summary, True))
        rosters.append((roster, file))
    assert rosters[0][1] == states.of_summaries
    assert rosters[1][1] == states.of_request(1)
    for roster, file in rosters:
        assert states.find(room.study, "site0", ShareDelivery(roster.digest, {})) == file
        assert states.find(room.study, "site0", SurvivorList(roster.digest, ())) == file
    assert states.find(room.study, "site0", SurvivorList("0" * 64, ())) == states.of_summaries


def test_a_question_is_answered_in_one_request(room, tmp_path):
    states = ClientStates(tmp_path / "state.json")
    terms = room.terms()
    states.check_terms(room.study, "site0", terms, None)
    states.of_request(1).answer(room.site("site0"), terms, lambda: None)
    states.check_terms(room.study, "site0", replace(terms, attempt=2), None)
    again = replace(room.request, number=2, queries=room.request.queries[:1])
    with pytest.raises(SecureAggregationError, match="has a question of request 1"):
        states.check_terms(room.study, "site0", SecAggTerms.of(room.study, request=again), None)
    nearly = replace(again, queries=(replace(again.queries[0], deviation=0.123),))
    with pytest.raises(SecureAggregationError, match="has a question of request 1"):
        states.check_terms(room.study, "site0", SecAggTerms.of(room.study, request=nearly), None)
    other = replace(again, queries=(replace(residual_studies.TIES, node="x"),))
    states.check_terms(room.study, "site0", SecAggTerms.of(room.study, request=other), None)
