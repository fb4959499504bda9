"""The line on findings that hang on one site, where it takes a few seconds at most."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fedcdh.cli._console import Output
from fedcdh.discovery.stability_text import format_hinges

if TYPE_CHECKING:
    from fedcdh.discovery.result import Discovery
    from fedcdh.discovery.stability import Stability

MAX_WORK = 1 << 11
"""Largest number of sites times 2 to the number of variables: 8 sites and 8 variables take about four seconds."""


def say_hinges(out: Output, result: Discovery, known: Stability | None = None) -> None:
    """Print which findings change when one site is left out, if that is known or soon found out."""
    if known is None and not (out.quiet or out.as_json) and is_quick(result):
        with out.search_status("without each site in turn") as progress:
            known = result.stability(progress=progress)
    if known is not None:
        out.say(format_hinges(known, "site"), "")


def is_quick(result: Discovery) -> bool:
    """Return whether every site can be left out once within a few seconds."""
    from fedcdh.summaries.aggregation import Cohort

    sites, variables = len(result.cohort.clients), len(result.cohort.plan.names)
    if result.posterior is None or not isinstance(result.cohort, Cohort) or sites < 3:
        return False
    return result.settings.rounds != "adaptive" and sites * 2**variables <= MAX_WORK
