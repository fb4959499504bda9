"""Which variables are adjacent: the PC-stable skeleton search on the variables and the domain."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from fedcdh.conditioning import ask, most_independent, possible_parents, questions_about
from fedcdh.errors import SettingsError
from fedcdh.graph import Pair, PartialGraph, ends
from fedcdh.knowledge import NOTHING_KNOWN, Knowledge
from fedcdh.questions import Answer, IndependenceTest, Question
from fedcdh.removal import RemovalRule, SoFar, every_separation

Progress: TypeAlias = Callable[[int, int], None]
"""Called with (level, number of questions) just before the batch of that level is asked."""


@dataclass(frozen=True)
class Skeleton:
    """The adjacent pairs, all as lines, and the answers that decided about each pair."""

    graph: PartialGraph
    separators: Mapping[Pair, Answer]
    """For pairs that are not adjacent: the answer with the largest p-value, and with it the separating set. A pair that
    knowledge sets apart has one only if the direction of some edge hinges on it."""
    strongest: Mapping[Pair, Answer]
    """For adjacent pairs: the largest p-value met, the strongest argument against the edge, the refused ones apart."""
    questions_per_level: tuple[int, ...]
    """How many questions were asked with 0, 1, 2, ... conditioning variables."""
    always_given: frozenset[str] = frozenset()
    """What every question was conditioned on besides."""
    refused: tuple[Answer, ...] = ()
    """Separations of pairs that are still adjacent, because they contradict others (see `removal`)."""


def find_skeleton(
    nodes: Iterable[str],
    test: IndependenceTest,
    alpha: float,
    knowledge: Knowledge = NOTHING_KNOWN,
    max_conditioning: int | None = None,
    progress: Progress | None = None,
    always_given: frozenset[str] = frozenset(),
    removal: RemovalRule = every_separation,
) -> Skeleton:
    """Start with every pair joined; take a — b away once some set S gives p(a ⫫ b | S) > alpha.

    S grows by one variable per level, and a level is one batch. The graph stands still while a level is asked, so the
    order of the nodes does not matter (PC-stable). A pair that knowledge excludes is absent from the start; a required
    one is asked about for the record only.

    `always_given` may name roots, such as the domain: conditioning on a root opens no path, so every set that separates
    two other nodes still does. The questions get easier where the root changes what they are about, and fewer.
    """
    nodes = tuple(nodes)
    _refuse_unless_possible(nodes, alpha, max_conditioning, knowledge)
    rules = _Rules(alpha, knowledge, always_given, removal)
    graph = PartialGraph.complete(nodes)
    excluded = frozenset(pair for pair in graph.lines if knowledge.excludes(pair))
    graph = graph.without(*excluded)
    best: dict[Pair, Answer] = {}
    refused: list[Answer] = []
    asked: list[int] = []
    for level in range(len(nodes) + 1 if max_conditioning is None else max_conditioning + 1):
        questions = rules.questions(level, graph, excluded, best)
        if not questions:
            break
        if progress is not None:
            progress(level, len(questions))
        asked.append(len(questions))
        answers = ask(test, questions)
        removed, disbelieved = rules.judge(answers, graph, {pair: best[pair] for pair in best.keys() - excluded})
        _keep_best(best, set(answers).difference(disbelieved))
        best.update(removed)
        refused += disbelieved
        graph = graph.without(*removed)
    separators, strongest = _conclude(graph, best, alpha, knowledge)
    refused = [answer for answer in refused if answer.question.pair in graph.lines]
    return Skeleton(graph, separators, strongest, tuple(asked), always_given, tuple(refused))


@dataclass(frozen=True)
class _Rules:
    """What is asked at a level, and what the answers take away."""

    alpha: float
    knowledge: Knowledge
    always_given: frozenset[str]
    removal: RemovalRule

    def questions(
        self, level: int, graph: PartialGraph, excluded: frozenset[Pair], best: Mapping[Pair, Answer]
    ) -> list[Question]:
        """About every line, and about pairs that knowledge excludes while a direction hinges on their separator."""
        unseparated = (pair for pair in excluded if pair not in best or best[pair].p_value <= self.alpha)
        needed = (pair for pair in unseparated if _directions_hinge_on(pair, graph, self.knowledge))
        parents = possible_parents(graph, self.knowledge)
        pairs = sorted(graph.lines.union(needed), key=ends)
        return [question for pair in pairs for question in questions_about(pair, parents, level, self.always_given)]

    def judge(
        self, answers: Iterable[Answer], graph: PartialGraph, best: Mapping[Pair, Answer]
    ) -> tuple[Mapping[Pair, Answer], list[Answer]]:
        """The separations that remove an edge, and those that are not believed."""
        removable = {pair for pair in graph.lines if not _required(pair, self.knowledge)}
        separations = [a for a in answers if a.p_value > self.alpha and a.question.pair in removable]
        gone = {pair: answer for pair, answer in best.items() if pair not in graph.lines}
        left = {pair: answer for pair, answer in best.items() if pair in graph.lines}
        removed = self.removal(separations, SoFar(gone, left, self.always_given))
        return removed, [answer for answer in separations if answer.question.pair not in removed]


def _conclude(
    graph: PartialGraph, best: Mapping[Pair, Answer], alpha: float, knowledge: Knowledge
) -> tuple[dict[Pair, Answer], dict[Pair, Answer]]:
    separators = {
        pair: answer
        for pair, answer in best.items()
        if pair not in graph.lines
        # An excluded pair may have been asked about in vain, and then have lost its last common neighbour.
        and (answer.p_value > alpha or _directions_hinge_on(pair, graph, knowledge))
    }
    strongest = {pair: answer for pair, answer in best.items() if pair in graph.lines}
    return separators, strongest


def _directions_hinge_on(pair: Pair, graph: PartialGraph, knowledge: Knowledge) -> bool:
    """Whether a set separating this absent pair is still needed, to tell if a common neighbour is a collider."""
    a, b = pair
    return any(knowledge.leaves_open(pair, middle) for middle in graph.neighbours(a) & graph.neighbours(b))


def _keep_best(best: dict[Pair, Answer], answers: Iterable[Answer]) -> None:
    for answer in answers:
        pair = answer.question.pair
        best[pair] = most_independent((best[pair], answer)) if pair in best else answer


def _required(pair: Pair, knowledge: Knowledge) -> bool:
    a, b = pair
    return knowledge.requires(a, b) or knowledge.requires(b, a)


def _refuse_unless_possible(
    nodes: tuple[str, ...], alpha: float, max_conditioning: int | None, knowledge: Knowledge
) -> None:
    knowledge.check(nodes)
    if not 0.0 <= alpha < 1.0:
        raise SettingsError(f"alpha is {alpha}; expected a significance level from 0 to below 1, such as 0.05")
    if max_conditioning is not None and max_conditioning < 0:
        raise SettingsError(f"max_conditioning is {max_conditioning}; expected 0 or more, or None for no limit")
