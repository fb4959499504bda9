"""Families and graphs as messages: nothing is lost on the way."""

from __future__ import annotations

import random

import numpy as np
from oracle import random_dag

from fedcdh.evaluation.baselines.family_messages import decode_families, decode_graph, encode_families, encode_graph
from fedcdh.graphs.equivalence import to_cpdag
from fedcdh.protocols import Family


def test_families_and_graphs_come_back():
    for seed in range(20):
        dag = random_dag(random.Random(seed), 6, 3)
        names = tuple(random.Random(seed).sample(dag.nodes, 6))
        families = [Family(node, dag.parents(node)) for node in dag.nodes]
        message = encode_families(families, names)
        assert message.nbytes == 36
        assert decode_families(message, names) == families
        for graph in (dag, to_cpdag(dag)):
            assert decode_graph(encode_graph(graph, names), names) == graph
            assert encode_graph(graph, names).dtype == np.uint8
