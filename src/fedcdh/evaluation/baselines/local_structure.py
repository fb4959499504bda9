"""The parts that voting rivals share at a client: tests on its own rows, candidate neighbours, and directions.

Numbers are tested by Fisher's z and scored by the Gaussian BIC, labels by G² and by BDeu.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Protocol

import numpy as np
import numpy.typing as npt
from scipy import special

from fedcdh._runtime.array_types import Array
from fedcdh.data.sources import ColumnKind
from fedcdh.evaluation.baselines.fedpc import FisherZTest
from fedcdh.evaluation.baselines.gaussian_bic import GaussianBic
from fedcdh.evaluation.baselines.interface import CountingChannel
from fedcdh.evaluation.baselines.label_counts import Counts, LabelClient, agree_on_levels
from fedcdh.evaluation.baselines.label_scores import BdeuScore
from fedcdh.evaluation.baselines.restarted_climb import climb_with_restarts
from fedcdh.evaluation.simulation import keyed_generator
from fedcdh.graphs.equivalence import to_cpdag
from fedcdh.graphs.partial_graph import PartialGraph
from fedcdh.protocols import LocalScore

Bools = npt.NDArray[np.bool_]

ALPHA = 0.01
MAX_CONDITIONING_SIZE = 3
"""The largest conditioning set, as in the authors' programs."""


class ClientRows(Protocol):
    """The rows of one client, with the test and the score that fit them."""

    def test(self, a: int, b: int, given: tuple[int, ...]) -> tuple[float, float]:
        """Return the statistic of a ⫫ b | given (|r| for numbers, G² for labels) and its p-value."""

    def make_score(self, names: Sequence[str]) -> LocalScore:
        """Return the score of families, with these names for the columns."""

    def rank_columns(self) -> list[int]:
        """Return the columns in an order that depends on the rows alone, not on names or places."""

    def resample(self, draw: np.random.Generator) -> ClientRows:
        """Return rows drawn with replacement."""


class NumberRows:
    """Rows of numbers: Fisher's z and the Gaussian BIC."""

    def __init__(self, table: Array) -> None:
        self._table, self._test = table, FisherZTest(table)
        self._known: dict[tuple[int, int, tuple[int, ...]], tuple[float, float]] = {}

    def test(self, a: int, b: int, given: tuple[int, ...]) -> tuple[float, float]:
        """Return the absolute partial correlation and the p-value of Fisher's z."""
        key = (min(a, b), max(a, b), given)
        if key not in self._known:
            self._known[key] = self._test([key])[0]
        return self._known[key]

    def make_score(self, names: Sequence[str]) -> LocalScore:
        """Return the Gaussian BIC."""
        return GaussianBic.of_table(self._table, names)

    def rank_columns(self) -> list[int]:
        """Return the columns by the sum of their absolute correlations with others."""
        columns = range(self._table.shape[1])
        total = [sum(self.test(i, j, ())[0] for j in columns if j != i) for i in columns]
        return sorted(columns, key=lambda column: round(total[column], 9))

    def resample(self, draw: np.random.Generator) -> NumberRows:
        """Return rows drawn with replacement."""
        return NumberRows(self._table[draw.integers(len(self._table), size=len(self._table))])


class LabelRows:
    """Rows of labels: G² and BDeu."""

    def __init__(self, client: LabelClient, levels: Sequence[int]) -> None:
        self._client, self._levels = client, tuple(levels)
        self._known: dict[tuple[int, int, tuple[int, ...]], tuple[float, float]] = {}

    def test(self, a: int, b: int, given: tuple[int, ...]) -> tuple[float, float]:
        """Return G² and its p-value."""
        key = (min(a, b), max(a, b), given)
        if key not in self._known:
            table = self._client.count((*given, key[0], key[1]))
            self._known[key] = compute_g_square(table.reshape(-1, *table.shape[-2:]))
        return self._known[key]

    def make_score(self, names: Sequence[str]) -> LocalScore:
        """Return BDeu."""
        return BdeuScore(self._client.count, names, self._levels)

    def rank_columns(self) -> list[int]:
        """Return the columns by how often their levels occur."""
        return sorted(range(len(self._levels)), key=lambda column: tuple(self._client.count((column,)).tolist()))

    def resample(self, draw: np.random.Generator) -> LabelRows:
        """Return rows drawn with replacement."""
        return LabelRows(self._client.resample(draw), self._levels)


