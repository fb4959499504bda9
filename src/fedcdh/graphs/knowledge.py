"""Background knowledge about directions.

Required arrows are in every graph that is found, forbidden ones in none. Tiers order the variables in time: nothing in
a later tier causes anything in an earlier one. The domain has no causes: `forbids(x, DOMAIN)` always holds.
`required=[(DOMAIN, "x")]` says that the mechanism of x is known to differ between clients, `forbidden=[(DOMAIN, "x")]`
that it is known not to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from fedcdh.errors import KnowledgeError
from fedcdh.graphs.partial_graph import Arrow, Pair, sort_pair
from fedcdh.protocols import DOMAIN

MAX_PROBLEMS = 30
"""Problems in one error message, and names in one problem."""
MAX_MESSAGE_LENGTH = 10_000
"""Characters of all problems together: unknown names in an arrow may be of any length."""


@dataclass(frozen=True, init=False)
class Knowledge:
    """Background knowledge: required and forbidden arrows, and tiers in time.

    Parameters
    ----------
    required : iterable of (str, str), default ()
        Arrows (tail, head) that must be in the graph.
    forbidden : iterable of (str, str), default ()
        Arrows that must not be in the graph. If both directions are forbidden, there is no edge.
    tiers : iterable of iterables of str, default ()
        Groups of variables, from early to late; no arrow leads to an earlier tier. A variable in no tier is free.
    forbid_within_tier : iterable of int, default ()
        Positions of tiers, from 0, without edges between their variables.

    Raises
    ------
    KnowledgeError
        If an arrow has not two ends, or a tier is a single text.

    See Also
    --------
    fedcdh.graphs.convert : Reads knowledge from files and objects of other programs.

    Notes
    -----
    `fedcdh.DOMAIN` may be the tail of an arrow. If (DOMAIN, "x") is required, the mechanism of x is known to differ
    between clients; if it is forbidden, the mechanism is known not to differ. Nothing causes the domain.

    Examples
    --------
    >>> known = Knowledge(required=[("smoking", "cancer")], tiers=[["age", "sex"], ["smoking"], ["cancer"]])
    >>> known.forbids("cancer", "age"), known.forbids("age", "cancer")
    (True, False)
    """

    required: frozenset[Arrow]
    forbidden: frozenset[Arrow]
    tiers: tuple[tuple[str, ...], ...]
    forbid_within_tier: frozenset[int]

    def __init__(
        self,
        required: Iterable[Iterable[str]] = (),
        forbidden: Iterable[Iterable[str]] = (),
        tiers: Iterable[Iterable[str]] = (),
        forbid_within_tier: Iterable[int] = (),
    ) -> None:
        # A frozen dataclass sets its fields this way; lists, for example from a file, become hashable values here.
        object.__setattr__(self, "required", frozenset(map(_to_arrow, required)))
        object.__setattr__(self, "forbidden", frozenset(map(_to_arrow, forbidden)))
        object.__setattr__(self, "tiers", tuple(map(_to_tier, tiers)))
        object.__setattr__(self, "forbid_within_tier", frozenset(forbid_within_tier))

    # Questions of the search

    def requires(self, tail: str, head: str) -> bool:
        """Return whether tail → head must be in the graph.

        Parameters
        ----------
        tail, head : str
            The nodes.

        Returns
        -------
        bool
            True if the arrow is required.
        """
        return (tail, head) in self.required

    def forbids(self, tail: str, head: str) -> bool:
        """Return whether tail → head must not be in the graph, because of an arrow, a tier or the domain.

        Parameters
        ----------
        tail, head : str
            The nodes.

        Returns
        -------
        bool
            True if the arrow is forbidden.
        """
        return (
            head == DOMAIN
            or (tail, head) in self.forbidden
            or (head, tail) in self.required
            or self._against_tiers(tail, head)
        )

    def forbid_pairs(self, pairs: Iterable[Iterable[str]]) -> Knowledge:
        """Return the same knowledge without edges between further pairs.

        Parameters
        ----------
        pairs : iterable of pairs of str
            Pairs of nodes.

        Returns
        -------
        Knowledge
            The knowledge, with both arrows of each pair forbidden.
        """
        arrows = [arrow for one, other in map(tuple, pairs) for arrow in ((one, other), (other, one))]
        return replace(self, forbidden=frozenset({*self.forbidden, *arrows})) if arrows else self

    def excludes(self, pair: Pair) -> bool:
        """Return whether two nodes cannot be adjacent, because both directions are forbidden.

        Parameters
        ----------
        pair : frozenset of str
            The two nodes.

        Returns
        -------
        bool
            True if there can be no edge.
        """
        a, b = sort_pair(pair)
        return self.forbids(a, b) and self.forbids(b, a)

    def directs(self, tail: str, head: str) -> bool:
        """Return whether an edge between two nodes could only be tail → head.

        Parameters
        ----------
        tail, head : str
            The nodes.

        Returns
        -------
        bool
            True if only the reverse direction is forbidden.
        """
        return self.forbids(head, tail) and not self.forbids(tail, head)

    def leaves_open(self, pair: Pair, middle: str) -> bool:
        """Return whether a → middle ← b is possible but not yet known; never for the domain in the middle.

        Parameters
        ----------
        pair : frozenset of str
            The nodes a and b.
        middle : str
            The node in the middle.

        Returns
        -------
        bool
            True if data have to decide whether it is a collider.
        """
        a, b = sort_pair(pair)
        possible = not self.forbids(a, middle) and not self.forbids(b, middle)
        return possible and not (self.directs(a, middle) and self.directs(b, middle))

    # Consistency

    def check(self, names: Iterable[str]) -> None:
        """Refuse knowledge that contradicts itself or names unknown variables.

        The domain may be named even if it is not among the variables: with one client there is no domain, and
        knowledge about it has no effect.

        Parameters
        ----------
        names : iterable of str
            The variables.

        Raises
        ------
        KnowledgeError
            If there is such a problem; the message lists all of them.
        """
        problems = list(self._find_problems(frozenset(names) | {DOMAIN}))
        if problems:
            lines = [_to_printable_line(problem) for problem in problems[:MAX_PROBLEMS]]
            if len(problems) > MAX_PROBLEMS:
                lines.append(f"and {len(problems) - MAX_PROBLEMS} more")
            raise KnowledgeError(
                "this knowledge cannot be used; correct it:\n- " + "\n- ".join(lines)[:MAX_MESSAGE_LENGTH]
            )

    def _against_tiers(self, tail: str, head: str) -> bool:
        late, early = self._tier_of.get(tail), self._tier_of.get(head)
        if late is None or early is None:
            return False
        return late > early or (late == early and late in self.forbid_within_tier)

    @cached_property
    def _tier_of(self) -> Mapping[str, int]:
        return {name: position for position, tier in enumerate(self.tiers) for name in tier}

    def _find_problems(self, known: frozenset[str]) -> Iterator[str]:
        yield from self._find_wrong_names(known)
        yield from self._find_wrong_tiers()
        for tail, head in sorted(self.required):
            if head == DOMAIN:
                yield f"{tail} → {head} is required, but the domain has no causes"
            if (tail, head) in self.forbidden:
                yield f"{tail} → {head} is both required and forbidden"
            if self._against_tiers(tail, head):
                yield f"{tail} → {head} is required, but the tiers forbid it"
        yield from self._find_wrong_order()

    def _find_wrong_names(self, known: frozenset[str]) -> Iterator[str]:
        mentioned = {name for arrow in self.required | self.forbidden for name in arrow}
        unknown = mentioned.union(*self.tiers) - known
        if unknown:
            yield f"unknown variables: {_list_names(unknown)}; known are {_list_names(known - {DOMAIN})}"
        for name in sorted({tail for tail, head in self.required if tail == head}):
            yield f"{name} → {name} is required, but nothing causes itself"

    def _find_wrong_tiers(self) -> Iterator[str]:
        listed = Counter(name for tier in self.tiers for name in tier)
        for name in sorted(name for name, times in listed.items() if times > 1):
            yield f"{name} is listed {listed[name]} times in the tiers; list it once"
        if DOMAIN in listed:
            yield "the domain is listed in a tier; leave it out, it precedes every variable anyway"
        for position in sorted(self.forbid_within_tier):
            if not 0 <= position < len(self.tiers):
                yield f"forbid_within_tier names tier {position}, but tiers are numbered 0 to {len(self.tiers) - 1}"

    def _find_wrong_order(self) -> Iterator[str]:
        """Yield chains of required arrows that return to their start, or lead to an earlier tier."""
        children: dict[str, set[str]] = {}
        for tail, head in self.required:
            if tail != head:
                children.setdefault(tail, set()).add(head)
        circling, ends_of = _find_cycle_nodes(children), self._earliest_ends(children)
        for start in sorted(children):
            if start in circling:
                yield f"required arrows lead from {start} back to {start}; a cause cannot be its own effect"
            # A single arrow has been reported above; here only chains through variables in no tier.
            chained = [ends_of[child] for child in children[start] if child in ends_of]
            early, end = min(chained, default=(len(self.tiers), ""))
            if self._tier_of.get(start, -1) > early and end not in children[start]:
                yield f"required arrows lead from {start} to {end}, which is in an earlier tier"

    def _earliest_ends(self, children: Mapping[str, Iterable[str]]) -> dict[str, tuple[int, str]]:
        """Return, for variables in no tier, tier and name of the earliest variable that arrows lead to.

        Paths pass only variables in no tier. A chain back in time has two variables with tiers that go back and only
        variables without tiers between them, so these paths are enough. The search goes backwards from each end, the
        earliest first, and the first visit of a variable finds its end.
        """
        parents = _reverse_edges(children)
        found: dict[str, tuple[int, str]] = {}
        for end in sorted((self._tier_of[name], name) for name in parents if name in self._tier_of):
            waiting = [end[1]]
            while waiting:
                for parent in parents.get(waiting.pop(), ()):
                    if parent not in self._tier_of and parent not in found:
                        found[parent] = end
                        waiting.append(parent)
        return found


def _find_cycle_nodes(children: Mapping[str, Iterable[str]]) -> frozenset[str]:
    """Return the nodes on directed cycles; no node is its own child.

    Two walks over all arrows, after Kosaraju. In the reverse postorder of the first walk, a walk against the arrows
    from a node meets exactly the nodes, not met before, that lie on a cycle with it.
    """
    parents = _reverse_edges(children)
    met: set[str] = set()
    circling: set[str] = set()
    for start in reversed(_postorder(children)):
        if start not in met:
            together = {start}
            waiting = [start]
            while waiting:
                new = {parent for parent in parents.get(waiting.pop(), ()) if parent not in met} - together
                together |= new
                waiting.extend(new)
            met |= together
            circling |= together if len(together) > 1 else set()
    return frozenset(circling)


def _postorder(children: Mapping[str, Iterable[str]]) -> list[str]:
    """Return all nodes in postorder of a depth-first walk, without recursion."""
    left: list[str] = []
    visited: set[str] = set()
    for start in children:
        path = [(start, iter(children[start]))] if start not in visited else []
        visited.add(start)
        while path:
            node, ahead = path[-1]
            child = next((child for child in ahead if child not in visited), None)
            if child is None:
                left.append(node)
                path.pop()
            else:
                visited.add(child)
                path.append((child, iter(children.get(child, ()))))
    return left


def _reverse_edges(children: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    parents: dict[str, list[str]] = {}
    for tail, heads in children.items():
        for head in heads:
            parents.setdefault(head, []).append(tail)
    return parents


def _list_names(names: Iterable[str]) -> str:
    listed = sorted(names)
    more = f" and {len(listed) - MAX_PROBLEMS} more" if len(listed) > MAX_PROBLEMS else ""
    return ", ".join(name[:80] for name in listed[:MAX_PROBLEMS]) + more


def _to_printable_line(problem: str) -> str:
    """Return the text on one line, with characters that cannot be printed escaped."""
    printable = (letter if letter.isprintable() else ascii(letter)[1:-1] for letter in problem[:MAX_MESSAGE_LENGTH])
    return "".join(printable)


def _to_arrow(given: Iterable[str]) -> Arrow:
    found = (given,) if isinstance(given, str) else tuple(given)
    if len(found) != 2:
        raise KnowledgeError(f"found the arrow {repr(given)[:80]}; expected a tail and a head. Write (tail, head)")
    return found[0], found[1]


def _to_tier(given: Iterable[str]) -> tuple[str, ...]:
    if isinstance(given, str):  # it would fall apart into letters
        raise KnowledgeError(f"found the tier {given[:80]!r}; expected a list of variables. Write [{given[:80]!r}]")
    return tuple(given)


NO_KNOWLEDGE = Knowledge()
"""No knowledge beyond that the domain has no causes."""
