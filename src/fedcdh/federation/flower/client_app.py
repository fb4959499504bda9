"""The ClientApp: reads the settings of its own site, and answers.

The node's configuration says where these settings are, `--node-config 'site="/path/site.toml"'`, and nothing comes from
the server but the request. An exception in a ClientApp would travel to the server with its text, so
none is let out, whatever happens.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from pathlib import Path

from flwr.app import Context, Message
from flwr.clientapp import ClientApp

from fedcdh.errors import SettingsError
from fedcdh.federation.flower.payload import read_payload, to_record
from fedcdh.federation.site import refusal_reply
from fedcdh.federation.site_config import read_site_config
from fedcdh.messages.envelope import sha256_hex

SIMULATED_SITES_VARIABLE = "FEDCDH_SIMULATED_SITES"
"""In Flower's simulation, nodes have numbers instead of settings: the folder with a site.toml in a folder per site."""


def answer_query(message: Message, context: Context) -> Message:
    """The reply of this site, or the code of what went wrong."""
    _configure_logging()
    request = read_payload(message) or b""
    try:
        reply = read_site_config(find_site_config(context.node_config)).answer(request)
    except Exception as problem:
        reply = refusal_reply(problem, sha256_hex(request))
    return Message(content=to_record(reply), reply_to=message)


def find_site_config(node_config: Mapping[str, object]) -> Path:
    """Where the settings of this site are."""
    if isinstance(named := node_config.get("site"), str):
        return Path(named)
    if (folder := os.environ.get(SIMULATED_SITES_VARIABLE)) and isinstance(
        number := node_config.get("partition-id"), int
    ):
        files = sorted(Path(folder).glob("*/site.toml"))
        if number < len(files):
            return files[number]
    raise SettingsError("this SuperNode does not know its site; start it with --node-config 'site=\"/path/site.toml\"'")


def _configure_logging() -> None:
    """What a site says of itself goes to the log of its SuperNode; it is not sent on."""
    log = logging.getLogger("fedcdh")
    if not log.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(levelname)s: %(message)s"))
        log.addHandler(handler)
        log.setLevel(logging.INFO)


app = ClientApp()
app.query()(answer_query)
