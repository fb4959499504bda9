"""How every command of a site begins that follows a plan: policy, key and ledger found, the plan read and accepted."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from fedcdh.cli._console import Output
from fedcdh.cli._inputs import read_study, the_gate, the_key, the_policy
from fedcdh.data.readers import read_renames
from fedcdh.messages.signing import SigningKey
from fedcdh.messages.study_file import Study
from fedcdh.privacy.disclosure.policy import Policy
from fedcdh.privacy.ledger.gate import Gate
from fedcdh.privacy.releases import check_invitation, own_names


class Invited(NamedTuple):
    """A site that takes part, and in what."""

    study: Study
    signer: str | None  # who signed the plan
    rules: Policy
    signing: SigningKey | None
    gate: Gate
    own: dict[str, str]


def invited(
    plan: Path,
    client: str,
    out: Output,
    *,
    policy: Path | None,
    research: bool,
    ledger: Path | None,
    key: Path | None,
    renames: Path | None,
    only_asking: bool = False,
) -> Invited:
    """All that the options of such a command name, once policy and key agree with the plan."""
    rules, signing = the_policy(policy, research, out), the_key(key, out)
    gate, own = the_gate(ledger, signing, out, only_asking=only_asking), own_columns(renames)
    study, signer = read_study(plan)
    check_invitation(study, signer, client, rules, own, signing)
    return Invited(study, signer, rules, signing, gate, own)


def own_columns(renames: Path | None) -> dict[str, str]:
    """From the study's names to this site's own, as its map says."""
    return own_names(read_renames(renames)) if renames else {}
