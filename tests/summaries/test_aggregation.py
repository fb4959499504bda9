"""The aggregate mode of trust: what is left when only sums over clients are seen, and what is refused then."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import studies

from fedcdh.discovery.api import discover, discover_from
from fedcdh.errors import FedCDHError, PlanMismatchError, SettingsError, SummaryError
from fedcdh.inference.evidence.client_spreads import ClientSpreads
from fedcdh.inference.evidence.family_score import FamilyScore
from fedcdh.inference.orthonormal_basis import Basis
from fedcdh.protocols import DOMAIN, Family
from fedcdh.reporting.html.methods_section import methods_paragraph
from fedcdh.reporting.result_files import render_result_json
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.aggregation import Aggregate, add_up
from fedcdh.summaries.encoder import GRID
from fedcdh.summaries.features import Fourier

SHAPES = [(60, 45, 30, 14, 5), (40, 50), (30,), (1, 2, 3, 2)]


def aggregate_of(tables: studies.Tables) -> Aggregate:
    return Aggregate.of(studies.cohort_of(tables))


@pytest.mark.parametrize("sizes", SHAPES)
def test_sums_tell_rows_means_and_the_scatter_within_and_of_all(sizes):
    cohort = studies.cohort_of(studies.mixed(0, sizes))
    whole, sums = Basis.of(cohort), Basis.of(Aggregate.of(cohort))
    assert np.array_equal(sums.rows, whole.rows)
    for name in ("total", "within", "means"):
        size = max(1.0, float(np.abs(getattr(whole, name)).max()))
        assert getattr(sums, name) == pytest.approx(getattr(whole, name), abs=1e-9 * size), name
    for name in ("spans", "targets", "predictors"):
        mine, theirs = getattr(sums, name), getattr(whole, name)
        assert mine.keys() == theirs.keys()
        assert all(np.array_equal(mine[key], theirs[key]) for key in mine)
    assert sums.moments.sum(axis=0) == pytest.approx(whole.moments.sum(axis=0), abs=1e-8)


@pytest.mark.parametrize("sizes", SHAPES)
def test_clients_are_not_known_apart(sizes):
    cohort = studies.cohort_of(studies.mixed(0, sizes))
    aggregate = Aggregate.of(cohort)
    assert aggregate.clients == cohort.clients
    assert aggregate.client_rows == cohort.client_rows == sizes
    assert aggregate.moments.shape[0] == 1
    assert aggregate.summaries == (cohort.total,)
    assert Basis.of(cohort).has_client_scatter
    assert Basis.of(aggregate).has_client_scatter == (len(sizes) == 1)


def test_the_order_in_which_summaries_come_does_not_matter():
    tables = studies.mixed(1, (20, 30, 25))
    plan = studies.plan_of(dict(reversed(tables.items())))
    turned = add_up([summarize(table, plan, client) for client, table in reversed(tables.items())], plan)
    aggregate = Aggregate.of(turned)
    assert dict(zip(aggregate.clients, aggregate.client_rows, strict=True)) == dict(
        zip(tables, (20, 30, 25), strict=True)
    )


def changed(kind: str, clients: int, seed: int = 0, rows: int = 100) -> studies.Tables:
    """x → y; the level or the noise of y differs between clients."""
    tables = {}
    for k in range(clients):
        x, noise = np.random.default_rng([seed, k, clients]).standard_normal((2, rows))
        sign = 1 if k % 2 else -1
        y = x + np.exp(0.7 * sign * (kind == "noise")) * noise + sign * (kind == "level")
        tables[f"c{k}"] = {"x": x, "y": y}
    return tables


@pytest.mark.parametrize("clients", [2, 6])
@pytest.mark.parametrize(("kind", "least", "most"), [("level", 12, 12), ("noise", 11, 12)])
def test_a_level_and_a_spread_are_seen_in_sums(kind, least, most, clients):
    """The mean square of y at every client is known, so that changed noise is seen without any covariance."""
    seen = 0
    for seed in range(12):
        cohort = studies.cohort_of(changed(kind, clients, seed))
        whole = discover_from(cohort, cohort.plan, method="evidence")
        sums = discover_from(Aggregate.of(cohort), cohort.plan, method="evidence")
        assert "y" in whole.changing
        assert sums.graph.is_adjacent("x", "y")
        assert studies.sound(sums)
        seen += "y" in sums.changing
    assert least <= seen <= most


def test_the_notes_say_what_is_missing():
    cohort = studies.cohort_of(changed("level", 3))
    sums = discover_from(Aggregate.of(cohort), cohort.plan, method="evidence")
    note, learned = sums.notes
    assert "only sums over all clients are known" in note
    assert "not whether effects or noise changed" in note
    assert "for every client, the number of rows" in learned
    assert note in str(sums)
    assert learned in str(sums)
    assert not any("only sums" in note for note in discover_from(cohort, cohort.plan, method="evidence").notes)


def test_groups_are_what_is_compared():
    """Clients that stand together are as one client: the same graph as from the pooled clients' sums."""
    tables = changed("level", 6)
    cohort = studies.cohort_of(tables)
    labels = dict(zip(cohort.clients, ("low", "high") * 3, strict=True))
    grouped = Aggregate.of(cohort, labels)
    assert grouped.clients == ("high", "low")
    assert grouped.client_rows == (300, 300)
    result = discover_from(grouped, cohort.plan)
    assert "y" in result.changing
    _, learned = result.notes
    assert "high: c1, c3, c5" in learned
    assert "2 groups" in str(result)
    alone = discover_from(Aggregate.of(cohort, dict.fromkeys(cohort.clients, "all")), cohort.plan)
    assert not alone.changing
    assert any("only one group" in note for note in alone.notes)


