"""FedPC: Huang et al. (2022), "Towards Privacy-Aware Causal Structure Learning in Federated Setting".

The server keeps one graph. At each level every client tests all its edges on its own rows and votes. An edge stays
where at least 30 % of the clients would keep it. For every pair without an edge that may be the ends of a collider,
clients then name the set that separates it best. A client sends its votes, these sets and how weakly each set joins its
pair.

In the authors' program, 30 % of the clients can *keep* an edge. In the other reading of their paper, `voting="veto"`,
30 % of the clients are enough to remove one. Both use α = 0.05.

A client may use one of these tests on its own rows:

- "fisherz": Fisher's z for partial correlations, as in the authors' program.
- "kernel": the paper's FCIT on the rows of one client, `KernelTest` with random Fourier features side by side: KCI with
  additive functions of the conditioning variables. Few features do not remove all that these explain, so that it
  rejects too often given two variables or more.
- "regression": the partial F tests of `RegressionTest`, which see the same functions and keep their significance level.
- "kci": causal-learn's KCI (it needs the extra "experiments"), the slowest by far.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations, islice
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy import special

from fedcdh._runtime.array_types import Array
from fedcdh.data.table import to_table
from fedcdh.errors import SettingsError
from fedcdh.evaluation.baselines.interface import BaselineResult, CountingChannel
from fedcdh.evaluation.baselines.pooled_references import import_causal_learn, wrap_causal_learn
from fedcdh.graphs import meek_rules
from fedcdh.graphs.admissible_arrows import find_obstacles
from fedcdh.graphs.knowledge import NO_KNOWLEDGE
from fedcdh.graphs.partial_graph import PartialGraph
from fedcdh.inference.batched_regression import solve_in_groups
from fedcdh.inference.independence.kernel_test import KernelTest
from fedcdh.inference.independence.regression_test import RegressionTest
from fedcdh.inference.orthonormal_basis import Basis
from fedcdh.protocols import Answer, IndependenceTest, Query
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.aggregation import Cohort, add_up
from fedcdh.summaries.features import FeatureFamily, Fourier, Hermite
from fedcdh.summaries.plan import StudyPlan

Bools = npt.NDArray[np.bool_]
ConditioningSet = tuple[int, ...]
LocalQuery = tuple[int, int, ConditioningSet]
LocalAnswers = Sequence[tuple[float, float]]
LocalTest = Callable[[Sequence[LocalQuery]], LocalAnswers]
"""Tests a ⫫ b | S in the rows of one client; returns the remaining association of a and b, and the p-value."""
VotingRule = Literal["keep", "veto"]

ALPHA = 0.05
MAX_CONDITIONING_SIZE = 3
"""The largest conditioning set, as in the authors' program."""
_BATCH_SIZE = 512  # queries that a client answers before it drops edges that need no more of them


def run_fedpc(
    tables: Mapping[str, Array],
    names: Sequence[str],
    seed: int = 0,
    *,
    test: str = "fisherz",
    voting: VotingRule = "keep",
    alpha: float = ALPHA,
) -> BaselineResult:
    """Run a PC search in which the server receives votes and separating sets only; `seed` fixes the kernel's features.

    >>> x, y, e = np.random.default_rng(1).standard_normal((3, 200))
    >>> table = np.column_stack([x, y, x + y + e])
    >>> print(run_fedpc({"north": table[:90], "south": table[90:]}, ("x", "y", "z")).graph)
    x → z
    y → z
    """
    if voting not in _REMOVAL_RULES or test not in LOCAL_TESTS:
        raise SettingsError(
            f"found voting {voting!r} and test {test!r}; expected one of {', '.join(_REMOVAL_RULES)} and one of "
            f"{', '.join(LOCAL_TESTS)}; choose among these"
        )
    channel = CountingChannel(len(tables))
    clients = [_FedPcClient(table, LOCAL_TESTS[test], alpha, seed) for table in tables.values()]
    joined = _find_skeleton(clients, channel, len(names), _REMOVAL_RULES[voting])
    return BaselineResult(_orient_edges(joined, _find_colliders(clients, channel, joined), names), channel.traffic)


def remove_unless_kept(votes: Array, clients: int) -> Bools:
    """Return the edges that fewer than 30 % of the clients, rounded as in the authors' program, would keep."""
    return np.asarray(clients - votes < max(1, math.floor(0.3 * clients + 0.5)))


def remove_when_vetoed(votes: Array, clients: int) -> Bools:
    """Return the edges that at least 30 % of the clients would remove."""
    return np.asarray(votes >= 0.3 * clients)


_REMOVAL_RULES = {"keep": remove_unless_kept, "veto": remove_when_vetoed}


# The server


