"""FedC2SL: Wang, Ma and Wang (2023), "Towards Practical Federated Causal Structure Learning". Labels only.

The chi-square test of X ⫫ Y | Z on the rows of all clients, for each combination z of levels of Z:

1. Clients send the margins N_xz and N_yz, which are added up; the sums come back, and E_xy = N_xz N_yz / N_z.
2. Client k forms u_k = (N_k,xyz − E_xy / K) / √E_xy. The squared length of Σ_k u_k is the chi-square of z.
3. Sketch: client k sends Q u_k, for a matrix Q of draws from N(0, 2) that all clients know; these are added up.
   |u|² is estimated by the geometric mean of the squares, divided by its mean for |u| = 1.
4. Chi-square and degrees of freedom are sums over z. Rows and columns of a table without a count do not count.

The search is PC-stable with α = 0.05. All sets of a level are tried, and the one with the largest p-value separates:
the authors' program stops at the first, which depends on the order of the variables. Combinations z whose table has one
row or one column add nothing to either sum, and nothing is sent about them in the second step.

In the voting forms a client tests on its own rows alone. "questions": each question is decided by the majority of the
clients, with the largest of their p-values if they accept independence, else with the smallest. "graphs": each client
finds a graph, an edge stays where more than half of the clients have it, and its direction is that of the majority.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import special

from fedcdh._runtime.array_types import Array
from fedcdh.data.sources import ColumnKind
from fedcdh.evaluation.baselines.directed_votes import graph_to_marks, merge_votes, votes_of_marks
from fedcdh.evaluation.baselines.interface import BaselineResult, CountingChannel
from fedcdh.evaluation.baselines.label_counts import Counts, LabelClient, LabelStudy, agree_on_levels, bin_numbers
from fedcdh.evaluation.simulation import keyed_generator
from fedcdh.graphs.partial_graph import PartialGraph
from fedcdh.protocols import Answer, IndependenceTest, Query
from fedcdh.search.colliders import separating_set_rule
from fedcdh.search.orientation import orient_skeleton
from fedcdh.search.skeleton import find_skeleton

VotingForm: TypeAlias = Literal["questions", "graphs"]

ALPHA = 0.05
SKETCH_SIZE = 50
"""The number l of projections, as in the authors' paper."""
MAX_CELLS = 200_000
"""A question whose table has more cells is not asked, and its edge stays: ours, for memory."""


def run_fedc2sl(
    tables: Mapping[str, Array],
    names: Sequence[str],
    seed: int = 0,
    *,
    kinds: Mapping[str, ColumnKind] | None = None,
    sketch_size: int | None = SKETCH_SIZE,
    binned: bool = False,
    alpha: float = ALPHA,
) -> BaselineResult:
    """Run PC with federated chi-square tests; without a sketch size they are exact. `seed` fixes the sketch.

    >>> x, y, e = np.random.default_rng(1).integers(0, 2, (3, 400))
    >>> table = np.column_stack([x, y, x + y + (e & x)]).astype(float)
    >>> print(run_fedc2sl({"north": table[:190], "south": table[190:]}, ("x", "y", "z")).graph)
    x → z
    y → z
    """
    channel = CountingChannel(len(tables))
    study = agree_on_levels(bin_numbers(tables, channel) if binned else tables, channel)
    length: LengthEstimate = ExactLength() if sketch_size is None else SketchedLength(sketch_size, seed)
    test = FederatedChiSquare(study, names, channel, length)
    return BaselineResult(find_pc_graph(names, test, alpha), channel.traffic)


def run_chi_square_votes(
    tables: Mapping[str, Array],
    names: Sequence[str],
    seed: int = 0,
    *,
    kinds: Mapping[str, ColumnKind] | None = None,
    voting: VotingForm = "questions",
    alpha: float = ALPHA,
) -> BaselineResult:
    """Run PC with chi-square tests at the clients, who vote about each question or about their graphs."""
    channel = CountingChannel(len(tables))
    study = agree_on_levels(tables, channel)
    if voting == "questions":
        graph = find_pc_graph(names, VotedChiSquare(study, names, channel, alpha), alpha)
        return BaselineResult(graph, channel.traffic)
    own = [find_pc_graph(names, LocalChiSquare(client, study, names), alpha) for client in study.clients]
    sent = [np.asarray(channel.to_server(graph_to_marks(graph, names))) for graph in own]
    votes = np.sum([votes_of_marks(marks) for marks in sent], axis=0)
    kept = votes + votes.T > len(sent) / 2
    return BaselineResult(merge_votes(np.where(kept, votes, 0.0), names), channel.traffic)


