"""Commands are loaded when they are called; old names are answered with the new ones."""

from __future__ import annotations

import subprocess
import sys

import pytest
import typer

from fedcdh.cli import app, main
from fedcdh.cli._lazy_group import RENAMED_COMMANDS, RENAMED_OPTIONS, CommandEntry, build_command
from fedcdh.cli._registry import COMMANDS

HEAVY = {"numpy", "scipy", "pyarrow", "narwhals", "cryptography", "rich", "threadpoolctl"}
PROBE = """
import sys
from fedcdh.cli import main
code = main(sys.argv[1:])
loaded = sorted({name.partition(".")[0] for name in sys.modules})
print(code, *loaded, file=sys.stderr)
"""


def loaded_by(*words: str) -> set[str]:
    run = subprocess.run([sys.executable, "-c", PROBE, *words], capture_output=True, text=True, check=True)
    code, *modules = run.stderr.split()
    assert code == "0", run.stdout
    return set(modules)


@pytest.mark.parametrize("words", ["--version", "--help", "summarize --help", "plan --help", "keys --help"])
def test_help_loads_no_heavy_library(words):
    assert HEAVY & loaded_by(*words.split()) == set()


def test_version_loads_no_command():
    run = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "fedcdh", "--help"], capture_output=True, text=True, check=True
    )
    loaded = {line.rsplit("|", 1)[1].strip() for line in run.stderr.splitlines() if "fedcdh.cli" in line}
    assert {name for name in loaded if not name.rpartition(".")[2].startswith("_")} == {"fedcdh.cli"}


def test_every_command_but_none_of_its_helpers_is_loaded(capsys):
    """All help together: what a command needs to say about itself is light."""
    code = "from fedcdh.cli import main\nimport sys\n"
    code += "".join(f"main({[name, '--help']!r})\n" for name in COMMANDS)
    code += "print(sorted({m.partition('.')[0] for m in sys.modules}), file=sys.stderr)\n"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {name for name in HEAVY if f"'{name}'" in run.stderr}


@pytest.mark.parametrize(("old", "new"), RENAMED_COMMANDS.items())
def test_an_old_command_is_answered_with_the_new_one(old, new, capsys):
    assert main([old, "plan.json"]) == 2
    assert f"There is no command '{old}' any more. Write 'fedcdh {new}' instead." in capsys.readouterr().err
    assert main([*new.split(), "--help"]) == 0


@pytest.mark.parametrize(("old", "new"), RENAMED_OPTIONS.items())
def test_an_old_option_is_answered_with_the_new_one(old, new, capsys):
    words = ["plan", "profile.json"] if "together" in old or "accept" in old or "most" in old else ["summarize", "plan"]
    words = ["discover", "plan"] if "conditioning" in old else words
    for given in (old, f"{old}=1"):
        assert main([*words, given, "x"]) == 2
        assert f"There is no option {old} any more. Write {new} instead." in capsys.readouterr().err
    assert main([words[0], "--help"]) == 0
    shown = capsys.readouterr().out
    assert all(option in shown for option in new.split())


def test_after_two_dashes_everything_is_an_argument(capsys):
    assert main(["inspect", "--", "--check"]) != 0
    assert "any more" not in capsys.readouterr().err


def test_a_near_miss_is_answered_with_a_suggestion(capsys):
    assert main(["sumarize"]) == 2
    assert "Did you mean 'summarize'?" in capsys.readouterr().err


def test_shells_can_complete():
    for shell in ("bash", "zsh", "fish"):
        program = "import os, sys\nfrom fedcdh.cli import main\nsys.exit(main([]))"
        environment = {"_FEDCDH_COMPLETE": f"source_{shell}", "PATH": "/usr/bin:/bin"}
        run = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False
        )
        assert "_FEDCDH_COMPLETE" in run.stdout, shell


def test_values_of_methods_are_completed():
    command = build_command("discover", COMMANDS["discover"])
    method = next(each for each in command.params if each.name == "method")
    with command.make_context("discover", [], resilient_parsing=True) as context:
        found = {item.value for item in method.shell_complete(context, "")}
    assert found == {"auto", "evidence", "constraint", "paper"}


def test_a_group_lists_the_commands_of_its_entries(capsys):
    group = typer.main.get_command(app)
    assert group.list_commands(None) == list(COMMANDS)
    assert group.get_command(None, "dance") is None
    one = build_command("compare", CommandEntry("fedcdh.cli.compare:compare_command", "Score."))
    assert one.name == "compare"
