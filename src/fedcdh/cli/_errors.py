"""Exit codes, and what is said when something fails: one line that says what to do, never a traceback."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from typing import ParamSpec

import typer

from fedcdh.cli._console import to_printable
from fedcdh.errors import ExitCode, FedCDHError

Parameters = ParamSpec("Parameters")


def report_errors(command: Callable[Parameters, None]) -> Callable[Parameters, None]:
    """The same command, whose refusals are sentences and exit codes."""

    @functools.wraps(command)
    def guarded(*args: Parameters.args, **kwargs: Parameters.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except FedCDHError as refusal:
            _exit_with(str(refusal), refusal.exit_code)
        except KeyboardInterrupt:
            _exit_with("interrupted; nothing half-written is left, run the command again", ExitCode.INTERRUPTED)
        except OSError as problem:
            _exit_with(_describe_file_error(problem), ExitCode.FILES)
        except MemoryError:
            _exit_with("there is not enough memory for this", ExitCode.FILES)
        except Exception as problem:
            if os.environ.get("FEDCDH_DEBUG"):
                raise
            what = (
                f"{type(problem).__name__}, a mistake of this program; set FEDCDH_DEBUG=1 to see where, and report it"
            )
            _exit_with(what, ExitCode.INTERNAL)

    return guarded


def _describe_file_error(problem: OSError) -> str:
    where = f" {problem.filename}" if problem.filename else ""
    room = "see to the rights there" if isinstance(problem, PermissionError) else "make room there"
    return f"cannot read or write{where} ({problem.strerror or problem}); choose another place, or {room}"


IN_PYTHON = {
    "variables=[...]": "--variables A,B,...",
    'kinds={...: "categorical"}': "--kind NAME=categorical",
    "kinds=": "--kind ",
    "max_missing_share=": "--max-missing-share SHARE",
    "family=Fourier(width=5)": "--method paper",
    "method='evidence'": "--method evidence",
    ", 1, 2, ... or None": ", 1, 2, ...",
}
"""What messages call things by that are called otherwise here."""


def _exit_with(sentence: str, code: int) -> None:
    for python, here in IN_PYTHON.items():
        sentence = sentence.replace(python, here)
    sys.stderr.write(f"fedcdh: {to_printable(sentence)}\n")
    raise typer.Exit(code)
