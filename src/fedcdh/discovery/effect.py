"""The effect of one variable on another: one record with its interval, its sites, and what it rests on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from fedcdh._io.text_tables import format_table, render_table_html
from fedcdh.inference.effects.pooling import Heterogeneity, PooledEffect

EffectKind = Literal["total", "direct"]
Interval = tuple[float, float]
_NO_EFFECTS = "by the graph, no variable has an effect on another"


@dataclass(frozen=True)
class ClientEffect:
    """An effect at one client.

    Attributes
    ----------
    value : float or None
        The estimate; None if the client's rows do not determine it.
    interval : tuple of float, or None
        Its 95 % confidence interval.
    standard_error : float or None
        Its standard error.
    rows : int
        Rows of the client.
    note : str
        Why a value is missing; an empty text otherwise.

    Examples
    --------
    >>> ClientEffect(0.5, (0.1, 0.9), 0.2, 100).rows
    100
    """

    value: float | None
    interval: Interval | None
    standard_error: float | None
    rows: int
    note: str = ""


@dataclass(frozen=True)
class PossibleEffect:
    """The effect in some of the graphs that are possible.

    Attributes
    ----------
    value : float or None
        The estimate; 0 where the cause has no path to the outcome; None if no rows determine it.
    interval : tuple of float, or None
        Its 95 % confidence interval.
    adjusted_for : tuple of str, or None
        The adjustment set in these graphs; None where the effect is 0 by the graph.
    probability : float or None
        The posterior probability of these graphs; None where it is not known.

    Examples
    --------
    >>> PossibleEffect(0.0, (0.0, 0.0), None, 0.2).probability
    0.2
    """

    value: float | None
    interval: Interval | None
    adjusted_for: tuple[str, ...] | None
    probability: float | None = None


@dataclass(frozen=True)
class ResponseCurve:
    """The difference of the outcome along values of the cause, with all else in the adjustment set equal.

    Attributes
    ----------
    cause_values : tuple of float
        Values of the cause.
    differences : tuple of float
        Difference of the mean outcome from that at `reference`.
    low, high : tuple of float
        Ends of pointwise 95 % confidence intervals.
    reference : float
        The value of the cause where the difference is 0.
    p_value : float or None
        P-value of curvature: whether a straight line is enough.

    Examples
    --------
    >>> ResponseCurve((0.0, 1.0), (0.0, 2.0), (0.0, 1.5), (0.0, 2.5), 0.0, None).differences
    (0.0, 2.0)
    """

    cause_values: tuple[float, ...]
    differences: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    reference: float
    p_value: float | None


@dataclass(frozen=True)
class Effect:
    """The effect of a change of one variable on another, by the graph and the summaries.

    `Discovery.effect` returns it. It holds if the graph is right, and if no common cause of two variables is missing
    from the study.

    Attributes
    ----------
    cause, outcome : str
        The two variables.
    kind : {"total", "direct"}
        The total effect along all directed paths, or that of the arrow alone with the other parents held fixed.
    value : float or None
        The estimate, by the pooling that `pooling` names; None if it is not identifiable or no rows determine it.
    interval : tuple of float, or None
        Its 95 % confidence interval.
    adjusted_for : tuple of str, or None
        The adjustment set; None if there is none, or the effect is 0 by the graph.
    identifiable : bool
        Whether the graph determines the effect.
    reason : str
        Why it is not identifiable, or why it is 0 by the graph; an empty text otherwise.
    pooling : {"fixed", "random", ""}
        How `value` combines clients: a common effect, or the mean of effects that differ. Empty without a value.
    fixed : PooledEffect or None
        The common effect within clients: least squares with an intercept for each.
    random : PooledEffect or None
        The mean over clients whose effects may differ; None below two clients that are known apart.
    heterogeneity : Heterogeneity or None
        How much the effects differ between clients; None below two clients that are known apart.
    by_client : mapping from str to ClientEffect
        The effect at every client; empty where only their sum is known.
    possible : tuple of PossibleEffect
        The effect in all graphs of the class, or in those that the posterior holds for possible, likeliest first.
    probability_of_effect : float or None
        Posterior probability that the graph lets the cause have this effect; None where it was not asked for.
    probability_positive : float or None
        Posterior probability that the effect is above 0.
    levels : tuple of str, or None
        For a categorical cause, the two levels that are compared, from and to.
    outcome_level : str or None
        For a categorical outcome, the level whose probability is meant.
    at : tuple of float, or None
        The two values of the cause that are compared along the curve, if `at` was given.
    units : str
        What `value` counts, in words.
    standardised : float or None
        The value in standard deviations of the outcome, per standard deviation of a continuous cause.
    standardised_interval : tuple of float, or None
        The interval in the same units.
    curve : ResponseCurve or None
        The additive curved response; None for labels.
    rows : int
        Rows of the study.
    notes : tuple of str
        What a reader should know about this effect.

    Examples
    --------
    >>> import fedcdh
    >>> result = fedcdh.discover(fedcdh.demo.hospital_study().columns(), domain="hospital")
    >>> effect = result.effect("smoker", "cholesterol")
    >>> effect.levels, effect.identifiable
    (('no', 'yes'), True)
    """

    cause: str
    outcome: str
    kind: EffectKind
    value: float | None
    interval: Interval | None
    adjusted_for: tuple[str, ...] | None
    identifiable: bool
    reason: str = ""
    pooling: str = ""
    fixed: PooledEffect | None = None
    random: PooledEffect | None = None
    heterogeneity: Heterogeneity | None = None
    by_client: Mapping[str, ClientEffect] = field(default_factory=dict)
    possible: tuple[PossibleEffect, ...] = ()
    probability_of_effect: float | None = None
    probability_positive: float | None = None
    levels: tuple[str, str] | None = None
    outcome_level: str | None = None
    at: tuple[float, float] | None = None
    units: str = ""
    standardised: float | None = None
    standardised_interval: Interval | None = None
    curve: ResponseCurve | None = None
    rows: int = 0
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_client", MappingProxyType(dict(self.by_client)))

    def __reduce__(self) -> tuple[type[Effect], tuple[object, ...]]:
        """Pickle and copy through the constructor: a read-only mapping cannot be pickled."""
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return Effect, tuple(dict(value) if name == "by_client" else value for name, value in values.items())

    def __str__(self) -> str:
        from fedcdh.discovery.effect_text import format_effect

        return format_effect(self)

    def __repr__(self) -> str:
        from fedcdh.discovery.effect_text import summarise_effect

        return f"<Effect: {summarise_effect(self)}>"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the sentence, and a table of clients."""
        from fedcdh.discovery.effect_text import render_effect_html

        return render_effect_html(self)


class EffectTable(tuple[Effect, ...]):
    """The effects of `Discovery.effects`: a tuple that prints as a table, and shows itself in notebooks.

    Examples
    --------
    >>> print(EffectTable([Effect("dose", "stay", "total", 1.0, (0.5, 1.5), ("age",), True)]))
    cause  outcome  effect  95 % interval  in standard deviations  adjusted for
    dose   stay          1     0.5 to 1.5                          age
    """

    __slots__ = ()

    def __str__(self) -> str:
        from fedcdh.discovery.effect_text import tabulate_effects

        return format_table(*tabulate_effects(self)) if self else _NO_EFFECTS

    def _repr_html_(self) -> str:
        """Return the table that a notebook shows."""
        from fedcdh.discovery.effect_text import tabulate_effects

        return render_table_html(*tabulate_effects(self), _NO_EFFECTS)
