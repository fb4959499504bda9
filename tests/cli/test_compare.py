"""`fedcdh compare`: scores that were counted by hand."""

from __future__ import annotations

import json

from cli_study import run

from fedcdh.cli import main
from fedcdh.cli.compare import score_document
from fedcdh.graphs.metrics import compare_changing


def write(path, edges, changing=None):
    document = {"edges": edges, "nodes": ["a", "b", "c"]} | ({} if changing is None else {"changing": changing})
    path.write_text(json.dumps(document), encoding="utf-8")


def test_scores_are_those_counted_by_hand(here, capsys):
    write(here / "found.json", [["a", "b"], ["c", "b"]], ["a"])
    write(here / "truth.json", [["a", "b"], ["b", "c"]], ["a", "b"])
    run("compare", "found.json", "truth.json", "--json")
    scores = json.loads(capsys.readouterr().out)
    assert scores["edges"]["correct"] == 2
    assert scores["directions"]["correct"] == 1
    assert (scores["changing"]["precision"], scores["changing"]["recall"]) == (1.0, 0.5)
    run("compare", "found.json", "truth.json")
    heads, *rows = capsys.readouterr().out.splitlines()
    assert heads.split() == ["correct", "claimed", "true", "precision", "recall", "F1", "distance"]
    assert [row.split()[0] for row in rows] == ["edges", "directions", "changing"]


def test_unknown_changes_are_not_scored(here, capsys):
    write(here / "found.json", [["a", "b"]])
    write(here / "truth.json", [["a", "b"]], ["a"])
    run("compare", "found.json", "truth.json", "--json")
    assert set(json.loads(capsys.readouterr().out)) == {"edges", "directions"}


def test_what_is_no_graph_is_refused(here):
    (here / "found.json").write_text("[]", encoding="utf-8")
    assert main(["compare", "found.json", "found.json"]) == 3


def test_a_score_is_a_document():
    assert score_document(compare_changing({"a"}, {"a", "b"}))["recall"] == 0.5
