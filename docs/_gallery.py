"""The gallery: scripts that are pages. `make docs` runs them and puts what they print and draw beneath their code.

A script is cut into cells by lines that read `# %%`. The comment at the head of a cell is its text (in the first one,
the docstring), the rest its code. All cells of a script share their names, in an empty folder; a picture that is saved
there is shown below its cell. Nothing that was printed or drawn is kept in the repository, so no page can be out of
date, and a script that fails fails the build.
"""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
import shutil
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = "gallery"


@dataclass(frozen=True)
class Cell:
    """A piece of a script: what it says, and what it does."""

    text: str
    code: str
    line: int  # of the script, on which the code begins


@dataclass(frozen=True)
class Shown:
    """A cell that was run, with what came of it."""

    cell: Cell
    printed: str
    pictures: tuple[Path, ...]


def cells_of(script: str) -> Iterator[Cell]:
    """The script, cut into cells."""
    line = 1
    for piece in re.split(r"^# %%\n", script, flags=re.MULTILINE):
        lines = piece.splitlines(keepends=True)
        if line == 1:
            first, text = ast.parse(piece).body[0].end_lineno or 0, ast.get_docstring(ast.parse(piece)) or ""
        else:
            first = next((i for i, said in enumerate(lines) if not said.startswith("#")), len(lines))
            text = "".join(said[1:].removeprefix(" ") for said in lines[:first])
        yield Cell(text.strip(), "".join(lines[first:]), line + first)
        line += len(lines) + 1


def run(script: Path, folder: Path) -> list[Shown]:
    """Runs a script in this folder, which is emptied first."""
    import matplotlib
    from matplotlib import pyplot

    matplotlib.use("Agg")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    names: dict[str, Any] = {"__name__": "__main__", "__file__": str(script)}
    shown = []
    with contextlib.chdir(folder), warnings.catch_warnings():
        warnings.simplefilter("error")
        for cell in cells_of(script.read_text(encoding="utf-8")):
            before, printed = {*folder.iterdir()}, io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile("\n" * (cell.line - 1) + cell.code, str(script), "exec"), names)
            shown.append(Shown(cell, printed.getvalue(), tuple(sorted({*folder.iterdir()} - before))))
    pyplot.close("all")
    return shown


def page(shown: list[Shown], script: Path, pictures_from: str) -> str:
    """The page in MyST: texts, code, what was printed, pictures."""
    parts = []
    for run_cell in shown:
        parts.append(run_cell.cell.text)
        if code := run_cell.cell.code.strip():
            parts.append(f"```python\n{code.replace('  # fmt: skip', '')}\n```")
        if run_cell.printed:
            parts.append(f"```{{code-block}} text\n:class: printed\n\n{run_cell.printed.rstrip()}\n```")
        parts += [
            f"```{{image}} {pictures_from}/{path.name}\n:alt: {path.stem.replace('_', ' ')}\n```"
            for path in run_cell.pictures
        ]
    parts.append(f"{{download}}`The script <{script.name}>`, as it was run for this page.")
    return "\n\n".join(parts) + "\n"


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("env-get-outdated", _always)
    app.connect("source-read", _read)
    return {"parallel_read_safe": False}


def _always(app: Any, env: Any, *changes: Any) -> list[str]:
    """Pages of the gallery are made anew every time: the program may have changed, though they did not."""
    return [name for name in env.found_docs if _is_example(app, name)]


def _read(app: Any, name: str, content: list[str]) -> None:
    if not _is_example(app, name):
        return
    script = Path(app.srcdir, name).with_suffix(".py")
    folder = Path(app.doctreedir, FOLDER, script.stem)
    shown = run(script, folder)
    content[0] = page(shown, script, Path(os.path.relpath(folder, script.parent)).as_posix())


def _is_example(app: Any, name: str) -> bool:
    return name.startswith(f"{FOLDER}/") and Path(app.srcdir, name).with_suffix(".py").exists()
