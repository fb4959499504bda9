"""The line on findings that hang on one site, where it takes a few seconds at most."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fedcdh.cli._console import Output
from fedcdh.discovery.quick_stability import is_quick
from fedcdh.discovery.stability_text import format_hinges

if TYPE_CHECKING:
    from fedcdh.discovery.result import Discovery
    from fedcdh.discovery.stability import Stability


def say_hinges(out: Output, result: Discovery, known: Stability | None = None) -> Stability | None:
    """Print which findings change when one site is left out, if that is known or soon found out, and return it."""
    if known is None and not (out.quiet or out.as_json) and is_quick(result):
        with out.search_status("without each site in turn") as progress:
            known = result.stability(progress=progress)
    if known is not None:
        out.say(format_hinges(known, "site"), "")
    return known
