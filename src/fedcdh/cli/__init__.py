"""The command line, `fedcdh`; the only package that prints.

Each command has a module of its own (`profile`, `summarize`, `plan`, `discover`, `aggregate`, ...), which imports the
rest of the package only when it runs. `_registry` lists the commands, `_lazy_group` loads them and writes their help,
`_options` holds the options that several share, `_errors` turns errors into sentences and exit codes.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from fedcdh.cli._console import OutputError, discard_stream, tolerate_encoding_errors, write_error
from fedcdh.cli._errors import EXIT_CODES, describe_file_error
from fedcdh.cli._lazy_group import CONTEXT_SETTINGS, LazyGroup
from fedcdh.cli._registry import COMMANDS
from fedcdh.errors import ExitCode

__all__ = ["EXIT_CODES", "app", "main"]


class _Overview(LazyGroup):
    """The group of all commands."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.set_entries(COMMANDS)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the exit codes."""
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(code), meaning) for code, meaning in EXIT_CODES.items()])
        formatter.write_paragraph()
        formatter.write_text("`fedcdh COMMAND --help` shows the options of a command, with examples.")


app = typer.Typer(
    name="fedcdh",
    cls=_Overview,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings=CONTEXT_SETTINGS,
)
"""The typer application."""


def _show_version(wanted: bool) -> None:
    if wanted:
        import fedcdh

        typer.echo(f"fedcdh {fedcdh.__version__}")
        raise typer.Exit


@app.callback()
def _fedcdh(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Find causes, and what differs between sites, from one summary per site."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    Parameters
    ----------
    arguments : sequence of str, optional
        The words after `fedcdh`. Default: those of the process.

    Returns
    -------
    int
        The exit code; `EXIT_CODES` says what each means.

    Examples
    --------
    >>> main(["experiment", "--help"])  # doctest: +ELLIPSIS
    Usage: fedcdh experiment [OPTIONS] NAME
    ...
    0
    """
    tolerate_encoding_errors()
    try:
        app(args=None if arguments is None else list(arguments), prog_name="fedcdh")
    except SystemExit as stopped:
        return stopped.code if isinstance(stopped.code, int) else int(stopped.code is not None)
    except BrokenPipeError:  # the reader of --help, such as head, has closed the pipe
        discard_stream(sys.stdout)
    except OSError as problem:  # --help or --version on a full disk
        discard_stream(sys.stdout)
        write_error(describe_file_error(OutputError(problem.errno, problem.strerror)))
        return int(ExitCode.FILES)
    return 0