def test_groups_have_to_be_of_the_clients_in_the_sum():
    aggregate = aggregate_of(studies.numbers(0))
    with pytest.raises(SummaryError, match="groups have the clients"):
        replace(aggregate, groups=(("a", ("site0",)), ("b", ("site1",)), ("c", ("site1",))))


def test_a_client_that_is_not_there_is_named():
    cohort = studies.cohort_of(studies.numbers(0))
    fewer = add_up(cohort.summaries[:2], cohort.plan, without=("site2",))
    result = discover_from(Aggregate.of(fewer), cohort.plan)
    assert result.cohort.clients == ("site0", "site1")
    assert any("client site2" in note for note in result.notes)


def test_what_all_clients_share_is_scored_alike():
    cohort = studies.cohort_of(studies.numbers(0, (60, 50, 40)))
    aggregate = Aggregate.of(cohort)
    families = [
        Family(node, frozenset(parents)) for node, parents in (("v1", ()), ("v2", ("v1",)), ("v4", ("v1", "v3")))
    ]
    mine, theirs = (FamilyScore.of(known, Basis.of(known)).linear(families) for known in (aggregate, cohort))
    spreads = ClientSpreads(Basis.of(aggregate))(families, curved=False)  # the sum counts mean squares in addition
    assert [a - one.same for a, one in zip(mine, spreads, strict=True)] == pytest.approx(theirs, rel=1e-9)
    changing = [Family(family.node, family.parents | {DOMAIN}) for family in families]
    mine, theirs = (FamilyScore.of(known, Basis.of(known))(changing) for known in (aggregate, cohort))
    assert all(abs(a - b) > 1e-3 for a, b in zip(mine, theirs, strict=True))


@pytest.mark.parametrize("sizes", [(60, 45, 30), (40, 50), (1, 2, 3, 2), (60,)])
def test_labels_and_numbers_are_searched_in_sums(sizes):
    aggregate = aggregate_of(studies.mixed(0, sizes))
    result = discover_from(aggregate, aggregate.plan)
    assert result.settings.method == "evidence"
    assert studies.sound(result)
    assert result.cohort is aggregate


@pytest.mark.parametrize("method", ["constraint", "paper"])
def test_tests_run_on_sums_and_say_so(method):
    tables = studies.numbers(0)
    cohort = studies.cohort_of(tables, Fourier(width=5)) if method == "paper" else studies.cohort_of(tables)
    aggregate = Aggregate.of(cohort)
    result = discover_from(aggregate, cohort.plan, method=method)
    assert studies.sound(result)
    assert result.settings.method == method
    assert result.cohort is aggregate
    assert any(note.startswith("only sums over all clients are known") for note in result.notes)
    assert not any("sums" in note for note in discover_from(cohort, cohort.plan, method=method).notes)


# What is refused


