"""The configuration file of a client, `site.toml`, which stays at the site.

Example::

    client = "north"
    data = "export/*.csv"      # or a list; paths are relative to this file
    policy = "policy.toml"
    column_map = "names.toml"
    key = "site.key"
    max_plans = 2              # plans that the client answers without a person (default 1)
    complete = true            # describe only complete rows in the profile, as in the summary
    order_by = "time"          # column with the time of each row, where rows depend on each other
    masked_only = true         # let no summary leave except in a secure sum
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
from fedcdh.messages.signing import SigningKey
from fedcdh.privacy.disclosure.policy import Policy
from fedcdh.privacy.ledger.gate import ReleaseGate
from fedcdh.privacy.ledger.ledger_file import LEDGER_FILE_NAME, ReleaseLedger, default_ledger
from fedcdh.privacy.releases import invert_renames

MAX_CONFIG_BYTES = 1 << 20
_RENAMED_KEYS = {"map": "column_map", "max_dropped": "max_missing_share", "plans_at_most": "max_plans"}
_REMOVED_KEYS = {"answered": "The release ledger now holds what this file held."}
_CSV_KEYS = ("delimiter", "decimal", "encoding", "missing")
_SECURE_SUM_KEYS = ("masking", "masked_only", "peers")
_KEYS = ("client", "data", "variables", "column_map", "policy", "key", "max_missing_share", "complete", "max_plans")
_ALLOWED_KEYS = (*_KEYS, "order_by", "ledger", "workers", *_SECURE_SUM_KEYS, *_CSV_KEYS)


def read_site_config(path: str | Path) -> ClientNode:
    """Read the configuration of a client.

    Parameters
    ----------
    path : str or Path
        The file, usually `site.toml`. The passphrase of a protected key is taken from the environment variable
        FEDCDH_PASSPHRASE.

    Returns
    -------
    ClientNode
        The client, ready to answer.

    Raises
    ------
    SettingsError
        If the file has an unknown key, or a value that cannot be used.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "site.toml"
    >>> _ = path.write_text('client = "north"\\ndata = "export.csv"', encoding="utf-8")
    >>> read_site_config(path).client
    'north'
    """
    path = Path(path).absolute()
    content = read_regular_file(path, MAX_CONFIG_BYTES, "the configuration of a site", refuse=_config_error)
    found = strict_toml.parse_toml(content, refuse=_config_error)
    _check_keys(found)
    here = path.parent
    data, style = _parse_paths(found["data"], here), _parse_csv_style(found)
    renames = read_column_map(here / _parse_text(found, "column_map")) if "column_map" in found else {}
    key = _read_key(here / _parse_text(found, "key")) if "key" in found else None
    variables = expect_strings(found["variables"], "variables", refuse=_config_error) if "variables" in found else None
    return ClientNode(
        client=found["client"],
        rows=lambda: open_tables(data, rename=renames or None, style=style),
        policy=_read_policy(found, here),
        local_names=invert_renames(renames),
        variables=variables,
        key=key,
        max_missing_share=expect_number(found.get("max_missing_share", 0.5), "max_missing_share", refuse=_config_error),
        workers=_parse_workers(found),
        complete=_parse_bool(found, "complete"),
        gate=ReleaseGate(_open_ledger(found, here), key, max_plans=_parse_max_plans(found)),
        memory=here / _parse_text(found, "masking", "masking"),
        masked_only=_parse_bool(found, "masked_only"),
        peers=_read_peers(here / _parse_text(found, "peers")) if "peers" in found else None,
        order_by=_parse_text(found, "order_by") if "order_by" in found else None,
    )


def _config_error(reason: str) -> SettingsError:
    return SettingsError(f"The configuration of this site cannot be used: {reason.rstrip('.')}. Correct site.toml.")


def _check_keys(found: dict[str, Any]) -> None:
    for old, new in _RENAMED_KEYS.items():
        if old in found:
            raise _config_error(f"it has the key {old!r} of an older version, which is now called {new!r}")
    for old, reason in _REMOVED_KEYS.items():
        if old in found:
            raise SettingsError(f"The configuration has the key {old!r} of an older version. {reason} Remove the key.")
    expect_table(found, _ALLOWED_KEYS, "the file", refuse=_config_error)
    if not is_name(found.get("client")) or "data" not in found:
        raise _config_error('it needs client = "the name of this site" and data = "its files"')


def _parse_text(found: dict[str, Any], key: str, default: str = "") -> str:
    text = found.get(key, default)
    if not isinstance(text, str) or not text:
        raise _config_error(f"{key} should be a text, found {abbreviate(text)}")
    return text


def _open_ledger(found: dict[str, Any], here: Path) -> ReleaseLedger:
    """Return the ledger beside the file, unless the file or FEDCDH_LEDGER names another; a service has no home."""
    if "ledger" not in found and os.environ.get("FEDCDH_LEDGER"):
        return default_ledger()
    return ReleaseLedger(here / _parse_text(found, "ledger", LEDGER_FILE_NAME))


def _read_peers(path: Path) -> dict[str, str]:
    """Read a TOML file with the public key of each client."""
    content = read_regular_file(path, MAX_CONFIG_BYTES, "the public keys of other sites", refuse=_config_error)
    found = strict_toml.parse_toml(content, refuse=_config_error)
    for client, public in found.items():
        if not is_key(public):
            raise _config_error(f'in {path.name}, {client!r} has no key; expected "{client}" = "ed25519:..."')
    return found


def _parse_bool(found: dict[str, Any], key: str) -> bool:
    value = found.get(key, False)
    if not isinstance(value, bool):
        raise _config_error(f"{key} should be true or false, found {abbreviate(value)}")
    return value


def _parse_workers(found: dict[str, Any]) -> int | None:
    """Return the number of threads; None for as many as processors and memory allow."""
    if "workers" not in found:
        return None
    count = expect_integer(found["workers"], "workers", refuse=_config_error)
    if not 1 <= count <= MAX_WORKERS:
        raise _config_error(f"workers should be from 1 to {MAX_WORKERS}, found {count}")
    return count


def _parse_max_plans(found: dict[str, Any]) -> int:
    count = expect_integer(found.get("max_plans", 1), "max_plans", refuse=_config_error)
    if count < 1:
        raise _config_error(f"max_plans should be at least 1, found {count}")
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
    path = here / _parse_text(found, "policy")
    return Policy.from_toml(read_regular_file(path, MAX_CONFIG_BYTES, "a policy", refuse=_config_error))


def _read_key(path: Path) -> SigningKey:
    pem = read_regular_file(path, MAX_CONFIG_BYTES, "a private key", refuse=_config_error)
    return SigningKey.from_pem(pem, os.environ.get("FEDCDH_PASSPHRASE") if b"ENCRYPTED" in pem else None)
