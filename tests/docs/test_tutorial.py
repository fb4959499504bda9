"""The tutorial runs exactly as printed, in an empty folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pages
import pytest
from pages import DOCS


def steps(page: Path) -> list[tuple[str, str]]:
    """Commands and what they print."""
    return [step for language, text in pages.blocks(page) if language == "console" for step in pages.steps(text)]


@pytest.mark.parametrize("page", ["tutorial.md"])
def test_the_page_runs_as_printed(page, tmp_path):
    script = tmp_path / "bin" / "fedcdh"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m fedcdh "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("FEDCDH_")},
        "PATH": f"{script.parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(tmp_path / "home"),
        "XDG_CONFIG_HOME": str(tmp_path / "home"),
        "PYTHONIOENCODING": "utf-8",
        "LC_ALL": "C",
    }
    work = tmp_path / "work"
    work.mkdir()
    assert len(steps(DOCS / page)) >= 15
    for command, shown in steps(DOCS / page):
        run = subprocess.run(
            ["/bin/sh", "-c", command],
            cwd=work,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            check=False,
        )
        assert run.returncode == 0, f"{command}\n{run.stdout}"
        as_printed = re.fullmatch(pages.as_pattern(shown), run.stdout)
        assert as_printed, f"$ {command}\n{run.stdout}\n--- the page says:\n{shown}"
