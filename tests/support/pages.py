"""Pages of the documentation, played from top to bottom: Python in one namespace, commands in the same folder."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import fedcdh
from fedcdh.errors import MissingDependencyError

ROOT = Path(fedcdh.__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(path for path in DOCS.rglob("*.md") if "_build" not in path.parts)
SCRIPTS = sorted((DOCS / "gallery").glob("*.py"))


def read(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path) -> list[tuple[str, str]]:
    """Language and text of every fenced block, also of those in lists."""
    found = re.findall(r"^( *)```(\w*)\n(.*?)^ *```$", read(page), re.DOTALL | re.MULTILINE)
    return [(language, re.sub(f"^{indent}", "", text, flags=re.MULTILINE)) for indent, language, text in found]


def steps(block: str) -> Iterator[tuple[str, str]]:
    """Commands of a console block and what they print."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        yield command, shown


def as_pattern(shown: str) -> str:
    """What was printed; "..." stands for anything up to the end of the line, a probability for any probability."""
    probability = r" *[<>]?0\.\d\d"
    return "".join(
        "[^\n]*" if piece == "..." else probability if re.fullmatch(probability, piece) else re.escape(piece)
        for piece in re.split(rf"(\.\.\.|{probability})", shown)
    )


def run_command(line: str) -> str:
    """What `fedcdh ...` prints, here in this process; a refusal has to be expected by `|| echo "exit code $?"`."""
    command, _, otherwise = line.partition(" || ")
    program, *words = shlex.split(command)
    assert program == "fedcdh", line
    said = io.StringIO()
    called = mock.patch.object(sys, "argv", ["fedcdh", *words])
    with called, contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        code = _exit_code()
    assert (code != 0) == bool(otherwise), f"{line}\n{said.getvalue()}"
    return said.getvalue() + (f"exit code {code}\n" if otherwise else "")


def _exit_code() -> int:
    from fedcdh.cli import main

    try:
        return main() or 0
    except SystemExit as stop:
        return int(stop.code or 0)


def play(page: Path, *, commands: bool) -> list[str]:
    """Runs a page in the current folder; what commands print has to be what the page says.

    Blocks that need a library that is not here are left out; what they need is returned.
    """
    names: dict[str, object] = {}
    missing: list[str] = []
    for language, text in blocks(page):
        if language == "python":
            try:
                exec(compile(text, page.name, "exec"), names)
            except (ModuleNotFoundError, MissingDependencyError) as lacking:
                missing.append(str(lacking))
        elif language == "console" and commands:
            for command, shown in steps(text):
                said = run_command(command)
                assert re.fullmatch(as_pattern(shown), said), f"$ {command}\n{said}\n--- the page says:\n{shown}"
    return missing


def commands_in(page: Path) -> list[tuple[str, str]]:
    """Name and words of every `fedcdh ...` in code, up to the end of the line."""
    return re.findall(r"(?:`|\$ |^ +|&& )fedcdh +([a-z][a-z-]{2,})([^`\n|#&)]*)", read(page), re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """Of the headings that can be linked to, as MyST and GitHub spell them."""
    text = re.sub(r"^ *```.*?^ *```$", "", read(page), flags=re.DOTALL | re.MULTILINE)
    titles = re.findall(r"^#{1,3} (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-") for title in titles}


def listed_in(page: Path) -> list[Path]:
    """The pages in the tables of contents of this one, without their endings."""
    tables = re.findall(r"^```\{toctree\}\n(.*?)^```$", read(page), re.DOTALL | re.MULTILINE)
    return [page.parent / line for table in tables for line in table.split("\n") if line and not line.startswith(":")]
