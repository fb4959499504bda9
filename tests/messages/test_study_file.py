"""Study files and how they come about: any changed byte is refused, and contradictions are told with names."""

from __future__ import annotations

import base64
import hashlib
import json
import random
from dataclasses import replace

import numpy as np
import pytest
import studies
from effort import patience, steps
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import mutated, plans

from fedcdh._io.strict_json import to_canonical_json
from fedcdh._io.strict_toml import expect_table, suggest_name
from fedcdh._io.text import to_readable_json
from fedcdh.errors import FedCDHError, KnowledgeError, PlanError
from fedcdh.evaluation.demo import hospital_study
from fedcdh.evaluation.simulation import AUTHORS, PAPER, simulate
from fedcdh.federation.planning.declaration import Declaration
from fedcdh.federation.planning.study_from_profiles import plan_study
from fedcdh.federation.planning.unit_consistency import CONVERSIONS, find_unit_mismatch
from fedcdh.graphs.knowledge import Knowledge
from fedcdh.messages.profile_file import ProfileMessage, profile_to_json
from fedcdh.messages.study_file import FORMAT, MAX_CLIENTS, MAX_KNOWLEDGE_ENTRIES, Study
from fedcdh.protocols import DOMAIN
from fedcdh.summaries.features import Fourier, Hermite
from fedcdh.summaries.plan import Categorical, Continuous, StudyPlan
from fedcdh.summaries.profiles import Profile, profile

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
            with pytest.raises(PlanError, match="ask the coordinator for the file again|with this version"):
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


# From profiles and declarations


def messages(tables, **more) -> list[tuple[str, ProfileMessage]]:
    return [(f"{client}.json", ProfileMessage(profile(table, client), **more)) for client, table in tables.items()]


TABLES = studies.mixed(2, (60, 45, 30))


def test_profiles_make_the_plan_they_always_made():
    sent = messages(TABLES, key=KEY)
    study = plan_study(sent)
    assert study.plan == studies.plan_of(TABLES)
    assert set(study.keys.values()) == {KEY}
    for _, message in sent:
        digest = hashlib.sha256(profile_to_json(message).encode()).hexdigest()
        assert study.profiles[message.profile.client] == digest
    assert plan_study(sent[::-1]) == study
    assert plan_study(sent, family=Fourier(6)).plan.family == Fourier(6)
    assert Study.from_json(study.to_json()) == study


def test_a_declaration_alone_makes_a_plan():
    declared = Declaration.from_toml("""
clients = ["south", "north"]
[variables.age]
range = [18, 100]
[variables.sex]
levels = ["f", "m"]
[knowledge]
tiers = [["sex"], ["age"]]
[features]
width = 3
""")
    study = plan_study(declaration=declared)
    expected = (Continuous("age", 59, 82 / 12**0.5), Categorical("sex", ("f", "m")))
    assert study.plan == StudyPlan(expected, ("north", "south"), Hermite(3))
    assert study.knowledge.tiers == (("sex",), ("age",))
    assert (dict(study.keys), dict(study.profiles)) == ({}, {})


def test_the_declaration_wins_and_the_profiles_give_the_rest():
    declared = Declaration.from_toml("""
[variables.flag]
levels = [0, 1]
[variables.age]
mean = 40
sd = 10
[variables.group]
levels = ["low", "middle", "high", "none"]
[variables.dose]
[variables.sex]
kind = "categorical"
""")
    plan = plan_study(messages(TABLES), declared).plan
    whole = {variable.name: variable for variable in studies.plan_of(TABLES).variables}
    assert plan.names == ("flag", "age", "group", "dose", "sex"), "only what is listed, in that order"
    assert plan.variables[0] == Categorical("flag", ("0", "1"))
    assert plan.variables[1] == Continuous("age", 40, 10)
    assert plan.variables[2] == Categorical("group", ("low", "middle", "high", "none"))
    assert plan.variables[3:] == (whole["dose"], whole["sex"])
    assert plan.clients == tuple(TABLES)


