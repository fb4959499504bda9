"""How a graph is searched for."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import comb
from typing import TypedDict

from fedcdh.errors import SettingsError
from fedcdh.graphs.knowledge import Knowledge

DEFAULT_ALPHA = 0.05
"""Of tests, unless somebody says otherwise or there are many variables."""
MAX_VARIABLES_AT_DEFAULT_ALPHA = 30
"""So many variables, and fewer, are tested at this level. `benchmarks.bench_variables` shows what other levels do."""


def default_alpha(method: str, variables: int) -> float:
    """The level of tests where none is given: with many variables, one that lets no more pairs stay by chance.

    Of independent pairs, a share as large as the level looks dependent. Among a few variables these are few; among a
    thousand, 25000 pairs would be left at 0.05 beside perhaps a thousand true edges, and each of them asks for more
    questions and blurs directions. From 30 variables on, the level is thus such that level times pairs stays what it
    is for 30. The paper's method keeps the paper's level.

    >>> [round(default_alpha("constraint", variables), 5) for variables in (6, 30, 100, 1000)]
    [0.05, 0.05, 0.00439, 4e-05]
    """
    if method != "constraint" or variables <= MAX_VARIABLES_AT_DEFAULT_ALPHA:
        return DEFAULT_ALPHA
    return DEFAULT_ALPHA * comb(MAX_VARIABLES_AT_DEFAULT_ALPHA, 2) / comb(variables, 2)


class SearchOptions(TypedDict, total=False):
    """The settings of a search as keywords, for calls that hand them on; what they mean is said at `discover`."""

    method: str
    alpha: float | None
    max_conditioning_size: int | None
    seed: int
    rounds: str


@dataclass(frozen=True)
class Settings:
    """How the graph was searched for."""

    method: str
    alpha: float
    knowledge: Knowledge
    max_conditioning_size: int | None
    seed: int
    rounds: str = "one"  # or "adaptive": clients may be asked again
    workers: int = field(default=1, compare=False)  # who answer the questions, which makes no difference

    def __post_init__(self) -> None:
        if not isinstance(self.alpha, (int, float)) or not 0 <= self.alpha < 1:
            raise SettingsError(f"alpha is {self.alpha!r}; expected a significance level from 0 to below 1, like 0.05")
        if self.max_conditioning_size is not None and not _is_natural_number(self.max_conditioning_size):
            raise SettingsError(
                f"max_conditioning_size is {self.max_conditioning_size!r}; expected 0, 1, 2, ... or None"
            )
        if not _is_natural_number(self.seed):
            raise SettingsError(f"seed is {self.seed!r}; expected a whole number from 0 up")
        if self.rounds not in ("one", "adaptive"):
            raise SettingsError(f"rounds is {self.rounds!r}; expected 'one', or 'adaptive' with method='constraint'")
        if not isinstance(self.workers, int) or (self.workers < 1 and self.workers != -1):
            raise SettingsError(f"workers is {self.workers!r}; expected 1, 2, ... or -1 for as many as there are")
        if not isinstance(self.knowledge, Knowledge):
            raise SettingsError(f"knowledge is {self.knowledge!r}; expected fedcdh.Knowledge(required=[...], ...)")


def _is_natural_number(number: object) -> bool:
    return isinstance(number, int) and number >= 0
