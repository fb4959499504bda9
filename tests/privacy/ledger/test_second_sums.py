"""A client does not mask rows a second time for other clients: the difference would disclose single clients."""

from __future__ import annotations

import dataclasses

import pytest
from ledger_studies import PLAN, gate_in, sent, table

from fedcdh.errors import DisclosureError
from fedcdh.privacy.disclosure.policy import Policy
from fedcdh.privacy.ledger.ledger_file import ReleaseLedger
from fedcdh.privacy.ledger.round_messages import RoundMessage
from fedcdh.privacy.releases import ReleaseContext, release_summary
from fedcdh.summaries.client_changes import change_clients
from fedcdh.summaries.variables import Continuous

FEW = dataclasses.replace(PLAN, clients=(*PLAN.clients, "east", "west"))
CLIENT = PLAN.clients[0]


def mask(gate, plan, rows):
    release_summary(rows, plan, ReleaseContext(CLIENT, Policy(), {}, gate), masked=True)


def open_sum(gate, plan):
    gate.record_round(RoundMessage(CLIENT, plan.fingerprint, "t" * 64, "opened", "c" * 64))


def rescaled(plan):
    scaled = tuple(
        dataclasses.replace(one, scale=one.scale * 1.01) if isinstance(one, Continuous) else one
        for one in plan.variables
    )
    return dataclasses.replace(plan, variables=scaled)


LATER = {
    "made like the first": change_clients(FEW, without=["east"]),
    "without its history": dataclasses.replace(FEW, clients=tuple(c for c in FEW.clients if c != "east")),
    "of another name": dataclasses.replace(change_clients(FEW, without=["east"]), study="again"),
    "with other scales": rescaled(change_clients(FEW, without=["east"])),
    "with one client more": change_clients(FEW, joined=["north east"]),
}


@pytest.mark.parametrize("kind", LATER)
def test_a_second_sum_over_other_clients_is_refused(kind, tmp_path):
    gate = gate_in(tmp_path)
    mask(gate, FEW, table())
    open_sum(gate, FEW)
    with pytest.raises(DisclosureError, match=r"over other clients|leave after the releases"):
        mask(gate, LATER[kind], table())
    assert isinstance(gate.ledger, ReleaseLedger)
    assert len(gate.ledger.entries()) == 2, "nothing was recorded"


def test_a_sum_that_was_never_opened_may_be_made_again(tmp_path):
    gate = gate_in(tmp_path)
    mask(gate, FEW, table())
    mask(gate, LATER["made like the first"], table())


def test_other_rows_are_another_sum(tmp_path):
    gate = gate_in(tmp_path)
    mask(gate, FEW, table())
    open_sum(gate, FEW)
    mask(gate, LATER["made like the first"], table(seed=9))


def test_what_was_masked_does_not_leave_in_plain_by_a_plan_that_follows(tmp_path):
    gate = gate_in(tmp_path)
    mask(gate, FEW, table())
    assert "left under masks" in sent(table(), gate, plan=LATER["made like the first"])


@pytest.mark.parametrize("kind", LATER)
def test_what_was_summed_does_not_leave_in_plain_by_any_plan(kind, tmp_path):
    gate = gate_in(tmp_path)
    mask(gate, FEW, table())
    open_sum(gate, FEW)
    with pytest.raises(DisclosureError, match=r"left under masks|without masks|leave after the releases"):
        release_summary(table(), LATER[kind], ReleaseContext(CLIENT, Policy(), {}, gate))


def test_masks_that_were_given_up_hide_nothing_from_a_plan_of_another_name(tmp_path):
    gate = gate_in(tmp_path)
    mask(gate, FEW, table())
    assert not sent(table(), gate, plan=dataclasses.replace(FEW, study="again"))


def test_other_rows_leave_in_plain_after_a_sum(tmp_path):
    gate = gate_in(tmp_path)
    mask(gate, FEW, table())
    open_sum(gate, FEW)
    assert not sent(table(seed=9), gate, plan=LATER["without its history"])
