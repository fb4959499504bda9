"""Commands that are imported when they are called, with help in plain text.

`fedcdh --help` and `fedcdh --version` import none of the commands, so they need neither numpy nor pyarrow. The classes
use only what typer and click have in common over several versions.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, NamedTuple

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup

CONTEXT_SETTINGS: dict[str, Any] = {"help_option_names": ["--help", "-h"], "max_content_width": 110}
"""Settings of every command: the names of the help option, and the width of help on a wide terminal."""
_MAX_NAME_WIDTH = 36  # of the left column in help


class CommandEntry(NamedTuple):
    """The place where a command is defined, and its line in the overview."""

    target: str  # "module:function" for a command, "module:MAPPING" for a group of entries
    summary: str
    panel: str = "Commands"


RENAMED_COMMANDS: dict[str, str] = {
    "add": "aggregate",
    "mask": "secure-sum join",
    "masked": "secure-sum run",
    "request": "rounds request",
    "answer": "rounds answer",
    "keygen": "keys new",
    "sign": "keys sign",
    "verify": "keys verify",
}
"""Former names of commands."""
RENAMED_OPTIONS: dict[str, str] = {
    "--check": "--dry-run",
    "--map": "--column-map",
    "--together": "--distributed-noise --honest",
    "--accept-ranges": "--accept-differences",
    "--research": "--no-disclosure-control",
    "--max-dropped": "--max-missing-share",
    "--max-conditioning": "--max-conditioning-size",
    "--most-rounds": "--max-rounds",
    "--most-bytes": "--max-bytes",
    "--most-rows": "--max-rows-per-client",
}
"""Former names of options."""


class _PlainHelp:
    """Help as plain text: usage, sentences, examples as they are typed, one entry per parameter."""

    help: str | None
    get_params: Any

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the usage line without the name of the command."""
        arguments = [_metavar_of(each) for each in self.get_params(ctx) if isinstance(each, TyperArgument)]
        return ["[OPTIONS]", *arguments]

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        """Write the docstring; lines that are indented are examples and keep their form."""
        for paragraph in inspect.cleandoc(self.help or "").split("\n\n"):
            formatter.write_paragraph()
            if paragraph.startswith("  "):
                formatter.write(f"{paragraph}\n")
            else:
                formatter.write_text(paragraph)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments and options, each panel under its title."""
        panels: dict[str, list[tuple[str, str]]] = {}
        for each in self.get_params(ctx):
            if not getattr(each, "hidden", False):
                default_panel = "Arguments" if isinstance(each, TyperArgument) else "Options"
                panel = getattr(each, "rich_help_panel", None) or default_panel
                panels.setdefault(panel, []).append(_help_record(each))
        _write_panels(formatter, panels)


def _write_panels(formatter: Any, panels: Mapping[str, list[tuple[str, str]]]) -> None:
    for title, records in panels.items():
        with formatter.section(title):
            formatter.write_dl(records, col_max=_MAX_NAME_WIDTH)


def _metavar_of(parameter: Any) -> str:
    return str(parameter.metavar or parameter.name.upper())


def _help_record(parameter: Any) -> tuple[str, str]:
    """Return how a parameter is written, and what it does."""
    text = parameter.help or ""
    if isinstance(parameter, TyperArgument):
        return _metavar_of(parameter), text
    names = ", ".join(sorted(parameter.opts, key=len))
    if parameter.is_flag:
        return names, text
    default = parameter.show_default if isinstance(parameter.show_default, str) else parameter.default
    if parameter.required:
        text += "  [required]"
    elif default is not None and parameter.show_default:
        text += f"  [default: {default}]"
    return f"{names} {_metavar_of(parameter)}", text


class HelpfulCommand(_PlainHelp, TyperCommand):
    """A command that answers a former option with the present one."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments; refuse former names of options."""
        known = {name for each in self.params for name in (*each.opts, *each.secondary_opts)}
        for argument in args:
            if argument == "--":
                break
            name = argument.partition("=")[0]
            if name in RENAMED_OPTIONS and name not in known:
                ctx.fail(f"There is no option {name} any more. Write {RENAMED_OPTIONS[name]} instead.")
        return super().parse_args(ctx, args)


class LazyCommands(dict[str, Any]):
    """Commands by name; looking one up imports it."""

    def __init__(self, entries: Mapping[str, CommandEntry]) -> None:
        super().__init__(dict.fromkeys(entries))
        self.entries = entries

    def __getitem__(self, name: str) -> Any:
        return build_command(name, self.entries[name])

    def get(self, name: str, default: Any = None) -> Any:
        """Return the command of this name, or the default."""
        return self[name] if name in self.entries else default


class LazyGroup(_PlainHelp, TyperGroup):
    """A group whose commands are imported when they are called."""

    entries: Mapping[str, CommandEntry] = {}

    def set_entries(self, entries: Mapping[str, CommandEntry]) -> None:
        """State the commands of this group."""
        self.entries = entries
        self.commands = LazyCommands(entries)

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands in the order of the help."""
        return list(self.entries)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the usage line without the name of the group."""
        return ["[OPTIONS]", "COMMAND [ARGS]..."]

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that the arguments begin with; refuse former names of commands."""
        name = args[0]
        if name not in self.entries and not name.startswith("-") and not ctx.resilient_parsing:
            ctx.fail(self._describe_unknown(name, former=ctx.parent is None))
        return super().resolve_command(ctx, args)

    def _describe_unknown(self, name: str, *, former: bool) -> str:
        if former and name in RENAMED_COMMANDS:
            return f"There is no command {name!r} any more. Write 'fedcdh {RENAMED_COMMANDS[name]}' instead."
        near = get_close_matches(name, self.entries, n=1)
        advice = f"Did you mean {near[0]!r}?" if near else "The commands are listed by --help."
        return f"There is no command {name!r}. {advice}"

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options and one line per command; no command is imported for it."""
        panels: dict[str, list[tuple[str, str]]] = {}
        for name, entry in self.entries.items():
            panels.setdefault(entry.panel, []).append((name, entry.summary))
        _write_panels(formatter, panels)
        super().format_options(ctx, formatter)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write nothing: `format_options` has written the commands."""


def build_command(name: str, entry: CommandEntry) -> Any:
    """Import a command or a group of commands and return it."""
    module, _, attribute = entry.target.partition(":")
    found = getattr(importlib.import_module(module), attribute)
    if isinstance(found, Mapping):
        group = LazyGroup(
            name=name,
            help=entry.summary,
            no_args_is_help=True,
            rich_markup_mode=None,
            context_settings=CONTEXT_SETTINGS,
        )
        group.set_entries(found)
        return group
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command(name, cls=HelpfulCommand, context_settings=CONTEXT_SETTINGS)(found)
    return typer.main.get_command(app)
