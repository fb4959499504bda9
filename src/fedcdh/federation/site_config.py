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
from fedcdh._io.storage import read_regular_file
from fedcdh._io.strict_toml import abbreviate, expect_integer, expect_number, expect_strings, expect_table
from fedcdh._io.text import is_key, is_name
from fedcdh._runtime.cpu_count import MAX_WORKERS
from fedcdh.data.readers import CsvStyle, open_tables, read_column_map
from fedcdh.errors import SettingsError
from fedcdh.federation.site import ClientNode
from fedcdh.federation.site_memory import Answered
from fedcdh.messages.signing import SigningKey
from fedcdh.privacy.disclosure.policy import Policy
from fedcdh.privacy.ledger import LEDGER_FILE_NAME, ReleaseLedger, default_ledger
from fedcdh.privacy.ledger.gate import ReleaseGate
from fedcdh.privacy.releases import invert_renames

MAX_CONFIG_BYTES = 1 << 20
_CSV_KEYS = ("delimiter", "decimal", "encoding", "missing")
_SECURE_SUM_KEYS = ("masking", "masked_only", "peers")
_KEYS = (
    "client",
    "data",
    "variables",
    "map",
    "policy",
    "key",
    "max_missing_share",
    "complete",
    "answered",
    "max_plans",
)
_ALLOWED_KEYS = (*_KEYS, "ledger", "workers", *_SECURE_SUM_KEYS, *_CSV_KEYS)


def read_site_config(path: str | Path) -> ClientNode:
    """The site of a settings file; a key that has a passphrase takes it from FEDCDH_PASSPHRASE."""
    path = Path(path).absolute()
    found = strict_toml.parse_toml(
        read_regular_file(path, MAX_CONFIG_BYTES, "the settings of a site", refuse=_config_error), refuse=_config_error
    )
    expect_table(found, _ALLOWED_KEYS, "the file", refuse=_config_error)
    if not is_name(found.get("client")) or "data" not in found:
        raise _config_error('it needs client = "the name of this site" and data = "its files"')
    here = path.parent
    data, style = _parse_paths(found["data"], here), _parse_csv_style(found)
    renames = read_column_map(here / _parse_text(found, "map")) if "map" in found else {}
    key = _read_key(here / _parse_text(found, "key")) if "key" in found else None
    return ClientNode(
        client=found["client"],
        rows=lambda: open_tables(data, rename=renames or None, style=style),
        policy=_read_policy(found, here),
        own=invert_renames(renames),
        variables=expect_strings(found["variables"], "variables", refuse=_config_error)
        if "variables" in found
        else None,
        key=key,
        max_missing_share=expect_number(found.get("max_missing_share", 0.5), "max_missing_share", refuse=_config_error),
        workers=_parse_workers(found),
        complete=_parse_bool(found, "complete"),
        answered=Answered(
            here / _parse_text(found, "answered", "answered.json"),
            expect_integer(found.get("max_plans", 1), "max_plans", refuse=_config_error),
        ),
        gate=ReleaseGate(_open_ledger(found, here), key),
        memory=here / _parse_text(found, "masking", "masking"),
        masked_only=_parse_bool(found, "masked_only"),
        peers=_read_peers(here / _parse_text(found, "peers")) if "peers" in found else None,
    )


def _config_error(reason: str) -> SettingsError:
    return SettingsError(f"the settings of this site cannot be used: {reason}; correct site.toml")


def _parse_text(found: dict[str, Any], key: str, otherwise: str = "") -> str:
    text = found.get(key, otherwise)
    if not isinstance(text, str) or not text:
        raise _config_error(f"{key} should be a text, found {abbreviate(text)}")
    return text


def _open_ledger(found: dict[str, Any], here: Path) -> ReleaseLedger:
    """Beside the settings, unless they or FEDCDH_LEDGER say otherwise: a service may have no home."""
    if "ledger" not in found and os.environ.get("FEDCDH_LEDGER"):
        return default_ledger()
    return ReleaseLedger(here / _parse_text(found, "ledger", LEDGER_FILE_NAME))


def _read_peers(path: Path) -> dict[str, str]:
    """TOML: the client's name = its public key."""
    found = strict_toml.parse_toml(
        read_regular_file(path, MAX_CONFIG_BYTES, "the public keys of other sites", refuse=_config_error),
        refuse=_config_error,
    )
    for client, public in found.items():
        if not is_key(public):
            raise _config_error(f'{path.name}: {client!r} has no key; expected "{client}" = "ed25519:..."')
    return found


def _parse_bool(found: dict[str, Any], key: str) -> bool:
    truth = found.get(key, False)
    if not isinstance(truth, bool):
        raise _config_error(f"{key} should be true or false, found {abbreviate(truth)}")
    return truth


def _parse_workers(found: dict[str, Any]) -> int | None:
    """Threads: as many as the plan lets there be, unless the file says otherwise."""
    if "workers" not in found:
        return None
    count = expect_integer(found["workers"], "workers", refuse=_config_error)
    if not 1 <= count <= MAX_WORKERS:
        raise _config_error(f"workers should be from 1 to {MAX_WORKERS}, found {count}")
    return count


def _parse_paths(found: Any, here: Path) -> list[str]:
    names = (found,) if isinstance(found, str) else expect_strings(found, "data", refuse=_config_error)
    return [str(here / name) for name in names]


def _parse_csv_style(found: dict[str, Any]) -> CsvStyle:
    given: dict[str, Any] = {key: _parse_text(found, key) for key in _CSV_KEYS[:3] if key in found}
    if "missing" in found:
        given["missing"] = ("", *expect_strings(found["missing"], "missing", refuse=_config_error))
    return CsvStyle(**given)


def _read_policy(found: dict[str, Any], here: Path) -> Policy:
    if "policy" not in found:
        return Policy()
    return Policy.from_toml(
        read_regular_file(here / _parse_text(found, "policy"), MAX_CONFIG_BYTES, "a policy", refuse=_config_error)
    )


def _read_key(path: Path) -> SigningKey:
    pem = read_regular_file(path, MAX_CONFIG_BYTES, "a private key", refuse=_config_error)
    return SigningKey.from_pem(pem, os.environ.get("FEDCDH_PASSPHRASE") if b"ENCRYPTED" in pem else None)
