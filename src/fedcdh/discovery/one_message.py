"""The graph of one message per client: graphs under Gaussian noise and the graph of the tests vote.

The summaries hold no residuals, so Gaussian noise has to be assumed. Where noise is skewed, the best nonlinear graph
reverses arrows with great confidence; where mechanisms bend, the best linear graph does. Tests have little power, but
are wrong less often. The three therefore vote. An edge is drawn if two of them have it. An arrow is drawn if the tests
and one of the other graphs have it. Both other graphs without the tests are not enough: they share the assumption of
Gaussian noise, and so their mistakes. On the grid of noise shapes (seeds 100 to 105), such arrows are right 28 times in
51, and arrows of the tests alone about pairs that both graphs leave open 19 times in 38 (a trial; no command prints
it). Without tests, both graphs have to have the arrow. All other edges stay open.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from fedcdh._io.text import abbreviate_list
from fedcdh.graphs.admissible_arrows import find_obstacles
from fedcdh.graphs.knowledge import Knowledge
from fedcdh.graphs.partial_graph import Arrow, PartialGraph, sort_pair
from fedcdh.protocols import DOMAIN
from fedcdh.search.orientation import Orientation, Reason

MIN_EDGE_VOTES = 2
"""Number of the graphs that have to have an edge."""


def combine_by_vote(
    curved: Orientation, linear: Orientation, tests: Orientation | None, knowledge: Knowledge
) -> Orientation:
    """Return the edges and arrows on which the graphs agree.

    Parameters
    ----------
    curved, linear : Orientation
        The graphs with the highest evidence, with nonlinear and with linear mechanisms.
    tests : Orientation, optional
        The graph of the tests; None if only the sum of the summaries is known. The two others then have to agree.
    knowledge : Knowledge
        Background knowledge, which all graphs obey.

    Returns
    -------
    Orientation
        A graph without cycles, with the reason of each arrow.

    Examples
    --------
    >>> from fedcdh.graphs.knowledge import NO_KNOWLEDGE
    >>> forward = Orientation(PartialGraph("xy", frozenset({("x", "y")})), {("x", "y"): "evidence"})
    >>> backward = Orientation(PartialGraph("xy", frozenset({("y", "x")})), {("y", "x"): "evidence"})
    >>> print(combine_by_vote(forward, backward, None, NO_KNOWLEDGE).graph)
    x — y
    """
    voters = [one for one in (curved, linear, tests) if one is not None]
    votes = Counter(pair for one in voters for pair in one.graph.skeleton)
    pairs = frozenset(pair for pair, count in votes.items() if count >= MIN_EDGE_VOTES)
    ranked = _ranked_arrows(pairs, curved, linear, tests)
    graph, reasons = PartialGraph(curved.graph.nodes, lines=pairs), dict[Arrow, Reason]()
    for arrow in ranked:
        if not find_obstacles(graph, [(arrow,)], knowledge):
            graph = graph.orient(*arrow)
            reasons[arrow] = next(one.reasons[arrow] for one in voters if arrow in one.reasons)
    return Orientation(graph, reasons, dependences=curved.dependences)


def _ranked_arrows(
    pairs: frozenset[frozenset[str]], curved: Orientation, linear: Orientation, tests: Orientation | None
) -> list[Arrow]:
    """Return the arrows that are drawn, those at the domain first, then by votes."""
    found = []
    for pair in pairs:
        for arrow in (sort_pair(pair), sort_pair(pair)[::-1]):
            graphs = [_vote(one, arrow) for one in (curved, linear)]
            by_tests = 0 if tests is None else _vote(tests, arrow)
            drawn = min(graphs) > 0 if tests is None else by_tests > 0 and max(graphs) > 0
            of_domain = arrow[0] == DOMAIN
            if of_domain or drawn:
                found.append((not of_domain, -sum(graphs) - by_tests, arrow))
    return [arrow for *_, arrow in sorted(found)]


def _vote(voter: Orientation, arrow: Arrow) -> int:
    """Return 1 for an arrow that the voter has, -1 for its reverse, 0 for anything else."""
    return (arrow in voter.graph.arrows) - (arrow[::-1] in voter.graph.arrows)


def describe_open_directions(graph: PartialGraph, skewed: Sequence[str]) -> tuple[str, ...]:
    """Return notes on what a second message would decide, and on variables that are not normally distributed.

    Parameters
    ----------
    graph : PartialGraph
        The graph of one message.
    skewed : sequence of str
        Variables that are clearly not normal.

    Returns
    -------
    tuple of str
        Sentences for the reader.

    Examples
    --------
    >>> line = PartialGraph(("crp", "age"), lines=frozenset({frozenset({"crp", "age"})}))
    >>> describe_open_directions(line, ["crp"])
    ('a second message about residuals may decide age — crp', 'not normally distributed: crp')
    """
    lines = [" — ".join(sort_pair(line)) for line in sorted(graph.lines, key=sort_pair)]
    notes = []
    if lines:
        notes.append(f"a second message about residuals may decide {abbreviate_list(lines)}")
    if skewed:
        notes.append(f"not normally distributed: {abbreviate_list(skewed)}")
    return tuple(notes)
