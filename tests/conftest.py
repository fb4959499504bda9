"""Every test has a ledger of its own: what one of them sends is none of another's business, nor of who runs them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

_NUMBER = count()


@pytest.fixture(scope="session")
def ledgers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ledgers")


@pytest.fixture(scope="module", autouse=True)
def ledger_of_module(ledgers: Path) -> Iterator[None]:
    """For what all tests of a module share."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FEDCDH_LEDGER", str(ledgers / str(next(_NUMBER)) / "releases.jsonl"))
        yield


@pytest.fixture(autouse=True)
def own_ledger(ledgers: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = ledgers / str(next(_NUMBER)) / "releases.jsonl"
    monkeypatch.setenv("FEDCDH_LEDGER", str(path))
    return path
