"""Methods: their names, their features, and what they can use."""

from __future__ import annotations

from typing import cast

import pytest
import studies

from fedcdh.discovery.api import discover, discover_from
from fedcdh.discovery.methods import METHODS, check_rounds, get_method, resolve_rounds
from fedcdh.discovery.settings import Settings
from fedcdh.errors import PlanMismatchError, SettingsError
from fedcdh.protocols import DOMAIN
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.aggregation import Aggregate
from fedcdh.summaries.features import Fourier, Hermite
from fedcdh.summaries.joint import AnswerSource
from fedcdh.summaries.opened_by_sums import describe_opened
from fedcdh.summaries.plan import StudyPlan

TABLES = studies.mixed(0, sizes=(80, 60, 40))


def test_seeds_matter_where_features_are_random():
    tables = studies.numbers(2)
    first, same, other = (studies.p_values(discover(tables, method="paper", seed=seed)) for seed in (0, 0, 1))
    assert first == same
    assert first != other
    assert studies.p_values(discover(tables, seed=0)) == studies.p_values(discover(tables, seed=1))


def test_the_papers_method_needs_the_papers_features():
    plan = StudyPlan.from_tables(TABLES)
    summaries = [summarize(table, plan, client) for client, table in TABLES.items()]
    with pytest.raises(PlanMismatchError, match="needs Fourier features"):
        discover_from(summaries, plan, method="paper")


def test_auto_is_the_method_that_can_use_the_summaries():
    assert get_method("auto") is METHODS["evidence"]
    assert get_method("auto", noisy=True).name == "constraint"
    assert {name: method.name for name, method in METHODS.items()} == {name: name for name in METHODS}


def test_unknown_methods_and_those_that_cannot_allow_for_noise_are_refused():
    with pytest.raises(SettingsError, match="no method 'magic'; choose one of 'auto', 'evidence'"):
        get_method("magic")
    for name in ("evidence", "paper"):
        with pytest.raises(SettingsError, match=f"method '{name}' takes the noise"):
            get_method(name, noisy=True)


def test_methods_ask_what_they_can_use():
    for name, rounds in (("constraint", "adaptive"), ("constraint", "residuals"), ("evidence", "residuals")):
        check_rounds(name, rounds)
    for name in METHODS:
        check_rounds(name, "one")
    for name, rounds in (("auto", "adaptive"), ("evidence", "adaptive"), ("paper", "adaptive"), ("paper", "residuals")):
        with pytest.raises(SettingsError, match="has nothing of this kind to ask the clients; choose method"):
            get_method(name, rounds=rounds)


def test_rounds_are_chosen_by_the_method():
    assert [resolve_rounds("auto", name) for name in ("evidence", "constraint", "paper")] == ["residuals"] * 2 + ["one"]
    assert resolve_rounds("auto", "constraint", noisy=True) == "one"
    assert resolve_rounds("adaptive", "constraint") == "adaptive"
    assert resolve_rounds("auto", "constraint", variables=301) == "one"
    assert resolve_rounds("residuals", "constraint", variables=301) == "residuals"


def test_features_are_checked_by_kind_and_not_by_width():
    METHODS["paper"].check_family(Fourier(width=9))
    METHODS["constraint"].check_family(Fourier(width=9))
    with pytest.raises(PlanMismatchError, match=r"needs Fourier features, Fourier\(width=5"):
        METHODS["paper"].check_family(Hermite())


@pytest.mark.parametrize("method", ["constraint", "paper"])
def test_tests_run_on_sums_and_say_so(method):
    cohort = studies.cohort_of(TABLES, METHODS[method].family(0))
    result = discover_from(Aggregate.of(cohort), cohort.plan, method=method)
    assert any("only sums over all clients are known" in note for note in result.notes)
    assert any(f"for every client, {describe_opened()}" in note for note in result.notes)
    assert not any("only sums" in note for note in discover_from(cohort, cohort.plan, method=method).notes)


@pytest.mark.parametrize("method", ["constraint", "paper"])
def test_groups_of_clients_are_named_and_stand_for_clients(method):
    cohort = studies.cohort_of(TABLES, METHODS[method].family(0))
    clients = cohort.clients
    halves = Aggregate.of(cohort, dict(zip(clients, ["one", "one", "two"], strict=True)))
    notes = " ".join(discover_from(halves, cohort.plan, method=method).notes)
    assert f"for every group of clients (one: {clients[0]}, {clients[1]}; two: {clients[2]})" in notes
    alone = discover_from(Aggregate.from_total(cohort.total, cohort.plan), cohort.plan, method=method)
    assert not alone.changing
    assert DOMAIN not in alone.augmented.nodes


def test_joint_features_need_the_summary_of_every_client():
    cohort = studies.cohort_of(TABLES)
    method = METHODS["constraint"].with_rounds(cast("AnswerSource", None), "adaptive")
    with pytest.raises(SettingsError, match=r"only the sum of the clients' summaries is known.*rounds 'residuals'"):
        method.search(Aggregate.of(cohort), Settings("constraint", rounds="adaptive"), None)
