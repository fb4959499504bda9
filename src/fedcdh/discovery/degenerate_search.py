"""A search that draws no more than degenerate variables allow.

A copy of a variable makes every link of both disputable, so it takes no part in the search. The graph joins it to the
variable that it copies, by a line. Where variables determine each other exactly, such as two parts and their total,
one of them takes no part, for the same reason. Sums cannot say which one was computed, so edges among them stay lines.
Background knowledge goes before these rules.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from fedcdh._io.text import abbreviate_list
from fedcdh.discovery.absent_pairs import forbid_unmeasured
from fedcdh.discovery.algorithm import Search, SearchResult
from fedcdh.discovery.one_message import describe_open_directions
from fedcdh.discovery.settings import Settings
from fedcdh.graphs.admissible_arrows import find_obstacles
from fedcdh.graphs.knowledge import Knowledge
from fedcdh.graphs.partial_graph import Arrow, Pair, PartialGraph
from fedcdh.inference.absent_variables import complete_cohort
from fedcdh.inference.balanced_variables import find_balanced
from fedcdh.inference.degenerate_variables import (
    CopyGroup,
    DeterministicSet,
    FewValued,
    MostlyConstant,
    choose_redundant,
    find_degenerate,
    find_few_valued,
    find_mostly_constant,
)
from fedcdh.inference.posterior.graph_posterior import GraphPosterior
from fedcdh.protocols import DOMAIN, Progress
from fedcdh.search.orientation import Reason
from fedcdh.summaries.aggregation import Aggregate, Cohort


@dataclass(frozen=True)
class DegenerateSearch:
    """A search without copies, whose edges among variables that determine each other stay lines.

    Attributes
    ----------
    search : Search
        The search of a method.

    Examples
    --------
    >>> import fedcdh
    >>> columns = fedcdh.simulate(seed=1).columns("site")
    >>> columns["copy"] = [100 * value + 3 for value in columns["v1"]]
    >>> result = fedcdh.discover(columns, domain="site")
    >>> result.graph.neighbours("copy"), result.graph.has_line("copy", "v1")
    (frozenset({'v1'}), True)
    """

    search: Search

    def __call__(self, known: Cohort | Aggregate, settings: Settings, progress: Progress | None, /) -> SearchResult:
        """Return the result of the search, with the variables that took no part joined to those they follow from."""
        if isinstance(known, Cohort) and known.lacks_columns:
            settings = replace(settings, knowledge=forbid_unmeasured(settings.knowledge, known))
            known = complete_cohort(known)
        copies, functions = find_degenerate(known)
        knowledge = settings.knowledge
        required = {name for arrow in knowledge.required for name in arrow}
        outside = {**follow_copies(copies), **choose_redundant(known, functions, required)}
        balanced = [name for name in find_balanced(known) if name not in outside]
        extended = without_causes(isolate(knowledge, outside, known.plan.names), balanced, known.plan.names)
        found = self.search(known, replace(settings, knowledge=extended), progress)
        drawn = join_outside(open_directions(found, functions, knowledge), outside, knowledge)
        constant = find_mostly_constant(known)
        described = {*outside, *(one.name for one in constant if not one.varies_at)}
        notes = (
            *describe_copies(copies, knowledge),
            *describe_functions(functions, outside),
            *describe_few_valued([one for one in find_few_valued(known, found.residuals) if one.name not in described]),
            *describe_mostly_constant(constant),
            *describe_balanced(balanced),
        )
        return replace(drawn, notes=(*_revise_open_lines(found, drawn), *notes))


def follow_copies(copies: Iterable[CopyGroup]) -> dict[str, tuple[str, ...]]:
    """Return the variable that each copy follows from.

    Parameters
    ----------
    copies : iterable of CopyGroup
        The copies.

    Returns
    -------
    dict from str to tuple of str
        The representative of each copy.

    Examples
    --------
    >>> follow_copies([CopyGroup("age", ("age_copy",))])
    {'age_copy': ('age',)}
    """
    return {copy: (group.representative,) for group in copies for copy in group.copies}


def isolate(knowledge: Knowledge, outside: Collection[str], names: Iterable[str]) -> Knowledge:
    """Return the knowledge that forbids every arrow at some variables, except required ones.

    Parameters
    ----------
    knowledge : Knowledge
        Background knowledge of the user.
    outside : collection of str
        The variables that take no part in the search.
    names : iterable of str
        All variables.

    Returns
    -------
    Knowledge
        Knowledge for the search; the same if all variables take part.

    Examples
    --------
    >>> known = isolate(Knowledge(), ["age_copy"], ["age", "age_copy", "bmi"])
    >>> known.excludes(frozenset({"age_copy", "bmi"})), known.excludes(frozenset({"age", "bmi"}))
    (True, False)
    """
    required = {frozenset(arrow) for arrow in knowledge.required}
    others = (DOMAIN, *names)
    forbidden = {
        arrow
        for name in outside
        for other in others
        if other != name and frozenset((name, other)) not in required
        for arrow in ((name, other), (other, name))
        if arrow[1] != DOMAIN
    }
    return replace(knowledge, forbidden=knowledge.forbidden | forbidden) if forbidden else knowledge


def without_causes(knowledge: Knowledge, balanced: Iterable[str], names: Iterable[str]) -> Knowledge:
    """Return the knowledge that forbids arrows into variables that were assigned by design, except required ones.

    Parameters
    ----------
    knowledge : Knowledge
        Background knowledge.
    balanced : iterable of str
        The assigned variables.
    names : iterable of str
        All variables.

    Returns
    -------
    Knowledge
        Knowledge for the search.

    Examples
    --------
    >>> without_causes(Knowledge(), ["arm"], ["arm", "age"]).forbids("age", "arm")
    True
    """
    forbidden = {
        (other, name)
        for name in balanced
        for other in (DOMAIN, *names)
        if other != name and not knowledge.requires(other, name)
    }
    return replace(knowledge, forbidden=knowledge.forbidden | forbidden) if forbidden else knowledge


def describe_balanced(balanced: Sequence[str]) -> Iterator[str]:
    """Yield a sentence about variables that were assigned by design.

    Parameters
    ----------
    balanced : sequence of str
        The variables.

    Yields
    ------
    str
        A sentence.

    Examples
    --------
    >>> next(describe_balanced(["arm"]))
    'balanced at all clients more exactly than by chance: arm; taken as assigned by design, so nothing causes it'
    """
    if balanced:
        whose = "it" if len(balanced) == 1 else "them"
        yield (
            f"balanced at all clients more exactly than by chance: {abbreviate_list(balanced)}; taken as assigned by "
            f"design, so nothing causes {whose}"
        )


def join_outside(found: SearchResult, outside: Mapping[str, Sequence[str]], knowledge: Knowledge) -> SearchResult:
    """Return the result with edges between the variables that took no part and those that they follow from.

    Parameters
    ----------
    found : SearchResult
        The result of a search without some variables.
    outside : mapping from str to sequence of str
        These variables, and those from which each of them follows.
    knowledge : Knowledge
        Background knowledge, which may direct or exclude these edges.

    Returns
    -------
    SearchResult
        The result with further lines; they are arrows where knowledge directs them.
    """
    for name, sources in outside.items():
        for pair in ((source, name) for source in sources):
            if not knowledge.excludes(frozenset(pair)) and not found.orientation.graph.is_adjacent(*pair):
                found = _join(found, pair, knowledge)
    return found


def open_directions(found: SearchResult, functions: Sequence[DeterministicSet], knowledge: Knowledge) -> SearchResult:
    """Return the result with lines for arrows among variables that determine each other.

    Parameters
    ----------
    found : SearchResult
        The result of a search.
    functions : sequence of DeterministicSet
        The sets of such variables.
    knowledge : Knowledge
        Background knowledge; arrows that it directs stay.

    Returns
    -------
    SearchResult
        The result with lines in place of these arrows.
    """
    pairs = {frozenset(pair) for one in functions for pair in combinations(one.variables, 2)}
    graph, reasons = found.orientation.graph, found.orientation.reasons
    arrows = {arrow for arrow in graph.arrows if frozenset(arrow) in pairs and not knowledge.directs(*arrow)}
    orientation = replace(
        found.orientation,
        graph=replace(graph, arrows=graph.arrows - arrows, lines=graph.lines.union(map(frozenset, arrows))),
        reasons={arrow: reason for arrow, reason in reasons.items() if arrow not in arrows},
    )
    if not arrows:
        return found
    return replace(found, orientation=orientation, assumed=found.assumed | arrows, posterior=_open(found, arrows))


def _open(found: SearchResult, pairs: Iterable[Iterable[str]]) -> GraphPosterior | None:
    """Return the posterior with equal probabilities of both directions of these pairs."""
    if found.posterior is None:
        return None
    edges = {frozenset(pair): found.posterior.probability_of_edge(*pair) for pair in pairs}
    return found.posterior.with_open_pairs(edges)


def _join(found: SearchResult, pair: Arrow, knowledge: Knowledge) -> SearchResult:
    """Join two variables by a line, or by an arrow if knowledge directs it."""
    graph = _add_line(found.orientation.graph, frozenset(pair))
    settled = graph.orient_all(found.assumed)
    possible = [arrow for arrow in (pair, pair[::-1]) if not find_obstacles(settled, [(arrow,)], knowledge)]
    known = [arrow for arrow in possible if knowledge.directs(*arrow)]
    reason: Reason = "knowledge"
    reasons = {**found.orientation.reasons, **dict.fromkeys(known, reason)}
    return replace(
        found,
        skeleton=replace(found.skeleton, graph=_add_line(found.skeleton.graph, frozenset(pair))),
        orientation=replace(found.orientation, graph=graph.orient_all(known), reasons=reasons),
        assumed=found.assumed.union([] if known else possible[:1]),
        posterior=_join_posterior(found.posterior, pair, known),
    )


def _join_posterior(posterior: GraphPosterior | None, pair: Arrow, known: Sequence[Arrow]) -> GraphPosterior | None:
    """Return the posterior with a certain edge, whose direction is open unless it is known."""
    if posterior is None:
        return None
    return posterior.with_certain_arrow(known[0]) if known else posterior.with_open_pairs({frozenset(pair): 1.0})


def _add_line(graph: PartialGraph, pair: Pair) -> PartialGraph:
    return graph if pair in graph.skeleton else replace(graph, lines=graph.lines | {pair})


def _revise_open_lines(found: SearchResult, drawn: SearchResult) -> Iterator[str]:
    """Yield the notes of the search, without the promise that a second message may decide what no data can."""
    before, after = found.orientation.graph, drawn.orientation.graph
    hopeless = {frozenset(arrow) for arrow in drawn.assumed}
    promised = describe_open_directions(before, ())
    kept = describe_open_directions(replace(after, lines=(after.lines & before.lines) - hopeless), ())
    for note in found.notes:
        yield from kept if (note,) == promised else (note,)


# Sentences for the reader


def describe_copies(copies: Iterable[CopyGroup], knowledge: Knowledge) -> Iterator[str]:
    """Yield a sentence about each variable and its copies.

    Parameters
    ----------
    copies : iterable of CopyGroup
        The copies.
    knowledge : Knowledge
        Background knowledge, whose required arrows stay.

    Yields
    ------
    str
        A sentence.

    Examples
    --------
    >>> from fedcdh.graphs.knowledge import NO_KNOWLEDGE
    >>> for note in describe_copies([CopyGroup("age", ("age_copy",))], NO_KNOWLEDGE):
    ...     print(note)
    age_copy is a copy of age: their links cannot be separated, so it is left out of the search and joined to age only
    """
    required = {name for arrow in knowledge.required for name in arrow}
    for group in copies:
        first, one = group.representative, len(group.copies) == 1
        which = f"{_list_names(group.copies)} {'is a copy' if one else 'are copies'} of {first}"
        rest = f"{'it is' if one else 'they are'} left out of the search and joined to {first} only"
        but = "" if required.isdisjoint(group.copies) else ", apart from required arrows"
        yield f"{which}: their links cannot be separated, so {rest}{but}"


def describe_functions(functions: Iterable[DeterministicSet], outside: Collection[str]) -> Iterator[str]:
    """Yield a sentence about each set of variables that determine each other.

    Parameters
    ----------
    functions : iterable of DeterministicSet
        The sets.
    outside : collection of str
        The variables that took no part in the search.

    Yields
    ------
    str
        A sentence.

    Examples
    --------
    >>> for note in describe_functions([DeterministicSet(("a", "b", "sum"), ("a", "b", "sum"))], ["sum"]):
    ...     print(note)
    a, b and sum determine each other exactly: directions among them cannot be known, and sum is left out of the search
    """
    for one in functions:
        causes = [name for name in one.variables if name not in one.computable]
        if not causes:
            found = f"{_list_names(one.variables)} determine each other exactly"
        elif len(one.computable) == 1:
            found = f"{one.computable[0]} follows exactly from {_list_names(causes)}"
        else:
            found = f"of {_list_names(one.variables)}, each of {_list_names(one.computable)} follows from the others"
        left_out = [name for name in one.variables if name in outside]
        rest = f", and {_list_names(left_out)} is left out of the search" if left_out else ""
        yield f"{found}: directions among them cannot be known{rest}"


def describe_few_valued(numbers: Sequence[FewValued]) -> Iterator[str]:
    """Yield a sentence about the numbers of which many rows share one value.

    Parameters
    ----------
    numbers : sequence of FewValued
        The numbers.

    Yields
    ------
    str
        A sentence.

    Examples
    --------
    >>> for note in describe_few_valued([FewValued("visits", 3), FewValued("costs", None, 0.4)]):
    ...     print(note)
    few values: visits (3 values), costs (40 % of rows share one); noise says nothing about directions at these numbers
    """
    shown = [f"{one.name} ({_describe_values(one)})" for one in numbers]
    if shown:
        yield f"few values: {abbreviate_list(shown)}; noise says nothing about directions at {_these(shown)}"


def describe_mostly_constant(variables: Sequence[MostlyConstant]) -> Iterator[str]:
    """Yield sentences about the variables that are constant at most clients, or at each of them.

    Parameters
    ----------
    variables : sequence of MostlyConstant
        The variables.

    Yields
    ------
    str
        A sentence.

    Examples
    --------
    >>> for note in describe_mostly_constant([MostlyConstant("smoker", ("north", "south"), ("city",))]):
    ...     print(note)
    constant at most clients: smoker (at 2 of 3); its links rest on the other clients
    """
    some = [one for one in variables if one.varies_at]
    none = [one.name for one in variables if not one.varies_at]
    if some:
        shown = [f"{one.name} (at {len(one.constant_at)} of {len(one.constant_at + one.varies_at)})" for one in some]
        whose = "its" if len(shown) == 1 else "their"
        yield f"constant at most clients: {abbreviate_list(shown)}; {whose} links rest on the other clients"
    if none:
        yield f"constant at every client: {abbreviate_list(none)}; only differences between clients are known"


def _describe_values(number: FewValued) -> str:
    if number.values is not None:
        return f"{number.values} values"
    return f"{100 * (number.tied_share or 0.0):.0f} % of rows share one"


def _these(shown: Sequence[str]) -> str:
    return "this number" if len(shown) == 1 else "these numbers"


def _list_names(names: Sequence[str]) -> str:
    """Return names as in a sentence: a, b and c."""
    return abbreviate_list(names) if len(names) == 1 or len(names) > 20 else f"{', '.join(names[:-1])} and {names[-1]}"
