"""The gallery: scripts that are pages. `make docs` runs them and puts what they print and draw beneath their code.

A script is cut into cells by lines that read `# %%`. The comment at the head of a cell is its text (in the first one,
the docstring), the rest its code. All cells of a script share their names, in an empty folder; a picture that is saved
there is shown below its cell, and so is the value of a last line that shows itself in notebooks. Nothing that was
printed or drawn is kept in the repository, so no page can be out of date, and a script that fails fails the build.

Each page offers its script and the same cells as a Jupyter notebook, with what came of them.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import re
import shutil
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = "gallery"
PICTURES = (".svg", ".png")
THUMBNAILS = "<!-- thumbnails -->"
_SHOWN: dict[str, list[Shown]] = {}  # by the name of the script


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
    html: str = ""  # of the value of its last line


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
                html = _run_cell(cell, script, names)
            new = (path for path in folder.iterdir() if path not in before and path.suffix in PICTURES)
            shown.append(Shown(cell, printed.getvalue(), tuple(sorted(new)), html))
    pyplot.close("all")
    return shown


def _run_cell(cell: Cell, script: Path, names: dict[str, Any]) -> str:
    """Runs a cell, and returns the HTML of the value of its last line, where it has some, as a notebook does."""
    tree = ast.parse("\n" * (cell.line - 1) + cell.code, str(script))
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, str(script), "exec"), names)
    if last is None:
        return ""
    value = eval(compile(ast.Expression(last.value), str(script), "eval"), names)
    return value._repr_html_() if hasattr(value, "_repr_html_") else ""


def notebook(shown: list[Shown]) -> str:
    """The same cells as a Jupyter notebook, with what they printed and showed; pictures come when it is run."""
    cells: list[dict[str, Any]] = []
    for run_cell in shown:
        if run_cell.cell.text:
            cells.append({"cell_type": "markdown", "metadata": {}, "source": run_cell.cell.text})
        if code := run_cell.cell.code.strip():
            number = 1 + sum(cell["cell_type"] == "code" for cell in cells)
            made = {"execution_count": number, "outputs": list(_outputs(run_cell, number))}
            cells.append({"cell_type": "code", "metadata": {}, "source": code, **made})
    numbered = [{"id": f"cell-{number}", **cell} for number, cell in enumerate(cells)]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    document = {"cells": numbered, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def _outputs(run_cell: Shown, number: int) -> Iterator[dict[str, Any]]:
    if run_cell.printed:
        yield {"output_type": "stream", "name": "stdout", "text": run_cell.printed}
    if run_cell.html:
        data = {"text/html": run_cell.html}
        yield {"output_type": "execute_result", "execution_count": number, "data": data, "metadata": {}}


def page(shown: list[Shown], script: Path, pictures_from: str) -> str:
    """The page in MyST: texts, code, what was printed, pictures."""
    parts = []
    for run_cell in shown:
        parts.append(run_cell.cell.text)
        if code := run_cell.cell.code.strip():
            parts.append(f"```python\n{code.replace('  # fmt: skip', '')}\n```")
        if run_cell.printed:
            parts.append(f"```{{code-block}} text\n:class: printed\n\n{run_cell.printed.rstrip()}\n```")
        if run_cell.html:
            parts.append(f"````{{raw}} html\n<div class=\"shown\">\n{run_cell.html}\n</div>\n````")
        parts += [
            f"```{{image}} {pictures_from}/{path.name}\n:alt: {path.stem.replace('_', ' ')}\n```"
            for path in run_cell.pictures
        ]
    offered = f"{{download}}`a notebook <{pictures_from}/{script.stem}.ipynb>`"
    parts.append(f"As it was run for this page: {{download}}`the script <{script.name}>`, and {offered}.")
    return "\n\n".join(parts) + "\n"


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("builder-inited", _run_all)
    app.connect("env-get-outdated", _always)
    app.connect("source-read", _read)
    return {"parallel_read_safe": False}


def _run_all(app: Any) -> None:
    """Every script is run before the first page is read: the index shows their pictures."""
    for script in sorted(Path(app.srcdir, FOLDER).glob("*.py")):
        folder = Path(app.doctreedir, FOLDER, script.stem)
        _SHOWN[script.stem] = run(script, folder)
        (folder / f"{script.stem}.ipynb").write_text(notebook(_SHOWN[script.stem]), encoding="utf-8")


def thumbnails(shown: dict[str, list[Shown]], pictures_from: str) -> str:
    """The last picture of every script, small, as a link to its page."""
    parts = []
    for name, cells in shown.items():
        title = cells[0].cell.text.splitlines()[0].lstrip("# ")
        pictures = [picture for one in cells for picture in one.pictures]
        if pictures:
            source = f"{pictures_from}/{name}/{pictures[-1].name}"
            parts.append(f"```{{image}} {source}\n:alt: {title}\n:target: {name}.html\n:class: thumbnail\n```")
    return "\n\n".join(parts)


def _always(app: Any, env: Any, *changes: Any) -> list[str]:
    """Pages of the gallery are made anew every time: the program may have changed, though they did not."""
    return [name for name in env.found_docs if _is_example(app, name) or name == f"{FOLDER}/index"]


def _read(app: Any, name: str, content: list[str]) -> None:
    made = Path(os.path.relpath(Path(app.doctreedir, FOLDER), Path(app.srcdir, FOLDER))).as_posix()
    if name == f"{FOLDER}/index":
        content[0] = content[0].replace(THUMBNAILS, thumbnails(_SHOWN, made))
    elif _is_example(app, name):
        script = Path(app.srcdir, name).with_suffix(".py")
        content[0] = page(_SHOWN[script.stem], script, f"{made}/{script.stem}")


def _is_example(app: Any, name: str) -> bool:
    return name.startswith(f"{FOLDER}/") and Path(app.srcdir, name).with_suffix(".py").exists()
