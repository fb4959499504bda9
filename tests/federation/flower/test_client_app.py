"""The ClientApp: codes instead of texts, and its configuration."""

from __future__ import annotations

import pytest

pytest.importorskip("flwr")

from flower_grid import (
    CANARY,
    SITES,
    context,
)
from flwr.app import Message

from fedcdh.errors import ExitCode, SettingsError
from fedcdh.federation.flower import client_app
from fedcdh.federation.flower.payload import read_payload, to_record
from fedcdh.federation.site_config import read_site_config
from fedcdh.messages.envelope import PROFILE, Envelope, ProfileRequest


def test_errors_leave_a_node_as_codes(folder, tmp_path):
    request = Message(
        to_record(Envelope(PROFILE, ProfileRequest().to_bytes()).to_bytes()), dst_node_id=1, message_type="query"
    )
    broken = tmp_path / f"{CANARY}.toml"
    broken.write_text(f'client = "{CANARY}"\ndata = "{CANARY}.csv"\n', encoding="utf-8")
    held = tmp_path / "held.toml"
    held.write_text(f'client = "n"\ndata = "{folder / "north" / "data.csv"}"\npolicy = "p.toml"\n', encoding="utf-8")
    (tmp_path / "p.toml").write_text(f'allowed_variables = ["{CANARY}"]\n', encoding="utf-8")
    for config, code in (
        ({}, ExitCode.USAGE),
        ({"site": 3}, ExitCode.USAGE),
        ({"site": f"/{CANARY}"}, ExitCode.USAGE),
        ({"site": str(broken)}, ExitCode.DATA),
        ({"site": str(held)}, ExitCode.POLICY),
    ):
        reply = client_app.answer_query(request, context(1, config))
        assert not reply.has_error()
        assert Envelope.from_bytes(read_payload(reply)).code == code
        assert CANARY.encode() not in read_payload(reply)


def test_simulated_nodes_find_their_configuration_by_number(folder, monkeypatch):
    monkeypatch.setenv(client_app.SIMULATED_SITES_VARIABLE, str(folder))
    found = [read_site_config(client_app.find_site_config({"partition-id": number})).client for number in range(3)]
    assert found == list(SITES)
    with pytest.raises(SettingsError, match="The SuperNode has no site"):
        client_app.find_site_config({"partition-id": 3})
