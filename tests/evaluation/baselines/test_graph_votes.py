"""Na & Yang and Gou: votes, the union of edges, and tests on summed moments."""

from __future__ import annotations

import numpy as np
import pytest
from baseline_studies import NAMES, TRUE, collider

from fedcdh.evaluation.baselines.fedpc import FisherZTest
from fedcdh.evaluation.baselines.gaussian_bic import GaussianMoments, pool_within_clients
from fedcdh.evaluation.baselines.graph_votes import (
    PartialCorrelationTest,
    _count_votes,
    _keep_dependent,
    run_gou,
    run_na_yang,
)
from fedcdh.evaluation.baselines.interface import Traffic
from fedcdh.protocols import Query

XYZ = ("x", "y", "z")


def graph(*edges: str) -> np.ndarray:
    """ "x>y" is an arrow, "x-y" a line."""
    matrix = np.zeros((3, 3))
    for edge in edges:
        a, b = XYZ.index(edge[0]), XYZ.index(edge[2])
        matrix[a, b] = 1
        matrix[b, a] = edge[1] == "-"
    return matrix


def test_both_find_a_collider_with_one_message():
    voted, tested = run_na_yang(collider(), NAMES), run_gou(collider(), NAMES)
    assert voted.graph.arrows == tested.graph.arrows == TRUE
    assert voted.traffic == Traffic(messages_up=3, bytes_up=3 * 16)
    assert tested.traffic == Traffic(messages_up=6, bytes_up=3 * (16 + 8 * (1 + 4 + 10)))


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        ([graph("x-y"), graph()], "x\ny\nz"),  # half are not more than half
        ([graph("x-y"), graph("x-y"), graph()], "x — y\nz"),
        ([graph("x>y"), graph("x-y"), graph("x-y")], "x → y\nz"),
        ([graph("x>y"), graph("y>x"), graph("x-y")], "x — y\nz"),
        ([graph("x>y"), graph("y>x"), graph("y>x")], "y → x\nz"),
    ],
)
def test_more_than_half_keep_an_edge_and_the_majority_directs_it(sent, shown):
    assert str(_count_votes(np.array(sent), XYZ)) == shown


def test_the_weakest_majority_of_a_circle_becomes_a_line():
    sent = [graph("x>y", "y>z", "z>x"), graph("x>y", "y>z", "z-x"), graph("x>y", "y>z", "z>x")]
    found = _count_votes(np.array(sent), XYZ)
    assert found.arrows == {("x", "y"), ("y", "z")}
    assert found.lines == {frozenset("xz")}


def test_only_doubtful_edges_are_tested():
    """x and y are independent given z: the edge goes if one client lacks it, and stays if all have it."""
    z, e, f = np.random.default_rng(2).standard_normal((3, 600))
    moments = [GaussianMoments.of(part) for part in np.split(np.column_stack([z + e, z + f, z]), 2)]
    test = PartialCorrelationTest(pool_within_clients(moments), XYZ, 2)
    all_three = frozenset(map(frozenset, ("xy", "yz", "xz")))
    assert _keep_dependent([all_three, all_three], XYZ, test, 0.05).skeleton == all_three
    doubted = _keep_dependent([all_three, all_three - {frozenset("xy")}], XYZ, test, 0.05)
    assert doubted.skeleton == all_three - {frozenset("xy")}


def test_the_test_is_fishers_z_within_clients():
    """With one client it is FedPC's; more clients cost one row each, and their means do not matter."""
    table = collider(1, 60)["c0"]
    asked = [(0, 1, (2,)), (0, 3, ()), (1, 3, (0, 2))]
    queries = [Query(NAMES[a], NAMES[b], frozenset(NAMES[s] for s in given)) for a, b, given in asked]
    one = PartialCorrelationTest(GaussianMoments.of(table), NAMES, 1)(queries)
    for answer, (_, p_value) in zip(one, FisherZTest(table)(asked), strict=True):
        assert answer.p_value == pytest.approx(p_value, abs=1e-9)
    parts = np.split(table, 2)
    plain, shifted = (
        PartialCorrelationTest(pool_within_clients(map(GaussianMoments.of, tables)), NAMES, 2)(queries)
        for tables in (parts, [parts[0], parts[1] + 5])
    )
    assert [answer.p_value for answer in plain] == pytest.approx([answer.p_value for answer in shifted])
    few = PartialCorrelationTest(GaussianMoments.of(table[:4]), NAMES, 1)(queries)
    assert few[0].p_value == 1.0
