"""`fedcdh advise`, and what `fedcdh profile` and `fedcdh plan` do with recipes: a study by file, as sites run it."""

from __future__ import annotations

import json

import numpy as np
import pytest
from cli_study import run

from fedcdh.cli import main

COUNTS = {
    "north": {"I": 300, "II": 150, "III": 43, "IV": 7},
    "south": {"I": 7, "II": 153, "III": 180, "IV": 160},
}
"""Seven people with a level are too few for a profile; a summary would merge them."""
DECLARATION = """
[variables.age]
[variables.crp]
[variables.nyha]
levels = ["I", "II", "III", "IV"]
[variables.ward]
"""


def write_table(path, client):
    rng = np.random.default_rng(list(client.encode()))
    lines = ["age,crp,nyha,ward"]
    grades = [grade for grade, count in COUNTS[client].items() for _ in range(count)]
    for row, grade in enumerate(rng.permutation(grades)):
        lines.append(f"{rng.normal(60, 12):.3f},{rng.lognormal(1, 1):.3f},{grade},{'ab'[row % 2]}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.fixture
def hospitals(here, monkeypatch):
    monkeypatch.setenv("FEDCDH_LEDGER", str(here / "releases.jsonl"))
    for client in COUNTS:
        write_table(here / f"{client}.csv", client)
    (here / "study.toml").write_text(DECLARATION, encoding="utf-8")
    return here


def test_two_sites_send_their_summaries_after_one_round_of_advice(hospitals, monkeypatch, capsys):
    for client in COUNTS:
        words = ["advise", "study.toml", f"{client}.csv", "--client", client]
        assert main([*words, "-o", f"{client}.recipes.toml"]) == 7
        shown = capsys.readouterr()
        assert "do not forward" in shown.out
        assert "must not leave as it is" in shown.err
    assert not (hospitals / "releases.jsonl").exists()
    files = ["--recipes", "north.recipes.toml", "--recipes", "south.recipes.toml"]
    for client in COUNTS:
        monkeypatch.setenv("FEDCDH_LEDGER", str(hospitals / f"{client}.jsonl"))
        run("profile", f"{client}.csv", "--client", client, "--declare", "study.toml", *files)
        assert "the summary may leave as it is" in capsys.readouterr().out
    run("plan", "north.profile.json", "south.profile.json", "--accept-differences", "nyha")
    shown = capsys.readouterr().out
    assert "Every site first changes these columns:" in shown
    assert "nyha: I and II grouped as 'I/II', III and IV grouped as 'III/IV'" in shown
    for client in COUNTS:
        monkeypatch.setenv("FEDCDH_LEDGER", str(hospitals / f"{client}.jsonl"))
        run("summarize", "study.plan.json", f"{client}.csv", "--client", client)
    capsys.readouterr()
    run("inspect", "north.summary")
    assert "grouped as" in capsys.readouterr().out
    run("discover", "study.plan.json", "north.summary", "south.summary")
    recipes = json.loads((hospitals / "result" / "result.json").read_text(encoding="utf-8"))["recipes"]
    assert "grouped as" in recipes["nyha"]
    run("report", "result")
    assert "Every site first changed its columns in the same way" in (hospitals / "report.html").read_text(
        encoding="utf-8"
    )


@pytest.fixture
def outliers(hospitals):
    """Nobody has a rare level, but one person at each site has a value of crp that stands out."""
    for client in COUNTS:
        rare = "IV" if client == "north" else "I"
        lines = (hospitals / f"{client}.csv").read_text(encoding="utf-8").splitlines()
        kept = [line for line in lines if line.split(",")[2] != rare]
        (hospitals / f"{client}.csv").write_text("\n".join([*kept, "60,900,II,a"]) + "\n", encoding="utf-8")
    return hospitals


def test_recipes_after_the_profiles_need_no_new_profiles(outliers, monkeypatch, capsys):
    hospitals = outliers
    for client in COUNTS:
        monkeypatch.setenv("FEDCDH_LEDGER", str(hospitals / f"{client}.jsonl"))
        run("profile", f"{client}.csv", "--client", client, "-q")
    accepted = ["--accept-differences", "nyha"]
    run("plan", "north.profile.json", "south.profile.json", *accepted)
    assert main(["summarize", "study.plan.json", "north.csv", "--client", "north"]) == 7
    assert "fedcdh advise study.plan.json north.csv --client north" in capsys.readouterr().err
    for client in COUNTS:
        assert main(["advise", "study.plan.json", f"{client}.csv", "--client", client, "-o", f"{client}.toml"]) == 7
    files = ["--recipes", "north.toml", "--recipes", "south.toml"]
    run("plan", "north.profile.json", "south.profile.json", *accepted, *files, "-o", "second.plan.json")
    for client in COUNTS:
        monkeypatch.setenv("FEDCDH_LEDGER", str(hospitals / f"{client}.jsonl"))
        assert main(["advise", "second.plan.json", f"{client}.csv", "--client", client]) == 0
        run("summarize", "second.plan.json", f"{client}.csv", "--client", client)


def test_the_file_for_the_coordinator_holds_recipes_and_nothing_else(hospitals, capsys):
    assert main(["advise", "study.toml", "north.csv", "--client", "north", "-o", "north.toml", "--json"]) == 7
    shown = json.loads(capsys.readouterr().out)
    assert shown["may_leave"] is False
    assert shown["may_leave_with_recipes"] is True
    text = (hospitals / "north.toml").read_text(encoding="utf-8")
    assert text == '[recipes.nyha]\ngroups = { "III/IV" = ["III", "IV"] }\n'
    (hospitals / "other.toml").write_text("min_rows = 5\n", encoding="utf-8")
    assert main(["advise", "north.csv", "--client", "north", "-o", "other.toml"]) == 2
    assert "not overwritten" in capsys.readouterr().err


def test_a_declaration_is_followed(hospitals, capsys):
    (hospitals / "study.toml").write_text(
        '[variables.age]\n[variables.nyha]\n[recipes.nyha]\ngroups = {"III/IV" = ["III", "IV"]}\n', encoding="utf-8"
    )
    run("advise", "study.toml", "north.csv", "--client", "north")
    assert "may leave as it is" in capsys.readouterr().out
    run("profile", "north.csv", "--client", "north", "--declare", "study.toml", "-q")
    run("inspect", "north.profile.json")
    shown = capsys.readouterr().out
    assert "nyha was changed before: III and IV grouped as 'III/IV'" in shown
    assert "crp" not in shown


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["study.plan.json", "--client", "north"], 2, "without data"),
        (["none.plan.json", "north.csv", "--client", "north"], 4, "there is no file"),
        (["north.csv", "--client", "north", "--kind", "age=odd"], 2, "Choose one of"),
        (["north.csv", "--client", "north", "--recipes", "none.toml"], 4, "there is no file"),
    ],
)
def test_mistakes_are_named(hospitals, capsys, words, code, text):
    assert main(["advise", *words]) == code
    assert text in capsys.readouterr().err


def test_a_profile_foretells_what_a_summary_is_refused_for(outliers, capsys):
    run("profile", "north.csv", "--client", "north")
    shown = capsys.readouterr().out
    assert "the summary must not leave as it is" in shown
    assert "[recipes.crp]" in shown
    run("profile", "south.csv", "--client", "south", "-q", "-o", "south.json")
    assert not capsys.readouterr().out


def test_a_refused_profile_comes_with_advice(hospitals, capsys):
    text = (hospitals / "north.csv").read_text(encoding="utf-8")
    (hospitals / "rare.csv").write_text(text + "50,1,V,a\n", encoding="utf-8")
    assert main(["profile", "rare.csv", "--client", "north"]) == 7
    shown = capsys.readouterr()
    assert "[recipes.nyha]" in shown.out
    assert "This profile must not leave" in shown.err
