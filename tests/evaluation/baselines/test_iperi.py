"""I-PERI: masks, directions from interventions, and lines that nobody can direct."""

from __future__ import annotations

import numpy as np
from baseline_studies import NAMES, TRUE, collider

from fedcdh.evaluation.baselines.family_messages import encode_families
from fedcdh.evaluation.baselines.iperi import NEW_PARENT, MaskingClient, _direct_lines, run_iperi
from fedcdh.evaluation.baselines.peri import run_peri
from fedcdh.graphs.partial_graph import PartialGraph
from fedcdh.protocols import Family

TRIANGLE = ("a", "b", "c")


def cut_tables(rows: int = 3000) -> dict[str, np.ndarray]:
    """a → b → c and a → c; at one client b has lost its cause, so that a → c ← b is a collider there."""
    tables = {}
    for k in range(3):
        a, e, f = np.random.default_rng([3, k]).standard_normal((3, rows))
        b = e if k == 0 else 1.5 * a + e
        tables[f"c{k}"] = np.column_stack([a, b, 0.5 * a + b + f])
    return tables


def test_a_collider_is_found():
    assert run_iperi(collider(), NAMES).graph.arrows == TRUE


def test_an_intervention_at_one_client_directs_lines_that_peri_leaves():
    """All three are joined, so that no class has an arrow; where the intervention is, a and b point into c."""
    found = run_iperi(cut_tables(), TRIANGLE).graph
    assert len(found.skeleton) == 3
    assert {("a", "c"), ("b", "c")} <= found.arrows
    assert found.lines == {frozenset("ab")}
    assert not run_peri(cut_tables(), TRIANGLE).graph.arrows


def test_a_cut_edge_costs_no_regret_where_it_is_cut():
    client = MaskingClient(cut_tables()["c0"], TRIANGLE)
    without, within = client.answer(encode_families([Family("b"), Family("b", frozenset("a"))], TRIANGLE))
    assert without == within == 0


def test_a_new_parent_costs_only_against_an_arrow_of_ones_own():
    cut, whole = (MaskingClient(cut_tables()[name], TRIANGLE) for name in ("c0", "c1"))
    question = encode_families([Family("c"), Family("a"), Family("b")], TRIANGLE)
    question[0, 0] = NEW_PARENT  # a → c, as the client with the intervention has it
    question[1, 2] = NEW_PARENT  # c → a, against its arrow
    question[2, 0] = NEW_PARENT  # a → b, which are not joined there
    agrees, contradicts, apart = cut.answer_directions(question)
    assert agrees == apart == 0
    assert contradicts < -1e4
    assert (whole.answer_directions(question) == 0).all()  # all lines: no say


def test_the_clearest_direction_comes_first_and_closes_no_cycle():
    graph = PartialGraph(TRIANGLE, lines=frozenset(map(frozenset, ("ab", "bc", "ac"))))
    worst = {("a", "b"): 0.0, ("b", "a"): -9.0, ("b", "c"): 0.0, ("c", "b"): -8.0, ("c", "a"): 0.0, ("a", "c"): -1.0}
    assert _direct_lines(graph, worst).arrows == {("a", "b"), ("b", "c"), ("a", "c")}
    assert _direct_lines(graph, dict.fromkeys(worst, -3.0)) == graph
