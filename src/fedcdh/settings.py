"""How a graph is searched for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias, TypedDict

from fedcdh.errors import SettingsError
from fedcdh.knowledge import Knowledge

Progress: TypeAlias = Callable[[int, int], None]
"""Called before each batch: with (level, questions) by tests, with (families scored so far, families) by evidence."""


class Search(TypedDict, total=False):
    """The settings of a search as keywords, for calls that hand them on; what they mean is said at `discover`."""

    method: str
    alpha: float
    max_conditioning: int | None
    seed: int
    rounds: str


@dataclass(frozen=True)
class Settings:
    """How the graph was searched for."""

    method: str
    alpha: float
    knowledge: Knowledge
    max_conditioning: int | None
    seed: int
    rounds: str = "one"  # or "adaptive": clients may be asked again

    def __post_init__(self) -> None:
        if not isinstance(self.alpha, (int, float)) or not 0 <= self.alpha < 1:
            raise SettingsError(f"alpha is {self.alpha!r}; expected a significance level from 0 to below 1, like 0.05")
        if self.max_conditioning is not None and not _whole(self.max_conditioning):
            raise SettingsError(f"max_conditioning is {self.max_conditioning!r}; expected 0, 1, 2, ... or None")
        if not _whole(self.seed):
            raise SettingsError(f"seed is {self.seed!r}; expected a whole number from 0 up")
        if self.rounds not in ("one", "adaptive"):
            raise SettingsError(f"rounds is {self.rounds!r}; expected 'one', or 'adaptive' with method='constraint'")
        if not isinstance(self.knowledge, Knowledge):
            raise SettingsError(f"knowledge is {self.knowledge!r}; expected fedcdh.Knowledge(required=[...], ...)")


def _whole(number: object) -> bool:
    return isinstance(number, int) and number >= 0
