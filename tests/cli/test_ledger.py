"""`fedcdh ledger`."""

from __future__ import annotations

import json

from cli_study import SITES, data_of, run

from fedcdh.cli import ledger, main
from fedcdh.privacy.ledger import WITHDRAWN


def test_every_release_is_listed_and_none_of_the_rows(study, here, capsys):
    run("ledger", "show")
    assert "0 releases in" in capsys.readouterr().out
    run("profile", data_of(study), "--client", "north", "-q")
    run("ledger", "show", "--json")
    (release,) = json.loads(capsys.readouterr().out)["releases"]
    assert (release["kind"], release["client"], release["rows"]) == ("profile", "north", SITES["north"])
    assert not {"secret", "sketch", "sketches"} & set(release)
    run("ledger", "show")
    assert "1 releases in" in capsys.readouterr().out


def test_a_changed_ledger_is_found(study, here, monkeypatch, capsys):
    monkeypatch.setenv("FEDCDH_LEDGER", str(here / "releases.jsonl"))
    run("ledger", "verify")
    assert "There is no ledger" in capsys.readouterr().out
    run("profile", data_of(study), "--client", "north", "-q")
    run("ledger", "verify")
    assert "is complete: 1 releases, 0 of them signed." in capsys.readouterr().out
    run("keys", "new", "-q")
    assert main(["ledger", "verify", "--key", "site.pub"]) == 6
    assert "release 1 is not signed" in capsys.readouterr().err
    path = here / "releases.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"north"', b'"south"', 1))
    assert main(["ledger", "verify"]) == 7


def test_a_withdrawn_release_is_recorded_with_its_reason(study, here, monkeypatch, capsys):
    monkeypatch.setenv("FEDCDH_LEDGER", str(here / "releases.jsonl"))
    run("profile", data_of(study), "--client", "north", "-q")
    run("ledger", "withdraw", 1, "--reason", "it was never sent")
    assert "Release 1 no longer counts; release 2 of" in capsys.readouterr().out
    run("ledger", "show")
    assert "withdrawn: 1" in capsys.readouterr().out
    assert main(["ledger", "withdraw", "1", "--reason", "again"]) == 7


def test_the_kind_of_a_withdrawal_is_that_of_the_ledger():
    """It stands in the command line a second time, so that help loads nothing heavy."""
    assert ledger._WITHDRAWN == WITHDRAWN
