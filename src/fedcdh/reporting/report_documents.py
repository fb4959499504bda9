"""The document that the report of a result is made of: all that is known, with the effects that the report shows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from fedcdh.discovery.findings import Findings
from fedcdh.discovery.quick_stability import is_quick
from fedcdh.discovery.result import Discovery
from fedcdh.discovery.stability import Stability
from fedcdh.reporting.effect_records import effect_to_dict
from fedcdh.reporting.html.effects_section import strongest_effect
from fedcdh.reporting.result_files import describe_result

NamePair = tuple[str, str]


def describe_for_report(
    result: Findings, effects: Iterable[NamePair] = (), stability: Stability | None = None
) -> dict[str, Any]:
    """Return the document of a result with the sites of the effects that its report shows.

    Parameters
    ----------
    result : Findings
        The result, or one that was read back. Of the latter, effects have the sites that the folder has.
    effects : iterable of pairs of str, default ()
        Cause and outcome of each effect to show. By default the strongest.
    stability : Stability, optional
        The stability of the result. By default every site is left out once if that takes a few seconds at most.

    Returns
    -------
    dict
        A result document.

    Raises
    ------
    SettingsError
        If an effect cannot be estimated.

    Examples
    --------
    >>> import fedcdh
    >>> result = fedcdh.discover(fedcdh.demo.hospital_study().columns(), domain="hospital", rounds="one")
    >>> document = describe_for_report(result, [("smoker", "cholesterol")], result.stability())
    >>> document["effects"][0]["cause"], sorted(document["effects"][0]["by_client"])[0]
    ('smoker', 'city')
    """
    if not isinstance(result, Discovery):
        return describe_result(result, stability)
    if stability is None and is_quick(result):
        stability = result.stability()
    document = describe_result(result, stability)
    pairs = list(effects) or _default_pairs(document)
    if pairs:
        records = [effect_to_dict(result.effect(*pair)) for pair in pairs]
        others = [one for one in document["effects"] or () if (one["cause"], one["outcome"]) not in pairs]
        document["effects"] = [*records, *others]
    return document


def _default_pairs(document: dict[str, Any]) -> Sequence[NamePair]:
    best = strongest_effect(document)
    return [] if best is None else [(best["cause"], best["outcome"])]
