"""The plan from profiles and a declaration: precedence, and contradictions with names and advice."""

from __future__ import annotations

import base64
import hashlib

import numpy as np
import pytest
import studies
from time_series import unrelated

from fedcdh.errors import FedCDHError, PlanError
from fedcdh.federation.planning.declaration import Declaration
from fedcdh.federation.planning.study_from_profiles import plan_study
from fedcdh.messages.profile_file import ProfileMessage, profile_to_json
from fedcdh.messages.study_file import Study
from fedcdh.summaries.features import Fourier, Hermite
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.profiles import profile
from fedcdh.summaries.variables import Categorical, Continuous

KEY = "ed25519:" + base64.b64encode(bytes(range(32))).decode()


def messages(tables, **more) -> list[tuple[str, ProfileMessage]]:
    return [(f"{client}.json", ProfileMessage(profile(table, client), **more)) for client, table in tables.items()]


TABLES = studies.mixed(2, (60, 45, 30))


def test_the_plan_of_profiles_is_that_of_the_tables():
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


def test_a_complete_declaration_needs_no_profiles():
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


def test_the_declaration_takes_precedence_over_the_profiles():
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
        (changed("clinic b", age=LABELS), "", "and continuous at client 'clinic .'. 2 of its labels are numbers"),
        (changed("clinic b", age=LABELS), "[variables.age]\nrange=[0,99]", "'clinic b' .* but declared continuous"),
        (TABLES, "[variables.sex]\nkind='continuous'", "but declared continuous. Correct the column"),
        (TABLES, "[variables.flag]\nkind='categorical'", "'flag' is declared categorical, but .* List its levels"),
        (TABLES, "[variables.sex]\nlevels=['F','m']", "level 'f' at client 'clinic a'.* did you mean 'F'"),
        (without("clinic b", "age", Age=np.ones(45)), "", "'clinic b' has no column 'age', did you mean 'Age'"),
        (without("clinic b", "age"), "", "'clinic b' has no column 'age'. Add or rename"),
        (without(FIRST, "age"), "", "'clinic a' has no column 'age', which client 'clinic b' has.*list the variables"),
        (TABLES, "[variables.agee]", "has no column 'agee', did you mean 'age'"),
        (TABLES, "clients=['clinic a', 'clinic b']", "profile of client 'clinic c', which the declaration does not"),
        (TABLES, "clients=['clinic a', 'clinic b', 'clinic c', 'd']", "no profile of client 'd'.*Wait for it"),
        ({}, "", "The study has no clients"),
        ({}, "clients=['a']", "expected at least one, with different names"),
        (
            {},
            "clients=['a']\n[variables.x]",
            "'x' is declared without values.*Declare its levels, its range, or its mean and sd",
        ),
        ({}, "clients=['a']\n[variables.x]\nkind='categorical'", "'x' is declared without values"),
        ({}, "clients=['a']\n[variables.x]\nlevels=['a']\n[features]\nwidth=1", "feature family has width 1"),
        (TABLES, "[knowledge]\ntiers=[['agee']]", "unknown variables: agee"),
    ],
)
def test_contradictions_are_named_with_advice(tables, text, reason):
    with pytest.raises(FedCDHError, match=reason):
        plan_study(messages(tables), Declaration.from_toml(text))


def test_one_client_one_profile_and_one_draft():
    sent = messages(TABLES)
    with pytest.raises(PlanError, match=r"two profiles of client 'clinic a' \(clinic a.json and again.json\)"):
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


def test_accepting_names_a_variable():
    with pytest.raises(PlanError, match=r"'agee' are accepted, but .* did you mean 'age'"):
        plan_study(messages(TABLES), accept_differences=["agee"])


def test_shares_of_rows_are_those_of_the_profiles_also_for_declared_variables():
    tables = unrelated(6, clients=3)
    profiles, declared = (
        messages(tables),
        Declaration.from_toml("""
[variables.v0]
mean = 0
sd = 1
[variables.v1]
[variables.v2]
[variables.v3]
"""),
    )
    shares = [
        [(one.product_share, one.mean_share) for one in plan.variables]
        for plan in (plan_study(profiles).plan, plan_study(profiles, declaration=declared).plan)
    ]
    assert shares[0] == shares[1]
    assert max(shares[0]) < (1.0, 1.0)
