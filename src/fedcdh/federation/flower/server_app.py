"""The ServerApp of the coordinator, which conducts the study of the run's configuration over Flower."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from fedcdh._io import strict_toml
from fedcdh._io.storage import read_regular_file
from fedcdh._io.text import suggest_name
from fedcdh._runtime.optional_imports import optional_import
from fedcdh.errors import PlanError, SettingsError, SignatureError
from fedcdh.federation.coordinator import conduct_study
from fedcdh.federation.flower.app_folder import DEFAULTS
from fedcdh.federation.flower.payload import is_transient, read_payload, to_record
from fedcdh.federation.planning.declaration import Declaration
from fedcdh.federation.secure_sum import SecureSumOptions
from fedcdh.federation.study_terms import StudyTerms
from fedcdh.messages.signing import SigningKey, key_fingerprint

with optional_import("Flower", extra="flower"):
    from flwr.app import Context, Message
    from flwr.serverapp import Grid, ServerApp

MAX_CONFIG_BYTES = 1 << 20
MAX_RESENDS = 6
"""Number of times a request is sent again to an unreachable node, after 1, 2, 4, 8, 16 and 32 seconds: on a busy
machine a SuperNode needs half a minute to start."""
_LOG = logging.getLogger("flwr.fedcdh")  # below Flower's own, so that `flwr log` shows it


class FlowerTransport:
    """The transport over Flower; the address of a client is the number of its node, which has a registered key."""

    def __init__(self, grid: Grid, poll: float = 1.0) -> None:
        self._grid, self._poll = grid, poll

    def addresses(self, expected: int, timeout: float) -> Sequence[str]:
        """Return the connected nodes, as soon as the expected number is there or the time is over."""
        deadline = time.monotonic() + timeout
        while len(nodes := sorted(self._grid.get_node_ids())) < expected and time.monotonic() < deadline:
            time.sleep(self._poll)
        _LOG.info("%d SuperNodes are connected, %d expected", len(nodes), expected)
        return [str(node) for node in nodes]

    def exchange(self, requests: Mapping[str, bytes], timeout: float) -> Iterator[tuple[str, bytes | None]]:
        """Send the requests and yield the replies as they arrive; Flower drops those after the timeout.

        A node that is unreachable for a moment, as one that has just restarted, is sent its request again.
        """
        deadline = time.monotonic() + timeout
        waiting: dict[str, str] = {}  # addresses by message
        resend, tries = {site: time.monotonic() for site in requests}, Counter[str]()
        while (waiting or resend) and (now := time.monotonic()) < deadline:
            due = [site for site, when in resend.items() if when <= now]
            for site, number in self._push({site: requests[site] for site in due}, deadline - now).items():
                del resend[site]
                if number:
                    waiting[number] = site
                else:
                    yield site, None
            for reply in self._grid.pull_messages(list(waiting)):
                if reply.metadata.reply_to_message_id not in waiting:
                    continue
                site = waiting.pop(reply.metadata.reply_to_message_id)
                if reply.has_error():
                    _LOG.warning("node %s: error %d, %s", site, reply.error.code, reply.error.reason)
                if not is_transient(reply) or tries[site] == MAX_RESENDS:
                    yield site, read_payload(reply)
                else:
                    resend[site] = now + self._poll * 2 ** tries[site]
                    tries[site] += 1
            if waiting or resend:
                time.sleep(self._poll)

    def _push(self, requests: Mapping[str, bytes], ttl: float) -> dict[str, str | None]:
        """Send messages and return their identifiers; None for a node that the SuperLink does not know."""
        messages = [
            Message(content=to_record(request), dst_node_id=int(site), message_type="query", ttl=ttl)
            for site, request in requests.items()
        ]
        numbers = list(self._grid.push_messages(messages)) if messages else []
        return dict(zip_longest(requests, numbers[: len(requests)]))


def main(grid: Grid, context: Context) -> None:
    """Conduct the study, and write the outcome to the log."""
    settings = _run_settings(context.run_config)
    folder = Path(settings["output"])
    outcome = conduct_study(FlowerTransport(grid), to_study_terms(settings), folder)
    for site, reason in outcome.missing.items():
        _LOG.warning("not in the result: %s (%s)", site, reason)
    _LOG.info("%s\nWrote %s", outcome.result, folder)


def to_study_terms(settings: Mapping[str, Any]) -> StudyTerms:
    """Return the terms of a run's configuration; paths are those of the machine that runs the SuperLink."""
    declared, key, keys = settings["declaration"], settings["key"], settings["site-keys"]
    alpha, most = settings["alpha"], settings["max-conditioning-size"]
    return StudyTerms(
        method=settings["method"],
        alpha=None if alpha == -1 else alpha,
        max_conditioning_size=None if most < 0 else most,
        min_probability=settings["min-probability"],
        min_arrow_probability=settings["min-arrow-probability"],
        min_effect=settings["min-effect"],
        seed=settings["seed"],
        declaration=_read_declaration(Path(declared)) if declared else Declaration(),
        accept_differences=tuple(name.strip() for name in settings["accept-differences"].split(",") if name.strip()),
        study=settings["study"],
        key=SigningKey.from_pem(_read_file(key, "a private key")) if key else None,
        site_keys=_read_site_keys(keys) if keys else {},
        minimum=settings["minimum-sites"],
        expected=settings["expected-sites"],
        timeout=float(settings["timeout"]),
        rounds=settings["rounds"],
        max_rounds=settings["max-rounds"],
        max_bytes=settings["max-bytes"],
        secure_sum=_secure_sum_options(settings),
    )


