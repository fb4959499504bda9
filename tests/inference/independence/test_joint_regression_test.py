"""Further rounds: joint features add up, are asked for once and within the budget, and make products visible."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations

import numpy as np
import pytest
import studies
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from benchmarks.adaptive_data import adaptive_pair
from fedcdh.cli import main
from fedcdh.cli._answers_folder import AnswersFolder
from fedcdh.cli._console import Output
from fedcdh.discovery.api import discover, discover_from
from fedcdh.errors import (
    DataError,
    DisclosureError,
    PendingAnswersError,
    PlanMismatchError,
    SettingsError,
    SummaryError,
    SummaryFormatError,
)
from fedcdh.evaluation.experiments.interaction_data import simulate_interactions
from fedcdh.evaluation.simulation import Simulation
from fedcdh.inference.independence.joint_regression_test import JointRegressionTest
from fedcdh.inference.independence.regression_test import RegressionTest
from fedcdh.inference.orthonormal_basis import Basis
from fedcdh.messages.round_files import (
    AnswerMessage,
    pack_answer,
    request_from_json,
    request_to_json,
    round_budget_from_json,
    round_budget_to_json,
    unpack_answer,
)
from fedcdh.messages.study_file import Study
from fedcdh.privacy.disclosure.joint_risk import assess_joint_risk
from fedcdh.privacy.disclosure.policy import Policy
from fedcdh.privacy.disclosure.thresholds import count_released_numbers, required_rows
from fedcdh.privacy.releases import ReleaseContext, release_answer
from fedcdh.protocols import DOMAIN, Query
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.aggregation import Cohort, add_up
from fedcdh.summaries.encoder import GRID
from fedcdh.summaries.joint import (
    JointRequest,
    JointSummary,
    LocalAnswerSource,
    RoundBudget,
    answer_request,
    joint_terms,
    plan_requests,
    to_variable_set,
)
from fedcdh.summaries.joint.request import payload_bytes
from fedcdh.summaries.plan import Categorical, Continuous, StudyPlan

BUDGET = {"max_rounds": 9, "max_bytes": 10**9}
WITHIN = frozenset({DOMAIN})


def plan_for(tables: Mapping[str, object], **budget: int) -> StudyPlan:
    return replace(studies.plan_of(tables), **(BUDGET | budget))


def cohort_for(tables: Mapping[str, object], plan: StudyPlan) -> Cohort:
    return add_up((summarize(table, plan, client) for client, table in tables.items()), plan)


def answered(
    table: object, plan: StudyPlan, client: str, *sets: tuple[str, ...], rows: int
) -> tuple[JointSummary, ...]:
    return answer_request(table, plan, client, JointRequest(plan.fingerprint, 1, sets), RoundBudget(), rows)[0]


def columns_of(study: Simulation, names: Sequence[str] = "abcdef") -> studies.Tables:
    return {client: dict(zip(names, rows.T, strict=True)) for client, rows in study.tables.items()}


class Counting:
    """A source that remembers what it was asked."""

    def __init__(self, source: LocalAnswerSource) -> None:
        self._source = source
        self.requests: list[JointRequest] = []

    def ask(self, request: JointRequest, /) -> Mapping[str, Sequence[JointSummary]]:
        self.requests.append(request)
        return self._source.ask(request)


def joint_test(
    tables: Mapping[str, object], max_sets: int = 1000, **budget: int
) -> tuple[JointRegressionTest, Counting]:
    plan = plan_for(tables, **budget)
    cohort = cohort_for(tables, plan)
    source = Counting(LocalAnswerSource(tables, plan, cohort))
    return JointRegressionTest(cohort, Basis.of(cohort), source, max_sets), source


def p_values(draw, *, again: bool) -> float:
    test = joint_test(draw.tables)[0] if again else RegressionTest(Basis.of(studies.cohort_of(draw.tables)))
    return test([replace(draw.query, given=draw.query.given | WITHIN)])[0].p_value


# Features and sums


@pytest.mark.parametrize("names", [("age", "dose"), ("age", "dose", "score"), ("age", "group"), ("group", "sex")])
def test_joint_sums_are_those_of_the_features_written_down(names):
    """The first joint feature is the product of the members' first functions: values cut at 8 scales, indicators."""
    tables = studies.mixed()
    plan, table = plan_for(tables), tables["clinic a"]
    (summary,) = answered(table, plan, "clinic a", names, rows=60)
    term = joint_terms(plan, names)[0]
    assert term.plain
    assert [which for _, which in term.factors] == [0] * len(term.factors)
    known = {variable.name: variable for variable in plan.variables}

    def first(name: str) -> np.ndarray:
        variable = known[name]
        if isinstance(variable, Categorical):
            return (np.asarray(table[name]) == variable.levels[1]).astype(float)
        return np.clip((table[name] - variable.location) / (8 * variable.scale), -1, 1)

    expected = np.rint(np.prod([first(name) for name, _ in term.factors], axis=0) * GRID)
    assert summary.own[0, 0] == int((expected**2).sum())
    assert summary.cross[0, 0] == int(expected.sum()) * GRID


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 59))
def test_answers_add_up_and_rows_have_no_order(seed, cut):
    tables = studies.mixed()
    plan, sets = plan_for(tables), (("age", "dose", "group"), ("dose", "sex"))
    order = np.random.default_rng(seed).permutation(60)
    whole = answered(tables["clinic a"], plan, "clinic a", *sets, rows=60)
    mixed = {name: column[order] for name, column in tables["clinic a"].items()}
    first = answered({n: c[:cut] for n, c in mixed.items()}, plan, "clinic a", *sets, rows=cut)
    second = answered({n: c[cut:] for n, c in mixed.items()}, plan, "clinic a", *sets, rows=60 - cut)
    assert all(a + b == c for a, b, c in zip(first, second, whole, strict=True))


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


