"""What the search asks and the statistics answer: the only thing the two columns share.

A search sees names and p-values; it knows nothing of data, kernels or clients. A perfect test (d-separation in a
known graph) is just another `IndependenceTest`, which is how the search is tested apart from the statistics.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

DOMAIN = "__domain__"
"""The surrogate variable ℧ of the paper: which client a row belongs to. It has no causes among the variables."""

Progress: TypeAlias = Callable[[int, int], None]
"""A function that a search calls just before each batch of work, with two counts.

A search by tests passes (level, queries in this batch); a search by scores passes (families scored so far, families in
this batch).
"""


@dataclass(frozen=True, slots=True)
class Query:
    """Is x independent of y given these variables?  x ⫫ y | given."""

    x: str
    y: str
    given: frozenset[str] = frozenset()

    @property
    def pair(self) -> frozenset[str]:
        return frozenset((self.x, self.y))

    def __str__(self) -> str:
        condition = f" | {', '.join(sorted(self.given))}" if self.given else ""
        return f"{self.x} ⫫ {self.y}{condition}"


@dataclass(frozen=True, slots=True)
class Answer:
    """A question with its test statistic, its p-value and the number of rows that stand behind them."""

    query: Query
    statistic: float
    p_value: float
    rows: int


class IndependenceTest(Protocol):
    """Answers a batch of questions, in their order; the answer to one never depends on the others in the batch."""

    def __call__(self, questions: Sequence[Query], /) -> list[Answer]: ...


@dataclass(frozen=True)
class ModuleDependence:
    """How far the modules of a pair change together, for both directions: small means independent change.

    `forward` is Δ_{tail→head}, the dependence between the changes of P(tail) and of P(head | tail); `backward` is
    Δ_{head→tail}. The independent change principle prefers the direction with the smaller value.
    """

    tail: str
    head: str
    forward: float
    backward: float


class IndependentChange(Protocol):
    """Measures, for pairs of variables that both change, how dependent the changes are in either direction."""

    def __call__(self, pairs: Sequence[tuple[str, str]], /) -> list[ModuleDependence]: ...


@dataclass(frozen=True)
class Family:
    """A node with its parents; the domain among them says that the node's mechanism differs between clients."""

    node: str
    parents: frozenset[str] = frozenset()


class LocalScore(Protocol):
    """The log evidence of every family of a batch, in their order; one never depends on the others in the batch, but
    for a digit beyond the twelfth where a label is explained."""

    def __call__(self, families: Sequence[Family], /) -> list[float]: ...
