"""Rare levels and pairs on the command line: every command names what was made coarser, and no small count."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from cli_study import run

DECLARATION = """
clients = ["north", "south"]

[variables.x]
kind = "continuous"
mean = 0.0
sd = 1.0

[variables.g]
kind = "categorical"
levels = ["a", "b", "c"]

[variables.h]
kind = "categorical"
levels = ["d", "e"]
"""


@pytest.fixture
def sent(here, monkeypatch):
    """A folder with the summary of a site with a level of five people, and a pair of levels of three."""
    monkeypatch.setenv("FEDCDH_LEDGER", str(here / "releases.jsonl"))
    (here / "variables.toml").write_text(DECLARATION, encoding="utf-8")
    run("plan", "--declare", "variables.toml", "-q")
    n = 600
    g = np.repeat(["b", "c", "a"], [40, 5, n - 45])
    h = np.where((np.arange(n) < 3) | (np.arange(n) >= 400), "e", "d")
    with (here / "data.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["x", "g", "h"])
        writer.writerows(zip(np.random.default_rng(0).uniform(-2, 2, n).tolist(), g, h, strict=True))
    return here


def test_summarize_inspect_and_ledger_name_what_was_made_coarser(sent, capsys):
    merged, rounded = (
        "1 rare level of g was merged with the most common one",
        "1 small count of g with h was rounded",
    )
    run("summarize", "study.plan.json", "data.csv", "--client", "north")
    said = capsys.readouterr()
    assert f"To protect few people, {merged}." in said.out + said.err
    assert f"To protect few people, {rounded}." in said.out + said.err
    run("inspect", "north.summary")
    said = capsys.readouterr().out
    assert merged in said
    assert rounded in said
    run("inspect", "north.summary", "--json")
    marks = json.loads(capsys.readouterr().out)["coarsened"]
    assert marks == [{"variables": ["g"], "cells": 1}, {"variables": ["g", "h"], "cells": 1}]
    run("ledger", "show")
    assert "rare cells coarser" in capsys.readouterr().out


def test_the_number_of_feature_columns_is_part_of_the_plan(sent, capsys):
    run("plan", "--declare", "variables.toml", "--feature-columns", 2, "-o", "narrow.plan.json", "-q")
    usual, narrow = (
        json.loads((sent / name).read_text(encoding="utf-8")) for name in ("study.plan.json", "narrow.plan.json")
    )
    assert usual.get("plan", usual)["family"]["width"] == 4
    assert narrow.get("plan", narrow)["family"]["width"] == 2
    refused = ("--declare", "variables.toml", "--method", "paper", "--feature-columns", 2)
    run("plan", *refused, "-o", "other.plan.json", code=2)
    assert "--feature-columns 2 was given for a method with random features" in capsys.readouterr().err
