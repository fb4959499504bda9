"""The documentation: links lead somewhere, code and commands do what the pages say, every page can be found."""

from __future__ import annotations

import importlib.util
import json
import re
import sys

import pages
import pytest
from pages import DOCS, PAGES, ROOT, SCRIPTS

README = ROOT / "README.md"
WITH_CODE = [
    page
    for page in (README, *PAGES)
    if any(language == "python" for language, _ in pages.blocks(page))
    and page.name != "exports.md"  # block by block in test_exports_page.py, as libraries allow
]
WITH_COMMANDS = DOCS / "how-to"  # played here; the tutorial, which needs a shell, in test_tutorial.py


def gallery():
    """docs/_gallery.py, which is no module of a package."""
    found = importlib.util.spec_from_file_location("_gallery", DOCS / "_gallery.py")
    module = sys.modules["_gallery"] = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


@pytest.fixture
def empty_folder(tmp_path, monkeypatch):
    """Where a page is played: no keys, no policy and no settings of whoever runs the tests."""
    for name in ("FEDCDH_KEY", "FEDCDH_POLICY", "FEDCDH_PASSPHRASE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("MPLBACKEND", "Agg")
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize("page", [README, *PAGES, *SCRIPTS], ids=pages.name_of)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", pages.read(page)):
        path, _, anchor = target.partition("#")
        if path.startswith("https://"):
            continue
        there = page if not path else page.parent / path
        assert there.exists(), target
        assert not anchor or anchor in pages.anchors(there), target


@pytest.mark.parametrize("page", WITH_CODE, ids=pages.name_of)
def test_pages_play(page, empty_folder):
    missing = pages.play(page, commands=page.parent == WITH_COMMANDS)
    if missing:
        pytest.skip(f"not all of it was run: {'; '.join(missing)}")


@pytest.mark.parametrize("script", SCRIPTS, ids=pages.name_of)
def test_the_gallery_runs(script, empty_folder):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    pytest.importorskip("igraph", reason="igraph is not installed")
    shown = gallery().run(script, empty_folder / "pictures")
    assert any(cell.printed for cell in shown)
    assert any(cell.pictures for cell in shown)
    assert "What one learns" in shown[-1].cell.text
    _check_notebook(gallery().notebook(shown), shown)
    said = gallery().page(shown, script, "pictures")
    assert all(f"pictures/{picture.name}" in said for cell in shown for picture in cell.pictures)


def _check_notebook(text, shown):
    """Every cell, once and in order, in the format that Jupyter reads."""
    found = json.loads(text)
    sources = [cell["source"] for cell in found["cells"]]
    parts = [part.strip() for one in shown for part in (one.cell.text, one.cell.code)]
    assert sources == [part for part in parts if part]
    assert len({cell["id"] for cell in found["cells"]}) == len(sources)
    assert (found["nbformat"], found["nbformat_minor"]) == (4, 5)


@pytest.mark.slow
def test_the_first_notebook_runs_in_jupyter(empty_folder):
    """The notebook that the first page offers, in a kernel of its own: the same graph and the same effect."""
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed (pip install nbclient ipykernel)")
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed (pip install nbclient ipykernel)")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed (pip install nbclient ipykernel)")
    script = DOCS / "gallery" / "first_study.py"
    shown = gallery().run(script, empty_folder / "run")
    notebook = nbformat.reads(gallery().notebook(shown), as_version=4)
    nbformat.validate(notebook)
    expected = [cell.get("outputs") for cell in notebook.cells]
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(empty_folder)}}).execute()
    for cell, outputs in zip(notebook.cells, expected, strict=True):
        assert _text_of(cell.get("outputs") or ()) == _text_of(outputs or ())
    assert (empty_folder / "study.html").exists()


def _text_of(outputs):
    """Return the printed text and the HTML of values; pictures are drawn by other programs in a notebook."""
    printed = "".join(one["text"] for one in outputs if one["output_type"] == "stream" and one["name"] == "stdout")
    return printed, [one["data"]["text/html"] for one in outputs if "text/html" in one.get("data", {})]


@pytest.mark.parametrize("page", [README, *PAGES], ids=pages.name_of)
def test_commands_and_options_exist(page):
    typer = pytest.importorskip("typer", reason="typer is not installed")
    from fedcdh.cli import app

    commands = typer.main.get_command(app).commands
    for name, rest in pages.commands_in(page):
        assert name in commands, f"fedcdh {name}"
        command = commands[name]
        if hasattr(command, "commands") and rest.split():  # a group, as of fedcdh ledger show
            within = rest.split()[0]
            assert within in command.commands, f"fedcdh {name} {within}"
            command = command.commands[within]
        known = {option for parameter in command.params for option in parameter.opts} | {"--help", "-h"}
        assert {*re.findall(r"(?<!\S)--?[a-z][a-z-]*", rest)} <= known, f"fedcdh {name}{rest}"


def test_every_page_is_in_one_table_of_contents():
    listed = [entry for page in PAGES for entry in pages.listed_in(page)]
    here = [path.with_suffix("") for path in (*PAGES, *SCRIPTS) if path != DOCS / "index.md"]
    assert sorted(listed) == sorted(here)
