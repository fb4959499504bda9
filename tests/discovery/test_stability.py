"""Leaving clients out and drawing them again: what hangs on one client is found, and named."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import numpy as np
import pandas as pd
import pytest
import residual_studies
import studies

from fedcdh.discovery.api import discover, discover_from
from fedcdh.errors import SettingsError
from fedcdh.inference.evidence.recorded_answers import RecordedAnswers
from fedcdh.summaries.aggregation import Aggregate
from fedcdh.summaries.plan import StudyPlan


def poisoned(seed: int = 0, clients: int = 5, rows: int = 120) -> studies.Tables:
    """a → b everywhere; c has to do with a at the client "north" only, and strongly."""
    tables = {}
    for k, name in enumerate(["east", "mid", "north", "south", "west"][:clients]):
        rng = np.random.default_rng([seed, k, 5])
        a, b, c = rng.standard_normal((3, rows))
        tables[name] = {"a": a, "b": a + b, "c": 3 * a + 0.2 * c if name == "north" else c}
    return tables


def by_pair(edges) -> dict[frozenset[str], object]:
    return {frozenset((edge.source, edge.target)): edge for edge in edges}


@pytest.mark.parametrize("method", ["evidence", "constraint"])
def test_an_edge_that_one_client_alone_supports_names_that_client(method):
    for seed in range(2):
        result = discover(poisoned(seed), method=method)
        stability = result.stability()
        edges = by_pair(stability.edges)
        firm, loose = edges[frozenset("ab")], edges[frozenset("ac")]
        assert firm.adjacent == 1, seed
        assert firm.gone_without == (), seed
        assert loose.mark, seed
        assert loose.adjacent == 0.8, seed
        assert loose.gone_without == ("north",), seed
        assert any(text.endswith("gone") and "c" in text.split() for text in stability.changes_without["north"]), seed
        (without,) = (run for run in stability.runs if run.left_out == ("north",))
        assert without.mark("a", "c") == without.mark("c", "a") == "", seed


def test_shares_are_counts_of_runs_and_edges_of_the_result_come_first():
    result = discover(studies.mixed(1, (50, 45, 40, 30)))
    stability = result.stability()
    marks = [edge.mark for edge in stability.edges]
    assert marks == sorted(marks, key=lambda mark: not mark)
    assert {frozenset((e.source, e.target)) for e in stability.edges if e.mark} == result.graph.skeleton
    for edge in stability.edges:
        found = [run.mark(edge.source, edge.target) for run in stability.runs]
        assert edge.adjacent == sum(map(bool, found)) / 4
        assert (edge.forward, edge.backward) == (found.count("→") / 4, found.count("←") / 4)
        assert edge.same == found.count(edge.mark) / 4
        assert (edge.mark == "→") == ((edge.source, edge.target) in result.graph.arrows)
        assert len(edge.gone_without) == sum(bool(mark) != bool(edge.mark) for mark in found)
    assert {change.variable for change in stability.changing if change.changing} == result.changing
    for change in stability.changing:
        assert change.share == sum(change.variable in run.changing for run in stability.runs) / 4
    assert len(pd.DataFrame(stability.edges)) == len(stability.edges)
    with pytest.raises(FrozenInstanceError):
        stability.edges[0].adjacent = 1.0


def test_draws_depend_on_the_seed_and_on_nothing_else():
    tables = studies.numbers(1, (40, 35, 30, 45))
    result, turned = discover(tables), discover(dict(reversed(tables.items())))
    seen: list[tuple[int, int]] = []
    first = result.stability(4, seed=1, progress=lambda done, runs: seen.append((done, runs)))
    assert first == turned.stability(4, seed=1)
    assert first.runs[:2] == result.stability(2, seed=1).runs
    assert [run.clients for run in first.runs] != [run.clients for run in result.stability(4, seed=2).runs]
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert all(len(run.clients) == 4 for run in first.runs)
    assert (first.kind, first.seed, result.stability().seed) == ("bootstrap", 1, None)


def test_a_client_drawn_twice_counts_as_two_clients():
    cohort = studies.cohort_of(studies.numbers(0, (20, 30, 40)))
    drawn = cohort.resample_clients(["site2", "site0", "site2"])
    assert drawn.client_rows == (20, 40, 40)
    assert len(set(drawn.clients)) == 3
    assert drawn.total.rows == 100
    assert drawn.plan is cohort.plan
    with pytest.raises(Exception, match="cannot be printed"):  # the copy cannot be the name of another client
        StudyPlan(cohort.plan.variables, drawn.clients)


def test_only_clients_of_the_study_can_be_drawn():
    cohort = studies.cohort_of(studies.numbers(0))
    for clients in ([], ["site0", "site9"]):
        with pytest.raises(SettingsError, match="expected some of site0, site1, site2"):
            cohort.resample_clients(clients)


def test_what_cannot_be_repeated_is_refused():
    one = studies.cohort_of(studies.numbers(0, (50,)))
    with pytest.raises(SettingsError, match="only one client"):
        discover_from(one, one.plan).stability()
    cohort = studies.cohort_of(studies.numbers(0))
    with pytest.raises(SettingsError, match="only their sum is known"):
        discover_from(Aggregate.of(cohort), cohort.plan).stability()
    for runs in (0, -1, 2.5):
        with pytest.raises(SettingsError, match="runs is"):
            discover_from(cohort, cohort.plan).stability(runs)


def test_a_variable_that_only_one_client_varies_is_no_error():
    tables = studies.numbers(0, (40, 40, 40))
    for name, table in tables.items():
        table["v9"] = table["v1"] + 1 if name == "site1" else np.full(40, 2.0)
    assert len(discover(tables).stability().runs) == 3


@pytest.mark.slow
def test_changes_are_as_rare_in_draws_as_they_are_elsewhere():
    """Nothing differs between ten clients, seeds from 1000: a client drawn twice must not look like a change."""
    found = []
    for seed in range(1000, 1010):
        tables = {}
        for k in range(10):
            a, b = np.random.default_rng([seed, k, 6]).standard_normal((2, 80))
            tables[f"c{k}"] = {"a": a, "b": a + b}
        found += [len(run.changing) / 2 for run in discover(tables).stability(5, seed=seed).runs]
    assert np.mean(found) <= 0.05


# Results with residuals


def skewed(sizes: tuple[float, ...] = (1.0, 1.0, 1.0, 4.0), rows: int = 300) -> studies.Tables:
    """x → y with exponential noise; clients may differ in the size of x."""
    tables = {}
    for number, size in enumerate(sizes):
        x, noise = np.random.default_rng([7, number]).standard_exponential((2, rows))
        tables[f"site{number}"] = {"x": size * x, "y": size * x + noise}
    return tables


@pytest.mark.parametrize("method", ["evidence", "constraint"])
def test_nobody_is_asked_again_about_residuals(method):
    tables = skewed((1.0, 1.0, 1.0, 1.0))
    cohort = residual_studies.cohort_of(tables, residual_studies.plan_of(tables))
    source = residual_studies.source_of(tables, cohort)
    result = discover_from(cohort, cohort.plan, source=source, method=method)
    assert result.search_result.residuals.rounds == len(source.requests) > 0
    source.closed = True  # a further request is an error
    for stability in (result.stability(), result.stability(3)):
        assert len(stability.runs) == (4 if stability.kind == "leave-one-out" else 3)


@pytest.mark.parametrize("method", ["evidence", "constraint"])
def test_without_a_client_the_sums_are_those_of_the_others(method, monkeypatch):
    asked = []
    ask = RecordedAnswers.ask_residuals

    def noted(self, request):
        answers = ask(self, request)
        asked.append((self, answers))
        return answers

    monkeypatch.setattr(RecordedAnswers, "ask_residuals", noted)
    result = discover(skewed((1.0, 1.0, 1.0, 1.0)), method=method)
    record = result.search_result.residuals
    stability = result.stability()
    assert {source.clients for source, _ in asked} == {run.clients for run in stability.runs}
    for source, answers in asked:
        assert answers.keys() == {*source.clients}
        for client, found in answers.items():
            for one in found:
                (before,) = (
                    said[client] for query, said in record.answers.items() if query.question == one.query.question
                )
                assert one.sums.tolist() == before.sums.tolist()


def test_without_a_client_the_graph_is_that_of_the_others():
    """The last client has an x four times as large; the record has sums of residuals of all clients together.

    Without that client the record lacks families that the others would be asked about: the direction is left open.
    """
    tables = skewed()
    stability = discover(tables).stability()
    for run in stability.runs:
        rest = discover({client: table for client, table in tables.items() if client not in run.left_out})
        assert rest.graph.arrows == {("x", "y")}, run.left_out
        assert run.arrows == (set() if run.left_out == ("site3",) else {("x", "y")}), run.left_out
        (edge,) = (edge for edge in rest.edges() if {edge.source, edge.target} == {"x", "y"})
        # The record may lack the family without the edge, and then summaries alone tell the weight.
        assert min(run.weights[frozenset("xy")], edge.log_bayes_presence) > 200, run.left_out
