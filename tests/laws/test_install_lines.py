"""Every line that says how to install an optional library names an extra of pyproject.toml that brings it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
NAMED = re.compile(r"fedcdh\\?\[([a-z, -]+)\\?\]")
IMPORTED = re.compile(r'optional_import\(\s*"([^"]+)",\s*extra="([a-z-]+)"')
PACKAGES = {"dask": "dask", "TenSEAL": "tenseal", "Flower": "flwr"}
PLAIN = ("typer", "rich", "igraph")
"""These come with the plain install."""

TEXTS = [
    *(ROOT / "src").rglob("*.py"),
    *(ROOT / "docs").rglob("*.md"),
    *(ROOT / "changelog.d").glob("*.md"),
    *ROOT.glob("*.md"),
]


def test_extras_that_are_named_exist():
    named = {
        (extra.strip(), path.relative_to(ROOT).as_posix())
        for path in TEXTS
        for found in NAMED.findall(path.read_text(encoding="utf-8"))
        for extra in found.split(",")
    }
    assert len(named) > 10, "the pattern finds install lines at all"
    assert not sorted(one for one in named if one[0] not in EXTRAS)


def _wanted() -> list[tuple[str, str]]:
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py")]
    found = {pair for source in sources for pair in IMPORTED.findall(source)}
    return sorted(pair for pair in found if "dragons" not in pair[0])  # those of an example in a docstring


@pytest.mark.parametrize(("library", "extra"), _wanted())
def test_the_extra_brings_the_library(library, extra):
    if library in PLAIN:
        assert extra in ("cli", "report")
        return
    wanted = [re.split(r"[\[<>=~! ]", one)[0] for one in EXTRAS[extra]]
    assert PACKAGES.get(library, library) in wanted


def test_all_is_all_that_installs_side_by_side():
    (everything,) = EXTRAS["all"]
    named = set(NAMED.fullmatch(everything)[1].split(","))
    apart = {"flower", "ray", "encrypted", "peers"}
    assert named | apart | {"cli", "report", "all", "dev", "docs", "release"} == set(EXTRAS)
    assert not named & apart