def _find_skeleton(
    clients: Sequence[_FedPcClient], channel: CountingChannel, variables: int, removed: Callable[[Array, int], Bools]
) -> Bools:
    """Return the pairs that remain, level by level, until no set of that size is left to separate any of them."""
    joined = ~np.eye(variables, dtype=np.bool_)
    for level in range(MAX_CONDITIONING_SIZE + 1):
        if joined.sum(axis=0).max(initial=0) <= level:
            break
        known_edges = _matrix_of_pairs(channel.to_clients(_pairs_of_matrix(joined)), variables)
        votes = np.sum([channel.to_server(client.votes(known_edges, level)) for client in clients], axis=0)
        joined = joined & ~_matrix_of_pairs(removed(votes, len(clients)), variables)
    return joined


def _find_colliders(
    clients: Sequence[_FedPcClient], channel: CountingChannel, joined: Bools
) -> Iterator[tuple[int, int, int]]:
    """Yield a → z ← b where z is not in the set that separates a and b best.

    This is the set with the weakest correlation among those that some client considers separating: the rule of the
    authors' program. Where no client has such a set, the neighbours of the pair show no direction.
    """
    if not (open_pairs := _unshielded_pairs(joined)):
        return
    known_edges = _matrix_of_pairs(channel.to_clients(_pairs_of_matrix(joined)), len(joined))
    answers = [client.best_sets(known_edges) for client in clients]
    received = [(channel.to_server(strengths), channel.to_server(sets)) for strengths, sets in answers]
    for place, (a, b) in enumerate(open_pairs):
        candidates = [(strengths[place], _set_members(sets[place])) for strengths, sets in received]
        strength, best = min(candidates, key=_association_key)
        if np.isfinite(strength):
            yield from ((a, z, b) for z in np.flatnonzero(joined[a] & joined[b]).tolist() if z not in best)


def _orient_edges(joined: Bools, found: Iterator[tuple[int, int, int]], names: Sequence[str]) -> PartialGraph:
    """Orient colliders that do not contradict each other, and apply Meek's rules."""
    lines = frozenset(frozenset((names[a], names[b])) for a, b in np.argwhere(joined).tolist())
    graph = PartialGraph(tuple(names), lines=lines)
    colliders = [((names[a], names[z]), (names[b], names[z])) for a, z, b in found]
    refused = find_obstacles(graph, colliders, NO_KNOWLEDGE)
    for tail, head in {arrow for bundle in colliders if bundle not in refused for arrow in bundle}:
        graph = graph.orient(tail, head)
    return meek_rules.apply_meek_rules(graph)[0]


# A client


class _FedPcClient:
    """The rows of one client; it sends which edges it would remove, and by which sets."""

    def __init__(self, table: Array, test: Callable[[Array, int], LocalTest], alpha: float, seed: int) -> None:
        self._ask = test(table, seed)
        self._alpha = alpha

    def votes(self, joined: Bools, level: int) -> Bools:
        """Return for all pairs whether a set of this size among the neighbours of either end separates them."""
        separated = np.zeros_like(joined)
        questions = (
            (a, b, S)
            for a, b in np.argwhere(np.triu(joined)).tolist()
            for S in dict.fromkeys(S for near in (joined[a], joined[b]) for S in _subsets(near, level, {a, b}))
            if not separated[a, b]  # evaluated as late as possible: removed edges need no more queries
        )
        while some := list(islice(questions, _BATCH_SIZE)):
            for (a, b, _), (_, p_value) in zip(some, self._ask(some), strict=True):
                separated[a, b] |= p_value > self._alpha
        return _pairs_of_matrix(separated)

    def best_sets(self, joined: Bools) -> tuple[Array, Bools]:
        """Return for each unshielded pair the strength and members of the set that separates it best.

        The strength is infinite where no set separates the pair.
        """
        pairs = _unshielded_pairs(joined)
        strengths, sets = np.full(len(pairs), np.inf), np.zeros((len(pairs), len(joined)), dtype=np.bool_)
        for place, (a, b) in enumerate(pairs):
            around = joined[a] | joined[b]
            queries = [(a, b, S) for level in range(MAX_CONDITIONING_SIZE + 1) for S in _subsets(around, level, {a, b})]
            answers = zip(queries, self._ask(queries), strict=True)
            separating = [(strength, S) for (_, _, S), (strength, p_value) in answers if p_value > self._alpha]
            strengths[place], best = min(separating, key=_association_key, default=(np.inf, ()))
            sets[place, list(best)] = True
        return strengths, sets


def _subsets(nodes: Bools, size: int, ends: set[int]) -> Iterator[ConditioningSet]:
    return combinations([node for node in np.flatnonzero(nodes).tolist() if node not in ends], size)


def _association_key(candidate: tuple[float, ConditioningSet]) -> tuple[float, int, ConditioningSet]:
    """Return a sort key that prefers the smallest of sets that separate equally well."""
    strength, chosen = candidate
    return strength, len(chosen), chosen


def _set_members(chosen: Bools) -> ConditioningSet:
    return tuple(np.flatnonzero(chosen).tolist())


