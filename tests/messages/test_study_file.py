"""Study files and how they come about: any changed byte is refused, and contradictions are told with names."""

from __future__ import annotations

import base64
import hashlib
import json
import random
from dataclasses import replace

import pytest
from effort import patience, steps
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import mutated, plans

from fedcdh._io.strict_json import to_canonical_json
from fedcdh._io.strict_toml import expect_table
from fedcdh._io.text import suggest_name, to_readable_json
from fedcdh.errors import KnowledgeError, PlanError
from fedcdh.graphs.knowledge import Knowledge
from fedcdh.messages.study_file import FORMAT, MAX_CLIENTS, MAX_KNOWLEDGE_ENTRIES, Study
from fedcdh.protocols import DOMAIN
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.variables import Categorical, Continuous

KEY = "ed25519:" + base64.b64encode(bytes(range(32))).decode()
PLAN = StudyPlan(
    (Continuous("age", 60, 15), Categorical("sex", ("f", "m")), Continuous("bmi", 27, 4)), ("north", "south")
)
KNOWN = Knowledge([("age", "bmi"), (DOMAIN, "bmi")], [("bmi", "sex")], [["age", "sex"], ["bmi"]], [0])
STUDY = Study(PLAN, KNOWN, {"north": KEY}, {"north": "0a" * 32, "south": "1b" * 32})


@st.composite
def made(draw) -> Study:
    plan = draw(plans())
    order = draw(st.permutations(plan.names))
    cut = draw(st.integers(0, len(order)))
    some = st.sets(st.sampled_from(plan.clients))
    return Study(
        plan,
        Knowledge(
            required=[order[:2]] * draw(st.booleans()) if len(order) > 1 else [],
            tiers=[order[:cut], order[cut:]],
            forbid_within_tier=[draw(st.integers(0, 1))] * (cut in (0, 1) and len(order) < 2),
        ),
        dict.fromkeys(draw(some), KEY),
        {client: hashlib.sha256(client.encode()).hexdigest() for client in draw(some)},
    )


@settings(deadline=None, max_examples=60)
@given(made())
def test_what_is_written_is_read_back(study):
    text = study.to_json()
    read = Study.from_json(text)
    assert read == Study.from_json(text.encode()) == study
    assert read.to_json() == text
    assert read.plan.fingerprint == study.plan.fingerprint


def test_the_file_is_for_people_and_for_other_programs():
    document = json.loads(STUDY.to_json())
    assert document["format"] == FORMAT
    assert document["plan"] == json.loads(PLAN.to_json())
    assert document["fingerprint"] == PLAN.fingerprint
    assert document["knowledge"]["tiers"] == [["age", "sex"], ["bmi"]]
    assert document["knowledge"]["required"] == [[DOMAIN, "bmi"], ["age", "bmi"]]
    digest = document.pop("digest")
    assert digest == hashlib.sha256(to_canonical_json(document).encode()).hexdigest()
    assert hashlib.sha256(to_canonical_json(document["plan"]).encode()).hexdigest() == PLAN.fingerprint


def test_any_changed_byte_is_refused():
    rng, blob = random.Random(0), STUDY.to_json().encode()
    for _ in range(4000):
        damaged = mutated(blob, rng)
        if damaged != blob:
            with pytest.raises(PlanError, match=r"ask the coordinator for the file again|with this version"):
                Study.from_json(damaged)


