"""Four hospitals of real size, by file: one round of advice, and what leaves then."""

from __future__ import annotations

import csv
import json

import pytest
from cli_study import run

from fedcdh.cli import main
from fedcdh.evaluation.experiments.real_data import data_folder

DATA = data_folder().resolve() / "heart_4hospitals" / "data.csv"
HOSPITALS = ("cleveland", "hungary", "va_longbeach")
DECLARATION = """
clients = ["cleveland", "hungary", "va_longbeach"]
[variables.age]
mean = 54
sd = 9
[variables.trestbps]
mean = 132
sd = 18
[variables.thalach]
mean = 140
sd = 25
[variables.oldpeak]
[variables.sex]
levels = ["0", "1"]
[variables.cp]
levels = ["1", "2", "3", "4"]
[variables.fbs]
levels = ["0", "1"]
[variables.restecg]
levels = ["0", "1", "2"]
[variables.exang]
levels = ["0", "1"]
[variables.num]
levels = ["0", "1"]
[recipes.oldpeak]
binary = { above = 0.0 }
[recipes.chol]
exclude = true
"""
"""Codes are labels. Nobody at Switzerland has a value of chol, and one hospital writes few values of oldpeak."""


@pytest.fixture
def heart(here):
    if not DATA.exists():
        pytest.skip("the heart data are not here (FEDCDH_SHARED names the folder that holds data/)")
    with DATA.open(newline="", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    for hospital in HOSPITALS:
        with (here / f"{hospital}.csv").open("w", newline="", encoding="utf-8") as out:
            table = csv.DictWriter(out, [name for name in rows[0] if name != "domain"], extrasaction="ignore")
            table.writeheader()
            table.writerows(row for row in rows if row["domain"] == hospital)
    (here / "study.toml").write_text(DECLARATION, encoding="utf-8")
    return here


def test_three_of_four_hospitals_send_ten_of_eleven_variables_after_one_round_of_advice(heart, monkeypatch, capsys):
    run("plan", "--declare", "study.toml", "--feature-columns", "2", "-o", "first.plan.json")
    advised = []
    for hospital in HOSPITALS:
        code = main(["advise", "first.plan.json", f"{hospital}.csv", "--client", hospital, "-o", f"{hospital}.toml"])
        advised += ["--recipes", f"{hospital}.toml"] if code else []
    run("plan", "--declare", "study.toml", *advised, "--feature-columns", "2", "-o", "second.plan.json")
    for hospital in HOSPITALS:
        monkeypatch.setenv("FEDCDH_LEDGER", str(heart / f"{hospital}.jsonl"))
        run("summarize", "second.plan.json", f"{hospital}.csv", "--client", hospital)
    run("discover", "second.plan.json", *(f"{hospital}.summary" for hospital in HOSPITALS), "-o", "result")
    result = json.loads((heart / "result" / "result.json").read_text(encoding="utf-8"))
    assert len(result["variables"]) == 10
    assert any("was merged with the most common one" in note for note in result["notes"])
