"""The overview of commands agrees with the commands."""

from __future__ import annotations

import inspect
import pkgutil
import re

import pytest
from pages import DOCS

import fedcdh
from fedcdh import cli
from fedcdh.cli import EXIT_CODES, _registry, main
from fedcdh.cli._lazy_group import CommandEntry, build_command
from fedcdh.cli._registry import COMMANDS


def leaves() -> dict[str, CommandEntry]:
    """Every command by all its words."""
    found: dict[str, CommandEntry] = {}
    for name, entry in COMMANDS.items():
        module, _, attribute = entry.target.partition(":")
        if module.endswith("_registry"):
            found |= {f"{name} {word}": one for word, one in getattr(_registry, attribute).items()}
        else:
            found[name] = entry
    return found


@pytest.mark.parametrize(("words", "entry"), leaves().items())
def test_the_line_of_a_command_is_the_first_line_of_its_help(words, entry, capsys):
    assert main([*words.split(), "--help"]) == 0
    shown = capsys.readouterr().out
    assert entry.summary in shown.splitlines()
    assert f"fedcdh {words}" in shown.split("For example:")[1]
    assert "<bool>" not in shown


@pytest.mark.parametrize(("words", "entry"), leaves().items())
def test_every_parameter_is_described_in_one_plain_sentence(words, entry):
    command = build_command(words.split()[-1], entry)
    for parameter in command.params:
        flag = getattr(parameter, "is_flag", False)
        assert parameter.help, parameter.name
        assert parameter.help[0].isupper() or parameter.help.startswith(("truth", "`")), parameter.help
        assert parameter.help.endswith((".", "...")), parameter.help
        assert len(parameter.help) <= 110, parameter.help
        assert flag or parameter.metavar, parameter.name


def test_every_module_of_a_command_is_listed():
    modules = {one.name for one in pkgutil.iter_modules(cli.__path__) if not one.name.startswith("_")}
    assert {entry.target.partition(":")[0].rpartition(".")[2] for entry in leaves().values()} == modules


def test_the_overview_names_every_command_and_exit_code(capsys):
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert [name for name, entry in COMMANDS.items() if not re.search(rf"^  {name} +\S", shown, re.MULTILINE)] == []
    positions = [shown.index(title) for title in ("At a site:", "At the coordinator:", "Tools:", "Exit codes:")]
    assert positions == sorted(positions)
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"fedcdh {fedcdh.__version__}\n"
    page = (DOCS / "command-line.md").read_text(encoding="utf-8")
    assert [code for code, meaning in EXIT_CODES.items() if f"| {code} | {meaning} |" not in page] == []


def test_every_command_is_on_the_page_of_commands():
    page = (DOCS / "command-line.md").read_text(encoding="utf-8")
    assert [words for words in leaves() if f"fedcdh {words}" not in page] == []


def test_commands_are_functions_with_a_docstring():
    for entry in leaves().values():
        module, _, attribute = entry.target.partition(":")
        function = getattr(__import__(module, fromlist=[attribute]), attribute)
        assert inspect.isfunction(function)
        assert (inspect.getdoc(function) or "").startswith(entry.summary)
