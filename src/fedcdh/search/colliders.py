"""Rules that decide which unshielded triples a — z — b are colliders a → z ← b.

A rule decides each triple and says how certain the decision is. `orientation` resolves contradictions between
decisions, in the same way for every rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import comb
from typing import Protocol

from fedcdh.errors import GraphError
from fedcdh.graphs.knowledge import NO_KNOWLEDGE, Knowledge
from fedcdh.graphs.partial_graph import Arrow, Pair, sort_pair
from fedcdh.protocols import Answer, IndependenceTest, Query
from fedcdh.search.conditioning_sets import generate_queries, possible_parents, run_queries, select_most_independent
from fedcdh.search.skeleton import Skeleton


@dataclass(frozen=True)
class TripleDecision:
    """The decision whether the middle of an unshielded triple is a collider.

    Attributes
    ----------
    ends : (str, str)
        The two nodes that are not adjacent.
    middle : str
        The node between them.
    collider : bool
        True if the middle is a collider.
    strength : float
        The certainty; comparable between decisions of the same rule.
    without_middle : Answer or None
        The answer with the largest p-value among sets without the middle.
    with_middle : Answer or None
        The answer with the largest p-value among sets with the middle.

    Examples
    --------
    >>> TripleDecision(("x", "y"), "z", True, 0.9, None, None).arrows
    (('x', 'z'), ('y', 'z'))
    """

    ends: tuple[str, str]
    middle: str
    collider: bool
    strength: float
    without_middle: Answer | None
    with_middle: Answer | None

    @property
    def arrows(self) -> tuple[Arrow, Arrow]:
        """Return the two arrows into the middle."""
        first, second = self.ends
        return (first, self.middle), (second, self.middle)


class ColliderRule(Protocol):
    """A rule that decides every unshielded triple of a skeleton that knowledge leaves open."""

    def __call__(self, skeleton: Skeleton, knowledge: Knowledge, /) -> tuple[TripleDecision, ...]:
        """Return one decision per open triple."""


class MiddleRule(Protocol):
    """A rule that decides whether a node between two that are not adjacent is a collider, on a path of any length."""

    def __call__(self, skeleton: Skeleton, pair: Pair, middle: str, /) -> bool:
        """Return whether it is a collider."""
        ...


def separating_set_rule(skeleton: Skeleton, knowledge: Knowledge, /) -> tuple[TripleDecision, ...]:
    """Decide that z is a collider if it is not in the set that separated a and b: the rule of PC and of the paper.

    The larger the p-value of the separation, the more certain is the decision. No further tests are made.

    Parameters
    ----------
    skeleton : Skeleton
        The skeleton.
    knowledge : Knowledge
        Background knowledge.

    Returns
    -------
    tuple of TripleDecision
        The decisions.

    Examples
    --------
    >>> from fedcdh.graphs import NO_KNOWLEDGE, PartialGraph, make_d_separation_test
    >>> from fedcdh.search import find_skeleton
    >>> test = make_d_separation_test(PartialGraph.from_dag("xyz", [("x", "z"), ("y", "z")]))
    >>> [decision.collider for decision in separating_set_rule(find_skeleton("xyz", test, 0.05), NO_KNOWLEDGE)]
    [True]
    """
    return tuple(
        _decide_from_separator(skeleton, pair, middle) for pair, middle in find_open_triples(skeleton, knowledge)
    )


def make_largest_p_rule(
    test: IndependenceTest, max_conditioning_size: int | None = None, max_sets: int = 1000
) -> ColliderRule:
    """Return the rule that compares the largest p-values with and without z in the conditioning set.

    z is a collider if max p(a ⫫ b | S without z) > max p(a ⫫ b | S with z). The larger the difference, the more certain
    is the decision.

    Parameters
    ----------
    test : IndependenceTest
        The conditional independence test.
    max_conditioning_size : int, optional
        The largest size of S; never more than that of the skeleton search, which is the default.
    max_sets : int, default 1000
        The largest number of sets of a pair. Next to a hub, the largest sizes are left out to keep to it.

    Returns
    -------
    ColliderRule
        The rule. All its queries are one batch.

    Notes
    -----
    S runs through the subsets of the possible parents of a and of b in the final skeleton. The set that separated them
    in the search is always among them: with a perfect test it alone makes every decision right, and all other sets
    only reduce the errors of a real test.

    Examples
    --------
    >>> from fedcdh.graphs import NO_KNOWLEDGE, PartialGraph, make_d_separation_test
    >>> from fedcdh.search import find_skeleton
    >>> test = make_d_separation_test(PartialGraph.from_dag("xyz", [("x", "z"), ("y", "z")]))
    >>> [decision.collider for decision in make_largest_p_rule(test)(find_skeleton("xyz", test, 0.05), NO_KNOWLEDGE)]
    [True]
    """

    def rule(skeleton: Skeleton, knowledge: Knowledge, /) -> tuple[TripleDecision, ...]:
        triples = find_open_triples(skeleton, knowledge)
        parents = possible_parents(skeleton.graph, knowledge)
        searched = len(skeleton.queries_per_level) - 1
        largest = searched if max_conditioning_size is None else min(searched, max_conditioning_size)
        pairs = dict.fromkeys(pair for pair, _ in triples)
        queries = [
            query
            for pair in pairs
            for query in _list_affordable_queries(pair, parents, largest, max_sets, skeleton.always_given)
        ]
        known = {skeleton.separators[pair].query for pair in pairs if pair in skeleton.separators}
        answers = run_queries(test, [query for query in queries if query not in known])
        evidence: dict[Pair, list[Answer]] = {
            pair: [skeleton.separators[pair]] if pair in skeleton.separators else [] for pair in pairs
        }
        for answer in answers:
            evidence[answer.query.pair].append(answer)
        return tuple(_decide_from_answers(pair, middle, evidence[pair]) for pair, middle in triples)

    return rule


def decide_by_separator(skeleton: Skeleton, pair: Pair, middle: str, /) -> bool:
    """Return whether the set that separated a pair lacks a node, as it does if the node is a collider between them.

    Parameters
    ----------
    skeleton : Skeleton
        The skeleton.
    pair : frozenset of str
        Two nodes that are not adjacent.
    middle : str
        The node.

    Returns
    -------
    bool
        True for a collider.
    """
    return middle not in skeleton.separators[pair].query.given


def make_largest_p_decision(test: IndependenceTest, max_sets: int = 1000) -> MiddleRule:
    """Return the rule that compares the largest p-values of a pair with and without a node in the conditioning set.

    Parameters
    ----------
    test : IndependenceTest
        The conditional independence test.
    max_sets : int, default 1000
        The largest number of sets of a pair.

    Returns
    -------
    MiddleRule
        The rule. The sets are those of `make_largest_p_rule`, and the one that separated the pair.

    Examples
    --------
    >>> from fedcdh.graphs import PartialGraph, make_d_separation_test
    >>> from fedcdh.search import find_skeleton
    >>> test = make_d_separation_test(PartialGraph.from_dag("xyz", [("x", "z"), ("y", "z")]))
    >>> make_largest_p_decision(test)(find_skeleton("xyz", test, 0.05), frozenset("xy"), "z")
    True
    """

    def rule(skeleton: Skeleton, pair: Pair, middle: str, /) -> bool:
        near = possible_parents(skeleton.graph, NO_KNOWLEDGE)
        searched = len(skeleton.queries_per_level) - 1
        queries = _list_affordable_queries(pair, near, searched, max_sets, skeleton.always_given)
        answers = [*run_queries(test, queries), skeleton.separators[pair]]
        return _decide_from_answers(pair, middle, answers).collider

    return rule


def find_open_triples(skeleton: Skeleton, knowledge: Knowledge) -> list[tuple[Pair, str]]:
    """Return the unshielded triples that knowledge does not decide, in a fixed order."""
    undecided = (triple for triple in skeleton.graph.unshielded_triples if knowledge.leaves_open(*triple))
    return sorted(undecided, key=lambda triple: (sort_pair(triple[0]), triple[1]))


def _decide_from_separator(skeleton: Skeleton, pair: Pair, middle: str) -> TripleDecision:
    if pair not in skeleton.separators:
        a, b = sort_pair(pair)
        raise GraphError(
            f"the skeleton has no answer for {a} and {b}, which are not adjacent; find the skeleton with the same "
            "knowledge that directs it, or use make_largest_p_rule"
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
    # The difference of p-values, not of their logarithms, which would hardly depend on the larger one.
    difference = _p_value(without) - _p_value(within)
    # Equal p-values favour neither. A collider claims two arrows, so it needs the evidence.
    return TripleDecision(sort_pair(pair), middle, difference > 0, abs(difference), without, within)


def _p_value(answer: Answer | None) -> float:
    return 0.0 if answer is None else answer.p_value


def _list_affordable_queries(
    pair: Pair, parents: Mapping[str, frozenset[str]], largest: int, max_sets: int, always_given: frozenset[str]
) -> list[Query]:
    """Return the queries about a pair, of all sizes up to the largest that keeps them within `max_sets`."""
    first, second = (len(parents[node] - pair - always_given) for node in pair)
    total, size = 2, 0
    while size < min(largest, max(first, second)):
        total += comb(first, size + 1) + comb(second, size + 1)
        if total > max_sets and size >= 1:
            break
        size += 1
    return [query for chosen in range(size + 1) for query in generate_queries(pair, parents, chosen, always_given)]
