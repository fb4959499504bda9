"""The orientation of a skeleton: the direction determination of the paper's appendix, step by step.

Every step makes the same check (`graphs.admissible_arrows`): no arrow that knowledge forbids, none against an existing
arrow, none that closes a directed cycle. A refused arrow is recorded as a conflict, and its line stays a line.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from math import isnan
from typing import Literal, TypeAlias

from fedcdh.errors import InvalidAnswerError, KnowledgeError
from fedcdh.graphs import meek_rules
from fedcdh.graphs.admissible_arrows import Bundle, Obstacle, find_obstacles
from fedcdh.graphs.knowledge import NO_KNOWLEDGE, Knowledge
from fedcdh.graphs.meek_rules import MeekRule
from fedcdh.graphs.partial_graph import Arrow, Pair, PartialGraph, sort_pair
from fedcdh.protocols import DOMAIN, IndependentChange, ModuleDependence
from fedcdh.search.colliders import ColliderRule, TripleDecision
from fedcdh.search.skeleton import Skeleton

Reason: TypeAlias = Literal["domain", "knowledge", "collider", "evidence", "noise", "independent-change"] | MeekRule
"""The reason for the direction of an arrow."""


@dataclass(frozen=True)
class DirectionEvidence:
    """Evidence of one kind about directions.

    Attributes
    ----------
    factors : mapping from (str, str) to float
        Log Bayes factors of arrows against their reverse.
    threshold : float
        The smallest factor that directs a line.
    reason : str
        The reason that is recorded for such an arrow.

    Examples
    --------
    >>> DirectionEvidence({("x", "y"): 4.2}, threshold=3.0, reason="evidence").reason
    'evidence'
    """

    factors: Mapping[Arrow, float]
    threshold: float
    reason: Reason


@dataclass(frozen=True)
class Conflict:
    """Arrows that one step proposed and that were refused.

    Attributes
    ----------
    arrows : tuple of (str, str)
        The arrows.
    reason : str
        The reason for which they were proposed.
    obstacle : str
        The reason for which they were refused.

    Examples
    --------
    >>> print(Conflict((("x", "y"),), "collider", "directed cycle"))
    x → y (collider) refused: directed cycle
    """

    arrows: Bundle
    reason: Reason
    obstacle: Obstacle

    def __str__(self) -> str:
        shown = " and ".join(f"{tail} → {head}" for tail, head in self.arrows)
        return f"{shown} ({self.reason}) refused: {self.obstacle}"


@dataclass(frozen=True)
class Orientation:
    """A partially directed graph without directed cycles, and the reason for each arrow.

    Attributes
    ----------
    graph : PartialGraph
        The graph.
    reasons : mapping from (str, str) to str
        The reason for each arrow.
    triples : tuple of TripleDecision
        The decisions about unshielded triples.
    dependences : mapping from pair to ModuleDependence
        The dependence of changes, for pairs that both change.
    conflicts : tuple of Conflict
        Arrows that were proposed and refused.

    Examples
    --------
    >>> Orientation(PartialGraph(("x", "y"))).conflicts
    ()
    """

    graph: PartialGraph
    reasons: Mapping[Arrow, Reason] = field(default_factory=dict)
    triples: tuple[TripleDecision, ...] = ()
    dependences: Mapping[Pair, ModuleDependence] = field(default_factory=dict)
    conflicts: tuple[Conflict, ...] = ()


def orient_skeleton(
    skeleton: Skeleton,
    colliders: ColliderRule,
    knowledge: Knowledge = NO_KNOWLEDGE,
    independent_change: IndependentChange | None = None,
    directions: Sequence[DirectionEvidence] = (),
) -> Orientation:
    """Direct the lines of a skeleton as far as the evidence allows.

    Parameters
    ----------
    skeleton : Skeleton
        The skeleton.
    colliders : ColliderRule
        The rule that decides unshielded triples.
    knowledge : Knowledge, optional
        Background knowledge, the same as for the skeleton.
    independent_change : IndependentChange, optional
        The measure that directs edges between two variables that both change.
    directions : sequence of DirectionEvidence, optional
        Log Bayes factors of arrows against their reverse, used one kind after the other.

    Returns
    -------
    Orientation
        The graph, and the reason for each arrow.

    Raises
    ------
    KnowledgeError
        If the skeleton was found with other knowledge.

    Examples
    --------
    >>> from fedcdh.graphs import make_d_separation_test
    >>> from fedcdh.search import find_skeleton, separating_set_rule
    >>> test = make_d_separation_test(PartialGraph.from_dag("xyz", [("x", "z"), ("y", "z")]))
    >>> print(orient_skeleton(find_skeleton("xyz", test, 0.05), separating_set_rule).graph)
    x → z
    y → z
    """
    _check_knowledge(skeleton.graph, knowledge)
    found = Orientation(skeleton.graph)
    found = orient_domain_edges(found)  # ℧ → V for every changing module V
    found = orient_by_knowledge(found, knowledge)
    found = orient_colliders(found, colliders(skeleton, knowledge), knowledge)  # ℧ → V ← W: one changing module
    found = orient_by_meek_rules(found, knowledge)
    for kind in directions:
        found = orient_by_evidence(found, kind, knowledge)
    if independent_change is not None:
        found = orient_by_independent_change(found, independent_change, knowledge)  # two changing modules
    return record_open_demands(found, knowledge)


def orient_domain_edges(found: Orientation) -> Orientation:
    """Direct ℧ — V as ℧ → V: the domain has no causes."""
    arrows = [(DOMAIN, other) for line in found.graph.lines if DOMAIN in line for other in line - {DOMAIN}]
    return _apply_arrows(found, ((arrow,) for arrow in arrows), "domain", NO_KNOWLEDGE)


def orient_by_knowledge(found: Orientation, knowledge: Knowledge) -> Orientation:
    """Direct required arrows; then direct lines with one forbidden direction the other way."""
    both_ways = [arrow for line in found.graph.lines for arrow in (sort_pair(line), sort_pair(line)[::-1])]
    required = [arrow for arrow in both_ways if knowledge.requires(*arrow)]
    directed = [arrow for arrow in both_ways if knowledge.directs(*arrow) and not knowledge.requires(*arrow)]
    found = _apply_arrows(found, ((arrow,) for arrow in required), "knowledge", knowledge)
    # Arrows that are each right may still form a cycle if the skeleton is wrong; then these stay lines.
    return _apply_arrows(found, ((arrow,) for arrow in directed), "knowledge", knowledge)


def orient_colliders(found: Orientation, decisions: tuple[TripleDecision, ...], knowledge: Knowledge) -> Orientation:
    """Direct a → z ← b for every collider, the most certain first; both arrows are taken, or none."""
    surest_first = sorted(decisions, key=lambda decision: -decision.strength)
    for _, equally_sure in groupby(surest_first, key=lambda decision: decision.strength):
        bundles = [decision.arrows for decision in equally_sure if decision.collider]
        found = _apply_arrows(found, bundles, "collider", knowledge)
    return replace(found, triples=decisions)


def orient_by_meek_rules(found: Orientation, knowledge: Knowledge) -> Orientation:
    """Apply Meek's rules until nothing changes; ℧ → x — y with ℧ and y not adjacent is rule 1: x → y."""
    graph, reasons = meek_rules.apply_meek_rules(found.graph, knowledge)
    return replace(found, graph=graph, reasons={**found.reasons, **reasons})


