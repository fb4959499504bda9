"""Exit codes, and the one sentence that a person reads when a command fails: never a traceback."""

from __future__ import annotations

import errno
import functools
import inspect
import os
from collections.abc import Callable, Collection
from typing import ParamSpec

import typer

from fedcdh.cli._console import OutputError, write_error
from fedcdh.errors import ExitCode, FedCDHError

Parameters = ParamSpec("Parameters")

EXIT_CODES = {code.value: code.meaning for code in ExitCode}
"""Exit codes and their meanings."""
_NO_ROOM_ERRNOS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_COMMAND_PARAMETERS = {
    "distributed": "distributed_noise",
    "family": "method",
    "kinds": "kind",
    "rename": "column_map",
    "replicates": "bootstrap",
}
"""Parameters that commands call otherwise than Python functions do."""


def spell_option(parameter: str) -> str:
    """Return the option of a Python parameter.

    >>> spell_option("max_missing_share")
    'option --max-missing-share'
    """
    return f"option --{_COMMAND_PARAMETERS.get(parameter, parameter).replace('_', '-')}"


def describe_error(problem: FedCDHError, options: Collection[str]) -> str:
    """Return the text of an error; name the option to change if the command has it.

    >>> describe_error(FedCDHError("alpha is 7.", parameter="alpha"), ["plan", "alpha"])
    'alpha is 7. (option --alpha)'
    >>> describe_error(FedCDHError("alpha is 7.", parameter="alpha"), ["plan"])
    'alpha is 7.'
    """
    if problem.parameter is None or _COMMAND_PARAMETERS.get(problem.parameter, problem.parameter) not in options:
        return problem.message
    return problem.text(spell_option)


def report_errors(command: Callable[Parameters, None]) -> Callable[Parameters, None]:
    """Wrap a command so that its errors become sentences and exit codes."""
    options = inspect.signature(command).parameters

    @functools.wraps(command)
    def guarded(*args: Parameters.args, **kwargs: Parameters.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except FedCDHError as problem:
            _exit_with(describe_error(problem, options), problem.exit_code)
        except KeyboardInterrupt:
            _exit_with("Interrupted. No partial file is left. Run the command again.", ExitCode.INTERRUPTED)
        except OSError as problem:
            _exit_with(describe_file_error(problem), ExitCode.FILES)
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


def describe_file_error(problem: OSError) -> str:
    """Return what was found, what was expected and what to do.

    >>> describe_file_error(OSError(errno.ENOSPC, "No space left on device", "a.summary"))  # doctest: +ELLIPSIS
    'The file a.summary cannot be read or written (No space left on device). Expected a place with room for it. ...'
    """
    if isinstance(problem, OutputError):
        return (
            f"Standard output cannot be written ({problem.strerror or problem}). Expected room for all that the "
            "command prints. Send its output to another place, or delete other files there, and run it again."
        )
    where = f" {problem.filename}" if problem.filename else ""
    advice = "Choose another place."
    if isinstance(problem, PermissionError):
        advice = "Choose another place, or change the permissions."
    elif problem.errno in _NO_ROOM_ERRNOS:
        advice = "Expected a place with room for it. Choose another place, or delete other files there."
    return f"The file{where} cannot be read or written ({problem.strerror or problem}). {advice}"


def _exit_with(sentence: str, code: ExitCode) -> None:
    write_error(sentence)
    raise typer.Exit(int(code))
