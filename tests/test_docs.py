"""The pages of the documentation: links lead somewhere, code runs, every page can be found."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import fedcdh

ROOT = Path(fedcdh.__file__).parents[2]
PAGES = sorted((ROOT / "docs").glob("*.md"))
RUN = ["for-methodologists.md"]


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8")):
        assert target.startswith("https://") or (page.parent / target).exists(), target


@pytest.mark.parametrize("page", RUN)
def test_code_runs(page, capsys):
    names: dict[str, object] = {}
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / page).read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) >= 3
    for block in blocks:
        exec(compile(block, page, "exec"), names)


def test_every_page_is_in_the_table_of_contents():
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8").split()
    assert [page.stem for page in PAGES if page.stem not in index and page.stem != "index"] == []
