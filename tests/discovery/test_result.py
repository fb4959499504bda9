"""A result accounts for every pair, agrees with itself and reads well."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
import studies
from time_series import unrelated

from fedcdh.discovery.api import discover
from fedcdh.discovery.methods import METHODS
from fedcdh.errors import KnowledgeError, SettingsError
from fedcdh.graphs.knowledge import Knowledge
from fedcdh.protocols import DOMAIN

NAMES = sorted(METHODS)


TABLES = studies.mixed(0, sizes=(80, 60, 40))


EXPECTED = {method: studies.found(TABLES, method=method) for method in NAMES}


@pytest.mark.parametrize("result", EXPECTED.values(), ids=EXPECTED.keys())
def test_every_pair_is_accounted_for(result):
    edges = result.edges()
    nodes = (DOMAIN, *TABLES["clinic a"])
    assert {frozenset((edge.source, edge.target)) for edge in edges} == {frozenset(p) for p in combinations(nodes, 2)}
    assert len(edges) == 21
    marks = [bool(edge.mark) for edge in edges]
    assert marks == sorted(marks, reverse=True)  # adjacent pairs first
    for edge in edges:
        arrow, pair = (edge.source, edge.target), frozenset((edge.source, edge.target))
        assert (edge.mark == "→") == (arrow in result.augmented.arrows)
        assert (edge.mark == "—") == (pair in result.augmented.lines)
        assert (edge.mark == "") == (not result.augmented.is_adjacent(*arrow))
        assert arrow[::-1] not in result.augmented.arrows
        if result.settings.method == "evidence":
            assert edge.p_value is edge.separating_set is None
            assert edge.log_bayes_presence > -1e-9  # for the edge where there is one, against it where there is none
        else:
            assert (edge.separating_set is None) == bool(edge.mark)
            assert (edge.p_value > 0.05) == (not edge.mark)
            assert edge.log_bayes_presence is edge.log_bayes_direction is None
        assert (edge.oriented_by is not None) == (edge.mark == "→")
        if edge.separating_set is not None:
            assert pair.isdisjoint(edge.separating_set)
        if DOMAIN in pair and edge.mark:
            assert (edge.source, edge.oriented_by) == (DOMAIN, "domain")


@pytest.mark.parametrize("result", EXPECTED.values(), ids=EXPECTED.keys())
def test_graph_dag_and_changing_agree(result):
    assert (
        result.changing
        == result.augmented.children(DOMAIN)
        == {e.target for e in result.edges() if e.source == DOMAIN and e.mark}
    )
    assert DOMAIN not in result.graph.nodes
    assert result.graph.arrows <= result.augmented.arrows
    dag = result.to_dag()
    assert dag.is_dag()
    assert dag.skeleton == result.graph.skeleton
    assert result.graph.arrows <= dag.arrows


def test_the_change_of_both_directions_is_told_where_it_was_asked():
    told = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        tables = {}
        for k in range(12):
            z = rng.standard_normal() * 2 + rng.standard_normal(100)
            tables[f"c{k:02d}"] = {"z": z, "a": rng.uniform(-2, 2) * z + rng.standard_normal(100)}
        result = studies.found(tables, method="constraint")
        (edge,) = [edge for edge in result.edges() if edge.source != DOMAIN]
        if edge.oriented_by == "independent-change":
            told += 1
            assert edge.change_forward < edge.change_backward
            assert {edge.source, edge.target} == {"a", "z"}
    assert told >= 4


def test_a_result_reads_well():
    result = EXPECTED["constraint"]
    text = str(result)
    assert text.startswith("6 variables, 3 clients, 180 rows (method constraint, alpha 0.05)\n")
    for tail, head in result.graph.arrows:
        assert f"{tail} → {head}" in text
    for line in result.graph.lines:
        assert " — ".join(sorted(line)) in text
    assert f"mechanisms that differ between clients: {', '.join(sorted(result.changing))}" in text
    assert DOMAIN not in text


def test_edges_make_a_data_frame():
    frame = pd.DataFrame(EXPECTED["constraint"].edges())
    assert list(frame.columns[:5]) == ["source", "target", "mark", "p_value", "separating_set"]
    assert len(frame) == 21
    assert frame.p_value.between(0, 1).all()


def test_a_column_that_is_no_domain_is_noticed():
    rng = np.random.default_rng(0)
    result = discover({"x": rng.normal(size=40), "y": rng.normal(size=40), "when": np.arange(40)}, domain="when")
    assert any("is the domain the right column?" in note for note in result.notes)


def test_no_dag_is_made_of_forbidden_arrows():
    rng = np.random.default_rng(0)
    a = rng.normal(size=600)
    b = a + rng.normal(size=600)
    columns = {"a": a, "b": b, "c": a + b + rng.normal(size=600), "site": np.repeat(["n", "s"], 300)}
    known = Knowledge(forbidden=[("b", "a"), ("c", "b"), ("a", "c")])
    result = discover(columns, domain="site", knowledge=known, method="constraint")
    assert len(result.graph.lines) == 3
    with pytest.raises(KnowledgeError, match="run in a circle"):
        result.to_dag()


def test_the_note_on_dependent_rows_is_about_methods_that_use_it():
    tables = unrelated(8, clients=2)
    assert any("rows depend on each other" in note for note in discover(tables, method="constraint").notes)
    assert not any("rows depend on each other" in note for note in discover(tables, method="paper").notes)


# Probabilities


def test_probabilities_of_edges_agree_with_each_other_and_with_what_is_drawn():
    result = EXPECTED["evidence"]
    limits = result.settings
    for edge in result.edges():
        assert 0 <= edge.probability_forward <= edge.probability <= 1
        backward = edge.probability - edge.probability_forward
        assert edge.probability_undirected == pytest.approx(2 * min(edge.probability_forward, backward))
        assert (edge.probability >= limits.min_probability) == bool(edge.mark)
        if edge.mark == "→" and edge.source != DOMAIN:
            assert edge.probability_forward >= limits.min_arrow_probability
        if not edge.mark:
            assert edge.probability_forward >= backward  # the likelier direction
        if edge.mark and edge.source != DOMAIN:
            assert limits.min_effect <= edge.strength <= 1


def test_the_probability_of_change_names_every_variable_and_no_other():
    result = EXPECTED["evidence"]
    assert result.probability_of_change.keys() == {*TABLES["clinic a"]}
    assert {name for name, value in result.probability_of_change.items() if value >= 0.5} == result.changing
    assert studies.found({"alone": TABLES["clinic a"]}).probability_of_change == {}


def test_sampled_dags_have_arrows_as_often_as_they_are_likely():
    result, count = EXPECTED["evidence"], 200
    dags = result.sample_dags(count, seed=1)
    assert len(dags) == count
    assert all(dag.is_dag() and dag.nodes == result.graph.nodes for dag in dags)
    for arrow, probability in result.posterior.arrows.items():
        if DOMAIN not in arrow:
            error = np.sqrt(max(probability * (1 - probability), 1 / count) / count)
            share = sum(arrow in dag.arrows for dag in dags) / count
            assert share == pytest.approx(probability, abs=6 * error), arrow
    assert result.sample_dags(3, seed=2) == result.sample_dags(3, seed=2)
    with pytest.raises(SettingsError, match="number of DAGs"):
        result.sample_dags(-1)


@pytest.mark.parametrize("method", ["constraint", "paper"])
def test_searches_by_tests_have_no_probabilities(method):
    result = EXPECTED[method]
    assert result.posterior is None
    assert result.probability_of_change == {}
    for edge in result.edges():
        assert edge.probability is edge.probability_forward is edge.probability_undirected is edge.strength is None
    with pytest.raises(SettingsError, match="has no probabilities") as refusal:
        result.sample_dags(2)
    assert refusal.value.parameter == "method"


def test_the_order_of_clients_changes_no_probability():
    turned = discover(dict(reversed(TABLES.items())))
    assert turned.posterior.arrows == EXPECTED["evidence"].posterior.arrows
    assert turned.search_result.strengths == EXPECTED["evidence"].search_result.strengths
    pooled = discover(studies.pooled_table(TABLES), domain="site")
    assert pooled.posterior.arrows == turned.posterior.arrows
