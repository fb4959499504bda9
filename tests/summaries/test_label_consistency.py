"""The same label in other words: refused with advice, and never by the order of clients or by how rows are cut."""

from __future__ import annotations

import numpy as np
import pytest
import studies
from hypothesis import given
from hypothesis import strategies as st

from fedcdh.data.readers import open_tables
from fedcdh.errors import PlanError
from fedcdh.evaluation.demo import hospital_study
from fedcdh.federation.planning.declaration import Declaration
from fedcdh.federation.planning.study_from_profiles import plan_study
from fedcdh.messages.profile_file import ProfileMessage
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.label_consistency import find_disjoint_labels, find_spelling_variants, fold_label
from fedcdh.summaries.profiles import profile
from fedcdh.summaries.variables import Categorical


def messages(labels: dict[str, str], rows: int = 60, name: str = "s") -> list[tuple[str, ProfileMessage]]:
    """One client per entry, its labels separated by commas and taken in turns."""
    tables = {client: {name: np.resize(np.array(text.split(",")), rows)} for client, text in labels.items()}
    return [(f"{c}.json", ProfileMessage(profile(t, c, kinds={name: "categorical"}))) for c, t in tables.items()]


def refusal(labels: dict[str, str], **more) -> str:
    with pytest.raises(PlanError) as refused:
        plan_study(messages(labels, **more))
    return str(refused.value)


def declared_in(message: str) -> Declaration:
    """The declaration that the message offers."""
    start = message.index("[variables.")
    return Declaration.from_toml("\n".join(message[start:].splitlines()[:2]))


FOUR = {"a": "yes,no", "b": "Yes,No", "c": "true,false", "d": "True,False"}


def test_four_ways_to_say_yes_and_no_make_no_plan():
    message = refusal(FOUR)
    assert "'Yes' at 'b', 'yes' at 'a'" in message
    assert "no label in common at 'a', 'b' ('no', 'yes') and 'c', 'd' ('false', 'true')" in message
    assert "declare the levels" in message
    assert "--accept-differences s" in message


@pytest.mark.parametrize(
    ("labels", "told"),
    [
        ({"a": "ja, ja,Ja,nein"}, "' ja' at 'a', 'Ja' at 'a', 'ja' at 'a'"),
        ({"a": "1,2,k.A.", "b": "1.0,2.0,k.A."}, "'1' at 'a', '1.0' at 'b'; '2' at 'a', '2.0' at 'b'"),
        ({"a": "never smoked,now", "b": "never  smoked,now"}, "'never  smoked' at 'b', 'never smoked' at 'a'"),
        ({"a": "groß,klein", "b": "GROSS,klein"}, "'GROSS' at 'b', 'groß' at 'a'"),
        ({"a": "caf\u00e9,x", "b": "cafe\u0301,x"}, "at 'b', 'caf\u00e9' at 'a'"),
        ({"a": "x\u00a0y,z", "b": "x y,z"}, "'x y' at 'b', 'x\\xa0y' at 'a'"),
    ],
)
def test_labels_that_differ_only_in_spelling_are_refused(labels, told):
    assert told in refusal(labels)


def test_many_spellings_are_told_in_part():
    message = refusal({"a": "u,v,w,x,y,z", "b": "U,V,W,X,Y,Z"})
    assert "'X' at 'b', 'x' at 'a'; and 2 more" in message


def test_the_message_brings_a_declaration_of_one_spelling_each():
    declared = declared_in(refusal({"a": "ja, ja,Ja,nein", "b": "ja,nein,1.0", "c": "nein,1"}))
    assert declared.variables[0].variable == Categorical("s", ("1", "ja", "nein"))
    odd = declared_in(refusal({"a": 'x "y",z', "b": 'X "Y",z'}, name="Raucher (ä)"))
    assert odd.variables[0].name == "Raucher (ä)"
    assert set(odd.variables[0].levels or ()) <= {'x "y"', 'X "Y"', "z"}


def test_declared_levels_settle_it():
    sent = messages({"a": "yes,no", "b": "Yes,No"})
    declared = Declaration.from_toml('[variables.s]\nlevels = ["no", "yes", "No", "Yes"]')
    assert plan_study(sent, declared).plan.variables == (Categorical("s", ("no", "yes", "No", "Yes")),)
    with pytest.raises(PlanError, match=r"level 'No' at client 'b', which is not declared, did you mean 'no'"):
        plan_study(sent, Declaration.from_toml('[variables.s]\nlevels = ["no", "yes"]'))


def test_whole_numbers_with_decimals_are_the_declared_levels_without():
    labels = {"a": "1,2,k.A.", "b": "1.0,2.0,k.A."}
    declared = declared_in(refusal(labels))
    plan = plan_study(messages(labels), declared).plan
    assert plan.variables == (Categorical("s", ("1", "2", "k.A.")),)
    tables = [{"s": text.split(",") * 20} for text in labels.values()]
    assert np.array_equal(*(summarize(t, plan, c).moments for t, c in zip(tables, labels, strict=True)))