# What is asked


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
    assert any("further rounds" in note for note in result.notes)


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


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_requests_hold_what_is_wanted_once_and_within_the_budget(data):
    """Searches that start over as often as they like: a site that answers every request stays within its plan."""
    rounds, most = data.draw(st.integers(1, 4)), data.draw(st.integers(0, 30_000))
    variables = tuple(map(Continuous, "abcd"))
    plan = StudyPlan(variables, ("north",), max_rounds=rounds, max_bytes=most)
    sets = [to_variable_set(names) for size in (2, 3) for names in combinations("abcd", size)]
    before, ledger = list[JointRequest](), RoundBudget()
    for wish in data.draw(st.lists(st.sets(st.sampled_from(sets), min_size=1), max_size=6)):
        wanted = JointRequest(plan.fingerprint, 1, tuple(sorted(wish)))
        requests = plan_requests(wanted, before, plan, rows=300)
        assert requests == plan_requests(wanted, [*before, *(r for r in requests if r not in before)], plan, rows=300)
        for request in requests:
            ledger = ledger.charge(request, plan, rows=300)  # raises beyond the budget
            before += [request] if request not in before else []
        answered = {names for request in requests for names in request.sets} & wish
        affordable = plan.max_bytes - ledger.bytes
        for names in wish - answered:
            assert len(before) == rounds or payload_bytes(plan, [names], 300) > affordable
    asked = [names for request in before for names in request.sets]
    assert len(asked) == len(set(asked))
    assert [request.number for request in before] == list(range(1, len(before) + 1))


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
    with pytest.raises(SummaryError, match=f"client {cohort.clients[1]!r} did not answer request 1 as a whole"):
        JointRegressionTest(cohort, Basis.of(cohort), one, 1000)(questions)


# What a site lets leave


