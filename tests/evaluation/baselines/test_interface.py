"""Results of baselines: arrows in a cycle, extensions, the channel that counts."""

from __future__ import annotations

import numpy as np

from fedcdh.evaluation.baselines.interface import BaselineResult, CountingChannel, Traffic, dag_of_weights
from fedcdh.graphs.partial_graph import PartialGraph


def test_arrows_in_a_circle_stay_as_they_are():
    circle = frozenset({("a", "b"), ("b", "c"), ("c", "a")})
    assert BaselineResult(PartialGraph(("a", "b", "c"), circle)).directed == circle
    chain = BaselineResult(PartialGraph(("a", "b", "c"), frozenset({("a", "b")}), frozenset({frozenset("bc")})))
    assert chain.directed == {("a", "b"), ("b", "c")}


def test_the_channel_counts_what_it_hands_over():
    channel = CountingChannel(clients=4)
    message = np.arange(6.0)
    assert channel.to_server(message) is message
    assert channel.to_clients(message[:2])[1] == 1
    assert channel.traffic == Traffic(messages_up=1, bytes_up=48, messages_down=4, bytes_down=4 * 16)


def test_of_a_cycle_the_weakest_arrow_is_left_out():
    for seed in range(20):
        weights = np.random.default_rng(seed).standard_normal((5, 5))
        graph = dag_of_weights(weights, tuple("abcde"), threshold=0.3)
        assert PartialGraph(tuple("abcde"), graph.arrows).is_acyclic(), f"seed {seed}"
        strongest = np.abs(weights - np.diag(np.diag(weights)))
        tail, head = np.unravel_index(np.argmax(strongest), strongest.shape)
        assert ("abcde"[tail], "abcde"[head]) in graph.arrows, f"seed {seed}"
