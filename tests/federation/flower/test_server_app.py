"""The ServerApp over a grid in this process: the same bytes, whatever single nodes do."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("flwr")

from flower_grid import (
    SITES,
    FakeGrid,
    conducted,
    in_process,
    nodes,
)
from flwr.app import ArrayRecord, ConfigRecord, Context, Error, RecordDict

import fedcdh
from fedcdh.errors import QuorumError, SettingsError
from fedcdh.federation.flower import server_app
from fedcdh.federation.flower.payload import RECORD_NAME, to_record
from fedcdh.messages.aggregate_file import unpack_aggregate
from fedcdh.messages.signing import SigningKey
from fedcdh.privacy.ledger.ledger_file import LEDGER_FILE_NAME, ReleaseLedger
from fedcdh.reporting.result_files import render_result_json

ODD = {
    "nothing": None,
    "an error of Flower's": Error(code=1, reason="<class 'ValueError'>"),
    "another record": RecordDict({"stats": ConfigRecord({"n": 3})}),
    "a record without bytes": RecordDict({RECORD_NAME: ArrayRecord()}),
    "other bytes": to_record(b"\x93NUMPY"),
    "no bytes": to_record(b""),
}


def count_answers(folder) -> int:
    """Return how many answers the ledger of a site holds, of all studies."""
    ledger = folder / "north" / LEDGER_FILE_NAME
    entries = ReleaseLedger(ledger).entries() if ledger.exists() else ()
    return [entry.release.kind for entry in entries].count("answer")


def test_a_study_over_flower_gives_the_same_bytes(folder, tmp_path):
    outcome = conducted(FakeGrid(nodes(folder)), tmp_path, **{"expected-sites": 3})
    assert not outcome.missing
    assert (tmp_path / "result.json").read_text(encoding="utf-8") == in_process(folder)


def test_adaptive_rounds_over_flower_give_the_same_bytes(folder, tmp_path):
    given = {"expected-sites": 3, "method": "constraint", "rounds": "adaptive", "max-conditioning-size": 2}
    before = count_answers(folder)
    outcome = conducted(FakeGrid(nodes(folder)), tmp_path, **given)
    assert not outcome.missing
    assert outcome.result.search_result.spent.rounds > 0
    expected = in_process(folder, method="constraint", rounds="adaptive", max_conditioning_size=2)
    assert (tmp_path / "result.json").read_text(encoding="utf-8") == expected
    found = outcome.result.search_result
    assert count_answers(folder) - before == found.spent.rounds + found.residuals.rounds


def test_a_secure_sum_over_flower_is_the_open_one(folder, tmp_path):
    """Sites with keys, under the safe policy; the result is that of the sum of their summaries, byte for byte."""
    settings = {}
    for number, name in enumerate(SITES, start=11):
        here = tmp_path / name
        here.mkdir()
        (here / "site.key").write_bytes(SigningKey.generate().to_pem())
        data = (folder / name / "data.csv").as_posix()
        (here / "site.toml").write_text(f'client = "{name}"\ndata = "{data}"\nkey = "site.key"\nmasked_only = true\n')
        settings[number] = here / "site.toml"
    given = {"expected-sites": 3, "secure-sum": "yes", "rounds": "one"}
    outcome = conducted(FakeGrid(settings), tmp_path / "out", **given)
    assert not outcome.missing
    plan = outcome.study.plan
    tables = {name: fedcdh.open_tables(folder / name / "data.csv") for name in SITES}
    cohort = fedcdh.add_up([fedcdh.summarize(table, plan, name) for name, table in tables.items()], plan)
    plain = fedcdh.Aggregate.of(cohort)
    found = unpack_aggregate((tmp_path / "out" / "journal" / "study.aggregate").read_bytes(), plan).aggregate
    assert (found.total, found.first_moments.tobytes()) == (plain.total, plain.first_moments.tobytes())
    expected = render_result_json(fedcdh.discover_from(plain, plan))
    assert (tmp_path / "out" / "result.json").read_text(encoding="utf-8") == expected


def test_the_app_writes_to_its_output(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(server_app.time, "sleep", lambda seconds: None)
    config = {"output": str(tmp_path), "expected-sites": 3, "timeout": 30.0, "method": "constraint", "alpha": 0.01}
    config |= {"min-probability": 0.6, "min-arrow-probability": 0.9, "min-effect": 0}
    server_app.main(FakeGrid(nodes(folder)), Context(1, 0, {}, RecordDict(), config))
    settings = json.loads((tmp_path / "result.json").read_text(encoding="utf-8"))["settings"]
    assert (settings["method"], settings["alpha"]) == ("constraint", 0.01)
    assert (settings["min_probability"], settings["min_arrow_probability"]) == (0.6, 0.9)
    assert settings["min_effect"] == 0


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
def test_an_odd_reply_in_an_adaptive_round_is_refused_and_named(odd, folder, tmp_path):
    given = {"expected-sites": 3, "method": "constraint", "rounds": "adaptive", "max-conditioning-size": 2}
    outcome = conducted(FakeGrid(nodes(folder), {(12, "answer"): ODD[odd]}), tmp_path, **given)
    assert list(outcome.missing) == ["north"]
    assert outcome.missing["north"].startswith("answer 1: ")
    assert outcome.result.cohort.clients == ("coast", "south")


def test_an_unreachable_node_is_asked_again(folder, tmp_path):
    moment = [Error(code=code, reason="") for code in (5, 3, 4)]
    outcome = conducted(FakeGrid(nodes(folder), {(12, "summary"): moment}), tmp_path, **{"expected-sites": 3})
    assert not outcome.missing
    assert render_result_json(outcome.result) == in_process(folder)


def test_a_node_that_stays_unreachable_is_named(folder, tmp_path):
    grid = FakeGrid(nodes(folder), {(12, "summary"): Error(code=5, reason="")})
    assert list(conducted(grid, tmp_path, timeout=5, **{"expected-sites": 3}).missing) == ["north"]


def test_below_the_quorum_the_study_ends_after_the_timeout(folder, tmp_path):
    with pytest.raises(QuorumError, match=r"1 clients sent a profile\. Expected at least 2"):
        conducted(FakeGrid({11: nodes(folder)[11]}), tmp_path, timeout=0.1)


def test_two_nodes_with_one_name_are_refused(folder, tmp_path):
    settings = {**nodes(folder), 14: nodes(folder)[13]}
    outcome = conducted(FakeGrid(settings), tmp_path, **{"expected-sites": 4})
    assert outcome.result.cohort.clients == ("coast", "north")
    assert {event.site for event in outcome.participation.events if event.what == "refused"} == {"13", "14"}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"alhpa": 0.1}, "did you mean 'alpha'"),
        ({"alpha": "x"}, "Expected a float"),
        ({"output": "here"}, "absolute path"),
    ],
)
def test_errors_in_the_run_configuration_are_named(given, said):
    with pytest.raises(SettingsError, match=said):
        server_app._run_settings({"output": "/x", **given})
