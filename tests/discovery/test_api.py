"""From tables to graphs: who made the table, who comes first and what things are called changes nothing."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import studies
from hypothesis import given, settings
from hypothesis import strategies as st

import fedcdh
from fedcdh.discovery.api import discover, discover_from
from fedcdh.discovery.methods import METHODS
from fedcdh.errors import DataError, KnowledgeError, PlanError, PlanMismatchError, SettingsError, SummaryError
from fedcdh.evaluation.simulation import simulate
from fedcdh.graphs.knowledge import Knowledge
from fedcdh.protocols import DOMAIN
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.aggregation import add_up
from fedcdh.summaries.features import Fourier
from fedcdh.summaries.plan import StudyPlan

NAMES = sorted(METHODS)
TABLES = studies.mixed(0, sizes=(80, 60, 40))
POOLED = studies.pooled_table(TABLES)
EXPECTED = {method: studies.found(TABLES, method=method) for method in NAMES}


def lists(table: dict[str, np.ndarray]) -> dict[str, list]:
    return {name: column.tolist() for name, column in table.items()}


def as_objects(table: dict[str, np.ndarray]) -> np.ndarray:
    return np.array([column.tolist() for column in table.values()], dtype=object).T


FORMS = {
    "lists, one table": (lists(POOLED), {"domain": "site"}),
    "arrays, one table": (POOLED, {"domain": "site"}),
    "pandas, one table": (pd.DataFrame(POOLED), {"domain": "site"}),
    "polars, one table": (pl.DataFrame(lists(POOLED)), {"domain": "site"}),
    "pyarrow, one table": (pa.table(lists(POOLED)), {"domain": "site"}),
    "numpy, one table": (as_objects(POOLED), {"domain": "site", "names": list(POOLED)}),
    "lists": ({client: lists(table) for client, table in TABLES.items()}, {}),
    "pandas": ({client: pd.DataFrame(table) for client, table in TABLES.items()}, {}),
    "polars": ({client: pl.DataFrame(lists(table)) for client, table in TABLES.items()}, {}),
    "pyarrow": ({client: pa.table(lists(table)) for client, table in TABLES.items()}, {}),
    "numpy": (
        {client: as_objects(table) for client, table in TABLES.items()},
        {"names": list(next(iter(TABLES.values())))},
    ),
}


@pytest.mark.parametrize("method", NAMES)
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
def test_the_form_of_the_table_does_not_matter(form, method):
    data, settings_ = form
    result = discover(data, method=method, **settings_)
    assert studies.same_findings(result, EXPECTED[method], within=0.0)
    assert str(result) == str(EXPECTED[method])


@pytest.mark.parametrize("method", NAMES)
def test_discover_is_its_steps_in_the_open(method):
    family = METHODS[method].family(0)
    plan = fedcdh.StudyPlan.from_profiles(
        [fedcdh.profile(table, client) for client, table in TABLES.items()], family=family
    )
    summaries = [fedcdh.summarize(table, plan, client) for client, table in TABLES.items()]
    result = fedcdh.discover_from(summaries, fedcdh.StudyPlan.from_json(plan.to_json()), method=method)
    assert result.edges() == EXPECTED[method].edges()


@settings(deadline=None, max_examples=15)
@given(st.randoms(use_true_random=False), st.sampled_from(NAMES))
def test_order_of_rows_columns_and_clients_does_not_matter(rng, method):
    shuffled = {}
    for client in rng.sample(list(TABLES), len(TABLES)):
        table = TABLES[client]
        names, rows = rng.sample(list(table), len(table)), rng.sample(range(len(table["age"])), len(table["age"]))
        shuffled[client] = {name: table[name][rows] for name in names}
    assert studies.same_findings(discover(shuffled, method=method), EXPECTED[method])


def renamed(tables, names, clients):
    return {clients[c]: {names[name]: column for name, column in table.items()} for c, table in tables.items()}


@settings(deadline=None, max_examples=15)
@given(st.integers(0, 10**6), st.randoms(use_true_random=False))
def test_names_are_only_names(seed, rng):
    tables = studies.mixed(seed, sizes=(60, 40, 30))
    before = studies.found(tables)
    names = dict(zip(tables["clinic a"], rng.sample("ζabzé雪", 6), strict=True))
    clients = dict(zip(tables, rng.sample("321", 3), strict=True))
    after = studies.found(renamed(tables, names, clients))
    called = {**names, DOMAIN: DOMAIN}
    p_values = studies.p_values(after)
    for pair, p_value in studies.p_values(before).items():
        assert p_values[frozenset(called[name] for name in pair)] == pytest.approx(p_value, abs=1e-9)
    assert after.augmented.arrows == {(called[a], called[b]) for a, b in before.augmented.arrows}
    assert after.augmented.lines == {frozenset(called[name] for name in line) for line in before.augmented.lines}


@pytest.mark.parametrize("method", NAMES)
def test_labels_are_only_names(method):
    called = {"low": "zz", "middle": "ä", "high": "0"}
    tables = {
        client: {**table, "group": np.array([called[label] for label in table["group"]])}
        for client, table in TABLES.items()
    }
    assert studies.same_findings(discover(tables, method=method), EXPECTED[method], within=1e-6)


UNITS = [(1000.0, 0.0), (1e12, 0.0), (1e-12, 0.0), (2.54, 0.0), (2.54, 100.0), (1e12, -3e12), (-1.8, 32.0)]


@pytest.mark.parametrize(("factor", "offset"), UNITS)
@pytest.mark.parametrize("model", ["linear", "general"])
def test_units_do_not_matter(model, factor, offset):
    """Not the variance, in particular: in the paper's data it alone gives most directions away."""
    study = simulate(model, variables=5, clients=4, rows=80, seed=11)
    tables = {
        client: {name: table[:, j] for j, name in enumerate(study.names)} for client, table in study.tables.items()
    }
    before = studies.found(tables)
    for changed in ([study.names[0]], [study.names[3]], list(study.names)):
        other = {
            client: {name: factor * column + offset if name in changed else column for name, column in table.items()}
            for client, table in tables.items()
        }
        assert studies.same_findings(studies.found(other), before, within=1e-6)


