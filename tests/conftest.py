"""Every test has a ledger of its own: what one of them sends is none of another's business, nor of who runs them.

The verdict on a commit is the same in every run: property tests try the same examples each time, and keys, masks and
noise are drawn alike (`chance.py`). Other examples, more of them where a test does not say how many, and the secrets
of the operating system are tried with `HYPOTHESIS_PROFILE=search`, as by `make test-search`.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager, nullcontext
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from chance import PROFILE, repeated
from hypothesis import settings

os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")  # or Ray listens to the network, whatever it is told

settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("search", deadline=None, max_examples=500)
settings.load_profile(PROFILE)

_NUMBER = count()


def _chance(name: str) -> AbstractContextManager[None]:
    return repeated(name) if PROFILE == "same" else nullcontext()


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    """Streams of their own for fixtures: which test asks for them first is up to the processes that share the tests."""
    with _chance(f"{request.node.nodeid} {fixturedef.argname} {getattr(request, 'param_index', 0)}"):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    with _chance(item.nodeid):
        return (yield)


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
