"""The interface of all methods: tables per client in, a graph and a count of what was sent out.

A federated method here is written as its clients and its server. Whatever passes between them goes through a
`CountingChannel`. A method that pools the rows sends them through it as well, so that bytes compare.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from fedcdh._runtime.array_types import Array
from fedcdh.errors import NoConsistentExtensionError
from fedcdh.graphs.equivalence import extend_to_dag
from fedcdh.graphs.partial_graph import Arrow, PartialGraph
from fedcdh.protocols import DOMAIN


@dataclass(frozen=True)
class Traffic:
    """Counts of what was sent, to the server by all clients together and from the server to all of them together.

    Parameters
    ----------
    messages_up : int, default 0
        Messages from clients to the server.
    bytes_up : int, default 0
        Bytes of these messages.
    messages_down : int, default 0
        Messages from the server to clients.
    bytes_down : int, default 0
        Bytes of these messages.

    Examples
    --------
    >>> from fedcdh.evaluation.baselines import Traffic
    >>> Traffic(messages_up=3, bytes_up=96).bytes_up
    96
    """

    messages_up: int = 0
    bytes_up: int = 0
    messages_down: int = 0
    bytes_down: int = 0


class CountingChannel:
    """A channel that hands over arrays between clients and server unchanged, and counts them.

    >>> channel = CountingChannel(clients=3)
    >>> weights = channel.to_server(np.zeros((2, 2)))
    >>> shared = channel.to_clients(weights)
    >>> channel.traffic
    Traffic(messages_up=1, bytes_up=32, messages_down=3, bytes_down=96)
    """

    def __init__(self, clients: int) -> None:
        self._clients = clients
        self._counts = [0, 0, 0, 0]

    def to_server(self, message: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Send the message of one client."""
        self._count(0, 1, message)
        return message

    def to_clients(self, message: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Send the same message to every client."""
        self._count(2, self._clients, message)
        return message

    def _count(self, at: int, copies: int, message: npt.NDArray[Any]) -> None:
        self._counts[at] += copies
        self._counts[at + 1] += copies * message.nbytes

    @property
    def traffic(self) -> Traffic:
        """Return what was sent so far."""
        return Traffic(*self._counts)


@dataclass(frozen=True)
class BaselineResult:
    """The graph that a method found, and what it sent to find it.

    Parameters
    ----------
    augmented : PartialGraph
        The graph, with the domain as a node if the method knows of it.
    traffic : Traffic, optional
        Messages and bytes between clients and server.
    dag : PartialGraph, optional
        The DAG that the method itself would choose where the graph leaves directions open.

    Examples
    --------
    >>> from fedcdh import PartialGraph
    >>> from fedcdh.evaluation.baselines import BaselineResult
    >>> sorted(BaselineResult(PartialGraph.from_dag(("x", "y"), {("x", "y")})).directed)
    [('x', 'y')]
    """

    augmented: PartialGraph
    traffic: Traffic = Traffic()
    dag: PartialGraph | None = None

    @property
    def graph(self) -> PartialGraph:
        """Return the graph of the variables, without the domain."""
        return _drop_domain(self.augmented)

    @property
    def changing(self) -> frozenset[str] | None:
        """Return the variables whose mechanism changes, or None if the method knows no domain."""
        return self.augmented.children(DOMAIN) if DOMAIN in self.augmented.nodes else None

    @property
    def directed(self) -> frozenset[Arrow]:
        """Return the arrows of a DAG that extends the graph, or the arrows of the graph if they form a cycle."""
        if self.dag is not None:
            return _drop_domain(self.dag).arrows
        try:
            return _drop_domain(extend_to_dag(self.augmented)).arrows
        except NoConsistentExtensionError:
            return self.graph.arrows


class BaselineMethod(Protocol):
    """A method: it takes the tables of all clients (rows × variables) and the names of variables, and finds a graph."""

    def __call__(self, tables: Mapping[str, Array], names: Sequence[str], seed: int = 0) -> BaselineResult: ...


def _drop_domain(graph: PartialGraph) -> PartialGraph:
    return graph.drop(DOMAIN) if DOMAIN in graph.nodes else graph


def dag_of_weights(weights: Array, names: Sequence[str], threshold: float) -> PartialGraph:
    """Return the arrows i → j with |weights[i, j]| above the threshold; the weakest arrow of each cycle is left out.

    >>> weights = np.array([[0, 0.9, 0], [0.2, 0, 0.5], [0, 0, 0]])
    >>> print(dag_of_weights(weights, ("a", "b", "c"), 0.1))
    a → b
    b → c
    """
    strengths = np.abs(weights)
    kept = [(strengths[i, j], i, j) for i, j in np.argwhere(strengths > threshold).tolist() if i != j]
    below: dict[int, set[int]] = {i: {i} for i in range(len(names))}  # what can be reached from i
    arrows = set()
    for _, i, j in sorted(kept, key=lambda found: (-found[0], found[1:])):
        if i in below[j]:
            continue  # would close a cycle of stronger ones
        arrows.add((names[i], names[j]))
        for reached in below.values():
            if i in reached:
                reached |= below[j]
    return PartialGraph.from_dag(tuple(names), arrows)
