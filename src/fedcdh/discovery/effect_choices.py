"""The adjustment set that a graph gives for an effect; or that the effect is zero, or why neither."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from fedcdh._io.text import abbreviate_list
from fedcdh.discovery.effect_questions import Question
from fedcdh.errors import GraphError, NoConsistentExtensionError, SettingsError
from fedcdh.graphs.adjustment import (
    LocalChoice,
    describe_invalid_adjustment,
    find_causal_nodes,
    find_optimal_adjustment,
    is_amenable,
    list_local_choices,
)
from fedcdh.graphs.equivalence import find_consistent_extension
from fedcdh.graphs.knowledge import Knowledge
from fedcdh.graphs.meek_rules import apply_meek_rules
from fedcdh.graphs.partial_graph import Arrow, PartialGraph, sort_pair

Adjust = Literal["auto", "parents", "optimal"] | Iterable[str]
"""Which adjustment set is used: a rule, or the variables themselves."""
_RULES = ("auto", "parents", "optimal")


@dataclass(frozen=True)
class Choice:
    """An adjustment set, that an effect is zero, or why neither.

    Attributes
    ----------
    given : frozenset of str, or None
        The adjustment set; None if the effect is 0, or not identifiable.
    identifiable : bool
        Whether the graph determines the effect.
    reason : str
        Why it is 0, or why it is not identifiable.

    Examples
    --------
    >>> Choice(frozenset({"age"})).identifiable
    True
    """

    given: frozenset[str] | None = None
    identifiable: bool = True
    reason: str = ""


@dataclass(frozen=True, eq=False)
class EffectGraph:
    """A graph from which adjustment sets are read.

    Attributes
    ----------
    drawn : PartialGraph
        The graph over the variables.
    knowledge : Knowledge
        Background knowledge.

    Examples
    --------
    >>> graph = EffectGraph(PartialGraph.from_dag("xyz", [("z", "x"), ("z", "y"), ("x", "y")]), Knowledge())
    >>> graph.choose(Question("x", "y", "total"), "parents").given
    frozenset({'z'})
    """

    drawn: PartialGraph
    knowledge: Knowledge

    @cached_property
    def closed(self) -> PartialGraph:
        """The graph with the lines directed that knowledge directs, closed under Meek's rules."""
        ways = (way for line in self.drawn.lines for way in (sort_pair(line), sort_pair(line)[::-1]))
        known = [way for way in ways if self.knowledge.directs(*way)]
        return apply_meek_rules(self.drawn.orient_all(known), self.knowledge)[0]

    @cached_property
    def stands_for_class(self) -> bool:
        """True if some DAG has just the arrows and colliders of the graph."""
        try:
            find_consistent_extension(self.closed)
        except NoConsistentExtensionError:
            return False
        return True

    def choose(self, question: Question, adjust: Adjust) -> Choice:
        """Return the adjustment set of an effect.

        Parameters
        ----------
        question : Question
            The effect.
        adjust : {"auto", "parents", "optimal"} or iterable of str
            The rule, or the set.

        Returns
        -------
        Choice
            The set, or why there is none.

        Raises
        ------
        SettingsError
            If there is no such rule, or a name is not that of a further variable.
        """
        if not isinstance(adjust, str):
            return self._force(question, frozenset(adjust))
        if adjust not in _RULES:
            raise SettingsError(
                f"adjust is {adjust!r}; expected 'auto', 'parents', 'optimal' or a list of variables",
                parameter="adjust",
            )
        return self._choose_direct(question) if question.kind == "direct" else self._choose_total(question, adjust)

    def may_affect(self, question: Question) -> bool:
        """Return whether some direction of the lines lets the cause have this effect.

        Parameters
        ----------
        question : Question
            The effect.

        Returns
        -------
        bool
            False if the effect is 0 by the graph.
        """
        if question.kind == "direct":
            closed = self.closed
            return question.cause in closed.parents(question.outcome) or closed.has_line(
                question.cause, question.outcome
            )
        return bool(self.causal_nodes(question))

    def causal_nodes(self, question: Question) -> frozenset[str]:
        """Return the variables whose mechanisms the effect passes: mediators and the outcome.

        Parameters
        ----------
        question : Question
            The effect.

        Returns
        -------
        frozenset of str
            The variables.
        """
        if question.kind == "direct":
            return frozenset({question.outcome})
        return find_causal_nodes(self.closed, question.cause, question.outcome)

    def list_possible(self, question: Question, arrows: Mapping[Arrow, float]) -> dict[frozenset[str] | None, float]:
        """Return the adjustment sets in all graphs of the class, each with its weight.

        Parameters
        ----------
        question : Question
            The effect.
        arrows : mapping from (str, str) to float
            Probabilities of arrows; empty where they are not known.

        Returns
        -------
        dict from frozenset of str, or None, to float
            Weights that sum to 1, by adjustment set; None stands for no effect. The weight of a way to direct the
            lines at a variable is the product of the probabilities of its arrows. It is empty where too many lines
            meet.
        """
        centre = question.cause if question.kind == "total" else question.outcome
        found: dict[frozenset[str] | None, float] = {}
        for choice in self._local_choices(centre):
            given = self._given_in(question, choice.graph, choice.parents)
            found[given] = found.get(given, 0.0) + self._weigh(centre, choice.parents, arrows)
        total = sum(found.values())
        return {given: weight / total if total > 0 else 0.0 for given, weight in found.items()}

    def _local_choices(self, centre: str) -> tuple[LocalChoice, ...]:
        """Return all ways to direct the lines at a variable; kept, since effects on many outcomes ask for them."""
        kept: dict[str, tuple[LocalChoice, ...]] = self.__dict__.setdefault("_kept_choices", {})
        if centre not in kept:
            try:
                kept[centre] = list_local_choices(self.closed, centre, self.knowledge)
            except GraphError:
                kept[centre] = ()
        return kept[centre]

    def _weigh(self, centre: str, parents: frozenset[str], arrows: Mapping[Arrow, float]) -> float:
        weight = 1.0
        closed = self.closed
        for one in closed.neighbours(centre) - closed.parents(centre) - closed.children(centre):
            weight *= arrows.get((one, centre) if one in parents else (centre, one), 0.0)
        return weight

    def _given_in(self, question: Question, graph: PartialGraph, parents: frozenset[str]) -> frozenset[str] | None:
        """Return the adjustment set in one choice of the class; None if the effect is 0 there."""
        if question.kind == "direct":
            return parents - {question.cause} if question.cause in parents else None
        if question.outcome in parents or not find_causal_nodes(graph, question.cause, question.outcome):
            return None
        return parents

    def _choose_direct(self, question: Question) -> Choice:
        cause, outcome, graph = question.cause, question.outcome, self.closed
        if not self.may_affect(question):
            return Choice(reason=f"the graph has no arrow from {cause} to {outcome}")
        if lines := _lines_at(graph, outcome):
            return Choice(identifiable=False, reason=_describe_open(outcome, lines))
        return Choice(graph.parents(outcome) - {cause})

    def _choose_total(self, question: Question, adjust: str) -> Choice:
        cause, outcome, graph = question.cause, question.outcome, self.closed
        if not self.may_affect(question):
            return Choice(reason=f"the graph has no directed path from {cause} to {outcome}")
        if not is_amenable(graph, cause, outcome):
            return Choice(identifiable=False, reason=_describe_open(cause, _lines_at(graph, cause)))
        if adjust == "parents":
            wrong = describe_invalid_adjustment(graph, cause, outcome, graph.parents(cause))
            return Choice(graph.parents(cause)) if not wrong else Choice(identifiable=False, reason=wrong)
        return Choice(find_optimal_adjustment(graph, cause, outcome) or frozenset())

    def _force(self, question: Question, given: frozenset[str]) -> Choice:
        """Return a set that the user asks for, and say whether it is valid."""
        self._check_names(question, given)
        if question.kind == "direct":
            wanted = self._choose_direct(question)
            right = wanted.given is not None and wanted.given == given
            wrong = "" if right else wanted.reason or f"the other parents of {question.outcome} are another set"
        else:
            wrong = describe_invalid_adjustment(self.closed, question.cause, question.outcome, given)
        if not wrong:
            return Choice(given)
        return Choice(given, False, f"the adjustment set that was given is not valid in this graph: {wrong}")

    def _check_names(self, question: Question, given: Collection[str]) -> None:
        for name in sorted(given):
            if name not in self.drawn.nodes or name in (question.cause, question.outcome):
                raise SettingsError(
                    f"adjust names {name!r}; expected variables other than cause and outcome, of "
                    f"{abbreviate_list(self.drawn.nodes)}; correct it",
                    parameter="adjust",
                )


def _lines_at(graph: PartialGraph, node: str) -> list[str]:
    return sorted(graph.neighbours(node) - graph.parents(node) - graph.children(node))


def _describe_open(node: str, lines: Collection[str]) -> str:
    named = abbreviate_list(lines)
    if len(lines) == 1:
        return f"the graph leaves open which way the edge of {node} with {named} points"
    return f"the graph leaves open which way the edges of {node} with {named} point"
