"""Exit codes, and the one sentence that a person reads when a command fails: never a traceback."""

from __future__ import annotations

import errno
import functools
import os
import sys
from collections.abc import Callable
from typing import ParamSpec

import typer

from fedcdh.cli._console import to_printable
from fedcdh.errors import ExitCode, FedCDHError

Parameters = ParamSpec("Parameters")

EXIT_CODES = {code.value: code.meaning for code in ExitCode}
"""Exit codes and their meanings."""
_OPTIONS = {
    "kinds": "--kind NAME=KIND",
    "rename": "--column-map FILE",
    "bootstrap": "--bootstrap B",
    "replicates": "--bootstrap B",
    "expected_rows": "--expected-rows N",
    "rows": "--rows N",
    "variables": "--variables A,B,...",
    "tables": "DATA",
}
"""Options whose names are not those of the Python parameters."""


def spell_option(parameter: str) -> str:
    """Return the option of a Python parameter.

    >>> spell_option("max_missing_share")
    'option --max-missing-share'
    """
    return f"option {_OPTIONS.get(parameter, '--' + parameter.replace('_', '-'))}"


def report_errors(command: Callable[Parameters, None]) -> Callable[Parameters, None]:
    """Wrap a command so that its errors become sentences and exit codes."""

    @functools.wraps(command)
    def guarded(*args: Parameters.args, **kwargs: Parameters.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except FedCDHError as problem:
            _exit_with(problem.text(spell_option), problem.exit_code)
        except KeyboardInterrupt:
            _exit_with("Interrupted. No partial file is left. Run the command again.", ExitCode.INTERRUPTED)
        except OSError as problem:
            _exit_with(_describe_file_error(problem), ExitCode.FILES)
        except MemoryError:
            _exit_with(
                "There is not enough memory. Use a machine with more, or fewer variables or --workers.", ExitCode.FILES
            )
        except Exception as problem:
            if os.environ.get("FEDCDH_DEBUG"):
                raise
            _exit_with(
                f"{type(problem).__name__}: this is an error of the program. Set FEDCDH_DEBUG=1 to see where it is, "
                "and report it.",
                ExitCode.INTERNAL,
            )

    return guarded


def _describe_file_error(problem: OSError) -> str:
    where = f" {problem.filename}" if problem.filename else ""
    advice = "Choose another place."
    if isinstance(problem, PermissionError):
        advice = "Choose another place, or change the permissions."
    elif problem.errno in (errno.ENOSPC, errno.EDQUOT):
        advice = "Choose another place, or delete other files there."
    return f"The file{where} cannot be read or written ({problem.strerror or problem}). {advice}"


def _exit_with(sentence: str, code: ExitCode) -> None:
    sys.stderr.write(f"fedcdh: {to_printable(sentence)}\n")
    raise typer.Exit(int(code))