def compute_g_square(table: Counts) -> tuple[float, float]:
    """Return G² = 2 Σ N log(N / E) of a table with the axes z, x and y, and its p-value.

    Rows and columns without a count do not count for the degrees of freedom; without any freedom the p-value is 1.
    """
    by_x, by_y = table.sum(axis=2), table.sum(axis=1)
    total = np.maximum(by_x.sum(axis=1), 1)
    expected = by_x[:, :, None] * by_y[:, None, :] / total[:, None, None]
    freedom = int((np.maximum((by_x > 0).sum(axis=1) - 1, 0) * np.maximum((by_y > 0).sum(axis=1) - 1, 0)).sum())
    if not freedom:
        return 0.0, 1.0
    seen = table > 0
    statistic = 2 * float((table[seen] * np.log(table[seen] / expected[seen])).sum())
    return statistic, float(special.chdtrc(freedom, max(statistic, 0.0)))


def prepare_clients(
    tables: Mapping[str, Array], names: Sequence[str], kinds: Mapping[str, ColumnKind] | None, channel: CountingChannel
) -> dict[str, ClientRows]:
    """Return the rows of every client; labels are coded alike at all of them."""
    if kinds and all(kinds.get(name) == "categorical" for name in names):
        study = agree_on_levels(tables, channel)
        return {name: LabelRows(own, study.levels) for name, own in zip(tables, study.clients, strict=True)}
    return {name: NumberRows(table) for name, table in tables.items()}


def draw_copies(client: str, rows: ClientRows, copies: int, seed: int) -> list[ClientRows]:
    """Return copies of a client's rows, each drawn with replacement."""
    return [rows.resample(keyed_generator(seed, "copy", client, str(number))) for number in range(copies)]


def find_candidates(rows: ClientRows, variables: int, target: int, alpha: float = ALPHA) -> frozenset[int]:
    """Find the candidate neighbours of a variable by HITON-PC (Aliferis et al. 2010, semi-interleaved).

    Variables dependent on the target enter in the order of their p-values. One leaves if a set of up to three others
    separates it from the target: the newest at once, all of them once more at the end.
    """
    marginal = {other: rows.test(target, other, ()) for other in range(variables) if other != target}
    dependent = [other for other, (_, p_value) in marginal.items() if p_value <= alpha]
    entering = sorted(dependent, key=lambda other: (marginal[other][1], -marginal[other][0]))
    chosen: list[int] = []
    for other in entering:
        if not has_separating_set(rows, target, other, chosen, alpha):
            chosen.append(other)
    for other in chosen[::-1]:  # the least associated first
        rest = [each for each in chosen if each != other]
        if has_separating_set(rows, target, other, rest, alpha):
            chosen = rest
    return frozenset(chosen)


def has_separating_set(rows: ClientRows, a: int, b: int, among: Sequence[int], alpha: float) -> bool:
    """Return whether a set of one to three variables makes a and b independent."""
    return any(
        rows.test(a, b, given)[1] > alpha
        for size in range(1, MAX_CONDITIONING_SIZE + 1)
        for given in combinations(sorted(among), size)
    )


def measure_certainty(p_values: Array, alpha: float = ALPHA) -> Array:
    """Return how decided tests are: (p − α)/(1 − α) above the level α, 1 − p/α below.

    >>> measure_certainty(np.array([0.0, 0.01, 1.0])).tolist()
    [1.0, 0.0, 1.0]
    """
    return np.asarray(np.where(p_values > alpha, (p_values - alpha) / (1 - alpha), 1 - p_values / alpha))


def orient_locally(rows: ClientRows, joined: Bools, names: Sequence[str], seed: int) -> PartialGraph:
    """Climb to a DAG within a skeleton, and return its class: what the score can tell about directions.

    Columns have names by their rank during the climb, so that their own names and places do not matter.
    """
    inner = {column: f"{rank:06d}" for rank, column in enumerate(rows.rank_columns())}
    columns = [inner[column] for column in range(len(names))]
    pairs = [frozenset((columns[i], columns[j])) for i, j in np.argwhere(np.triu(joined)).tolist()]
    dag = climb_with_restarts(columns, rows.make_score(columns), pairs, seed)
    outer = dict(zip(columns, names, strict=True))
    return to_cpdag(PartialGraph.from_dag(names, ((outer[tail], outer[head]) for tail, head in dag.arrows)))
