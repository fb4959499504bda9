"""The places at which a site's policy, key and ledger are looked for."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from fedcdh.cli._console import Output
from fedcdh.messages.signing import SigningKey
from fedcdh.privacy.disclosure.policy import Policy
from fedcdh.privacy.ledger.gate import ReleaseGate
from fedcdh.privacy.ledger.ledger_file import ReleaseLedger, default_ledger, settings_folder


def find_settings_file(given: Path | None, variable: str, name: str) -> Path | None:
    """Return the file that was named, or the first usual place where there is one.

    The settings folder comes before the current folder, whose content may have come with somebody's files. A broken
    link counts as present, so that it is reported and not passed over.
    """
    if given is not None:
        return given
    if os.environ.get(variable):
        return Path(os.environ[variable])
    return next((path for path in (settings_folder() / name, Path(name)) if os.path.lexists(path)), None)


def load_policy(given: Path | None, no_disclosure_control: bool, output: Output) -> Policy:
    """Return the site's policy; without a file, the defaults."""
    path = find_settings_file(given, "FEDCDH_POLICY", "policy.toml")
    policy = Policy()
    if path is not None:
        policy = Policy.from_file(path)
        output.say(f"Policy: {path}")
    if no_disclosure_control:
        policy = replace(policy, disclosure_control=False)
    if not policy.disclosure_control:
        output.warn(
            "disclosure control is off: no minimum numbers of rows or people are enforced, and the file says so",
            always=True,
        )
    return policy


def open_ledger(given: Path | None) -> ReleaseLedger:
    """Return the ledger of what has left this site."""
    return default_ledger() if given is None else ReleaseLedger(given)


def open_gate(given: Path | None, key: SigningKey | None, *, dry_run: bool = False) -> ReleaseGate:
    """Return the gate that records releases."""
    return ReleaseGate(open_ledger(given), key, dry_run=dry_run)


@contextmanager
def announcing_ledger(gate: ReleaseGate, output: Output) -> Iterator[None]:
    """Say where the ledger is after the first release, which creates it."""
    is_new = not os.path.lexists(gate.ledger.path)
    yield
    if is_new and not gate.dry_run:
        output.say(f"From now on, every release of this site is recorded in {gate.ledger.path}")
