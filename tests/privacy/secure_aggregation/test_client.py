"""The client refuses a server that lies, and answers repeated requests with the same bytes."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest
from masked_answers import AnswerRoom
from masked_studies import ROUNDS, Room
from secure_sum_studies import CLIENTS, PEER, VICTIM, Course

from fedcdh.errors import SecureAggregationError, SignatureError
from fedcdh.messages.signing import SigningKey
from fedcdh.privacy.secure_aggregation.client import SecAggClient
from fedcdh.privacy.secure_aggregation.masking import (
    derive_public_key,
)
from fedcdh.privacy.secure_aggregation.messages import (
    ConfirmedSurvivors,
    PublicKeys,
    Roster,
    SecAggTerms,
    ShareDelivery,
    SurvivorConfirmation,
    SurvivorList,
    UnmaskingShares,
)


def with_keys(course: Course, client: str, keys: PublicKeys) -> Roster:
    return replace(course.roster, keys=tuple(keys if one.client == client else one for one in course.roster.keys))


def another_key(course: Course) -> Roster:
    return with_keys(
        course, PEER, replace(course.roster.keys_of(PEER), sealing=derive_public_key(b"server" + bytes(26)))
    )


def signed_by_the_server(course: Course) -> Roster:
    forged = replace(course.roster.keys_of(PEER), masking=derive_public_key(b"server" + bytes(26))).signed(
        SigningKey.generate()
    )
    return with_keys(course, PEER, forged)


def keys_of_another_study(course: Course) -> Roster:
    other = Room(replace(course.room.study, profiles={"site1": "0" * 64}), course.room.keys, course.room.cohort)
    return with_keys(course, PEER, other.roster().keys_of(PEER))


def roster_of_before(course: Course) -> Roster:
    return Room.of(5).roster()


def less_needed(course: Course) -> Roster:
    return replace(course.roster, terms=replace(course.roster.terms, threshold=3))


def less_needed_and_signed_so_by_one(course: Course) -> Roster:
    terms = replace(course.roster.terms, threshold=3)
    mine = replace(course.roster.keys_of(PEER), terms=terms.digest).signed(course.room.keys[PEER])
    return replace(with_keys(course, PEER, mine), terms=terms)


def other_groups(course: Course) -> Roster:
    groups = dict.fromkeys(course.room.study.plan.clients, "all")
    return replace(course.roster, terms=replace(course.roster.terms, groups=groups))


def somebody_unknown(course: Course) -> Roster:
    stranger = replace(course.roster.keys_of(PEER), client="stranger").signed(SigningKey.generate())
    return replace(course.roster, keys=(*course.roster.keys, stranger))


def somebody_twice(course: Course) -> Roster:
    return replace(course.roster, keys=(*course.roster.keys, course.roster.keys[-1]))


def the_same_keys_under_two_names(course: Course) -> Roster:
    copied = course.roster.keys_of(VICTIM)
    theirs = replace(course.roster.keys_of(PEER), sealing=copied.sealing).signed(course.room.keys[PEER])
    return with_keys(course, PEER, theirs)


def too_few(course: Course) -> Roster:
    return replace(course.roster, keys=course.roster.keys[:3])


def without_the_site(course: Course) -> Roster:
    return replace(course.roster, keys=course.roster.keys[1:])


def boxes(course: Course, **changed: dict[str, bytes]) -> ShareDelivery:
    return replace(course.delivery, boxes={**course.delivery.boxes, **changed})


def changed_box(course: Course) -> ShareDelivery:
    box = bytearray(course.delivery.boxes[PEER][VICTIM])
    box[20] ^= 1
    return boxes(course, **{PEER: {VICTIM: bytes(box)}})


def box_of_another_sender(course: Course) -> ShareDelivery:
    return boxes(course, **{PEER: {VICTIM: course.delivery.boxes["site2"][VICTIM]}})


def box_for_another_receiver(course: Course) -> ShareDelivery:
    return boxes(course, **{PEER: {VICTIM: course.delivery.boxes[PEER]["site2"]}})


def box_returned_to_its_sender(course: Course) -> ShareDelivery:
    return boxes(course, **{PEER: {VICTIM: course.delivery.boxes[VICTIM][PEER]}})


def no_box(course: Course) -> ShareDelivery:
    return boxes(course, **{PEER: {}})


def delivery_of_another_session(course: Course) -> ShareDelivery:
    return Course.until("masked").delivery


def boxes_of_another_session(course: Course) -> ShareDelivery:
    return replace(Course.until("masked").delivery, session=course.delivery.session)


def few_senders(course: Course) -> ShareDelivery:
    return replace(course.delivery, boxes={c: course.delivery.boxes[c] for c in ("site0", "site1", "site2")})


def senders_who_are_not_in_the_roster(course: Course) -> ShareDelivery:
    return boxes(course, stranger=course.delivery.boxes[PEER])


def another_list_of_senders(course: Course) -> ShareDelivery:
    course.room.ask(VICTIM, course.delivery)
    return replace(course.delivery, boxes={c: box for c, box in course.delivery.boxes.items() if c != PEER})


def listed(course: Course, *clients: str) -> SurvivorList:
    return SurvivorList(course.roster.digest, clients)


def list_without_the_site(course: Course) -> SurvivorList:
    return listed(course, "site1", "site2", "site3", "site4")


def list_with_a_stranger(course: Course) -> SurvivorList:
    return listed(course, *course.present.clients, "stranger")


def short_list(course: Course) -> SurvivorList:
    return listed(course, "site0", "site1", "site2")


def list_of_another_session(course: Course) -> SurvivorList:
    return replace(course.present, session="ab" * 32)


def second_list(course: Course) -> SurvivorList:
    course.room.ask(VICTIM, course.present)
    return listed(course, "site0", "site1", "site2", "site4")


def with_signatures(
    course: Course, signatures: dict[str, bytes], present: SurvivorList | None = None
) -> ConfirmedSurvivors:
    return ConfirmedSurvivors(present or course.present, signatures)


def few_signatures(course: Course) -> ConfirmedSurvivors:
    return with_signatures(course, dict(list(course.confirmations.signatures.items())[:3]))


def forged_signature(course: Course) -> ConfirmedSurvivors:
    return with_signatures(course, {**course.confirmations.signatures, PEER: b"s" * 64})


def signature_of_another_site(course: Course) -> ConfirmedSurvivors:
    theirs = course.confirmations.signatures
    return with_signatures(course, {**theirs, PEER: theirs["site1"]})


def signature_of_an_earlier_session(course: Course) -> ConfirmedSurvivors:
    return with_signatures(course, dict(Course.until("opened").confirmations.signatures))


def signatures_under_another_list(course: Course) -> ConfirmedSurvivors:
    """The list is cut after it was signed, and the site asked for the key of the one who was cut."""
    shorter = listed(course, "site0", "site1", "site2", "site4")
    theirs = {client: course.confirmations.signatures[client] for client in shorter.clients}
    return with_signatures(course, theirs, shorter)


def list_that_others_signed(course: Course) -> ConfirmedSurvivors:
    """All others have signed another list than this site: with five sites, they could open that without it."""
    shorter = listed(course, "site0", "site1", "site2", "site4")
    signed = {c: sign_list(course, c, shorter) for c in shorter.clients}
    return with_signatures(course, signed, shorter)


def sign_list(course: Course, client: str, present: SurvivorList) -> bytes:
    """What a site that colludes would sign."""
    return SurvivorConfirmation(client, present.session, present.digest).signed(course.room.keys[client]).signature


def signer_who_is_not_in_the_list(course: Course) -> ConfirmedSurvivors:
    shorter = listed(course, "site0", "site1", "site2", "site4")
    course.room.states[VICTIM] = replace(course.room.states[VICTIM], present=shorter)
    return with_signatures(course, {c: sign_list(course, c, shorter) for c in course.present.clients}, shorter)


def both_after_the_end(course: Course) -> ConfirmedSurvivors:
    """The site has opened its part, and is asked for the other half of what it held."""
    course.room.ask(VICTIM, course.confirmations)
    return list_that_others_signed(course)


def roster_after_the_end(course: Course) -> Roster:
    course.room.ask(VICTIM, course.confirmations)
    return course.roster


def another_attempt_after_the_end(course: Course) -> SecAggTerms:
    course.room.ask(VICTIM, course.confirmations)
    return replace(course.roster.terms, attempt=2)


def other_terms_under_the_same_number(course: Course) -> SecAggTerms:
    return replace(course.roster.terms, threshold=3)


def terms_of_another_plan_file(course: Course) -> SecAggTerms:
    return replace(course.roster.terms, study="ab" * 32, attempt=2)


def a_threshold_of_half(course: Course) -> SecAggTerms:
    return replace(course.roster.terms, threshold=2, attempt=2)


def a_group_of_two(course: Course) -> SecAggTerms:
    groups = dict(zip(course.room.study.plan.clients, "aaabb", strict=True))
    return replace(course.roster.terms, groups=groups, attempt=2)


def second_roster(course: Course) -> Roster:
    return replace(course.roster, keys=course.roster.keys[:-1])


LIES = {
    "shares": (
        another_key,
        signed_by_the_server,
        keys_of_another_study,
        roster_of_before,
        less_needed,
        less_needed_and_signed_so_by_one,
        other_groups,
        somebody_unknown,
        somebody_twice,
        the_same_keys_under_two_names,
        too_few,
        without_the_site,
        other_terms_under_the_same_number,
        terms_of_another_plan_file,
        a_threshold_of_half,
        a_group_of_two,
    ),
    "masked": (
        changed_box,
        box_of_another_sender,
        box_for_another_receiver,
        box_returned_to_its_sender,
        no_box,
        delivery_of_another_session,
        boxes_of_another_session,
        few_senders,
        senders_who_are_not_in_the_roster,
        another_list_of_senders,
        second_roster,
    ),
    "confirmed": (
        list_without_the_site,
        list_with_a_stranger,
        short_list,
        list_of_another_session,
        second_list,
    ),
    "opened": (
        few_signatures,
        forged_signature,
        signature_of_another_site,
        signature_of_an_earlier_session,
        signatures_under_another_list,
        list_that_others_signed,
        signer_who_is_not_in_the_list,
        both_after_the_end,
        roster_after_the_end,
        another_attempt_after_the_end,
    ),
}


@pytest.mark.parametrize(
    ("stage", "lie"),
    [(stage, lie) for stage, lies in LIES.items() for lie in lies],
    ids=lambda one: getattr(one, "__name__", one),
)
def test_a_false_request_is_refused_and_changes_nothing(stage, lie):
    course = Course.until(stage)
    request = lie(course)
    before = course.room.states[VICTIM]
    with pytest.raises((SecureAggregationError, SignatureError)):
        course.room.ask(VICTIM, request)
    assert course.room.states[VICTIM] == before


@pytest.mark.parametrize("stage", ROUNDS[1:])
def test_without_a_lie_the_same_request_is_answered(stage):
    """So that the refusals above are refusals of the lie."""
    course = Course.until(stage)
    honest = {"shares": course.roster, "masked": course.delivery, "confirmed": course.present}
    course.room.ask(VICTIM, honest.get(stage, course.confirmations))


def test_two_lists_to_two_halves_open_neither():
    course = Course.until("confirmed", 7)
    one, other = listed(course, *course.present.clients[:5]), listed(course, *course.present.clients[2:])
    signed: dict[SurvivorList, dict[str, bytes]] = {one: {}, other: {}}
    for client in course.present.clients:
        seen = one if client < "site4" else other
        if client in seen.clients:
            signed[seen][client] = course.room.ask(client, seen).signature
    for seen, signatures in signed.items():
        for client in signatures:
            with pytest.raises(SecureAggregationError, match="Expected at least"):
                course.room.ask(client, ConfirmedSurvivors(seen, signatures))


@pytest.mark.parametrize("sites", [4, 7, 10])
@pytest.mark.parametrize("fewer", [0, 1])
def test_two_lists_are_opened_only_with_as_many_helpers_as_documented(sites, fewer):
    """With 2 × threshold − sites helpers, who sign both lists, the server gets both secrets of single sites."""
    course = Course.until("confirmed", sites)
    helping = 2 * course.room.terms().threshold - sites - fewer
    helpers, rest = course.present.clients[:helping], course.present.clients[helping:]
    opened = 0
    for half in (rest[::2], rest[1::2]):
        seen = listed(course, *sorted((*helpers, *half)))
        signatures = {
            client: SurvivorConfirmation(client, seen.session, seen.digest).signed(course.room.keys[client]).signature
            for client in seen.clients
        }
        for client in half:
            with suppress(SecureAggregationError):
                course.room.ask(client, seen)
                opened += isinstance(course.room.ask(client, ConfirmedSurvivors(seen, signatures)), UnmaskingShares)
    assert (opened == len(rest)) == (not fewer)


def test_of_no_site_both_secrets_are_opened():
    room = Room.of(10, gone={"site2": "masked", "site5": "masked"})
    room.run()
    for one in room.replies["opened"].values():
        assert one.seeds.keys() == set(CLIENTS) - {"site2", "site5"}
        assert one.keys.keys() == {"site2", "site5"}
    assert all(state.secrets is None for state in room.states.values() if state.opened)


def test_what_is_asked_again_is_answered_with_the_same_bytes():
    course = Course.until("opened")
    for request in (course.roster.terms, course.roster, course.delivery, course.present):
        once, again = (course.room.ask(VICTIM, request).to_bytes() for _ in range(2))
        assert once == again
    once, again = (course.room.ask(VICTIM, course.confirmations).to_bytes() for _ in range(2))
    assert once == again


def test_other_rows_are_not_masked_in_the_same_session():
    """Whatever has become of the rows, the same numbers leave: they are not even looked at."""
    course = Course.until("confirmed")
    state, reply = course.room.site(VICTIM).answer(course.delivery, course.room.states[VICTIM], lambda: 1 / 0)
    assert reply.to_bytes() == course.room.replies["masked"][VICTIM].to_bytes()
    assert state == course.room.states[VICTIM]


def test_another_attempt_begins_with_other_keys_where_nothing_was_opened():
    course = Course.until("opened")
    again = course.room.ask(VICTIM, replace(course.roster.terms, attempt=2))
    before = course.roster.keys_of(VICTIM)
    assert {again.sealing, again.masking}.isdisjoint({before.sealing, before.masking})
    with pytest.raises(SecureAggregationError, match="attempt"):
        course.room.ask(VICTIM, course.roster.terms)


def test_a_site_that_the_plan_does_not_name_or_with_another_key_takes_no_part():
    room = Room.of(3)
    for site in (
        SecAggClient(room.study, "stranger", SigningKey.generate()),
        SecAggClient(room.study, "site0", room.keys["site1"]),
    ):
        with pytest.raises(SignatureError, match="another key"):
            site.answer(room.terms(), None, lambda: None)


def test_answers_are_added_after_a_sum_of_summaries_and_among_its_clients():
    room = AnswerRoom.after_sum(4)
    terms = room.terms()
    with pytest.raises(SecureAggregationError, match="Expected that sum first"):
        replace(room, before={}).ask("site0", terms)
    with pytest.raises(SecureAggregationError, match="Expected that sum first"):
        Room(room.study, room.keys, room.cohort).ask("site0", terms)
    before = room.before["site0"]
    strict = replace(before, terms=replace(before.terms, threshold=4))
    with pytest.raises(SecureAggregationError, match="at least 4"):
        replace(room, before={"site0": strict}).ask("site0", terms)
    fewer = replace(before, present=replace(before.present, clients=("site0", "site1", "site2")))
    room.before = {**room.before, "site0": fewer}
    with pytest.raises(SecureAggregationError, match="Expected site0, site1, site2, the clients of the sum"):
        room.delivery(room.roster())


@pytest.mark.parametrize(("round_", "what"), [("keys", "roster"), ("shares", "delivery"), ("masked", "list")])
def test_a_server_that_leaves_a_site_out_of_a_sum_of_answers_gets_refusals(round_, what):
    """Its answers would be the difference to the sum of summaries, or to a sum about the same regression."""
    room = AnswerRoom.after_sum(4, gone={"site1": round_})
    request = room.roster()
    if round_ != "keys":
        roster, request = request, room.delivery(request)
    if round_ == "masked":
        request = room.present(roster, request)
    before = dict(room.states)
    for client in ("site0", "site2", "site3"):
        with pytest.raises(
            SecureAggregationError, match=f"The {what}.* names site0, site2, site3. Expected site0, site1"
        ):
            room.ask(client, request)
    assert room.states == before


def test_a_state_is_of_one_request():
    room = AnswerRoom.after_sum(3)
    room.ask("site0", room.terms())
    other = replace(room.request, queries=room.request.queries[:1])
    with pytest.raises(SecureAggregationError, match="another request"):
        room.ask("site0", SecAggTerms.of(room.study, request=other, attempt=2))
    assert room.ask("site0", SecAggTerms.of(room.study, request=room.request, attempt=2)).kind == "keys"
