"""Online studies over Flower: a ServerApp and a ClientApp that carry bytes, and nothing else.

What is asked, checked and stored is `fedcdh.federation`; the engine, its transport and its identities are Flower's. The
modules `server_app` and `client_app` need flwr (`pip install 'fedcdh[flower]'`); this one does not.
"""
