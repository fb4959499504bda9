"""Stability by bootstrap replicates."""

from __future__ import annotations

import weakref
from dataclasses import replace

import pytest
import studies

from fedcdh.discovery.api import discover_from
from fedcdh.errors import FedCDHError, SettingsError
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.aggregation import Aggregate, add_up
from fedcdh.summaries.bootstrap import bootstrap_summaries
from fedcdh.summaries.plan import StudyPlan

TABLES = studies.mixed(0, (120, 90, 60))


PLAN = studies.plan_of(TABLES)


COHORT = add_up((summarize(table, PLAN, client) for client, table in TABLES.items()), PLAN)


def copies_of(tables: studies.Tables, plan: StudyPlan, number: int, seed: int = 1) -> list[tuple]:
    """All clients' first copies, all clients' second ones, ..."""
    drawn = [bootstrap_summaries(table, plan, client, number, seed) for client, table in tables.items()]
    return list(zip(*drawn, strict=True))


@pytest.fixture(autouse=True)
def _nobody_else(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("home")))
    for name in ("FEDCDH_KEY", "FEDCDH_POLICY", "FEDCDH_PASSPHRASE", "FEDCDH_DEBUG"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("method", ["evidence", "constraint"])
def test_a_run_is_the_discovery_of_a_copy(method):
    result, copies = discover_from(COHORT, PLAN, method=method), copies_of(TABLES, PLAN, 2)
    seen = []
    stability = result.stability(replicates=copies, progress=lambda *done: seen.append(done))
    assert seen == [(1, 2), (2, 2)]
    assert (stability.kind, stability.seed, stability.changes_without) == ("row-bootstrap", None, {})
    for run, copy in zip(stability.runs, copies, strict=True):
        alone = discover_from([replace(summary, replicate=0) for summary in copy], PLAN, method=method)
        assert (run.arrows, run.lines, run.changing) == (alone.graph.arrows, alone.graph.lines, alone.changing)
        assert (run.clients, run.left_out) == (COHORT.clients, ())
    assert all(edge.gone_without == edge.turned_without == () for edge in stability.edges)
    turned = [add_up(copy, PLAN) for copy in copies[::-1]]
    assert result.stability(replicates=turned) == stability


def test_copies_are_looked_at_one_after_the_other_and_let_go():
    result, made = discover_from(COHORT, PLAN), list[weakref.ref]()

    def arriving():
        for number, copy in enumerate(copies_of(TABLES, PLAN, 4)):
            assert not any(earlier() for earlier in made[:-1]), number
            yield (drawn := add_up([replace(one) for one in copy], PLAN))
            made.append(weakref.ref(drawn.summaries[0]))
            del drawn

    assert len(result.stability(replicates=arriving()).runs) == 4


def test_sums_have_sums_for_copies_and_one_client_has_copies_too():
    result = discover_from(Aggregate.of(COHORT), PLAN)
    copies = [Aggregate.of(add_up(copy, PLAN)) for copy in copies_of(TABLES, PLAN, 2)]
    assert len(result.stability(replicates=copies).runs) == 2
    alone = studies.cohort_of(tables := studies.numbers(0, (60,)))
    stability = discover_from(alone, alone.plan).stability(replicates=copies_of(tables, alone.plan, 2))
    assert [run.changing for run in stability.runs] == [None, None]
    assert stability.notes == ()


def test_what_are_no_copies_is_refused():
    result, (first, second) = discover_from(COHORT, PLAN), copies_of(TABLES, PLAN, 2)
    for copies, match in (
        ([], "no bootstrap replicates"),
        ([first, first], "replicate 1 twice"),
        ([COHORT], "rows themselves"),
        ([Aggregate.of(add_up(first, PLAN))], "single summaries"),
    ):
        searched: list[int] = []
        with pytest.raises(SettingsError, match=match):
            result.stability(replicates=copies, progress=lambda done, total, searched=searched: searched.append(done))
        assert not searched
    with pytest.raises(SettingsError, match="one of them"):
        result.stability(3, replicates=[first])
    for copies in ([first[:-1]], [[*first[:-1], second[-1]]]):
        with pytest.raises(FedCDHError):
            result.stability(replicates=copies)
