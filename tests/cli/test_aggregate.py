"""`fedcdh aggregate`; the sums themselves are tested in tests/federation/streaming."""

from __future__ import annotations

import csv
import json

import pytest
from cli_study import SITES, plan_of, run, summaries

from fedcdh.cli import main
from fedcdh.cli.aggregate import MAX_SHOWN, read_groups
from fedcdh.errors import SettingsError


def test_a_sum_gives_the_result_of_its_summaries(study, here, capsys):
    run("aggregate", plan_of(study), study)
    said = capsys.readouterr().out
    assert "Summaries checked and added now: 3." in said
    assert f"The sum has 3 clients with {sum(SITES.values())} rows." in said
    run("discover", plan_of(study), "study.aggregate", "-o", "sum", "-q")
    run("discover", plan_of(study), *summaries(study), "-o", "all", "-q")
    documents = [json.loads((here / name / "result.json").read_text(encoding="utf-8")) for name in ("sum", "all")]
    arrows = [document["graph"]["arrows"] for document in documents]
    assert arrows[0] == arrows[1] != []
    assert not (here / "study.aggregate.adding").exists()


@pytest.mark.parametrize("method", ["constraint", "paper"])
def test_tests_run_on_the_file_of_a_sum(method, here, capsys):
    run("simulate", "-o", "data", "--sites", ",".join(SITES), "--variables", 4, "--rows", 400, "--seed", 5, "-q")
    for site in SITES:
        run("profile", f"data/{site}/data.csv", "--client", site, "-o", f"{site}.profile.json", "-q")
    run("plan", *(f"{site}.profile.json" for site in SITES), "--method", method, "-o", "study.plan.json", "-q")
    for site in SITES:
        run("summarize", "study.plan.json", f"data/{site}/data.csv", "--client", site, "-o", f"{site}.summary", "-q")
    run("aggregate", "study.plan.json", ".", "-q")
    run("discover", "study.plan.json", "study.aggregate", "--method", method, "-o", "sum")
    assert "only sums over all clients are known" in " ".join(capsys.readouterr().out.split())
    run("discover", "study.plan.json", *(f"{site}.summary" for site in SITES), "--method", method, "-o", "all", "-q")
    by_sum, by_summaries = (
        json.loads((here / name / "result.json").read_text(encoding="utf-8")) for name in ("sum", "all")
    )
    assert by_sum["settings"]["method"] == method
    assert by_sum["graph"]["arrows"] or by_sum["graph"]["lines"]
    if method == "paper":
        assert by_sum["graph"] == by_summaries["graph"]
        assert without_slopes(by_sum["edges"]) == without_slopes(by_summaries["edges"])
        slopes = [{edge["slope_units"] for edge in found["edges"]} for found in (by_sum, by_summaries)]
        assert slopes[0] == slopes[1], "both have slopes, but the sites' own means are not known from a sum"


def without_slopes(edges):
    return [{name: value for name, value in edge.items() if "slope" not in name} for edge in edges]


def test_missing_summaries_are_waited_for(study, here, capsys):
    north, *others = summaries(study)
    assert main(["aggregate", plan_of(study), north]) == 5
    assert "no summary from client coast, south" in capsys.readouterr().err
    assert not (here / "study.aggregate").exists()
    run("aggregate", plan_of(study), north, "--go-on")
    assert "coast, south can still be added" in capsys.readouterr().out
    run("aggregate", plan_of(study), *others)
    assert "Added before (study.aggregate.adding): 1." in capsys.readouterr().out


def test_refusals_are_listed_in_a_file(study, here, capsys):
    for number in range(MAX_SHOWN + 1):
        (here / f"{number:02d}.summary").write_bytes(b"damaged")
    assert main(["aggregate", plan_of(study), "*.summary"]) == 5
    said = capsys.readouterr().err
    assert f"Refused files: {MAX_SHOWN + 1}" in said
    assert "... and 1 more" in said
    with (here / "study.aggregate.refused.csv").open(encoding="utf-8", newline="") as file:
        assert len(list(csv.DictReader(file))) == MAX_SHOWN + 1
    run("aggregate", plan_of(study), *summaries(study), "-q")
    assert not (here / "study.aggregate.refused.csv").exists()


@pytest.mark.parametrize("text", ["", "client\na\n", "client,group\na\n", "client,group\na,x\na,y\n", "a,b\n"])
def test_a_file_of_groups_names_every_client_once(tmp_path, text):
    path = tmp_path / "groups.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SettingsError):
        read_groups(path)


def test_groups_are_read_from_csv(tmp_path):
    (tmp_path / "g.csv").write_text("client,group\nnorth,a\n'south,b\n", encoding="utf-8-sig")
    assert read_groups(tmp_path / "g.csv") == {"north": "a", "'south": "b"}
