"""References on pooled rows: marks and errors of causal-learn, and the oracle."""

from __future__ import annotations

import random
import sys

import numpy as np
import pytest
from baseline_studies import NAMES, TRUE, collider

from fedcdh.errors import BaselineError, MissingDependencyError
from fedcdh.evaluation.baselines import BASELINES, oracle_result
from fedcdh.evaluation.baselines.interface import BaselineResult, Traffic
from fedcdh.evaluation.baselines.pooled_references import (
    graph_from_endpoint_marks,
    import_causal_learn,
    run_cdnod,
    run_pc,
)
from fedcdh.evaluation.simulation import simulate
from fedcdh.protocols import DOMAIN


def test_the_marks_of_causal_learn():
    marks = np.zeros((5, 5))
    marks[0, 1], marks[1, 0] = -1, 1  # a → b
    marks[1, 2], marks[2, 1] = -1, -1  # b — z
    marks[2, 3], marks[3, 2] = 1, 1  # z ↔ w
    marks[4, 3], marks[3, 4] = -1, 1  # ℧ → w
    marks[4, 0], marks[0, 4] = 1, -1  # a → ℧ cannot be
    found = BaselineResult(graph_from_endpoint_marks(marks, ("a", "b", "z", "w", DOMAIN)))
    assert found.graph.arrows == {("a", "b")}
    assert found.graph.lines == {frozenset("bz"), frozenset("zw")}
    assert found.changing == {"a", "w"}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("test", ["fisherz", "rcit"])
def test_cdnod_finds_a_collider_and_what_changes(test):
    pytest.importorskip("causallearn")
    tables = collider(2)
    found = BASELINES[f"cdnod-{test}"](tables, NAMES)
    assert found.graph.skeleton >= {frozenset(arrow) for arrow in TRUE}
    assert {("a", "z"), ("b", "z")} <= found.directed
    assert found.changing is not None
    assert found.changing >= {"w"}
    assert found.traffic == Traffic(messages_up=2, bytes_up=2 * 400 * 4 * 8)


def test_pc_knows_nothing_of_clients():
    pytest.importorskip("causallearn")
    found = BASELINES["pc-fisherz"](collider(2), NAMES)
    assert found.changing is None
    assert {("a", "z"), ("b", "z")} <= found.graph.arrows
    assert found.traffic.bytes_up == 2 * 400 * 4 * 8


@pytest.mark.parametrize("name", ["boss", "grasp"])
def test_searches_over_orders_find_a_collider(name):
    pytest.importorskip("causallearn")
    tables = {client: table - table.mean(axis=0) for client, table in collider(2).items()}
    found = BASELINES[name](tables, NAMES, 3)
    assert found.graph.arrows == TRUE
    assert found.changing is None
    assert found.traffic == Traffic(messages_up=2, bytes_up=2 * 400 * 4 * 8)
    random.seed(5)
    expected = random.random()
    random.seed(5)
    assert BASELINES[name](tables, NAMES, 3) == found
    assert random.random() == expected


def test_what_causal_learn_raises_is_one_error():
    pytest.importorskip("causallearn")
    twice = {client: table[:, [0, 0, 2, 3]] for client, table in collider(2).items()}
    for search in (run_cdnod, run_pc):
        with pytest.raises(BaselineError, match=r"failed on these rows: .*singular.*; look for constant"):
            search(twice, NAMES)


def test_causal_learn_leaves_the_common_generator_as_it_was():
    pytest.importorskip("causallearn")
    np.random.seed(5)  # noqa: NPY002
    expected = np.random.random()  # noqa: NPY002
    np.random.seed(5)  # noqa: NPY002
    run_pc(collider(2, 50), NAMES, 1)
    assert np.random.random() == expected  # noqa: NPY002


def test_what_to_install_where_causal_learn_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "causallearn.search.ConstraintBased.PC", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'fedcdh\[experiments\]'"):
        run_pc(collider(2, 50), NAMES)
    monkeypatch.setitem(sys.modules, "causallearn.utils.cit", None)
    with pytest.raises(MissingDependencyError, match="causal-learn"):
        import_causal_learn("utils.cit", "CIT")


def test_the_oracle_says_what_tests_can_tell():
    study = simulate(seed=2)
    best = oracle_result(study.names, study.augmented)
    assert best.changing == study.changing
    assert best.graph.skeleton == {frozenset(arrow) for arrow in study.arrows}
    assert best.graph.arrows <= study.arrows
    chain = oracle_result(("x", "y", "z"), {("x", "y"), ("y", "z")})
    assert len(chain.graph.lines) == 2
