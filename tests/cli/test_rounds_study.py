"""Adaptive rounds by file find the graph that they find in one process."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import studies
from round_studies import answered, plan_for

from fedcdh.cli import main
from fedcdh.cli._answers_folder import AnswersFolder
from fedcdh.cli._console import Output
from fedcdh.errors import (
    PendingAnswersError,
    PlanMismatchError,
)
from fedcdh.messages.answer_file import (
    AnswerMessage,
    pack_answer,
)
from fedcdh.messages.study_file import Study
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.aggregation import add_up
from fedcdh.summaries.joint import (
    JointRequest,
)

ADAPTIVE = ("--method", "constraint", "--rounds", "adaptive")


def test_a_study_by_file_finds_what_one_in_process_finds(tmp_path, monkeypatch, capsys):
    """The whole way: discover writes a request, sites answer, and so on until nothing more is asked."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    clients = ("north", "south")
    for client in clients:
        a, b, *noise = rng.uniform(-1.7, 1.7, (4, 2500))
        x, y = (a + b + a * b + e for e in noise)
        rows = np.column_stack([a, b, x, y])
        np.savetxt(f"{client}.csv", rows, delimiter=",", header="a,b,x,y", comments="", fmt="%.17g")
        assert main(["profile", f"{client}.csv", "--client", client, "-q"]) == 0
    assert main(["plan", "north.profile.json", "south.profile.json", "--max-rounds", "9", "-q"]) == 0
    for client in clients:
        assert main(["summarize", "study.plan.json", f"{client}.csv", "--client", client, "-q"]) == 0
    search = ["discover", "study.plan.json", "north.summary", "south.summary", *ADAPTIVE, "-q"]
    assert main([*search, "-o", "one"]) == 0
    for number in range(1, 10):
        if main([*search, "-o", "many", "--answers", "rounds"]) == 0:
            break
        for client in clients:
            asked = ["rounds", "answer", "study.plan.json", f"rounds/request-{number:03d}.json", f"{client}.csv"]
            into = ["-o", f"rounds/{client}.answer-{number:03d}", "-q"]
            assert main([*asked, "--client", client, *into]) == 0
    assert main(["rounds", "request", *search[1:4], *ADAPTIVE, "--answers", "rounds", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["more"] is False
    edges = {which: json.loads((tmp_path / which / "result.json").read_text())["edges"] for which in ("one", "many")}
    linked = {which: {frozenset((e["source"], e["target"])) for e in es if e["mark"]} for which, es in edges.items()}
    assert frozenset("xy") in linked["one"]
    assert linked["many"] == {frozenset(pair) for pair in ("ax", "bx", "ay", "by")}
    assert main([*search, "-o", "stable", "--answers", "rounds", "--stability"]) == 2  # before it searches
    assert "no site answers again. Leave out --stability" in capsys.readouterr().err


def test_a_folder_of_answers_is_that_of_a_cohort_and_keeps_what_was_asked_before(tmp_path):
    """Not all clients of the plan are in the cohort; what they answered is not in the way, nor waited for."""
    tables = studies.numbers()
    study = Study(plan_for(tables))
    plan, rest = study.plan, {client: tables[client] for client in ("site0", "site2")}
    summaries = [summarize(table, plan, client) for client, table in rest.items()]
    folder = AnswersFolder(tmp_path, study, add_up(summaries, plan, without=["site1"]), None, Output(True, False))
    first = JointRequest(plan.fingerprint, 1, (("v1", "v2"),))
    with pytest.raises(PendingAnswersError, match=r"Answers of site0, site2 to .*request-001\.json"):
        folder.ask(first)
    for client, rows in (("site0", 60), ("site1", 50), ("site2", 40)):
        parts = answered(tables[client], plan, client, ("v1", "v2"), rows=rows)
        (tmp_path / f"{client}.answer-001").write_bytes(pack_answer(AnswerMessage(first.digest, client, parts), plan))
    assert folder.ask(first).keys() == rest.keys()
    more = JointRequest(plan.fingerprint, 1, (("v1", "v2"), ("v1", "v3")))
    with pytest.raises(PendingAnswersError, match=r"request-002\.json are missing; it asks about 1 sets"):
        folder.ask(more)
    for client, rows in (("site0", 60), ("site2", 40)):
        parts = answered(tables[client], plan, client, ("v1", "v3"), rows=rows)
        second = JointRequest(plan.fingerprint, 2, (("v1", "v3"),))
        (tmp_path / f"{client}.answer-002").write_bytes(pack_answer(AnswerMessage(second.digest, client, parts), plan))
    assert [part.names for part in folder.ask(more)["site2"]] == [("v1", "v2"), ("v1", "v3")]
    other = Study(replace(plan, study="another"))
    with pytest.raises(PlanMismatchError, match="choose another folder"):
        replace(folder, study=other).ask(replace(first, plan=other.plan.fingerprint))
