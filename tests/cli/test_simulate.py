"""`fedcdh simulate` and `fedcdh compare`."""

from __future__ import annotations

import json

from cli_study import run

from fedcdh.cli import main
from fedcdh.cli.simulate import to_csv


def test_one_seed_gives_one_study(here):
    for name in ("a", "b"):
        run("simulate", "-o", name, "--clients", 2, "--rows", 20, "--seed", 5, "-q")
    files = sorted(path.relative_to(here / "a") for path in (here / "a").rglob("*.*"))
    assert [path.name for path in files] == ["data.csv", "data.csv", "truth.json"]
    assert all((here / "a" / path).read_bytes() == (here / "b" / path).read_bytes() for path in files)
    run("simulate", "-o", "c", "--clients", 2, "--rows", 20, "--seed", 6, "-q")
    assert (here / "a" / files[0]).read_bytes() != (here / "c" / files[0]).read_bytes()


def test_rows_are_those_that_were_asked_for(here):
    run("simulate", "-o", "s", "--sites", "x,y", "--rows", "7,9", "-q")
    assert [len((here / "s" / site / "data.csv").read_text().splitlines()) for site in "xy"] == [8, 10]


def test_what_cannot_be_simulated_is_a_usage_error(here, capsys):
    for words in (["--edges", "99"], ["--changing", "7"], ["--rows", "many"], ["--sites", "a,a"], ["--model", "odd"]):
        assert main(["simulate", "-o", "s", *words]) == 2, words
        assert "Traceback" not in capsys.readouterr().err
    assert not (here / "s").exists()


def test_numbers_are_written_to_their_last_digit():
    assert to_csv(["x", "y"], [[0.1, 1 / 3]]) == "x,y\n0.1,0.3333333333333333\n"


def test_the_truth_compared_with_itself_is_perfect(here, capsys):
    run("simulate", "-o", "s", "--seed", 5, "-q")
    capsys.readouterr()
    run("compare", "s/truth.json", "s/truth.json", "--json")
    scores = json.loads(capsys.readouterr().out)
    assert {name: (one["f1"], one["shd"]) for name, one in scores.items()} == {
        "edges": (1.0, 0),
        "directions": (1.0, 0),
        "changing": (1.0, 0),
    }
