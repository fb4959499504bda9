"""What a person sees: sentences and tables on the screen, one JSON object for programs, bars while work goes on."""

from __future__ import annotations

import io
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import NoneType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

SECONDS_BETWEEN_LINES = 10.0
"""Seconds, where nobody watches."""

RowProgress = Callable[[int, float], None]
"""Called with the rows of a batch and the share of all work that is done."""


@dataclass(frozen=True)
class Output:
    """How much is said, and to whom: a quiet command says nothing but errors, one for programs only its result."""

    quiet: bool = False
    as_json: bool = False

    def say(self, *sentences: str) -> None:
        """Sentences for a person."""
        if not (self.quiet or self.as_json):
            for sentence in sentences:
                _write(f"{to_printable(sentence)}\n")

    def warn(self, sentence: str, *, always: bool = False) -> None:
        """What a person should know, though nothing went wrong; goes to the error stream, never to a pipe."""
        if always or not self.quiet:
            sys.stderr.write(f"fedcdh: note: {to_single_line(sentence)}\n")

    def table(self, heads: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """Columns under their heads, numbers to the right."""
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
        """The one JSON object of this command, for programs."""
        if self.as_json:
            text = json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False, default=list)
            _write(f"{text}\n")

    @contextmanager
    def progress(self, doing: str) -> Iterator[RowProgress]:
        """A bar with rows per second and the time left, from the start again for every pass over the rows."""
        if not self._watched:
            yield _ignore_progress
            return
        columns = (TextColumn("{task.description}"), BarColumn(), _RowRate(), TimeRemainingColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            task, passes, last = bar.add_task(doing, total=1.0, rows=0), 1, 0.0

            def advance(rows: int, share: float) -> None:
                nonlocal passes, last
                if share < last:
                    passes += 1
                    bar.reset(task, description=f"{doing}, pass {passes}", rows=0)
                last = share
                bar.update(task, completed=share, rows=bar.tasks[0].fields["rows"] + rows)

            yield advance

    @contextmanager
    def searching(self, doing: str) -> Iterator[Callable[[int, int], None] | None]:
        """A sign of life while a graph is searched for, with how far the search has come."""
        if not self._watched:
            yield None
            return
        with Console(stderr=True).status(doing) as status:
            yield lambda done, more: status.update(f"{doing}, {more:,} questions")

    @contextmanager
    def counting(self, doing: str, total: int) -> Iterator[Callable[[int], None]]:
        """A bar of files on a terminal; elsewhere a line now and then, for those who read it later."""
        if self.quiet or self.as_json:
            yield lambda done: None
        elif not self._watched:
            yield _ProgressLines(doing, total)
        else:
            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
            with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
                task = bar.add_task(doing, total=total)
                yield lambda done: bar.update(task, completed=done)

    @property
    def _watched(self) -> bool:
        return not (self.quiet or self.as_json) and sys.stderr.isatty()


class _ProgressLines:
    """How far it has come, every ten seconds."""

    def __init__(self, doing: str, total: int) -> None:
        self.doing, self.total, self.last = doing, total, time.monotonic()

    def __call__(self, done: int) -> None:
        if (now := time.monotonic()) - self.last >= SECONDS_BETWEEN_LINES:
            self.last = now
            sys.stderr.write(f"fedcdh: {self.doing}, {done} of {self.total}\n")


class _RowRate(ProgressColumn):
    """Rows so far, and per second."""

    def render(self, task: Task) -> Text:
        rows = task.fields["rows"]
        seconds = task.elapsed or 0.0
        return Text(f"{rows:,} rows, {rows / seconds:,.0f}/s" if seconds else f"{rows:,} rows")


def _ignore_progress(rows: int, share: float) -> None:
    """Progress that nobody watches."""


def to_printable(text: str) -> str:
    """Text that does nothing to a terminal: names come from other people's files."""
    return "".join(letter if letter.isprintable() or letter == "\n" else "\N{REPLACEMENT CHARACTER}" for letter in text)


def to_single_line(text: str) -> str:
    r"""Text whose lines are ours alone: the name of a file may hold anything.

    >>> to_single_line("new\nline.summary")
    'new\\nline.summary'
    """
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode("ascii") for letter in text
    )


def _format_cell(cell: object) -> str:
    return to_printable(f"{cell:.4g}" if isinstance(cell, float) else "" if cell is None else str(cell))


def _write(text: str) -> None:
    """To a reader who may have seen enough, such as head: what has to be done is done all the same."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def tolerate_encoding_errors() -> None:
    """A terminal without arrows shows question marks, and all the rest."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