def changed(client: str, **columns) -> dict:
    return {**TABLES, client: {**TABLES[client], **columns}}


def without(client: str, name: str, **more) -> dict:
    return {**TABLES, client: {key: value for key, value in TABLES[client].items() if key != name} | more}


FIRST = "clinic a"
LABELS = np.array(["50", "n/a", *["61"] * 43])


@pytest.mark.parametrize(
    ("tables", "text", "reason"),
    [
        (changed("clinic b", age=LABELS), "", "categorical at client 'clinic b' .labels such as 'n/a', '50', '61'."),
        (changed("clinic b", age=LABELS), "", "and continuous at client 'clinic .'; 2 of its labels are numbers"),
        (changed("clinic b", age=LABELS), "[variables.age]\nrange=[0,99]", "'clinic b' .* but declared continuous"),
        (TABLES, "[variables.sex]\nkind='continuous'", "but declared continuous; correct the column"),
        (TABLES, "[variables.flag]\nkind='categorical'", "'flag' is declared categorical, but .* list its levels"),
        (TABLES, "[variables.sex]\nlevels=['F','m']", "level 'f' at client 'clinic a'.* did you mean 'F'"),
        (without("clinic b", "age", Age=np.ones(45)), "", "'clinic b' has no column 'age', did you mean 'Age'"),
        (without("clinic b", "age"), "", "'clinic b' has no column 'age'; add or rename"),
        (without(FIRST, "age"), "", "'clinic a' has no column 'age', which client 'clinic b' has.*list the variables"),
        (TABLES, "[variables.agee]", "has no column 'agee', did you mean 'age'"),
        (TABLES, "clients=['clinic a', 'clinic b']", "profile of client 'clinic c', which the declaration does not"),
        (TABLES, "clients=['clinic a', 'clinic b', 'clinic c', 'd']", "no profile of client 'd'.*wait for it"),
        ({}, "", "a study needs clients"),
        ({}, "clients=['a']", "expected at least one"),
        ({}, "clients=['a']\n[variables.x]", "'x' needs levels, a range, or a mean and an sd"),
        ({}, "clients=['a']\n[variables.x]\nkind='categorical'", "'x' needs levels"),
        ({}, "clients=['a']\n[variables.x]\nlevels=['a']\n[features]\nwidth=1", "the feature family has width"),
        (TABLES, "[knowledge]\ntiers=[['agee']]", "unknown variables: agee"),
    ],
)
def test_contradictions_are_told_with_names_and_advice(tables, text, reason):
    with pytest.raises(FedCDHError, match=reason):
        plan_study(messages(tables), Declaration.from_toml(text))


def test_one_client_one_profile_and_one_draft():
    sent = messages(TABLES)
    with pytest.raises(PlanError, match=r"'clinic a' sent two profiles \(clinic a.json and again.json\)"):
        plan_study([*sent, ("again.json", sent[0][1])])
    mixed = [*messages({FIRST: TABLES[FIRST]}, plan="ab" * 32), *sent[1:]]
    with pytest.raises(PlanError, match=r"different draft plans .*plan abababababab.*no plan"):
        plan_study(mixed)
    assert plan_study(messages(TABLES, plan="ab" * 32)).plan == studies.plan_of(TABLES)


def test_labels_can_be_settled_by_declaring_levels():
    tables = {"a": {"x": np.array([0.0, 1.0] * 20)}, "b": {"x": np.array(["0", "1"] * 20)}}
    with pytest.raises(PlanError, match=r"list its levels in \[variables.x\]"):
        plan_study(messages(tables))
    declared = Declaration.from_toml("[variables.x]\nlevels = [0, 1]")
    assert plan_study(messages(tables), declared).plan.variables == (Categorical("x", ("0", "1")),)


# Units


