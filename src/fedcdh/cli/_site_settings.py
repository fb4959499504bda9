"""The places at which a site's policy, key and ledger are looked for."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from fedcdh.cli._console import Output
from fedcdh.errors import SettingsError
from fedcdh.messages.signing import SigningKey
from fedcdh.privacy.disclosure.policy import Policy
from fedcdh.privacy.disclosure.policy_rules import find_looser_rules
from fedcdh.privacy.ledger.gate import ReleaseGate
from fedcdh.privacy.ledger.ledger_file import AbsentLedger, ReleaseLedger, default_ledger, settings_folder

POLICY_FILE_NAME = "policy.toml"
KEY_FILE_NAME = "site.key"


class SettingsFile(NamedTuple):
    """A file that holds a setting of this site, and the reason why it counts."""

    path: Path
    origin: str


def find_settings_file(given: Path | None, option: str, variable: str, name: str) -> SettingsFile | None:
    """Return the file that an option or the environment names, or the one in the settings folder.

    The current folder is no such place: its content may have come with somebody's files. A broken link counts as
    present, so that it is reported and not passed over.
    """
    if given is not None:
        return SettingsFile(given, f"option {option}")
    if os.environ.get(variable):
        return SettingsFile(Path(os.environ[variable]), f"environment variable {variable}")
    path = settings_folder() / name
    return SettingsFile(path, "settings folder") if os.path.lexists(path) else None


def find_in_current_folder(name: str, used: SettingsFile | None) -> Path | None:
    """Return the file of this name in the current folder, unless it is the one that is used anyway."""
    path = Path(name)
    if not os.path.lexists(path) or (used is not None and used.path.absolute() == path.absolute()):
        return None
    return path


class PolicyInForce(NamedTuple):
    """The policy that the commands of a site follow, and where it comes from."""

    policy: Policy
    path: Path | None
    origin: str


def find_policy(given: Path | None, output: Output) -> PolicyInForce:
    """Return the policy in force; without a file, the defaults.

    A policy in the current folder counts where nothing else is set up, and only if no rule of it is looser than the
    default.
    """
    found = find_settings_file(given, "--policy", "FEDCDH_POLICY", POLICY_FILE_NAME)
    near = find_in_current_folder(POLICY_FILE_NAME, found)
    if found is not None:
        if near is not None:
            output.warn(f"{near} in this folder is not used; the policy of this site is {found.path}", always=True)
        return PolicyInForce(Policy.from_file(found.path), *found)
    if near is None:
        return PolicyInForce(Policy(), None, "default")
    policy = Policy.from_file(near)
    if looser := [f"{rule.setting}: {rule.comparison}" for rule in find_looser_rules(policy)]:
        raise SettingsError(
            f"{near} in this folder would let more leave than the default ({', '.join(looser)}). "
            "Expected a policy that is nowhere looser: files in a folder may have come from somebody else. If it is "
            f"yours, move it to {settings_folder() / POLICY_FILE_NAME}, or name it with --policy {near}; otherwise "
            "delete it."
        )
    return PolicyInForce(policy, near, "current folder, nowhere looser than the default")


def load_policy(given: Path | None, no_disclosure_control: bool, output: Output) -> Policy:
    """Return the site's policy; without a file, the defaults."""
    policy, path, _ = find_policy(given, output)
    if path is not None:
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
    ledger = open_ledger(given)
    if dry_run and not os.path.lexists(ledger.path) and not os.path.lexists(ledger.head):
        ledger = AbsentLedger(ledger.path)
    return ReleaseGate(ledger, key, dry_run=dry_run)


@contextmanager
def announcing_ledger(gate: ReleaseGate, output: Output) -> Iterator[None]:
    """Say where the ledger is after the first release, which creates it."""
    is_new = not os.path.lexists(gate.ledger.path)
    yield
    if is_new and not gate.dry_run:
        output.say(f"From now on, every release of this site is recorded in {gate.ledger.path}")