def orient_by_evidence(found: Orientation, directions: DirectionEvidence, knowledge: Knowledge) -> Orientation:
    """Direct x — y as x → y where the log Bayes factor is large enough, the largest first, then Meek's rules."""
    strong = sorted((-value, arrow) for arrow, value in directions.factors.items() if value >= directions.threshold)
    for _, arrow in strong:
        if found.graph.has_line(*arrow):
            found = orient_by_meek_rules(_apply_arrows(found, [(arrow,)], directions.reason, knowledge), knowledge)
    return found


def orient_by_independent_change(found: Orientation, measure: IndependentChange, knowledge: Knowledge) -> Orientation:
    """Direct x — y, where both mechanisms change, as x → y if Δ_{x→y} < Δ_{y→x}; the largest difference first.

    Meek's rules are applied after each arrow, so a clear pair decides about less clear ones around it. All pairs are
    measured in one call and recorded, also those that the rules then direct.
    """
    changing = found.graph.children(DOMAIN) if DOMAIN in found.graph.nodes else frozenset()
    pairs = sorted(sort_pair(line) for line in found.graph.lines if line <= changing)
    measured = _measure(measure, pairs)
    found = replace(found, dependences={frozenset(pair): value for pair, value in zip(pairs, measured, strict=True)})
    clearest_first = sorted(measured, key=lambda value: -_margin(value))
    for margin, equally_clear in groupby(clearest_first, key=_margin):
        if margin == 0:
            break  # both directions fit equally well: no reason to prefer one
        wanted = [_preferred_arrow(value) for value in equally_clear if found.graph.has_line(value.tail, value.head)]
        found = _apply_arrows(found, ((arrow,) for arrow in wanted), "independent-change", knowledge)
        found = orient_by_meek_rules(found, knowledge)
    return found