def drawn(seed: int, location: float = 5.4, scale: float = 1.1, apart: float = 0.3) -> dict[str, dict[str, np.ndarray]]:
    """Clients that differ by 0.3 standard deviations in level and 15 % in spread, as clients do."""
    rng = np.random.default_rng([seed, 4])
    shapes = [(apart * rng.standard_normal(), np.exp(apart / 2 * rng.standard_normal())) for _ in range(4)]
    return {
        f"site {k}": {"q": location + scale * (shift + spread * rng.standard_normal(150))}
        for k, (shift, spread) in enumerate(shapes)
    }


@pytest.mark.parametrize(
    ("location", "scale", "factor", "offset", "units"),
    [
        (36.9, 0.6, 1.8, 32, "°C and °F"),
        (5.4, 1.1, 18.02, 0, "mmol/l and mg/dl of glucose"),
        (75, 9, 2.2046, 0, "kg and lb"),
        (170, 9, 1 / 2.54, 0, "inch and cm"),
        (5.2, 0.9, 1000, 0, "kg and g"),
        (3, 0.5, 1e6, 0, "10^6"),
        (-5.4, 0.8, 1000, 0, "kg and g"),
    ],
)
@pytest.mark.parametrize("wrong", [1, 2])
def test_other_units_are_found_and_explained(location, scale, factor, offset, units, wrong):
    tables = drawn(3, location, scale, 0.1 if factor < 3 else 0.3)  # small factors take more alike clients
    assert plan_study(messages(tables))
    for client in list(tables)[:wrong]:
        tables[client] = {"q": factor * tables[client]["q"] + offset}
    with pytest.raises(PlanError, match="same quantity in other units") as refused:
        plan_study(messages(tables))
    message = str(refused.value)
    assert units in message
    for said in ("'site 0'", "'site 3'", "median", "Convert it at the site", "--accept-differences q"):
        assert said in message
    assert plan_study(messages(tables), accept_differences=["q"]).plan == studies.plan_of(tables)


def test_accepting_names_a_variable():
    with pytest.raises(PlanError, match=r"'agee' are accepted, but .* did you mean 'age'"):
        plan_study(messages(TABLES), accept_differences=["agee"])


def test_other_units_are_found_in_nineteen_of_twenty_cases():
    found = 0
    for seed in range(100):
        tables = drawn(seed)
        tables["site 0"] = {"q": 18.02 * tables["site 0"]["q"]}
        found += (
            find_unit_mismatch(
                "q", {c: m.profile.columns["q"] for c, (_, m) in zip(tables, messages(tables), strict=True)}
            )
            is not None
        )
    assert found >= 95


def doubts(tables) -> list[str]:
    profiles: list[Profile] = [profile(table, client) for client, table in tables.items()]
    return [
        name
        for name in profiles[0].columns
        if find_unit_mismatch(name, {one.client: one.columns[name] for one in profiles})
    ]


@pytest.mark.parametrize("model", ["linear", "general"])
@pytest.mark.parametrize("dialect", [PAPER, AUTHORS])
@pytest.mark.parametrize("clients", [2, 5])
def test_clients_that_differ_as_simulated_ones_do_are_not_doubted(model, dialect, clients):
    for seed in range(12):
        study = simulate(model, clients=clients, rows=100, seed=seed, dialect=dialect)
        named = {client: dict(zip(study.names, table.T, strict=True)) for client, table in study.tables.items()}
        assert doubts(named) == []


def test_hospitals_of_the_demo_are_not_doubted():
    for seed in range(4):
        assert doubts(hospital_study(seed).tables) == [], f"seed {seed}"


def test_few_values_constants_and_labels_accuse_nobody():
    tables = {
        "a": {"x": np.arange(15.0) + 5, "c": [1.0] * 15},
        "b": {"x": 1000 * (np.arange(15.0) + 5), "c": [1e3] * 15},
    }
    assert doubts(tables) == []
    assert doubts({"a": {"x": np.full(50, np.nan)}, "b": {"x": np.arange(50.0)}}) == []
    assert len({conversion.factor for conversion in CONVERSIONS}) == len(CONVERSIONS)
