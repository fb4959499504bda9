"""Estimation of effects: the adjustment set from a graph, the slopes from the summaries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from fedcdh.discovery.effect import (
    ClientEffect,
    Effect,
    EffectKind,
    EffectTable,
    Interval,
    PossibleEffect,
    ResponseCurve,
)
from fedcdh.discovery.effect_choices import Adjust, Choice, EffectGraph
from fedcdh.discovery.effect_questions import Question, ask
from fedcdh.errors import KnowledgeError, SettingsError
from fedcdh.graphs.knowledge import NO_KNOWLEDGE, Knowledge
from fedcdh.graphs.partial_graph import Arrow, PartialGraph, sort_pair
from fedcdh.inference.effects.client_slopes import MIN_FREEDOM, ClientScatters, Slopes
from fedcdh.inference.effects.pooling import PooledEffect, measure_heterogeneity, pool_random
from fedcdh.inference.effects.response_curves import MAX_LINEAR_P_VALUE, Curve, FeatureScatters
from fedcdh.summaries.aggregation import Aggregate, Cohort

if TYPE_CHECKING:
    from fedcdh.discovery.result import Discovery

MAX_HOMOGENEOUS_P_VALUE = 0.1
"""Below this p-value of Q, sites' effects are taken as different, as where a mechanism on the way differs. A wrong
alarm makes the interval wider, and nothing else."""
_NO_SLOPE = "no site's rows determine this effect, because the cause does not vary on its own"


@dataclass(frozen=True, eq=False)
class EffectStudy:
    """All that effects of one study share: its graph, and its scatter matrices.

    Attributes
    ----------
    cohort : Cohort or Aggregate
        The summaries.
    graph : EffectGraph
        The graph over the variables.
    changing : frozenset of str
        Variables whose mechanism differs between clients.
    arrows : mapping from (str, str) to float
        Posterior probabilities of arrows; empty where they are not known.
    sample : callable, optional
        Draws that many DAGs from the posterior.

    Examples
    --------
    >>> import fedcdh
    >>> result = fedcdh.discover(fedcdh.demo.hospital_study().columns(), domain="hospital")
    >>> EffectStudy.of(result).estimate(Question("bmi", "systolic_pressure", "total")).adjusted_for
    ('age',)
    """

    cohort: Cohort | Aggregate
    graph: EffectGraph
    changing: frozenset[str] = frozenset()
    arrows: Mapping[Arrow, float] | None = None
    sample: Callable[[int], list[PartialGraph]] | None = None

    @classmethod
    def of(cls, result: Discovery) -> EffectStudy:
        """Return the study of a result.

        Parameters
        ----------
        result : Discovery
            The result.

        Returns
        -------
        EffectStudy
            The study.
        """
        posterior = result.posterior
        return cls(
            result.cohort,
            EffectGraph(result.graph, result.settings.knowledge),
            result.changing,
            None if posterior is None else posterior.arrows,
            None if posterior is None else result.sample_dags,
        )

    @cached_property
    def scatters(self) -> ClientScatters:
        """The scatter matrices of all clients."""
        return ClientScatters.of(self.cohort)

    @cached_property
    def level_counts(self) -> Mapping[str, Mapping[str, int]]:
        """The levels that occur, with their rows."""
        counts = self.cohort.total.moments[0]
        return {
            name: {
                variable.levels[place - span.start]: int(counts[place])
                for place in range(span.start, span.stop)
                if counts[place]
            }
            for name, variable, span in self.scatters.categorical(self.cohort.plan)
        }

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Notes that hold for all effects of the study."""
        return tuple(self._notes())

    def _notes(self) -> Iterator[str]:
        if not self.scatters.apart:
            yield "only the sum over sites is known: there are no effects of single sites, and sites are not compared"
            if len(self.cohort.clients) == 1 and len(self.cohort.total.clients) > 1:
                yield "means of sites are not known either: differences in level between sites are not adjusted for"
        if self.graph.closed.lines and not self.graph.stands_for_class:
            yield "the lines of the graph stand for no class of DAGs; what they leave open is found edge by edge"

    def estimate(self, question: Question, adjust: Adjust = "auto", *, samples: int = 0, curve: bool = True) -> Effect:
        """Return one effect; see `Discovery.effect`.

        Parameters
        ----------
        question : Question
            The effect.
        adjust : {"auto", "parents", "optimal"} or iterable of str
            The adjustment set.
        samples : int, default 0
            Number of DAGs from the posterior over which possible effects are averaged; 0 for the class of the graph.
        curve : bool, default True
            Whether the curved response is estimated.

        Returns
        -------
        Effect
            The effect.
        """
        asked = ask(question, self.scatters.variables, self.level_counts)
        adjust = adjust if isinstance(adjust, str) else tuple(adjust)
        choice = self.graph.choose(asked, adjust)
        effect = self._measure(asked, choice)
        effect = replace(effect, notes=(*asked.notes, *effect.notes, *self.notes))
        if curve and choice.given is not None and effect.value is not None and asked.levels is None:
            effect = self._with_curve(effect, asked, choice.given)
        return self._with_possible(effect, asked, samples)

    def estimate_all(self, kind: EffectKind = "total") -> EffectTable:
        """Return the effects of all pairs that the graph may connect, without curves.

        Parameters
        ----------
        kind : {"total", "direct"}
            The kind of effect.

        Returns
        -------
        EffectTable
            By cause and outcome, in the order of the variables.
        """
        names = self.graph.drawn.nodes
        questions = (Question(cause, outcome, kind) for cause in names for outcome in names if cause != outcome)
        return EffectTable(self.estimate(one, curve=False) for one in questions if self.graph.may_affect(one))

    def slopes(self, dag: PartialGraph) -> Mapping[Arrow, Mapping[str, Any]]:
        """Return the direct effects along all edges that are drawn, in both directions of a line, as fields of `Edge`.

        Parameters
        ----------
        dag : PartialGraph
            A DAG with the edges of the graph.

        Returns
        -------
        mapping from (str, str) to mapping from str
            They are empty where summaries have noise.
        """
        if self.cohort.total.noise:
            return {}
        drawn = self.graph.drawn
        lines = [arrow for line in drawn.lines for arrow in (sort_pair(line), sort_pair(line)[::-1])]
        found = {}
        for cause, outcome in (*drawn.arrows, *lines):
            if all(len(self.level_counts.get(name, "ab")) == 2 for name in (cause, outcome)):
                asked = ask(Question(cause, outcome, "direct"), self.scatters.variables, self.level_counts)
                found[cause, outcome] = _to_edge_fields(self._measure(asked, Choice(dag.parents(outcome) - {cause})))
        return found

    # What the summaries say

    def _measure(self, question: Question, choice: Choice) -> Effect:
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
            at=question.at,
            rows=self.cohort.total.rows,
            units=question.units,
        )
        if choice.given is None:
            return replace(empty, value=0.0, interval=(0.0, 0.0)) if choice.identifiable else empty
        given = tuple(sorted(choice.given))
        if any(len(self.level_counts.get(name, "ab")) < 2 for name in (question.cause, question.outcome)):
            return replace(empty, adjusted_for=given, notes=(_NO_SLOPE,))
        return self._pool(replace(empty, adjusted_for=given), question, self._slopes(question, given))

    def _slopes(self, question: Question, given: Collection[str]) -> Slopes:
        if question.at is not None:
            features = FeatureScatters.of(self.cohort, (question.cause, *given), question.outcome)
            return features.slopes(features.contrast(question.cause, *question.at), question.outcome_level)
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
            heterogeneity.p_value < MAX_HOMOGENEOUS_P_VALUE
            or not self.graph.causal_nodes(question).isdisjoint(self.changing)
        )
        headline = random if differs else slopes.common
        if headline is None:
            return replace(empty, notes=(_NO_SLOPE,))
        factor = self._standardisation(question)
        low, high = headline.interval
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
            standardised_interval=None if factor is None else (low * factor, high * factor),
        )

    def _by_client(self, slopes: Slopes) -> Iterator[tuple[str, ClientEffect]]:
        for number, client in enumerate(self.cohort.clients):
            rows = int(slopes.rows[number])
            if not slopes.known[number]:
                few = slopes.freedom[number] < MIN_FREEDOM and np.isfinite(slopes.values[number])
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
        whole = question.levels is not None or question.at is not None
        cause = 1.0 if whole else self.scatters.deviation(question.cause)
        return cause / outcome if outcome > 0 else None

    def _with_curve(self, effect: Effect, question: Question, given: frozenset[str]) -> Effect:
        features = FeatureScatters.of(self.cohort, (question.cause, *sorted(given)), question.outcome)
        curve = features.curve(question.cause, question.outcome_level)
        if curve is None:
            return effect
        notes = effect.notes
        if curve.p_value is not None and curve.p_value < MAX_LINEAR_P_VALUE and question.at is None:
            notes = (*notes, "the response is curved: the value is the slope of the best straight line; see the curve")
        return replace(effect, curve=_to_response(curve), notes=notes)

    # What the graph leaves open

    def _with_possible(self, effect: Effect, question: Question, samples: int) -> Effect:
        """Return the effect with those in all graphs that are possible."""
        if samples:
            weights = self._list_sampled(question, samples)
        elif effect.identifiable:
            whole = PossibleEffect(effect.value, effect.interval, effect.adjusted_for)
            return replace(effect, possible=(whole,))
        else:
            weights = self.graph.list_possible(question, self.arrows or {})
        known = samples > 0 or self.arrows is not None
        found = [self._possible_effect(question, given, weight if known else None) for given, weight in weights.items()]
        found.sort(key=lambda one: (-(one.probability or 0.0), one.adjusted_for or ()))
        effect = replace(effect, possible=tuple(found))
        if not known or not found:
            return effect
        return replace(
            effect,
            probability_of_effect=1.0 - weights.get(None, 0.0),
            probability_positive=sum((one.probability or 0.0) * _chance_positive(one) for one in found),
        )

    def _list_sampled(self, question: Question, samples: int) -> dict[frozenset[str] | None, float]:
        """Return the parents of the cause in DAGs from the posterior, with their shares."""
        if self.sample is None:
            raise SettingsError(
                "samples of graphs were asked for, but this search has no probabilities; choose method 'evidence', or "
                "leave samples out",
                parameter="samples",
            )
        counts = Counter(_parents_in(dag, question) for dag in self._draw(samples))
        return {given: count / samples for given, count in counts.items()}

    def _draw(self, samples: int) -> list[PartialGraph]:
        drawn: dict[int, list[PartialGraph]] = self.__dict__.setdefault("_drawn", {})
        if samples not in drawn and self.sample is not None:
            drawn[samples] = self.sample(samples)
        return drawn[samples]

    def _possible_effect(
        self, question: Question, given: frozenset[str] | None, probability: float | None
    ) -> PossibleEffect:
        if given is None:
            return PossibleEffect(0.0, (0.0, 0.0), None, probability)
        found = self._measure(question, Choice(given))
        return PossibleEffect(found.value, found.interval, found.adjusted_for, probability)


