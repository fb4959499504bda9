"""Adjustment for confounding: the sets of variables given which an association is an effect.

The criterion is the generalised adjustment criterion (Perković, Textor, Kalisch and Maathuis 2018) for one cause and
one outcome. It is complete for DAGs, for equivalence classes (CPDAG), and for classes restricted by background
knowledge (MPDAG), all closed under Meek's rules. A set that is valid in such a graph is valid in every DAG of the
class.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

from fedcdh.errors import GraphError, NoConsistentExtensionError
from fedcdh.graphs.admissible_arrows import find_obstacles
from fedcdh.graphs.d_separation import is_d_separated
from fedcdh.graphs.equivalence import extend_to_dag, find_consistent_extension
from fedcdh.graphs.knowledge import NO_KNOWLEDGE, Knowledge
from fedcdh.graphs.meek_rules import apply_meek_rules
from fedcdh.graphs.partial_graph import PartialGraph

MAX_OPEN_EDGES = 10
"""Lines at one variable up to which all ways to direct them are tried; 2¹⁰ ways."""


@dataclass(frozen=True)
class LocalChoice:
    """One way to direct the lines at a variable, and what follows from it.

    Attributes
    ----------
    parents : frozenset of str
        The parents of the variable.
    graph : PartialGraph
        The graph with these arrows, closed under Meek's rules.

    Examples
    --------
    >>> line = PartialGraph(("x", "y"), lines=frozenset({frozenset("xy")}))
    >>> [sorted(choice.parents) for choice in list_local_choices(line, "x")]
    [[], ['y']]
    """

    parents: frozenset[str]
    graph: PartialGraph


def find_possible_descendants(
    graph: PartialGraph, node: str, avoiding: Collection[str] = frozenset()
) -> frozenset[str]:
    """Return the nodes that a node may have an effect on, and the node itself.

    Parameters
    ----------
    graph : PartialGraph
        A graph closed under Meek's rules.
    node : str
        The node.
    avoiding : collection of str, optional
        Nodes through which no path leads.

    Returns
    -------
    frozenset of str
        Ends of the paths without an arrow that points back.

    Notes
    -----
    Only unshielded paths are followed: every possibly directed path has an unshielded one among its nodes, and along an
    unshielded path no arrow between nodes that are not neighbours on it can point back (Perković, Kalisch and Maathuis
    2017, lemmas 3.5 and 3.6).

    Examples
    --------
    >>> graph = PartialGraph(tuple("xyz"), frozenset({("y", "z")}), frozenset({frozenset("xy")}))
    >>> sorted(find_possible_descendants(graph, "x"))
    ['x', 'y', 'z']
    """
    if not graph.lines and not avoiding:
        return graph.descendants(node)
    return _follow(graph, node, frozenset(avoiding), lambda here: graph.neighbours(here) - graph.parents(here))


def _follow(
    graph: PartialGraph, node: str, avoiding: frozenset[str], next_nodes: Callable[[str], frozenset[str]]
) -> frozenset[str]:
    """Return the ends of unshielded paths from a node."""
    seen: set[tuple[str, str]] = set()
    waiting = [("", node)]
    found = {node}
    while waiting:
        before, here = waiting.pop()
        for after in next_nodes(here) - avoiding:
            step = (here, after)
            shielded = before and (after == before or graph.is_adjacent(before, after))
            if after == node or step in seen or shielded:
                continue
            seen.add(step)
            found.add(after)
            waiting.append(step)
    return frozenset(found)


def find_causal_nodes(graph: PartialGraph, cause: str, outcome: str) -> frozenset[str]:
    """Return the nodes that may lie on a directed path from the cause to the outcome, without the cause.

    Parameters
    ----------
    graph : PartialGraph
        A graph closed under Meek's rules.
    cause, outcome : str
        Two nodes.

    Returns
    -------
    frozenset of str
        Mediators and the outcome; empty if the cause cannot have an effect on the outcome.

    Examples
    --------
    >>> sorted(find_causal_nodes(PartialGraph.from_dag("xyz", [("x", "y"), ("y", "z")]), "x", "z"))
    ['y', 'z']
    """
    if not graph.lines:
        return graph.descendants(cause) & graph.ancestors(outcome) - {cause} if cause != outcome else frozenset()
    before = graph.parents(cause) | {cause}  # no path leads back to these
    after = find_possible_descendants(graph, cause) - before
    if outcome not in after:
        return frozenset()
    return after & _follow(graph, outcome, before, lambda here: graph.neighbours(here) - graph.children(here))


def is_amenable(graph: PartialGraph, cause: str, outcome: str) -> bool:
    """Return whether every possibly directed path from the cause to the outcome begins with an arrow.

    If one begins with a line, the neighbour may be a mediator or a confounder, and no set is valid in all DAGs.

    Parameters
    ----------
    graph : PartialGraph
        A graph closed under Meek's rules.
    cause, outcome : str
        Two nodes.

    Returns
    -------
    bool
        True if the total effect can be identified by adjustment.

    Examples
    --------
    >>> is_amenable(PartialGraph(tuple("xy"), lines=frozenset({frozenset("xy")})), "x", "y")
    False
    """
    avoided = {cause} | graph.parents(cause)
    open_neighbours = graph.neighbours(cause) - graph.parents(cause) - graph.children(cause)
    return not any(outcome in find_possible_descendants(graph, one, avoided) for one in open_neighbours)


def find_forbidden_nodes(graph: PartialGraph, cause: str, outcome: str) -> frozenset[str]:
    """Return the nodes that no adjustment set may hold: the cause, mediators, the outcome, and what these may affect.

    Parameters
    ----------
    graph : PartialGraph
        A graph closed under Meek's rules.
    cause, outcome : str
        Two nodes.

    Returns
    -------
    frozenset of str
        The forbidden nodes.

    Examples
    --------
    >>> sorted(find_forbidden_nodes(PartialGraph.from_dag("xyz", [("x", "y"), ("y", "z")]), "x", "y"))
    ['x', 'y', 'z']
    """
    found = {cause, outcome}
    if not graph.lines:  # the nodes after those next to the cause are after these as well
        return frozenset(found).union(
            *(graph.descendants(node) for node in find_causal_nodes(graph, cause, outcome) & graph.children(cause))
        )
    for node in find_causal_nodes(graph, cause, outcome):
        found |= find_possible_descendants(graph, node)
    return frozenset(found)


def describe_invalid_adjustment(graph: PartialGraph, cause: str, outcome: str, given: Collection[str]) -> str:
    """Return why a set is no valid adjustment set for the total effect; an empty text if it is valid.

    Parameters
    ----------
    graph : PartialGraph
        A graph closed under Meek's rules.
    cause, outcome : str
        Two nodes.
    given : collection of str
        The set.

    Returns
    -------
    str
        The reason.

    Examples
    --------
    >>> fork = PartialGraph.from_dag("xyz", [("z", "x"), ("z", "y"), ("x", "y")])
    >>> describe_invalid_adjustment(fork, "x", "y", ["z"])
    ''
    >>> describe_invalid_adjustment(fork, "x", "y", [])
    'a path between x and y that is not an effect of x stays open'
    """
    chosen = frozenset(given)
    if not is_amenable(graph, cause, outcome):
        return f"the direction of a line at {cause} decides about the effect"
    if wrong := sorted(chosen & find_forbidden_nodes(graph, cause, outcome)):
        affected = ", ".join(wrong)
        return f"{affected} may be an effect of {cause} on the way to {outcome}, or follow from one"
    dag = _extend(graph)
    causal = find_causal_nodes(dag, cause, outcome)
    left = dag.remove_edges(*(frozenset((cause, node)) for node in dag.children(cause) & causal))
    if not is_d_separated(left, cause, outcome, chosen):
        return f"a path between {cause} and {outcome} that is not an effect of {cause} stays open"
    return ""


def find_optimal_adjustment(graph: PartialGraph, cause: str, outcome: str) -> frozenset[str] | None:
    """Return the valid adjustment set with the smallest asymptotic variance; None if there is no valid one.

    Parameters
    ----------
    graph : PartialGraph
        A graph closed under Meek's rules.
    cause, outcome : str
        Two nodes.

    Returns
    -------
    frozenset of str or None
        The parents of mediators and of the outcome that are neither forbidden nor on the way.

    References
    ----------
    Henckel, Perković and Maathuis, "Graphical criteria for efficient total effect estimation via adjustment in causal
    linear models", Journal of the Royal Statistical Society B, 2022.

    Examples
    --------
    >>> dag = PartialGraph.from_dag("xyab", [("a", "x"), ("a", "y"), ("x", "y"), ("b", "y")])
    >>> sorted(find_optimal_adjustment(dag, "x", "y"))
    ['a', 'b']
    """
    if not is_amenable(graph, cause, outcome):
        return None
    dag = _extend(graph)
    causal = find_causal_nodes(dag, cause, outcome)
    if not causal:
        return None
    forbidden = find_forbidden_nodes(dag, cause, outcome)
    return frozenset[str]().union(*(dag.parents(node) for node in causal)) - forbidden


def list_local_choices(graph: PartialGraph, node: str, knowledge: Knowledge = NO_KNOWLEDGE) -> tuple[LocalChoice, ...]:
    """Return all ways to direct the lines at a variable that some DAG of the class has.

    Parameters
    ----------
    graph : PartialGraph
        A graph closed under Meek's rules.
    node : str
        The variable.
    knowledge : Knowledge, optional
        Background knowledge that the DAGs obey.

    Returns
    -------
    tuple of LocalChoice
        The ways, those with fewer parents first. Where no DAG has just the colliders of the graph, further colliders
        are allowed, and only directed cycles are excluded.

    Raises
    ------
    GraphError
        If more than `MAX_OPEN_EDGES` lines meet there.

    References
    ----------
    Maathuis, Kalisch and Bühlmann, "Estimating high-dimensional intervention effects from observational data", 2009;
    Perković, Kalisch and Maathuis, "Interpreting and using CPDAGs with background knowledge", 2017.

    Examples
    --------
    >>> chain = PartialGraph(tuple("abc"), lines=frozenset({frozenset("ab"), frozenset("bc")}))
    >>> [sorted(choice.parents) for choice in list_local_choices(chain, "b")]
    [[], ['a'], ['c']]
    """
    lines = sorted(graph.neighbours(node) - graph.parents(node) - graph.children(node))
    if len(lines) > MAX_OPEN_EDGES:
        raise GraphError(
            f"{len(lines)} lines meet at {node}; expected at most {MAX_OPEN_EDGES}; direct some of them by knowledge"
        )
    oriented = list(_direct_lines(graph, node, lines, knowledge))
    consistent = [choice for parents, one in oriented if (choice := _close(graph, parents, one, knowledge)) is not None]
    if consistent:
        return tuple(consistent)
    return tuple(LocalChoice(parents, apply_meek_rules(one, knowledge)[0]) for parents, one in oriented)


def _direct_lines(
    graph: PartialGraph, node: str, lines: list[str], knowledge: Knowledge
) -> Iterator[tuple[frozenset[str], PartialGraph]]:
    """Yield every way to direct the lines at a node that knowledge and cycles allow, and the parents it gives."""
    for size in range(len(lines) + 1):
        for chosen in combinations(lines, size):
            arrows = tuple((one, node) if one in chosen else (node, one) for one in lines)
            if not arrows or not find_obstacles(graph, [arrows], knowledge):
                yield graph.parents(node) | frozenset(chosen), graph.orient_all(arrows)


def _close(
    graph: PartialGraph, parents: frozenset[str], oriented: PartialGraph, knowledge: Knowledge
) -> LocalChoice | None:
    """Return a choice closed under Meek's rules; None if no DAG has it without a further collider."""
    if oriented.colliders != graph.colliders:
        return None
    closed = apply_meek_rules(oriented, knowledge)[0]
    if closed.colliders != graph.colliders:
        return None
    try:
        find_consistent_extension(closed)
    except NoConsistentExtensionError:
        return None
    return LocalChoice(parents, closed)


@lru_cache(maxsize=4)
def _extend(graph: PartialGraph) -> PartialGraph:
    """Return a DAG of the class, or one with few further colliders; kept, since many effects ask for the same one."""
    return extend_to_dag(graph)
