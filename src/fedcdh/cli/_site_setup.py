"""The beginning of every site command that follows a plan: policy, key and ledger found, the plan read and accepted."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from fedcdh.cli._console import Output
from fedcdh.cli._inputs import read_study
from fedcdh.cli._keys import load_signing_key
from fedcdh.cli._site_settings import load_policy, open_gate
from fedcdh.data.readers import read_column_map
from fedcdh.messages.signing import SigningKey
from fedcdh.messages.study_file import Study
from fedcdh.privacy.disclosure.policy import Policy
from fedcdh.privacy.ledger.gate import ReleaseGate
from fedcdh.privacy.releases import ReleaseContext, check_invitation, invert_renames


class SiteOptions(NamedTuple):
    """The options of a site command that name its files."""

    policy: Path | None
    ledger: Path | None
    key: Path | None
    column_map: Path | None
    no_disclosure_control: bool
    dry_run: bool = False


class SiteSetup(NamedTuple):
    """A site and the study it takes part in."""

    study: Study
    signer: str | None  # of the plan
    policy: Policy
    signing: SigningKey | None
    gate: ReleaseGate
    own_names: dict[str, str]  # from the study's names to the site's


def set_up_site(plan: Path, client: str, out: Output, options: SiteOptions) -> SiteSetup:
    """Read all that the options name; policy and key have to agree with the plan."""
    policy = load_policy(options.policy, options.no_disclosure_control, out)
    signing = load_signing_key(options.key, out)
    gate = open_gate(options.ledger, signing, dry_run=options.dry_run)
    own_names = read_own_columns(options.column_map)
    study, signer = read_study(plan)
    check_invitation(study, signer, ReleaseContext(client, policy, own_names), signing)
    return SiteSetup(study, signer, policy, signing, gate, own_names)


def read_own_columns(column_map: Path | None) -> dict[str, str]:
    """Return the site's own name of every study variable that the column map renames."""
    return invert_renames(read_column_map(column_map)) if column_map else {}
