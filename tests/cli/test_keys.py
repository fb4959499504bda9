"""`fedcdh keys`, and a study in which everybody signs."""

from __future__ import annotations

import json

from cli_study import SITES

from fedcdh.cli import main
from fedcdh.privacy.ledger.ledger_file import settings_folder


def test_a_signed_study(study, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data, here = str(study / "north" / "data.csv"), {"client": "north"}
    assert main(["keys", "new", "--json"]) == 0
    assert (settings_folder() / "site.key").stat().st_mode & 0o077 == 0
    assert not (tmp_path / "site.key").exists()  # only what is sent is written into the folder
    public = json.loads(capsys.readouterr().out)["public"]
    assert main(["keys", "new"]) == 2  # a key is never overwritten
    assert main(["profile", data, "--client", here["client"], "-q"]) == 0
    others = [str(study / f"{site}.profile.json") for site in SITES if site != "north"]
    assert main(["plan", "north.profile.json", *others, "-q"]) == 0
    assert json.loads((tmp_path / "study.plan.json").read_text(encoding="utf-8"))["keys"] == {"north": public}
    assert main(["keys", "verify", "study.plan.json", "--by", "site.pub"]) == 0
    plan = "study.plan.json"
    assert main(["keys", "new", "-o", "other.key", "-q"]) == 0
    for site in SITES:
        arguments = ["summarize", plan, str(study / site / "data.csv"), "--client", site, "-q"]
        assert main([*arguments, "--key", "other.key"]) == (6 if site == "north" else 0)
        assert main(arguments) == 0
    found = [f"{site}.summary" for site in SITES]
    assert main(["discover", plan, *found, "-q"]) == 0
    assert main(["keys", "verify", "north.summary", "--by", public]) == 0

    assert main(["keys", "sign", "north.summary", "--key", "other.key", "-q"]) == 0  # by another key
    assert main(["discover", plan, *found, "-q"]) == 6
    assert "Ask the sender whether the key has changed" in capsys.readouterr().err
    (tmp_path / "north.summary.sig").unlink()  # not signed at all
    assert main(["discover", plan, *found, "-q"]) == 6
    assert main(["keys", "verify", "north.summary"]) == 6
    assert main(["keys", "sign", "north.summary", "-q"]) == 0
    assert main(["discover", plan, *found, "-q"]) == 0
    (tmp_path / "north.profile.json.sig").unlink()
    assert main(["plan", "north.profile.json", *others, "-q"]) == 6


def test_a_key_may_have_a_passphrase(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("fedcdh.cli.keys.getpass", lambda prompt: "tell nobody")
    assert main(["keys", "new", "--passphrase", "-q"]) == 0
    (tmp_path / "x.summary").write_bytes(b"anything")
    assert main(["keys", "sign", "x.summary"]) == 6
    assert "give its passphrase" in capsys.readouterr().err
    monkeypatch.setenv("FEDCDH_PASSPHRASE", "tell nobody")
    assert main(["keys", "sign", "x.summary"]) == 0
    answers = iter(["one", "two"])
    monkeypatch.setattr("fedcdh.cli.keys.getpass", lambda prompt: next(answers))
    assert main(["keys", "new", "--passphrase", "-o", "second.key"]) == 6
    assert not (tmp_path / "second.key").exists()
