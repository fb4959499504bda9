"""One run of the search without a client is the discovery of a study without it."""

from __future__ import annotations

from dataclasses import replace

import pytest
import studies

from fedcdh.discovery.api import discover, discover_from
from fedcdh.graphs.knowledge import Knowledge
from fedcdh.summaries.aggregation import Cohort
from fedcdh.summaries.features import Fourier


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


def test_two_clients_leave_one_of_which_less_can_be_asked():
    stability = discover(studies.numbers(0, (60, 50))).stability()
    assert [run.changing for run in stability.runs] == [None, None]
    assert all(change.share is None for change in stability.changing)
    assert "only one client was left" in stability.notes[0]
    assert stability.edges
