"""Progress bars on a terminal. Imported only where there is one, because rich takes time to load."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

from fedcdh.cli._console import RowProgress


@contextmanager
def row_bar(task_name: str) -> Iterator[RowProgress]:
    """Show rows, rows per second and the time left."""
    columns = (TextColumn("{task.description}"), BarColumn(), _RowRate(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task, passes, last = bar.add_task(task_name, total=1.0, rows=0), 1, 0.0

        def advance(rows: int, share: float) -> None:
            nonlocal passes, last
            if share < last:
                passes += 1
                bar.reset(task, description=f"{task_name}, pass {passes}", rows=0)
            last = share
            bar.update(task, completed=share, rows=bar.tasks[0].fields["rows"] + rows)

        yield advance


@contextmanager
def search_spinner(task_name: str) -> Iterator[Callable[[int, int], None]]:
    """Show how many tests the current step of a search has."""
    with Console(stderr=True).status(task_name) as status:
        yield lambda done, more: status.update(f"{task_name}, {more:,} tests")


@contextmanager
def file_bar(task_name: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show how many of all files are done."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(task_name, total=total)
        yield lambda done: bar.update(task, completed=done)


class _RowRate(ProgressColumn):
    """The rows so far, and per second."""

    def render(self, task: Task) -> Text:
        """Return the text of the column."""
        rows = task.fields["rows"]
        seconds = task.elapsed or 0.0
        return Text(f"{rows:,} rows, {rows / seconds:,.0f}/s" if seconds else f"{rows:,} rows")