def _to_response(curve: Curve) -> ResponseCurve:
    return ResponseCurve(
        tuple(curve.cause_values.tolist()),
        tuple(curve.differences.tolist()),
        tuple(curve.low.tolist()),
        tuple(curve.high.tolist()),
        curve.reference,
        curve.p_value,
    )


def _parents_in(dag: PartialGraph, question: Question) -> frozenset[str] | None:
    """Return the adjustment set in one DAG; None if it has no such effect."""
    if question.kind == "direct":
        parents = dag.parents(question.outcome)
        return parents - {question.cause} if question.cause in parents else None
    return dag.parents(question.cause) if dag.has_path(question.cause, question.outcome) else None


def _chance_positive(effect: PossibleEffect) -> float:
    """Return the probability that an effect is above 0, by its normal approximation."""
    if effect.value is None or effect.interval is None or effect.adjusted_for is None:
        return 0.0
    return float(stats.norm.cdf(effect.value / _error(effect.interval))) if _error(effect.interval) > 0 else 0.0


def _error(interval: Interval) -> float:
    return (interval[1] - interval[0]) / (2 * float(stats.norm.isf(0.025)))


def _to_edge_fields(effect: Effect) -> dict[str, Any]:
    low, high = effect.interval or (None, None)
    return {
        "slope": effect.value,
        "slope_low": low,
        "slope_high": high,
        "standardised_slope": effect.standardised,
        "slope_units": effect.units,
    }


