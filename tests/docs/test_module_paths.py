"""Every module, file and public name that the documentation, the README or a benchmark mentions exists."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pages
import pytest
from pages import DOCS, PAGES, ROOT, SCRIPTS

from fedcdh.errors import MissingDependencyError

SOURCE = ROOT / "src" / "fedcdh"
TEXTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PAGES, *sorted(DOCS.glob("*.py")), *SCRIPTS]
SOURCES = [path for top in ("src", "tests", "tools") for path in sorted((ROOT / top).rglob("*.py"))]
BENCHMARKS = sorted((ROOT / "benchmarks").rglob("*.py"))
NOT_MODULES = {"css", "toml", "git", "log", "summary"}  # endings of file names that begin with "fedcdh."
PLACEHOLDER = "NAME"
EXAMPLES = {"client.py", "server.py", "study/__init__.py", "study/client_app.py", "study/server_app.py", "module.py"}
"""Files that a reader, a program or a test writes."""
LOGGERS = {"fedcdh.site"}


def exists(dotted: str) -> bool:
    """Whether a dotted path leads to a module, or to something that a module holds."""
    parts = dotted.split(".")
    for end in range(len(parts), 0, -1):
        name = ".".join(parts[:end])
        try:
            found: object = importlib.import_module(name)
        except MissingDependencyError:
            return True  # an optional library is not installed
        except ModuleNotFoundError:
            continue
        for part in parts[end:]:
            if not hasattr(found, part):
                return inspect.isclass(found) and part in getattr(found, "__annotations__", {})
            found = getattr(found, part)
        return True
    return False


def dotted_paths(text: str) -> set[str]:
    """Return `fedcdh.a.b` and `benchmarks.a` as they occur in a text."""
    found = re.findall(r"(?<![\w./-])((?:fedcdh|benchmarks)(?:\.[A-Za-z_]\w*)+)(?!\w|/)", text)
    return {
        path
        for path in found
        if path.split(".")[1] not in NOT_MODULES and path not in LOGGERS and not path.endswith(PLACEHOLDER)
    }


def file_paths(text: str) -> set[str]:
    """Return the paths of Python files, with or without a folder."""
    return {*re.findall(r"(?<![\w*./<-])((?:[\w-]+/)*\w+\.py)\b", text)} - EXAMPLES


def folder_paths(text: str) -> set[str]:
    """Return the folders in backticks that begin with a package or a top folder: `privacy/ledger/`."""
    tops = {path.name for parent in (SOURCE, ROOT) for path in parent.iterdir() if path.is_dir()}
    return {path for path in re.findall(r"`((?:\w+/)+)`", text) if path.split("/")[0] in tops}


def leads_somewhere(path: str, page: Path) -> bool:
    if any((parent / path).exists() for parent in (page.parent, ROOT, ROOT / "src", SOURCE)):
        return True
    return "/" not in path and any(True for top in ("src", "tests", "docs") for _ in (ROOT / top).rglob(path))


@pytest.mark.parametrize("page", [*TEXTS, *BENCHMARKS], ids=pages.name_of)
def test_dotted_paths_exist(page):
    missing = sorted(path for path in dotted_paths(pages.read(page)) if not exists(path))
    assert not missing, f"{pages.name_of(page)} names {missing}"


@pytest.mark.parametrize("page", [*TEXTS, *BENCHMARKS], ids=pages.name_of)
def test_files_and_folders_exist(page):
    text = pages.read(page)
    missing = sorted(path for path in file_paths(text) | folder_paths(text) if not leads_somewhere(path, page))
    assert not missing, f"{pages.name_of(page)} names {missing}"


def test_sources_and_tests_name_no_module_or_file_that_is_not_there():
    missing = {}
    for path in SOURCES:
        if path == Path(__file__):
            continue  # it names some on purpose
        text = pages.read(path)
        found = {name for name in dotted_paths(text) if not exists(name)}
        found |= {name for name in file_paths(text) | folder_paths(text) if not leads_somewhere(name, path)}
        missing |= {pages.name_of(path): sorted(found)} if found else {}
    assert not missing


# Public names


def code_of(page: Path) -> str:
    if page.suffix == ".py":
        return pages.read(page)
    return "\n".join(text for language, text in pages.blocks(page) if language == "python")


def is_public(dotted: str) -> bool:
    """Whether every step of `fedcdh.a.b` is in the `__all__` of the step before, as far as there are modules."""
    found: object = importlib.import_module("fedcdh")
    for part in dotted.split(".")[1:]:
        if not inspect.ismodule(found):
            return True  # an attribute of a public value
        if part not in getattr(found, "__all__", ()):
            try:
                found = importlib.import_module(f"{found.__name__}.{part}")
            except ModuleNotFoundError:
                return False
            if not getattr(found, "__all__", None):
                return False
        else:
            found = getattr(found, part)
    return True


def names_used(code: str) -> Iterator[str]:
    """Yield `fedcdh.a.b` for every import from fedcdh, and for every attribute of the module itself."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "fedcdh":
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "fedcdh")
        elif isinstance(node, ast.Attribute) and (path := _dotted(node)).startswith("fedcdh."):
            yield path


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


WITH_CODE = [page for page in (ROOT / "README.md", *PAGES, *SCRIPTS) if "fedcdh" in code_of(page)]


@pytest.mark.parametrize("page", WITH_CODE, ids=pages.name_of)
def test_examples_use_public_names_only(page):
    private = sorted({name for name in names_used(code_of(page)) if not is_public(name)})
    assert not private, f"{pages.name_of(page)} uses {private}, which no __all__ has"


def test_what_is_not_there_is_noticed():
    assert dotted_paths("see `fedcdh.one_look` and fedcdh.toml") == {"fedcdh.one_look"}
    assert not exists("fedcdh.one_look")
    assert not exists("fedcdh.search.no_such_name")
    assert exists("fedcdh.graphs.meek_rules")
    assert not leads_somewhere("independence/kernel.py", DOCS / "index.md")
    assert not is_public("fedcdh.search.skeleton._private")
    assert is_public("fedcdh.discover")


# The reference


def reference():
    """Return docs/_api.py, which is no module of a package."""
    found = importlib.util.spec_from_file_location("_api", DOCS / "_api.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def test_the_reference_lists_every_package_with_public_names():
    assert reference().listed_packages() == reference().public_packages(), "run: python docs/_api.py"


def test_every_public_name_exists_and_has_a_docstring():
    api = reference()
    for package in ("fedcdh", *api.public_packages()):
        module = importlib.import_module(package)
        assert len({*module.__all__}) == len(module.__all__), package
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.isclass(value) or inspect.isroutine(value) or inspect.ismodule(value):
                assert inspect.getdoc(value), f"{package}.{name}"
