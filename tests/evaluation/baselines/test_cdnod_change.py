"""CD-NOD's direction step: its matrices against explicit features, the direction it prefers, and its graphs."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from baseline_studies import NAMES, collider

from fedcdh.evaluation.baselines import BASELINES, cdnod_change
from fedcdh.evaluation.baselines.cdnod_change import KernelChange, direct_by_change, gaussian_kernel
from fedcdh.evaluation.baselines.interface import BaselineResult, Traffic
from fedcdh.evaluation.simulation import simulate
from fedcdh.graphs.partial_graph import PartialGraph
from fedcdh.protocols import DOMAIN, ModuleDependence


def test_inner_products_are_those_of_explicit_embeddings(monkeypatch):
    """Features whose products are the kernel exactly: its square root."""
    kept = []
    original = cdnod_change._kernel_of_clients
    monkeypatch.setattr(cdnod_change, "_kernel_of_clients", lambda inner: kept.append(inner) or original(inner))
    draw = np.random.default_rng(1)
    tables = [draw.standard_normal((rows, 2)) * (k + 1) for k, rows in enumerate((12, 9, 15))]
    KernelChange(tables, ("x", "y"))._dependence("x", "y")
    alone, given = kept
    pooled = np.concatenate(tables)
    features = []
    for place in (0, 1):
        values, vectors = np.linalg.eigh(gaussian_kernel(pooled[:, [place]]))
        features.append(vectors * np.sqrt(np.maximum(values, 0)))
    ends = np.cumsum([0, 12, 9, 15])
    means, joints = [], []
    for start, end in pairwise(ends):
        x, y = features[0][start:end], features[1][start:end]
        means.append(x.mean(axis=0))
        inner = x @ x.T + 1e-3 * len(x) * np.eye(len(x))
        predicted = y.T @ np.linalg.solve(inner, x @ features[0].T)  # μ_{y|x_i,c} for all rows i
        joints.append((predicted @ features[0] / len(pooled)).ravel())
    np.testing.assert_allclose(alone, np.array(means) @ np.array(means).T, atol=1e-8)
    np.testing.assert_allclose(given, np.array(joints) @ np.array(joints).T, atol=1e-8)


@pytest.mark.slow
def test_independent_changes_tell_the_direction_more_often_than_chance():
    right = 0
    for seed in range(40):
        study = simulate(variables=2, edges=1, changing=2, clients=20, rows=50, seed=seed).standardised()
        (measured,) = KernelChange(list(study.tables.values()), study.names)(list(study.arrows))
        assert 0 <= measured.forward <= 1
        right += measured.forward < measured.backward
    assert right >= 27  # a coin reaches this once in 50 times


def test_rows_and_clients_may_come_in_any_order():
    study = simulate(variables=2, edges=1, changing=2, clients=4, rows=30, seed=3)
    tables = list(study.tables.values())
    (found,) = KernelChange(tables, study.names)([study.names])
    (turned,) = KernelChange([table[::-1] for table in tables[::-1]], study.names)([study.names])
    (swapped,) = KernelChange(tables, study.names)([study.names[::-1]])
    assert (turned.forward, turned.backward) == pytest.approx((found.forward, found.backward))
    assert (swapped.backward, swapped.forward) == (found.forward, found.backward)


def test_lines_are_directed_clearest_first_and_never_into_a_cycle():
    graph = PartialGraph(("a", "b", "c"), lines=frozenset({frozenset("ab"), frozenset("bc"), frozenset("ac")}))
    measured = [
        ModuleDependence("a", "b", 0.1, 0.9),
        ModuleDependence("b", "c", 0.2, 0.9),
        ModuleDependence("a", "c", 0.8, 0.7),  # c → a would close a cycle
    ]
    assert direct_by_change(graph, measured).arrows == {("a", "b"), ("b", "c"), ("a", "c")}
    assert direct_by_change(graph, measured[:1]).arrows == {("a", "b")}


def test_only_lines_between_changing_variables_are_directed(monkeypatch):
    lines = frozenset({frozenset("ab"), frozenset("zw")})
    found = PartialGraph((*NAMES, DOMAIN), frozenset({(DOMAIN, "z"), (DOMAIN, "w")}), lines)
    monkeypatch.setattr(
        cdnod_change, "run_cdnod", lambda *_, **__: BaselineResult(found, Traffic(messages_up=2, bytes_up=8))
    )
    result = BASELINES["cdnod-change"](collider(3, 40), NAMES)
    assert result.graph.lines == {frozenset("ab")}
    assert len(result.graph.arrows) == 1
    assert result.traffic.bytes_up == 8


def test_it_runs_on_the_skeleton_of_causal_learn():
    pytest.importorskip("causallearn")
    found = cdnod_change.run_cdnod_change(collider(2, 100), NAMES, test="fisherz")
    assert {("a", "z"), ("b", "z")} <= found.directed
