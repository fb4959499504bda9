"""A plugin of pytest that prints the coverage of the sources and names the files with little of it.

It reads what pytest-cov measured, after all processes are done and before pytest's own last line::

    python -m pytest --cov --cov-report= -p tools.coverage_summary
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import coverage

if TYPE_CHECKING:
    import pytest

LIMIT = 85.0
"""Files with a smaller percentage of executed lines are named."""


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the coverage of all files together, and that of files below the limit."""
    if config.option.collectonly or not config.pluginmanager.hasplugin("_cov"):
        return
    measured = coverage.Coverage(config_file=str(config.rootpath / "pyproject.toml"))
    try:
        measured.load()
        shares = _measure_files(measured)
    except coverage.exceptions.CoverageException as problem:
        terminalreporter.write_line(f"coverage was not measured: {problem}")
        return
    statements = sum(count for count, _ in shares.values())
    executed = sum(hit for _, hit in shares.values())
    terminalreporter.section("coverage")
    if not statements:
        terminalreporter.write_line("found no statement that could be executed")
        return
    terminalreporter.write_line(
        f"{100 * executed / statements:.1f} % of {statements} statements in {len(shares)} files"
    )
    few = sorted((100 * hit / count, path) for path, (count, hit) in shares.items() if count)
    few = [(share, path) for share, path in few if share < LIMIT]
    terminalreporter.write_line(f"files below {LIMIT:.0f} %: {len(few)}")
    for share, path in few:
        terminalreporter.write_line(f"  {share:5.1f} %  {path}")


def _measure_files(measured: coverage.Coverage) -> dict[str, tuple[int, int]]:
    """Return the numbers of statements and of executed ones for every file."""
    found = {}
    for name in measured.get_data().measured_files():
        _, statements, _, missing, _ = measured.analysis2(name)
        path = Path(name)
        shown = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
        found[str(shown)] = (len(statements), len(statements) - len(missing))
    return found
