"""Which sets may separate a pair, and how they are put to a test."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import merge
from itertools import combinations, islice
from math import comb

from fedcdh.errors import InvalidAnswerError
from fedcdh.graphs.knowledge import Knowledge
from fedcdh.graphs.partial_graph import Pair, PartialGraph, sort_pair
from fedcdh.protocols import Answer, IndependenceTest, Query

_MAX_SORTED_SETS = 10_000  # sets, which are sooner sorted than merged


def possible_parents(graph: PartialGraph, knowledge: Knowledge) -> Mapping[str, frozenset[str]]:
    """For each node those neighbours that knowledge allows to be its parents.

    If a and b are not adjacent, the parents of a or the parents of b separate them; knowledge never forbids a true
    parent, so looking among these loses nothing. The domain has none. A pair of the domain and v is thus separated by
    neighbours of v alone, which is enough: the domain is a root, never a descendant of v.
    """
    return {
        node: frozenset(other for other in graph.neighbours(node) if not knowledge.forbids(other, node))
        for node in graph.nodes
    }


def generate_queries(
    pair: Pair, parents: Mapping[str, frozenset[str]], size: int, always_given: frozenset[str] = frozenset()
) -> Iterator[Query]:
    """The pair given each set of this size drawn from the possible parents of either end; no set twice.

    What is always given joins every set and does not count for its size. One at a time: there may be many millions.
    """
    x, y = sort_pair(pair)
    always = always_given if always_given.isdisjoint(pair) else always_given - pair  # not a set for every question
    if not size:
        yield Query(x, y, always)
        return
    one, other = _set_members(pair, parents, always_given)
    of_one, of_other = combinations(sorted(one), size), combinations(sorted(other), size)
    if comb(len(one), size) + comb(len(other), size) <= _MAX_SORTED_SETS:
        sets: Iterable[tuple[str, ...]] = sorted({*of_one, *of_other})
    else:
        sets = merge(of_one, (chosen for chosen in of_other if not one.issuperset(chosen)))
    for chosen in sets:
        yield Query(x, y, always.union(chosen))


def count_queries(
    pair: Pair, parents: Mapping[str, frozenset[str]], size: int, always_given: frozenset[str] = frozenset()
) -> int:
    """How many questions `generate_queries` has, without listing them."""
    if not size:
        return 1
    one, other = _set_members(pair, parents, always_given)
    return comb(len(one), size) + comb(len(other), size) - comb(len(one & other), size)


def _set_members(
    pair: Pair, parents: Mapping[str, frozenset[str]], always_given: frozenset[str]
) -> tuple[frozenset[str], frozenset[str]]:
    """Whom sets are drawn from, for either end."""
    x, y = sort_pair(pair)
    return parents[x] - {y} - always_given, parents[y] - {x} - always_given


def run_queries(test: IndependenceTest, questions: list[Query]) -> list[Answer]:
    """The answers to one batch, refused unless each question got its own p-value between 0 and 1."""
    if not questions:
        return []
    answers = test(questions)
    if [answer.query for answer in answers] != questions:
        raise InvalidAnswerError(
            f"the independence test was asked {len(questions)} questions and gave {len(answers)} answers, not to the"
            " same questions in the same order; a test answers each question of a batch, in order"
        )
    for answer in answers:
        if not 0.0 <= answer.p_value <= 1.0:  # also false for nan
            raise InvalidAnswerError(
                f"the p-value of {answer.query} is {answer.p_value}; expected a number from 0 to 1"
            )
    return answers


def select_most_independent(answers: Iterable[Answer]) -> Answer:
    """The answer with the largest p-value; among equals the one with fewest conditions, then the first by name."""
    return min(answers, key=lambda answer: (-answer.p_value, len(answer.query.given), sorted(answer.query.given)))


class CachedTest:
    """Asks the test it wraps each question once only: orientation asks again about much that the search has asked.

    Of very many answers only the first are remembered; to the rest, the test gives the same answer again.
    """

    def __init__(self, test: IndependenceTest, max_answers: int = 1 << 18) -> None:
        self._test, self._most = test, max_answers
        self._known: dict[Query, Answer] = {}

    def __call__(self, questions: Sequence[Query], /) -> list[Answer]:
        """Answers in the order of the questions."""
        new = [question for question in dict.fromkeys(questions) if question not in self._known]
        found = dict(zip(new, run_queries(self._test, new), strict=True))
        answers = [found[question] if question in found else self._known[question] for question in questions]
        self._known.update(islice(found.items(), self._most - len(self._known)))
        return answers


def with_progress(test: IndependenceTest, progress: Callable[[int, int], None] | None, level: int) -> IndependenceTest:
    """The same test, which tells of every batch before it answers."""

    def announcing(questions: Sequence[Query], /) -> list[Answer]:
        if progress is not None:
            progress(level, len(questions))
        return test(questions)

    return announcing
