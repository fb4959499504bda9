"""The terms of a session: enough clients, a key for each, a sufficient threshold."""

from __future__ import annotations

from dataclasses import replace

import pytest
from masked_answers import AnswerRoom
from masked_studies import a_study, groups_of

from fedcdh._io.strict_json import to_canonical_json
from fedcdh.errors import PlanMismatchError, SecureAggregationError, SignatureError, SummaryFormatError
from fedcdh.messages.round_files import request_to_json
from fedcdh.messages.signing import SigningKey
from fedcdh.messages.study_file import Study
from fedcdh.privacy.secure_aggregation import terms as terms_module
from fedcdh.privacy.secure_aggregation.codec import read_message
from fedcdh.privacy.secure_aggregation.terms import SecAggTerms
from fedcdh.summaries.joint import JointRequest
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.variables import Categorical


def test_two_sites_are_too_few():
    with pytest.raises(SecureAggregationError, match="2 clients"):
        SecAggTerms.of(a_study(2)[0])


def test_every_site_needs_a_key_of_its_own():
    study, keys, _ = a_study(3)
    with pytest.raises(SignatureError, match="site2"):
        SecAggTerms.of(replace(study, keys={c: study.keys[c] for c in ("site0", "site1")}))
    with pytest.raises(SignatureError, match="same key"):
        SecAggTerms.of(replace(study, keys=dict.fromkeys(keys, keys["site0"].public)))


@pytest.mark.parametrize(("sites", "threshold"), [(3, 3), (4, 3), (5, 4), (6, 5), (9, 7), (10, 7), (100, 67)])
def test_more_than_two_thirds_open_the_sum(sites, threshold):
    clients = tuple(f"c{k}" for k in range(sites))
    keys = {client: SigningKey.generate().public for client in clients}
    study = Study(StudyPlan((Categorical("sex", ("f", "m")),), clients), keys=keys)
    assert SecAggTerms.of(study).threshold == threshold
    with pytest.raises(SecureAggregationError, match="threshold"):
        SecAggTerms.of(study, threshold=sites // 2 if sites > 5 else 2)


@pytest.mark.parametrize(
    ("sites", "threshold", "good"),
    [(3, 2, False), (3, 3, True), (6, 3, False), (6, 4, True), (6, 6, True), (6, 7, False)],
)
def test_the_threshold_is_more_than_half_and_at_most_all(sites, threshold, good):
    study = a_study(sites)[0]
    if good:
        assert SecAggTerms.of(study, threshold=threshold).threshold == threshold
    else:
        with pytest.raises(SecureAggregationError, match="Expected more than half"):
            SecAggTerms.of(study, threshold=threshold)


def test_a_group_has_three_clients_at_least():
    study = a_study(6)[0]
    clients = study.plan.clients
    SecAggTerms.of(study, groups={client: "ab"[k // 3] for k, client in enumerate(clients)})
    with pytest.raises(SecureAggregationError, match="Expected at least 3"):
        SecAggTerms.of(study, groups={client: "ab"[k // 4] for k, client in enumerate(clients)})


def test_the_number_of_clients_has_a_limit(monkeypatch):
    monkeypatch.setattr(terms_module, "MAX_CLIENTS", 4)
    SecAggTerms.of(a_study(4)[0])
    with pytest.raises(SecureAggregationError, match="Expected 3 to 4"):
        SecAggTerms.of(a_study(5)[0])


def test_as_many_clients_are_present_as_the_terms_say():
    terms = SecAggTerms.of(a_study(6)[0], threshold=4)
    terms.check_present(("site0", "site1", "site2", "site3"), "sent keys")
    with pytest.raises(SecureAggregationError, match=r"3 clients sent keys .* at least 4"):
        terms.check_present(("site0", "site1", "site2"), "sent keys")
    study = a_study(6)[0]
    grouped = SecAggTerms.of(study, threshold=4, groups=groups_of(study, 2))
    grouped.check_present(study.plan.clients, "sent keys")
    with pytest.raises(SecureAggregationError, match="Of the group 'group 0' only"):
        grouped.check_present(study.plan.clients[1:], "sent keys")


def test_terms_carry_a_request_and_are_otherwise_as_they_were():
    room = AnswerRoom.after_sum(3)
    plain, terms = SecAggTerms.of(room.study), room.terms()
    assert plain.residuals is None
    assert "request" not in plain.document()
    assert terms.residuals == room.request
    found = read_message(terms.to_bytes(), room.study.plan, SecAggTerms)
    assert (found, found.digest) == (terms, terms.digest)
    empty = to_canonical_json({**plain.document(), "request": ""}).encode()
    with pytest.raises(SecureAggregationError, match="canonical"):
        read_message(empty, room.study.plan, SecAggTerms)


def test_requests_that_no_sum_can_answer_are_refused():
    room = AnswerRoom.after_sum(3)
    with pytest.raises(SecureAggregationError, match="with groups"):
        SecAggTerms.of(room.study, request=room.request, groups=dict.fromkeys(room.study.plan.clients, "all"))
    with pytest.raises(PlanMismatchError):
        SecAggTerms.of(room.study, request=replace(room.request, plan="0" * 64))
    joint = request_to_json(JointRequest(room.study.plan.fingerprint, 1, (("x", "y"),)))
    with pytest.raises(SecureAggregationError, match="joint features"):
        replace(room.terms(), request=joint).check(room.study)
    with pytest.raises(SummaryFormatError):
        replace(room.terms(), request="{}").check(room.study)