def signed(change) -> str:
    """A file changed by somebody who knows how the digest is made."""
    document = json.loads(STUDY.to_json())
    del document["digest"]
    change(document)
    return to_readable_json({**document, "digest": hashlib.sha256(to_canonical_json(document).encode()).hexdigest()})


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda d: d.update(fingerprint="0" * 64), "the way this program writes"),
        (lambda d: d["plan"].update(clip=6), "the way this program writes"),
        (lambda d: d["plan"].update(clip=6.0), "the way this program writes"),
        (lambda d: d["plan"]["clients"].reverse(), "the way this program writes"),
        (lambda d: d["plan"].update(more=1), "not a study plan"),
        (lambda d: d.update(plan=[]), "not a study plan"),
        (lambda d: d.update(more=1), "digest"),
        (lambda d: d.pop("keys"), "digest"),
        (lambda d: d["knowledge"].update(more=[]), "the way this program writes"),
        (lambda d: d["knowledge"].pop("tiers"), "tiers"),
        (lambda d: d["knowledge"]["required"].append(["bmi", "height"]), "unknown variables: height"),
        (lambda d: d["knowledge"]["required"].append(["bmi", "age"]), "tiers forbid"),
        (lambda d: d["knowledge"]["required"].append([["bmi"], "age"]), "unhashable"),
        (lambda d: d["knowledge"].update(required=7), "iterable"),
        (lambda d: d["knowledge"].update(forbid_within_tier=["0"]), "'<=' not supported"),
        (lambda d: d.update(knowledge="tiers"), "indices"),
        (lambda d: d["keys"].update(west=KEY), "does not name this client"),
        (lambda d: d["keys"].update(north="key"), "key of client 'north'"),
        (lambda d: d.update(keys=[["north", KEY]]), "the way this program writes"),
        (lambda d: d["profiles"].update(north="0A" * 32), "profile of client 'north'"),
        (lambda d: d.update(profiles=7), "iterable"),
    ],
)
def test_a_file_that_contradicts_itself_is_refused_whatever_its_digest(change, reason):
    with pytest.raises(PlanError, match="ask the coordinator") as refused:
        Study.from_json(signed(change))
    assert reason in str(refused.value)


@pytest.mark.parametrize("text", ["", "[]", "{}", "7", "[" * 100_000, b"\xff", " " * 16_000_001, PLAN.to_json()])
def test_what_is_no_study_is_refused(text):
    with pytest.raises(PlanError, match="ask the coordinator"):
        Study.from_json(text)


def test_a_study_makes_sense_or_is_refused():
    with pytest.raises(KnowledgeError, match="unknown variables: height"):
        Study(PLAN, Knowledge(forbidden=[("age", "height")]))
    with pytest.raises(PlanError, match="at most"):
        Study(replace(PLAN, clients=tuple(map(str, range(MAX_CLIENTS + 1)))))
    with pytest.raises(TypeError):
        STUDY.keys["south"] = KEY


@pytest.mark.parametrize(
    "known",
    [
        Knowledge(required=[("age", str(k)) for k in range(MAX_KNOWLEDGE_ENTRIES // 2 + 1)]),
        Knowledge(forbidden=[("age", str(k)) for k in range(MAX_KNOWLEDGE_ENTRIES // 2 + 1)]),
        Knowledge(tiers=[["age"] * MAX_KNOWLEDGE_ENTRIES]),
        Knowledge(tiers=[[]] * (MAX_KNOWLEDGE_ENTRIES + 1)),
    ],
)
def test_a_study_knows_a_bounded_number_of_things(known):
    with pytest.raises(PlanError, match="expected at most 1000000 in all; say it with tiers"):
        Study(PLAN, known)


def test_a_file_with_many_arrows_is_read_in_a_moment():
    names = [f"v{k:03}" for k in range(300)]
    known = Knowledge(required=[(a, b) for k, a in enumerate(names) for b in names[k + 1 :]], tiers=[names])
    text = Study(StudyPlan(tuple(map(Continuous, names)), ("north",)), known).to_json()
    assert Study.from_json(text).knowledge == known
    work = steps(lambda: Study.from_json(text))
    assert work < 150 * len(known.required), "91 lines for an arrow, and 290 when every start was followed by itself"


def test_what_a_file_says_that_is_wrong_fits_into_a_few_lines():
    def change(document):
        document["knowledge"]["required"] += [[f"\x1b{k}" + "x" * 1000, "age"] for k in range(1000)]

    with pytest.raises(PlanError, match="unknown variables") as refused:
        Study.from_json(signed(change))
    assert len(str(refused.value)) < 11_000
    assert str(refused.value).replace("\n", " ").isprintable()


def test_words_too_long_to_be_names_are_not_compared():
    long, known = "ab" * 60_000, ["ba" * 60_000, "bmi"]
    with patience():
        assert suggest_name(long, known) == ""
    assert suggest_name("bmj", known) == ", did you mean 'bmi'?"
    with pytest.raises(PlanError, match="unknown key 'abab") as refused:
        expect_table({long: 1}, known[1:], "the table", refuse=PlanError)
    assert len(str(refused.value)) < 200
