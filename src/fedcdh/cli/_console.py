"""Output for a person: sentences, tables and progress bars; for programs, one JSON object."""

from __future__ import annotations

import io
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import Any, TextIO

SECONDS_BETWEEN_LINES = 10.0
"""Interval of progress lines where there is no terminal."""

RowProgress = Callable[[int, float], None]
"""Called with the rows of a batch and the share of all work that is done."""


@dataclass(frozen=True)
class Output:
    """The output of a command: everything, errors only (quiet), or one JSON object."""

    quiet: bool = False
    as_json: bool = False

    def say(self, *sentences: str) -> None:
        """Print sentences for a person."""
        if not (self.quiet or self.as_json):
            for sentence in sentences:
                _write(f"{to_printable(sentence)}\n")

    def say_written(self, paths: Sequence[Path], note: str = "") -> None:
        """Print which files were written; of many, the first two and the last."""
        shown = [str(path) for path in paths]
        if len(shown) > 4:
            shown = [*shown[:2], f"{len(shown) - 2} more up to {shown[-1]}"]
        self.say(f"Wrote {' and '.join(shown)}{note}.")

    def warn(self, sentence: str, *, always: bool = False) -> None:
        """Print a note to standard error, where it does not disturb a pipe."""
        if always or not self.quiet:
            sys.stderr.write(f"fedcdh: note: {to_single_line(sentence)}\n")

    def table(self, heads: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """Print columns under their heads, with numbers to the right."""
        numeric = [all(isinstance(cell, (int, float, NoneType)) for cell in cells) for cells in zip(*rows, strict=True)]
        texts = [list(heads), *([_format_cell(cell) for cell in row] for row in rows)]
        widths = [max(map(len, cells)) for cells in zip(*texts, strict=True)]
        for row in texts:
            cells = [
                cell.rjust(width) if right else cell.ljust(width)
                for cell, width, right in zip(row, widths, numeric or [False] * len(widths), strict=True)
            ]
            self.say("  ".join(cells).rstrip())

    def result(self, document: Mapping[str, Any]) -> None:
        """Print the JSON object of this command, if programs asked for it."""
        if self.as_json:
            text = json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False, default=list)
            _write(f"{text}\n")

    @contextmanager
    def progress(self, task_name: str) -> Iterator[RowProgress]:
        """Show a bar with rows per second and the time left; it starts again for every pass over the rows."""
        if not self._on_terminal:
            yield _ignore_progress
            return
        from fedcdh.cli._progress_bars import row_bar

        with row_bar(task_name) as advance:
            yield advance

    @contextmanager
    def search_status(self, task_name: str) -> Iterator[Callable[[int, int], None] | None]:
        """Show how many tests a search has asked for."""
        if not self._on_terminal:
            yield None
            return
        from fedcdh.cli._progress_bars import search_spinner

        with search_spinner(task_name) as update:
            yield update

    @contextmanager
    def file_progress(self, task_name: str, total: int) -> Iterator[Callable[[int], None]]:
        """Show a bar of files on a terminal; elsewhere, print a line every ten seconds."""
        if self.quiet or self.as_json:
            yield lambda done: None
        elif not self._on_terminal:
            yield _ProgressLines(task_name, total)
        else:
            from fedcdh.cli._progress_bars import file_bar

            with file_bar(task_name, total) as update:
                yield update

    @property
    def _on_terminal(self) -> bool:
        return not (self.quiet or self.as_json) and sys.stderr.isatty()


class _ProgressLines:
    """Lines of progress, one every ten seconds."""

    def __init__(self, task_name: str, total: int) -> None:
        self.task_name, self.total, self.last = task_name, total, time.monotonic()

    def __call__(self, done: int) -> None:
        if (now := time.monotonic()) - self.last >= SECONDS_BETWEEN_LINES:
            self.last = now
            sys.stderr.write(f"fedcdh: {self.task_name}, {done} of {self.total}\n")


def _ignore_progress(rows: int, share: float) -> None:
    """Show nothing."""


def to_printable(text: str) -> str:
    """Replace control characters: names come from other people's files and must not steer the terminal."""
    return "".join(letter if letter.isprintable() or letter == "\n" else "\N{REPLACEMENT CHARACTER}" for letter in text)


def to_single_line(text: str) -> str:
    r"""Escape line breaks and control characters.

    >>> to_single_line("new\nline.summary")
    'new\\nline.summary'
    """
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode("ascii") for letter in text
    )


def _format_cell(cell: object) -> str:
    return to_printable(f"{cell:.4g}" if isinstance(cell, float) else "" if cell is None else str(cell))


class OutputError(OSError):
    """Standard output cannot be written, for example because the disk is full."""


def _write(text: str) -> None:
    """Write to standard output; go on with the command if its reader, such as `head`, has closed the pipe."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        discard_stream(sys.stdout)
    except OSError as problem:
        discard_stream(sys.stdout)
        raise OutputError(problem.errno, problem.strerror) from None


def write_error(sentence: str) -> None:
    """Write a sentence to standard error. If that fails as well, only the exit code is left to report the error."""
    try:
        sys.stderr.write(f"fedcdh: {to_printable(sentence)}\n")
        sys.stderr.flush()
    except OSError:
        discard_stream(sys.stderr)


def discard_stream(stream: TextIO) -> None:
    """Let a stream that cannot be written lead nowhere: Python writes the rest at its end, and would fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def tolerate_encoding_errors() -> None:
    """Print a question mark for each character that the terminal cannot show."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
