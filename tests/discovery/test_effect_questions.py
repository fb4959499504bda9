"""Questions about effects: the levels that are compared, and what is refused."""

import pytest

from fedcdh.discovery.effect_questions import Question, ask
from fedcdh.errors import SettingsError

VARIABLES = dict.fromkeys(("age", "stage", "sex", "stay"))
LEVELS = {"stage": {"I": 5, "II": 9, "III": 7}, "sex": {"f": 4, "m": 17}}


def asked(cause, outcome, kind="total", levels=None, outcome_level=None, at=None):
    return ask(Question(cause, outcome, kind, levels, outcome_level, at), VARIABLES, LEVELS)


def test_of_three_levels_the_two_most_common_are_compared_and_a_note_says_so():
    found = asked("stage", "sex")
    assert (found.levels, found.outcome_level) == (("II", "III"), "m")
    assert found.notes == ("stage has 3 levels; the two most common are compared; contrast picks others",)


def test_of_two_levels_the_order_of_the_plan_counts_and_nothing_is_noted():
    found = asked("sex", "stay")
    assert (found.levels, found.outcome_level, found.notes) == (("f", "m"), None, ())
    assert found.units == "difference of stay between sex = m and sex = f"


def test_equally_common_levels_are_compared_in_the_order_of_the_plan():
    ties = {"stage": dict.fromkeys(("c", "a", "b"), 3)}
    assert ask(Question("stage", "stay", "total"), VARIABLES, ties).levels == ("c", "a")
    assert ask(Question("age", "stage", "total"), VARIABLES, ties).outcome_level == "c"


def test_levels_that_are_named_are_kept():
    found = asked("stage", "sex", levels=("III", "I"), outcome_level="f")
    assert (found.levels, found.outcome_level, found.notes) == (("III", "I"), "f", ())
    assert found.units == "difference of probability of sex = f between stage = I and stage = III"


def test_a_variable_with_one_level_has_no_contrast():
    assert ask(Question("sex", "stay", "total"), VARIABLES, {"sex": {"f": 9}}).levels is None


def test_units_of_numbers():
    assert asked("age", "stay").units == "change of stay per unit of age"
    assert asked("age", "stay", at=(50, 60)).units == "difference of stay between age = 60 and age = 50"


@pytest.mark.parametrize(
    ("question", "parameter", "message"),
    [
        (("agee", "stay"), None, "there is no variable 'agee'; choose among 'age'"),
        (("age", "age"), None, "cause and outcome are both 'age'"),
        (("age", "stay", "partial"), "kind", "expected 'total' or 'direct'"),
        (("age", "stay", "total", ("a", "b")), "contrast", "age is a number; leave it out"),
        (("stage", "stay", "total", ("I", "I")), "contrast", "expected two different levels of stage"),
        (("stage", "stay", "total", ("I", "IV")), "contrast", "stage has no level 'IV' in these rows"),
        (("age", "stay", "total", None, "long"), "outcome_level", "stay is a number; leave it out"),
        (("age", "sex", "total", None, "x"), "outcome_level", "sex has no level 'x' in these rows; choose among 'f'"),
        (("stage", "stay", "total", None, None, (1, 2)), "at", r"stage has levels; pass contrast=\(from, to\)"),
        (("age", "stay", "total", None, None, (1, 1)), "at", "expected two different values of age"),
        (("age", "stay", "total", None, None, (1, 2, 3)), "at", "expected two different values of age"),
        (("age", "stay", "total", None, None, (1, float("inf"))), "at", "expected two different values of age"),
        (("age", "stay", "total", None, None, (1, float("nan"))), "at", "expected two different values of age"),
        (("age", "stay", "total", None, None, ("1", "2")), "at", "expected two different values of age"),
    ],
)
def test_what_does_not_exist_is_refused(question, parameter, message):
    with pytest.raises(SettingsError, match=message) as refused:
        asked(*question)
    assert refused.value.parameter == parameter