def test_a_site_holds_to_the_budget_of_the_plan():
    tables = studies.numbers()
    plan = plan_for(tables, max_rounds=1, max_bytes=4000)
    first, second = (JointRequest(plan.fingerprint, 1, ((a, b),)) for a, b in (("v1", "v2"), ("v1", "v3")))
    _, ledger = answer_request(tables["site0"], plan, "site0", first, RoundBudget(), 60)
    assert answer_request(tables["site0"], plan, "site0", first, ledger, 60)[1] == ledger  # told before: no new round
    with pytest.raises(DisclosureError, match="round 2"):
        answer_request(tables["site0"], plan, "site0", second, ledger, 60)
    poor = replace(plan, max_bytes=3000)
    with pytest.raises(DisclosureError, match="bytes"):
        answer_request(tables["site0"], poor, "site0", replace(first, plan=poor.fingerprint), RoundBudget(), 60)
    none = replace(plan, max_rounds=0)
    with pytest.raises(DisclosureError, match="lets a site answer 0"):
        answer_request(tables["site0"], none, "site0", replace(first, plan=none.fingerprint), RoundBudget(), 60)


def test_a_table_that_has_changed_is_refused():
    tables = studies.numbers()
    plan = plan_for(tables)
    with pytest.raises(DataError, match="has changed"):
        answered(tables["site0"], plan, "site0", ("v1", "v2"), rows=59)


def test_rows_have_to_be_many_beside_all_that_was_told():
    tables = studies.numbers(sizes=(3000, 300, 300))
    plan = plan_for(tables)
    request = JointRequest(plan.fingerprint, 1, (("v1", "v2"), ("v1", "v3")))
    needed = required_rows(plan, request.sets)
    assert 300 < needed < 3000
    assert required_rows(plan) < 300
    assert needed >= 2 * count_released_numbers(plan, request.sets) / 4
    answers, ledger = release_answer(tables["site0"], plan, ReleaseContext("site0"), request, RoundBudget())
    assert len(answers) == 2
    assert ledger.sets == set(request.sets)
    with pytest.raises(DisclosureError, match=f"at least {needed} rows"):
        release_answer(tables["site1"], plan, ReleaseContext("site1"), request, RoundBudget())
    release_answer(
        tables["site1"], plan, ReleaseContext("site1", Policy(disclosure_control=False)), request, RoundBudget()
    )


def test_who_stands_out_by_two_variables_together_is_not_told():
    """Unremarkable in each variable, alone in the product of the two: v2 follows v1, but for one row."""
    rng = np.random.default_rng(0)
    v1 = rng.standard_normal(3000)
    v2 = v1 + 0.001 * rng.standard_normal(3000)
    v1[0], v2[0] = 2.0, -2.0
    table = {"v1": v1, "v2": v2, "v3": rng.standard_normal(3000)}
    plan = plan_for({"a": table, "b": table})
    summary = summarize(table, plan, "a")
    close = assess_joint_risk(table, plan, summary, answered(table, plan, "a", ("v1", "v2"), ("v1", "v3"), rows=3000))
    assert close["v1", "v2"].leverage > 0.99 > 0.9 > close["v1", "v3"].leverage
    request = JointRequest(plan.fingerprint, 1, (("v1", "v2"),))
    with pytest.raises(DisclosureError, match="high leverage"):
        release_answer(table, plan, ReleaseContext("a"), request, RoundBudget())


def test_a_cell_of_three_labels_with_few_people_is_not_told():
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 2, (3, 4000)).astype(bool)
    codes[2] |= codes[0] & codes[1]
    codes[2, np.flatnonzero(codes[0] & codes[1])[:3]] = False
    table = {**{n: np.where(c, "y", "n") for n, c in zip("abc", codes, strict=True)}, "x": rng.standard_normal(4000)}
    plan = plan_for({"one": table, "two": table})
    summary = summarize(table, plan, "one")
    Policy().check_summary(summary, plan)  # no pair of labels is rare
    request = JointRequest(plan.fingerprint, 1, (("a", "b"),))
    close = assess_joint_risk(table, plan, summary, answer_request(table, plan, "one", request, RoundBudget(), 4000)[0])
    assert close["a", "b"].people == 3
    with pytest.raises(DisclosureError, match="3 people"):
        release_answer(table, plan, ReleaseContext("one"), request, RoundBudget())


