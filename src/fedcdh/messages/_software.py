"""The name and version of this program, as files say what they were made by."""

from importlib.metadata import version

SOFTWARE = f"fedcdh {version('fedcdh')}"