def test_units_do_not_matter_to_the_papers_engine():
    tables = studies.numbers(2)
    other = {
        client: {name: 1e12 * column if name == "v2" else column for name, column in table.items()}
        for client, table in tables.items()
    }
    assert studies.same_findings(discover(other, method="paper"), discover(tables, method="paper"), within=1e-6)


def test_seeds_matter_where_features_are_random():
    tables = studies.numbers(2)
    first, same, other = (studies.p_values(discover(tables, method="paper", seed=seed)) for seed in (0, 0, 1))
    assert first == same
    assert first != other
    assert studies.p_values(discover(tables, seed=0)) == studies.p_values(discover(tables, seed=1))


# Settings


def test_alpha_decides():
    tables = studies.mixed(0)
    found = [studies.found(tables, method="constraint", alpha=alpha) for alpha in (1e-12, 0.05, 0.9)]
    edges = [len(result.augmented.skeleton) for result in found]
    assert edges[0] < edges[1] < edges[2]


@pytest.mark.parametrize("limit", [0, 1, 2])
def test_conditioning_is_limited(limit):
    asked = []
    result = studies.found(
        TABLES,
        method="constraint",
        max_conditioning_size=limit,
        progress=lambda level, count: asked.append((level, count)),
    )
    assert [level for level, _ in asked] == list(range(len(asked)))
    per_level = result.skeleton.queries_per_level
    assert len(per_level) <= limit + 1
    assert per_level == tuple(count for _, count in asked[: len(per_level)])
    assert len(asked) == len(per_level) + (limit > 0)  # and which triples collide, where there is more to ask
    for edge in result.edges():
        assert edge.separating_set is None or len({*edge.separating_set} - {DOMAIN}) <= limit


@pytest.mark.parametrize("limit", [0, 1, 2])
def test_causes_are_limited(limit):
    batches = []
    result = studies.found(
        TABLES, method="evidence", max_conditioning_size=limit, progress=lambda done, new: batches.append((done, new))
    )
    dag = result.to_dag()
    assert max(len(dag.parents(name)) for name in dag.nodes) <= limit
    assert [done for done, _ in batches] == [sum(new for _, new in batches[:i]) for i in range(len(batches))]


@pytest.mark.parametrize(
    ("data", "settings_", "error", "complaint"),
    [
        (
            TABLES,
            {"method": "magic"},
            SettingsError,
            "no method 'magic'; choose one of 'auto', 'evid",
        ),
        (TABLES, {"alpha": 1.5}, SettingsError, "alpha is 1.5"),
        (TABLES, {"max_conditioning_size": -1}, ValueError, "max_conditioning_size is -1"),
        (TABLES, {"variables": ["age", "weight"]}, DataError, r"client 'clinic a': there is no column 'weight'"),
        (TABLES, {"variables": []}, PlanError, "one or more variables"),
        (TABLES, {"kinds": {"weight": "continuous"}}, DataError, "'weight'.*client 'clinic a' has no such column"),
        (POOLED, {}, DataError, "which client a row belongs to"),
        (pd.DataFrame(POOLED), {}, DataError, "which client a row belongs to"),
        ({}, {}, DataError, "which client a row belongs to"),
        (POOLED, {"domain": "hospital"}, DataError, "no column 'hospital'.*the table has 'site'.*parameter domain"),
        (TABLES, {"domain": "site"}, SettingsError, "one table per client and the domain 'site'"),
        (TABLES, {"variables": "age"}, SettingsError, "variables is the text 'age'"),
        (TABLES, {"alpha": "0.05"}, SettingsError, "alpha is '0.05'"),
        (TABLES, {"max_conditioning_size": 1.5}, SettingsError, "max_conditioning_size is 1.5"),
        (TABLES, {"seed": -1}, SettingsError, "seed is -1"),
        (TABLES, {"max_missing_share": 7}, SettingsError, "max_missing_share is 7"),
        (TABLES, {"knowledge": {"required": []}}, SettingsError, "expected fedcdh.Knowledge"),
    ],
)
def test_what_cannot_be_done_is_refused(data, settings_, error, complaint):
    with pytest.raises(error, match=complaint):
        discover(data, **settings_)


