"""Leaving clients out and drawing them again: what hangs on one client is found, and named."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace

import numpy as np
import pandas as pd
import pytest
import studies

from fedcdh.discovery.api import discover, discover_from
from fedcdh.errors import SettingsError
from fedcdh.graphs.knowledge import Knowledge
from fedcdh.summaries.aggregation import Aggregate, Cohort
from fedcdh.summaries.features import Fourier
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
@pytest.mark.parametrize("seed", range(2))
def test_an_edge_that_one_client_alone_supports_names_that_client(method, seed):
    result = discover(poisoned(seed), method=method)
    stability = result.stability()
    edges = by_pair(stability.edges)
    firm, loose = edges[frozenset("ab")], edges[frozenset("ac")]
    assert firm.adjacent == 1
    assert firm.gone_without == ()
    assert loose.mark
    assert loose.adjacent == 0.8
    assert loose.gone_without == ("north",)
    assert any(text.endswith("gone") and "c" in text.split() for text in stability.changes_without["north"])
    (without,) = (run for run in stability.runs if run.left_out == ("north",))
    assert without.mark("a", "c") == without.mark("c", "a") == ""


@pytest.mark.parametrize("method", ["evidence", "constraint"])
def test_the_client_that_forges_an_edge_has_the_largest_influence(method):
    result = discover(poisoned(0), method=method)
    stability = result.stability()
    first = stability.influence[0]
    assert (first.client, first.share) == ("north", 0.2)
    assert "c" in first.link
    assert first.largest > 0  # it speaks for the link
    assert first.n_changed == len(stability.changes_without["north"])
    assert {one.client for one in stability.influence} == set(result.cohort.clients)
    sizes = [abs(one.largest) for one in stability.influence]
    assert sizes == sorted(sizes, reverse=True)


def test_influence_is_the_change_of_what_speaks_for_a_link():
    result = discover(studies.numbers(0, (60, 50, 40)))
    factors = {frozenset((e.source, e.target)): e.log_bayes_presence * (1 if e.mark else -1) for e in result.edges()}
    for one in result.stability().influence:
        alone = left_alone(result.cohort, one.client)
        without = {frozenset((e.source, e.target)): e.log_bayes_presence * (1 if e.mark else -1) for e in alone.edges()}
        moved = {pair: factors[pair] - without[pair] for pair in factors if "__domain__" not in pair}
        assert one.largest == pytest.approx(moved[frozenset(one.link)])
        assert abs(one.largest) == pytest.approx(max(map(abs, moved.values())))
        assert one.total == pytest.approx(sum(map(abs, moved.values())))
    assert not result.stability(3).influence  # draws do not leave clients out one by one


def left_alone(cohort: Cohort, out: str, **settings):
    """The same study as if the client had never been part of it."""
    plan = replace(cohort.plan, clients=tuple(client for client in cohort.plan.clients if client != out))
    summaries = [replace(summary, plan=plan.fingerprint) for summary in cohort.summaries if summary.clients != (out,)]
    return discover_from(summaries, plan, **settings)


@pytest.mark.parametrize("method", ["evidence", "constraint", "paper"])
def test_a_run_is_the_discovery_of_a_study_without_the_client(method):
    tables = studies.mixed(0, (60, 45, 50))
    cohort = studies.cohort_of(tables, Fourier(width=5) if method == "paper" else studies.plan_of(tables).family)
    known = Knowledge(forbidden=[("score", "age")])
    settings = {"method": method, "alpha": 0.1, "knowledge": known, "max_conditioning_size": 2, "seed": 3}
    stability = discover_from(cohort, cohort.plan, **settings).stability()
    assert [run.left_out for run in stability.runs] == [(client,) for client in cohort.clients]
    for run in stability.runs:
        alone = left_alone(cohort, *run.left_out, **settings)
        assert (run.arrows, run.lines, run.changing) == (alone.graph.arrows, alone.graph.lines, alone.changing)


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


def test_two_clients_leave_one_of_which_less_can_be_asked():
    stability = discover(studies.numbers(0, (60, 50))).stability()
    assert [run.changing for run in stability.runs] == [None, None]
    assert all(change.share is None for change in stability.changing)
    assert "only one client was left" in stability.notes[0]
    assert stability.edges


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
