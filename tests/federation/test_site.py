"""A client: codes instead of texts, and the limits of policy and ledger on every answer."""

from __future__ import annotations

import logging
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from federations import (
    BUDGET,
    CANARY,
    UNCONTROLLED,
    ask,
    canary_node,
    plan_ab,
    plan_abc,
    requests,
    round_request,
    study_bytes,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from studies import numbers

from fedcdh.errors import ExitCode
from fedcdh.federation import (
    ClientNode,
)
from fedcdh.messages.answer_file import unpack_answer
from fedcdh.messages.envelope import (
    ANSWER,
    PROFILE,
    REFUSAL,
    SUMMARY,
    Envelope,
    ProfileRequest,
    sha256_hex,
)
from fedcdh.messages.profile_file import profile_from_json
from fedcdh.messages.signing import SigningKey, sign
from fedcdh.messages.study_file import Study
from fedcdh.messages.summary_file import unpack_summary
from fedcdh.privacy.disclosure.policy import Policy
from fedcdh.privacy.ledger.gate import ReleaseGate, spent_round_budget
from fedcdh.privacy.ledger.ledger_file import LEDGER_FILE_NAME, ReleaseLedger
from fedcdh.summaries.joint import JointRequest, RoundBudget
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.variables import Continuous


def test_the_own_names_of_a_site_do_not_leave(tmp_path):
    site = canary_node(tmp_path)
    for kind, content in requests(["a", "b"]):
        reply = site.answer(Envelope(kind, content).to_bytes())
        assert Envelope.from_bytes(reply).kind == kind
        assert CANARY.encode() not in reply


TROUBLES = {
    "withheld": ({"policy": f'excluded_variables = ["{CANARY} a"]'}, ExitCode.POLICY),
    "too few rows": ({"policy": "min_rows = 5000"}, ExitCode.POLICY),
    "labels for numbers": ({"cells": CANARY}, ExitCode.DATA),
    "plan not accepted": ({"policy": 'plans = ["000000000000"]'}, ExitCode.POLICY),
}


@pytest.mark.parametrize("trouble", TROUBLES)
def test_errors_leave_as_codes_and_stay_in_the_log_as_sentences(trouble, tmp_path, caplog):
    given, code = TROUBLES[trouble]
    site = canary_node(tmp_path, **given)
    names = ["a", "b", "c"] if trouble == "labels for numbers" else ["a", "b"]
    plan = Study(StudyPlan(tuple(map(Continuous, names)), ("north",))).to_json().encode()
    reply = site.answer(Envelope(SUMMARY, plan).to_bytes())
    found = Envelope.from_bytes(reply)
    assert (found.kind, found.code, found.content, found.signature) == (REFUSAL, code, b"", b"")
    assert CANARY.encode() not in reply
    (logged,) = [one for one in caplog.records if one.levelno == logging.ERROR]
    assert f"code {code}" in logged.getMessage()


def test_missing_files_are_a_code(tmp_path):
    site = canary_node(tmp_path)
    for path in (tmp_path / f"{CANARY} folder").glob("*.csv"):
        path.unlink()
    for kind, content in requests(["a", "b"]):
        reply = site.answer(Envelope(kind, content).to_bytes())
        assert Envelope.from_bytes(reply).code in (ExitCode.DATA, ExitCode.FILES)
        assert CANARY.encode() not in reply
    broken = replace(site, rows=lambda: 1 / 0)
    assert ask(broken, *requests(["a"])[0]).code == ExitCode.INTERNAL


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_a_site_answers_anything_with_a_message(data):
    tables = numbers(sizes=(30,))
    site = ClientNode("site0", lambda: tables["site0"], Policy())
    plan = study_bytes(tables)
    asked = data.draw(st.sampled_from([(SUMMARY, plan), (ANSWER, round_request(plan, sets=(("v1", "v2"),)))]))
    good = Envelope(*asked).to_bytes()
    place = data.draw(st.integers(0, len(good) - 1))
    changed = [good[:place], good[:place] + b"\xff" + good[place + 1 :], good + b"x", good.replace(b"0", b"")]
    request = data.draw(
        st.sampled_from(changed)
        | st.binary(max_size=200)
        | st.builds(lambda kind, content: Envelope(kind, content).to_bytes(), st.text(max_size=20), st.binary())
    )
    reply = Envelope.from_bytes(site.answer(request))
    assert reply.in_reply_to == sha256_hex(request)
    assert (reply.kind == REFUSAL) == (reply.code != 0)
    assert reply.code != ExitCode.INTERNAL


def test_the_coordinator_chooses_variables_and_the_site_offers_them(tmp_path):
    site = canary_node(tmp_path, variables='["a", "b"]')
    own = profile_from_json(ask(site, PROFILE, ProfileRequest().to_bytes()).content).profile
    assert list(own.columns) == ["a", "b"]
    wanted = ProfileRequest(("c", "a"), {"c": "categorical"})
    asked = profile_from_json(ask(site, PROFILE, wanted.to_bytes()).content).profile
    assert {name: column.kind for name, column in asked.columns.items()} == {"c": "categorical", "a": "continuous"}


def test_the_codes_of_a_client_are_the_exit_codes():
    plan = plan_ab()
    site = ClientNode("north", lambda: numbers(sizes=(200,), count=2)["site0"], UNCONTROLLED)
    assert ask(site, SUMMARY, plan[:-2]).code == ExitCode.PLAN
    assert ask(site, SUMMARY, plan, sign(SigningKey.generate(), "summary", plan).encode()).code == ExitCode.SIGNATURE
    assert ask(site, "moments", b"").code == ExitCode.REFUSED


def controlled_node(tmp_path: Path, max_plans: int = 1) -> ClientNode:
    rows = numbers(sizes=(400,), count=2)["site0"]
    gate = ReleaseGate(ReleaseLedger(tmp_path / LEDGER_FILE_NAME), max_plans=max_plans)
    return ClientNode("north", lambda: {"a": rows["v1"], "b": rows["v2"]}, Policy(min_rows=50), gate=gate)


def test_a_client_answers_max_plans_plans_each_as_often_as_asked(tmp_path):
    first, second = plan_ab(), plan_ab(study="another")
    site = controlled_node(tmp_path)
    said = ask(site, SUMMARY, first)
    assert unpack_summary(said.content, Study.from_json(first).plan).summary.clients == ("north",)
    assert ask(controlled_node(tmp_path), SUMMARY, first).content == said.content
    assert ask(site, SUMMARY, second).code == ExitCode.POLICY
    assert ask(controlled_node(tmp_path, max_plans=2), SUMMARY, second).code == 0
    assert ask(site, SUMMARY, second).code == 0, "what has left may leave again"


@pytest.mark.parametrize("kind", [PROFILE, SUMMARY])
def test_nothing_is_released_about_changed_rows(kind, tmp_path):
    site, content = controlled_node(tmp_path), dict(requests(["a", "b"]))[kind]
    assert ask(site, kind, content).code == 0
    rows = {name: column[:-1] for name, column in site.rows().items()}
    assert ask(replace(site, rows=lambda: rows), kind, content).code == ExitCode.POLICY
    assert ask(site, kind, content).code == 0
    free = replace(site, policy=UNCONTROLLED, rows=lambda: rows)
    assert ask(free, kind, content).code == 0


def test_of_two_simultaneous_plans_one_is_answered(tmp_path):
    codes: list[int] = []
    plans = [plan_ab(study=str(k)) for k in range(4)]
    sites = [controlled_node(tmp_path) for _ in plans]
    threads = [
        threading.Thread(target=lambda site=site, plan=plan: codes.append(ask(site, SUMMARY, plan).code))
        for site, plan in zip(sites, plans, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(codes) == [0, ExitCode.POLICY, ExitCode.POLICY, ExitCode.POLICY]


def test_a_ledger_that_cannot_be_read_lets_nothing_leave(tmp_path):
    (tmp_path / LEDGER_FILE_NAME).write_text("{}")
    assert ask(controlled_node(tmp_path), SUMMARY, plan_ab()).code == ExitCode.POLICY
    assert ask(controlled_node(tmp_path), PROFILE, ProfileRequest(("a", "b")).to_bytes()).code == ExitCode.POLICY


def adaptive_node(tmp_path: Path, rows: int = 3000, max_plans: int = 1) -> ClientNode:
    table = numbers(sizes=(rows,), count=3)["site0"]
    gate = ReleaseGate(ReleaseLedger(tmp_path / LEDGER_FILE_NAME), max_plans=max_plans)
    return ClientNode("north", lambda: dict(zip("abc", table.values(), strict=True)), gate=gate)


def round_budget(node: ClientNode, plan: StudyPlan) -> RoundBudget:
    return spent_round_budget(node.gate.ledger.entries(), plan)


def test_adaptive_rounds_need_a_released_summary_and_stay_within_the_budget(tmp_path):
    plan, other = plan_abc(**BUDGET), plan_abc(**BUDGET, study="another")
    site = adaptive_node(tmp_path)
    assert ask(site, ANSWER, round_request(plan)).code == ExitCode.POLICY, "no summary yet"
    assert ask(site, SUMMARY, plan).code == 0
    said = ask(site, ANSWER, round_request(plan))
    agreed, request = Study.from_json(plan).plan, JointRequest(Study.from_json(plan).plan.fingerprint, 1, (("a", "b"),))
    assert unpack_answer(said.content, agreed, request).client == "north"
    spent = round_budget(site, agreed)
    assert spent.sets == {("a", "b")}
    assert ask(adaptive_node(tmp_path), ANSWER, round_request(plan, number=7)).content == said.content, (
        "released before"
    )
    assert ask(site, ANSWER, round_request(plan, sets=(("a", "c"),))).code == ExitCode.POLICY, "a second round"
    assert round_budget(site, agreed) == spent
    assert ask(site, ANSWER, round_request(other)).code == ExitCode.POLICY, "another plan"
    none = plan_abc(study="none")
    assert ask(adaptive_node(tmp_path, max_plans=2), SUMMARY, none).code == 0
    assert ask(site, ANSWER, round_request(none)).code == ExitCode.POLICY, "no budget"


def test_adaptive_rounds_are_held_to_policy_and_rows(tmp_path):
    plan = plan_abc(**BUDGET)
    site = adaptive_node(tmp_path)
    assert ask(site, SUMMARY, plan).code == 0
    rows = {name: column[:-1] for name, column in site.rows().items()}
    assert ask(replace(site, rows=lambda: rows), ANSWER, round_request(plan)).code == ExitCode.POLICY
    assert (
        ask(replace(site, policy=Policy(excluded_variables=frozenset("c"))), ANSWER, round_request(plan)).code
        == ExitCode.POLICY
    )
    assert ask(replace(site, policy=Policy(min_rows=5000)), ANSWER, round_request(plan)).code == ExitCode.POLICY
    assert ask(replace(site, gate=None), ANSWER, round_request(plan)).code == ExitCode.POLICY
    few = adaptive_node(tmp_path / "few", rows=300)
    assert ask(few, SUMMARY, plan).code == 0
    assert ask(few, ANSWER, round_request(plan)).code == ExitCode.POLICY, "too many numbers for so few rows"
    for node in (site, few):
        assert round_budget(node, Study.from_json(plan).plan) == RoundBudget(), "nothing was released"
    assert ask(replace(few, policy=UNCONTROLLED), ANSWER, round_request(plan)).code == 0


def test_an_answer_is_in_the_ledger_before_it_leaves(tmp_path, monkeypatch):
    plan = plan_abc(**BUDGET)
    site = adaptive_node(tmp_path)
    assert ask(site, SUMMARY, plan).code == 0
    with monkeypatch.context() as patch:
        patch.setattr("fedcdh.federation.site.pack_answer", lambda *given: (_ for _ in ()).throw(OSError("gone")))
        assert ask(site, ANSWER, round_request(plan)).code == ExitCode.FILES
    assert ask(site, ANSWER, round_request(plan, sets=(("a", "c"),))).code == ExitCode.POLICY
    assert ask(site, ANSWER, round_request(plan)).code == 0
    ledger = tmp_path / LEDGER_FILE_NAME
    ledger.write_bytes(ledger.read_bytes().replace(b'"b"', b'"c"'))
    assert ask(site, ANSWER, round_request(plan)).code == ExitCode.POLICY, "a changed ledger"


def test_of_two_simultaneous_requests_one_is_answered(tmp_path):
    plan, codes = plan_abc(**BUDGET), []
    assert ask(adaptive_node(tmp_path), SUMMARY, plan).code == 0
    asked = [round_request(plan, sets=(pair,)) for pair in (("a", "b"), ("a", "c"), ("b", "c"))]
    threads = [
        threading.Thread(target=lambda one=one: codes.append(ask(adaptive_node(tmp_path), ANSWER, one).code))
        for one in asked
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(codes) == [0, ExitCode.POLICY, ExitCode.POLICY]


def test_several_clients_may_share_one_ledger(tmp_path):
    first = controlled_node(tmp_path)
    rows = numbers(seed=7, sizes=(300,), count=2)["site0"]
    second = replace(first, client="south", rows=lambda: {"a": rows["v1"], "b": rows["v2"]})
    for node in (first, second, first, second):
        for kind, content in requests(["a", "b"]):
            assert ask(node, kind, content).code == 0
    other = plan_ab(study="another")
    assert [ask(node, SUMMARY, other).code for node in (first, second)] == [ExitCode.POLICY] * 2
