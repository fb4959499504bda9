"""Federated studies over Flower: a ServerApp and a ClientApp that carry bytes, and nothing else.

Requests, checks and stored files are those of `fedcdh.federation`; the engine, the network and the identities are
Flower's. The modules `server_app`, `client_app` and `payload` need flwr (`pip install 'fedcdh[flower]'`).

Modules
-------
server_app, client_app
    The apps of the coordinator and of a site.
payload
    Bytes in Flower's messages.
app_folder
    The folder that `flwr run` takes.
local_trial
    A SuperLink and SuperNodes on one machine, to try it.
"""

from fedcdh.federation.flower.app_folder import write_app

__all__ = ["write_app"]
