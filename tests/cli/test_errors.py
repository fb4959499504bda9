"""Every failure of a command is one sentence and an exit code."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer
from cli_study import KEY, summaries

from fedcdh.cli import EXIT_CODES, main
from fedcdh.cli._errors import report_errors


def broken(study: Path, tmp_path: Path) -> dict[str, tuple[list[str], int, str]]:
    """Ways to go wrong: arguments, exit code, and what the message says."""
    plan, data = str(study / "study.plan.json"), str(study / "north" / "data.csv")
    summarize = ["summarize", plan, data, "--client"]
    (tmp_path / "text.csv").write_text("v1,v2,v3,v4,v5,v6\n1,2,3,4,5,oops\n", encoding="utf-8")
    (tmp_path / "not.plan.json").write_text("{}", encoding="utf-8")
    (tmp_path / "damaged.summary").write_bytes((study / "north.summary").read_bytes()[:-1])
    (tmp_path / "precious").write_text("a key", encoding="utf-8")
    (tmp_path / "declared.toml").write_text("[variables.x]\nkind = 'continuos'\n", encoding="utf-8")
    twice = [str(study / "north.summary"), *summaries(study)]
    return {
        "no such command": (["dance"], 2, "There is no command 'dance'"),
        "no client": (["profile", data], 2, "Missing option"),
        "no such data": (["profile", "nowhere.csv", "--client", "north"], 3, "nowhere.csv"),
        "text where numbers belong": (["summarize", plan, str(tmp_path / "text.csv"), "--client", "north"], 3, "'v6'"),
        "no such client": ([*summarize, "west"], 3, "'west' is not in the plan"),
        "not a plan": (["summarize", str(tmp_path / "not.plan.json"), data, "--client", "north"], 4, "plan"),
        "no plan": (["summarize", "nowhere.json", data, "--client", "north"], 4, "there is no file"),
        "overwriting data": ([*summarize, "north", "-o", data], 2, "is also an input"),
        "overwriting the plan": ([*summarize, "north", "-o", plan], 2, "is also an input"),
        "no profiles": (["plan"], 2, "A plan needs profiles"),
        "a bad declaration": (["plan", "--declare", str(tmp_path / "declared.toml")], 4, "found 'continuos'"),
        "a damaged summary": (["discover", plan, str(tmp_path / "damaged.summary")], 5, "send its summary again"),
        "a lacking summary": (["discover", plan, summaries(study)[0]], 5, "no summary from client"),
        "a summary twice": (["discover", plan, *twice], 5, "'north'"),
        "no such method": (["discover", plan, *summaries(study), "--method", "magic"], 2, "'magic' is not one of"),
        "a bad level": (["discover", plan, *summaries(study), "--alpha", "7"], 2, "alpha is 7"),
        "a bad kind": (["profile", data, "--client", "n", "--kind", "v1=ordinal"], 2, "Choose one of"),
        "a client that is a path": (["profile", data, "--client", "../n"], 2, "Name the file with -o"),
        "overwriting a key": ([*summarize, "north", "-o", str(tmp_path / "precious")], 2, "is something else"),
        "a plan by nobody": (["discover", plan, *summaries(study), "--plan-key", KEY], 6, "who made it"),
        "nothing to sign with": (["keys", "sign", plan], 6, "fedcdh keys new"),
        "bad rows": (["simulate", "-o", str(tmp_path / "s"), "--rows", "1,2"], 2, "one for each of the 3 sites"),
        "bad sites": (["simulate", "-o", str(tmp_path / "s"), "--sites", "../up"], 2, "names of folders"),
        "not a truth": (
            ["compare", str(tmp_path / "not.plan.json"), str(study / "truth.json")],
            3,
            "is not a result or a truth",
        ),
    }


def test_what_goes_wrong_is_said_without_a_traceback(study, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    cases = broken(study, tmp_path)
    before = sorted(path.name for path in tmp_path.rglob("*"))
    for name, (arguments, code, words) in cases.items():
        assert main(arguments) == code, name
        said = capsys.readouterr()
        assert words in said.err, name
        assert "Traceback" not in said.err + said.out, name
        assert code in EXIT_CODES
    assert sorted(path.name for path in tmp_path.rglob("*")) == before  # and nothing was left behind


def test_a_mistake_of_ours_is_called_one(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr("fedcdh.evaluation.demo.hospital_study", lambda seed: 1 / 0)
    assert main(["demo", "-o", str(tmp_path)]) == 70
    assert "ZeroDivisionError: this is an error of the program" in capsys.readouterr().err
    monkeypatch.setenv("FEDCDH_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        main(["demo", "-o", str(tmp_path)])


def test_an_error_names_the_option_if_the_command_has_it(study, here, capsys):
    """The same error of the same function is spelled for who reads it."""
    plan = str(study / "study.plan.json")
    assert main(["discover", plan, *summaries(study), "--alpha", "7"]) == 2
    assert "(option --alpha)" in capsys.readouterr().err
    assert (
        main(["summarize", plan, str(study / "north" / "data.csv"), "--client", "north", "--max-missing-share", "7"])
        == 2
    )
    assert "(option --max-missing-share)" in capsys.readouterr().err
    (here / "d.csv").write_text("v1,v2\n1,2\n", encoding="utf-8")
    assert main(["summarize", plan, "d.csv", "--client", "north"]) == 3
    assert "--variables" not in capsys.readouterr().err  # which only profile has
    assert main(["profile", "d.csv", "--client", "north", "--variables", "age"]) == 3
    assert "(option --variables)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (
            PermissionError(13, "Permission denied", "x"),
            "x cannot be read or written (Permission denied). Choose another",
        ),
        (OSError(28, "No space left on device", "x"), "or delete other files there"),
        (FileExistsError(17, "File exists", "x"), "(File exists). Choose another place."),
        (MemoryError(), "not enough memory"),
        (KeyboardInterrupt(), "Run the command again"),
    ],
)
def test_what_the_system_refuses_is_a_sentence(problem, words, capsys):
    @report_errors
    def command() -> None:
        raise problem

    with pytest.raises(typer.Exit) as stopped:
        command()
    assert stopped.value.exit_code == (130 if isinstance(problem, KeyboardInterrupt) else 8)
    assert words in capsys.readouterr().err