@pytest.mark.parametrize(
    ("ours", "theirs"), [("yes,no", "true,false"), ("0,1", "no,yes"), ("M,F", "male,female"), ("M,F", "female")]
)
def test_sites_without_a_label_in_common_are_refused_unless_that_is_accepted(ours, theirs):
    labels = {"a": ours, "b": theirs, "c": ours}
    message = refusal(labels)
    assert "no label in common" in message
    assert "spelling" not in message
    sent = messages(labels)
    levels = tuple(sorted({*ours.split(","), *theirs.split(",")}))
    assert plan_study(sent, accept_differences=["s"]).plan.variables == (Categorical("s", levels),)
    declared = Declaration.from_toml(f"[variables.s]\nlevels = {list(levels)}")
    assert plan_study(sent, declared).plan.variables == (Categorical("s", levels),)
    assert declared_in(message).variables[0].levels == tuple(sorted(ours.split(","))), "those of most rows"


def test_accepting_accepts_spellings_as_levels_of_their_own():
    with pytest.raises(PlanError, match="differ only in their spelling"):
        plan_study(messages(FOUR))
    spelt = {label for text in FOUR.values() for label in text.split(",")}
    assert set(plan_study(messages(FOUR), accept_differences=["s"]).plan.variables[0].levels) == spelt


def test_all_doubts_come_at_once():
    rng = np.random.default_rng(0)
    tables = {
        "a": {"s": ["yes", "no"] * 30, "q": 5 + rng.standard_normal(60)},
        "b": {"s": ["ja", "nein"] * 30, "q": 1000 * (5 + rng.standard_normal(60))},
    }
    with pytest.raises(PlanError, match="no label in common") as refused:
        plan_study([(c, ProfileMessage(profile(t, c))) for c, t in tables.items()])
    assert "Expected the same unit" in str(refused.value)


@pytest.mark.parametrize(
    "labels",
    [
        {"a": "yes,no", "b": "yes,no"},
        {"a": "yes,no", "b": "no"},
        {"a": "f", "b": "m"},  # one label each: nothing that could be the same
        {"a": "I,II", "b": "II,III", "c": "III,IV"},  # linked through others
        {"a": "1,10,01", "b": "1,1.5"},
    ],
)
def test_ordinary_labels_accuse_nobody(labels):
    assert plan_study(messages(labels))


def test_few_rows_accuse_nobody():
    assert plan_study(messages({"a": "yes,no", "b": "true,false"}, rows=19))
    assert "no label in common" in refusal({"a": "yes,no", "b": "true,false"}, rows=20)


def test_a_site_without_values_accuses_nobody():
    tables = {"a": {"s": ["yes", "no"] * 30}, "b": {"s": [None] * 60}}
    assert plan_study([(c, ProfileMessage(profile(t, c))) for c, t in tables.items()])


@pytest.mark.parametrize("seed", range(4))
def test_hospitals_of_the_demo_and_of_the_tests_accuse_nobody(seed):
    for tables in (hospital_study(seed).tables, studies.mixed(seed, (60, 45, 30))):
        profiles = [profile(table, client) for client, table in tables.items()]
        for name in profiles[0].columns:
            columns = {one.client: one.columns[name] for one in profiles}
            assert find_spelling_variants(name, columns) is None
            assert find_disjoint_labels(name, columns) is None


words = st.sampled_from(["yes", "Yes", " yes", "no", "true", "1", "1.0", "2"])


@given(st.lists(st.sets(words, min_size=1), min_size=1, max_size=4), st.randoms())
def test_the_order_of_clients_does_not_matter(sites, random):
    labels = {f"site {k}": ",".join(sorted(site)) for k, site in enumerate(sites)}
    columns = {client: one.profile.columns["s"] for client, (_, one) in zip(labels, messages(labels), strict=True)}
    shuffled = dict(random.sample(list(columns.items()), len(columns)))
    assert find_disjoint_labels("s", shuffled) == find_disjoint_labels("s", columns)
    assert find_spelling_variants("s", shuffled) == find_spelling_variants("s", columns)
    levels = {level for column in columns.values() for level in column.levels}
    assert (find_spelling_variants("s", columns) is None) == (
        len({fold_label(level) for level in levels}) == len(levels)
    )


@given(st.text())
def test_folding_twice_is_folding_once(text):
    assert fold_label(fold_label(text)) == fold_label(text)
    assert fold_label(f" {text}\t") == fold_label(text)


def test_csv_with_gaps_gives_the_labels_of_csv_without(tmp_path):
    (tmp_path / "a.csv").write_text("sex\n" + "1\n2\n" * 30)
    (tmp_path / "b.csv").write_text("sex,x\n" + "1.0,0\n2.0,0\n,0\n" * 30)  # as pandas writes it
    sent = [
        ProfileMessage(profile(open_tables(tmp_path / f"{c}.csv"), c, variables=["sex"], kinds={"sex": "categorical"}))
        for c in "ab"
    ]
    plan = plan_study([(one.profile.client, one) for one in sent]).plan
    assert plan.variables == (Categorical("sex", ("1", "2")),)
    assert summarize(open_tables(tmp_path / "b.csv"), plan, "b").rows == 60
