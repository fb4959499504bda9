"""`fedcdh rounds answer`."""

from __future__ import annotations

from cli_study import data_of, plan_of, run, write_request

from fedcdh.cli import main


def test_a_plan_without_rounds_has_no_answers(study, here, capsys):
    (here / "study.plan.json").write_bytes((study / "study.plan.json").read_bytes())
    write_request(here)
    words = ["rounds", "answer", "study.plan.json", "rounds/request-001.json", data_of(study), "--client", "north"]
    assert main(words) != 0
    assert "Traceback" not in capsys.readouterr().err
    assert not (here / "north.answer-001").exists()


def test_what_is_no_request_is_refused_by_name(study, here, capsys):
    (here / "request.json").write_text("{}", encoding="utf-8")
    assert main(["rounds", "answer", plan_of(study), "request.json", data_of(study), "--client", "north"]) == 5
    assert "request.json" in capsys.readouterr().err


def test_an_answer_says_what_is_left(study, here, capsys):
    profiles = [study / f"{site}.profile.json" for site in ("north", "south", "coast")]
    run("plan", *profiles, "--max-rounds", 2, "-q")
    write_request(here)
    words = ["rounds", "answer", "study.plan.json", "rounds/request-001.json", data_of(study), "--client", "north"]
    run(*words, "--no-disclosure-control")
    assert "1 of 2 rounds" in capsys.readouterr().out
    assert (here / "north.answer-001").exists()