def _unshielded_pairs(joined: Bools) -> list[tuple[int, int]]:
    """Return the pairs without an edge that have a neighbour in common."""
    shared = joined.astype(np.int64) @ joined.astype(np.int64) > 0
    return [(a, b) for a, b in np.argwhere(np.triu(shared & ~joined, 1)).tolist()]


def _pairs_of_matrix(matrix: Bools) -> Bools:
    """Return what travels of a symmetric matrix: one value for each pair."""
    return np.asarray(matrix[np.triu_indices(len(matrix), 1)])


def _matrix_of_pairs(pairs: Bools, variables: int) -> Bools:
    matrix = np.zeros((variables, variables), dtype=np.bool_)
    matrix[np.triu_indices(variables, 1)] = pairs
    return matrix | matrix.T


# Tests on one client's rows


class FisherZTest:
    """The test of √(n − |S| − 3) · artanh(r_{ab|S}), which is standard normal if a ⫫ b | S; the strength is |r|.

    With too few rows the test rejects nothing.
    """

    def __init__(self, table: Array, seed: int = 0) -> None:
        """Compute the correlations; a constant column is uncorrelated with all others."""
        centred = table - table.mean(axis=0)
        scale = np.linalg.norm(centred, axis=0)
        unit = centred / np.where(scale > 0, scale, 1)
        self._rows = len(table)
        self._correlations = np.asarray(unit.T @ unit + np.diag((scale == 0).astype(float)))

    def __call__(self, queries: Sequence[LocalQuery]) -> LocalAnswers:
        return solve_in_groups(queries, lambda q: len(q[2]), lambda q: (2 + len(q[2])) ** 2, self._solve)

    def _solve(self, queries: list[LocalQuery]) -> LocalAnswers:
        """Find r_{ab|S} in the inverse of the correlations of a, b and S."""
        chosen = np.array([(a, b, *given) for a, b, given in queries])
        precision = np.linalg.pinv(self._correlations[chosen[:, :, None], chosen[:, None, :]], hermitian=True)
        size = np.sqrt(np.maximum(precision[:, 0, 0] * precision[:, 1, 1], 1e-300))
        strength = np.abs(np.clip(-precision[:, 0, 1] / size, -1 + 1e-12, 1 - 1e-12))
        left = self._rows - chosen.shape[1] - 1
        p_value = 2 * special.ndtr(-math.sqrt(max(left, 0)) * np.arctanh(strength)) if left > 0 else 0 * strength
        return list(zip(strength.tolist(), p_value.tolist(), strict=True))


class SummaryTest:
    """A test of `fedcdh.inference.independence` on the summary of one client's rows; the strength is 1 − p."""

    def __init__(self, table: Array, family: FeatureFamily, build: Callable[[Cohort], IndependenceTest]) -> None:
        own = to_table(table, [str(i) for i in range(table.shape[1])])
        plan = StudyPlan.from_tables({"own": own}, family=family)
        self._test = build(add_up([summarize(own, plan, "own")], plan))

    def __call__(self, queries: Sequence[LocalQuery]) -> LocalAnswers:
        answers = self._test([Query(str(a), str(b), frozenset(map(str, given))) for a, b, given in queries])
        return [(1 - answer.p_value, answer.p_value) for answer in answers]


def make_kernel_test(table: Array, seed: int) -> LocalTest:
    """Return `KernelTest.concatenated` with five random Fourier features, as many as the paper takes."""
    return SummaryTest(table, Fourier(5, seed=seed), lambda cohort: _symmetrise(KernelTest.concatenated(cohort)))


def _symmetrise(test: IndependenceTest) -> IndependenceTest:
    """Ask a test both ways round and keep the larger p-value, since X and Y play different parts in the kernel test."""

    def ask(questions: Sequence[Query], /) -> list[Answer]:
        turned = [Query(q.y, q.x, q.given) for q in questions]
        return [max(ways, key=lambda way: way.p_value) for ways in zip(test(questions), test(turned), strict=True)]

    return ask


def make_regression_test(table: Array, seed: int) -> LocalTest:
    """Return `RegressionTest` with Hermite functions; nothing is random."""
    return SummaryTest(table, Hermite(), lambda cohort: RegressionTest(Basis.of(cohort)))


class KciTest:
    """The KCI test of causal-learn on the rows of one client; the strength is 1 − p."""

    def __init__(self, table: Array, seed: int = 0) -> None:
        make = import_causal_learn("utils.cit", "CIT")
        self._seed = seed
        with wrap_causal_learn("KCI", seed):
            self._test = make(table, "kci")

    def __call__(self, queries: Sequence[LocalQuery]) -> LocalAnswers:
        with wrap_causal_learn("KCI", self._seed):
            p_values = [float(self._test(a, b, list(given))) for a, b, given in queries]
        return [(1 - p_value, p_value) for p_value in p_values]


LOCAL_TESTS: Mapping[str, Callable[[Array, int], LocalTest]] = {
    "fisherz": FisherZTest,
    "kernel": make_kernel_test,
    "regression": make_regression_test,
    "kci": KciTest,
}
