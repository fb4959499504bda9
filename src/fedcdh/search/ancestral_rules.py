"""Zhang's ten rules: the marks of a partial ancestral graph that follow from its colliders.

R1 to R4 find arrowheads, R5 to R7 tails that selection of rows brings, R8 to R10 the tails of causes. Together they are
complete.

References
----------
Zhang, "On the completeness of orientation rules for causal discovery in the presence of latent confounders and
selection bias", Artificial Intelligence, 2008.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import combinations
from typing import TypeAlias

from fedcdh.graphs.ancestral_graph import AncestralGraph, Mark

IsCollider: TypeAlias = Callable[[str, str, str, str], bool]
"""Decides for a discriminating path d, ..., a, b, c whether b is a collider on it: given d, a, b and c."""


def apply_ancestral_rules(graph: AncestralGraph, is_collider: IsCollider, *, selection: bool = False) -> AncestralGraph:
    """Return the graph with all marks that follow from those it has.

    Parameters
    ----------
    graph : AncestralGraph
        A graph whose unshielded colliders have their arrowheads.
    is_collider : callable
        Decides about the end b of a discriminating path d, ..., a, b, c.
    selection : bool, default False
        Whether rows may have been selected by their values; R5 to R7 are used only then.

    Returns
    -------
    AncestralGraph
        The closed graph.

    Examples
    --------
    >>> marks = {("x", "z"): "arrow", ("z", "x"): "circle", ("y", "z"): "arrow", ("z", "y"): "circle"}
    >>> graph = AncestralGraph(("x", "y", "z", "w"), {**marks, ("z", "w"): "circle", ("w", "z"): "circle"})
    >>> print(apply_ancestral_rules(graph, lambda *path: False))
    z → w
    x ○→ z
    y ○→ z
    """
    rules = _Marks(graph)
    arrowheads = (rules.rule_1, rules.rule_2, rules.rule_3, lambda: rules.rule_4(is_collider))
    _repeat(arrowheads)
    if selection:
        rules.rule_5()
        _repeat((rules.rule_6, rules.rule_7, *arrowheads))
    _repeat((*arrowheads, rules.rule_8, rules.rule_9, rules.rule_10))
    return AncestralGraph(graph.nodes, rules.marks)


def _repeat(rules: Iterable[Callable[[], bool]]) -> None:
    """Apply rules until none of them changes a mark."""
    listed = list(rules)
    while any(rule() for rule in listed):
        pass


class _Marks:
    """The marks of a graph while rules are applied; circles become tails or arrowheads, and nothing else changes."""

    def __init__(self, graph: AncestralGraph) -> None:
        self.marks: dict[tuple[str, str], Mark] = dict(graph.end_marks)
        self.nodes = sorted(graph.nodes)
        self.near = {node: sorted(graph.neighbours(node)) for node in graph.nodes}

    def _joined(self, a: str, b: str) -> bool:
        return (a, b) in self.marks

    def _is(self, a: str, b: str, at_a: Mark | None, at_b: Mark | None) -> bool:
        """Return whether the edge between a and b has these marks; None stands for any."""
        return (at_a is None or self.marks[b, a] == at_a) and (at_b is None or self.marks[a, b] == at_b)

    def _put(self, a: str, b: str, mark: Mark) -> bool:
        """Put a mark at b, if a circle is there."""
        if self.marks[a, b] != "circle":
            return False
        self.marks[a, b] = mark
        return True

    def _circles(self) -> list[tuple[str, str]]:
        """Return the edges a *–○ b, in a fixed order."""
        return sorted(ends for ends, mark in self.marks.items() if mark == "circle")

    def rule_1(self) -> bool:
        """Apply R1: a *→ b ○–* c and a not adjacent to c: b → c."""
        changed = False
        for c, b in self._circles():
            if self.marks[c, b] == "circle" and any(
                a != c and self._is(a, b, None, "arrow") and not self._joined(a, c) for a in self.near[b]
            ):
                self._put(c, b, "tail")
                self._put(b, c, "arrow")
                changed = True
        return changed

    def rule_2(self) -> bool:
        """Apply R2: a → b *→ c or a *→ b → c, and a *–○ c: a *→ c."""
        changed = False
        for a, c in self._circles():
            changed |= any(
                self._joined(b, c)
                and self._is(a, b, None, "arrow")
                and self._is(b, c, None, "arrow")
                and (self._is(a, b, "tail", None) or self._is(b, c, "tail", None))
                for b in self.near[a]
            ) and self._put(a, c, "arrow")
        return changed

    def rule_3(self) -> bool:
        """Apply R3: a *→ b ←* c, a *–○ d ○–* c, a not adjacent to c, d *–○ b: d *→ b."""
        changed = False
        for d, b in self._circles():
            candidates = [
                a
                for a in self.near[d]
                if a != b and self._joined(a, b) and self._is(a, d, None, "circle") and self._is(a, b, None, "arrow")
            ]
            changed |= any(not self._joined(a, c) for a, c in combinations(candidates, 2)) and self._put(d, b, "arrow")
        return changed

    def rule_4(self, is_collider: IsCollider) -> bool:
        """Apply R4: for a discriminating path d, ..., a, b, c with b ○–* c: b → c, or a ↔ b ↔ c if b is a collider."""
        changed = False
        for c, b in self._circles():
            if self.marks[c, b] != "circle":
                continue
            for d, a in self._discriminating_ends(b, c):
                if is_collider(d, a, b, c):
                    self._put(a, b, "arrow")
                    self._put(c, b, "arrow")
                else:
                    self._put(c, b, "tail")
                self._put(b, c, "arrow")
                changed = True
                break
        return changed

    def _discriminating_ends(self, b: str, c: str) -> Iterator[tuple[str, str]]:
        """Yield (d, a) of discriminating paths d, ..., a, b, c: all between d and b are colliders and parents of c."""
        for a in self.near[b]:
            if (
                a == c
                or not self._joined(a, c)
                or not self._is(b, a, None, "arrow")
                or not self._is(a, c, "tail", "arrow")
            ):
                continue
            seen, waiting = {a, b, c}, [a]
            while waiting:
                node = waiting.pop(0)
                for further in self.near[node]:
                    if further in seen or not self._is(further, node, None, "arrow"):
                        continue
                    if not self._joined(further, c):
                        yield further, a
                    elif self._is(node, further, None, "arrow") and self._is(further, c, "tail", "arrow"):
                        seen.add(further)
                        waiting.append(further)

    def rule_5(self) -> bool:
        """Apply R5: an uncovered path of ○–○ from a by c and d to b, a far from d, b far from c: tails along it."""
        changed = False
        for a, b in self._circles():
            if not self._is(a, b, "circle", "circle"):
                continue
            path = self._circle_path(a, b)
            if path:
                for one, two in zip([*path, a], [*path[1:], a, b], strict=False):
                    self._put(one, two, "tail")
                    self._put(two, one, "tail")
                self._put(a, b, "tail")
                self._put(b, a, "tail")
                changed = True
        return changed

    def _circle_path(self, a: str, b: str) -> list[str]:
        """Return an uncovered path of ○–○ from a to b, its second node far from b and its last but one from a."""
        waiting = [
            [a, c] for c in self.near[a] if c != b and self._is(a, c, "circle", "circle") and not self._joined(c, b)
        ]
        while waiting:
            path = waiting.pop(0)
            for node in self.near[path[-1]]:
                if node in path or not self._is(path[-1], node, "circle", "circle") or self._joined(path[-2], node):
                    continue
                if node == b:
                    if not self._joined(path[-1], a):
                        return [*path, b]
                    continue
                waiting.append([*path, node])
        return []

    def rule_6(self) -> bool:
        """Apply R6: a – b ○–* c: b –* c."""
        changed = False
        for c, b in self._circles():
            changed |= any(self._is(a, b, "tail", "tail") for a in self.near[b]) and self._put(c, b, "tail")
        return changed

    def rule_7(self) -> bool:
        """Apply R7: a –○ b ○–* c and a not adjacent to c: b –* c."""
        changed = False
        for c, b in self._circles():
            changed |= any(
                a != c and self._is(a, b, "tail", "circle") and not self._joined(a, c) for a in self.near[b]
            ) and self._put(c, b, "tail")
        return changed

    def rule_8(self) -> bool:
        """Apply R8: a → b → c or a –○ b → c, and a ○→ c: a → c."""
        changed = False
        for c, a in self._partly_directed():
            changed |= any(
                self._joined(b, c)
                and self._is(b, c, "tail", "arrow")
                and self._is(a, b, "tail", None)
                and self.marks[a, b] != "tail"
                for b in self.near[a]
            ) and self._put(c, a, "tail")
        return changed

    def rule_9(self) -> bool:
        """Apply R9: a ○→ c, and an uncovered possibly directed path a, b, ..., c with b not adjacent to c: a → c."""
        changed = False
        for c, a in self._partly_directed():
            starts = [b for b in self.near[a] if b != c and self._may_lead(a, b) and not self._joined(b, c)]
            changed |= any(self._has_uncovered_path(a, b, c) for b in starts) and self._put(c, a, "tail")
        return changed

    def rule_10(self) -> bool:
        """Apply R10: a ○→ c, b → c ← d, uncovered possibly directed paths from a to b and d, far apart: a → c."""
        changed = False
        for c, a in self._partly_directed():
            parents = [b for b in self.near[c] if b != a and self._is(b, c, "tail", "arrow")]
            if len(parents) < 2:
                continue
            starts = [m for m in self.near[a] if m != c and self._may_lead(a, m)]
            reach = {m: {b for b in parents if self._has_uncovered_path(a, m, b)} for m in starts}
            changed |= any(
                not self._joined(m, n) and any(b != d for b in reach[m] for d in reach[n])
                for m, n in combinations(starts, 2)
            ) and self._put(c, a, "tail")
        return changed

    def _partly_directed(self) -> list[tuple[str, str]]:
        """Return (c, a) of the edges a ○→ c."""
        return [(c, a) for c, a in self._circles() if self.marks[a, c] == "arrow"]

    def _may_lead(self, a: str, b: str) -> bool:
        """Return whether the edge from a to b may be on a directed path: no arrowhead at a, no tail at b."""
        return self.marks[b, a] != "arrow" and self.marks[a, b] != "tail"

    def _has_uncovered_path(self, a: str, b: str, c: str) -> bool:
        """Return whether an uncovered possibly directed path a, b, ..., c exists."""
        if b == c:
            return True
        waiting: list[tuple[str, ...]] = [(a, b)]
        while waiting:
            path = waiting.pop()
            for further in self.near[path[-1]]:
                if further in path or self._joined(path[-2], further) or not self._may_lead(path[-1], further):
                    continue
                if further == c:
                    return True
                waiting.append((*path, further))
        return False


__all__ = ["IsCollider", "apply_ancestral_rules"]