def find_pc_graph(names: Sequence[str], test: IndependenceTest, alpha: float) -> PartialGraph:
    """Run PC-stable, the rule of separating sets, and Meek's rules."""
    return orient_skeleton(find_skeleton(names, test, alpha), separating_set_rule).graph


# The test


class LengthEstimate(Protocol):
    """The squared length of Σ_k u_k for each combination z, from what clients send about u_k."""

    def message(self, deviations: Array, key: str) -> Array:
        """Return what a client sends about its u_k, which has the axes z and cell."""

    def squares(self, total: Array) -> Array:
        """Return |u|² for each z from the sum of the messages."""


class ExactLength:
    """The vectors u_k themselves are sent."""

    def message(self, deviations: Array, key: str) -> Array:
        """Return u_k."""
        return deviations

    def squares(self, total: Array) -> Array:
        """Return |u|² for each z."""
        return np.asarray((total**2).sum(axis=1))


class SketchedLength:
    """Projections of u_k by draws of the law N(0, 2), the 2-stable one, are sent.

    The geometric mean has relative standard error π / √(2 l), about 0.31 for l = 50.
    """

    def __init__(self, size: int, seed: int) -> None:
        self._size, self._seed = size, seed
        log_mean = np.log(2 / np.pi * special.gamma(2 / size) * special.gamma(1 - 1 / size) * np.sin(np.pi / size))
        self._log_correction = size * log_mean

    def message(self, deviations: Array, key: str) -> Array:
        """Return Q u_k for each z, with a matrix Q for each question and z."""
        strata, cells = deviations.shape
        draws = keyed_generator(self._seed, "fedc2sl", key).standard_normal((strata, self._size, cells))
        return np.asarray(np.sqrt(2.0) * np.matmul(draws, deviations[:, :, None])[:, :, 0])

    def squares(self, total: Array) -> Array:
        """Return the estimates of |u|²."""
        with np.errstate(divide="ignore"):
            log_product = np.log(np.abs(total)).sum(axis=1) * (2 / self._size)
        return np.asarray(np.exp(log_product - self._log_correction))


@dataclass(frozen=True)
class Question:
    """A question about columns, which are sorted by rank; its table of counts has the axes z (all of Z), x and y."""

    x: int
    y: int
    given: tuple[int, ...]

    def count(self, client: LabelClient, levels: Sequence[int]) -> Counts:
        """Return the table of a client."""
        return client.count((*self.given, self.x, self.y)).reshape(-1, levels[self.x], levels[self.y])


class QuestionMaker:
    """Turns queries about names into questions about columns."""

    def __init__(self, study: LabelStudy, names: Sequence[str]) -> None:
        self._study = study
        self._places = {name: place for place, name in enumerate(names)}

    def make(self, query: Query) -> Question | None:
        """Return the question, or None if its table has too many cells."""
        x, y = self._study.sort_columns([self._places[query.x], self._places[query.y]])
        given = self._study.sort_columns([self._places[name] for name in query.given])
        return Question(x, y, given) if self._study.count_cells((x, y, *given)) <= MAX_CELLS else None

    def make_key(self, question: Question) -> str:
        """Return a text that names the question whatever its variables are called."""
        ranks = self._study.ranks
        return f"{ranks[question.x]} {ranks[question.y]} | {[ranks[column] for column in question.given]}"


