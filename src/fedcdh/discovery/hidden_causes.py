"""The search that allows for hidden common causes: FCI with the tests of a method, and without copies and totals."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, permutations

from fedcdh.discovery.algorithm import ConstraintSearch, Search, with_domain
from fedcdh.discovery.degenerate_search import (
    describe_balanced,
    describe_copies,
    describe_few_valued,
    describe_functions,
    describe_mostly_constant,
    follow_copies,
    without_causes,
)
from fedcdh.discovery.residual_rounds import ResidualDirections
from fedcdh.discovery.settings import Settings
from fedcdh.errors import SettingsError
from fedcdh.graphs.ancestral_graph import AncestralGraph, Mark
from fedcdh.graphs.knowledge import Knowledge
from fedcdh.inference.balanced_variables import find_balanced
from fedcdh.inference.degenerate_variables import (
    DeterministicSet,
    choose_redundant,
    find_degenerate,
    find_few_valued,
    find_mostly_constant,
)
from fedcdh.protocols import DOMAIN, Progress
from fedcdh.search.colliders import make_largest_p_decision
from fedcdh.search.conditioning_sets import CachedTest
from fedcdh.search.fci import MAX_POSSIBLE_SEPARATORS, AncestralSearchResult, HiddenCauseRules, search_pag
from fedcdh.search.skeleton import SkeletonRules
from fedcdh.summaries.aggregation import Aggregate, Cohort
from fedcdh.summaries.joint import Spent

TESTS_METHOD = "constraint"
"""The method whose tests a search for hidden causes asks."""


@dataclass(frozen=True)
class HiddenCauseFindings:
    """The partial ancestral graph of a study, and sentences for its reader.

    Attributes
    ----------
    found : AncestralSearchResult
        The graph of the variables and the domain, and the answers behind it.
    notes : tuple of str
        Sentences for the reader of the result.
    spent : Spent, optional
        The adaptive rounds that were used, and the bytes that they took.

    Examples
    --------
    >>> import fedcdh
    >>> result = fedcdh.discover(fedcdh.simulate(seed=1).columns("site"), domain="site", hidden=True)
    >>> result.findings.spent is None
    True
    """

    found: AncestralSearchResult
    notes: tuple[str, ...] = ()
    spent: Spent | None = None


@dataclass(frozen=True)
class HiddenCauseSearch:
    """FCI with the tests and the rules of a search by tests.

    Attributes
    ----------
    tests : ConstraintSearch
        The test, the rule for removing edges, and the rule for colliders. Its measure of change is not used:
        independent changes direct an edge only where nothing unmeasured is behind it.

    Examples
    --------
    >>> from fedcdh.discovery import METHODS
    >>> HiddenCauseSearch(METHODS["constraint"].search).tests.always_given
    frozenset({'__domain__'})
    """

    tests: ConstraintSearch

    def __call__(
        self, known: Cohort | Aggregate, settings: Settings, progress: Progress | None, /
    ) -> HiddenCauseFindings:
        """Return the graph, with the variables that took no part joined to those they follow from."""
        if self.tests.needs_clients and isinstance(known, Aggregate):
            raise SettingsError(
                f"only the sum of the clients' summaries is known; expected the summary of every client, since rounds "
                f"{settings.rounds!r} ask single clients for joint features; choose rounds 'one'",
                parameter="rounds",
            )
        copies, functions = find_degenerate(known)
        knowledge = settings.knowledge
        required = {name for arrow in knowledge.required for name in arrow}
        outside = {**follow_copies(copies), **choose_redundant(known, functions, required)}
        balanced = [name for name in find_balanced(known) if name not in outside]
        nodes = tuple(name for name in with_domain(known, mixtures=self.tests.uses_mixtures) if name not in outside)
        test, _ = self.tests.statistics(known, settings)
        answers = CachedTest(test)
        rules = HiddenCauseRules(
            SkeletonRules(self.tests.always_given & {*nodes}, self.tests.removal, self.tests.max_batch_queries),
            self.tests.colliders(answers),
            make_largest_p_decision(answers),
            max_possible_separators=MAX_POSSIBLE_SEPARATORS,
        )
        found = search_pag(
            nodes,
            answers,
            settings.alpha,
            restrict(without_causes(knowledge, balanced, nodes), nodes),
            settings.max_conditioning_size,
            progress,
            rules,
        )
        graph = join_outside(open_marks(found.graph, functions, knowledge), outside, knowledge, known.plan.names)
        constant = find_mostly_constant(known)
        described = {*outside, *(one.name for one in constant if not one.varies_at)}
        notes = (
            *(self.tests.notes(known, test) if self.tests.notes else ()),
            *describe_copies(copies, knowledge),
            *describe_functions(functions, outside),
            *describe_few_valued([one for one in find_few_valued(known, None) if one.name not in described]),
            *describe_mostly_constant(constant),
            *describe_balanced(balanced),
        )
        spent = self.tests.spent(test) if self.tests.spent else None
        return HiddenCauseFindings(replace(found, graph=graph), notes, spent)


def choose_tests(search: Search) -> HiddenCauseSearch:
    """Return the search for hidden causes with the tests of a method's search.

    Parameters
    ----------
    search : Search
        The search of a method. Where it asks about residuals after its tests, the tests are taken.

    Returns
    -------
    HiddenCauseSearch
        The search.

    Raises
    ------
    SettingsError
        If the search is not one by tests.
    """
    if isinstance(search, ResidualDirections):
        return choose_tests(search.search)
    if not isinstance(search, ConstraintSearch):
        raise SettingsError(
            f"found a {type(search).__name__}; expected a search by tests; choose method 'constraint'",
            parameter="method",
        )
    return HiddenCauseSearch(search)


def name_method(method: str) -> str:
    """Return the method whose tests a search for hidden causes asks.

    Parameters
    ----------
    method : str
        The choice of the user.

    Returns
    -------
    str
        "constraint", also for "auto".

    Raises
    ------
    SettingsError
        If another method is chosen.

    Examples
    --------
    >>> name_method("auto")
    'constraint'
    """
    if method in ("auto", TESTS_METHOD):
        return TESTS_METHOD
    raise SettingsError(
        f"method is {method!r} together with hidden causes; expected 'auto' or 'constraint', whose tests say nothing "
        "about unmeasured variables. Choose one of these, or search without hidden causes",
        parameter="method",
    )


def name_rounds(rounds: str) -> str:
    """Return what clients are asked further in a search for hidden causes.

    Parameters
    ----------
    rounds : str
        The choice of the user.

    Returns
    -------
    str
        "one" for "auto": residuals decide directions only where nothing unmeasured is behind two variables.

    Raises
    ------
    SettingsError
        If residuals are asked for.

    Examples
    --------
    >>> name_rounds("auto"), name_rounds("adaptive")
    ('one', 'adaptive')
    """
    if rounds == "residuals":
        raise SettingsError(
            "rounds is 'residuals' together with hidden causes; expected 'auto', 'one' or 'adaptive', because "
            "residuals decide a direction only where nothing unmeasured is behind the two. Choose one of these",
            parameter="rounds",
        )
    return "one" if rounds == "auto" else rounds


def restrict(knowledge: Knowledge, nodes: Collection[str]) -> Knowledge:
    """Return what knowledge says about some of the nodes.

    Parameters
    ----------
    knowledge : Knowledge
        Background knowledge.
    nodes : collection of str
        The nodes that are kept.

    Returns
    -------
    Knowledge
        Knowledge of these nodes, with the same tiers for them.

    Examples
    --------
    >>> known = Knowledge(required=[("x", "copy")], tiers=[["x"], ["copy"], ["y"]])
    >>> restricted = restrict(known, ["x", "y"])
    >>> restricted.required, restricted.forbids("y", "x")
    (frozenset(), True)
    """
    kept = frozenset(nodes) | {DOMAIN}
    forbidden = {
        (tail, head) for tail, head in permutations(sorted(kept - {DOMAIN}), 2) if knowledge.forbids(tail, head)
    }  # tiers become single arrows, because a tier may lose all its nodes
    return Knowledge(
        required=[arrow for arrow in knowledge.required if kept.issuperset(arrow)],
        forbidden=forbidden | {arrow for arrow in knowledge.forbidden if kept.issuperset(arrow)},
    )


def open_marks(graph: AncestralGraph, functions: Sequence[DeterministicSet], knowledge: Knowledge) -> AncestralGraph:
    """Return the graph with circles between variables that determine each other, except where knowledge decides.

    Parameters
    ----------
    graph : AncestralGraph
        The graph.
    functions : sequence of DeterministicSet
        The sets of such variables.
    knowledge : Knowledge
        Background knowledge, whose marks stay.

    Returns
    -------
    AncestralGraph
        The changed graph.
    """
    marks = dict(graph.end_marks)
    for one in functions:
        for a, b in combinations(one.variables, 2):
            if (a, b) in marks:
                marks |= _mark_by_knowledge(a, b, knowledge)
    return AncestralGraph(graph.nodes, marks)


def join_outside(
    graph: AncestralGraph, outside: Mapping[str, Sequence[str]], knowledge: Knowledge, names: Sequence[str]
) -> AncestralGraph:
    """Return the graph with the variables that took no part, joined to those that they follow from.

    Parameters
    ----------
    graph : AncestralGraph
        The graph of the other variables.
    outside : mapping from str to sequence of str
        These variables, and those from which each of them follows.
    knowledge : Knowledge
        Background knowledge. It decides marks; its required arrows are drawn.
    names : sequence of str
        All variables, in their order.

    Returns
    -------
    AncestralGraph
        The graph of all variables.
    """
    marks = dict(graph.end_marks)
    required = {arrow for arrow in knowledge.required if not outside.keys().isdisjoint(arrow)}
    for a, b in [*required, *((source, name) for name, sources in outside.items() for source in sources)]:
        if not knowledge.excludes(frozenset((a, b))):
            marks |= _mark_by_knowledge(a, b, knowledge)
    domain = [DOMAIN] if DOMAIN in graph.nodes else []
    return AncestralGraph(
        (*domain, *names), {ends: mark for ends, mark in marks.items() if {*ends} <= {*domain, *names}}
    )


def _mark_by_knowledge(a: str, b: str, knowledge: Knowledge) -> dict[tuple[str, str], Mark]:
    """Return the marks of an edge of which only knowledge says anything."""
    found: dict[tuple[str, str], Mark] = {}
    for tail, head in ((a, b), (b, a)):
        if tail == DOMAIN or knowledge.requires(tail, head):
            return {(tail, head): "arrow", (head, tail): "tail"}
        found[tail, head] = "arrow" if knowledge.forbids(head, tail) else "circle"
    return found
