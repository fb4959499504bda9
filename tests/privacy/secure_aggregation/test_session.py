"""A whole session at the server: the exact sum, restarts after every request, and folders that were mixed up."""

from __future__ import annotations

import shutil
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from masked_answers import AnswerRoom
from masked_studies import Room, same

from fedcdh.errors import SecureAggregationError
from fedcdh.privacy.secure_aggregation.messages import MaskedVector, Roster, SecAggTerms, ShareDelivery
from fedcdh.privacy.secure_aggregation.session import REQUEST_FILE_NAMES, SessionFolder, run_answer_session, run_session


class Stop(Exception):  # noqa: N818 (stands for a server that is stopped)
    """The server was stopped."""


class Clients:
    """The clients of a room, whose answers are kept as files; stops the server at a request, if it is told to."""

    def __init__(self, room: Room, folder: Path, stop_at: str = "") -> None:
        self.room, self.stop_at = room, stop_at
        self.folder = SessionFolder(folder, room.study)
        self.announced: list[str] = []

    def announce(self, path: Path) -> None:
        self.announced.append(path.name)
        if path.name == self.stop_at:
            raise Stop

    def answers(self, kind: Any, request: Any, clients: Collection[str], check: Any) -> dict[str, Any]:
        for client in clients:
            own = request.part_for(client) if isinstance(request, ShareDelivery) else request
            (self.folder.folder / f"{client}.{kind.kind}").write_bytes(self.room.ask(client, own).to_bytes())
        return self.folder.replies(kind, check)


def test_the_sum_is_exact_and_names_its_session(tmp_path):
    room = Room.of(4)
    clients = Clients(room, tmp_path)
    message = run_session(room.study, room.terms(), clients)
    assert same(message.aggregate, room.plain(room.study.plan.clients))
    assert message.session == clients.folder.request(Roster).digest
    assert clients.announced == list(REQUEST_FILE_NAMES.values())


def test_a_server_that_stops_at_any_request_goes_on_where_it_was(tmp_path):
    for name in REQUEST_FILE_NAMES.values():
        room, folder = Room.of(4), tmp_path / name
        folder.mkdir()
        with pytest.raises(Stop):
            run_session(room.study, room.terms(), Clients(room, folder, stop_at=name))
        again = Clients(room, folder)
        assert same(run_session(room.study, room.terms(), again).aggregate, room.plain(room.study.plan.clients)), name
        assert name not in again.announced, "a request that was written is not written again"


def test_files_of_two_sessions_do_not_mix(tmp_path):
    room, folders = Room.of(4), [tmp_path / "one", tmp_path / "two"]
    for attempt, folder in enumerate(folders, start=1):
        folder.mkdir()
        terms = SecAggTerms.of(room.study, attempt=attempt)
        with pytest.raises(Stop):
            run_session(room.study, terms, Clients(room, folder, stop_at="3-delivery.json"))
    shutil.copy(folders[0] / "2-roster.json", folders[1] / "2-roster.json")
    with pytest.raises(SecureAggregationError, match=r"1-terms\.json and 2-roster\.json do not belong together"):
        run_session(room.study, room.terms(), Clients(room, folders[1]))


def test_an_answer_that_is_gone_is_missed(tmp_path):
    room = Room.of(4)
    run_session(room.study, room.terms(), Clients(room, tmp_path))
    (tmp_path / f"site2.{MaskedVector.kind}").unlink()
    with pytest.raises(SecureAggregationError, match="Answers of site2 are missing"):
        run_session(room.study, room.terms(), Clients(room, tmp_path))


def test_an_error_names_the_file(tmp_path):
    room = Room.of(4)
    run_session(room.study, room.terms(), Clients(room, tmp_path))
    path = tmp_path / f"site2.{MaskedVector.kind}"
    path.write_bytes(path.read_bytes()[:-8] + bytes(8))
    with pytest.raises(SecureAggregationError, match=r"site2\.masked: "):
        run_session(room.study, room.terms(), Clients(room, tmp_path))


@pytest.mark.parametrize("round_", ["keys", "shares", "masked"])
def test_a_session_of_answers_writes_no_request_without_a_client(round_, tmp_path):
    room = AnswerRoom.after_sum(4)
    clients = room.cohort.clients

    class Lacking(Clients):
        def answers(self, kind: Any, request: Any, clients: Collection[str], check: Any) -> dict[str, Any]:
            there = [client for client in clients if client != "site1" or kind.kind != round_]
            return super().answers(kind, request, there, check)

    for _ in range(2):
        with pytest.raises(SecureAggregationError, match=r"of site1\. Expected those of all clients"):
            run_answer_session(room.study, room.terms(), Lacking(room, tmp_path), clients)
    found = run_answer_session(room.study, room.terms(), Clients(room, tmp_path), clients)
    assert found.answers == room.plain_answers(clients)


def test_a_session_of_answers_goes_on_after_every_stop_and_holds_one_request(tmp_path):
    room = AnswerRoom.after_sum(3)
    clients = room.cohort.clients
    for name in REQUEST_FILE_NAMES.values():
        with pytest.raises(Stop):
            run_answer_session(room.study, room.terms(), Clients(room, tmp_path, name), clients)
    found = run_answer_session(room.study, room.terms(), Clients(room, tmp_path), clients)
    assert found.answers == room.plain_answers(clients)
    assert found.clients == clients
    other = SecAggTerms.of(room.study, request=replace(room.request, queries=room.request.queries[:1]))
    with pytest.raises(SecureAggregationError, match="another request"):
        run_answer_session(room.study, other, Clients(room, tmp_path), clients)
