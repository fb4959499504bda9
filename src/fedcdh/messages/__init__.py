"""The files that travel: profiles, plans, summaries and signatures, as bytes that can be trusted or are refused."""

from importlib.metadata import version

SOFTWARE = f"fedcdh {version('fedcdh')}"
"""What files say they were made by."""
