"""Which separations of one level of the search take an edge away.

Two separations can be too much together. If x ⫫ y | z and x ⫫ z | y both hold, then x is independent of y and z without
any condition (the intersection property of d-separation), and a lower level would have found that. When a test
believes both all the same, y and z are so close that neither leaves the other anything to explain, and taking both
edges away would leave a dependence that nothing explains.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from fedcdh.graphs.partial_graph import Pair, sort_pair
from fedcdh.protocols import Answer

CLEAR_P_VALUE = 0.01
"""A dependence with p-values below this calls for an explanation; `benchmarks.bench_feature_settings` compares
others."""


@dataclass(frozen=True)
class PriorFindings:
    """What the levels before have found."""

    separators: Mapping[Pair, Answer]  # of pairs that are gone
    strongest: Mapping[Pair, Answer]  # the largest p-value met, for pairs that are still there
    always_given: frozenset[str]  # in every question: no reason for a separation, and no contradiction to one


class RemovalRule(Protocol):
    """Chooses the separation that removes each pair, among those that one level of the search has found."""

    def __call__(self, separations: Iterable[Answer], so_far: PriorFindings, /) -> Mapping[Pair, Answer]: ...


def _certainty_key(answer: Answer) -> tuple[float, int, list[str], tuple[str, str]]:
    given = sorted(answer.query.given)
    return (-answer.p_value, len(given), given, sort_pair(answer.query.pair))


def remove_all(separations: Iterable[Answer], so_far: PriorFindings, /) -> Mapping[Pair, Answer]:
    """The textbook's rule, and the paper's: a pair goes with its surest separation, whatever the others say."""
    chosen: dict[Pair, Answer] = {}
    for answer in sorted(separations, key=_certainty_key):
        chosen.setdefault(answer.query.pair, answer)
    return chosen


def remove_consistent(separations: Iterable[Answer], so_far: PriorFindings, /) -> Mapping[Pair, Answer]:
    """The surest separations first; one that contradicts a separation already believed removes nothing.

    x ⫫ y | S with z in S contradicts x ⫫ z | T with y in T. A perfect test never gives both, since sets are tried from
    small to large: what is needed to keep x from y is then not itself kept from x by y. A dependence that was never
    clear needs no explanation, so pairs whose p-value has not always been below `CLEAR_P_VALUE` go all the same.
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
    """Whether some z in the set was itself separated from one end of the pair by the other end."""
    x, y = answer.query.x, answer.query.y
    return any(
        (other := believed.get(frozenset((end, z)))) is not None and blocker in other.query.given
        for z in answer.query.given - always_given
        for end, blocker in ((x, y), (y, x))
    )
