"""Effects by a graph: values, sites, pooling, what is open, and what is refused."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from noisy_studies import a_plan, noisy_chains
from studies import cohort_of, found, mixed, numbers

from fedcdh import simulate
from fedcdh.discovery.effect import Effect
from fedcdh.discovery.effect_estimation import estimate_effect
from fedcdh.errors import SettingsError
from fedcdh.graphs.knowledge import Knowledge
from fedcdh.graphs.partial_graph import PartialGraph
from fedcdh.summaries.aggregation import Aggregate, add_up

NUMBERS = cohort_of(numbers(0, sizes=(200, 150, 100)))
CHAIN = PartialGraph.from_dag(("v1", "v2", "v3", "v4"), [("v1", "v2"), ("v2", "v3"), ("v3", "v4")])
OPEN = PartialGraph(
    ("v1", "v2", "v3", "v4"), frozenset({("v3", "v4")}), frozenset(map(frozenset, [("v1", "v2"), ("v2", "v3")]))
)


def test_a_total_effect_is_the_product_along_a_chain():
    whole = estimate_effect(NUMBERS, CHAIN, "v2", "v4")
    assert whole.value == pytest.approx(1.0, abs=0.15)
    assert whole.adjusted_for == ()
    assert whole.pooling == "fixed"
    assert list(whole.by_client) == ["site0", "site1", "site2"]
    assert [one.rows for one in whole.by_client.values()] == [200, 150, 100]
    assert whole.rows == 450
    assert (whole.possible[0].value, whole.possible[0].probability) == (whole.value, None)


def test_sites_that_differ_are_pooled_as_sites_that_differ():
    effect = estimate_effect(NUMBERS, CHAIN, "v1", "v2")
    assert effect.pooling == "random"  # slopes are 1, 1.7 and 2.4
    assert effect.value == effect.random.value == pytest.approx(1.7, abs=0.15)
    assert effect.heterogeneity.p_value < 1e-6
    assert 0.9 < effect.heterogeneity.i_squared < 1
    named = estimate_effect(NUMBERS, CHAIN, "v2", "v3", changing=["v3"])
    assert (estimate_effect(NUMBERS, CHAIN, "v2", "v3").pooling, named.pooling) == ("fixed", "random")


def test_adjustment_sets():
    dag = PartialGraph.from_dag(("v1", "v2", "v3", "v4"), [("v1", "v2"), ("v1", "v4"), ("v2", "v4"), ("v3", "v4")])
    assert estimate_effect(NUMBERS, dag, "v2", "v4").adjusted_for == ("v1", "v3")
    assert estimate_effect(NUMBERS, dag, "v2", "v4", adjust="optimal").adjusted_for == ("v1", "v3")
    assert estimate_effect(NUMBERS, dag, "v2", "v4", adjust="parents").adjusted_for == ("v1",)
    assert estimate_effect(NUMBERS, dag, "v2", "v4", kind="direct").adjusted_for == ("v1", "v3")
    forced = estimate_effect(NUMBERS, dag, "v2", "v4", adjust=["v1"])
    assert (forced.adjusted_for, forced.identifiable, forced.reason) == (("v1",), True, "")
    wrong = estimate_effect(NUMBERS, dag, "v2", "v4", adjust=[])
    assert wrong.value is not None
    assert not wrong.identifiable
    assert "not valid in this graph: a path between v2 and v4" in wrong.reason
    assert "not to be trusted" in str(wrong)


def test_effects_that_the_graph_excludes_are_zero_with_the_reason():
    effect = estimate_effect(NUMBERS, CHAIN, "v4", "v1")
    assert (effect.value, effect.interval, effect.identifiable) == (0.0, (0.0, 0.0), True)
    assert effect.reason == "the graph has no directed path from v4 to v1"
    direct = estimate_effect(NUMBERS, CHAIN, "v1", "v3", kind="direct")
    assert direct.reason == "the graph has no arrow from v1 to v3"


def test_what_is_open_is_said_and_listed():
    effect = estimate_effect(NUMBERS, OPEN, "v2", "v3")
    assert (effect.value, effect.identifiable) == (None, False)
    assert effect.reason == "the graph leaves open which way the edges of v2 with v1, v3 point"
    assert {one.adjusted_for for one in effect.possible} == {(), None, ("v1",)}
    arrows = {("v1", "v2"): 0.6, ("v2", "v1"): 0.4, ("v2", "v3"): 0.9, ("v3", "v2"): 0.1}
    weighted = estimate_effect(NUMBERS, OPEN, "v2", "v3", probabilities=arrows)
    assert sum(one.probability for one in weighted.possible) == pytest.approx(1.0)
    weights = {"both": 0.4 * 0.9, "from v1": 0.6 * 0.9, "to v1": 0.1 * 0.4}
    assert weighted.probability_of_effect == pytest.approx(1 - weights["to v1"] / sum(weights.values()))
    assert weighted.probability_positive == pytest.approx(weighted.probability_of_effect, abs=1e-6)
    known = estimate_effect(NUMBERS, OPEN, "v2", "v3", knowledge=Knowledge(required=[("v1", "v2"), ("v2", "v3")]))
    assert (known.identifiable, known.adjusted_for) == (True, ())


def test_the_sum_over_sites_gives_the_common_effect_only():
    whole = estimate_effect(Aggregate.of(NUMBERS), CHAIN, "v2", "v3")
    apart = estimate_effect(NUMBERS, CHAIN, "v2", "v3")
    assert whole.value == pytest.approx(apart.fixed.value, rel=1e-9)
    assert (dict(whole.by_client), whole.random, whole.heterogeneity, whole.pooling) == ({}, None, None, "fixed")
    assert "only the sum over sites is known" in whole.notes[0]
    total = Aggregate.from_total(NUMBERS.total, NUMBERS.plan)
    assert "differences in level between sites are not adjusted for" in str(estimate_effect(total, CHAIN, "v2", "v3"))


def test_where_rows_live_does_not_matter_for_the_order_of_sites():
    names = {"site0": "c", "site1": "a", "site2": "b"}
    tables = {names[client]: table for client, table in numbers(0, sizes=(200, 150, 100)).items()}
    effect, moved = (estimate_effect(one, CHAIN, "v2", "v3") for one in (NUMBERS, cohort_of(tables)))
    assert moved.value == pytest.approx(effect.value, rel=1e-9)
    assert moved.by_client["c"].value == pytest.approx(effect.by_client["site0"].value, rel=1e-9)


def test_units_change_values_as_they_should():
    tables = numbers(0, sizes=(200, 150, 100))
    scaled = {client: {**table, "v2": 10 * table["v2"] + 3} for client, table in tables.items()}
    effect, moved = (estimate_effect(cohort_of(one), CHAIN, "v2", "v3") for one in (tables, scaled))
    assert moved.value == pytest.approx(effect.value / 10, rel=1e-4)
    assert moved.standardised == pytest.approx(effect.standardised, rel=1e-4)


MIXED = cohort_of(mixed(0, sizes=(200, 150, 120)))
CLINIC = PartialGraph.from_dag(
    MIXED.plan.names, [("age", "dose"), ("dose", "group"), ("age", "score"), ("group", "score"), ("sex", "score")]
)


def test_labels_are_contrasts_and_probabilities():
    sex = estimate_effect(MIXED, CLINIC, "sex", "score")
    assert (sex.levels, sex.outcome_level, sex.curve) == (("f", "m"), None, None)
    assert sex.value == pytest.approx(-1.0, abs=0.5)
    assert sex.units == "difference of score between sex = m and sex = f"
    back = estimate_effect(MIXED, CLINIC, "sex", "score", contrast=("m", "f"))
    assert back.value == pytest.approx(-sex.value)
    group = estimate_effect(MIXED, CLINIC, "group", "score")
    assert "the two most common are compared" in group.notes[0]
    shares = [
        estimate_effect(MIXED, CLINIC, "dose", "group", outcome_level=level) for level in ("low", "middle", "high")
    ]
    assert sum(one.fixed.value for one in shares) == pytest.approx(0.0, abs=1e-9)
    assert shares[0].standardised is None
    for options in ({"contrast": ("f", "x")}, {"contrast": ("f", "f")}, {"at": (1.0, 2.0)}, {"outcome_level": "f"}):
        with pytest.raises(SettingsError):
            estimate_effect(MIXED, CLINIC, "sex", "score", **options)


def test_the_curve_follows_a_parabola():
    dag = PartialGraph.from_dag(MIXED.plan.names, [("age", "score"), ("sex", "score")])
    effect = estimate_effect(MIXED, dag, "age", "score")
    curve = effect.curve
    values = (np.array(curve.cause_values) - 50) / 12
    reference = (curve.reference - 50) / 12
    inside = np.abs(values) < 1.8
    away = np.abs(np.array(curve.differences) - (values**2 - reference**2))[inside]
    assert away.max() < 0.9
    assert curve.p_value < 1e-9
    assert any("the response is curved" in note for note in effect.notes)
    at = estimate_effect(MIXED, dag, "age", "score", at=(50.0, 62.0))
    assert at.interval[0] < 1.0 < at.interval[1]
    turned = estimate_effect(MIXED, dag, "age", "score", at=(62.0, 50.0))
    assert turned.fixed.value == pytest.approx(-at.fixed.value)


def test_straight_responses_are_not_called_curved():
    false = 0
    for seed in range(12):
        cohort = cohort_of(numbers(seed, sizes=(120, 120)))
        false += estimate_effect(cohort, CHAIN, "v3", "v4").curve.p_value < 0.05
    assert false <= 3


def test_what_cannot_be_asked_is_refused():
    for cause, outcome, options, words in (
        ("v1", "vx", {}, "there is no variable 'vx'"),
        ("v1", "v1", {}, "cause and outcome are both"),
        ("v1", "v2", {"kind": "some"}, "expected 'total' or 'direct'"),
        ("v1", "v2", {"adjust": "all"}, "adjust is 'all'"),
        ("v1", "v2", {"adjust": ["v2"]}, "adjust names 'v2'"),
        ("v1", "v2", {"at": (1.0, 1.0)}, "two different values"),
    ):
        with pytest.raises(SettingsError, match=words):
            estimate_effect(NUMBERS, CHAIN, cause, outcome, **options)
    plan = a_plan()
    noisy = add_up(noisy_chains(plan, 200), plan)
    graph = PartialGraph.from_dag(plan.names, [(plan.names[0], plan.names[1])])
    with pytest.raises(SettingsError, match="these summaries have noise"):
        estimate_effect(noisy, graph, *plan.names[:2])


def test_a_result_gives_effects_and_slopes_of_its_edges():
    result = found(numbers(0, sizes=(300, 250, 200, 200, 200)))
    effects = result.effects()
    assert {(one.cause, one.outcome) for one in effects} >= result.graph.arrows
    for edge in result.edges():
        if edge.mark and edge.source in result.graph.nodes:
            assert edge.slope_low < edge.slope < edge.slope_high
            assert edge.slope_interval == (edge.slope_low, edge.slope_high)
        else:
            assert edge.slope is None
    one = effects[0]
    assert pickle.loads(pickle.dumps(one)) == one
    sampled = result.effect("v1", "v4", samples=20)
    assert sum(each.probability for each in sampled.possible) == pytest.approx(1.0)
    by_tests = replace(result, search_result=replace(result.search_result, posterior=None))
    with pytest.raises(SettingsError, match="samples of graphs"):
        by_tests.effect("v1", "v2", samples=5)


def test_the_truth_of_simulations_is_near():
    for seed in range(3):
        study = simulate(variables=5, clients=4, rows=500, changing=1, seed=seed)
        cohort = cohort_of({client: dict(zip(study.names, t.T, strict=True)) for client, t in study.tables.items()})
        graph = PartialGraph.from_dag(study.names, study.arrows)
        for cause, outcome in sorted(study.arrows):
            effect = estimate_effect(cohort, graph, cause, outcome, changing=study.changing)
            truth = study.client_effects(cause, outcome)
            for client, one in effect.by_client.items():
                assert abs(one.value - truth[client]) < 5 * one.standard_error


def test_an_effect_shows_itself():
    effect = estimate_effect(NUMBERS, CHAIN, "v1", "v2")
    assert str(effect).startswith("total effect of v1 on v2: 1.")
    assert "site2" in str(effect)
    assert repr(effect).startswith("<Effect: total effect of v1 on v2")
    assert "<table>" in effect._repr_html_()
    assert isinstance(effect, Effect)
