"""The interface between search and inference: queries, answers, and the protocols of tests and scores.

A search sees names and p-values. It knows nothing of data, kernels or clients. A perfect test, d-separation in a known
graph, is one more `IndependenceTest`; with it the search is tested apart from the statistics.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

__all__ = [
    "DOMAIN",
    "Answer",
    "Family",
    "IndependenceTest",
    "IndependentChange",
    "LocalScore",
    "ModuleDependence",
    "Progress",
    "Query",
]

DOMAIN = "__domain__"
"""The surrogate variable ℧ of the paper, which names the client of a row. It has no causes among the variables."""

Progress: TypeAlias = Callable[[int, int], None]
"""A function that a search calls just before each batch of work, with two counts.

A search by tests passes (level, queries in this batch); a search by scores passes (families scored so far, families in
this batch).
"""


@dataclass(frozen=True, slots=True)
class Query:
    """A query whether x is independent of y given a set of variables.

    Attributes
    ----------
    x, y : str
        The two variables.
    given : frozenset of str
        The conditioning set; empty by default.

    Examples
    --------
    >>> print(Query("x", "y", frozenset({"z"})))
    x ⫫ y | z
    """

    x: str
    y: str
    given: frozenset[str] = frozenset()

    @property
    def pair(self) -> frozenset[str]:
        """Return the two variables as a set."""
        return frozenset((self.x, self.y))

    def __str__(self) -> str:
        condition = f" | {', '.join(sorted(self.given))}" if self.given else ""
        return f"{self.x} ⫫ {self.y}{condition}"


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of one test of conditional independence.

    Attributes
    ----------
    query : Query
        The query that was tested.
    statistic : float
        The test statistic.
    p_value : float
        The p-value, from 0 to 1.
    rows : int
        The number of rows behind the test, over all clients.

    Examples
    --------
    >>> answer = Answer(Query("x", "y"), statistic=1.7, p_value=0.19, rows=500)
    >>> answer.p_value > 0.05
    True
    """

    query: Query
    statistic: float
    p_value: float
    rows: int


class IndependenceTest(Protocol):
    """An independence test: it answers a batch of queries, in their order.

    The answer to one query never depends on the other queries of the batch.
    """

    def __call__(self, queries: Sequence[Query], /) -> list[Answer]:
        """Return one answer per query, in order."""


@dataclass(frozen=True)
class ModuleDependence:
    """The dependence between the changing mechanisms of a pair, for both directions.

    The independent change principle prefers the direction with the smaller value.

    Attributes
    ----------
    tail, head : str
        The two variables.
    forward : float
        Δ_{tail→head}: the dependence between the changes of P(tail) and of P(head | tail), from 0 to 1.
    backward : float
        Δ_{head→tail}: the same for the reverse direction.

    Examples
    --------
    >>> found = ModuleDependence("x", "y", forward=0.1, backward=0.6)
    >>> found.forward < found.backward  # x → y
    True
    """

    tail: str
    head: str
    forward: float
    backward: float


class IndependentChange(Protocol):
    """A measure of the dependence between changes of two mechanisms, for pairs of variables that both change."""

    def __call__(self, pairs: Sequence[tuple[str, str]], /) -> list[ModuleDependence]:
        """Return one measurement per pair, in order."""


@dataclass(frozen=True)
class Family:
    """A node with its parents.

    Attributes
    ----------
    node : str
        The child.
    parents : frozenset of str
        Its parents. `DOMAIN` among them says that the node's mechanism differs between clients.

    Examples
    --------
    >>> sorted(Family("y", frozenset({"x", "z"})).parents)
    ['x', 'z']
    """

    node: str
    parents: frozenset[str] = frozenset()


class LocalScore(Protocol):
    """A local score: it returns the log evidence of every family of a batch, in their order.

    The score of one family does not depend on the others in the batch, except beyond the twelfth digit where a
    categorical variable is the child.
    """

    def __call__(self, families: Sequence[Family], /) -> list[float]:
        """Return one score per family, in order."""
