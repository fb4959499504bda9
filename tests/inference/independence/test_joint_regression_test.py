"""Tests with joint features: requested once and within the budget, federated as pooled, and blind to order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import studies
from round_studies import BUDGET, WITHIN, answered, cohort_for, columns_of, joint_test, plan_for
from scipy import stats

from benchmarks.adaptive_data import adaptive_pair
from fedcdh.discovery.api import discover, discover_from
from fedcdh.errors import (
    SettingsError,
    SummaryError,
)
from fedcdh.evaluation.experiments.interaction_data import simulate_interactions
from fedcdh.inference.independence.joint_regression_test import JointRegressionTest
from fedcdh.inference.independence.regression_test import RegressionTest
from fedcdh.inference.orthonormal_basis import Basis
from fedcdh.protocols import DOMAIN, Query
from fedcdh.summaries.joint import (
    JointRequest,
    JointSummary,
    LocalAnswerSource,
    joint_terms,
)
from fedcdh.summaries.joint.request import payload_bytes
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.variables import Categorical


def p_values(draw, *, again: bool) -> float:
    test = joint_test(draw.tables)[0] if again else RegressionTest(Basis.of(studies.cohort_of(draw.tables)))
    return test([replace(draw.query, given=draw.query.given | WITHIN)])[0].p_value


def test_federated_is_pooled():
    """One client with all rows, asked without the domain, is answered from the very same sums."""
    tables = studies.mixed()
    plan = plan_for(tables)
    pooled = {n: np.concatenate([t[n] for t in tables.values()]) for n in plan.names}
    names = ("age", "dose", "group")
    parts = [answered(t, plan, c, names, rows=len(t["age"]))[0] for c, t in tables.items()]
    (whole,) = answered(pooled, plan, "clinic a", names, rows=sum(part.rows for part in parts))
    assert np.array_equal(sum(part.own for part in parts), whole.own)
    assert np.array_equal(sum(part.cross for part in parts), whole.cross)


def test_the_order_of_clients_rows_and_questions_is_irrelevant():
    named = columns_of(simulate_interactions(seed=3, rows=100, clients=4))
    turned = {client: {n: c[::-1] for n, c in named[client].items()} for client in reversed(named)}
    questions = [Query("a", "b", frozenset(given) | WITHIN) for given in ("cd", "ce", "def")]
    questions += [Query(DOMAIN, "a", frozenset("cd"))]
    there, back = joint_test(named)[0](questions), joint_test(turned)[0](questions[::-1])[::-1]
    assert [answer.p_value for answer in there] == pytest.approx([answer.p_value for answer in back], abs=1e-9)
    alone = [joint_test(named)[0]([question])[0].p_value for question in questions]
    assert alone == [answer.p_value for answer in there]


def test_units_do_not_matter():
    tables = {
        c: dict(zip("abcdef", r.T, strict=True))
        for c, r in simulate_interactions(seed=4, rows=100, clients=4).tables.items()
    }
    scaled = {c: {n: 40 + 0.01 * v if n in "ac" else v for n, v in t.items()} for c, t in tables.items()}
    questions = [Query("a", "b", frozenset("cd") | WITHIN), Query("b", "e", frozenset("acd") | WITHIN)]
    first, second = (joint_test(t)[0](questions) for t in (tables, scaled))
    assert [a.p_value for a in first] == pytest.approx([a.p_value for a in second], rel=1e-4)


def test_a_batch_is_one_request_and_no_set_is_asked_twice():
    tables = {
        c: dict(zip("abcdef", r.T, strict=True))
        for c, r in simulate_interactions(seed=5, rows=60, clients=4).tables.items()
    }
    test, source = joint_test(tables)
    ask = partial(Query, given=frozenset("cd") | WITHIN)
    test([ask("a", "b"), ask("a", "e"), Query("a", "b", frozenset("ce") | WITHIN), Query("a", "b", WITHIN)])
    assert [request.sets for request in source.requests] == [(("c", "d"), ("c", "e"))]
    test([ask("b", "e"), Query(DOMAIN, "a", frozenset("cd"))])
    assert len(source.requests) == 1
    test([Query("a", "b", frozenset("cdf") | WITHIN), ask("b", "f")])
    assert [request.sets for request in source.requests][1:] == [(("c", "d", "f"),)]
    assert test.spent.rounds == 2
    assert test.spent.sets == 3


def test_one_round_for_a_level_of_the_search_and_one_for_directions():
    study = simulate_interactions(seed=2, rows=200, clients=4)
    result = discover(study.tables, names=study.names, method="constraint", rounds="adaptive")
    deeper = len(result.skeleton.queries_per_level) - 2
    assert 1 <= result.search_result.spent.rounds <= deeper + 1
    assert any("adaptive rounds" in note for note in result.notes)


def test_with_one_condition_nothing_is_asked():
    test, source = joint_test(studies.numbers())
    test([Query("v1", "v2", frozenset({"v3"}) | WITHIN), Query("v1", "v2", WITHIN), Query(DOMAIN, "v1")])
    assert not source.requests
    assert test.spent.rounds == test.spent.bytes == 0


@pytest.mark.parametrize("budget", [{"max_rounds": 1}, {"max_bytes": 20_000}, {"max_sets": 2}])
def test_beyond_what_may_be_asked_the_one_message_has_to_do(budget):
    study = simulate_interactions(seed=2, rows=60, clients=4)
    tables = columns_of(study, study.names)
    max_sets = budget.pop("max_sets", 1000)
    test, source = joint_test(tables, max_sets, **budget)
    x, y, *others = study.names
    pairs = [frozenset({a, b}) | WITHIN for a in others for b in others if a < b]
    answers = test([Query(x, y, given) for given in pairs])
    test([Query(x, y, frozenset(others[:3]) | WITHIN)])
    asked = {names for request in source.requests for names in request.sets}
    assert len(asked) <= max_sets
    assert len(source.requests) == 1
    assert payload_bytes(test._cohort.plan, asked, 60) <= test._cohort.plan.max_bytes
    assert test.spent.not_asked == len(pairs) + 1 - len(asked)
    free = joint_test(tables)[0]([answer.query for answer in answers])
    same = [a.p_value == b.p_value for a, b in zip(answers, free, strict=True)]
    assert all(here for here, given in zip(same, pairs, strict=True) if tuple(sorted(given - WITHIN)) in asked)


def test_labels_with_too_many_levels_are_not_asked_about():
    variables = (Categorical("a", tuple(map(str, range(40)))), Categorical("b", tuple(map(str, range(40)))))
    plan = StudyPlan(variables, ("north",), **BUDGET)
    assert joint_terms(plan, ("a", "b")) == ()
    with pytest.raises(SummaryError, match="too many levels"):
        JointRequest(plan.fingerprint, 1, (("a", "b"),)).check(plan)


class Sparing:
    """A source that leaves a set out: for all clients, or for one."""

    def __init__(self, source: LocalAnswerSource, left_out: tuple[str, ...], clients: Sequence[str]) -> None:
        self._source, self._left_out, self._clients = source, left_out, clients

    def ask(self, request: JointRequest, /) -> Mapping[str, Sequence[JointSummary]]:
        found = self._source.ask(request)
        return {
            client: [part for part in parts if client not in self._clients or part.names != self._left_out]
            for client, parts in found.items()
        }


def test_what_a_source_may_not_ask_is_left_to_the_one_message():
    study = simulate_interactions(seed=5, rows=60, clients=3)
    tables = columns_of(study)
    plan = plan_for(tables)
    cohort = cohort_for(tables, plan)
    questions = [Query("a", "b", frozenset(given) | WITHIN) for given in ("cd", "ce")]
    whole = joint_test(tables)[0](questions)
    source = Sparing(LocalAnswerSource(tables, plan, cohort), ("c", "d"), cohort.clients)
    test = JointRegressionTest(cohort, Basis.of(cohort), source, 1000)
    found = test(questions)
    assert (test.spent.rounds, test.spent.sets, test.spent.not_asked) == (1, 1, 1)
    assert found[1] == whole[1]
    none = joint_test(tables, max_rounds=0)[0](questions)
    assert found[0] == none[0]
    one = Sparing(LocalAnswerSource(tables, plan, cohort), ("c", "d"), cohort.clients[1:2])
    with pytest.raises(SummaryError, match=f"client {cohort.clients[1]!r} answered only a part of request 1"):
        JointRegressionTest(cohort, Basis.of(cohort), one, 1000)(questions)


def test_products_look_like_dependence_to_one_message_and_not_to_two():
    draws = [adaptive_pair("product", conditioning=2, clients=4, rows=200, seed=seed) for seed in range(10)]
    assert all(p_values(draw, again=False) < 0.05 for draw in draws)
    assert sum(p_values(draw, again=True) < 0.05 for draw in draws) <= 3


def test_dependence_beyond_a_product_is_seen():
    make = partial(adaptive_pair, "product", conditioning=2, clients=4, rows=200)
    draws = [make(dependence=0.3, seed=seed) for seed in range(5)]
    assert all(p_values(draw, again=True) < 0.05 for draw in draws)


def test_only_tests_ask_again():
    tables = studies.numbers()
    with pytest.raises(SettingsError, match="constraint"):
        discover(tables, method="evidence", rounds="adaptive")
    with pytest.raises(SettingsError, match="rounds"):
        discover(tables, method="constraint", rounds="many")
    result = discover(tables, method="constraint", rounds="adaptive")
    with pytest.raises(SettingsError, match="stability"):
        result.stability()


def test_a_plan_without_a_budget_means_one_message():
    tables = studies.numbers()
    plan = studies.plan_of(tables)
    cohort = cohort_for(tables, plan)
    result = discover_from(
        cohort, plan, method="constraint", source=LocalAnswerSource(tables, plan, cohort), rounds="adaptive"
    )
    assert result.search_result.spent.rounds == 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", [{}, {"differing": True}, {"labels": 1}])
@pytest.mark.parametrize("conditioning", [1, 2, 3])
@pytest.mark.parametrize("mechanism", ["linear", "sin", "square", "product"])
def test_the_level_holds(mechanism, conditioning, kind):
    draws = (adaptive_pair(mechanism, conditioning=conditioning, seed=seed, **kind) for seed in range(200))
    rejected = sum(p_values(draw, again=True) < 0.05 for draw in draws)
    assert stats.binom.sf(rejected - 1, 200, 0.08) > 0.01, rejected / 200
