"""Progress bars on a terminal."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from fedcdh.cli import _progress_bars
from fedcdh.cli._console import Output
from fedcdh.cli._progress_bars import file_bar, row_bar, search_spinner


@pytest.fixture
def screen(monkeypatch) -> io.StringIO:
    text = io.StringIO()
    monkeypatch.setattr(
        _progress_bars, "Console", lambda stderr: Console(file=text, force_terminal=True, width=100, color_system=None)
    )
    return text


def test_a_second_pass_over_the_rows_starts_again(screen):
    with row_bar("summarize") as advance:
        for share in (0.5, 1.0, 0.5, 1.0):
            advance(100, share)
    assert "summarize, pass 2" in screen.getvalue()
    assert "200 rows" in screen.getvalue()


def test_files_are_counted(screen):
    with file_bar("reading", 3) as update:
        update(2)
    assert "2/3" in screen.getvalue()


def test_a_search_says_how_many_tests_it_has(screen):
    with search_spinner("discover") as update:
        update(0, 1234)


def test_without_a_terminal_nothing_is_drawn(capsys):
    with Output().progress("summarize") as advance:
        advance(10, 1.0)
    with Output().search_status("discover") as update:
        assert update is None
    with Output(quiet=True).file_progress("reading", 2) as count:
        count(1)
    assert capsys.readouterr() == ("", "")
