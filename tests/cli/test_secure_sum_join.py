"""`fedcdh secure-sum join`: what a site is told, and what it keeps."""

from __future__ import annotations

import json

from cli_study import SITES, data_of, run

from fedcdh.cli import main
from fedcdh.cli.secure_sum_join import format_digest


def test_a_digest_is_grouped_for_people():
    assert format_digest("0123456789abcdef" * 4) == "0123 4567 89ab cdef 0123 4567 89ab cdef"


def test_the_first_answer_says_what_to_compare_and_keeps_its_secrets(study, here, capsys):
    for site in SITES:
        run("keys", "new", "-o", f"{site}.key", "-q")
        run("profile", data_of(study, site), "--client", site, "--key", f"{site}.key", "-q")
    run("plan", *(f"{site}.profile.json" for site in SITES), "-q")
    run("secure-sum", "run", "study.plan.json", "rounds", "-q")
    words = ["secure-sum", "join", "study.plan.json", "rounds/1-terms.json", "--client", "north", "--key", "north.key"]
    run(*words)
    said = capsys.readouterr().out
    assert "sites must help to open" in said
    assert "Compare this plan file with the other sites" in said
    state = here / "masking-state-north.json"
    assert state.stat().st_mode & 0o077 == 0
    assert not state.name.startswith("north")
    assert json.loads((here / "north.keys").read_text(encoding="utf-8"))
    run(*words, "--json")
    assert json.loads(capsys.readouterr().out)["round"] == "keys"


def test_what_is_no_round_is_refused(study, here, capsys):
    run("keys", "new", "-q")
    (here / "x.json").write_text("{}", encoding="utf-8")
    plan = str(study / "study.plan.json")
    assert main(["secure-sum", "join", plan, "x.json", "--client", "north"]) != 0
    assert not (here / "north.keys").exists()
    assert "Traceback" not in capsys.readouterr().err