def test_variables_choose_and_order_the_columns():
    result = studies.found(POOLED, domain="site", variables=["score", "age"])
    assert result.graph.nodes == ("score", "age")
    assert result.cohort.plan.names == ("score", "age")


def test_plans_and_summaries_must_belong_together():
    plan = studies.plan_of(TABLES)
    summaries = [fedcdh.summarize(table, plan, client) for client, table in TABLES.items()]
    with pytest.raises(PlanError, match="not this plan"):
        discover_from(summaries, studies.plan_of(TABLES, Fourier()))


# Knowledge


@pytest.mark.parametrize("method", NAMES)
def test_knowledge_is_obeyed(method):
    known = Knowledge(
        required=[("flag", "age"), (DOMAIN, "flag")],
        forbidden=[("dose", "score"), ("score", "dose"), (DOMAIN, "sex")],
        tiers=[["flag", "sex"], ["age", "group"], ["score"]],
    )
    result = studies.found(TABLES, method=method, knowledge=known)
    assert ("flag", "age") in result.graph.arrows
    assert "flag" in result.changing
    assert "sex" not in result.changing
    assert not result.graph.is_adjacent("dose", "score")
    for late, early in [("age", "sex"), ("group", "flag"), ("score", "age"), ("score", "group"), ("score", "sex")]:
        assert (late, early) not in result.graph.arrows
        assert not result.graph.has_line(late, early)
    dag = result.to_dag()
    assert ("flag", "age") in dag.arrows
    assert result.settings.knowledge == known


@pytest.mark.parametrize(
    "known",
    [
        Knowledge(required=[("age", "dose"), ("dose", "age")]),
        Knowledge(required=[("age", "dose")], forbidden=[("age", "dose")]),
        Knowledge(required=[("score", "age")], tiers=[["age"], ["score"]]),
        Knowledge(required=[("age", DOMAIN)]),
        Knowledge(required=[("age", "weight")]),
        Knowledge(tiers=[["age"], ["age"]]),
        Knowledge(tiers=[[DOMAIN], ["age"]]),
    ],
)
def test_contradictory_knowledge_is_refused(known):
    with pytest.raises(KnowledgeError, match="correct it"):
        discover(TABLES, knowledge=known)


def test_knowledge_about_the_domain_is_idle_with_one_client():
    known = Knowledge(required=[(DOMAIN, "age")], forbidden=[(DOMAIN, "dose")])
    assert studies.found({"here": TABLES["clinic a"]}, knowledge=known).changing == frozenset()


# Results


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


def test_the_truth_is_found_where_it_is_plain():
    """v2 → v1 ← v3, all strong, with clients that differ in the mean of v2 and the spread of v3."""
    right = 0
    for seed in range(5):
        tables = {}
        for k in range(6):
            rng = np.random.default_rng([seed, k])
            v2, v3 = 1.5 * k + rng.standard_normal(200), (1 + k) / 3 * rng.standard_normal(200)
            tables[f"c{k}"] = {"v1": v2 + 2 * np.tanh(v3) + rng.standard_normal(200), "v2": v2, "v3": v3}
        result = studies.found(tables)
        arrows = result.graph.arrows == {("v2", "v1"), ("v3", "v1")} and not result.graph.lines
        right += arrows and result.changing == {"v2", "v3"}
    assert right >= 4


def test_the_papers_method_needs_the_papers_features():
    plan = StudyPlan.from_tables(TABLES)
    summaries = [summarize(table, plan, client) for client, table in TABLES.items()]
    with pytest.raises(PlanMismatchError, match="needs Fourier features"):
        discover_from(summaries, plan, method="paper")


def test_a_cohort_is_as_good_as_its_summaries():
    plan = StudyPlan.from_tables(TABLES)
    summaries = [summarize(table, plan, client) for client, table in TABLES.items()]
    cohort = add_up(summaries, plan)
    assert discover_from(cohort, plan).edges() == discover_from(summaries, plan).edges()
    with pytest.raises(PlanMismatchError, match="not this plan"):
        discover_from(cohort, StudyPlan.from_tables(TABLES, family=Fourier(6)))
    with pytest.raises(SummaryError, match="came twice"):
        discover_from([*summaries, summaries[0]], plan)
    half = summaries[0]
    with pytest.raises(SummaryError, match="came twice"):  # in any order, also among other parts
        add_up([half, summarize(TABLES[half.clients[0]], plan, half.clients[0]) + half, *summaries], plan)


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
