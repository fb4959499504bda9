"""Which way the edges point: the direction determination of the paper's appendix, one step after the other.

Every step goes through the same gate (`admission`): no arrow that knowledge forbids, none against an arrow already
there, none that closes a directed cycle. What is refused is recorded as a conflict, and the lines stay lines.
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

Reason: TypeAlias = Literal["domain", "knowledge", "collider", "evidence", "independent-change"] | MeekRule
"""Why an arrow points as it does."""


@dataclass(frozen=True)
class DirectionEvidence:
    """Evidence of one kind: log Bayes factors of arrows against their reverse, and how large one has to be."""

    factors: Mapping[Arrow, float]
    threshold: float
    reason: Reason


@dataclass(frozen=True)
class Conflict:
    """Arrows that one step wanted and something else ruled out."""

    arrows: Bundle
    reason: Reason
    obstacle: Obstacle

    def __str__(self) -> str:
        shown = " and ".join(f"{tail} → {head}" for tail, head in self.arrows)
        return f"{shown} ({self.reason}) refused: {self.obstacle}"


@dataclass(frozen=True)
class Orientation:
    """A partly directed graph without directed cycles, and why each arrow points as it does."""

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
    """Direct the lines of a skeleton as far as the evidence goes.

    `directions` are log Bayes factors of arrows against their reverse, each kind of evidence in its turn.
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
    """℧ — V becomes ℧ → V: the domain has no causes."""
    arrows = [(DOMAIN, other) for line in found.graph.lines if DOMAIN in line for other in line - {DOMAIN}]
    return _apply_arrows(found, ((arrow,) for arrow in arrows), "domain", NO_KNOWLEDGE)


def orient_by_knowledge(found: Orientation, knowledge: Knowledge) -> Orientation:
    """Required arrows; then, for lines with one direction forbidden, the other."""
    both_ways = [arrow for line in found.graph.lines for arrow in (sort_pair(line), sort_pair(line)[::-1])]
    required = [arrow for arrow in both_ways if knowledge.requires(*arrow)]
    directed = [arrow for arrow in both_ways if knowledge.directs(*arrow) and not knowledge.requires(*arrow)]
    found = _apply_arrows(found, ((arrow,) for arrow in required), "knowledge", knowledge)
    # Arrows that are each right may still run in a circle if the skeleton is wrong; then these stay lines.
    return _apply_arrows(found, ((arrow,) for arrow in directed), "knowledge", knowledge)


def orient_colliders(found: Orientation, decisions: tuple[TripleDecision, ...], knowledge: Knowledge) -> Orientation:
    """a → z ← b for every triple decided so, the surest first; one that cannot be taken whole is dropped whole."""
    surest_first = sorted(decisions, key=lambda decision: -decision.strength)
    for _, equally_sure in groupby(surest_first, key=lambda decision: decision.strength):
        bundles = [decision.arrows for decision in equally_sure if decision.collider]
        found = _apply_arrows(found, bundles, "collider", knowledge)
    return replace(found, triples=decisions)


def orient_by_meek_rules(found: Orientation, knowledge: Knowledge) -> Orientation:
    """Meek's rules until nothing changes; ℧ → x — y with ℧ and y apart is rule 1: x → y."""
    graph, reasons = meek_rules.apply_meek_rules(found.graph, knowledge)
    return replace(found, graph=graph, reasons={**found.reasons, **reasons})


def orient_by_evidence(found: Orientation, directions: DirectionEvidence, knowledge: Knowledge) -> Orientation:
    """x — y becomes x → y where the log Bayes factor is strong enough; the strongest first, then Meek's rules."""
    strong = sorted((-value, arrow) for arrow, value in directions.factors.items() if value >= directions.threshold)
    for _, arrow in strong:
        if found.graph.has_line(*arrow):
            found = orient_by_meek_rules(_apply_arrows(found, [(arrow,)], directions.reason, knowledge), knowledge)
    return found


def orient_by_independent_change(found: Orientation, measure: IndependentChange, knowledge: Knowledge) -> Orientation:
    """x — y with both modules changing becomes x → y iff Δ_{x→y} < Δ_{y→x}; the widest margin first.

    Each arrow is followed by Meek's rules, so a clear pair speaks for the less clear ones around it. All pairs are
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
    """Direct the lines of these bundles, all at once; record what is refused."""
    bundles = sorted(bundles)
    refused = find_obstacles(found.graph, bundles, knowledge)
    taken = [arrow for bundle in bundles if bundle not in refused for arrow in bundle if found.graph.has_line(*arrow)]
    graph, reasons = found.graph.orient_all(taken), {**found.reasons, **dict.fromkeys(taken, reason)}
    conflicts = tuple(Conflict(bundle, reason, refused[bundle]) for bundle in bundles if bundle in refused)
    return replace(found, graph=graph, reasons=reasons, conflicts=found.conflicts + conflicts)


def record_open_demands(found: Orientation, knowledge: Knowledge) -> Orientation:
    """Record what Meek's rules still demand of the final graph: all of it was refused."""
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
            f"the measure of change was asked about {len(pairs)} pairs and gave {len(measured)} values, not for the"
            " same pairs in the same order; it measures each pair of a batch, in order"
        )
    for value in measured:
        if isnan(_margin(value)):
            raise InvalidAnswerError(
                f"the module dependence is not a number: {value}; a measure returns values in [0, 1]"
            )
    return measured


def _margin(value: ModuleDependence) -> float:
    """How far apart the two directions are: Δ is normalised to [0, 1], so differences compare between pairs."""
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
            f"this skeleton was found without this knowledge, they differ in {shown}; give find_skeleton the same"
        )
