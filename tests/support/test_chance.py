"""The verdict on a commit is the same in every run: what tests draw by chance, they draw alike."""

from __future__ import annotations

import ast
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest
from chance import PROFILE, repeated

from fedcdh.messages.signing import SigningKey

SOURCES = Path(__file__).parents[2] / "src" / "fedcdh"


def drawn(name: str) -> tuple[bytes, str, int, str]:
    with repeated(name):
        return secrets.token_bytes(40), secrets.token_hex(8), secrets.randbits(128), SigningKey.generate().public


def test_a_name_draws_the_same_keys_and_bits_again_and_another_name_others():
    assert drawn("one") == drawn("one")
    assert all(mine != other for mine, other in zip(drawn("one"), drawn("two"), strict=True))
    with repeated("one"):
        assert secrets.token_bytes(40) != secrets.token_bytes(40)


@pytest.mark.skipif(PROFILE != "same", reason="this run looks for what chance brings")
def test_each_test_has_chance_of_its_own():
    first = secrets.token_bytes(16)
    with repeated("tests/support/test_chance.py::test_each_test_has_chance_of_its_own"):
        assert secrets.token_bytes(16) == first


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_process_draws_from_the_operating_system():
    with repeated("one"):
        ours, theirs = os.pipe()
        if (child := os.fork()) == 0:
            os.write(theirs, secrets.token_bytes(16))
            os._exit(0)
        os.waitpid(child, 0)
        assert os.read(ours, 16) != secrets.token_bytes(16)
        os.close(ours)
        os.close(theirs)


def uses(tree: ast.AST) -> Iterator[str]:
    """Chance that has no seed, other than by `secrets`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in ("urandom", "SystemRandom", "getrandom", "uuid4"):
            yield node.attr
        if isinstance(node, ast.Call) and not node.args and not node.keywords:
            called = ast.unparse(node.func)
            if called.split(".")[-1] in ("default_rng", "SeedSequence", "Random") or called.endswith("Key.generate"):
                yield called


def test_the_package_draws_its_secrets_in_one_way_only():
    assert list(uses(ast.parse("Ed25519PrivateKey.generate(), os.urandom(3), np.random.default_rng()"))) != []
    allowed = {"SigningKey.generate"}
    found = {
        (path.name, use)
        for path in sorted(SOURCES.rglob("*.py"))
        for use in uses(ast.parse(path.read_text("utf-8")))
        if use not in allowed
    }
    assert not found
