"""The sum is exact, whichever clients leave, and false numbers are found in it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import studies
from hypothesis import given, settings
from hypothesis import strategies as st
from masked_answers import AnswerRoom
from masked_studies import ROUNDS, Room, a_study, groups_of, same
from secure_sum_studies import CLIENTS, PEER, VICTIM, Course

from fedcdh.errors import SecureAggregationError, SignatureError, SummaryError
from fedcdh.messages.signing import SigningKey
from fedcdh.messages.study_file import Study
from fedcdh.privacy.secure_aggregation.messages import Roster
from fedcdh.privacy.secure_aggregation.server import index_by_client
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.aggregation import Aggregate, Cohort
from fedcdh.summaries.dp_parameters import DPParameters
from fedcdh.summaries.encoder import GRID
from fedcdh.summaries.integer_vectors import (
    MAX_ROWS_READ,
    encode_summary,
    group_clients,
)
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.summary import MAX_ROWS, Summary
from fedcdh.summaries.variables import Categorical


@pytest.mark.parametrize("sites", [3, 10])
def test_the_masked_sum_is_the_plain_one(sites):
    room = Room.of(sites, 4)
    assert same(room.run(), Aggregate.of(room.cohort))


@pytest.mark.parametrize("number", [1, 2, 3])
def test_of_groups_only_sums_are_known(number):
    study = a_study(9)[0]
    room = Room.of(9, groups=groups_of(study, number))
    found = room.run()
    assert found.clients == tuple(f"group {k}" for k in range(number))
    assert same(found, room.plain(room.cohort.clients))
    assert found.total.clients == room.cohort.clients


@pytest.mark.parametrize(
    ("client", "stage"), [("site0", "keys"), *((client, stage) for client in CLIENTS for stage in ROUNDS[1:])]
)
def test_whoever_leaves_when_the_sum_is_that_of_the_others(stage, client):
    """Who has sent masked numbers is in the sum, also if it then leaves."""
    room = Room.of(10, gone={client: stage})
    there = set(CLIENTS) - ({client} if ROUNDS.index(stage) < 3 else set())
    assert same(room.run(), room.plain(there))


def test_a_key_of_low_order_is_refused_and_its_sender_named():
    """Where it arrives, at the server and in a roster; the others go on without that site."""
    room = Room.of(4)
    terms = room.terms()
    keys = {client: room.ask(client, terms) for client in room.study.plan.clients}
    three = [keys[client] for client in ("site0", "site1", "site2")]
    for field in ("sealing", "masking"):
        bad = replace(keys["site3"], **{field: bytes(32)}).signed(room.keys["site3"])
        with pytest.raises(SecureAggregationError, match="site3 sent a public key of low order"):
            room.server.check_keys(terms, bad)
        with pytest.raises(SecureAggregationError, match="site3 sent a public key of low order"):
            room.ask("site0", Roster(terms, (*three, bad)))
    room.ask("site0", room.server.build_roster(terms, three))


@pytest.mark.parametrize("stage", ROUNDS)
def test_as_many_may_leave_as_the_threshold_allows_and_no_more(stage):
    leaving = dict.fromkeys(CLIENTS[:3], stage)
    there = set(CLIENTS) - (set(leaving) if ROUNDS.index(stage) < 3 else set())
    room = Room.of(10, gone=leaving)
    assert room.terms().threshold == 7
    assert same(room.run(), room.plain(there))
    with pytest.raises(SecureAggregationError, match=r"7 are needed|at least 7"):
        Room.of(10, gone=dict.fromkeys(CLIENTS[:4], stage)).run()


def test_sites_may_leave_in_every_round():
    room = Room.of(10, gone={"site1": "shares", "site4": "masked", "site7": "confirmed"})
    assert same(room.run(), room.plain(set(CLIENTS) - {"site1", "site4"}))


@settings(max_examples=25, deadline=None)
@given(st.dictionaries(st.sampled_from(CLIENTS[:6]), st.sampled_from(ROUNDS)), st.integers(4, 6))
def test_whoever_leaves_whenever_there_is_the_exact_sum_or_none(gone, threshold):
    """The sum is that of all whose numbers came, if at least the threshold stayed to the end; else there is none."""
    room = Room.of(6, gone=gone, threshold=threshold)
    there = [client for client in room.cohort.clients if gone.get(client) not in ROUNDS[:3]]
    if len(room.cohort.clients) - len(gone) >= threshold:
        assert same(room.run(), room.plain(there))
    else:
        with pytest.raises(SecureAggregationError, match="Expected at least"):
            room.run()


def test_a_group_of_which_two_are_left_is_not_opened():
    groups = groups_of(a_study(10)[0], 3)
    with pytest.raises(SecureAggregationError, match="group"):
        Room.of(10, groups=groups, gone={"site1": "masked", "site4": "masked"}).run()


def test_a_group_that_has_left_altogether_is_not_in_the_sum():
    groups = {client: "few" if client in CLIENTS[:3] else "many" for client in CLIENTS}
    room = Room.of(10, groups=groups, gone=dict.fromkeys(CLIENTS[:3], "masked"))
    found = room.run()
    assert found.clients == ("many",)
    assert same(found, room.plain(CLIENTS[3:]))


def test_first_moments_in_the_place_of_a_group_that_has_left_are_found(monkeypatch):
    groups = {client: "few" if client in CLIENTS[:3] else "many" for client in CLIENTS}
    room = Room.of(10, groups=groups, gone=dict.fromkeys(CLIENTS[:3], "masked"))

    def elsewhere(*about):
        words = encode_summary(*about).copy()
        words[-2 * room.study.plan.layout.n_columns] += np.uint64(1)
        return words

    monkeypatch.setattr("fedcdh.privacy.secure_aggregation.client.encode_summary", elsewhere)
    with pytest.raises(SecureAggregationError, match="place of another"):
        room.run()


@pytest.mark.parametrize("distributed", [True, False])
def test_noise_of_the_plan_is_in_the_sum_and_the_same_when_asked_again(distributed):
    tables = studies.numbers(0, (900, 800, 700, 600), 6)
    honest = {"honest": 3} if distributed else {}
    plan = replace(studies.plan_of(tables), clip=6.0, noise=DPParameters(1.0, 1e-6, distributed=distributed, **honest))
    keys = {client: SigningKey.generate() for client in tables}
    summaries = tuple(summarize(table, plan, client) for client, table in tables.items())
    room = Room(Study(plan, keys={c: key.public for c, key in keys.items()}), keys, Cohort(plan, summaries))
    room.gone = {"site3": "masked"}
    roster = room.roster()
    delivery = room.delivery(roster)
    present = room.present(roster, delivery)
    assert room.ask("site0", delivery).to_bytes() == room.replies["masked"]["site0"].to_bytes()
    found = room.opened(roster, delivery, room.confirmations(roster, present))
    assert found.clients == ("all clients",)
    assert found.total.noise == 3 * plan.noise.client_deviation**2 >= plan.noise.deviation**2
    apart = (found.total.moments - sum(one.moments for one in summaries[:3])) / found.total.noise**0.5
    assert 0.7 < np.abs(apart[1:, 1:]).mean() / np.sqrt(2 / np.pi) < 1.5
    with pytest.raises(SecureAggregationError, match="noise"):
        replace(room.terms(), groups={}).check(room.study)


def of_rows(counts: tuple[int, ...]) -> Room:
    """Clients with so many rows, all alike."""
    clients = tuple(f"c{k}" for k in range(len(counts)))
    plan = StudyPlan((Categorical("sex", ("f", "m")),), clients)
    keys = {client: SigningKey.generate() for client in clients}
    pattern = np.array([[1, 1, 0], [1, 1, 0], [0, 0, 0]], dtype=np.int64) * GRID**2
    summaries = [
        Summary(plan.fingerprint, (client,), pattern * rows, rows, {"sex": 0})
        for client, rows in zip(clients, counts, strict=True)
    ]
    return Room(Study(plan, keys={c: key.public for c, key in keys.items()}), keys, Cohort(plan, tuple(summaries)))


@pytest.mark.parametrize("less", [1, 0])
def test_as_many_rows_as_fit_are_added(less):
    found = of_rows((MAX_ROWS - 20 - less, 10, 10)).run()
    assert found.total.rows == MAX_ROWS - less
    assert found.client_rows == (MAX_ROWS - 20 - less, 10, 10)


@pytest.mark.parametrize("counts", [(MAX_ROWS - 20, 10, 11), (MAX_ROWS,) * 3, (MAX_ROWS - 1, 1, 1)])
def test_one_row_more_is_refused_and_so_is_what_wraps_around(counts):
    """Of three times as many, the moments alone would wrap around to fewer rows."""
    with pytest.raises(SummaryError, match="exact"):
        of_rows(counts).run()


def test_more_rows_read_than_can_be_added_are_refused():
    room = of_rows((10, 10, 10))
    first = replace(room.cohort.summaries[0], rows_read=MAX_ROWS_READ + 1, missing={"sex": MAX_ROWS_READ - 9})
    with pytest.raises(SecureAggregationError, match="rows were read"):
        encode_summary(first, room.study.plan, group_clients({}, room.cohort.clients))


def lying(room: Room, client: str, summary: Summary) -> Room:
    summaries = [summary if one.clients == (client,) else one for one in room.cohort.summaries]
    return replace(room, cohort=Cohort(room.cohort.plan, tuple(summaries)))


def test_numbers_that_no_rows_give_are_found_in_the_sum_but_not_whose_they_are():
    room = Room.of(4)
    honest = room.cohort.summaries[1]
    moments = honest.moments.copy()
    moments[1, 1] //= 2
    with pytest.raises(SummaryError) as caught:
        lying(room, "site1", replace(honest, moments=moments)).run()
    assert all(client in str(caught.value) for client in room.cohort.clients)


def test_numbers_of_other_rows_are_not_found():
    """Documented: what is valid may be false, masked or not."""
    room = Room.of(4)
    false = replace(room.cohort.summaries[0], clients=("site1",))
    assert lying(room, "site1", false).run().client_rows == (20, 20, 22, 23)


def test_numbers_that_were_changed_on_the_way_are_refused():
    course = Course.until("confirmed")
    honest = course.room.replies["masked"][PEER]
    words = honest.words.copy()
    words[3] += np.uint64(1)
    with pytest.raises(SignatureError):
        course.room.server.check_masked(course.roster, course.delivery, replace(honest, words=words))


def test_numbers_under_other_masks_are_refused():
    course = Course.until("confirmed")
    honest = course.room.replies["masked"][PEER]
    other = replace(honest, masked_with=honest.masked_with[:-1]).signed(course.room.keys[PEER])
    with pytest.raises(SecureAggregationError, match="masked with other clients"):
        course.room.server.check_masked(course.roster, course.delivery, other)


def false_share(room: Room, client: str, of: str) -> None:
    honest = room.replies["opened"][client]
    seeds = {**honest.seeds, of: (5).to_bytes(33, "big")}
    room.replies["opened"][client] = replace(honest, seeds=seeds).signed(room.keys[client])


def test_a_false_share_does_no_harm_where_there_are_more_and_is_found_where_not():
    course = Course.until("opened", 10)
    plain = course.room.plain(CLIENTS)
    course.room.opened(course.roster, course.delivery, course.confirmations)
    for client in CLIENTS[:3]:
        false_share(course.room, client, "site5")
    assert same(course.room.sum(course.roster, course.present), plain)
    false_share(course.room, "site4", "site5")
    with pytest.raises(SecureAggregationError, match="site5"):
        course.room.sum(course.roster, course.present)


def test_one_answer_counts_once_and_two_that_differ_are_refused():
    course = Course.until("confirmed")
    one, *others = course.room.replies["masked"].values()
    assert len(index_by_client([one, one, *others])) == 5
    with pytest.raises(SecureAggregationError, match="two different"):
        index_by_client([one, replace(one, disclosure_control=False).signed(course.room.keys[one.client])])


def test_shares_for_some_only_are_refused():
    course = Course.until("masked")
    honest = course.room.replies["shares"][PEER]
    fewer = replace(honest, sealed={c: box for c, box in honest.sealed.items() if c != VICTIM})
    with pytest.raises(SecureAggregationError, match="all other clients"):
        course.room.server.check_shares(course.roster, fewer.signed(course.room.keys[PEER]))


@pytest.mark.parametrize("gone", [{}, {"site1": "confirmed"}, {"site1": "opened"}])
def test_the_masked_sum_of_answers_is_the_plain_one(gone):
    room = AnswerRoom.after_sum(4, gone=gone)
    found = room.run()
    assert found == room.plain_answers(room.cohort.clients)
    assert found[0].rows == sum(len(table["x"]) for table in room.tables.values())


def test_a_vector_of_a_summary_is_no_answer_and_a_sum_of_summaries_holds_none():
    room = AnswerRoom.after_sum(3)
    roster = room.roster()
    delivery = room.delivery(roster)
    room.present(roster, delivery)
    masked = room.replies["masked"]["site0"]
    longer = replace(masked, words=np.zeros(len(masked.words) + 1, dtype=np.uint64)).signed(room.keys["site0"])
    with pytest.raises(SecureAggregationError, match="numbers"):
        room.server.check_masked(roster, delivery, longer)
    other = Course.until("opened")
    with pytest.raises(SecureAggregationError, match="adds summaries"):
        other.room.server.unmask_answers(other.roster, {}, [], other.present, [])
