"""How every command of a site begins that follows a plan: policy, key and ledger found, the plan read and accepted."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from fedcdh.cli._console import Output
from fedcdh.cli._inputs import load_policy, load_signing_key, open_gate, read_study
from fedcdh.data.readers import read_column_map
from fedcdh.messages.signing import SigningKey
from fedcdh.messages.study_file import Study
from fedcdh.privacy.disclosure.policy import Policy
from fedcdh.privacy.ledger.gate import ReleaseGate
from fedcdh.privacy.releases import ReleaseContext, check_invitation, invert_renames


class SiteSetup(NamedTuple):
    """A site that takes part, and in what."""

    study: Study
    signer: str | None  # who signed the plan
    rules: Policy
    signing: SigningKey | None
    gate: ReleaseGate
    own: dict[str, str]


def set_up_site(
    plan: Path,
    client: str,
    out: Output,
    *,
    policy: Path | None,
    research: bool,
    ledger: Path | None,
    key: Path | None,
    renames: Path | None,
    dry_run: bool = False,
) -> SiteSetup:
    """All that the options of such a command name, once policy and key agree with the plan."""
    rules, signing = load_policy(policy, research, out), load_signing_key(key, out)
    gate, own = open_gate(ledger, signing, out, dry_run=dry_run), read_own_columns(renames)
    study, signer = read_study(plan)
    check_invitation(study, signer, ReleaseContext(client, rules, own), signing)
    return SiteSetup(study, signer, rules, signing, gate, own)


def read_own_columns(renames: Path | None) -> dict[str, str]:
    """From the study's names to this site's own, as its map says."""
    return invert_renames(read_column_map(renames)) if renames else {}
