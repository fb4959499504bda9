"""The conditioning sets that may separate a pair, and the queries made of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import merge
from itertools import combinations, islice
from math import comb

from fedcdh.errors import InvalidAnswerError
from fedcdh.graphs.knowledge import Knowledge
from fedcdh.graphs.partial_graph import Pair, PartialGraph, sort_pair
from fedcdh.protocols import Answer, IndependenceTest, Query

_MAX_SORTED_SETS = 10_000  # up to here, sorting is faster than merging


def possible_parents(graph: PartialGraph, knowledge: Knowledge) -> Mapping[str, frozenset[str]]:
    """Return for each node the neighbours that knowledge allows to be its parents.

    If a and b are not adjacent, the parents of a or the parents of b separate them. Knowledge never forbids a true
    parent, so these sets are enough. The domain has no parents: it is separated from v by neighbours of v, which is
    enough because the domain is a root and never a descendant of v.
    """
    return {
        node: frozenset(other for other in graph.neighbours(node) if not knowledge.forbids(other, node))
        for node in graph.nodes
    }


def generate_queries(
    pair: Pair, parents: Mapping[str, frozenset[str]], size: int, always_given: frozenset[str] = frozenset()
) -> Iterator[Query]:
    """Yield a query for each set of this size from the possible parents of either end, no set twice.

    The variables in `always_given` join every set and do not count for its size.
    """
    x, y = sort_pair(pair)
    always = always_given if always_given.isdisjoint(pair) else always_given - pair  # one object for all queries
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
    """Return the number of queries of `generate_queries`, without listing them."""
    if not size:
        return 1
    one, other = _set_members(pair, parents, always_given)
    return comb(len(one), size) + comb(len(other), size) - comb(len(one & other), size)


def _set_members(
    pair: Pair, parents: Mapping[str, frozenset[str]], always_given: frozenset[str]
) -> tuple[frozenset[str], frozenset[str]]:
    """Return the nodes that sets are made of, for either end."""
    x, y = sort_pair(pair)
    return parents[x] - {y} - always_given, parents[y] - {x} - always_given


def run_queries(test: IndependenceTest, queries: list[Query]) -> list[Answer]:
    """Return the answers to one batch; refuse them unless each query has its own p-value from 0 to 1."""
    if not queries:
        return []
    answers = test(queries)
    if [answer.query for answer in answers] != queries:
        raise InvalidAnswerError(
            f"the independence test returned {len(answers)} answers to {len(queries)} queries, or in another order; "
            "expected one answer to each query of a batch, in order. Correct the test"
        )
    for answer in answers:
        if not 0.0 <= answer.p_value <= 1.0:  # also false for nan
            raise InvalidAnswerError(
                f"the p-value of {answer.query} is {answer.p_value}; expected a number from 0 to 1. Correct the test"
            )
    return answers


def select_most_independent(answers: Iterable[Answer]) -> Answer:
    """Return the answer with the largest p-value; among equals the smallest set, then the first by name."""
    return min(answers, key=lambda answer: (-answer.p_value, len(answer.query.given), sorted(answer.query.given)))


class CachedTest:
    """A test that remembers its answers: the orientation repeats many queries of the skeleton search.

    Parameters
    ----------
    test : IndependenceTest
        The test.
    max_answers : int
        The largest number of answers to remember; the test repeats the others, with the same result.

    Examples
    --------
    >>> from fedcdh.graphs import PartialGraph, make_d_separation_test
    >>> from fedcdh.protocols import Query
    >>> test = CachedTest(make_d_separation_test(PartialGraph(("x", "y"))))
    >>> test([Query("x", "y")]) == test([Query("x", "y")])
    True
    """

    def __init__(self, test: IndependenceTest, max_answers: int = 1 << 18) -> None:
        self._test, self._most = test, max_answers
        self._known: dict[Query, Answer] = {}

    def __call__(self, queries: Sequence[Query], /) -> list[Answer]:
        """Return the answers in the order of the queries."""
        new = [query for query in dict.fromkeys(queries) if query not in self._known]
        found = dict(zip(new, run_queries(self._test, new), strict=True))
        answers = [found[query] if query in found else self._known[query] for query in queries]
        self._known.update(islice(found.items(), self._most - len(self._known)))
        return answers


def with_progress(test: IndependenceTest, progress: Callable[[int, int], None] | None, level: int) -> IndependenceTest:
    """Return the same test, which calls `progress` before every batch."""

    def reporting_test(queries: Sequence[Query], /) -> list[Answer]:
        if progress is not None:
            progress(level, len(queries))
        return test(queries)

    return reporting_test
