"""The documentation: links lead somewhere, code and commands do what the pages say, every page can be found."""

from __future__ import annotations

import importlib.util
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
    said = gallery().page(shown, script, "pictures")
    assert all(f"pictures/{picture.name}" in said for cell in shown for picture in cell.pictures)


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