class FederatedChiSquare:
    """The chi-square test on the counts of all clients: an `IndependenceTest`."""

    def __init__(
        self, study: LabelStudy, names: Sequence[str], channel: CountingChannel, length: LengthEstimate
    ) -> None:
        self._study, self._channel, self._length = study, channel, length
        self._questions = QuestionMaker(study, names)
        self._rows = sum(client.rows for client in study.clients)

    def __call__(self, queries: Sequence[Query], /) -> list[Answer]:
        """Return one answer per query, in order."""
        return [Answer(query, *self._test(self._questions.make(query)), self._rows) for query in queries]

    def _test(self, question: Question | None) -> tuple[float, float]:
        """Return chi-square and its p-value; both messages of a client are added up as a secure sum would do it."""
        if question is None:
            return np.inf, 0.0
        self._channel.to_clients(np.array([question.x, question.y, *question.given]))
        tables = [question.count(client, self._study.levels) for client in self._study.clients]
        margins = [self._add_up([table.sum(axis=axis) for table in tables]) for axis in (2, 1)]
        expected = ExpectedCounts.of(*(np.asarray(self._channel.to_clients(margin)) for margin in margins))
        if not expected.freedom:
            return 0.0, 1.0
        key = self._questions.make_key(question)
        deviations = [expected.deviations(table, len(tables)) for table in tables]
        total = self._add_up([self._length.message(each, key) for each in deviations])
        statistic = float(self._length.squares(total).sum())
        return statistic, float(special.chdtrc(expected.freedom, statistic))

    def _add_up(self, messages: Sequence[npt.NDArray[Any]]) -> Array:
        return np.asarray(np.sum([self._channel.to_server(message) for message in messages], axis=0), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class ExpectedCounts:
    """The counts that independence given z leads to, for combinations z whose table leaves a degree of freedom."""

    chosen: npt.NDArray[np.bool_]  # the combinations z
    counts: Array  # their expected counts, with the axes z, x and y
    freedom: int

    @classmethod
    def of(cls, by_x: Array, by_y: Array) -> ExpectedCounts:
        """Return the expected counts from the margins N_xz (z, x) and N_yz (z, y)."""
        freedom = ((by_x > 0).sum(axis=1) - 1) * ((by_y > 0).sum(axis=1) - 1)  # 1 where z has no row at all
        freedom = np.where(by_x.any(axis=1), freedom, 0)
        chosen = freedom > 0
        by_x, by_y = by_x[chosen], by_y[chosen]
        counts = by_x[:, :, None] * by_y[:, None, :] / by_x.sum(axis=1)[:, None, None]
        return cls(chosen, counts, int(freedom.sum()))

    def deviations(self, table: Counts, clients: int) -> Array:
        """Return u_k of a client, with the axes z and cell; cells that no client can fill are 0."""
        scale = np.sqrt(np.where(self.counts > 0, self.counts, np.inf))
        return np.asarray((table[self.chosen] - self.counts / clients) / scale).reshape(len(self.counts), -1)


class LocalChiSquare:
    """The chi-square test on the rows of one client: an `IndependenceTest`."""

    def __init__(self, client: LabelClient, study: LabelStudy, names: Sequence[str]) -> None:
        self._client, self._levels = client, study.levels
        self._questions = QuestionMaker(study, names)

    def __call__(self, queries: Sequence[Query], /) -> list[Answer]:
        """Return one answer per query, in order."""
        return [Answer(query, *self._test(self._questions.make(query)), self._client.rows) for query in queries]

    def _test(self, question: Question | None) -> tuple[float, float]:
        if question is None:
            return np.inf, 0.0
        return compute_chi_square(question.count(self._client, self._levels))


class VotedChiSquare:
    """Chi-square tests at the clients and a vote about each question: an `IndependenceTest`."""

    def __init__(self, study: LabelStudy, names: Sequence[str], channel: CountingChannel, alpha: float) -> None:
        self._clients = [LocalChiSquare(client, study, names) for client in study.clients]
        self._channel, self._alpha = channel, alpha
        self._places = {name: place for place, name in enumerate(names)}
        self._rows = sum(client.rows for client in study.clients)

    def __call__(self, queries: Sequence[Query], /) -> list[Answer]:
        """Return one answer per query, in order."""
        self._channel.to_clients(np.array([self._places[name] for query in queries for name in _list_names(query)]))
        sent = [[answer.p_value for answer in client(queries)] for client in self._clients]
        p_values = np.stack([self._channel.to_server(np.array(each)) for each in sent])
        accepted = (p_values > self._alpha).sum(axis=0) > len(sent) / 2
        decided = np.where(accepted, p_values.max(axis=0), p_values.min(axis=0))
        return [
            Answer(query, float("nan"), p_value, self._rows)
            for query, p_value in zip(queries, decided.tolist(), strict=True)
        ]


def compute_chi_square(table: Counts) -> tuple[float, float]:
    """Return chi-square of one table with the axes z, x and y, and its p-value; without freedom the p-value is 1."""
    expected = ExpectedCounts.of(table.sum(axis=2).astype(np.float64), table.sum(axis=1).astype(np.float64))
    if not expected.freedom:
        return 0.0, 1.0
    statistic = float((expected.deviations(table, 1) ** 2).sum())
    return statistic, float(special.chdtrc(expected.freedom, statistic))


def _list_names(query: Query) -> list[str]:
    return [query.x, query.y, *sorted(query.given)]
