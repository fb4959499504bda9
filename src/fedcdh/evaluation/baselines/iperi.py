"""I-PERI: Baldo and Assaad (2026), PERI for clients with unknown structural interventions.

At some clients an intervention may have removed arrows. Two phases:

1. PERI, but a client *masks* before it answers: it drops parents that its own graph does not allow (neither an arrow
   into the node nor a line). An edge that is cut off at a client costs no regret there.
2. For every line of the class, both directions are tried. A client drops parents that it is not adjacent to, and
   answers what the new parent x of y costs in comparison with its own possible parents, at a very large penalty:
   nothing, unless its own graph says y → x. The direction whose worst answer is better is taken, the clearest first,
   with Meek's rules after each; lines without a difference stay. An intervention that exposes a collider at one client
   thus gives its direction to the common graph.

Local graphs are learned by GES with BIC (the public program has PC at 0.1 as its default). The public program compares
whole families in the second phase. Here the cost is that of the new parent alone, so that a client without an arrow of
its own has no say, however many lines it has. The penalty, 10⁴ log n per parent, is that of the public program.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from fedcdh._runtime.array_types import Array
from fedcdh.evaluation.baselines.family_messages import Bytes, decode_families, encode_families
from fedcdh.evaluation.baselines.gaussian_bic import GaussianBic, GaussianMoments
from fedcdh.evaluation.baselines.interface import BaselineResult, CountingChannel
from fedcdh.evaluation.baselines.peri import WorstCaseServer, possible_parents
from fedcdh.graphs.meek_rules import apply_meek_rules
from fedcdh.graphs.partial_graph import Arrow, PartialGraph, sort_pair
from fedcdh.protocols import Family
from fedcdh.search.greedy_equivalence_search import find_equivalence_class
from fedcdh.search.hill_climbing import MIN_GAIN

DIRECTION_PENALTY = 1e4
"""Deduction for a parent in the second phase, times log n."""
NEW_PARENT = 3
"""The mark of the parent in question, in a message of the second phase."""


def run_iperi(tables: Mapping[str, Array], names: Sequence[str], seed: int = 0) -> BaselineResult:
    """Run both phases; nothing is random.

    >>> x, y, e = np.random.default_rng(1).standard_normal((3, 200))
    >>> table = np.column_stack([x, y, x + y + e])
    >>> print(run_iperi({"north": table[:90], "south": table[90:]}, ("x", "y", "z")).graph)
    x → z
    y → z
    """
    channel = CountingChannel(len(tables))
    clients = [MaskingClient(table, names) for table in tables.values()]
    server = WorstCaseServer(clients, channel, names)
    graph = find_equivalence_class(names, server.worst).cpdag
    return BaselineResult(_direct_lines(graph, _ask_directions(graph, clients, channel, names)), channel.traffic)


class MaskingClient:
    """The rows of one client; it answers about the parents that its own graph allows."""

    def __init__(self, table: Array, names: Sequence[str]) -> None:
        self._names = tuple(names)
        moments = GaussianMoments.of(table)
        self._score = GaussianBic(moments, names)
        self._strict_score = GaussianBic(moments, names, penalty=DIRECTION_PENALTY * math.log(moments.rows))
        self._graph = find_equivalence_class(names, self._score).cpdag
        own = self._score([Family(name, possible_parents(self._graph, name)) for name in names])
        self._own = dict(zip(names, own, strict=True))

    def answer(self, question: Bytes, /) -> Array:
        """Return minus the regret of every family, without the parents that this client's graph does not allow."""
        families = decode_families(question, self._names)
        masked = [Family(one.node, one.parents & possible_parents(self._graph, one.node)) for one in families]
        own = np.array([self._own[family.node] for family in families])
        return np.asarray(np.array(self._score(masked)) - own)

    def answer_directions(self, question: Bytes, /) -> Array:
        """Return what the new parent of every family costs in comparison with this client's own graph."""
        asked, allowed = [], []
        for row, family in zip(question, decode_families(question, self._names), strict=True):
            node, around = family.node, self._graph.neighbours(family.node)
            new = {self._names[place] for place in np.flatnonzero(row == NEW_PARENT).tolist()}
            asked.append(Family(node, (family.parents | new) & around))
            allowed.append(Family(node, family.parents & around | new & possible_parents(self._graph, node)))
        return np.asarray(np.array(self._strict_score(asked)) - np.array(self._strict_score(allowed)))


def _ask_directions(
    graph: PartialGraph, clients: Sequence[MaskingClient], channel: CountingChannel, names: Sequence[str]
) -> dict[Arrow, float]:
    """Return the worst answer to each direction of each line."""
    lines = sorted(map(sort_pair, graph.lines))
    arrows = [arrow for line in lines for arrow in (line, line[::-1])]
    if not arrows:
        return {}
    question = encode_families([Family(head, graph.parents(head)) for _, head in arrows], names)
    for row, (tail, _) in zip(question, arrows, strict=True):
        row[list(names).index(tail)] = NEW_PARENT
    channel.to_clients(question)
    answers = np.array([channel.to_server(client.answer_directions(question)) for client in clients])
    return dict(zip(arrows, answers.min(axis=0).tolist(), strict=True))


def _direct_lines(graph: PartialGraph, worst: Mapping[Arrow, float]) -> PartialGraph:
    """Return the graph with lines directed where one direction is better, the clearest first."""
    advantages = {arrow: value - worst[arrow[::-1]] for arrow, value in worst.items()}
    better = [arrow for arrow, advantage in advantages.items() if advantage > MIN_GAIN]
    for tail, head in sorted(better, key=lambda arrow: (-advantages[arrow], arrow)):
        if graph.has_line(tail, head) and not graph.has_path(head, tail):
            graph = apply_meek_rules(graph.orient(tail, head))[0]
    return graph