def _secure_sum_options(settings: Mapping[str, Any]) -> SecureSumOptions | None:
    if settings["secure-sum"] not in ("yes", "no"):
        raise SettingsError(
            f"The setting secure-sum is {settings['secure-sum']!r}. Expected 'yes' or 'no'. Correct it."
        )
    if settings["secure-sum"] == "no":
        return None
    groups = settings["groups"]
    return SecureSumOptions(
        settings["threshold"] or None,
        _read_groups(groups) if groups else {},
        settings["attempt"],
        settings["mixtures"],
    )


def _run_settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return all settings; a given value must have the type of its default, and may be an int for a float."""
    for name, value in given.items():
        default = DEFAULTS.get(name)
        if default is None:
            near = suggest_name(name, DEFAULTS)
            raise SettingsError(
                f"The configuration of the run has the unknown key {name!r}{near}. Remove or correct it."
            )
        if type(value) is not type(default) and (type(default), type(value)) != (float, int):
            raise SettingsError(
                f"The setting {name} is {value!r}. Expected a {type(default).__name__} such as {default!r}. Correct it."
            )
    settings = {**DEFAULTS, **given}
    if not Path(settings["output"]).is_absolute():
        raise SettingsError(
            f"The setting output is {settings['output']!r}. Expected the absolute path of a folder. Correct it."
        )
    return settings


def _read_file(path: str | Path, what: str) -> bytes:
    return read_regular_file(Path(path), MAX_CONFIG_BYTES, what, refuse=SettingsError)


def _read_declaration(path: Path) -> Declaration:
    return Declaration.from_toml(read_regular_file(path, MAX_CONFIG_BYTES, "a declaration", refuse=PlanError))


def _read_site_keys(path: str) -> dict[str, str]:
    """Read a TOML file with the public key of each client."""
    found = strict_toml.parse_toml(_read_file(path, "the public keys of sites"), refuse=SignatureError)
    for client, public in found.items():
        if not isinstance(public, str):
            raise SignatureError(
                f'{path} has no key for {client!r}. Expected "{client}" = "ed25519:...". Correct the file.'
            )
        key_fingerprint(public)  # raises if it is not a key
    return found


def _read_groups(path: str) -> dict[str, str]:
    """Read a TOML file with the group of each client."""
    found = strict_toml.parse_toml(_read_file(path, "the groups of sites"), refuse=SettingsError)
    for client, group in found.items():
        if not isinstance(group, str):
            raise SettingsError(
                f'{path} has no group for {client!r}. Expected "{client}" = "its group". Correct the file.'
            )
    return found


app = ServerApp()
app.main()(main)
