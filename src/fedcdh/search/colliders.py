"""Which unshielded triples a — z — b are colliders a → z ← b: two rules of one protocol.

A rule only decides each triple and says how sure it is. What happens when decisions contradict each other is settled
in `orientation`, the same way for every rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import comb
from typing import Protocol

from fedcdh.errors import GraphError
from fedcdh.graphs.knowledge import Knowledge
from fedcdh.graphs.partial_graph import Arrow, Pair, sort_pair
from fedcdh.protocols import Answer, IndependenceTest, Query
from fedcdh.search.conditioning_sets import generate_queries, possible_parents, run_queries, select_most_independent
from fedcdh.search.skeleton import Skeleton


@dataclass(frozen=True)
class TripleDecision:
    """Whether the middle of an unshielded triple is a collider, how sure that is, and the answers that say so."""

    ends: tuple[str, str]
    middle: str
    collider: bool
    strength: float  # comparable between decisions of the same rule
    without_middle: Answer | None  # the most independent the ends get without the middle among the conditions
    with_middle: Answer | None  # and with it

    @property
    def arrows(self) -> tuple[Arrow, Arrow]:
        """The two arrows into the middle."""
        first, second = self.ends
        return (first, self.middle), (second, self.middle)


class ColliderRule(Protocol):
    """Decides every unshielded triple of a skeleton that knowledge leaves open."""

    def __call__(self, skeleton: Skeleton, knowledge: Knowledge, /) -> tuple[TripleDecision, ...]: ...


def separating_set_rule(skeleton: Skeleton, knowledge: Knowledge, /) -> tuple[TripleDecision, ...]:
    """a → z ← b iff z is not in the set that separated a and b; the larger its p-value, the surer.

    The textbook's rule, and the paper's. It asks nothing more.
    """
    return tuple(
        _decide_from_separator(skeleton, pair, middle) for pair, middle in find_open_triples(skeleton, knowledge)
    )


def make_largest_p_rule(
    test: IndependenceTest, max_conditioning_size: int | None = None, max_sets: int = 1000
) -> ColliderRule:
    """a → z ← b iff max p(a ⫫ b | S without z) > max p(a ⫫ b | S with z); the larger the difference, the surer.

    S runs through the subsets of the possible parents of a and of b in the final skeleton, and the set that separated
    them in the search is always among them: with a perfect test this alone makes every decision right, and all other
    sets only guard against errors of a real one. Sets are no larger than those of the skeleton search (its own limit,
    if any, thus holds here too), nor than `max_conditioning_size`; next to a hub, where a pair would have more than
    `max_sets` of them, the largest sizes are left out for that pair. All questions are one batch.
    """

    def rule(skeleton: Skeleton, knowledge: Knowledge, /) -> tuple[TripleDecision, ...]:
        triples = find_open_triples(skeleton, knowledge)
        parents = possible_parents(skeleton.graph, knowledge)
        searched = len(skeleton.queries_per_level) - 1
        largest = searched if max_conditioning_size is None else min(searched, max_conditioning_size)
        pairs = dict.fromkeys(pair for pair, _ in triples)
        questions = [
            question
            for pair in pairs
            for question in _list_affordable_queries(pair, parents, largest, max_sets, skeleton.always_given)
        ]
        known = {skeleton.separators[pair].query for pair in pairs if pair in skeleton.separators}
        answers = run_queries(test, [question for question in questions if question not in known])
        evidence: dict[Pair, list[Answer]] = {
            pair: [skeleton.separators[pair]] if pair in skeleton.separators else [] for pair in pairs
        }
        for answer in answers:
            evidence[answer.query.pair].append(answer)
        return tuple(_decide_from_answers(pair, middle, evidence[pair]) for pair, middle in triples)

    return rule


def find_open_triples(skeleton: Skeleton, knowledge: Knowledge) -> list[tuple[Pair, str]]:
    """The unshielded triples that may be colliders for all that knowledge says, in a fixed order."""
    undecided = (triple for triple in skeleton.graph.unshielded_triples if knowledge.leaves_open(*triple))
    return sorted(undecided, key=lambda triple: (sort_pair(triple[0]), triple[1]))


def _decide_from_separator(skeleton: Skeleton, pair: Pair, middle: str) -> TripleDecision:
    if pair not in skeleton.separators:
        a, b = sort_pair(pair)
        raise GraphError(
            f"the skeleton has no answer on record for {a} and {b}, which are not adjacent; find the skeleton with the"
            " same knowledge that directs it, or use by_largest_p"
        )
    answer = skeleton.separators[pair]
    if middle in answer.query.given:
        return TripleDecision(sort_pair(pair), middle, False, answer.p_value, without_middle=None, with_middle=answer)
    return TripleDecision(sort_pair(pair), middle, True, answer.p_value, without_middle=answer, with_middle=None)


def _decide_from_answers(pair: Pair, middle: str, answers: Iterable[Answer]) -> TripleDecision:
    sides: dict[bool, list[Answer]] = {False: [], True: []}
    for answer in answers:
        sides[middle in answer.query.given].append(answer)
    without = select_most_independent(sides[False]) if sides[False] else None
    within = select_most_independent(sides[True]) if sides[True] else None
    # The plain difference of p-values, not of their logarithms, which would hardly look at how well the better side
    # separates.
    difference = _p_value(without) - _p_value(within)
    # Equal p-values speak for neither; a collider claims two arrows, so the burden of proof is on it.
    return TripleDecision(sort_pair(pair), middle, difference > 0, abs(difference), without, within)


def _p_value(answer: Answer | None) -> float:
    return 0.0 if answer is None else answer.p_value


def _list_affordable_queries(
    pair: Pair, parents: Mapping[str, frozenset[str]], largest: int, max_sets: int, always_given: frozenset[str]
) -> list[Query]:
    """The questions about a pair of all sizes up to the largest that keeps them within `max_sets`, at least one."""
    first, second = (len(parents[node] - pair - always_given) for node in pair)
    total, size = 2, 0
    while size < min(largest, max(first, second)):
        total += comb(first, size + 1) + comb(second, size + 1)
        if total > max_sets and size >= 1:
            break
        size += 1
    return [
        question for chosen in range(size + 1) for question in generate_queries(pair, parents, chosen, always_given)
    ]
