"""The authors' program: its search against oracles, its direction step, and what it depends on by definition."""

from __future__ import annotations

import numpy as np
import pytest
from baseline_studies import NAMES, collider

from fedcdh.errors import SettingsError
from fedcdh.evaluation.baselines import BASELINES
from fedcdh.evaluation.baselines import fedcdh_program as program
from fedcdh.evaluation.baselines.fedcdh_program import draw_nystroem_features, run_fedcdh_program, score_change
from fedcdh.evaluation.simulation import simulate
from fedcdh.graphs.d_separation import make_d_separation_test
from fedcdh.graphs.equivalence import to_cpdag
from fedcdh.graphs.partial_graph import PartialGraph
from fedcdh.protocols import DOMAIN, Query


def test_it_finds_a_collider_and_what_changes():
    found = BASELINES["fedcdh-program"](collider(3), NAMES)
    assert {("a", "z"), ("b", "z"), ("z", "w")} <= found.graph.arrows
    assert found.changing >= {"w"}
    assert found.traffic.bytes_up == 3 * 400 * 4 * 8


def test_a_perfect_test_gives_the_class_of_the_augmented_graph(monkeypatch):
    """With one changing variable at most, for then the domain's neighbours suffice to separate it from others."""
    for seed in range(25):
        study = simulate(variables=6, clients=2, rows=3, changing=seed % 2, edges=7, seed=seed)
        nodes = (*study.names, DOMAIN)
        oracle = make_d_separation_test(PartialGraph.from_dag(nodes, study.augmented))

        def answer(_, queries, nodes=nodes, oracle=oracle):
            asked = [Query(nodes[x], nodes[y], frozenset(nodes[z] for z in given)) for x, y, given in queries]
            return [one.p_value for one in oracle(asked)]

        monkeypatch.setattr(program.RandomFeatureTest, "__call__", answer)
        found = run_fedcdh_program(study.tables, study.names).augmented
        assert found.lines | {frozenset(arrow) for arrow in found.arrows} >= {frozenset(a) for a in study.augmented}
        if not study.changing:
            assert found.drop(DOMAIN) == to_cpdag(PartialGraph.from_dag(study.names, study.arrows)), seed


def test_the_class_of_a_homogeneous_chain_is_found():
    tables = {}
    for k in range(2):
        first, *others = np.random.default_rng([6, k]).standard_normal((4, 2000))
        columns = [first]
        for strength, noise in zip((1.0, -0.8, 1.2), others, strict=True):
            columns.append(strength * columns[-1] + noise)
        tables[f"c{k}"] = np.column_stack(columns)
    found = run_fedcdh_program(tables, NAMES)
    assert found.graph == to_cpdag(PartialGraph.from_dag(NAMES, [("a", "b"), ("b", "z"), ("z", "w")]))
    assert not found.changing


def test_no_question_is_given_the_index(monkeypatch):
    asked = []
    answer = program.RandomFeatureTest.__call__

    def record(self, queries):
        asked.extend(queries)
        return answer(self, queries)

    monkeypatch.setattr(program.RandomFeatureTest, "__call__", record)
    run_fedcdh_program(collider(3, 60), NAMES)
    assert any(x == len(NAMES) for x, _, _ in asked)
    assert all(len(NAMES) not in (y, *given) for _, y, given in asked)


def test_the_direction_step_adds_edges_between_changing_variables_only():
    """It never changes an edge that is there: the arrows of the program contain those without its step."""
    added = 0
    for seed in (2, 3, 8, 9):
        study = simulate(variables=4, clients=10, rows=80, changing=3, edges=2, seed=seed)
        without = run_fedcdh_program(study.tables, study.names, direction_step="none")
        found = run_fedcdh_program(study.tables, study.names)
        assert found.changing == without.changing
        assert found.graph.lines == without.graph.lines
        extra = found.graph.arrows - without.graph.arrows
        assert found.graph.arrows >= without.graph.arrows
        assert all(set(arrow) <= without.changing for arrow in extra)
        changing = len(without.changing)
        present = sum(set(edge) <= without.changing for edge in without.graph.skeleton)
        assert len(extra) == changing * (changing - 1) // 2 - present
        added += len(extra)
    assert added


def test_the_step_as_intended_directs_lines_and_adds_none():
    for seed in range(4):
        study = simulate(variables=4, clients=4, rows=60, changing=3, edges=4, seed=seed)
        without = run_fedcdh_program(study.tables, study.names, direction_step="none")
        found = run_fedcdh_program(study.tables, study.names, direction_step="direct")
        assert found.graph.skeleton == without.graph.skeleton
        assert found.graph.arrows >= without.graph.arrows
        assert all(not line <= without.changing for line in found.graph.lines)


def test_the_score_of_change_is_that_of_the_embeddings_row_by_row():
    draw = np.random.default_rng(1)
    index = np.repeat(np.arange(4.0), 15)
    x = draw.standard_normal(60) + index
    y = 0.5 * x + draw.standard_normal(60) * (1 + index)

    def centre(values):
        return values - values.mean(axis=0)

    def embed(columns):
        features, domain = draw_nystroem_features(columns, 5), draw_nystroem_features(index[:, None], 5)
        cross = centre(features).T @ centre(domain) / 60
        return cross @ np.linalg.inv(centre(domain).T @ centre(domain) / 60 + 1e-10 * np.eye(5)) @ domain.T

    joint = centre(embed(np.column_stack([x, y])))
    scores = []
    for column in (x, y):
        alone = centre(embed(column[:, None]))
        scores.append(((alone.T @ joint / 5) ** 2).sum() / np.trace(alone.T @ alone / 5))
    assert score_change(x, y, index) == (scores[0] < scores[1])
    assert score_change(y, x, index) == (scores[1] < scores[0])


def test_nystroem_features_repeat_the_kernel_between_their_basis_rows():
    rows = np.random.default_rng(2).standard_normal((40, 2))
    features = draw_nystroem_features(rows, 40)
    kernel = np.exp(-0.2 * ((rows[:, None] - rows[None]) ** 2).sum(axis=2))
    np.testing.assert_allclose(features @ features.T, kernel, atol=1e-5)


def test_unknown_direction_steps_are_refused():
    with pytest.raises(SettingsError, match="found the direction step 'guess'; expected one of add, none, direct"):
        run_fedcdh_program(collider(2, 20), NAMES, direction_step="guess")