def damaged(aggregate: Aggregate, change) -> np.ndarray:
    firsts = aggregate.first_moments.copy()
    return change(firsts)


def one_more(firsts):
    firsts[0, 1] += 1
    return firsts


def no_rows(firsts):
    firsts[1] += firsts[0]
    firsts[0] = 0
    return firsts


def fewer_than_none(firsts):
    firsts[1, 0] += 2 * firsts[0, 0]
    firsts[0, 0] *= -1
    return firsts


DAMAGE = {
    "wrong sum": (one_more, "add up"),
    "a client less": (lambda firsts: firsts[1:], "add up"),
    "a client more": (lambda firsts: np.vstack([firsts, 0 * firsts[:1]]), "add up"),
    "a column less": (lambda firsts: firsts[:, 1:], "add up"),
    "one row for all": (lambda firsts: firsts.sum(axis=0), "add up"),
    "no rows": (no_rows, "no rows"),
    "negative rows": (fewer_than_none, "no rows"),
}


@pytest.mark.parametrize(("change", "message"), DAMAGE.values(), ids=DAMAGE.keys())
def test_damaged_first_moments_are_refused(change, message):
    aggregate = aggregate_of(studies.numbers(0))
    with pytest.raises(SummaryError, match=message):
        Aggregate(aggregate.plan, aggregate.total, damaged(aggregate, change))


def test_means_that_no_rows_can_have_are_refused():
    """Features lie in [-1, 1], so a client's sums are at most its rows; what two clients trade adds up all the same."""
    aggregate = aggregate_of(studies.numbers(0))

    def trade(firsts):
        firsts[0, 1] += 2 * firsts[0, 0]
        firsts[1, 1] -= 2 * firsts[0, 0]
        return firsts

    with pytest.raises(SummaryError):
        Aggregate(aggregate.plan, aggregate.total, damaged(aggregate, trade))


def test_parts_of_rows_are_refused():
    aggregate = aggregate_of(studies.numbers(0))

    def half_a_row(firsts):
        firsts[0, 0] += GRID**2 // 2
        firsts[1, 0] -= GRID**2 // 2
        return firsts

    with pytest.raises(SummaryError):
        Aggregate(aggregate.plan, aggregate.total, damaged(aggregate, half_a_row))


def test_another_plan_is_refused():
    aggregate, other = aggregate_of(studies.numbers(0)), studies.plan_of(studies.numbers(1))
    with pytest.raises(PlanMismatchError, match="plan"):
        discover_from(aggregate, other, method="evidence")
    with pytest.raises(PlanMismatchError, match="plan"):
        Aggregate(other, aggregate.total, aggregate.first_moments)
    with pytest.raises(PlanMismatchError, match="plan"):
        replace(aggregate, plan=other)


# The method


def test_auto_is_evidence():
    tables = studies.numbers(0)
    first, second = (discover(tables, method=method) for method in ("auto", "evidence"))
    assert first.settings == second.settings
    assert first.settings.method == "evidence"
    assert studies.same_findings(first, second)
    assert first.edges() == second.edges()
    assert discover(tables).settings == first.settings
    assert discover(tables, method="constraint").settings.method == "constraint"


@pytest.mark.parametrize(
    "call", [discover, lambda tables, method: discover_from([], studies.plan_of(tables), method=method)]
)
def test_an_unknown_method_is_told_the_known_ones(call):
    with pytest.raises(SettingsError, match=r"'magic'.*'auto'.*'evidence'.*'constraint'.*'paper'") as caught:
        call(studies.numbers(0), method="magic")
    assert isinstance(caught.value, FedCDHError)


def test_a_report_counts_sites_and_groups(tmp_path):
    cohort = studies.cohort_of(changed("level", 6))
    labels = dict(zip(cohort.clients, ("low", "high") * 3, strict=True))
    result = discover_from(Aggregate.of(cohort, labels), cohort.plan)
    document = json.loads(render_result_json(result))
    assert document["clients"][0] == {"client": "high", "rows": 300, "members": ["c1", "c3", "c5"]}
    assert "6 sites in 2 groups" in methods_paragraph(document)
    pytest.importorskip("igraph", reason="igraph is not installed")
    assert "6 sites in 2 groups" in result.report(tmp_path / "report.html").read_text(encoding="utf-8")