def _apply_arrows(found: Orientation, bundles: Iterable[Bundle], reason: Reason, knowledge: Knowledge) -> Orientation:
    """Direct the lines of these bundles, all at once; record refused bundles as conflicts."""
    bundles = sorted(bundles)
    refused = find_obstacles(found.graph, bundles, knowledge)
    taken = [arrow for bundle in bundles if bundle not in refused for arrow in bundle if found.graph.has_line(*arrow)]
    graph, reasons = found.graph.orient_all(taken), {**found.reasons, **dict.fromkeys(taken, reason)}
    conflicts = tuple(Conflict(bundle, reason, refused[bundle]) for bundle in bundles if bundle in refused)
    return replace(found, graph=graph, reasons=reasons, conflicts=found.conflicts + conflicts)


def record_open_demands(found: Orientation, knowledge: Knowledge) -> Orientation:
    """Record the arrows that Meek's rules still imply in the final graph: all of them were refused."""
    demanded = meek_rules.find_implied_arrows(found.graph)
    refused = find_obstacles(found.graph, ((arrow,) for arrow in demanded), knowledge)
    conflicts = tuple(Conflict(bundle, demanded[bundle[0]], refused[bundle]) for bundle in sorted(refused))
    return replace(found, conflicts=found.conflicts + conflicts)


def _measure(measure: IndependentChange, pairs: list[tuple[str, str]]) -> list[ModuleDependence]:
    if not pairs:
        return []
    measured = measure(pairs)
    if [(value.tail, value.head) for value in measured] != pairs:
        raise InvalidAnswerError(
            f"the measure of change returned {len(measured)} values for {len(pairs)} pairs, or in another order; "
            "expected one value for each pair of a batch, in order. Correct the measure"
        )
    for value in measured:
        if isnan(_margin(value)):
            raise InvalidAnswerError(
                f"the module dependence of {value.tail} and {value.head} is {value.forward} one way and "
                f"{value.backward} the other; expected numbers from 0 to 1. Correct the measure"
            )
    return measured


def _margin(value: ModuleDependence) -> float:
    """Return the difference of the two directions; Δ is in [0, 1], so differences are comparable between pairs."""
    return abs(value.forward - value.backward)


def _preferred_arrow(value: ModuleDependence) -> Arrow:
    return (value.tail, value.head) if value.forward < value.backward else (value.head, value.tail)


def _check_knowledge(graph: PartialGraph, knowledge: Knowledge) -> None:
    knowledge.check(graph.nodes)
    lines = {pair for pair in graph.skeleton if knowledge.excludes(pair)}
    required = {frozenset(arrow) for arrow in knowledge.required if set(arrow) <= set(graph.nodes)}
    wrong = sorted(sort_pair(pair) for pair in lines | (required - graph.skeleton))
    if wrong:
        shown = ", ".join(f"{a} — {b}" for a, b in wrong)
        raise KnowledgeError(
            f"the skeleton was found with other knowledge, which differs in {shown}; pass the same knowledge to "
            "find_skeleton"
        )
