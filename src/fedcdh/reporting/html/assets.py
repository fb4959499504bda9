"""The styles, scripts and templates of pages, and the policy that admits nothing else."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files


@cache
def read_asset(name: str) -> str:
    """Return the text of a file beside this module."""
    return files("fedcdh.reporting.html").joinpath(name).read_text(encoding="utf-8").strip()


def csp_hash(content: str) -> str:
    """Return the hash by which the content security policy admits a style or a script."""
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode("utf-8")).digest()).decode("ascii")
