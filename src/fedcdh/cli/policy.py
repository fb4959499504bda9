"""`fedcdh policy`: the policy in force at this site, and a file to begin one with."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedcdh.cli._console import Output
from fedcdh.cli._errors import report_errors
from fedcdh.cli._options import AsJson, PolicyFile, Quiet
from fedcdh.errors import SettingsError

if TYPE_CHECKING:
    from fedcdh.privacy.disclosure.policy_rules import PolicyRule


@report_errors
def show_command(policy: PolicyFile = None, quiet: Quiet = False, as_json: AsJson = False) -> None:
    """Show the policy in force at this site.

    It says where the policy comes from, and each rule in one sentence. Rules that differ from the default are marked.

    For example:

      fedcdh policy show

      fedcdh policy show --policy policy.toml --json
    """
    from fedcdh.cli._site_settings import find_policy
    from fedcdh.privacy.disclosure.policy_rules import describe_policy

    out = Output(quiet, as_json)
    found = find_policy(policy, out)
    rules = describe_policy(found.policy)
    out.say("Policy: default" if found.path is None else f"Policy: {found.path} ({found.origin})")
    out.table(("rule", "differs", "what it says"), [_to_row(rule) for rule in rules])
    changed = [rule for rule in rules if rule.comparison != "default"]
    out.say(f"{len(changed)} of {len(rules)} rules differ from the default." if changed else "All rules are default.")
    out.result(
        {
            "policy": None if found.path is None else str(found.path),
            "origin": found.origin,
            "rules": {rule.setting: _to_document(rule) for rule in rules},
        }
    )


@report_errors
def init_command(
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="File to write.",
            metavar="FILE",
            show_default="policy.toml in ~/.config/fedcdh",
        ),
    ] = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Write a policy with every rule at its default, to edit.

    An existing file is never overwritten.

    For example:

      fedcdh policy init

      fedcdh policy init -o policy.toml
    """
    from fedcdh._io.storage import write_atomically
    from fedcdh.cli._site_settings import POLICY_FILE_NAME
    from fedcdh.privacy.disclosure.policy_rules import policy_template
    from fedcdh.privacy.ledger.ledger_file import settings_folder

    out, path = Output(quiet, as_json), output or settings_folder() / POLICY_FILE_NAME
    if os.path.lexists(path):
        raise SettingsError(
            f"{path} exists already and is not overwritten. Expected no file there. Edit it, or choose another name "
            "with -o."
        )
    write_atomically(path, policy_template())
    out.say(f"Wrote {path}. Every rule has its default; `fedcdh policy show` prints what holds.")
    if output is not None:
        out.say(f"A policy counts where it is named: --policy {path}, or FEDCDH_POLICY.")
    out.result({"files": [str(path)]})


def _to_row(rule: PolicyRule) -> tuple[str, str, str]:
    return rule.setting, "" if rule.comparison == "default" else rule.comparison, rule.sentence


def _to_document(rule: PolicyRule) -> dict[str, Any]:
    value = sorted(rule.value) if isinstance(rule.value, frozenset) else rule.value
    return {"value": value, "comparison": rule.comparison, "sentence": rule.sentence}
