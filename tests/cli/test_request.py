"""`fedcdh rounds request`, and the folder of requests and answers."""

from __future__ import annotations

import json

import numpy as np
import pytest
from cli_study import run

from fedcdh.cli import main

CLIENTS = ("north", "south")
ADAPTIVE = ("--method", "constraint", "--rounds", "adaptive")


@pytest.fixture
def asking(here):
    """A study in which x and y depend on a product of a and b, which only a further question can show."""
    rng = np.random.default_rng(0)
    for client in CLIENTS:
        a, b, *noise = rng.uniform(-1.7, 1.7, (4, 2500))
        rows = np.column_stack([a, b, *(a + b + a * b + e for e in noise)])
        np.savetxt(f"{client}.csv", rows, delimiter=",", header="a,b,x,y", comments="", fmt="%.17g")
        run("profile", f"{client}.csv", "--client", client, "-q")
    run("plan", "north.profile.json", "south.profile.json", "--max-rounds", 4, "-q")
    for client in CLIENTS:
        run("summarize", "study.plan.json", f"{client}.csv", "--client", client, "-q")
    return here


def test_requests_and_answers_end_with_a_graph(asking, capsys):
    words = ["rounds", "request", "study.plan.json", "*.summary", "--answers", "rounds", "--json", *ADAPTIVE]
    capsys.readouterr()
    for number in range(1, 6):
        run(*words)
        if not json.loads(capsys.readouterr().out)["more"]:
            break
        request = f"rounds/request-{number:03d}.json"
        for client in CLIENTS:
            run("rounds", "answer", "study.plan.json", request, f"{client}.csv", "--client", client, "-q")
            (asking / f"{client}.answer-{number:03d}").rename(asking / "rounds" / f"{client}.answer-{number:03d}")
    assert number > 1
    run("discover", "study.plan.json", "*.summary", "--answers", "rounds", *ADAPTIVE, "-q")
    edges = json.loads((asking / "result" / "result.json").read_text(encoding="utf-8"))["edges"]
    linked = {frozenset((edge["source"], edge["target"])) for edge in edges if edge["mark"]}
    assert linked == {frozenset(pair) for pair in ("ax", "bx", "ay", "by")}


def test_a_second_answer_of_one_client_is_refused(asking, capsys):
    run("rounds", "request", "study.plan.json", "*.summary", "--answers", "rounds", *ADAPTIVE, "-q")
    words = ["rounds", "answer", "study.plan.json", "rounds/request-001.json", "north.csv", "--client", "north", "-q"]
    run(*words, "-o", "rounds/north.answer-001")
    (asking / "rounds" / "copy.answer-001").write_bytes((asking / "rounds" / "north.answer-001").read_bytes())
    assert main(["rounds", "request", "study.plan.json", "*.summary", "--answers", "rounds", *ADAPTIVE]) == 5
    assert "a second answer of north" in capsys.readouterr().err
