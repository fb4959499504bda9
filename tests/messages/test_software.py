"""Files name the program and its version."""

from __future__ import annotations

from importlib.metadata import version

from fedcdh.messages._software import SOFTWARE
from fedcdh.messages.summary_header import SOFTWARE_PATTERN


def test_files_name_the_installed_version():
    assert f"fedcdh {version('fedcdh')}" == SOFTWARE
    assert SOFTWARE_PATTERN.fullmatch(SOFTWARE)
