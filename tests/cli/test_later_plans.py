"""A site drops out of a study by file, and another one joins late."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from cli_study import SITES, data_of, make_study, plan_of, run, summaries

from fedcdh.cli import main


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FEDCDH_LEDGER", str(folder / "releases.jsonl"))
        return make_study(folder)


@pytest.fixture
def study(made, tmp_path):
    shutil.copytree(made, tmp_path / "study")
    return tmp_path / "study"


def result_of(folder: Path) -> dict:
    return json.loads((folder / "result.json").read_text())


def without_plan(found: dict) -> dict:
    return {key: value for key, value in found.items() if key not in ("plan", "notes")}


def test_the_refusal_names_both_ways_and_both_give_the_same_graph(study, tmp_path, capsys):
    (study / "coast.summary").unlink()
    here = [path for path in summaries(study) if "coast" not in path]
    run("discover", plan_of(study), *here, "-o", tmp_path / "r", code=5)
    said = capsys.readouterr().err
    for part in ("fedcdh discover", "--without coast", "plan --like", "stay valid"):
        assert part in said
    assert not (tmp_path / "r").exists()
    run("discover", plan_of(study), *here, "--without", "coast", "-o", tmp_path / "left", "-q")
    later = tmp_path / "later.plan.json"
    run("plan", "--like", plan_of(study), "--without", "coast", "-o", later)
    assert "stay valid" in capsys.readouterr().out
    run("discover", later, *here, "-o", tmp_path / "later", "-q")
    left, after = result_of(tmp_path / "left"), result_of(tmp_path / "later")
    assert without_plan(left) == without_plan(after)
    for found in (left, after):
        assert any("coast" in note for note in found["notes"])


def test_a_summary_that_is_there_can_be_left_out(study, tmp_path, capsys):
    run("discover", plan_of(study), *summaries(study), "--without", "coast", "-o", tmp_path / "with")
    assert "The summary of coast is here and is left out" in capsys.readouterr().out
    here = [path for path in summaries(study) if "coast" not in path]
    run("discover", plan_of(study), *here, "--without", "coast", "-o", tmp_path / "r", "-q")
    assert (tmp_path / "with" / "result.json").read_bytes() == (tmp_path / "r" / "result.json").read_bytes()


def test_a_late_site_joins_and_the_ledger_knows_that_nothing_new_leaves(study, tmp_path, capsys, monkeypatch):
    few, all_of = tmp_path / "few.plan.json", tmp_path / "all.plan.json"
    run("plan", "--like", plan_of(study), "--without", "coast", "-o", few, "-q")
    run("plan", "--like", few, "--with", "coast", "-o", all_of, "-q")
    run("discover", all_of, *summaries(study), "-o", tmp_path / "late", "-q")
    run("discover", plan_of(study), *summaries(study), "-o", tmp_path / "first", "-q")
    assert without_plan(result_of(tmp_path / "late")) == without_plan(result_of(tmp_path / "first"))
    monkeypatch.setenv("FEDCDH_LEDGER", str(study / "releases.jsonl"))
    capsys.readouterr()
    run("summarize", few, data_of(study), "--client", "north", "-o", tmp_path / "again.summary")
    assert "had the same numbers: nothing new leaves" in capsys.readouterr().out


def test_a_sum_leaves_a_site_out_and_is_not_taken_apart(study, tmp_path, capsys):
    target = tmp_path / "study.aggregate"
    run("aggregate", plan_of(study), *summaries(study), "--without", "coast", "-o", target, "-q")
    run("discover", plan_of(study), target, "-o", tmp_path / "r", "-q")
    assert any("coast" in note for note in result_of(tmp_path / "r")["notes"])
    run("discover", plan_of(study), target, "--without", "north", "-o", tmp_path / "q", "-q", code=5)
    assert "cannot be taken apart" in capsys.readouterr().err
    run("aggregate", plan_of(study), *summaries(study), "--without", "north", "-o", target, "-q", code=2)
    assert "A sum cannot be taken apart" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--without", "cost"), "did you mean 'coast'"),
        (("--with", "north"), "in the plan already"),
        ((), "no client that leaves or joins"),
        (("--without", "coast", "--epsilon", "1"), "together with --epsilon"),
        (("--without", "coast", "--study", "other"), "together with --study"),
    ],
)
def test_a_plan_like_another_changes_its_clients_only(study, tmp_path, capsys, options, said):
    target = tmp_path / "later.plan.json"
    assert main(["plan", "--like", plan_of(study), *options, "-o", str(target)]) != 0
    assert said in capsys.readouterr().err
    assert not target.exists()


def test_clients_cannot_leave_no_plan_and_the_plan_is_not_overwritten(study, tmp_path, capsys):
    run("plan", study / "north.profile.json", "--without", "north", code=2)
    assert "Name that plan with --like" in capsys.readouterr().err
    before = Path(plan_of(study)).read_bytes()
    run("plan", "--like", plan_of(study), "--without", "north", "-o", plan_of(study), code=2)
    assert Path(plan_of(study)).read_bytes() == before


def test_the_rounds_go_on_without_a_site(study, tmp_path, monkeypatch):
    monkeypatch.setenv("FEDCDH_LEDGER", str(study / "releases.jsonl"))  # it knows the summaries by the first plan
    rounds, later = tmp_path / "rounds", tmp_path / "later.plan.json"
    run("plan", "--like", plan_of(study), "--without", "coast", "-o", later, "-q")
    here = [path for path in summaries(study) if "coast" not in path]
    for plan, folder in ((later, rounds), (plan_of(study), tmp_path / "old")):
        out = tmp_path / f"r{folder.name}"
        options = ("--without", "coast") if folder.name == "old" else ()
        for _ in range(1, 8):
            words = ["discover", str(plan), *here, "--ask", str(folder), "-o", str(out), "-q", *options]
            if main(words) == 0:
                break
            for site in SITES:
                if site != "coast":
                    request = sorted(folder.glob("request-*.json"))[-1]
                    answer = folder / f"{site}.answer-{request.stem[-3:]}"
                    run("rounds", "answer", plan, request, data_of(study, site), "--client", site,
                        "-o", answer, "-q")  # fmt: skip
        assert (out / "result.json").exists()
        assert any("coast" in note for note in result_of(out)["notes"])