def estimate_effect(
    cohort: Cohort | Aggregate,
    graph: PartialGraph,
    cause: str,
    outcome: str,
    *,
    kind: EffectKind = "total",
    adjust: Adjust = "auto",
    contrast: tuple[str, str] | None = None,
    outcome_level: str | None = None,
    at: tuple[float, float] | None = None,
    changing: Collection[str] = (),
    knowledge: Knowledge = NO_KNOWLEDGE,
    probabilities: Mapping[Arrow, float] | None = None,
) -> Effect:
    """Estimate an effect from summaries, with a graph of your own.

    Parameters
    ----------
    cohort : Cohort or Aggregate
        The summaries.
    graph : PartialGraph
        A graph over the variables: a DAG, or a graph whose lines are open.
    cause, outcome : str
        Two variables.
    kind : {"total", "direct"}, default "total"
        The kind of effect.
    adjust : {"auto", "parents", "optimal"} or iterable of str, default "auto"
        The adjustment set.
    contrast : tuple of str, optional
        Two levels of a categorical cause.
    outcome_level : str, optional
        Level of a categorical outcome.
    at : tuple of float, optional
        Two values of a continuous cause.
    changing : collection of str, optional
        Variables whose mechanism differs between clients.
    knowledge : Knowledge, optional
        Background knowledge that the directions of lines obey.
    probabilities : mapping from (str, str) to float, optional
        Probabilities of arrows, with which possible effects are weighted where lines are open.

    Returns
    -------
    Effect
        Value and interval, or why the graph does not determine one.

    Raises
    ------
    SettingsError
        If there is no such variable or level, or if the summaries have noise.

    Examples
    --------
    >>> import fedcdh
    >>> cohort = fedcdh.discover(fedcdh.demo.hospital_study().columns(), domain="hospital").cohort
    >>> names = cohort.plan.names
    >>> graph = fedcdh.PartialGraph.from_dag(names, [("age", "exercise"), ("exercise", "bmi"), ("age", "bmi")])
    >>> estimate_effect(cohort, graph, "exercise", "bmi").adjusted_for
    ('age',)
    """
    if unknown := sorted(set(cohort.plan.names) ^ set(graph.nodes)):
        raise SettingsError(
            f"graph and plan do not have the same variables ({unknown[0]!r}); pass a graph over those of the plan",
            parameter="graph",
        )
    study = EffectStudy(cohort, EffectGraph(graph, knowledge), frozenset(changing), probabilities)
    return study.estimate(Question(cause, outcome, kind, contrast, outcome_level, at), adjust)


def find_slopes(study: EffectStudy, dag: Callable[[], PartialGraph]) -> Mapping[Arrow, Mapping[str, Any]]:
    """Return the slopes of edges; none where no DAG has the edges of the graph.

    Parameters
    ----------
    study : EffectStudy
        The study.
    dag : callable
        Returns a DAG with the edges of the graph.

    Returns
    -------
    mapping from (str, str) to mapping from str
        Fields of `Edge`.
    """
    try:
        return study.slopes(dag())
    except KnowledgeError:
        return {}
