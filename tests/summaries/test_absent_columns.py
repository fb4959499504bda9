from __future__ import annotations

import pytest

from fedcdh.errors import PlanError, SettingsError
from fedcdh.summaries.absent_columns import check_absent, columns_by_client
from fedcdh.summaries.plan import StudyPlan, check_equal_columns
from fedcdh.summaries.variables import Continuous

COLUMNS = {"north": ["age", "bmi"], "south": ["age", "crp"], "west": ["age", "bmi", "crp"]}


def test_equal_columns_need_no_acceptance():
    assert check_absent({"north": ["age"], "south": ["age"]}) == {}


def test_the_error_names_who_lacks_what_and_how_to_accept_it():
    with pytest.raises(PlanError, match="'north' has no column 'crp', client 'south' has no column 'bmi'") as found:
        check_absent(COLUMNS)
    assert "absent='allow'" in str(found.value)
    assert "--allow-absent" in str(found.value)


def test_what_is_allowed_is_returned():
    assert check_absent(COLUMNS, "allow") == {"north": ("crp",), "south": ("bmi",)}
    assert check_absent(COLUMNS, {"north": ["crp"], "south": ["bmi"]}) == {"north": ("crp",), "south": ("bmi",)}


def test_only_what_is_named_is_accepted():
    with pytest.raises(PlanError, match="'south' has no column 'bmi', which is not among"):
        check_absent(COLUMNS, {"north": ["crp"]})


def test_a_named_column_is_not_used_even_if_it_is_there():
    assert check_absent({"north": ["age", "bmi"], "south": ["age", "bmi"]}, {"north": ["bmi"]}) == {"north": ("bmi",)}


@pytest.mark.parametrize("spelling", ["CRP", "crp_", "crpp"])
def test_a_misspelt_column_is_not_taken_for_an_absent_one(spelling):
    columns = {"north": ["age", spelling], "south": ["age", "crp"]}
    with pytest.raises(PlanError, match=f"has a column|a column {spelling!r}"):
        check_absent(columns, "allow")
    assert check_absent(columns, {"north": ["crp"], "south": [spelling]})["north"] == ("crp",)


def test_similar_names_that_another_client_has_both_of_are_two_variables():
    columns = {"north": ["v1", "v10"], "south": ["v1", "v10", "v2"], "west": ["v10", "v2"]}
    assert check_absent(columns, "allow") == {"north": ("v2",), "west": ("v1",)}


@pytest.mark.parametrize("rule", [{"north": ["CRB"]}, {"nord": ["crp"]}])
def test_unknown_names_are_refused(rule):
    with pytest.raises(PlanError, match="correct the name"):
        check_absent(COLUMNS, rule)


def test_an_unknown_rule_is_refused():
    with pytest.raises(SettingsError, match="expected 'refuse', 'allow'"):
        check_absent(COLUMNS, "maybe")


def test_a_variable_that_nobody_has_is_refused():
    with pytest.raises(PlanError, match="no client has the column 'ldl'"):
        columns_by_client({"north": {"age": [1.0]}}, ["age", "ldl"], None, "allow")


@pytest.mark.parametrize(
    ("absent", "message"),
    [
        ({"west": ["a"]}, "client 'west'"),
        ({"north": ["c"]}, "the variable 'c'"),
        ({"north": ["a", "b"]}, "lacks all variables"),
        ({"north": ["a"], "south": ["a"]}, "no client has the variable 'a'"),
    ],
)
def test_a_plan_refuses_what_cannot_be(absent, message):
    with pytest.raises(PlanError, match=message):
        StudyPlan((Continuous("a"), Continuous("b")), ("north", "south"), absent=absent)


def test_a_plan_file_cannot_claim_to_be_a_part():
    text = StudyPlan((Continuous("a"),), ("north",)).to_json()
    with pytest.raises(PlanError, match="not a study plan"):
        StudyPlan.from_json(text[:-1] + ',"part_of":"' + "0" * 64 + '"}')


def test_sums_need_equal_columns():
    plan = StudyPlan((Continuous("a"), Continuous("b")), ("north", "south"), absent={"north": ["b"]})
    with pytest.raises(PlanError, match=r"'north' has no column 'b'.*a secure sum needs the same columns"):
        check_equal_columns(plan, "a secure sum")
