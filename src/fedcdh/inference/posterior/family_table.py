"""The parent sets that a posterior over DAGs compares, with their log weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fedcdh._runtime.array_types import Array
from fedcdh.graphs.partial_graph import node_sort_key
from fedcdh.protocols import DOMAIN, Family

Words = np.ndarray[tuple[int, int], np.dtype[np.uint64]]
"""Sets of nodes, one per row, as bits of words of 64 nodes each."""

MIN_LOG_WEIGHT = -1e30
"""Log weight of what cannot be: it is finite, so that differences are."""


@dataclass(frozen=True, eq=False)
class FamilyTable:
    """Parent sets of every variable, each with a log weight. A DAG has the weight of the product of its families.

    Attributes
    ----------
    parent_sets : mapping from str to sequence of frozenset of str
        The possible parent sets of every variable. The domain may be a parent; it has no parents itself.
    weights : mapping from str to array
        One log weight for each of them.

    Examples
    --------
    >>> table = FamilyTable.of([Family("x"), Family("y"), Family("y", frozenset("x"))], [0.0, 0.0, 2.0])
    >>> table.variables, table.weights["y"].tolist()
    (('x', 'y'), [0.0, 2.0])
    """

    parent_sets: Mapping[str, Sequence[frozenset[str]]]
    weights: Mapping[str, Array]

    @classmethod
    def of(cls, families: Sequence[Family], weights: Sequence[float] | Array) -> FamilyTable:
        """Make a table from families and their log weights, sorted so that their order does not matter.

        Parameters
        ----------
        families : sequence of Family
            Each variable needs at least one.
        weights : sequence of float
            Their log weights; -inf for families that cannot be.

        Returns
        -------
        FamilyTable
            The table.
        """
        found: dict[str, list[tuple[list[str], frozenset[str], float]]] = {}
        for family, weight in zip(families, weights, strict=True):
            known = sorted(family.parents, key=node_sort_key)
            found.setdefault(family.node, []).append((known, family.parents, float(weight)))
        ordered = {node: sorted(found[node], key=lambda one: (len(one[0]), one[0])) for node in sorted(found)}
        return cls(
            {node: tuple(parents for _, parents, _ in rows) for node, rows in ordered.items()},
            {node: np.maximum([weight for *_, weight in rows], MIN_LOG_WEIGHT) for node, rows in ordered.items()},
        )

    @cached_property
    def variables(self) -> tuple[str, ...]:
        """Return the variables, sorted."""
        return tuple(self.parent_sets)

    @cached_property
    def places(self) -> dict[str, int]:
        """Return the number of each node: that of a variable, and the last for the domain."""
        return {name: place for place, name in enumerate((*self.variables, DOMAIN))}

    @cached_property
    def words(self) -> dict[str, Words]:
        """Return the parent sets of every variable as bits."""
        width = len(self.places) // 64 + 1
        found = {}
        for name, sets in self.parent_sets.items():
            bits = np.zeros((len(sets), width), dtype=np.uint64)
            for row, parents in enumerate(sets):
                for parent in parents:
                    word, bit = divmod(self.places[parent], 64)
                    bits[row, word] |= np.uint64(1 << bit)
            found[name] = bits
        return found
