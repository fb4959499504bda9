"""A SuperLink and SuperNodes on the loopback, with TLS and keys: `make test-flower` runs this, in a few minutes."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import pytest

pytest.importorskip("flwr")

from fedcdh.cli import main
from fedcdh.data.readers import open_tables
from fedcdh.discovery.api import discover
from fedcdh.federation.flower.app_folder import write_app
from fedcdh.federation.flower.local_trial import LocalTrial
from fedcdh.privacy.ledger.ledger_file import LEDGER_FILE_NAME, ReleaseLedger
from fedcdh.reporting.result_files import render_result_json

pytestmark = pytest.mark.slow
SITES = ("coast", "north", "south")
PATIENCE = 120.0  # seconds for something that should happen soon, on a machine that is busy
OFFLINE_AFTER = 62.0  # seconds from a killed node's last heartbeat; before, the SuperLink refuses it as a double


@pytest.fixture(scope="module")
def trial(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trial")
    given = ("--sites", ",".join(SITES), "--rows", "4000,4500,5000", "--variables", "4", "--seed", "5")
    assert main(["simulate", "-o", str(folder / "sites"), *given, "-q"]) == 0
    for name in SITES:
        settings = f'client = "{name}"\ndata = "data.csv"\nmax_plans = 99\nledger = "releases.jsonl"\n'
        (folder / "sites" / name / "site.toml").write_text(settings, encoding="utf-8")
    with LocalTrial(folder) as started:
        started.prepare()
        started.start_link()
        for name in SITES:
            started.add_node(name, folder / "sites" / name / "site.toml")
        yield started


def columns(trial: LocalTrial, names=SITES):
    found = {}
    for name in names:
        files = open_tables(trial.folder / "sites" / name / "data.csv")
        (table,) = files.batches(files.kinds())
        found[name] = {column: values.values for column, values in table.columns.items()}
    return found


def conducted(trial: LocalTrial, output: Path, app: Path | None = None, **given) -> tuple[bytes, dict[str, str]]:
    """The result and who is missing; a run without a result says why."""
    settings = {"output": str(output), "expected-sites": 3, "timeout": PATIENCE}
    said = trial.run({**settings, **{name.replace("_", "-"): value for name, value in given.items()}}, app)
    assert (output / "result.json").exists(), said
    record = json.loads((output / "participation.json").read_text(encoding="utf-8"))
    return (output / "result.json").read_bytes(), record["missing"]


def wait_until(there) -> None:
    deadline = time.monotonic() + PATIENCE
    while not there():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_study_over_the_network_gives_the_bytes_of_one_process(trial, tmp_path):
    result, missing = conducted(trial, tmp_path)
    assert not missing
    assert result.decode() == render_result_json(discover(columns(trial)))


def test_adaptive_rounds_over_the_network_give_the_bytes_of_one_process(trial, tmp_path):
    """Under the safe policy, with TLS and node keys; and each site has its ledger."""
    given = {"method": "constraint", "rounds": "adaptive", "max_conditioning_size": 2}
    result, missing = conducted(trial, tmp_path, **given)
    assert not missing
    assert (tmp_path / "journal" / "rounds" / "request-001.json").exists()
    assert result.decode() == render_result_json(discover(columns(trial), **given))
    for name in SITES:
        entries = ReleaseLedger(trial.folder / "sites" / name / LEDGER_FILE_NAME).entries()
        assert "answer" in [entry.release.kind for entry in entries]


def test_an_unregistered_node_is_not_admitted(trial, tmp_path):
    trial.add_node("stranger", trial.folder / "sites" / "north" / "site.toml", register=False)
    code = trial.wait("stranger", PATIENCE)
    trial.stop("stranger")
    assert code not in (None, 0)
    assert "profile of" not in trial.log("stranger")


ODD = """
from flwr.app import Message
from flwr.clientapp import ClientApp
from fedcdh.federation.flower import client_app
from fedcdh.federation.flower.payload import read_payload, to_record
from fedcdh.messages.envelope import Envelope

app = ClientApp()


@app.query()
def answer(message, context):
    if Envelope.from_bytes(read_payload(message)).kind == "summary":
        if "north" in context.node_config["site"]:
            return Message(content=to_record(b"nonsense"), reply_to=message)
        if "south" in context.node_config["site"]:
            raise ValueError("a program that is not ours")
    return client_app.answer_query(message, context)
"""


def test_replies_of_another_kind_are_refused_and_named(trial, tmp_path):
    write_app(tmp_path / "app")
    (tmp_path / "app" / "study" / "client_app.py").write_text(ODD, encoding="utf-8")
    result, missing = conducted(trial, tmp_path / "result", app=tmp_path / "app", minimum_sites=1)
    assert missing.keys() == {"north", "south"}
    assert "this is not a message" in missing["north"]
    assert "the site failed" in missing["south"]
    assert [client["client"] for client in json.loads(result)["clients"]] == ["coast"]


def test_a_killed_site_is_named_in_the_result(trial, tmp_path):
    """Once its profile is there, the site is gone; when it is back, only it is asked, and nothing is missing."""
    settings = trial.folder / "sites" / "north" / "site.toml"
    killed = []

    def kill() -> None:
        wait_until((tmp_path / "journal" / "north.profile.json").exists)
        trial.stop("north", at_once=True)
        killed.append(time.monotonic())

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        result, missing = conducted(trial, tmp_path, timeout=45.0, rounds="one")
    finally:
        killer.join()
    time.sleep(max(0.0, killed[0] + OFFLINE_AFTER - time.monotonic()))
    trial.add_node("north", settings)
    assert list(missing) == ["north"]
    assert [client["client"] for client in json.loads(result)["clients"]] == ["coast", "south"]
    again, missing = conducted(trial, tmp_path, rounds="one")
    assert not missing, trial.log("north")
    assert again.decode() == render_result_json(discover(columns(trial), rounds="one"))
