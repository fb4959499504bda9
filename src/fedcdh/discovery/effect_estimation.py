"""Estimation of effects: the adjustment set from the graph, the slopes from the summaries."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from fedcdh._io.text import abbreviate_list
from fedcdh.discovery.effect import ClientEffect, Effect, EffectKind, PossibleEffect
from fedcdh.errors import GraphError, KnowledgeError, NoConsistentExtensionError, SettingsError
from fedcdh.graphs.adjustment import (
    describe_invalid_adjustment,
    find_causal_nodes,
    find_optimal_adjustment,
    find_possible_descendants,
    is_amenable,
    list_local_choices,
)
from fedcdh.graphs.equivalence import find_consistent_extension
from fedcdh.graphs.meek_rules import apply_meek_rules
from fedcdh.graphs.partial_graph import Arrow, PartialGraph, sort_pair
from fedcdh.inference.effects.client_slopes import ClientScatters, Slopes
from fedcdh.inference.effects.pooling import PooledEffect, measure_heterogeneity, pool_random
from fedcdh.summaries.variables import Categorical

if TYPE_CHECKING:
    from fedcdh.discovery.result import Discovery

Adjust = Literal["auto", "parents", "optimal"] | Iterable[str]

MAX_HOMOGENEOUS_P_VALUE = 0.1
"""From this p-value of Q on, sites' effects are taken as one, unless a mechanism on the way differs. A wrong alarm
only makes the interval wider."""
_ADJUSTMENTS = ("auto", "parents", "optimal")


@dataclass(frozen=True)
class Question:
    """An effect that is asked for.

    Attributes
    ----------
    cause, outcome : str
        The variables.
    kind : {"total", "direct"}
        The kind of effect.
    levels : tuple of str, or None
        Levels of a categorical cause.
    outcome_level : str or None
        Level of a categorical outcome.

    Examples
    --------
    >>> Question("dose", "stay", "total").kind
    'total'
    """

    cause: str
    outcome: str
    kind: EffectKind
    levels: tuple[str, str] | None = None
    outcome_level: str | None = None


@dataclass(frozen=True)
class _Choice:
    """What the graph says about an effect: an adjustment set, zero, or why neither."""

    given: frozenset[str] | None = None
    identifiable: bool = True
    reason: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class EffectStudy:
    """All that effects of one result share: its graph, closed under Meek's rules, and the scatter matrices.

    Attributes
    ----------
    result : Discovery
        The result.

    Examples
    --------
    >>> import fedcdh
    >>> result = fedcdh.discover(fedcdh.demo.hospital_study().columns(), domain="hospital")
    >>> EffectStudy(result).estimate("age", "systolic_pressure").adjusted_for
    ()
    """

    result: Discovery

    @cached_property
    def scatters(self) -> ClientScatters:
        """The scatter matrices of all clients."""
        return ClientScatters.of(self.result.cohort)

    @cached_property
    def graph(self) -> PartialGraph:
        """The graph over the variables, closed under Meek's rules."""
        return apply_meek_rules(self.result.graph, self.result.settings.knowledge)[0]

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What holds for all effects of the result."""
        return tuple(self._notes())

    def _notes(self) -> Iterator[str]:
        if not self.scatters.apart:
            yield "only the sum over sites is known: there are no effects of single sites, and sites are not compared"
            if len(self.result.cohort.clients) == 1 and len(self.result.cohort.total.clients) > 1:
                yield "means of sites are not known either: differences in level between sites are not adjusted for"
        if self.graph.lines and not self._stands_for_class:
            yield "the lines of the graph stand for no class of DAGs; what they leave open is found edge by edge"

    @cached_property
    def _stands_for_class(self) -> bool:
        try:
            find_consistent_extension(self.graph)
        except NoConsistentExtensionError:
            return False
        return True

    def estimate(
        self,
        cause: str,
        outcome: str,
        *,
        kind: EffectKind = "total",
        adjust: Adjust = "auto",
        contrast: tuple[str, str] | None = None,
        outcome_level: str | None = None,
        at: tuple[float, float] | None = None,
    ) -> Effect:
        """Return one effect; see `Discovery.effect`.

        Parameters
        ----------
        cause, outcome : str
            Two variables.
        kind : {"total", "direct"}
            The kind of effect.
        adjust : {"auto", "parents", "optimal"} or iterable of str
            The adjustment set.
        contrast : tuple of str, optional
            Levels of a categorical cause.
        outcome_level : str, optional
            Level of a categorical outcome.
        at : tuple of float, optional
            Two values of the cause.

        Returns
        -------
        Effect
            The effect.
        """
        question, said = self._ask(cause, outcome, kind, contrast, outcome_level)
        choice = self._choose(question, adjust)
        effect = self._measure(question, choice)
        effect = replace(effect, notes=(*choice.notes, *said, *effect.notes, *self.notes))
        return replace(effect, possible=self._list_possible(question, effect, adjust))

    def estimate_all(self, kind: EffectKind = "total") -> tuple[Effect, ...]:
        """Return the effects of all pairs that the graph may connect.

        Parameters
        ----------
        kind : {"total", "direct"}
            The kind of effect.

        Returns
        -------
        tuple of Effect
            By cause and outcome, in the order of the variables.
        """
        names = self.graph.nodes
        return tuple(
            self.estimate(cause, outcome, kind=kind)
            for cause in names
            for outcome in names
            if cause != outcome and self._may_affect(cause, outcome, kind)
        )

    @cached_property
    def slopes(self) -> Mapping[Arrow, Mapping[str, Any]]:
        """The direct effects along all edges that are drawn, in both directions of a line, as fields of `Edge`.

        They are empty where summaries have noise, and where no DAG has the edges of the graph.
        """
        if self.result.cohort.total.noise:
            return {}
        try:
            dag = self.result.to_dag()
        except KnowledgeError:
            return {}
        lines = [arrow for line in self.result.graph.lines for arrow in (sort_pair(line), sort_pair(line)[::-1])]
        found = {}
        for cause, outcome in (*self.result.graph.arrows, *lines):
            if all(len(self.scatters.levels.get(name, "ab")) == 2 for name in (cause, outcome)):
                found[cause, outcome] = self._slope(cause, outcome, dag.parents(outcome) - {cause})
        return found

    def _slope(self, cause: str, outcome: str, given: frozenset[str]) -> dict[str, Any]:
        question, _ = self._ask(cause, outcome, "direct", None, None)
        found = self._measure(question, _Choice(given))
        low, high = found.interval or (None, None)
        return {
            "slope": found.value,
            "slope_low": low,
            "slope_high": high,
            "standardised_slope": found.standardised,
            "slope_units": found.units,
        }

    def _may_affect(self, cause: str, outcome: str, kind: EffectKind) -> bool:
        if kind == "direct":
            return self.graph.is_adjacent(cause, outcome) and outcome not in self.graph.parents(cause)
        return outcome in find_possible_descendants(self.graph, cause)

    # What is asked

    def _ask(
        self,
        cause: str,
        outcome: str,
        kind: EffectKind,
        contrast: tuple[str, str] | None,
        outcome_level: str | None,
    ) -> tuple[Question, tuple[str, ...]]:
        """Return the question with its levels, and notes on levels that were chosen for the user."""
        known = self.scatters.variables
        for name in (cause, outcome):
            if name not in known:
                raise SettingsError(f"there is no variable {name!r}; choose among {abbreviate_list(map(repr, known))}")
        if cause == outcome:
            raise SettingsError(f"cause and outcome are both {cause!r}; expected two different variables; choose two")
        if kind not in ("total", "direct"):
            raise SettingsError(f"the kind of effect is {kind!r}; expected 'total' or 'direct'", parameter="kind")
        levels, said_cause = self._choose_contrast(cause, contrast)
        level, said_outcome = self._choose_level(outcome, outcome_level)
        return Question(cause, outcome, kind, levels, level), (*said_cause, *said_outcome)

    def _choose_contrast(
        self, name: str, contrast: tuple[str, str] | None
    ) -> tuple[tuple[str, str] | None, tuple[str, ...]]:
        occur = self.scatters.levels.get(name)
        if occur is None:
            if contrast is not None:
                raise SettingsError(
                    f"a contrast of levels {contrast!r} was given, but {name} is a number; leave it out",
                    parameter="contrast",
                )
            return None, ()
        if contrast is not None:
            before, after = contrast
            for level in contrast:
                _check_level(name, level, occur, "contrast")
            if before == after:
                raise SettingsError(f"the contrast has {before!r} twice; expected two levels", parameter="contrast")
            return (before, after), ()
        if len(occur) < 2:
            return None, ()
        if len(occur) == 2:
            return (occur[0], occur[1]), ()
        before, after = self._common_levels(name)[:2]
        return (before, after), (f"{name} has {len(occur)} levels; the two most common are compared (contrast)",)

    def _choose_level(self, name: str, level: str | None) -> tuple[str | None, tuple[str, ...]]:
        occur = self.scatters.levels.get(name)
        if occur is None:
            if level is not None:
                raise SettingsError(
                    f"a level {level!r} of {name} was given, but {name} is a number; leave it out",
                    parameter="outcome_level",
                )
            return None, ()
        if level is not None:
            _check_level(name, level, occur, "outcome_level")
            return level, ()
        if len(occur) <= 2:
            return occur[-1], ()
        chosen = self._common_levels(name)[0]
        return chosen, (f"{name} has {len(occur)} levels; the effect is that on the most common one (outcome_level)",)

    def _common_levels(self, name: str) -> tuple[str, ...]:
        """Return the levels of a variable, the most common first."""
        span = self.result.cohort.plan.layout.spans[name]
        variable = self.scatters.variables[name]
        if not isinstance(variable, Categorical):
            return ()
        counts = dict(zip(variable.levels, self.result.cohort.total.moments[0, span].tolist(), strict=True))
        return tuple(
            sorted(self.scatters.levels[name], key=lambda level: (-counts[level], variable.levels.index(level)))
        )

    # What the graph says

    def _choose(self, question: Question, adjust: Adjust) -> _Choice:
        if isinstance(adjust, str):
            if adjust not in _ADJUSTMENTS:
                raise SettingsError(
                    f"adjust is {adjust!r}; expected 'auto', 'parents', 'optimal' or a list of variables",
                    parameter="adjust",
                )
            if question.kind == "direct":
                return self._choose_direct(question)
            return self._choose_total(question, adjust)
        return self._force(question, frozenset(adjust))

    def _choose_direct(self, question: Question) -> _Choice:
        cause, outcome, graph = question.cause, question.outcome, self.graph
        if cause not in graph.neighbours(outcome) or outcome in graph.parents(cause):
            return _Choice(reason=f"the graph has no arrow from {cause} to {outcome}")
        lines = sorted(graph.neighbours(outcome) - graph.parents(outcome) - graph.children(outcome))
        if lines:
            return _Choice(
                identifiable=False,
                reason=f"the direction of the edge of {outcome} with {abbreviate_list(lines)} is open",
            )
        return _Choice(graph.parents(outcome) - {cause})

    def _choose_total(self, question: Question, adjust: str) -> _Choice:
        cause, outcome, graph = question.cause, question.outcome, self.graph
        if not find_causal_nodes(graph, cause, outcome):
            return _Choice(reason=f"the graph has no directed path from {cause} to {outcome}")
        if not is_amenable(graph, cause, outcome):
            lines = sorted(graph.neighbours(cause) - graph.parents(cause) - graph.children(cause))
            return _Choice(
                identifiable=False,
                reason=f"the direction of the edge of {cause} with {abbreviate_list(lines)} is open",
            )
        optimal = find_optimal_adjustment(graph, cause, outcome)
        if adjust != "parents" and optimal is not None:
            return _Choice(optimal)
        parents = graph.parents(cause)
        wrong = describe_invalid_adjustment(graph, cause, outcome, parents)
        return _Choice(parents) if not wrong else _Choice(identifiable=False, reason=wrong)

    def _force(self, question: Question, given: frozenset[str]) -> _Choice:
        """Return a set that the user asks for, and say whether it is valid."""
        for name in sorted(given):
            if name not in self.scatters.variables or name in (question.cause, question.outcome):
                raise SettingsError(
                    f"adjust names {name!r}; expected variables other than cause and outcome, of "
                    f"{abbreviate_list(self.scatters.variables)}; correct it",
                    parameter="adjust",
                )
        if question.kind == "direct":
            wanted = self._choose_direct(question)
            right = wanted.given is not None and wanted.given == given
            wrong = "" if right else wanted.reason or f"the other parents of {question.outcome} are another set"
        else:
            wrong = describe_invalid_adjustment(self.graph, question.cause, question.outcome, given)
        if not wrong:
            return _Choice(given)
        return _Choice(given, False, f"the adjustment set that was given is not valid in this graph: {wrong}")

    # What the summaries say

    def _measure(self, question: Question, choice: _Choice) -> Effect:
        """Return the effect with a given adjustment set."""
        empty = Effect(
            question.cause,
            question.outcome,
            question.kind,
            value=None,
            interval=None,
            adjusted_for=None,
            identifiable=choice.identifiable,
            reason=choice.reason,
            levels=question.levels,
            outcome_level=question.outcome_level,
            rows=self.result.cohort.total.rows,
            units=self._describe_units(question),
        )
        if choice.given is None:
            zero = choice.identifiable
            return replace(empty, value=0.0, interval=(0.0, 0.0)) if zero else empty
        given = tuple(sorted(choice.given))
        if self._is_constant(question):
            return replace(empty, adjusted_for=given, notes=("cause or outcome has only one value in all rows",))
        slopes = self._slopes(question, given)
        return self._pool(replace(empty, adjusted_for=given), question, slopes)

    def _is_constant(self, question: Question) -> bool:
        levels = self.scatters.levels
        return any(len(levels.get(name, "ab")) < 2 for name in (question.cause, question.outcome))

    def _slopes(self, question: Question, given: Collection[str]) -> Slopes:
        design = self.scatters.design(
            question.cause, question.outcome, sorted(given), question.levels, question.outcome_level
        )
        return self.scatters.slopes(design)

    def _pool(self, empty: Effect, question: Question, slopes: Slopes) -> Effect:
        known = slopes.known
        several = self.scatters.apart and int(known.sum()) > 1
        values, variances = slopes.values[known], slopes.variances[known]
        random = pool_random(values, variances) if several else None
        heterogeneity = measure_heterogeneity(values, variances) if several else None
        differs = heterogeneity is not None and (
            heterogeneity.p_value < MAX_HOMOGENEOUS_P_VALUE or self._passes_change(question)
        )
        headline = random if differs else slopes.common
        if headline is None:
            return replace(empty, notes=("no site's rows determine this effect: the cause does not vary on its own",))
        factor = self._standardisation(question)
        return replace(
            empty,
            value=headline.value,
            interval=headline.interval,
            pooling="random" if differs else "fixed",
            fixed=slopes.common,
            random=random,
            heterogeneity=heterogeneity,
            by_client=dict(self._by_client(slopes)) if self.scatters.apart else {},
            standardised=None if factor is None else headline.value * factor,
            standardised_interval=None
            if factor is None
            else (headline.interval[0] * factor, headline.interval[1] * factor),
        )

    def _passes_change(self, question: Question) -> bool:
        """Return whether a mechanism between cause and outcome differs between clients."""
        nodes = {question.outcome}
        if question.kind == "total":
            nodes |= find_causal_nodes(self.graph, question.cause, question.outcome)
        return not nodes.isdisjoint(self.result.changing)

    def _by_client(self, slopes: Slopes) -> Iterator[tuple[str, ClientEffect]]:
        for number, client in enumerate(self.result.cohort.clients):
            rows = int(slopes.rows[number])
            if not slopes.known[number]:
                few = slopes.freedom[number] < 2 and np.isfinite(slopes.values[number])
                note = "too few rows for this regression" if few else "the cause does not vary on its own here"
                yield client, ClientEffect(None, None, None, rows, note)
                continue
            one = PooledEffect.of(slopes.values[number], slopes.variances[number], slopes.freedom[number])
            yield client, ClientEffect(one.value, one.interval, one.standard_error, rows)

    def _standardisation(self, question: Question) -> float | None:
        """Return the factor to standard deviations within clients; None for the probability of a level."""
        if question.outcome_level is not None:
            return None
        outcome = self.scatters.deviation(question.outcome)
        cause = 1.0 if question.levels is not None else self.scatters.deviation(question.cause)
        return cause / outcome if outcome > 0 else None

    def _describe_units(self, question: Question) -> str:
        outcome = question.outcome
        if question.outcome_level is not None:
            outcome = f"probability of {outcome} = {question.outcome_level}"
        if question.levels is not None:
            before, after = question.levels
            return f"difference of {outcome} between {question.cause} = {after} and {question.cause} = {before}"
        return f"change of {outcome} per unit of {question.cause}"

    # What the graph leaves open

    def _list_possible(self, question: Question, effect: Effect, adjust: Adjust) -> tuple[PossibleEffect, ...]:
        """Return the effects in all graphs of the class."""
        whole = PossibleEffect(effect.value, effect.interval, effect.adjusted_for)
        if effect.identifiable:
            return (whole,)
        centre = question.cause if question.kind == "total" else question.outcome
        try:
            choices = list_local_choices(self.graph, centre, self.result.settings.knowledge)
        except GraphError:
            return ()
        found: dict[frozenset[str] | None, PossibleEffect] = {}
        for choice in choices:
            given = self._given_in(question, choice.graph, choice.parents)
            if given not in found:
                found[given] = self._possible_effect(question, given)
        return tuple(found.values())

    def _given_in(self, question: Question, graph: PartialGraph, parents: frozenset[str]) -> frozenset[str] | None:
        """Return the adjustment set in one choice of the class; None if the effect is 0 there."""
        if question.kind == "direct":
            return parents - {question.cause} if question.cause in parents else None
        if question.outcome in parents or not find_causal_nodes(graph, question.cause, question.outcome):
            return None
        return parents

    def _possible_effect(self, question: Question, given: frozenset[str] | None) -> PossibleEffect:
        if given is None:
            return PossibleEffect(0.0, (0.0, 0.0), None)
        found = self._measure(question, _Choice(given))
        return PossibleEffect(found.value, found.interval, found.adjusted_for)


def _check_level(name: str, level: str, occur: tuple[str, ...], parameter: str) -> None:
    if level not in occur:
        raise SettingsError(
            f"{name} has no level {level!r} in these rows; choose among {abbreviate_list(map(repr, occur))}",
            parameter=parameter,
        )
