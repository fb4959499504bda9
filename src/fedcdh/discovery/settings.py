"""The settings of a search, and their defaults."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from math import comb
from typing import TYPE_CHECKING, TypedDict

from fedcdh.errors import SettingsError
from fedcdh.graphs.knowledge import NO_KNOWLEDGE, Knowledge
from fedcdh.protocols import Progress

if TYPE_CHECKING:  # `fedcdh discover --help` reads this module, and should not load the packages of numbers
    from fedcdh.data.recipe_file import Recipes
    from fedcdh.data.sources import ColumnKind
    from fedcdh.summaries.absent_columns import AbsentRule
    from fedcdh.summaries.joint import AnswerSource
    from fedcdh.summaries.plan import MissingValues

DEFAULT_ALPHA = 0.05
"""Significance level of the tests for up to `MAX_VARIABLES_AT_DEFAULT_ALPHA` variables."""
MAX_VARIABLES_AT_DEFAULT_ALPHA = 30
"""With more variables the default level falls. `benchmarks.bench_variables` shows what other levels do."""

DEFAULT_MIN_PROBABILITY = 0.5
"""Probability from which "evidence" draws an edge or a change: more likely than not."""
DEFAULT_MIN_ARROW_PROBABILITY = 0.8
"""Probability from which an edge is drawn as an arrow; other edges are lines (`benchmarks.bench_probabilities`)."""
DEFAULT_MIN_EFFECT = 0.02
"""Share of variance from which "evidence" draws an edge: Cohen's small effect. With very many rows, every misfit of the
model looks like a cause that explains less (on fMRI simulations nearly all false edges do)."""

ROUNDS = ("one", "residuals", "adaptive")
"""One message; further messages about residuals; or also about joint features of conditioning sets."""


def default_alpha(method: str, variables: int) -> float:
    """Return the significance level that is used if none is given.

    Parameters
    ----------
    method : str
        Name of the method.
    variables : int
        Number of variables in the study.

    Returns
    -------
    float
        0.05; for "constraint" with more than 30 variables, a level at which as many pairs are expected to stay
        adjacent by chance as among 30 variables.

    Notes
    -----
    A test of level α leaves about α d(d − 1)/2 pairs of d independent variables adjacent. Among 1000 variables that
    would be 25,000 pairs at level 0.05, beside perhaps a thousand true edges, and each of them causes further queries.
    The method "paper" keeps the level of the paper.

    Examples
    --------
    >>> [round(default_alpha("constraint", variables), 5) for variables in (6, 30, 100, 1000)]
    [0.05, 0.05, 0.00439, 4e-05]
    """
    if method != "constraint" or variables <= MAX_VARIABLES_AT_DEFAULT_ALPHA:
        return DEFAULT_ALPHA
    return DEFAULT_ALPHA * comb(MAX_VARIABLES_AT_DEFAULT_ALPHA, 2) / comb(variables, 2)


class SearchOptions(TypedDict, total=False):
    """The keyword arguments of `discover` that concern the search, for functions that pass them on.

    Attributes
    ----------
    method : str
        See `discover`.
    alpha : float or None
        See `discover`.
    max_conditioning_size : int or None
        See `discover`.
    seed : int
        See `discover`.
    rounds : str
        See `discover`.
    max_rounds : int
        See `discover`.
    min_probability : float
        See `discover`.
    min_arrow_probability : float
        See `discover`.
    min_effect : float
        See `discover`.

    Examples
    --------
    >>> options: SearchOptions = {"method": "constraint", "alpha": 0.01}
    """

    method: str
    alpha: float | None
    max_conditioning_size: int | None
    seed: int
    rounds: str
    max_rounds: int
    min_probability: float
    min_arrow_probability: float
    min_effect: float


class SummaryOptions(TypedDict, total=False):
    """The keyword arguments of `discover_from`, apart from `hidden`, which decides about the kind of result.

    Attributes
    ----------
    method : str
        See `discover_from`.
    alpha : float or None
        See `discover_from`.
    max_conditioning_size : int or None
        See `discover_from`.
    seed : int
        See `discover_from`.
    rounds : str
        See `discover_from`.
    min_probability : float
        See `discover_from`.
    min_arrow_probability : float
        See `discover_from`.
    min_effect : float
        See `discover_from`.
    knowledge : Knowledge or None
        See `discover_from`.
    progress : callable or None
        See `discover_from`.
    source : AnswerSource or None
        See `discover_from`.
    workers : int
        See `discover_from`.
    without : collection of str
        See `discover_from`.

    Examples
    --------
    >>> options: SummaryOptions = {"method": "constraint", "without": ["east"]}
    """

    method: str
    alpha: float | None
    max_conditioning_size: int | None
    seed: int
    rounds: str
    min_probability: float
    min_arrow_probability: float
    min_effect: float
    knowledge: Knowledge | None
    progress: Progress | None
    source: AnswerSource | None
    workers: int
    without: Collection[str]


class TableOptions(SearchOptions, total=False):
    """The keyword arguments of `discover`, apart from `hidden`, which decides about the kind of result.

    Attributes
    ----------
    domain : str or None
        See `discover`.
    names : sequence of str or None
        See `discover`.
    variables : sequence of str or None
        See `discover`.
    kinds : mapping from str to str or None
        See `discover`.
    knowledge : Knowledge or None
        See `discover`.
    max_missing_share : float
        See `discover`.
    progress : callable or None
        See `discover`.
    workers : int
        See `discover`.
    order_by : str or None
        See `discover`.
    recipes : Recipes
        See `discover`.
    absent : "refuse", "allow" or mapping from str to sequence of str
        See `discover`.
    accept_differences : collection of str
        See `discover`.
    exclude : collection of str
        See `discover`.
    missing : str
        See `discover`.
    missing_indicators : sequence of str
        See `discover`.

    Examples
    --------
    >>> options: TableOptions = {"domain": "hospital", "alpha": 0.01}
    """

    domain: str | None
    names: Sequence[str] | None
    variables: Sequence[str] | None
    kinds: Mapping[str, ColumnKind] | None
    knowledge: Knowledge | None
    max_missing_share: float
    progress: Progress | None
    workers: int
    order_by: str | None
    recipes: Recipes
    absent: AbsentRule
    accept_differences: Collection[str]
    exclude: Collection[str]
    missing: MissingValues
    missing_indicators: Sequence[str]


@dataclass(frozen=True)
class Settings:
    """The settings with which a graph was searched for.

    Attributes
    ----------
    method : str
        Name of the method.
    alpha : float
        Significance level of the tests, at least 0 and below 1.
    knowledge : Knowledge
        Required arrows, forbidden arrows and tiers.
    max_conditioning_size : int or None
        The largest number of variables in a conditioning set, or of parents; None for no limit.
    seed : int
        Seed of everything that is random in the method.
    rounds : {"one", "residuals", "adaptive"}
        Whether clients could be asked again: about residuals, or about joint features of conditioning sets as well.
    workers : int
        How many workers answer queries. The result does not depend on it, so it does not count in comparisons.
    min_probability : float
        The smallest probability of an edge or a change that "evidence" draws; at least 0.5 and below 1.
    min_arrow_probability : float
        The smallest probability of an arrow; edges without one are lines; at least 0.5 and below 1.
    min_effect : float
        The smallest share of variance that an edge of "evidence" explains, from 0 to below 1; a quarter of it is enough
        for an edge that shows at nearly all clients.

    Examples
    --------
    >>> Settings("constraint", alpha=0.01).max_conditioning_size is None
    True
    """

    method: str
    alpha: float = DEFAULT_ALPHA
    knowledge: Knowledge = NO_KNOWLEDGE
    max_conditioning_size: int | None = None
    seed: int = 0
    rounds: str = "one"
    workers: int = field(default=1, compare=False)
    min_probability: float = DEFAULT_MIN_PROBABILITY
    min_arrow_probability: float = DEFAULT_MIN_ARROW_PROBABILITY
    min_effect: float = DEFAULT_MIN_EFFECT

    def __post_init__(self) -> None:
        if not isinstance(self.alpha, (int, float)) or not 0 <= self.alpha < 1:
            raise SettingsError(
                f"alpha is {self.alpha!r}; expected a significance level of at least 0 and below 1, such as 0.05",
                parameter="alpha",
            )
        if self.max_conditioning_size is not None and not _is_natural_number(self.max_conditioning_size):
            raise SettingsError(
                f"max_conditioning_size is {self.max_conditioning_size!r}; expected 0, 1, 2, ... or None for no limit",
                parameter="max_conditioning_size",
            )
        if not _is_natural_number(self.seed):
            raise SettingsError(f"seed is {self.seed!r}; expected a whole number from 0 up", parameter="seed")
        if self.rounds not in ROUNDS:
            raise SettingsError(
                f"rounds is {self.rounds!r}; expected 'one', 'residuals', or 'adaptive' with the method 'constraint'",
                parameter="rounds",
            )
        for name in ("min_probability", "min_arrow_probability"):
            limit = getattr(self, name)
            if not isinstance(limit, (int, float)) or not 0.5 <= limit < 1:
                raise SettingsError(
                    f"{name} is {limit!r}; expected a probability of at least 0.5 and below 1, such as 0.8",
                    parameter=name,
                )
        if not isinstance(self.min_effect, (int, float)) or not 0 <= self.min_effect < 1:
            raise SettingsError(
                f"min_effect is {self.min_effect!r}; expected a share of variance of at least 0 and below 1, such as "
                "0.02",
                parameter="min_effect",
            )
        if not isinstance(self.workers, int) or (self.workers < 1 and self.workers != -1):
            raise SettingsError(
                f"workers is {self.workers!r}; expected 1, 2, ... or -1 for one per processor", parameter="workers"
            )
        if not isinstance(self.knowledge, Knowledge):
            raise SettingsError(
                f"knowledge is {self.knowledge!r}; expected fedcdh.Knowledge(required=[...], ...)",
                parameter="knowledge",
            )


def _is_natural_number(number: object) -> bool:
    return isinstance(number, int) and number >= 0
