"""The record of participation counts every message and names every missing client."""

from __future__ import annotations

import json

from federations import (
    UNCONTROLLED,
)
from studies import numbers

from fedcdh.federation import (
    ClientNode,
    simulate_federation,
)
from fedcdh.federation.participation import Participation
from fedcdh.messages.envelope import (
    SUMMARY,
    Envelope,
)
from fedcdh.messages.study_file import Study


def test_the_record_counts_every_message():
    outcome = simulate_federation(numbers(), rounds="one")
    events = outcome.participation.events
    assert [event.what for event in events].count("sent") == [event.what for event in events].count("accepted") == 6
    summaries = [event for event in events if (event.round, event.what) == (SUMMARY, "accepted")]
    for event in summaries:
        content = simulate_summary(numbers()[event.client], outcome.study.plan, event.client)
        assert event.bytes == len(content)
    assert outcome.participation.bytes_received > outcome.participation.bytes_sent > 0


def simulate_summary(table, plan, client) -> bytes:
    request = Envelope(SUMMARY, Study(plan).to_json().encode()).to_bytes()
    return ClientNode(client, lambda: table, UNCONTROLLED).answer(request)


def test_the_last_word_on_a_client_decides():
    participation = Participation(clients={"1": "north"})
    participation.add("profile", "1", "refused", reason="not signed")
    participation.add("summary", "2", "missing", reason="did not answer in time")
    assert participation.missing == {"north": "profile: not signed", "2": "summary: did not answer in time"}
    participation.add("profile", "1", "accepted", 100)
    participation.add("profile", "1", "ignored", 50, "answered twice")
    assert participation.missing == {"2": "summary: did not answer in time"}
    assert (participation.bytes_received, participation.bytes_sent) == (150, 0)
    assert json.loads(participation.to_json())["missing"] == dict(participation.missing)
