"""Every test has a ledger of its own: what one of them sends is none of another's business, nor of who runs them.

Property tests try the same examples each time, so that the verdict on a commit is the same in every run. Others, and
more of them where a test does not say how many, are tried with `HYPOTHESIS_PROFILE=search`, as by `make test-search`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from hypothesis import settings

os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")  # or Ray listens to the network, whatever it is told

settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("search", deadline=None, max_examples=500)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))

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
