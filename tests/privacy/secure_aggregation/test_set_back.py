"""A client whose state file was set back, as by restoring a backup, reveals nothing that it has not revealed before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from masked_studies import Room, same

from benchmarks.attacks.secure_sum_terms import ANY_TERMS
from fedcdh.errors import SecureAggregationError
from fedcdh.privacy.ledger.gate import ReleaseGate
from fedcdh.privacy.ledger.ledger_file import ReleaseLedger
from fedcdh.privacy.secure_aggregation.client import SecAggClient
from fedcdh.privacy.secure_aggregation.client_state import ClientStateFile
from fedcdh.privacy.secure_aggregation.client_states import ClientStates
from fedcdh.privacy.secure_aggregation.messages import SecAggTerms, SurvivorList

SET_BACK = "site1"


@dataclass
class Disk:
    """Sites with their state files; one of them also has a ledger, and copies of its state after every round."""

    folder: Path
    room: Room = field(default_factory=lambda: Room.of(5, threshold=3))
    with_ledger: bool = True
    copies: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.room.ask = self.ask

    @property
    def gate(self) -> ReleaseGate | None:
        return ReleaseGate(ReleaseLedger(self.folder / "settings" / "releases.jsonl")) if self.with_ledger else None

    def state(self, client: str) -> ClientStateFile:
        return ClientStateFile(self.folder / f"{client}.json")

    def ask(self, client: str, request: Any, summary: Any = None) -> Any:
        own = summary or self.room.cohort.summaries[self.room.cohort.clients.index(client)]
        site = SecAggClient(self.room.study, client, self.room.keys[client], limits=ANY_TERMS)
        gate = self.gate if client == SET_BACK else None
        if isinstance(request, SecAggTerms):
            ClientStates(self.state(client).path).check_terms(self.room.study, client, request, gate)
        reply = self.state(client).answer(site, request, lambda: (own, True), gate)
        if client == SET_BACK:
            self.copies.append(self.state(client).path.read_bytes())
        return reply

    def set_back(self, round_: int) -> None:
        """Restore the copy after this round, counted from 1."""
        self.state(SET_BACK).path.write_bytes(self.copies[round_ - 1])

    def until_confirmed(self) -> tuple[Any, Any, SurvivorList]:
        roster = self.room.roster()
        delivery = self.room.delivery(roster)
        return roster, delivery, self.room.present(roster, delivery)


@pytest.fixture(params=[True, False], ids=["with ledger", "without"])
def disk(request, tmp_path) -> Disk:
    return Disk(tmp_path, with_ledger=request.param)


def expect(disk: Disk, what: str, act: Callable[[], object]) -> None:
    """With a ledger the act is refused; without one nothing notices it."""
    if not disk.with_ledger:
        act()
        return
    before = disk.state(SET_BACK).path.read_bytes()
    with pytest.raises(SecureAggregationError, match=what):
        act()
    assert disk.state(SET_BACK).path.read_bytes() == before, "a refusal changes nothing"


def test_a_second_list_of_survivors_is_not_signed_after_a_set_back_between_rounds_3_and_4(disk):
    """The server has a seed share of site4 by the first list, and would get its key share by the second."""
    roster, _, present = disk.until_confirmed()
    confirmed = disk.room.confirmations(roster, present)
    disk.ask(SET_BACK, confirmed)
    disk.set_back(3)
    fewer = replace(present, clients=tuple(client for client in present.clients if client != "site4"))
    expect(disk, "another message of this round", lambda: disk.ask(SET_BACK, fewer))


def test_the_same_list_is_signed_again_after_a_set_back(disk):
    roster, delivery, present = disk.until_confirmed()
    confirmed = disk.room.confirmations(roster, present)
    first = disk.ask(SET_BACK, present), disk.ask(SET_BACK, confirmed)
    disk.set_back(3)
    assert (disk.ask(SET_BACK, present), disk.ask(SET_BACK, confirmed)) == first
    assert same(disk.room.opened(roster, delivery, confirmed), disk.room.plain(roster.clients))


def test_other_rows_are_not_masked_by_the_same_masks(disk):
    """The difference of the two vectors would be that of the two summaries, without any mask."""
    roster = disk.room.roster()
    delivery = disk.room.delivery(roster)
    disk.ask(SET_BACK, delivery)
    disk.set_back(2)
    other = disk.room.cohort.summaries[0]
    changed = replace(other, clients=(SET_BACK,))
    expect(disk, "another message of this round", lambda: disk.ask(SET_BACK, delivery, changed))


def test_no_other_attempt_begins_after_a_sum_was_unmasked(disk):
    roster, _, present = disk.until_confirmed()
    disk.ask(SET_BACK, disk.room.confirmations(roster, present))
    disk.set_back(3)
    again = replace(roster.terms, attempt=2)
    expect(disk, "has already helped to unmask this sum", lambda: disk.ask(SET_BACK, again))


def test_another_attempt_may_begin_where_nothing_was_unmasked(disk):
    roster, _, present = disk.until_confirmed()
    disk.room.confirmations(roster, present)
    assert disk.ask(SET_BACK, replace(roster.terms, attempt=2)).kind == "keys"


def test_a_whole_disk_that_is_set_back_is_not_noticed(tmp_path):
    """State and ledger together: nothing on the disk can know. `docs/threat-model.md` says so."""
    disk = Disk(tmp_path)
    roster, _, present = disk.until_confirmed()
    ledger = {path: path.read_bytes() for path in (tmp_path / "settings").iterdir()}
    disk.ask(SET_BACK, disk.room.confirmations(roster, present))
    disk.set_back(3)
    for path, content in ledger.items():
        path.write_bytes(content)
    fewer = replace(present, clients=tuple(client for client in present.clients if client != "site4"))
    assert disk.ask(SET_BACK, fewer).kind == "confirmed"


def test_entries_of_rounds_hold_no_message(tmp_path):
    disk = Disk(tmp_path)
    roster, _, present = disk.until_confirmed()
    disk.room.confirmations(roster, present)
    entries = [entry.release for entry in disk.gate.ledger.entries()]
    assert [one.details["message"] for one in entries] == ["masked", "confirmed"]
    assert {one.kind for one in entries} == {"round"}
    assert {len(one.details["content"]) for one in entries} == {64}
