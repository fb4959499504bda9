"""PERI: Mian, Kaltenpoth, Kamp, Vreeken (2023), "Nothing but Regrets: Privacy-Preserving Federated Causal Discovery".

Each client learns its own class by GES with BIC, and keeps it. The *regret* of a family at a client is how much lower
its BIC is than that of the same node's family in the client's own graph. The server searches for the class whose
largest regret is smallest: GES with the local score

    score(j, P) = min over k of [ L_k(j, P) − L_k(j) ],

which asks clients about families in batches. A client answers one number per family and sends nothing else: neither its
graph nor its score. Both sides remember answers.

- `run_peri`: node by node, as above, as in public programs. With `reference="none"` it is RFCD (Mian et al. 2022,
  "Regret-based federated causal discovery"): the worst score in place of the worst regret.
- `run_peri_whole`: the regret of the whole graph, summed over nodes before the worst client is taken, which is the
  criterion itself. It does not decompose, so that every operator is judged by one total per client. It is a check,
  for at most ten variables.

L_k(j) is the score of j given all neighbours in the client's own class that may be its parents: arrows into j and
lines, as in public programs. The parents in one DAG of the class would be closer to the text, but which DAG depends on
the names of variables, and so would the result. The sum over all nodes does not depend on it: the regret of whole
graphs refers to the score of one DAG.

Regrets are not clipped: a client's own graph is the end of a greedy search and may be beaten, so that a regret can be
negative. One pass of insertions and deletions is made; public programs repeat it. Noise for privacy is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, Protocol

import numpy as np

from fedcdh._runtime.array_types import Array
from fedcdh.errors import BaselineError
from fedcdh.evaluation.baselines.family_messages import Bytes, decode_families, encode_families
from fedcdh.evaluation.baselines.gaussian_bic import GaussianBic
from fedcdh.evaluation.baselines.interface import BaselineResult, CountingChannel
from fedcdh.graphs.equivalence import extend_to_dag
from fedcdh.graphs.knowledge import NO_KNOWLEDGE
from fedcdh.graphs.partial_graph import PartialGraph
from fedcdh.protocols import Family
from fedcdh.search.class_operators import FamilyChange
from fedcdh.search.greedy_equivalence_search import find_equivalence_class, search_classes
from fedcdh.search.parent_sets import FamilyRequest, ParentSpace, iterate_members

MAX_WHOLE_VARIABLES = 10
"""The largest number of variables for the search by regrets of whole graphs."""
Reference = Literal["neighbours", "dag", "none"]
"""The reference of a regret: the client's possible parents in its own class, one DAG of the class, or nothing."""


def run_peri(
    tables: Mapping[str, Array], names: Sequence[str], seed: int = 0, *, reference: Reference = "neighbours"
) -> BaselineResult:
    """Run GES on the worst regret of families, or with `reference="none"` on the worst score; nothing is random.

    >>> x, y, e = np.random.default_rng(1).standard_normal((3, 200))
    >>> table = np.column_stack([x, y, x + y + e])
    >>> print(run_peri({"north": table[:90], "south": table[90:]}, ("x", "y", "z")).graph)
    x → z
    y → z
    """
    channel = CountingChannel(len(tables))
    server = WorstCaseServer([RegretClient(table, names, reference) for table in tables.values()], channel, names)
    return BaselineResult(find_equivalence_class(names, server.worst).cpdag, channel.traffic)


def run_peri_whole(tables: Mapping[str, Array], names: Sequence[str], seed: int = 0) -> BaselineResult:
    """Run GES on the worst regret of whole graphs; nothing is random."""
    if len(names) > MAX_WHOLE_VARIABLES:
        raise BaselineError(
            f"found {len(names)} variables; expected at most {MAX_WHOLE_VARIABLES} for regrets of whole graphs; use "
            "'peri', whose regrets are of single families"
        )
    channel = CountingChannel(len(tables))
    server = WorstCaseServer([RegretClient(table, names, "dag") for table in tables.values()], channel, names)
    space = ParentSpace.of(names, NO_KNOWLEDGE, None, None)
    found, _ = search_classes(space, WholeGraphJudge(space, server))
    return BaselineResult(found, channel.traffic)


class FamilyAnswers(Protocol):
    """A client that answers questions about families."""

    def answer(self, question: Bytes, /) -> Array:
        """Return one number per family of a message."""


class RegretClient:
    """The rows of one client; it sends how much each family falls short of its own."""

    def __init__(self, table: Array, names: Sequence[str], reference: Reference) -> None:
        self._names = tuple(names)
        self._score = GaussianBic.of_table(table, names)
        self._own = dict.fromkeys(names, 0.0)
        if reference != "none":
            graph = find_equivalence_class(names, self._score).cpdag
            graph = extend_to_dag(graph) if reference == "dag" else graph
            own = self._score([Family(name, possible_parents(graph, name)) for name in names])
            self._own = dict(zip(names, own, strict=True))

    def answer(self, question: Bytes, /) -> Array:
        """Return minus the regret of every family."""
        families = decode_families(question, self._names)
        own = np.array([self._own[family.node] for family in families])
        return np.asarray(np.array(self._score(families)) - own)


def possible_parents(graph: PartialGraph, node: str) -> frozenset[str]:
    """Return the neighbours of a node that some DAG of the class has as its parents."""
    return graph.neighbours(node) - graph.children(node)


class WorstCaseServer:
    """The server's side: it asks all clients about families, and takes the smallest answer to each."""

    def __init__(self, clients: Sequence[FamilyAnswers], channel: CountingChannel, names: Sequence[str]) -> None:
        self._clients, self._channel, self._names = clients, channel, tuple(names)

    def ask(self, families: Sequence[Family]) -> Array:
        """Return the answers of all clients, clients × families."""
        question = self._channel.to_clients(encode_families(families, self._names))
        return np.array([self._channel.to_server(client.answer(question)) for client in self._clients])

    def worst(self, families: Sequence[Family], /) -> list[float]:
        """Return the smallest answer to each family: a `LocalScore`."""
        smallest: list[float] = self.ask(families).min(axis=0).tolist()
        return smallest


class WholeGraphJudge:
    """A judge of operators by the worst client's total over all nodes."""

    def __init__(self, space: ParentSpace, server: WorstCaseServer) -> None:
        self._space, self._server = space, server
        self._known: dict[FamilyRequest, Array] = {}
        empty = [(node, 0) for node in space.variables]
        self.prepare(empty)
        self._totals = np.sum([self._known[family] for family in empty], axis=0)

    def prepare(self, requests: Iterable[FamilyRequest], /) -> None:
        """Ask all clients about families that are not known yet."""
        new = sorted({request for request in requests if request not in self._known})
        if new:
            answers = self._server.ask([self._family(*request) for request in new])
            self._known.update(zip(new, answers.T, strict=True))

    def gain(self, changes: Sequence[FamilyChange], /) -> float:
        """Return by how much the smallest total of a client rises."""
        return float((self._totals + self._differences(changes)).min() - self._totals.min())

    def accept(self, changes: Sequence[FamilyChange], /) -> None:
        """Add the differences to the totals."""
        self._totals = self._totals + self._differences(changes)

    def _differences(self, changes: Sequence[FamilyChange]) -> Array:
        known = self._known
        return np.asarray(sum(known[one.node, one.after] - known[one.node, one.before] for one in changes))

    def _family(self, node: int, parents: int) -> Family:
        names = self._space.nodes
        return Family(names[node], frozenset(names[parent.bit_length() - 1] for parent in iterate_members(parents)))
