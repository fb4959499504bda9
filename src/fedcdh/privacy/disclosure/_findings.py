"""Refusals: the findings of several rules as one error, with one line for each cause."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from fedcdh.errors import DisclosureError

_MAX_LISTED_FINDINGS = 20
_MAX_LISTED_ITEMS = 4
_QUOTED_NAME = re.compile(r"of ('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")")


class Finding(str):
    """A sentence about one thing that must not leave, which knows how to say the same of several things at once.

    Rules may also yield plain texts; these are listed one by one.

    Parameters
    ----------
    text : str
        The sentence: what was found, what was expected, what to do.
    item : str
        What was found, in a few words.
    together : str
        The sentence about several items of the same cause, with `{items}` in their place.

    Examples
    --------
    >>> found = [Finding(f"{one} is alone; group it", one, "{items} are alone; group them") for one in ("a", "b")]
    >>> group_findings(found)
    ['a, b are alone; group them']
    """

    item: str
    together: str

    def __new__(cls, text: str, item: str, together: str) -> Finding:
        """Make the sentence."""
        made = super().__new__(cls, text)
        made.item, made.together = item, together
        return made


def group_findings(findings: Iterable[str]) -> list[str]:
    """Return one line for each cause, in the order in which causes were found."""
    causes: dict[str, list[str]] = {}
    for finding in findings:
        cause = finding.together if isinstance(finding, Finding) else finding
        causes.setdefault(cause, []).append(finding)
    return [_describe_cause(cause, found) for cause, found in causes.items()]


def _describe_cause(cause: str, findings: Sequence[str]) -> str:
    items = [finding.item for finding in findings if isinstance(finding, Finding)]
    if len(items) < 2:
        return findings[0]
    listed = ", ".join(items[:_MAX_LISTED_ITEMS])
    if len(items) > _MAX_LISTED_ITEMS:
        names = Counter(name for item in items for name in _QUOTED_NAME.findall(item))
        mostly = f", most of them of {' and '.join(name for name, _ in names.most_common(2))}" if names else ""
        listed += f" and {len(items) - _MAX_LISTED_ITEMS} more{mostly}"
    return cause.replace("{items}", listed)


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
    """Raise DisclosureError with one line for each cause; `findings` count only where limits are enforced.

    The error carries all findings, for advice on what to change.
    """
    broken = [*always, *(findings if enforced else ())]
    if broken:
        lines = group_findings(broken)
        more = [f"and {len(lines) - _MAX_LISTED_FINDINGS} more"] if len(lines) > _MAX_LISTED_FINDINGS else []
        listed = "\n- ".join([*lines[:_MAX_LISTED_FINDINGS], *more])
        refusal = DisclosureError(f"{what}, by the policy of this site:\n- {listed}")
        refusal.findings = tuple(broken)
        raise refusal
