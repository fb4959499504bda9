"""Refusals: the findings of several rules as one error."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator

from fedcdh.errors import DisclosureError

_MAX_LISTED_FINDINGS = 20


def feasible_replicates(replicates: int, findings: Callable[[int], Iterator[str]]) -> Iterator[str]:
    """Say how many replicates could leave, if not this many: more replicates never break fewer limits."""
    if replicates and any(findings(replicates)):
        refused = bisect_left(range(replicates), True, key=lambda fewer: any(findings(fewer)))
        yield (
            "no number of bootstrap replicates changes that: the summary alone must not leave"
            if refused == 0
            else "without bootstrap replicates the summary may leave"
            if refused == 1
            else f"with up to {refused - 1} bootstrap replicates the summary may leave"
        )


def raise_findings(what: str, always: Iterable[str], findings: Iterator[str], enforced: bool) -> None:
    """Raise DisclosureError with one line for each finding; `findings` count only where limits are enforced."""
    broken = [*always, *(findings if enforced else ())]
    if broken:
        more = [f"and {len(broken) - _MAX_LISTED_FINDINGS} more"] if len(broken) > _MAX_LISTED_FINDINGS else []
        lines = "\n- ".join([*broken[:_MAX_LISTED_FINDINGS], *more])
        raise DisclosureError(f"{what}, by the policy of this site:\n- {lines}")
