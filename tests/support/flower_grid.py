"""A grid of Flower in this process, and sites with data; needs flwr."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

pytest.importorskip("flwr")

from flwr.app import Context, Message, RecordDict

import fedcdh
from fedcdh.discovery.api import discover
from fedcdh.federation.flower import client_app, server_app
from fedcdh.federation.flower.payload import read_payload
from fedcdh.messages.envelope import Envelope
from fedcdh.reporting.result_files import render_result_json

SITES = ("coast", "north", "south")


CANARY = "canary-51e0"


def context(node: int, config: dict[str, object]) -> Context:
    return Context(run_id=1, node_id=node, node_config=config, state=RecordDict(), run_config={})


class FakeGrid:
    """Nodes that turn up one at a time, and answer when their reply is fetched."""

    def __init__(self, settings: dict[int, Path], odd: dict[tuple[int, str], object] | None = None) -> None:
        self.settings, self.odd = settings, odd or {}
        self.there, self.sent = 0, {}
        self.numbers = itertools.count(1)

    def get_node_ids(self):
        self.there = min(self.there + 1, len(self.settings))
        return list(self.settings)[: self.there]

    def push_messages(self, messages):
        numbers = []
        for message in messages:
            numbers.append(f"message {next(self.numbers)}")
            message.metadata.__dict__["_message_id"] = numbers[-1]
            self.sent[numbers[-1]] = message
        return numbers

    def pull_messages(self, message_ids):
        for number in message_ids:
            message = self.sent.pop(number, None)
            if message is not None and (reply := self._reply(message)) is not None:
                yield reply

    def _reply(self, message):
        node = message.metadata.dst_node_id
        kind = Envelope.from_bytes(read_payload(message)).kind
        if (node, kind) not in self.odd:
            return client_app.answer_query(message, context(node, {"site": str(self.settings[node])}))
        odd = self.odd[node, kind]
        if isinstance(odd, list):  # one after the other
            odd = odd.pop(0)
            if not self.odd[node, kind]:
                del self.odd[node, kind]
        return None if odd is None else Message(odd, reply_to=message)


def conducted(grid, tmp_path, **given):
    settings = server_app._run_settings({"output": str(tmp_path), "timeout": 1, **given})
    transport = server_app.FlowerTransport(grid, poll=0.01)
    return fedcdh.federation.conduct_study(transport, server_app.to_study_terms(settings), tmp_path)


def nodes(folder: Path) -> dict[int, Path]:
    return {number: folder / name / "site.toml" for number, name in enumerate(SITES, start=11)}


def in_process(folder: Path, names=SITES, **given) -> str:
    tables = {name: fedcdh.open_tables(folder / name / "data.csv") for name in names}
    columns = {
        name: {
            column: values.values for batch in table.batches(table.kinds()) for column, values in batch.columns.items()
        }
        for name, table in tables.items()
    }
    return render_result_json(discover(columns, **given))
