"""A study by file in which sites lack variables."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from cli_study import run

from fedcdh.cli import main
from fedcdh.messages.study_file import Study

ABSENT = {"east": {"crp"}, "north": {"bmi"}}
SITES = ("east", "north", "south")


def write_site(here, site, names, place, spelling=None):
    rng = np.random.default_rng([7, place])
    age = rng.normal(60, 10, 400)
    bmi = 0.1 * age + rng.exponential(2, 400)
    crp = 0.8 * bmi + rng.normal(0, 1, 400)
    columns = {"age": age, "bmi": bmi, "crp": crp}
    with (here / f"{site}.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([(spelling or {}).get(name, name) for name in names])
        writer.writerows(zip(*(columns[name].round(4) for name in names), strict=True))


@pytest.fixture
def sites(here):
    for place, site in enumerate(SITES):
        write_site(here, site, [n for n in ("age", "bmi", "crp") if n not in ABSENT.get(site, ())], place)
    return here


def profile_all():
    for site in SITES:
        run("profile", f"{site}.csv", "--client", site, "-q")
    return [f"{site}.profile.json" for site in SITES]


def test_a_plan_needs_an_explicit_acceptance(sites, capsys):
    profiles = profile_all()
    assert main(["plan", *profiles]) != 0
    refusal = capsys.readouterr().err
    assert "client 'east' has no column 'crp', client 'north' has no column 'bmi'" in refusal
    assert "--allow-absent" in refusal
    assert not (sites / "study.plan.json").exists()
    run("plan", *profiles, "--allow-absent")
    assert "Absent at east: crp." in capsys.readouterr().out


def test_a_misspelt_column_is_refused_all_the_same(sites, capsys):
    write_site(sites, "east", ["age", "bmi", "crp"], 0, {"crp": "CRP "})
    assert main(["plan", *profile_all(), "--allow-absent"]) != 0
    assert "looks like another spelling" in capsys.readouterr().err


def test_a_declaration_names_what_is_absent(sites, capsys):
    text = "[absent]\neast = ['crp']\nnorth = ['bmi']\n"
    (sites / "variables.toml").write_text(text, encoding="utf-8")
    run("plan", *profile_all(), "--declare", "variables.toml", "-q")
    plan = Study.from_json((sites / "study.plan.json").read_bytes()).plan
    assert plan.absent == {"east": ("crp",), "north": ("bmi",)}
    (sites / "variables.toml").write_text("[absent]\neast = ['crb']\n", encoding="utf-8")
    assert main(["plan", "east.profile.json", "south.profile.json", "--declare", "variables.toml"]) != 0
    assert "did you mean 'crp'" in capsys.readouterr().err


def test_a_declared_study_needs_no_profiles(sites):
    ranges = "".join(f"[variables.{name}]\nrange = [0, 100]\n" for name in ("age", "bmi", "crp"))
    text = "clients = ['east', 'north', 'south']\n[absent]\neast = ['crp']\nnorth = ['bmi']\n" + ranges
    (sites / "variables.toml").write_text(text, encoding="utf-8")
    run("plan", "--declare", "variables.toml", "-q")
    run("summarize", "study.plan.json", "east.csv", "--client", "east", "-q")
    assert (sites / "east.summary").exists()


def test_a_withheld_variable_is_no_obstacle_where_the_plan_allows_it(sites, capsys):
    run("profile", "east.csv", "--client", "east", "-q")
    run("profile", "north.csv", "--client", "north", "-q")
    (sites / "policy.toml").write_text("excluded_variables = ['crp']\n", encoding="utf-8")
    assert main(["profile", "south.csv", "--client", "south"]) != 0
    assert "--variables" in capsys.readouterr().err
    run("profile", "south.csv", "--client", "south", "--variables", "age,bmi", "-q")
    run("plan", "east.profile.json", "north.profile.json", "south.profile.json", "--allow-absent", "-q")
    run("summarize", "study.plan.json", "south.csv", "--client", "south", "-q")
    assert main(["summarize", "study.plan.json", "north.csv", "--client", "north"]) != 0


def test_the_study_runs_with_a_second_message(sites, capsys):
    run("plan", *profile_all(), "--allow-absent", "--feature-columns", 2, "--max-rounds", 5, "-q")
    for site in SITES:
        run("summarize", "study.plan.json", f"{site}.csv", "--client", site, "-q")
    capsys.readouterr()
    run("inspect", "east.summary")
    assert "This client lacks crp" in capsys.readouterr().out
    summaries = [f"{site}.summary" for site in SITES]
    run("discover", "study.plan.json", *summaries, "-o", "first", "-q")
    for number in range(1, 8):
        if main(["discover", "study.plan.json", *summaries, "-o", "result", "--ask", "rounds", "-q"]) == 0:
            break
        request = f"rounds/request-{number:03d}.json"
        for site in SITES:
            answer = f"rounds/{site}.answer-{number:03d}"
            main(["rounds", "answer", "study.plan.json", request, f"{site}.csv", "--client", site, "-o", answer, "-q"])
    document = json.loads((sites / "result" / "result.json").read_text(encoding="utf-8"))
    lacked = {one["client"]: one.get("absent") for one in document["clients"]}
    assert lacked == {"east": ["crp"], "north": ["bmi"], "south": None}
    assert any("not measured everywhere: east has no crp; north has no bmi" in note for note in document["notes"])
    assert any("residuals:" in note for note in document["notes"])
    linked = {frozenset(pair) for pair in [*document["graph"]["arrows"], *document["graph"]["lines"]]}
    assert frozenset(("bmi", "crp")) in linked


def test_sums_of_summaries_are_refused_with_advice(sites, capsys):
    run("plan", *profile_all(), "--allow-absent", "-q")
    for site in SITES:
        run("summarize", "study.plan.json", f"{site}.csv", "--client", site, "-q")
    capsys.readouterr()
    summaries = [f"{site}.summary" for site in SITES]
    assert main(["aggregate", "study.plan.json", *summaries, "-o", "sum.aggregate"]) != 0
    assert "needs the same columns of all clients" in capsys.readouterr().err
    assert not (sites / "sum.aggregate").exists()


def test_effects_are_refused_with_the_reason(sites, capsys):
    run("plan", *profile_all(), "--allow-absent", "-q")
    for site in SITES:
        run("summarize", "study.plan.json", f"{site}.csv", "--client", site, "-q")
    summaries = [f"{site}.summary" for site in SITES]
    run("discover", "study.plan.json", *summaries, "-o", "result", "-q")
    assert json.loads((sites / "result" / "result.json").read_text(encoding="utf-8"))["effects"] is None
    for given in ([], [*summaries, "--plan", "study.plan.json"]):
        capsys.readouterr()
        assert main(["effect", "result", *given, "--cause", "age", "--outcome", "crp"]) != 0
        assert "lack variables, so that effects cannot be pooled over all" in " ".join(capsys.readouterr().err.split())


def test_a_site_that_lacks_variables_may_leave(sites, capsys):
    run("plan", *profile_all(), "--allow-absent", "-q")
    for site in SITES:
        run("summarize", "study.plan.json", f"{site}.csv", "--client", site, "-q")
    run("plan", "--like", "study.plan.json", "--without", "east", "-o", "later.plan.json", "-q")
    run("discover", "later.plan.json", "north.summary", "south.summary", "-o", "result", "-q")
    document = json.loads((sites / "result" / "result.json").read_text(encoding="utf-8"))
    assert [one["client"] for one in document["clients"]] == ["north", "south"]
    assert main(["plan", "--like", "later.plan.json", "--without", "south", "-o", "last.plan.json"]) != 0
    assert "no client would have the variable 'bmi'" in capsys.readouterr().err
    assert not (sites / "last.plan.json").exists()


def test_noise_is_refused(sites, capsys):
    ranges = "".join(f"[variables.{name}]\nrange = [0, 100]\n" for name in ("age", "crp"))
    text = "clients = ['east', 'north']\n[absent]\neast = ['crp']\n" + ranges
    (sites / "variables.toml").write_text(text, encoding="utf-8")
    assert main(["plan", "--declare", "variables.toml", "--epsilon", "1"]) != 0
    assert "the noise is made for features of one length" in " ".join(capsys.readouterr().err.split())
