"""The ClientApp of a site, which reads the site's configuration and answers requests.

The configuration of the node names the file, `--node-config 'site="/path/site.toml"'`; only the request comes from the
server. Flower sends the text of an exception to the server, so this app raises none.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from pathlib import Path

from fedcdh._runtime.optional_imports import optional_import
from fedcdh.errors import SettingsError
from fedcdh.federation.flower.payload import read_payload, to_record
from fedcdh.federation.site import refusal_reply
from fedcdh.federation.site_config import read_site_config
from fedcdh.messages.envelope import sha256_hex

with optional_import("Flower", extra="flower"):
    from flwr.app import Context, Message
    from flwr.clientapp import ClientApp

SIMULATED_SITES_VARIABLE = "FEDCDH_SIMULATED_SITES"
"""Environment variable for Flower's simulation, in which nodes have numbers: a folder with one folder per site."""


def answer_query(message: Message, context: Context) -> Message:
    """Return the reply of this site, or the code of an error."""
    _configure_logging()
    request = read_payload(message) or b""
    try:
        reply = read_site_config(find_site_config(context.node_config)).answer(request)
    except Exception as problem:
        reply = refusal_reply(problem, sha256_hex(request))
    return Message(content=to_record(reply), reply_to=message)


def find_site_config(node_config: Mapping[str, object]) -> Path:
    """Return the path of the configuration of this site."""
    if isinstance(named := node_config.get("site"), str):
        return Path(named)
    if (folder := os.environ.get(SIMULATED_SITES_VARIABLE)) and isinstance(
        number := node_config.get("partition-id"), int
    ):
        files = sorted(Path(folder).glob("*/site.toml"))
        if number < len(files):
            return files[number]
    raise SettingsError(
        "The SuperNode has no site. Expected the path of its configuration. Start it with --node-config "
        "'site=\"/path/site.toml\"'."
    )


def _configure_logging() -> None:
    """Write the log of the site to that of its SuperNode, which does not send it on."""
    log = logging.getLogger("fedcdh")
    if not log.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(levelname)s: %(message)s"))
        log.addHandler(handler)
        log.setLevel(logging.INFO)


app = ClientApp()
app.query()(answer_query)
