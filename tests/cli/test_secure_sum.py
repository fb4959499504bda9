"""Secure aggregation by file, from the command line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import studies
from mailed_studies import OWN, Mailed
from masked_studies import same

from fedcdh.cli import main
from fedcdh.discovery.api import discover_from
from fedcdh.privacy.ledger import ReleaseLedger
from fedcdh.privacy.secure_aggregation import codec
from fedcdh.privacy.secure_aggregation.messages import (
    Roster,
)
from fedcdh.reporting.result_files import render_result_json
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.aggregation import Aggregate, add_up
from fedcdh.summaries.opened_by_sums import describe_opened


@pytest.fixture
def by_file(tmp_path, monkeypatch):
    """A coordinator's folder, and a folder of every site, with its key and its data."""
    return Mailed.of(tmp_path, monkeypatch, studies.numbers(3, (200, 160, 180, 170), 2))


def test_by_file_the_sum_and_the_result_are_the_plain_ones(by_file, capsys):
    found = by_file.run({})
    cohort = add_up(
        [summarize(table, by_file.study.plan, client) for client, table in by_file.tables.items()], by_file.study.plan
    )
    assert same(found, Aggregate.of(cohort))
    assert main(["discover", "study.plan.json", "study.aggregate", "-o", "masked"]) == 0
    said = capsys.readouterr().out
    assert f"for every client, {describe_opened()}" in " ".join(said.split())
    assert Path("masked/result.json").read_text() == render_result_json(
        discover_from(Aggregate.of(cohort), cohort.plan)
    )
    for client in by_file.tables:
        assert '"secrets": null' in (by_file.root / client / f"masking-state-{client}.json").read_text()


def test_by_file_a_site_may_leave(by_file):
    found = by_file.run({"site2": "masked"})
    assert found.clients == ("site0", "site1", "site3")
    summaries = [summarize(t, by_file.study.plan, c) for c, t in by_file.tables.items() if c != "site2"]
    assert same(found, Aggregate.of(add_up(summaries, by_file.study.plan, without=("site2",))))


def test_by_file_the_coordinator_says_who_is_missing_and_goes_on_only_when_told(by_file, capsys):
    by_file.coordinator()
    for client in ("site0", "site1", "site3"):
        by_file.site(client, "1-terms.json")
    capsys.readouterr()
    by_file.coordinator()
    assert "Answers of site2" in capsys.readouterr().out
    assert not (by_file.root / "rounds" / "2-roster.json").exists()
    by_file.coordinator("--go-on")
    assert (by_file.root / "rounds" / "2-roster.json").exists()


def test_by_file_refusals_have_exit_codes_and_leave_no_answer(by_file, capsys):
    by_file.coordinator()
    by_file.site("site0", "1-terms.json", "--policy", "nowhere.toml", code=7)
    for client in by_file.tables:
        by_file.site(client, "1-terms.json")
    by_file.coordinator()
    roster = by_file.root / "rounds" / "2-roster.json"
    text = roster.read_bytes()
    other = Roster(*(getattr(codec.read_message(text, by_file.study.plan, Roster), name) for name in ("terms", "keys")))
    cut = replace(other, keys=other.keys[:-1])
    roster.write_bytes(replace(cut, keys=cut.keys[1:]).to_bytes())
    capsys.readouterr()
    by_file.site("site1", "2-roster.json", code=1)
    assert "Expected at least 3" in capsys.readouterr().err
    assert not (by_file.root / "site1" / "site1.shares").exists()
    roster.write_bytes(text)
    by_file.site("site1", "2-roster.json")
    by_file.coordinator("--group", "site0=a", code=1)


def test_by_file_the_policy_of_a_site_holds(by_file, capsys):
    (by_file.root / "site1" / "policy.toml").write_text("min_rows = 161\n")
    by_file.coordinator()
    for request in ("1-terms.json", "2-roster.json", "3-delivery.json"):
        for client in by_file.tables:
            refused = client == "site1" and request == "3-delivery.json"
            own = ["--policy", "policy.toml"] if client == "site1" else []
            by_file.site(client, request, *own, code=7 if refused else 0)
        by_file.coordinator()
    assert "161" in capsys.readouterr().err
    assert not (by_file.root / "site1" / "site1.masked").exists()


def test_by_file_what_left_under_masks_does_not_leave_plainly_by_any_plan(by_file, capsys):
    by_file.run({})
    by_file.monkeypatch.chdir(by_file.root / "site0")
    told = [entry.release.kind for entry in ReleaseLedger(Path(OWN[1])).entries()]
    assert told == ["masked", "round", "round", "round"]
    capsys.readouterr()
    assert main(["summarize", "../study.plan.json", "data.csv", "--client", "site0", *OWN]) == 7
    assert "this client has masked numbers about these rows" in capsys.readouterr().err
    assert not Path("site0.summary").exists()
    renamed = replace(by_file.study, plan=replace(by_file.study.plan, study="without masks"))
    Path("renamed.plan.json").write_text(renamed.to_json())
    assert main(["summarize", "renamed.plan.json", "data.csv", "--client", "site0", *OWN]) == 7
    assert "by any plan" in capsys.readouterr().err


def test_by_file_masks_over_what_left_plainly_hide_nothing_and_are_free(by_file):
    by_file.monkeypatch.chdir(by_file.root / "site0")
    assert main(["summarize", "../study.plan.json", "data.csv", "--client", "site0", *OWN]) == 0
    by_file.run({})
    by_file.monkeypatch.chdir(by_file.root / "site0")
    assert main(["summarize", "../study.plan.json", "data.csv", "--client", "site0", *OWN]) == 0
    told = [entry.release.kind for entry in ReleaseLedger(Path(OWN[1])).entries()]
    assert told == ["summary", "round", "round", "round"]


def test_by_file_a_site_that_lost_its_memory_begins_no_second_sum(by_file, capsys):
    by_file.run({"site2": "masked"})
    memory = by_file.root / "site0" / "masking-state-site0.json"
    memory.rename(memory.with_name("elsewhere.json"))
    capsys.readouterr()
    by_file.site("site0", "1-terms.json", code=1)
    assert "--state" in capsys.readouterr().err
    by_file.site("site0", "1-terms.json", "--state", "elsewhere.json")
    assert not memory.exists()
