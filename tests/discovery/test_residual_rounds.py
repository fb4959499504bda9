"""Directions from residuals, end to end: which lines they direct, and what nobody is asked about."""

from __future__ import annotations

import numpy as np
import pytest
import studies
from residual_studies import (
    SummedSource,
    cohort_of,
    interacting_causes,
    linear_pair,
    plan_of,
    score_of,
    source_of,
    split_rows,
    unlogged_pair,
    varying_size_pair,
)

from fedcdh.discovery import residual_rounds
from fedcdh.discovery.api import discover, discover_from
from fedcdh.discovery.residual_rounds import MAX_STEPS, find_residual_graph, residual_supports
from fedcdh.discovery.settings import Settings
from fedcdh.errors import SettingsError
from fedcdh.graphs.knowledge import Knowledge
from fedcdh.graphs.partial_graph import PartialGraph

FORWARD, BACKWARD = ("x", "y"), ("y", "x")
PAIRS = {
    "exponential": linear_pair("exponential", 0),
    "two bumps": linear_pair("two bumps", 0),
    "varying size": varying_size_pair(0),
    "unlogged": unlogged_pair(0),
}


def found(tables: studies.Tables, **given: object):
    """Discover with a source that counts; nobody may be asked after the discovery."""
    cohort = cohort_of(tables, plan_of(tables))
    source = source_of(tables, cohort)
    result = discover_from(cohort, cohort.plan, source=source, **given)
    source.closed = True
    return result, source


@pytest.mark.parametrize("method", ["evidence", "constraint"])
@pytest.mark.parametrize("name", PAIRS)
def test_residuals_direct_the_line_of_a_pair(name, method):
    tables = split_rows(PAIRS[name], 4)
    result, source = found(tables, method=method)
    if (name, method) == ("unlogged", "evidence"):  # its mechanism is not additive: likelier, but not certain
        assert 0.7 < result.posterior.arrows[FORWARD] < 0.8
    else:
        assert result.graph.arrows == {FORWARD}
        assert result.search_result.orientation.reasons[FORWARD] in {"noise", "evidence"}
    assert result.search_result.residuals.rounds == len(source.requests)
    assert str(result.search_result.residuals) in result.search_result.notes
    without = discover(tables, method=method, rounds="one")
    assert without.search_result.residuals is None
    assert FORWARD not in without.graph.arrows


@pytest.mark.parametrize("method", ["evidence", "constraint"])
def test_noise_directs_no_line_of_normal_pairs(method):
    lines = 0
    for seed in range(4):
        result, _ = found(split_rows(linear_pair("normal", seed), 3), method=method)
        assert {*result.search_result.orientation.reasons.values()}.isdisjoint({"noise", "evidence"}), seed
        lines += len(result.graph.lines)
    assert lines >= 2


@pytest.mark.parametrize("method", ["evidence", "constraint"])
def test_lines_at_variables_of_few_values_stay_open(method):
    table = linear_pair("exponential", 0)
    rounded = {"x": table["x"], "y": np.round(table["y"])}
    result, _ = found(split_rows(rounded, 2), method=method)
    assert result.graph.lines == {frozenset("xy")}


@pytest.mark.parametrize("method", ["evidence", "constraint"])
def test_knowledge_is_stronger_than_noise(method):
    tables = split_rows(PAIRS["exponential"], 2)
    for given in ({"required": [BACKWARD]}, {"forbidden": [FORWARD]}):
        result, _ = found(tables, method=method, knowledge=Knowledge(**given))
        assert result.graph.arrows == {BACKWARD}


def test_the_climb_is_limited_and_supports_are_finite():
    score = score_of(split_rows(PAIRS["exponential"], 2))
    starts = [PartialGraph.from_dag("xy", [BACKWARD]), PartialGraph("xy")]
    graph = find_residual_graph(starts, score, Settings("evidence"))
    assert graph.best.arrows == {FORWARD}
    assert graph.pairs == {frozenset("xy")}
    rounds = len(score.source.requests)
    assert rounds <= 1 + MAX_STEPS
    supports = residual_supports(graph, score)
    assert len(score.source.requests) == rounds  # nothing new is asked
    assert supports[frozenset("xy")].presence > 100
    assert supports[frozenset("xy")].direction > 10


def test_pairs_that_neither_start_joins_are_not_asked_about():
    score = score_of(split_rows(PAIRS["exponential"], 2))
    graph = find_residual_graph([PartialGraph("xy")], score, Settings("evidence"))
    assert graph.best == PartialGraph("xy")
    assert not any(query.parents for request in score.source.requests for query in request.queries)


def test_a_direction_about_which_nobody_was_asked_is_not_claimed(monkeypatch):
    monkeypatch.setattr(residual_rounds, "FEW_ROUNDS", 0)  # the first and only request is about the start
    score = score_of(split_rows(PAIRS["exponential"], 2), max_rounds=1)
    graph = find_residual_graph([PartialGraph.from_dag("xy", [FORWARD])], score, Settings("evidence"))
    assert graph.best.arrows == {FORWARD}
    assert all(support.direction is None for support in residual_supports(graph, score).values())


@pytest.mark.parametrize("name", PAIRS)
def test_two_rounds_direct_what_many_rounds_direct(name):
    tables = split_rows(PAIRS[name], 4)
    result = discover(tables, max_rounds=2)
    assert result.search_result.residuals.rounds <= 2
    assert result.posterior.arrows == pytest.approx(discover(tables).posterior.arrows, abs=0.05)
    assert result.graph.arrows == (set() if name == "unlogged" else {FORWARD})


def test_the_last_round_does_not_ask_for_sizes_of_which_nothing_could_be_made():
    score = score_of(split_rows(PAIRS["varying size"], 2), max_rounds=1)
    find_residual_graph([PartialGraph.from_dag("xy", [FORWARD])], score, Settings("evidence"))
    (request,) = score.source.requests
    assert "size" not in {query.about for query in request.queries}


@pytest.mark.parametrize("most", [0, -1, 2.5, "two"])
def test_a_number_of_rounds_is_one_or_more(most):
    with pytest.raises(SettingsError, match="max_rounds is"):
        discover(split_rows(PAIRS["exponential"], 2), max_rounds=most)


@pytest.mark.parametrize("method", ["evidence", "constraint"])
def test_a_product_of_two_causes_reverses_no_arrow(method):
    """a → b, both cause y, which also depends on their product."""
    for seed in range(3):
        result, source = found(interacting_causes((600, 500, 400), seed), method=method)
        assert {("a", "y"), ("b", "y")} >= {arrow for arrow in result.graph.arrows if "y" in arrow}, seed
        if method == "evidence":
            assert {("a", "y"), ("b", "y")} <= result.graph.arrows, seed
            assert any(query.product == ("a", "b") for request in source.requests for query in request.queries)


def test_the_sum_of_all_answers_gives_the_graph_of_the_answers():
    tables = interacting_causes((600, 500, 400))
    cohort = cohort_of(tables, plan_of(tables))
    apart = discover_from(cohort, cohort.plan, source=source_of(tables, cohort))
    together = discover_from(cohort, cohort.plan, source=SummedSource(tables, cohort.plan))
    assert together.graph == apart.graph
    assert together.search_result.residuals.entries == apart.search_result.residuals.entries
