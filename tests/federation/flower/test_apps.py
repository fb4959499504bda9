"""The apps for Flower, called directly, with a grid that is none; `make test-flower` runs this where flwr is."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

pytest.importorskip("flwr")

from flwr.app import ArrayRecord, ConfigRecord, Context, Error, Message, RecordDict

import fedcdh
from fedcdh.cli import main as run
from fedcdh.discovery.api import discover
from fedcdh.errors import ExitCode, QuorumError, SettingsError
from fedcdh.federation.flower import client_app, server_app
from fedcdh.federation.flower.payload import RECORD_NAME, read_payload, to_record
from fedcdh.federation.site_config import read_site_config
from fedcdh.messages.aggregate_file import unpack_aggregate
from fedcdh.messages.envelope import PROFILE, Envelope, ProfileRequest
from fedcdh.messages.signing import SigningKey
from fedcdh.reporting.result_files import render_result_json

SITES = ("coast", "north", "south")
CANARY = "canary-51e0"


@pytest.fixture(autouse=True)
def _in_a_run(monkeypatch):
    """What Flower's processes know of themselves; messages cannot be made without it."""
    task_identity = pytest.importorskip("flwr.supercore.task_identity")
    for name in ("_task_id", "_run_id", "_node_id"):
        monkeypatch.setattr(task_identity.TaskIdentity, name, 1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Three sites with data and settings, under the safe policy."""
    folder = tmp_path_factory.mktemp("sites")
    given = ("--sites", ",".join(SITES), "--rows", "4000,4500,5000", "--variables", "4", "--seed", "5")
    assert run(["simulate", "-o", str(folder), *given, "-q"]) == 0
    for name in SITES:
        settings = f'client = "{name}"\ndata = "data.csv"\nplans_at_most = 99\n'
        (folder / name / "site.toml").write_text(settings, encoding="utf-8")
    return folder


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
    return fedcdh.federation.conduct(transport, server_app.to_study_terms(settings), tmp_path)


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


def test_a_study_over_the_grid_gives_the_same_bytes(folder, tmp_path):
    outcome = conducted(FakeGrid(nodes(folder)), tmp_path, **{"expected-sites": 3})
    assert not outcome.missing
    assert (tmp_path / "result.json").read_text(encoding="utf-8") == in_process(folder)


def test_further_rounds_over_the_grid_give_the_same_bytes(folder, tmp_path):
    given = {"expected-sites": 3, "method": "constraint", "rounds": "adaptive", "max-conditioning-size": 2}
    outcome = conducted(FakeGrid(nodes(folder)), tmp_path, **given)
    assert not outcome.missing
    assert outcome.result.search_result.spent.rounds > 0
    expected = in_process(folder, method="constraint", rounds="adaptive", max_conditioning_size=2)
    assert (tmp_path / "result.json").read_text(encoding="utf-8") == expected
    assert len(list((folder / "north").glob("*.ledger.json"))) == 1


def test_a_masked_sum_over_the_grid_is_the_plain_one(folder, tmp_path):
    """Sites with keys, under the safe policy; the result is that of the sum of their summaries, byte for byte."""
    settings = {}
    for number, name in enumerate(SITES, start=11):
        here = tmp_path / name
        here.mkdir()
        (here / "site.key").write_bytes(SigningKey.generate().to_pem())
        data = (folder / name / "data.csv").as_posix()
        (here / "site.toml").write_text(f'client = "{name}"\ndata = "{data}"\nkey = "site.key"\nmasked_only = true\n')
        settings[number] = here / "site.toml"
    outcome = conducted(FakeGrid(settings), tmp_path / "out", **{"expected-sites": 3, "masked": "yes"})
    assert not outcome.missing
    plan = outcome.study.plan
    tables = {name: fedcdh.open_tables(folder / name / "data.csv") for name in SITES}
    cohort = fedcdh.add_up([fedcdh.summarize(table, plan, name) for name, table in tables.items()], plan)
    plain = fedcdh.Aggregate.of(cohort)
    found = unpack_aggregate((tmp_path / "out" / "journal" / "study.aggregate").read_bytes(), plan).aggregate
    assert (found.total, found.first_moments.tobytes()) == (plain.total, plain.first_moments.tobytes())
    expected = render_result_json(fedcdh.discover_from(plain, plan))
    assert (tmp_path / "out" / "result.json").read_text(encoding="utf-8") == expected


def test_the_app_writes_where_it_is_told(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(server_app.time, "sleep", lambda seconds: None)
    config = {"output": str(tmp_path), "expected-sites": 3, "timeout": 30.0, "method": "constraint", "alpha": 0.01}
    server_app.main(FakeGrid(nodes(folder)), Context(1, 0, {}, RecordDict(), config))
    settings = json.loads((tmp_path / "result.json").read_text(encoding="utf-8"))["settings"]
    assert (settings["method"], settings["alpha"]) == ("constraint", 0.01)


ODD = {
    "nothing": None,
    "an error of Flower's": Error(code=1, reason="<class 'ValueError'>"),
    "another record": RecordDict({"stats": ConfigRecord({"n": 3})}),
    "a record without bytes": RecordDict({RECORD_NAME: ArrayRecord()}),
    "other bytes": to_record(b"\x93NUMPY"),
    "no bytes": to_record(b""),
}


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("kind", ["profile", "summary"])
def test_an_odd_reply_is_refused_and_named(odd, kind, folder, tmp_path):
    grid = FakeGrid(nodes(folder), {(12, kind): ODD[odd]})
    outcome = conducted(grid, tmp_path, **{"expected-sites": 3})
    assert list(outcome.missing) == ["12" if kind == "profile" else "north"]
    assert outcome.result.cohort.clients == ("coast", "south")
    if kind == "profile":
        assert render_result_json(outcome.result) == in_process(folder, ("coast", "south"))


@pytest.mark.parametrize("odd", ["nothing", "an error of Flower's", "other bytes"])
def test_an_odd_reply_in_a_further_round_is_refused_and_named(odd, folder, tmp_path):
    given = {"expected-sites": 3, "method": "constraint", "rounds": "adaptive", "max-conditioning-size": 2}
    outcome = conducted(FakeGrid(nodes(folder), {(12, "answer"): ODD[odd]}), tmp_path, **given)
    assert list(outcome.missing) == ["north"]
    assert outcome.missing["north"].startswith("answer 1: ")
    assert outcome.result.cohort.clients == ("coast", "south")


def test_a_node_out_of_reach_for_a_moment_is_asked_again(folder, tmp_path):
    moment = [Error(code=code, reason="") for code in (5, 3, 4)]
    outcome = conducted(FakeGrid(nodes(folder), {(12, "summary"): moment}), tmp_path, **{"expected-sites": 3})
    assert not outcome.missing
    assert render_result_json(outcome.result) == in_process(folder)


def test_a_node_out_of_reach_for_good_is_named(folder, tmp_path):
    grid = FakeGrid(nodes(folder), {(12, "summary"): Error(code=5, reason="")})
    assert list(conducted(grid, tmp_path, timeout=5, **{"expected-sites": 3}).missing) == ["north"]


def test_too_few_nodes_are_waited_for_and_then_given_up(folder, tmp_path):
    with pytest.raises(QuorumError, match="1 sites sent a profile, expected at least 2"):
        conducted(FakeGrid({11: nodes(folder)[11]}), tmp_path, timeout=0.1)


def test_two_nodes_with_one_name_are_refused(folder, tmp_path):
    settings = {**nodes(folder), 14: nodes(folder)[13]}
    outcome = conducted(FakeGrid(settings), tmp_path, **{"expected-sites": 4})
    assert outcome.result.cohort.clients == ("coast", "north")
    assert {event.site for event in outcome.participation.events if event.what == "refused"} == {"13", "14"}


def test_a_node_says_codes_and_nothing_else(folder, tmp_path):
    request = Message(
        to_record(Envelope(PROFILE, ProfileRequest().to_bytes()).to_bytes()), dst_node_id=1, message_type="query"
    )
    broken = tmp_path / f"{CANARY}.toml"
    broken.write_text(f'client = "{CANARY}"\ndata = "{CANARY}.csv"\n', encoding="utf-8")
    held = tmp_path / "held.toml"
    held.write_text(f'client = "n"\ndata = "{folder / "north" / "data.csv"}"\npolicy = "p.toml"\n', encoding="utf-8")
    (tmp_path / "p.toml").write_text(f'variables = ["{CANARY}"]\n', encoding="utf-8")
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


def test_bytes_are_carried_as_they_are():
    for content in (b"", b"\0\n\xff", bytes(range(256)) * 40_000):
        assert read_payload(Message(to_record(content), dst_node_id=1, message_type="query")) == content


def test_in_simulation_nodes_have_numbers(folder, monkeypatch):
    monkeypatch.setenv(client_app.SIMULATED_SITES_VARIABLE, str(folder))
    found = [read_site_config(client_app.find_site_config({"partition-id": number})).client for number in range(3)]
    assert found == list(SITES)
    with pytest.raises(SettingsError, match="does not know its site"):
        client_app.find_site_config({"partition-id": 3})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"alhpa": 0.1}, "did you mean 'alpha'"),
        ({"alpha": "x"}, "expected a float"),
        ({"output": "here"}, "whole path"),
    ],
)
def test_a_slip_in_the_run_configuration_is_said(given, said):
    with pytest.raises(SettingsError, match=said):
        server_app._run_settings({"output": "/x", **given})
