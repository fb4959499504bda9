"""The settings of a site that is online, in a file of its own (`site.toml`) that stays there.

client = "north"
data = "export/*.csv"      # or a list; paths are seen from where this file is
policy = "policy.toml"
map = "names.toml"
key = "site.key"
complete = true            # the profile is of complete rows, as the summary is: for tables with few gaps
masked_only = true         # no summary leaves but under masks (docs/masking.md)
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from fedcdh._io import strict_toml
from fedcdh._io.storage import read_regular
from fedcdh._io.strict_toml import number, only, shown, texts, whole
from fedcdh._io.text import is_key, is_name
from fedcdh._runtime.cpu_count import WORKERS_AT_MOST
from fedcdh.data.readers import CsvStyle, open_tables, read_renames
from fedcdh.errors import SettingsError
from fedcdh.federation.site import Site
from fedcdh.federation.site_memory import Answered
from fedcdh.messages.signing import SigningKey
from fedcdh.privacy.disclosure.policy import Policy
from fedcdh.privacy.ledger import NAME, ReleaseLedger, usual_ledger
from fedcdh.privacy.ledger.gate import Gate
from fedcdh.privacy.releases import own_names

SMALL = 1 << 20
_CSV = ("delimiter", "decimal", "encoding", "missing")
_MASKED = ("masking", "masked_only", "peers")
_KEYS = ("client", "data", "variables", "map", "policy", "key", "max_dropped", "complete", "answered", "plans_at_most")
_KNOWN = (*_KEYS, "ledger", "workers", *_MASKED, *_CSV)


def read_site(path: str | Path) -> Site:
    """The site of a settings file; a key that has a passphrase takes it from FEDCDH_PASSPHRASE."""
    path = Path(path).absolute()
    found = strict_toml.parse(read_regular(path, SMALL, "the settings of a site", refuse=_refuse), refuse=_refuse)
    only(found, _KNOWN, "the file", refuse=_refuse)
    if not is_name(found.get("client")) or "data" not in found:
        raise _refuse('it needs client = "the name of this site" and data = "its files"')
    here = path.parent
    data, style = _paths(found["data"], here), _style(found)
    renames = read_renames(here / _text(found, "map")) if "map" in found else {}
    key = _key(here / _text(found, "key")) if "key" in found else None
    return Site(
        client=found["client"],
        rows=lambda: open_tables(data, rename=renames or None, style=style),
        policy=_policy(found, here),
        own=own_names(renames),
        variables=texts(found["variables"], "variables", refuse=_refuse) if "variables" in found else None,
        key=key,
        max_dropped=number(found.get("max_dropped", 0.5), "max_dropped", refuse=_refuse),
        workers=_workers(found),
        complete=_truth(found, "complete"),
        answered=Answered(
            here / _text(found, "answered", "answered.json"),
            whole(found.get("plans_at_most", 1), "plans_at_most", refuse=_refuse),
        ),
        gate=Gate(_ledger(found, here), key),
        memory=here / _text(found, "masking", "masking"),
        masked_only=_truth(found, "masked_only"),
        peers=_peers(here / _text(found, "peers")) if "peers" in found else None,
    )


def _refuse(reason: str) -> SettingsError:
    return SettingsError(f"the settings of this site cannot be used: {reason}; correct site.toml")


def _text(found: dict[str, Any], key: str, otherwise: str = "") -> str:
    text = found.get(key, otherwise)
    if not isinstance(text, str) or not text:
        raise _refuse(f"{key} should be a text, found {shown(text)}")
    return text


def _ledger(found: dict[str, Any], here: Path) -> ReleaseLedger:
    """Beside the settings, unless they or FEDCDH_LEDGER say otherwise: a service may have no home."""
    if "ledger" not in found and os.environ.get("FEDCDH_LEDGER"):
        return usual_ledger()
    return ReleaseLedger(here / _text(found, "ledger", NAME))


def _peers(path: Path) -> dict[str, str]:
    """TOML: the client's name = its public key."""
    found = strict_toml.parse(
        read_regular(path, SMALL, "the public keys of other sites", refuse=_refuse), refuse=_refuse
    )
    for client, public in found.items():
        if not is_key(public):
            raise _refuse(f'{path.name}: {client!r} has no key; expected "{client}" = "ed25519:..."')
    return found


def _truth(found: dict[str, Any], key: str) -> bool:
    truth = found.get(key, False)
    if not isinstance(truth, bool):
        raise _refuse(f"{key} should be true or false, found {shown(truth)}")
    return truth


def _workers(found: dict[str, Any]) -> int | None:
    """Threads: as many as the plan lets there be, unless the file says otherwise."""
    if "workers" not in found:
        return None
    count = whole(found["workers"], "workers", refuse=_refuse)
    if not 1 <= count <= WORKERS_AT_MOST:
        raise _refuse(f"workers should be from 1 to {WORKERS_AT_MOST}, found {count}")
    return count


def _paths(found: Any, here: Path) -> list[str]:
    names = (found,) if isinstance(found, str) else texts(found, "data", refuse=_refuse)
    return [str(here / name) for name in names]


def _style(found: dict[str, Any]) -> CsvStyle:
    given: dict[str, Any] = {key: _text(found, key) for key in _CSV[:3] if key in found}
    if "missing" in found:
        given["missing"] = ("", *texts(found["missing"], "missing", refuse=_refuse))
    return CsvStyle(**given)


def _policy(found: dict[str, Any], here: Path) -> Policy:
    if "policy" not in found:
        return Policy()
    return Policy.from_toml(read_regular(here / _text(found, "policy"), SMALL, "a policy", refuse=_refuse))


def _key(path: Path) -> SigningKey:
    pem = read_regular(path, SMALL, "a private key", refuse=_refuse)
    return SigningKey.from_pem(pem, os.environ.get("FEDCDH_PASSPHRASE") if b"ENCRYPTED" in pem else None)
