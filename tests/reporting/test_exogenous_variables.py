"""Variables that nothing can cause: recognised with care, and the knowledge about them can be used as it is written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcdh.cli import main
from fedcdh.federation.planning.declaration import Declaration
from fedcdh.graphs.convert.knowledge import from_toml
from fedcdh.reporting.exogenous_variables import (
    find_caused_exogenous,
    find_exogenous,
    is_exogenous_name,
    suggest_knowledge,
)


def made(variables, arrows=(), lines=(), **knowledge):
    known = {"required": [], "forbidden": [], "tiers": [], "forbid_within_tier": [], **knowledge}
    graph = {"arrows": [list(arrow) for arrow in arrows], "lines": [list(line) for line in lines]}
    return {"variables": list(variables), "settings": {"knowledge": known}, "graph": graph}


@pytest.mark.parametrize(
    "name",
    [
        *(
            "age",
            "Age",
            "AGE_YEARS",
            "ageAtAdmission",
            "patient age",
            "age_group",
            "sex",
            "gender",
            "birth_year",
            "DOB",
        ),
        *("Alter", "Geschlecht", "âge", "sexe", "edad", "género", "età", "sesso", "idade", "leeftijd", "ålder", "kön"),
        *("возраст", "пол", "年齢", "性别", "나이", "العمر", "ηλικία", "is_female", "date_of_birth", "ethnicity"),
    ],
)
def test_common_names_are_recognised(name):
    assert is_exogenous_name(name)


@pytest.mark.parametrize(
    "name",
    [
        *("dosage", "stage", "average", "page", "sage", "age_score", "bone_age", "vascular_age", "agent", "unisex"),
        *("alternative", "eta", "kon", "sexual_activity", "gender_gap", "birth_weight", "years", "group", "", "y"),
        *("language", "marriage", "management", "x1", "v0", "race_time", "yas", "sex_hormone"),
    ],
)
def test_other_names_are_not(name):
    assert not is_exogenous_name(name)


def test_causes_and_open_directions_are_found():
    graph = made(["age", "sex", "bmi", "crp"], [("bmi", "age"), ("sex", "crp")], [("sex", "bmi")])
    found = {one.name: (one.causes, one.linked) for one in find_caused_exogenous(graph)}
    assert found == {"age": (("bmi",), ()), "sex": ((), ("bmi",))}
    assert find_caused_exogenous(made(["age", "bmi"], [("age", "bmi")])) == ()


def test_the_first_tier_counts_and_a_required_cause_is_respected():
    tiers = [["dose"], ["pain"]]
    assert find_exogenous(made(["pain", "dose", "x"], tiers=tiers)) == ("dose",)
    assert find_exogenous(made(["pain", "dose"], tiers=[["dose", "pain"]])) == ()  # one tier says nothing
    assert find_exogenous(made(["sex", "age"], required=[["sex", "age"]])) == ("sex",)


NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)


@st.composite
def documents(draw):
    """Any names, with some that are recognised, and knowledge that does not contradict itself."""
    names = draw(st.lists(NAMES, min_size=1, max_size=5, unique=True))
    names = list(dict.fromkeys([*names, *draw(st.sets(st.sampled_from(["age", "sex", "Alter"]), min_size=1))]))
    order = draw(st.permutations(names))
    cuts = sorted(draw(st.sets(st.integers(1, len(order)), max_size=2)))
    tiers = [list(order[a:b]) for a, b in zip([0, *cuts], cuts, strict=False)]
    pairs = [(a, b) for at, a in enumerate(order) for b in order[at + 1 :]]
    chosen = draw(st.lists(st.sampled_from(pairs), max_size=2, unique=True)) if pairs else []
    required = [list(pair) for pair in chosen[:1]]
    forbidden = [[b, a] for a, b in chosen]
    return made(names, tiers=tiers, required=required, forbidden=forbidden)


@given(documents())
def test_the_lines_are_a_declaration_that_keeps_what_was_known(document):
    text, exogenous = suggest_knowledge(document), find_exogenous(document)
    assert text.isprintable() or text.count("\n") == len(text.splitlines()) - 1
    known = from_toml(text)
    assert Declaration.from_toml(text).knowledge == known
    before = document["settings"]["knowledge"]
    assert {tuple(arrow) for arrow in before["required"]} == known.required
    assert {tuple(arrow) for arrow in before["forbidden"]} <= known.forbidden
    for name in exogenous:
        for other in document["variables"]:
            assert other == name or known.forbids(other, name) or other in exogenous
    if len(exogenous) > 1:
        assert 0 in known.forbid_within_tier
    for earlier, tier in enumerate(before["tiers"]):
        for later in before["tiers"][earlier + 1 :]:
            assert all(known.forbids(b, a) for a in tier for b in later if a not in exogenous and b not in exogenous)


def test_the_command_accepts_the_lines(tmp_path, capsys):
    document = made(["age", "bmi", "crp"], [("bmi", "age")])
    variables = "".join(f"[variables.{name}]\nrange = [0, 100]\n" for name in document["variables"])
    text = f'clients = ["north", "south"]\n{variables}\n{suggest_knowledge(document)}\n'
    (tmp_path / "variables.toml").write_text(text, encoding="utf-8")
    plan = tmp_path / "study.plan.json"
    assert main(["plan", "--declare", str(tmp_path / "variables.toml"), "-o", str(plan)]) == 0
    capsys.readouterr()
    assert '["age"]' in "".join(plan.read_text(encoding="utf-8").split())
