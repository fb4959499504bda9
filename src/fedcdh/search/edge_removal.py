"""Rules that decide which separations of one level of the search remove an edge.

Two separations can contradict each other. If x ⫫ y | z and x ⫫ z | y both hold, then x is independent of y and z
without conditioning (the intersection property of d-separation), and a lower level would have found that. If a test
accepts both, y and z are so strongly dependent that neither adds information to the other. Removing both edges would
leave a dependence without explanation.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from fedcdh.graphs.partial_graph import Pair, sort_pair
from fedcdh.protocols import Answer

CLEAR_P_VALUE = 0.01
"""A dependence with all p-values below this needs an explanation; chosen by `benchmarks.bench_feature_settings`."""


@dataclass(frozen=True)
class PriorFindings:
    """The findings of the previous levels."""

    separators: Mapping[Pair, Answer]  # of pairs that are removed
    strongest: Mapping[Pair, Answer]  # the largest p-value of pairs that are still adjacent
    always_given: frozenset[str]  # in every query, and so neither a reason for a separation nor against one


class RemovalRule(Protocol):
    """A rule that chooses the separation that removes each pair, among those found at one level of the search."""

    def __call__(self, separations: Iterable[Answer], so_far: PriorFindings, /) -> Mapping[Pair, Answer]:
        """Return the pairs to remove, each with its separation."""


def _certainty_key(answer: Answer) -> tuple[float, int, list[str], tuple[str, str]]:
    given = sorted(answer.query.given)
    return (-answer.p_value, len(given), given, sort_pair(answer.query.pair))


def remove_all(separations: Iterable[Answer], so_far: PriorFindings, /) -> Mapping[Pair, Answer]:
    """Remove every separated pair, by its separation with the largest p-value: the rule of PC and of the paper.

    Parameters
    ----------
    separations : iterable of Answer
        The answers of a level with p-values above alpha.
    so_far : PriorFindings
        The findings of the previous levels, which this rule does not use.

    Returns
    -------
    mapping from pair to Answer
        The pairs to remove, each with its separation.

    Examples
    --------
    >>> from fedcdh.protocols import Answer, Query
    >>> separations = [Answer(Query("x", "y"), 0.1, 0.7, 100), Answer(Query("x", "y", frozenset("z")), 0.1, 0.9, 100)]
    >>> remove_all(separations, PriorFindings({}, {}, frozenset()))[frozenset("xy")].p_value
    0.9
    """
    chosen: dict[Pair, Answer] = {}
    for answer in sorted(separations, key=_certainty_key):
        chosen.setdefault(answer.query.pair, answer)
    return chosen


def remove_consistent(separations: Iterable[Answer], so_far: PriorFindings, /) -> Mapping[Pair, Answer]:
    """Remove separated pairs, the largest p-value first, except where a separation contradicts an accepted one.

    Parameters
    ----------
    separations : iterable of Answer
        The answers of a level with p-values above alpha.
    so_far : PriorFindings
        The findings of the previous levels.

    Returns
    -------
    mapping from pair to Answer
        The pairs to remove, each with its separation.

    Notes
    -----
    x ⫫ y | S with z in S contradicts x ⫫ z | T with y in T. A perfect test never accepts both, since sets are tested
    from small to large. A dependence that was never clear needs no explanation: pairs with a p-value of
    `CLEAR_P_VALUE` or more at any level are removed all the same.

    Examples
    --------
    >>> from fedcdh.protocols import Answer, Query
    >>> clear = {frozenset(pair): Answer(Query(*pair), 90.0, 1e-9, 100) for pair in ("xy", "xz")}
    >>> first = Answer(Query("x", "y", frozenset("z")), 0.1, 0.9, 100)
    >>> both = [first, Answer(Query("x", "z", frozenset("y")), 1.0, 0.3, 100)]
    >>> [sorted(pair) for pair in remove_consistent(both, PriorFindings({}, clear, frozenset()))]
    [['x', 'y']]
    """
    chosen: dict[Pair, Answer] = {}
    believed = ChainMap(chosen, dict(so_far.separators))
    for answer in sorted(separations, key=_certainty_key):
        pair = answer.query.pair
        clear = pair in so_far.strongest and so_far.strongest[pair].p_value < CLEAR_P_VALUE
        if pair not in chosen and not (clear and _contradicts(answer, believed, so_far.always_given)):
            chosen[pair] = answer
    return chosen


def _contradicts(answer: Answer, believed: Mapping[Pair, Answer], always_given: frozenset[str]) -> bool:
    """Return whether a z in the set was itself separated from one end of the pair by the other end."""
    x, y = answer.query.x, answer.query.y
    return any(
        (other := believed.get(frozenset((end, z)))) is not None and blocker in other.query.given
        for z in answer.query.given - always_given
        for end, blocker in ((x, y), (y, x))
    )