def test_answers_are_checked_against_the_summary():
    tables = studies.numbers()
    plan = plan_for(tables)
    summary = summarize(tables["site0"], plan, "site0")
    (answer,) = answered(tables["site0"], plan, "site0", ("v1", "v2"), rows=60)
    answer.check(plan, summary)
    (other,) = answered(tables["site1"], plan, "site0", ("v1", "v2"), rows=50)
    with pytest.raises(SummaryError, match="the table has changed"):
        other.check(plan, summary)
    with pytest.raises(SummaryError, match="negative"):
        replace(answer, own=answer.own - 3 * np.diag(answer.own.diagonal())).check(plan, summary)
    with pytest.raises(SummaryError, match="same rows"):
        replace(answer, own=answer.own // 10**4).check(plan, summary)
    with pytest.raises(SummaryError, match="larger than"):
        replace(answer, cross=answer.cross + 61 * GRID**2)
    with pytest.raises(PlanMismatchError):
        answer.check(replace(plan, study="another"), summary)


# As files


def test_files_of_further_rounds_come_back_as_they_were():
    tables = studies.mixed()
    plan = plan_for(tables)
    request = JointRequest(plan.fingerprint, 2, (("age", "dose"), ("age", "dose", "group")))
    answers, ledger = answer_request(tables["clinic b"], plan, "clinic b", request, RoundBudget(), 45)
    assert request_from_json(request_to_json(request), plan) == request
    assert round_budget_from_json(round_budget_to_json(ledger, plan), plan) == ledger
    message = AnswerMessage(request.digest, answers)
    blob = pack_answer(message, plan)
    again = unpack_answer(blob, plan, request)
    assert all(a == b for a, b in zip(again.answers, answers, strict=True))
    assert pack_answer(again, plan) == blob
    with pytest.raises(PlanMismatchError):
        unpack_answer(blob, plan, JointRequest(plan.fingerprint, 2, (("age", "dose"),)))


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_a_changed_byte_is_found(data):
    tables = studies.numbers()
    plan = plan_for(tables)
    request = JointRequest(plan.fingerprint, 1, (("v1", "v2"),))
    answers, _ = answer_request(tables["site0"], plan, "site0", request, RoundBudget(), 60)
    blob = bytearray(pack_answer(AnswerMessage(request.digest, answers), plan))
    place, other = data.draw(st.integers(0, len(blob) - 1)), data.draw(st.integers(1, 255))
    blob[place] ^= other
    with pytest.raises((SummaryError, PlanMismatchError)):
        unpack_answer(bytes(blob), plan, request)
    text = bytearray(request_to_json(request).encode())
    text[place % len(text)] ^= other
    with pytest.raises((SummaryError, PlanMismatchError)):
        request_from_json(bytes(text), plan)


@pytest.mark.parametrize("blob", [b"", b"\0" * 40, b"\x08" + b"\0" * 7 + b"{}      "])
def test_what_is_no_answer_is_refused(blob):
    plan = plan_for(studies.numbers())
    with pytest.raises(SummaryFormatError):
        unpack_answer(blob, plan, JointRequest(plan.fingerprint, 1, (("v1", "v2"),)))


def test_a_study_by_file_finds_what_one_in_process_finds(tmp_path, monkeypatch, capsys):
    """The whole way: discover writes a request, sites answer, and so on until nothing more is asked."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    clients = ("north", "south")
    for client in clients:
        a, b, *noise = rng.uniform(-1.7, 1.7, (4, 2500))
        x, y = (a + b + a * b + e for e in noise)
        rows = np.column_stack([a, b, x, y])
        np.savetxt(f"{client}.csv", rows, delimiter=",", header="a,b,x,y", comments="", fmt="%.17g")
        assert main(["profile", f"{client}.csv", "--client", client, "-q"]) == 0
    assert main(["plan", "north.profile.json", "south.profile.json", "--max-rounds", "4", "-q"]) == 0
    for client in clients:
        assert main(["summarize", "study.plan.json", f"{client}.csv", "--client", client, "-q"]) == 0
    search = ["discover", "study.plan.json", "north.summary", "south.summary", "--method", "constraint", "-q"]
    assert main([*search, "-o", "one"]) == 0
    for number in range(1, 5):
        if main([*search, "-o", "many", "--answers", "rounds"]) == 0:
            break
        for client in clients:
            asked = ["rounds", "answer", "study.plan.json", f"rounds/request-{number:03d}.json", f"{client}.csv"]
            into = ["-o", f"rounds/{client}.answer-{number:03d}", "-q"]
            assert main([*asked, "--client", client, *into]) == 0
    assert main(["rounds", "request", *search[1:4], "--answers", "rounds", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["more"] is False
    edges = {which: json.loads((tmp_path / which / "result.json").read_text())["edges"] for which in ("one", "many")}
    linked = {which: {frozenset((e["source"], e["target"])) for e in es if e["mark"]} for which, es in edges.items()}
    assert frozenset("xy") in linked["one"]
    assert linked["many"] == {frozenset(pair) for pair in ("ax", "bx", "ay", "by")}
    assert main([*search, "-o", "stable", "--answers", "rounds", "--stability"]) == 2  # before it searches
    assert "no site answers again. Leave out --stability" in capsys.readouterr().err


def test_a_folder_of_answers_is_that_of_a_cohort_and_keeps_what_was_asked_before(tmp_path):
    """Not all clients of the plan are in the cohort; what they answered is not in the way, nor waited for."""
    tables = studies.numbers()
    study = Study(plan_for(tables))
    plan, rest = study.plan, {client: tables[client] for client in ("site0", "site2")}
    summaries = [summarize(table, plan, client) for client, table in rest.items()]
    folder = AnswersFolder(tmp_path, study, add_up(summaries, plan, without=["site1"]), None, Output(True, False))
    first = JointRequest(plan.fingerprint, 1, (("v1", "v2"),))
    with pytest.raises(PendingAnswersError, match=r"Answers of site0, site2 to .*request-001\.json"):
        folder.ask(first)
    for client, rows in (("site0", 60), ("site1", 50), ("site2", 40)):
        parts = answered(tables[client], plan, client, ("v1", "v2"), rows=rows)
        (tmp_path / f"{client}.answer-001").write_bytes(pack_answer(AnswerMessage(first.digest, parts), plan))
    assert folder.ask(first).keys() == rest.keys()
    more = JointRequest(plan.fingerprint, 1, (("v1", "v2"), ("v1", "v3")))
    with pytest.raises(PendingAnswersError, match=r"request-002\.json are missing; it asks about 1 sets"):
        folder.ask(more)
    for client, rows in (("site0", 60), ("site2", 40)):
        parts = answered(tables[client], plan, client, ("v1", "v3"), rows=rows)
        second = JointRequest(plan.fingerprint, 2, (("v1", "v3"),))
        (tmp_path / f"{client}.answer-002").write_bytes(pack_answer(AnswerMessage(second.digest, parts), plan))
    assert [part.names for part in folder.ask(more)["site2"]] == [("v1", "v2"), ("v1", "v3")]
    other = Study(replace(plan, study="another"))
    with pytest.raises(PlanMismatchError, match="choose another folder"):
        replace(folder, study=other).ask(replace(first, plan=other.plan.fingerprint))


# What it is good for


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
    result = discover_from(cohort, plan, method="constraint", source=LocalAnswerSource(tables, plan, cohort))
    assert result.search_result.spent.rounds == 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", [{}, {"differing": True}, {"labels": 1}])
@pytest.mark.parametrize("conditioning", [1, 2, 3])
@pytest.mark.parametrize("mechanism", ["linear", "sin", "square", "product"])
def test_the_level_holds(mechanism, conditioning, kind):
    draws = (adaptive_pair(mechanism, conditioning=conditioning, seed=seed, **kind) for seed in range(200))
    rejected = sum(p_values(draw, again=True) < 0.05 for draw in draws)
    assert stats.binom.sf(rejected - 1, 200, 0.08) > 0.01, rejected / 200
